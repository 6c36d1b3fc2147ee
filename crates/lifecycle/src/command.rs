use std::fmt;
use std::time::Duration;

use longhaul_protocol::{Message, Timestamp, wire};

use crate::{AttemptOutcome, WorkerId};

/// What is asked of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A worker takes the lease and begins, or begins again. A lease that has run out is taken over.
    Start {
        /// When the lease runs out unless it is renewed.
        lease_until: Timestamp,
        /// Who takes it.
        worker: WorkerId,
    },
    /// The attempt came to nothing, and the turn is tried again; if it was to be canceled, the task is canceled now.
    Retry {
        /// What happened to the attempt.
        how: AttemptOutcome,
        /// When the next attempt may begin.
        at: Timestamp,
    },
    /// The worker gives the turn back without having spent its attempt: another may begin at once. If the turn was to be
    /// canceled, the task is canceled now.
    HandBack,
    /// The agent says how it is getting on.
    Progress {
        /// What the agent says, if anything.
        message: Option<Message>,
        /// The metadata of this one update; not kept with the task.
        metadata: Option<longhaul_protocol::JsonObject>,
    },
    /// The agent cannot go on without an answer of its caller. Ends the turn.
    RequireInput {
        /// The question, stored with the task.
        message: Message,
    },
    /// The agent cannot go on without an authorization (A2A §7.6). Ends the turn.
    RequireAuth {
        /// What has to be authorized, and how.
        message: Message,
        /// After this time the task goes on by itself; `None`: only when it is resumed or answered.
        resume_after: Option<Duration>,
    },
    /// The agent has done the work.
    Complete {
        /// A closing word; results belong into artifacts (A2A §3.7).
        message: Option<Message>,
    },
    /// The work failed, by the agent's word or the engine's.
    Fail {
        /// Why, for a person.
        message: Option<Message>,
    },
    /// The agent will not do the work.
    Reject {
        /// Why, for a person.
        message: Option<Message>,
    },
    /// The caller sends a further message to the task (A2A §3.4.3).
    Message {
        /// The message, which joins the history.
        message: Message,
    },
    /// An authorization came another way: the task goes on without a message.
    Resume,
    /// The caller wants the task to be canceled (A2A §3.1.5).
    Cancel,
    /// The running turn had its grace after a cancel, or ended because of it.
    FinishCancel {
        /// What the agent had to say about it.
        message: Option<Message>,
    },
}

/// A [`Command`] without its contents, for tables and messages.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "each variant is the command of the same name")]
pub enum CommandKind {
    Start,
    Retry,
    HandBack,
    Progress,
    RequireInput,
    RequireAuth,
    Complete,
    Fail,
    Reject,
    Message,
    Resume,
    Cancel,
    FinishCancel,
}

impl Command {
    /// Which command this is.
    #[must_use]
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::Start { .. } => CommandKind::Start,
            Self::Retry { .. } => CommandKind::Retry,
            Self::HandBack => CommandKind::HandBack,
            Self::Progress { .. } => CommandKind::Progress,
            Self::RequireInput { .. } => CommandKind::RequireInput,
            Self::RequireAuth { .. } => CommandKind::RequireAuth,
            Self::Complete { .. } => CommandKind::Complete,
            Self::Fail { .. } => CommandKind::Fail,
            Self::Reject { .. } => CommandKind::Reject,
            Self::Message { .. } => CommandKind::Message,
            Self::Resume => CommandKind::Resume,
            Self::Cancel => CommandKind::Cancel,
            Self::FinishCancel { .. } => CommandKind::FinishCancel,
        }
    }
}

impl fmt::Display for CommandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Retry => "retry",
            Self::HandBack => "hand back",
            Self::Progress => "progress",
            Self::RequireInput => "ask for input",
            Self::RequireAuth => "ask for authorization",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Reject => "reject",
            Self::Message => "message",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::FinishCancel => "finish the cancel",
        })
    }
}

/// Who gives a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Writer {
    /// The agent, under the lease of this epoch. Refused when the task has moved on to another epoch.
    Agent {
        /// The fencing token that the worker was given.
        epoch: u64,
    },
    /// A caller, through an operation of the protocol.
    Caller,
    /// The engine itself.
    Engine,
}

/// The wire form of a state, for those who build events.
pub(crate) fn wire_status(
    state: longhaul_protocol::TaskState,
    message: Option<&Message>,
    timestamp: longhaul_protocol::Timestamp,
) -> wire::TaskStatus {
    wire::TaskStatus {
        state: state.into(),
        message: message.map(|message| message.as_wire().clone()),
        timestamp: Some(timestamp),
    }
}
