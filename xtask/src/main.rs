//! Checks, code generation and benchmarks of this repository.
//!
//! This package stays light, since every use of it waits for its build: what needs more than
//! `cargo metadata` is a package of its own (`xtask/codegen`, `xtask/bench`), built when asked for.

mod bench;
mod check;
mod codegen;
mod lint;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Parser};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about)]
enum Command {
    /// Measures the release build beside floors taken in the same run.
    #[command(disable_help_flag = true)]
    Bench(Passed),
    /// Checks dependency directions, tracked files and the list of decisions.
    Check,
    /// Makes the code that is generated, or checks that it is fresh.
    #[command(disable_help_flag = true)]
    Codegen(Passed),
    /// Runs the linters of dependencies: licences, bans, sources, advisories, unused ones.
    Lint(lint::Args),
}

/// Arguments for another program.
#[derive(Args, Debug)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Bench(passed) => bench::run(&passed.args),
        Command::Check => check::run(&root()?),
        Command::Codegen(passed) => codegen::run(&passed.args),
        Command::Lint(args) => lint::run(&root()?, &args),
    }
}

/// The folder of the workspace.
fn root() -> Result<PathBuf> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = PathBuf::from(folder);
    Ok(root.parent().context("xtask lies in no folder")?.to_owned())
}

/// The cargo that runs this.
fn cargo() -> std::process::Command {
    std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_bench_are_passed_on() {
        let given = ["xtask", "bench", "--only", "sends,disk", "--help"];
        let Command::Bench(passed) = Command::try_parse_from(given).unwrap() else {
            panic!("another command than the one that was given");
        };
        assert_eq!(passed.args, ["--only", "sends,disk", "--help"]);
    }
}
