//! `cargo xtask check`: what the repository promises of itself and no compiler holds.

mod decisions;
mod directions;
mod files;
mod graph;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

pub use graph::target_directory;

/// Runs all checks and prints what each found.
///
/// # Errors
///
/// When a check finds something, or cannot run.
pub fn run(root: &Path) -> Result<()> {
    let tracked: Vec<PathBuf> = files::tracked(root)?;
    let mut found = 0;
    for (what, breaches) in [
        ("dependency directions (development dependencies are exempt)", directions::check(&graph::load(root)?)),
        ("the pure crate reads no clock and awaits nothing", files::check_pure(root, &tracked)?),
        ("tracked files name no registry host and no folder of one machine", files::check_words(root, &tracked)?),
        ("every decision is listed in docs/adr/README.md", decisions::check(root, &tracked)?),
    ] {
        println!("{} {what}", if breaches.is_empty() { "ok    " } else { "failed" });
        for breach in &breaches {
            println!("       {breach}");
        }
        found += breaches.len();
    }
    if found > 0 {
        bail!("the repository breaks {found} of its own rules");
    }
    Ok(())
}
