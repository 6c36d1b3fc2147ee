//! The client's part of the command line.

mod auth;
mod common;
mod ledger;
mod push_config;
mod send;
mod task;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::Given;
pub use auth::{AuthCommand, Flow, LoginFlags, LogoutFlags};
pub use common::{AFTER, CallerFlags, Delivery, StreamFlag};
pub use ledger::{
    AnswerFlags, EntriesFlags, EntryFlags, LedgerCommand, PruneFlags, RecoverFlags, ResolveCommand, Which,
};
pub use push_config::{CreateFlags, OneFlags, PushConfigCommand};
pub use send::SendFlags;
pub use task::{CancelFlags, DownloadFlags, GetFlags, ListFlags, SubscribeFlags, TaskCommand};

/// What stands below the help of `conformance`.
const CONFORMANCE: &str = "\
By itself this is a smoke check: what the public kit (https://github.com/a2aproject/a2a-tck) asks first of any agent, built in,
in a second. With --tck DIR the kit itself is run from a checkout: its tests, by its own environment, with the agent's host. Its
output is passed on, and its exit status decides. The kit takes no credentials, and expects an agent that does what the ids of its messages say.

Exit codes: 0 all is as it has to be, 1 it is not, or the kit could not run, 2 the command line is wrong, 3 the agent can't be
reached, 4 it wants credentials, 5 the time was over, 130 it was interrupted.";

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
    /// Log in to agents by OAuth 2
    #[command(subcommand)]
    Auth(AuthCommand),
    /// What was delegated with send --ledger: how it stands, and how it goes on after a crash
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Look whether a running agent keeps to the protocol, by each binding that it offers; messages are sent to it
    #[command(after_help = CONFORMANCE)]
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
    /// Verify the card's signatures, and fail if one is wrong: with the keys of FILE, a JWK set or one JWK, with those of
    /// --card-keys, and with those of the key sets that --jku-allow permits
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    pub verify: Option<String>,
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
    #[arg(value_name = "ID", required_unless_present_any = ["all", "ledger"])]
    pub task_ids: Vec<String>,
    /// All tasks of the agent that have not ended
    #[arg(long, conflicts_with = "task_ids")]
    pub all: bool,
    /// All that the ledger has and that is not settled, of whatever agents; it is followed as by ledger recover
    /// [default of FILE: ~/.local/state/longhaul/ledger.db]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "",
          conflicts_with_all = ["all", "task_ids"])]
    pub ledger: Option<String>,
    #[command(flatten)]
    caller: CallerFlags,
}

/// Flags of `conformance`.
#[derive(Args, Debug)]
pub struct ConformanceFlags {
    /// What is sent to the agent
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    pub text: String,
    /// Run the public kit (A2A TCK) of this checkout instead, by the Python of its environment (.venv), else python3
    #[arg(long, value_name = "DIR")]
    pub tck: Option<PathBuf>,
    /// Only the kit's requirements of this level: must, should or may [default: all]
    #[arg(long, value_name = "LEVEL", requires = "tck")]
    pub level: Option<String>,
    #[command(flatten)]
    caller: CallerFlags,
}

impl WatchFlags {
    fn given(&self) -> Given {
        let mut given = self.caller.given();
        given.values.extend(said("ledger", &self.ledger));
        given
    }
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
            Self::Watch(flags) => flags.given(),
            Self::Auth(command) => command.given(),
            Self::Ledger(command) => command.given(),
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
