use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::{Message, wire};
use longhaul_store::{Scope, TurnRequest};

use crate::Turn;

/// What does the work behind the endpoint.
#[async_trait]
pub trait Agent: fmt::Debug + Send + Sync {
    /// How often a turn may be begun; `None`: as often as the engine is set to. 1 for an agent that must not run twice.
    fn attempts_max(&self) -> Option<u32> {
        None
    }

    /// Looks at the message of a new task before anything is stored, and says what becomes of it. Must be quick: it has
    /// `accept_timeout`, after which the task is accepted. Not asked about messages that continue a task.
    ///
    /// # Errors
    ///
    /// [`AgentError`]: the send is refused, nothing is stored.
    async fn accept(&self, incoming: &Incoming<'_>) -> Result<Accept, AgentError> {
        let _ = incoming;
        Ok(Accept::Task)
    }

    /// Runs one turn: one message of the caller. Whatever it wrote through `turn` is in the log in that order, before
    /// the outcome. The future is dropped when the lease is lost, or when a cancel had its grace.
    ///
    /// # Errors
    ///
    /// [`AgentError`]: the task has failed, or is tried again if the error says that this is worth it. Its cause is logged
    /// and never shown to a caller.
    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError>;
}

/// A message that wants to become a task.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Whose message it is.
    pub scope: &'a Scope,
    /// The message.
    pub message: &'a Message,
    /// What it came with.
    pub request: &'a TurnRequest,
}

/// What becomes of a new message.
#[derive(Clone, Debug, PartialEq)]
pub enum Accept {
    /// A task is made of it.
    Task,
    /// It is answered at once; there is no task, and nothing is stored.
    Message(Vec<wire::Part>),
    /// A task is made of it, which waits for an authorization first (A2A §7.6).
    RequireAuth {
        /// What has to be authorized, and how.
        parts: Vec<wire::Part>,
        /// After this time the task goes on by itself; `None`: only when it is resumed or answered.
        resume_after: Option<Duration>,
    },
    /// A task is made of it, which is rejected.
    Reject {
        /// Why, for a person.
        parts: Vec<wire::Part>,
    },
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The work is done.
    Complete(Option<Vec<wire::Part>>),
    /// The work failed. The parts say why, and are shown to the caller.
    Fail(Option<Vec<wire::Part>>),
    /// The agent will not do the work.
    Reject(Option<Vec<wire::Part>>),
    /// The agent stopped because it was canceled.
    Canceled(Option<Vec<wire::Part>>),
    /// The agent needs an answer of its caller. The parts are the question; there must be one.
    RequireInput(Vec<wire::Part>),
    /// The agent needs an authorization (A2A §7.6). The parts say which; there must be one.
    RequireAuth {
        /// What has to be authorized, and how.
        parts: Vec<wire::Part>,
        /// After this time the task goes on by itself; `None`: only when it is resumed or answered.
        resume_after: Option<Duration>,
    },
}

/// An agent's failure. The cause is for the log; what a caller may know belongs into [`Outcome::Fail`].
#[derive(Debug)]
pub struct AgentError {
    source: Box<dyn std::error::Error + Send + Sync>,
    transient: bool,
    reason: String,
}

impl AgentError {
    /// Wraps the cause.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: source.into(), transient: false, reason: String::new() }
    }

    /// Wraps a cause that may be gone at the next attempt: the turn is tried again, as often as it may.
    pub fn transient(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { transient: true, ..Self::new(source) }
    }

    /// Says what callers may know of it: it stands in the status message of a task that has failed for it.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    pub(crate) fn is_transient(&self) -> bool {
        self.transient
    }

    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the agent failed")
    }
}

impl std::error::Error for AgentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

impl From<crate::TurnError> for AgentError {
    fn from(error: crate::TurnError) -> Self {
        Self::new(error)
    }
}

/// One text part.
#[must_use]
pub fn text_part(text: impl Into<String>) -> wire::Part {
    wire::Part { content: Some(wire::PartContent::Text(text.into())), ..wire::Part::default() }
}
