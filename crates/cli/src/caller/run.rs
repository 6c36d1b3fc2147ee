//! From a command line to its exit code.

use std::future::Future;
use std::io::Write as _;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::timeout;

use crate::arguments::OutputForm;

use super::arguments::{CallerCommand, CallerFlags};
use super::commands;
use super::failure::{Failure, LocalCode};
use super::options::{Given, Sources, Surroundings, output_before, show};
use super::render::clean;
use super::session::{End, Session};

/// How long a command that is ended early has to give back what it holds of the ledger.
const GIVING_BACK: Duration = Duration::from_secs(2);

/// Does what the command says.
pub fn run(command: &CallerCommand) -> ExitCode {
    let (sources, form) = match gathered(&command.given()) {
        Ok(gathered) => gathered,
        Err(code) => return code,
    };
    let end = Session::new(&sources).map_err(End::from).and_then(|session| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::local(LocalCode::Internal, format!("cannot start: {error}")))?;
        let end = runtime.block_on(within_limits(&session, command, commands::run(&session, command)));
        // A read from a terminal that nobody waits for any more has no end of its own.
        runtime.shutdown_background();
        end
    });
    match end {
        Ok(()) | Err(End::ReaderLeft) => ExitCode::SUCCESS,
        Err(End::Failed(failure)) => tell(&failure, form),
        Err(End::Told(failure)) => tell(&failure, OutputForm::Text),
    }
}

/// `config show`: what is in effect for the client's commands.
pub fn show_config(flags: &CallerFlags) -> ExitCode {
    match gathered(&flags.given()) {
        Ok((sources, form)) => {
            let _ = std::io::stdout().lock().write_all(show(&sources, form).as_bytes());
            ExitCode::SUCCESS
        }
        Err(code) => code,
    }
}

/// Asks all sources, and says on stderr what a person should know about them.
fn gathered(given: &Given) -> Result<(Sources, OutputForm), ExitCode> {
    let surroundings = Surroundings::of_process();
    let sources =
        Sources::gather(given, &surroundings).map_err(|failure| tell(&failure, output_before(given, &surroundings)))?;
    for warning in &sources.warnings {
        eprintln!("longhaul: warning: {}", clean::line(warning));
    }
    let form = sources.output();
    Ok((sources, form))
}

/// Ends the work when its time is over, or when a person ends it.
///
/// In a conversation the time is that of each turn.
async fn within_limits(
    session: &Session,
    command: &CallerCommand,
    work: impl Future<Output = Result<(), End>>,
) -> Result<(), End> {
    let is_conversation = matches!(command, CallerCommand::Chat(_));
    let mut work = pin!(work);
    let failure = tokio::select! {
        end = &mut work => return end,
        () = session.time_over(), if !is_conversation => session.late(),
        _ = tokio::signal::ctrl_c() => session.interrupted(),
    };
    if session.is_delegated() {
        session.stop.cancel();
        // What is not given back by then runs out by itself.
        let _ = timeout(GIVING_BACK, work).await;
    }
    Err(failure.into())
}

/// Says why it came to nothing: the envelope on stdout for programs, words on stderr for people.
pub fn tell(failure: &Failure, form: OutputForm) -> ExitCode {
    let _ = match form {
        OutputForm::Text => std::io::stderr().lock().write_all(failure.text().as_bytes()),
        OutputForm::Json => std::io::stdout().lock().write_all(failure.envelope().as_bytes()),
    };
    ExitCode::from(failure.exit.code())
}
