//! The `longhaul` binary: `serve` puts a command behind A2A, `demo-server` serves a built-in agent, `config` shows what
//! is set; `resume`, `reclaim`, `purge`, `push` and `migrate` are for operators; `card`, `send` and `task` are for callers of
//! agents.

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

use clap::{CommandFactory as _, Parser as _};
use clap_complete::Shell;

use admin::Operation;
use arguments::{Arguments, Command, ConfigCommand, ConfigFlags, OperatorFlags, OutputForm, environment, load};
use failure::report;
use serve::Served;
use settings::{ConfigError, Layer, Settings};

/// A task is many small values that one thread makes and another drops: the system's allocator takes a fifth more time
/// for them. Huge pages are left alone, since zeroing them costs more than they bring.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let words: Vec<String> =
                std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            return caller::refuse(&error, &words);
        }
    };
    match run(&arguments.command) {
        Ok(code) => code,
        Err(error) => report(&error),
    }
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Caller(command) => return Ok(caller::run(command)),
        Command::Config(ConfigFlags { show: Some(ConfigCommand::Show(flags)), .. }) => {
            return Ok(caller::show_config(flags));
        }
        Command::Completion { shell } => print_to_stdout(&completion(*shell)),
        Command::Serve(flags) => {
            serve::run(Served::Command, settings(flags.common.config.as_deref(), &flags.layer())?)?;
        }
        Command::DemoServer(flags) => serve::run(Served::Demo, settings(flags.config.as_deref(), &flags.layer())?)?,
        Command::Config(ConfigFlags { serve: flags, show: None }) => {
            print_to_stdout(&settings(flags.common.config.as_deref(), &flags.layer())?.in_effect().to_toml());
        }
        Command::Migrate(flags) => {
            let settings = settings(flags.config.as_deref(), &flags.layer())?;
            let migrated = migrate::run(&settings.store)?;
            match flags.output {
                OutputForm::Text => print_to_stdout(&migrated.text()),
                OutputForm::Json => print_to_stdout(&migrated.json()),
            }
        }
        Command::Resume(flags) => operate(&flags.operator, flags.operation())?,
        Command::Reclaim(flags) => operate(&flags.operator, flags.operation())?,
        Command::Purge(flags) => operate(&flags.operator, flags.operation())?,
        Command::Push(command) => operate(command.operator(), command.operation())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn completion(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "longhaul", &mut script);
    String::from_utf8_lossy(&script).into_owned()
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
