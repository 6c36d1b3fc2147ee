//! The client's part of the command line.

mod common;
mod push_config;
mod send;
mod task;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::Given;
pub use common::{AFTER, CallerFlags, Delivery, StreamFlag};
pub use push_config::{CreateFlags, OneFlags, PushConfigCommand};
pub use send::SendFlags;
pub use task::{CancelFlags, DownloadFlags, GetFlags, ListFlags, SubscribeFlags, TaskCommand};

/// What a caller does.
#[derive(Debug, Subcommand)]
pub enum CallerCommand {
    /// The card of an agent: what it is, does, and asks for
    #[command(subcommand)]
    Card(CardCommand),
    /// Send a message to an agent, and wait until its task has ended or asks something
    #[command(after_help = AFTER)]
    Send(Box<SendFlags>),
    /// Tasks that an agent has
    #[command(subcommand)]
    Task(TaskCommand),
    /// Talk with an agent on the terminal
    #[command(after_help = AFTER)]
    Chat(ChatFlags),
    /// Look at many tasks at once until they have ended
    #[command(after_help = AFTER)]
    Watch(WatchFlags),
    /// Look whether a running agent keeps to the protocol, by each binding that it offers; messages are sent to it
    #[command(after_help = AFTER)]
    Conformance(ConformanceFlags),
}

/// What to do with a card.
#[derive(Debug, Subcommand)]
pub enum CardCommand {
    /// Fetch the card and show it
    #[command(after_help = AFTER)]
    Get(CardFlags),
}

/// Flags of `card get`.
#[derive(Args, Debug)]
pub struct CardFlags {
    /// List all that is wrong with the card, and fail if anything is
    #[arg(long)]
    pub validate: bool,
    /// Fetch the card for authenticated callers
    #[arg(long)]
    pub extended: bool,
    /// Verify the card's signatures with the keys of this JWK set, and fail if one is wrong
    #[arg(long, value_name = "FILE")]
    pub verify: Option<PathBuf>,
    #[command(flatten)]
    pub stream: StreamFlag,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `chat`.
#[derive(Args, Debug)]
pub struct ChatFlags {
    /// The context to go on in
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// The task to go on with
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    #[command(flatten)]
    caller: CallerFlags,
}

/// Flags of `watch`.
#[derive(Args, Debug)]
pub struct WatchFlags {
    /// The tasks
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub task_ids: Vec<String>,
    /// All tasks of the agent that have not ended
    #[arg(long, conflicts_with = "task_ids")]
    pub all: bool,
    #[command(flatten)]
    caller: CallerFlags,
}

/// Flags of `conformance`.
#[derive(Args, Debug)]
pub struct ConformanceFlags {
    /// What is sent to the agent
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    pub text: String,
    #[command(flatten)]
    caller: CallerFlags,
}

impl ChatFlags {
    fn given(&self) -> Given {
        let mut given = self.caller.given();
        given.values.extend(said("context-id", &self.context_id));
        given.values.extend(said("task-id", &self.task_id));
        given
    }
}

impl CallerCommand {
    /// What the command line says about settings.
    pub fn given(&self) -> Given {
        match self {
            Self::Card(CardCommand::Get(flags)) => flags.caller.given(),
            Self::Send(flags) => flags.given(),
            Self::Task(command) => command.caller().given(),
            Self::Chat(flags) => flags.given(),
            Self::Watch(flags) => flags.caller.given(),
            Self::Conformance(flags) => flags.caller.given(),
        }
    }
}

/// A flag and its value, if it was given.
fn said(flag: &'static str, value: &Option<String>) -> Option<(&'static str, String)> {
    value.clone().map(|value| (flag, value))
}

#[cfg(test)]
#[path = "arguments/tests.rs"]
mod tests;
