use std::fmt;

use async_trait::async_trait;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, Message, MessageId, TaskId, Timestamp, wire};

use crate::{ArtifactVersion, Commit, Committed, ListPage, ListQuery, Scope, StoreError, StoredEvent, TurnRequest};

/// How many messages of the history are wanted (A2A §3.2.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HistoryLimit {
    /// All of them.
    All,
    /// At most this many, the latest.
    Latest(usize),
}

/// Which view of a task is wanted.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotQuery {
    /// The task as it stood when its log ended at this sequence; `None`: as it stands now.
    pub at: Option<u64>,
    /// How much history it comes with.
    pub history: HistoryLimit,
    /// Whether it comes with its artifacts.
    pub artifacts: bool,
}

/// A task as it stood at one moment, read in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The head as it stands now, whatever moment was asked for.
    pub head: TaskHead,
    /// The sequence at which `task` stands.
    pub sequence: u64,
    /// The task.
    pub task: wire::Task,
}

/// A task that a worker was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Whose task it is.
    pub scope: Scope,
    /// Its head before the claim: not leased, and due.
    pub head: TaskHead,
}

/// Why leases end without an outcome.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Release {
    /// Their workers are gone: the attempt was spent.
    Lost,
    /// Their workers hand them back: the next start repeats the attempt under the same number.
    HandedBack,
}

/// One message of a task's history.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    /// Its place in the history, counted from 0.
    pub ordinal: u64,
    /// The sequence of the event with which it joined; of the last one before it, when it joined without one.
    pub sequence: u64,
    /// The message.
    pub message: Message,
    /// What it came with.
    pub request: TurnRequest,
}

/// Where tasks are kept. Each method is one complete step; none can be seen half done.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Applies `commit` whole, or nothing of it, and answers when it can no longer be lost.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] or [`StoreError::LeaseLost`] when the expectation does not hold, [`StoreError::NotFound`]
    /// when the task is gone, [`StoreError::Duplicate`] when the message was accepted before, [`StoreError::LogFull`],
    /// [`StoreError::Unavailable`].
    ///
    /// # Cancel safety
    ///
    /// A commit that was begun may be made although nobody waits for it any more.
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError>;

    /// Reads what decides about a task; `None` when the scope has no such task.
    async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, StoreError>;

    /// Reads a task as the protocol shows it; `None` when the scope has no such task, or when it never stood at the
    /// sequence that was asked for.
    async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, StoreError>;

    /// Reads which task a message was accepted for, and the digest of its content, if [`Commit::dedup`] asked to remember
    /// it and it is not forgotten at `now`.
    async fn accepted(
        &self,
        scope: &Scope,
        message_id: &MessageId,
        now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, StoreError>;

    /// Reads at most `limit` events with a sequence greater than `after`, in order. Empty when there are none, or no
    /// such task: whose task it is was asked before.
    async fn events_after(&self, task_id: &TaskId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError>;

    /// Reads the messages with these ordinals.
    async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, StoreError>;

    /// Reads one page of tasks.
    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError>;

    /// Reads the versions of an artifact, the newest first, at most `limit` of them and only those older than `before`.
    /// `None` when the scope has no such task, or the task no such artifact.
    async fn artifact_versions(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactVersion>>, StoreError>;

    /// Reads one version of an artifact, or the newest; `None` when there is none.
    async fn artifact(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        version: Option<u64>,
    ) -> Result<Option<(u64, wire::Artifact)>, StoreError>;

    /// Reads which tasks are due at `now`, the longest due first, at most `limit`. Whoever wants to run one commits a
    /// start with the version that was read; who comes second gets [`StoreError::Conflict`].
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Claim>, StoreError>;

    /// When the next task becomes due, if any will.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Ends all leases and makes their tasks due at `now`: for the start of the only instance, whose former workers
    /// are all gone, and for its end. Answers how many there were.
    async fn release_leases(&self, release: Release, now: Timestamp) -> Result<u64, StoreError>;

    /// Reads the last sequence of each of these tasks; tasks that are gone are left out.
    async fn last_sequences(&self, task_ids: &[TaskId]) -> Result<Vec<(TaskId, u64)>, StoreError>;

    /// Whether the store can read and write now.
    async fn check(&self) -> Result<(), StoreError>;

    /// Finishes what was begun and closes. Every later call answers [`StoreError::Unavailable`].
    async fn close(&self) -> Result<(), StoreError>;
}
