//! The client's commands, one module each.

mod answers;
mod ask;
mod auth;
mod card;
mod chat;
mod conformance;
mod download;
mod events;
mod ledger;
mod list;
mod message;
mod pages;
mod push_config;
mod send;
mod task;
mod watch;

use super::arguments::{CallerCommand, CardCommand, TaskCommand};
use super::session::{End, Session};

/// Does what the command says.
///
/// # Errors
///
/// [`End`] when it came to nothing.
pub async fn run(session: &Session, command: &CallerCommand) -> Result<(), End> {
    match command {
        CallerCommand::Card(CardCommand::Get(flags)) => card::get(session, flags).await,
        CallerCommand::Auth(command) => auth::run(session, command).await,
        CallerCommand::Ledger(command) => ledger::run(session, command).await,
        CallerCommand::Conformance(flags) => conformance::conformance(session, flags).await,
        CallerCommand::Watch(flags) => watch::watch(session, flags).await,
        CallerCommand::Chat(_) => chat::chat(session).await,
        CallerCommand::Send(flags) => send::send(session, flags).await,
        CallerCommand::Task(command) => match command {
            TaskCommand::Get(flags) => task::get(session, flags).await,
            TaskCommand::Cancel(flags) => task::cancel(session, flags).await,
            TaskCommand::List(flags) => list::list(session, flags).await,
            TaskCommand::Subscribe(flags) => task::subscribe(session, flags).await,
            TaskCommand::Download(flags) => download::download(session, flags).await,
            TaskCommand::PushConfig(command) => push_config::run(session, command).await,
        },
    }
}
