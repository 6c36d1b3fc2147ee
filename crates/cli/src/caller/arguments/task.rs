//! Flags of `task …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use longhaul_protocol::{TaskState, Timestamp};

use super::common::{AFTER, CallerFlags, StreamFlag};
use super::push_config::PushConfigCommand;

/// What to do with a task.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Show a task: state, artifacts, and its history if asked for
    #[command(after_help = AFTER)]
    Get(GetFlags),
    /// Cancel a task
    #[command(after_help = AFTER)]
    Cancel(CancelFlags),
    /// List tasks, the newest first
    #[command(after_help = AFTER)]
    List(ListFlags),
    /// Follow a task until it has ended
    #[command(after_help = AFTER)]
    Subscribe(SubscribeFlags),
    /// Write the artifacts of a task to files
    #[command(after_help = AFTER)]
    Download(DownloadFlags),
    /// Where the events of a task are pushed to
    #[command(subcommand)]
    PushConfig(PushConfigCommand),
}

impl TaskCommand {
    /// The options of all client's commands.
    pub fn caller(&self) -> &CallerFlags {
        match self {
            Self::Get(flags) => &flags.caller,
            Self::Cancel(flags) => &flags.caller,
            Self::List(flags) => &flags.caller,
            Self::Subscribe(flags) => &flags.caller,
            Self::Download(flags) => &flags.caller,
            Self::PushConfig(command) => command.caller(),
        }
    }
}

/// Flags of `task get`.
#[derive(Args, Debug)]
pub struct GetFlags {
    /// The task's id
    #[arg(value_name = "ID")]
    pub task_id: String,
    /// How many messages of the history to show [default: none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub history: Option<i32>,
    /// Ask again until the task has ended or waits for you
    #[arg(long, visible_alias = "watch")]
    pub wait: bool,
    #[command(flatten)]
    pub stream: StreamFlag,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `task cancel`.
#[derive(Args, Debug)]
pub struct CancelFlags {
    /// The task's id
    #[arg(value_name = "ID")]
    pub task_id: String,
    /// Metadata of the request, a JSON object
    #[arg(long, value_name = "JSON")]
    pub metadata: Option<String>,
    #[command(flatten)]
    pub stream: StreamFlag,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `task list`.
#[derive(Args, Debug)]
pub struct ListFlags {
    /// Only tasks in this state: working, input-required, …
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub status: Option<TaskState>,
    /// Only tasks of this context
    #[arg(long, value_name = "ID")]
    pub context_id: Option<String>,
    /// How many tasks a page has, 1 to 100 [default: the agent's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=100))]
    pub page_size: Option<i32>,
    /// The page after this token
    #[arg(long, value_name = "TOKEN", conflicts_with = "all")]
    pub page_token: Option<String>,
    /// All pages
    #[arg(long)]
    pub all: bool,
    /// How many messages of each history to show [default: none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub history: Option<i32>,
    /// Show artifacts too
    #[arg(long)]
    pub artifacts: bool,
    /// Only tasks whose state changed at this time or later: 2026-01-02T03:04:05Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<Timestamp>,
    #[command(flatten)]
    pub stream: StreamFlag,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `task subscribe`.
#[derive(Args, Debug)]
pub struct SubscribeFlags {
    /// The task's id
    #[arg(value_name = "ID")]
    pub task_id: String,
    #[command(flatten)]
    pub stream: StreamFlag,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `task download`.
#[derive(Args, Debug)]
pub struct DownloadFlags {
    /// The task's id
    #[arg(value_name = "ID")]
    pub task_id: String,
    /// The folder for the files; nothing is written outside it, and nothing written over [default: .]
    #[arg(long, visible_alias = "save", value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub dir: PathBuf,
    /// Only this artifact; repeatable [default: all]
    #[arg(long = "artifact", value_name = "ID")]
    pub artifacts: Vec<String>,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// A state as people write it: `working`, `input-required`, `TASK_STATE_WORKING`.
fn state(text: &str) -> Result<TaskState, String> {
    let name = text.to_ascii_uppercase().replace('-', "_");
    let name = name.strip_prefix("TASK_STATE_").unwrap_or(&name);
    let name = if name == "CANCELLED" { "CANCELED" } else { name };
    let all = || TaskState::ALL.map(short).join(", ");
    TaskState::from_wire_name(&format!("TASK_STATE_{name}")).ok_or_else(|| format!("is none of: {}", all()))
}

fn short(state: TaskState) -> String {
    state.wire_name().trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_people_write_it() {
        for one in TaskState::ALL {
            assert_eq!(state(&short(one)), Ok(one));
            assert_eq!(state(one.wire_name()), Ok(one));
        }
        assert_eq!(state("input_required"), Ok(TaskState::InputRequired));
        assert_eq!(state("cancelled"), Ok(TaskState::Canceled));
        assert!(state("unspecified").is_err() && state("").is_err());
    }
}
