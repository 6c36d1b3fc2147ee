//! `cargo xtask codegen [--check]`: makes, or checks, the generated code of `longhaul-protobuf`.

use anyhow::{Context, bail};

/// Runs `longhaul-codegen` with `arguments`; it is a package of its own because the protobuf
/// compiler is heavy.
///
/// # Errors
///
/// When it cannot be started, or fails: it says on stderr what is wrong.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let status = crate::cargo()
        .args(["run", "--quiet", "--package", "longhaul-codegen", "--"])
        .args(arguments)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("longhaul-codegen failed ({status})");
    }
    Ok(())
}
