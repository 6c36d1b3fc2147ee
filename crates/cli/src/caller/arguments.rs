//! The client's part of the command line.

mod common;
mod ledger;
mod push_config;
mod send;
mod task;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::options::Given;
pub use common::{AFTER, CallerFlags, Delivery, StreamFlag};
pub use ledger::{LedgerCommand, LedgerFlags, ResolveTo};
pub use push_config::PushConfigCommand;
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
    /// Look at many tasks at once while they run
    #[command(after_help = AFTER)]
    Watch(WatchFlags),
    /// What was delegated and written down
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Log in to an agent with OAuth, and out again
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Check a running agent against the protocol
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
    /// Verify the card's signatures with the keys of this JWK set, and fail unless one is verified
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
    pub context_id: Option<String>,
    /// The task to go on with
    #[arg(long, value_name = "ID")]
    pub task_id: Option<String>,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `watch`.
#[derive(Args, Debug)]
pub struct WatchFlags {
    /// The tasks
    #[arg(value_name = "ID", required_unless_present_any = ["all", "ledger"])]
    pub task_ids: Vec<String>,
    /// All tasks of the agent that have not ended
    #[arg(long, conflicts_with_all = ["task_ids", "ledger"])]
    pub all: bool,
    /// Those that are written down and not settled [default file: the usual place]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          conflicts_with = "task_ids")]
    pub ledger: Option<String>,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// What to do about credentials.
#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Get a token and keep it
    #[command(after_help = AFTER)]
    Login(LoginFlags),
    /// Forget the token
    #[command(after_help = AFTER)]
    Logout(CallerFlags),
    /// Show what is kept, without the token itself
    #[command(after_help = AFTER)]
    Status(CallerFlags),
}

/// Flags of `auth login`.
#[derive(Args, Debug)]
pub struct LoginFlags {
    /// The security scheme of the card [default: the first that has a flow for this]
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// The flow [default: the one that the scheme offers]
    #[arg(long, value_name = "FLOW", value_enum)]
    pub flow: Option<LoginFlow>,
    /// The client's id at the authorization server
    #[arg(long, value_name = "ID", env = "A2ACLI_CLIENT_ID")]
    pub client_id: Option<String>,
    /// A file with the client's secret; A2ACLI_CLIENT_SECRET holds the secret itself
    #[arg(long, value_name = "FILE")]
    pub client_secret_file: Option<PathBuf>,
    /// A scope to ask for, repeatable [default: those that the card requires]
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// A flow of OAuth that needs no browser on this machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum LoginFlow {
    /// A code that is entered elsewhere.
    DeviceCode,
    /// The client's own credentials.
    ClientCredentials,
}

/// Flags of `conformance`.
#[derive(Args, Debug)]
pub struct ConformanceFlags {
    #[command(flatten)]
    pub caller: CallerFlags,
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
            Self::Ledger(command) => command.caller().given(),
            Self::Auth(AuthCommand::Login(flags)) => flags.caller.given(),
            Self::Auth(AuthCommand::Logout(flags) | AuthCommand::Status(flags)) => flags.given(),
            Self::Conformance(flags) => flags.caller.given(),
        }
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

/// A flag and its value, if it was given.
fn said(flag: &'static str, value: &Option<String>) -> Option<(&'static str, String)> {
    value.clone().map(|value| (flag, value))
}

#[cfg(test)]
#[path = "arguments/tests.rs"]
mod tests;
