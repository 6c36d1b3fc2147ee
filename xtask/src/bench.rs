//! `cargo xtask bench`: builds server and bench in release, and runs the bench.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::{cargo, check, root};

/// Builds `longhaul` and `longhaul-bench` and runs the latter with `arguments`.
///
/// # Errors
///
/// When the build or the bench fails: both say on stderr what is wrong.
pub fn run(arguments: &[String]) -> Result<()> {
    let built = cargo()
        .args(["build", "--release", "--package", "longhaul", "--package", "longhaul-bench"])
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        bail!("the release build failed ({built})");
    }
    let target: PathBuf = check::target_directory(&root()?)?;
    let status = std::process::Command::new(target.join("release/longhaul-bench"))
        .arg("run")
        .args(arguments)
        .status()
        .context("cannot start longhaul-bench")?;
    if !status.success() {
        bail!("longhaul-bench failed ({status})");
    }
    Ok(())
}
