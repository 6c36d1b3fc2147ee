//! What the disk does by itself: 4 KB overwrites, each followed by `fdatasync`.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::load::Window;
use crate::stats::{Latencies, Outcome};

const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 256;

/// Overwrites blocks of a file in `dir` for `length`.
///
/// The file is written and synced first, so that no write that counts makes it grow.
pub fn fdatasync(dir: &Path, length: Duration) -> Result<Outcome> {
    let path = dir.join("fdatasync");
    let block = [0x5a_u8; BLOCK_BYTES];
    let file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    for index in 0..BLOCKS {
        file.write_all_at(&block, index * BLOCK_BYTES as u64)?;
    }
    file.sync_all()?;
    let window = Window::after_warm_up(length);
    let mut latencies = Latencies::default();
    for index in (0..BLOCKS).cycle() {
        if window.is_over() {
            break;
        }
        let begun = Instant::now();
        file.write_all_at(&block, index * BLOCK_BYTES as u64)?;
        file.sync_data()?;
        window.record(begun, &mut latencies);
    }
    std::fs::remove_file(&path)?;
    Ok(Outcome { latencies, elapsed: length })
}
