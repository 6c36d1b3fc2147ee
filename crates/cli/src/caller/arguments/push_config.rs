//! Flags of `task push-config …`.

use clap::{Args, Subcommand};

use super::common::{AFTER, CallerFlags};

/// What to do with the push configs of a task.
#[derive(Debug, Subcommand)]
pub enum PushConfigCommand {
    /// Have the events of a task pushed to a URL
    #[command(after_help = AFTER)]
    Create(CreateFlags),
    /// Show one of them
    #[command(after_help = AFTER)]
    Get(OneFlags),
    /// Show all of them
    #[command(after_help = AFTER)]
    List(AllFlags),
    /// Remove one of them
    #[command(after_help = AFTER)]
    Delete(OneFlags),
}

impl PushConfigCommand {
    /// The options of all client's commands.
    pub fn caller(&self) -> &CallerFlags {
        match self {
            Self::Create(flags) => &flags.caller,
            Self::Get(flags) | Self::Delete(flags) => &flags.caller,
            Self::List(flags) => &flags.caller,
        }
    }
}

/// Flags of `task push-config create`.
#[derive(Args, Debug)]
pub struct CreateFlags {
    /// The task's id
    #[arg(value_name = "TASK")]
    pub task_id: String,
    /// Where events are pushed to
    #[arg(value_name = "URL")]
    pub url: String,
    /// The id of the push config [default: the agent makes one]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// A token that is sent with each event
    #[arg(long, value_name = "TOKEN", env = "A2ACLI_PUSH_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// How the agent authenticates at the URL, such as Bearer
    #[arg(long, value_name = "SCHEME")]
    pub auth_scheme: Option<String>,
    /// With what; the environment is the better way
    #[arg(long, value_name = "TEXT", env = "A2ACLI_PUSH_CREDENTIALS", hide_env_values = true)]
    pub auth_credentials: Option<String>,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `task push-config get` and `delete`.
#[derive(Args, Debug)]
pub struct OneFlags {
    /// The task's id
    #[arg(value_name = "TASK")]
    pub task_id: String,
    /// The push config's id
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub caller: CallerFlags,
}

/// Flags of `task push-config list`.
#[derive(Args, Debug)]
pub struct AllFlags {
    /// The task's id
    #[arg(value_name = "TASK")]
    pub task_id: String,
    #[command(flatten)]
    pub caller: CallerFlags,
}
