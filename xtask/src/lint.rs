//! `cargo xtask lint`: the linters of dependencies, as far as they are installed.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::cargo;

/// Flags of `cargo xtask lint`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Fails when one of the linters is not installed.
    #[arg(long)]
    all: bool,
}

/// A cargo subcommand that looks at dependencies.
struct Linter {
    name: &'static str,
    args: &'static [&'static str],
    what: &'static str,
}

const LINTERS: &[Linter] = &[
    Linter {
        name: "deny",
        args: &["--all-features", "check", "licenses", "bans", "sources"],
        what: "licences, bans and sources (deny.toml)",
    },
    Linter { name: "machete", args: &[], what: "dependencies that nothing uses" },
    Linter { name: "audit", args: &[], what: "known vulnerabilities (fetches the advisory database)" },
];

/// Runs each linter that is installed and says which are not.
///
/// # Errors
///
/// When a linter finds something; with `--all` also when one is missing.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let (mut missing, mut failed) = (Vec::new(), Vec::new());
    for linter in LINTERS {
        if !is_installed(linter)? {
            println!("not installed: cargo-{} ({}); cargo install --locked cargo-{0}", linter.name, linter.what);
            missing.push(linter.name);
            continue;
        }
        println!("cargo {}: {}", linter.name, linter.what);
        let status =
            cargo().arg(linter.name).args(linter.args).current_dir(root).status().context("cannot start cargo")?;
        if !status.success() {
            failed.push(linter.name);
        }
    }
    if !failed.is_empty() {
        bail!("found by: {}", failed.join(", "));
    }
    if args.all && !missing.is_empty() {
        bail!("not installed: {}", missing.join(", "));
    }
    Ok(())
}

fn is_installed(linter: &Linter) -> Result<bool> {
    let status = cargo()
        .args([linter.name, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    Ok(status.success())
}
