use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How the store in a file works.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct SqliteConfig {
    /// The folder that holds the file `longhaul.db` and what belongs to it; made when absent. Default: `data`.
    pub directory: PathBuf,
    /// When a commit counts as kept. Default: `full`.
    pub synchronous: Synchronous,
    /// How many threads read at the same time, at least 1 and at most 64. Default: 2.
    pub readers: usize,
    /// After how many pages (of 4 KiB) in the write-ahead log they are moved into the file. Fewer means shorter pauses,
    /// more means a higher rate. At least 100. Default: 4000.
    pub checkpoint_pages: u32,
    /// How much of the file the writer keeps in memory. At least 1 MiB. Default: 16 MiB.
    pub writer_cache_bytes: u64,
    /// How much of the file each reader keeps in memory. At least 256 KiB. Default: 4 MiB.
    pub reader_cache_bytes: u64,
}

impl SqliteConfig {
    /// The most threads that may read.
    pub const READERS_MAX: usize = 64;
    /// The fewest pages between two checkpoints.
    pub const CHECKPOINT_PAGES_MIN: u32 = 100;
    /// The smallest cache of the writer.
    pub const WRITER_CACHE_BYTES_MIN: u64 = 1 << 20;
    /// The smallest cache of a reader.
    pub const READER_CACHE_BYTES_MIN: u64 = 1 << 18;
}

impl Default for SqliteConfig {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("data"),
            synchronous: Synchronous::Full,
            readers: 2,
            checkpoint_pages: 4000,
            writer_cache_bytes: 16 << 20,
            reader_cache_bytes: 4 << 20,
        }
    }
}

/// When a commit counts as kept.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Synchronous {
    /// When the disk says that it has it.
    #[default]
    Full,
    /// When the operating system has it: the last commits may be lost when the power fails, not when the process dies.
    /// The file stays whole either way.
    Normal,
}
