//! The `longhaul` binary: `serve` puts a command behind A2A, `demo-server` serves a built-in agent, `config` shows what
//! is set; `resume`, `reclaim`, `purge`, `push` and `migrate` are for operators.

mod admin;
mod agents;
mod arguments;
mod caller;
mod failure;
mod migrate;
mod operator;
mod push;
mod serve;
mod settings;
mod store;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use admin::Operation;
use arguments::{Arguments, Command, OperatorFlags, OutputForm, environment, load};
use failure::report;
use serve::Served;
use settings::{ConfigError, Layer, Settings};

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
        Command::Serve(flags) => serve::run(Served::Command, settings(flags.common.config.as_deref(), &flags.layer())?),
        Command::DemoServer(flags) => serve::run(Served::Demo, settings(flags.config.as_deref(), &flags.layer())?),
        Command::Config(flags) => {
            print_to_stdout(&settings(flags.common.config.as_deref(), &flags.layer())?.in_effect().to_toml());
            Ok(())
        }
        Command::Migrate(flags) => {
            let settings = settings(flags.config.as_deref(), &flags.layer())?;
            let migrated = migrate::run(&settings.store)?;
            match flags.output {
                OutputForm::Text => print_to_stdout(&migrated.text()),
                OutputForm::Json => print_to_stdout(&migrated.json()),
            }
            Ok(())
        }
        Command::Resume(flags) => operate(&flags.operator, flags.operation()),
        Command::Reclaim(flags) => operate(&flags.operator, flags.operation()),
        Command::Purge(flags) => operate(&flags.operator, flags.operation()),
        Command::Push(command) => operate(command.operator(), command.operation()),
    }
}

fn settings(config: Option<&Path>, flags: &Layer) -> Result<Settings, ConfigError> {
    load(config, flags, &environment())
}

fn operate(flags: &OperatorFlags, operation: Operation) -> anyhow::Result<()> {
    let settings = settings(flags.config.as_deref(), &flags.layer())?;
    let done = operator::run(&settings, operation)?;
    match flags.output {
        OutputForm::Text => print_to_stdout(&done.text()),
        OutputForm::Json => print_to_stdout(&done.json()?),
    }
    if let Some(note) = done.note() {
        eprintln!("longhaul: {note}");
    }
    Ok(())
}

/// A reader that closes early, such as `head`, has what it wanted.
fn print_to_stdout(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
