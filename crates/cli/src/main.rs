//! The `longhaul` binary: `serve` puts a command behind A2A, `demo-server` serves a built-in agent, `config` shows what
//! is set.

mod agents;
mod arguments;
mod failure;
mod serve;
mod settings;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Command, environment, load};
use failure::report;
use serve::Served;

/// A task is many small values that one thread makes and another drops: the system's allocator takes a fifth more time
/// for them. Huge pages are left alone, since zeroing them costs more than they bring.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(flags) => serve::run(Served::Command, load(&flags.common, &flags.layer(), &environment())?),
        Command::DemoServer(flags) => serve::run(Served::Demo, load(flags, &flags.layer(), &environment())?),
        Command::Config(flags) => {
            print_to_stdout(&load(&flags.common, &flags.layer(), &environment())?.in_effect().to_toml());
            Ok(())
        }
    }
}

/// A reader that closes early, such as `head`, has what it wanted.
fn print_to_stdout(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
