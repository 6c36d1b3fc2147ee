use longhaul_protocol::TaskId;
use thiserror::Error;

/// Why a store did not do what it was asked. Nothing of the operation took effect, unless the variant says otherwise.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another writer was first: load the task and decide again.
    #[error("task {task} was changed by another writer")]
    Conflict {
        /// The task of the commit.
        task: TaskId,
    },
    /// The lease under which the commit was made is over.
    #[error("the lease of epoch {epoch} on task {task} is over")]
    LeaseLost {
        /// The task of the commit.
        task: TaskId,
        /// The epoch that the writer holds.
        epoch: u64,
    },
    /// There is no such task, or it was removed.
    #[error("there is no task {task}")]
    NotFound {
        /// The task that was asked for.
        task: TaskId,
    },
    /// The message was accepted before, by a commit with the same deduplication key.
    #[error("the message was accepted before, for task {task}")]
    Duplicate {
        /// The task that the first message made or continued.
        task: TaskId,
        /// The digest of the first message's content.
        digest: [u8; 32],
    },
    /// The task's log is as long as it may be.
    #[error("the log of task {task} is full: {events_max} events")]
    LogFull {
        /// The task of the commit.
        task: TaskId,
        /// How many events a log may hold.
        events_max: u64,
    },
    /// The store cannot do it now; it may be able to later. The operation may have taken effect if the store says
    /// so in its cause only after the commit point.
    #[error("cannot {action}")]
    Unavailable {
        /// What was attempted.
        action: &'static str,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What was read breaks an invariant: written by something else, or damaged.
    #[error("what is stored is damaged: {what}")]
    Corrupt {
        /// Which record, and which invariant.
        what: String,
    },
}

impl StoreError {
    /// Wraps the cause of a failed operation.
    pub fn unavailable(action: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable { action, source: source.into() }
    }

    /// Names a record that breaks an invariant.
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
    }
}
