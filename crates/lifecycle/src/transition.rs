use longhaul_protocol::{ContextId, JsonObject, Message, TaskId, TaskState, Timestamp, wire};
use thiserror::Error;

use crate::command::wire_status;
use crate::{CommandKind, TaskHead};

/// One status update, as it goes into the log (A2A §4.2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct StatusUpdate {
    /// The state that the task enters, or stays in.
    pub state: TaskState,
    /// The message of the status.
    pub message: Option<Message>,
    /// When it was decided.
    pub timestamp: Timestamp,
    /// Metadata of the update itself.
    pub metadata: Option<JsonObject>,
    /// Whether the task rests in this state when the commit is through. False for a question that was answered
    /// before it was asked: a message was waiting already.
    pub rests: bool,
}

impl StatusUpdate {
    /// The update as the protocol's stream response.
    #[must_use]
    pub fn to_wire(&self, task_id: &TaskId, context_id: &ContextId) -> wire::StreamResponse {
        wire::StreamResponse {
            payload: Some(wire::StreamResponsePayload::StatusUpdate(wire::TaskStatusUpdateEvent {
                task_id: task_id.as_str().to_owned(),
                context_id: context_id.as_str().to_owned(),
                status: Some(wire_status(self.state, self.message.as_ref(), self.timestamp)),
                metadata: self.metadata.clone(),
            })),
        }
    }
}

/// A message that joins the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Joins {
    /// The message.
    pub message: Message,
    /// How many of the transition's updates have been told when it joins: it joins with the last of these, or without an
    /// update when there are none.
    pub updates: usize,
}

/// What becomes of the lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lease {
    /// Stays as it is.
    Keep,
    /// Is taken: a new epoch, and the next attempt.
    Take,
    /// Ends: its holder may write nothing more.
    End,
}

/// What a command does: everything here is written in one commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The head as it will be. `version` is the next one if anything changed; `last_sequence` is the store's to set.
    pub head: TaskHead,
    /// The status updates to log, in order.
    pub updates: Vec<StatusUpdate>,
    /// The messages that join the history, in order.
    pub history: Vec<Joins>,
    /// What becomes of the lease.
    pub lease: Lease,
    /// Whether the agent of the running turn has to be told that it is canceled.
    pub tell_agent: bool,
}

impl Transition {
    /// Whether the command changes nothing, so that there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self, before: &TaskHead) -> bool {
        self.head.version == before.version
    }
}

/// Why a command was refused. The task is as it was.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Rejection {
    /// The task is in a state in which the command has no meaning.
    #[error("cannot {command} a task in state {}", .state.wire_name())]
    NotApplicable {
        /// The task's state.
        state: TaskState,
        /// What was asked.
        command: CommandKind,
    },
    /// The task has ended, and a terminal state is final.
    #[error("the task has ended in state {}", .0.wire_name())]
    Ended(TaskState),
    /// Another worker holds the lease.
    #[error("the task is leased until {until}")]
    Leased {
        /// When the lease runs out unless it is renewed.
        until: Timestamp,
    },
    /// The writer's lease is over: another epoch holds the task, or none.
    #[error("the lease of epoch {held} is over, the task is at epoch {current}")]
    LeaseLost {
        /// The epoch that the writer holds.
        held: u64,
        /// The epoch that the task is at.
        current: u64,
    },
}
