use longhaul_protocol::{ContextId, Message, TaskId, TaskState, Timestamp};

use crate::{AttemptEnd, WorkerId};

/// The narrow part of a task on which every decision rests; its artifacts, history and log stand apart.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskHead {
    /// Identifies the task for its whole life (A2A §3.4.2).
    pub id: TaskId,
    /// The context that the task belongs to (A2A §3.4.1).
    pub context_id: ContextId,
    /// The state that the task is in (A2A §4.1.3).
    pub state: TaskState,
    /// The message of the current status: for an interrupted state, the question.
    pub status_message: Option<Message>,
    /// When the current status was written.
    pub status_timestamp: Timestamp,
    /// Grows with every change of state or of what decides: the optimistic lock.
    pub version: u64,
    /// The number of the newest event in the task's log, counted from 1 without gaps.
    pub last_sequence: u64,
    /// The fencing token: grows with every claim of the task, and is never reset.
    pub epoch: u64,
    /// The number of the current turn's attempt, counted from 1; 0 before the turn was first started.
    pub attempt: u32,
    /// Whether a worker holds the lease of `epoch`.
    pub leased: bool,
    /// Who holds it; empty when nobody does.
    pub worker: WorkerId,
    /// When a worker may take the task next; `None` when nothing is to be done for it. While the task is leased, this is
    /// when the lease runs out: from then on its holder writes nothing more.
    pub due_at: Option<Timestamp>,
    /// Whether a caller asked for the running turn to be canceled.
    pub cancel_requested: bool,
    /// How many messages its history holds, the current status message apart.
    pub messages: u64,
    /// The ordinal in history (counted from 0) of the message on which the current turn runs.
    pub turn_message: u64,
    /// The attempts of the current turn that came to nothing, oldest first.
    pub failures: Vec<AttemptEnd>,
    /// The ordinals of messages that arrived during a turn and that no turn has taken, oldest first.
    pub waiting: Vec<u64>,
}

impl TaskHead {
    /// The head of a task that does not exist yet: SUBMITTED, its first message at ordinal 0, due at once.
    #[must_use]
    pub fn submitted(id: TaskId, context_id: ContextId, now: Timestamp) -> Self {
        Self {
            id,
            context_id,
            state: TaskState::Submitted,
            status_message: None,
            status_timestamp: now,
            version: 1,
            last_sequence: 1,
            epoch: 0,
            attempt: 0,
            leased: false,
            worker: WorkerId::default(),
            due_at: Some(now),
            cancel_requested: false,
            messages: 1,
            turn_message: 0,
            failures: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Whether the lease has run out at `now`: its holder was not heard of in time.
    #[must_use]
    pub fn lease_is_over(&self, now: Timestamp) -> bool {
        self.leased && self.due_at.is_some_and(|until| until <= now)
    }

    /// Whether the task is in line for a worker, now or later.
    #[must_use]
    pub fn waits_for_a_worker(&self) -> bool {
        !self.leased && self.due_at.is_some()
    }

    /// Whether the task rests: terminal, or waiting for its caller. A blocking send returns here (A2A §3.2.2).
    #[must_use]
    pub fn rests(&self) -> bool {
        self.state.is_terminal() || self.state.is_interrupted()
    }
}
