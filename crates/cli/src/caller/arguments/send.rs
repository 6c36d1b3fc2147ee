//! Flags of `send`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::caller::options::{Given, duration};
use crate::caller::parts::PartFlags;

use super::common::{CallerFlags, StreamFlag};
use super::said;

/// Flags of `send`.
#[derive(Args, Debug)]
pub struct SendFlags {
    #[command(flatten)]
    pub parts: PartFlags,
    /// Start a new task in this context
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// Go on with this task
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// Answer as soon as the agent has taken the task on [default: wait until it has ended or asks something]
    #[arg(long = "async", visible_aliases = ["return-immediately", "no-wait"], value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", conflicts_with_all = ["wait", "stream"])]
    asynchronous: Option<String>,
    /// Wait, whatever a setting says
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    pub stream: StreamFlag,
    /// How many messages of the history to ask for [default: none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub history: Option<i32>,
    /// Metadata of the message, a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// A media type that is accepted in answer; repeatable [default: any]
    #[arg(long, value_name = "TYPE")]
    accept: Vec<String>,
    /// The message's id, to send the same message again [default: a new one]
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
    /// Write the artifacts to files in this folder
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// When the agent asks something, ask it on the terminal and go on
    #[arg(long, conflicts_with = "asynchronous")]
    pub interactive: bool,
    /// Write it down in the ledger before it is sent, so that a crash loses nothing: longhaul ledger recover goes on
    /// [default of FILE: ~/.local/state/longhaul/ledger.db]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub ledger: Option<String>,
    /// Why it is delegated, for the person who finds it in the ledger later
    #[arg(long, value_name = "TEXT", requires = "ledger")]
    pub purpose: Option<String>,
    /// Raise an alarm in the ledger when the agent has been silent for so long: 90s, 2h [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "ledger")]
    pub deadline: Option<Duration>,
    #[command(flatten)]
    pub caller: CallerFlags,
}

impl SendFlags {
    /// What they say about settings.
    pub fn given(&self) -> Given {
        let mut given = self.caller.given();
        let wait = self.wait.then(|| "true".to_owned());
        let accept = (!self.accept.is_empty()).then(|| self.accept.join(","));
        let own = [
            said("context-id", &self.context_id),
            said("task-id", &self.task_id),
            said("async", &self.asynchronous),
            said("wait", &wait),
            said("metadata", &self.metadata),
            said("accept", &accept),
            said("ledger", &self.ledger),
        ];
        given.values.extend(own.into_iter().flatten());
        given
    }
}
