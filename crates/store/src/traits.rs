use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, Message, MessageId, TaskId, TaskState, Timestamp, wire};

use crate::{
    ArtifactVersion, Commit, Committed, ListPage, ListQuery, PushStore, Rotation, Scope, StoreError, StoredEvent,
    TurnRequest,
};

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

/// A task that a worker may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Whose task it is.
    pub scope: Scope,
    /// Its head before the claim.
    pub head: TaskHead,
}

/// A lease that a worker holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HeldLease {
    /// The task.
    pub task_id: TaskId,
    /// The fencing token.
    pub epoch: u64,
}

/// Tasks that a worker may take, and where their turns ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Due {
    /// The tasks.
    pub claims: Vec<Claim>,
    /// For the next call.
    pub rotation: Rotation,
}

/// How far a task has come: enough to see that it was changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TaskMark {
    /// The task.
    pub task_id: TaskId,
    /// Its version.
    pub version: u64,
    /// The sequence of its newest event.
    pub last_sequence: u64,
}

impl TaskMark {
    /// How far a task has come with this head.
    #[must_use]
    pub fn of(head: &TaskHead) -> Self {
        Self { task_id: head.id.clone(), version: head.version, last_sequence: head.last_sequence }
    }
}

/// What a store heard of other instances.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Heard {
    /// These tasks were changed.
    Tasks {
        /// How far they have come.
        marks: Vec<TaskMark>,
        /// Whether one of them, or another, waits for a worker now.
        due: bool,
    },
    /// Anything may have happened: nothing was heard for a while, or too much at once.
    Anything,
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
pub trait Store: PushStore + fmt::Debug + Send + Sync {
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

    /// Reads whose task it is, for an operator, who may see the tasks of every scope; `None` when there is no such task.
    async fn scope_of(&self, task_id: &TaskId) -> Result<Option<Scope>, StoreError>;

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

    /// Moves the end of these leases to `until`, as far as each is of the epoch that is named and has not run out at `now`.
    /// Answers the tasks whose lease is over: their turns must stop.
    async fn renew(&self, leases: &[HeldLease], now: Timestamp, until: Timestamp) -> Result<Vec<TaskId>, StoreError>;

    /// Reads which tasks a worker may take at `now`, at most `limit`: first those whose lease ran out or whose wait is over,
    /// the longest first; then those that wait in line, in fair turns between scopes, and between the contexts of each.
    /// `rotation` is where the last call ended. Whoever wants to run one commits a start with the version that was read; who
    /// comes second gets [`StoreError::Conflict`].
    async fn due(&self, now: Timestamp, limit: usize, rotation: Rotation) -> Result<Due, StoreError>;

    /// When the next task becomes due, if any will: a lease runs out, or a wait is over.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// How many tasks wait for a worker: submitted or working, and not leased.
    async fn backlog(&self) -> Result<u64, StoreError>;

    /// Lets all leases that are alive at `now` run out then: for the start of the only instance, whose former workers are all
    /// gone. Answers how many there were; those that have run out by themselves are not among them.
    async fn expire_leases(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// Reads what the agent stored for its task, if it did.
    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, StoreError>;

    /// Reads tasks in these states, none of them terminal, whose status is older than `before` and on which nobody works:
    /// no lease is alive at `now`. The oldest first, at most `limit`.
    async fn stale(
        &self,
        states: &[TaskState],
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, StoreError>;

    /// Removes tasks in a terminal state whose status is older than `before`, the oldest first and at most `limit` of them, with
    /// everything that belongs to them. Answers how many there were: fewer than `limit` means that no more are left. No task in
    /// another state is ever removed.
    ///
    /// # Cancel safety
    ///
    /// A task is gone at once and whole. What it took may be given up later, by the next call.
    async fn purge(&self, state: TaskState, before: Timestamp, limit: usize) -> Result<u64, StoreError>;

    /// Gives disk space back that removed tasks have left, at most so many bytes of it in one step. Answers how many bytes it
    /// were; 0 when there is nothing to give back.
    async fn give_back(&self, bytes_max: u64) -> Result<u64, StoreError>;

    /// Reads how far each of these tasks has come; tasks that are gone are left out.
    async fn marks(&self, task_ids: &[TaskId]) -> Result<Vec<TaskMark>, StoreError>;

    /// Merges the artifact updates of tasks that ended before `before` into one for each version of an artifact, of at most
    /// `limit` tasks, the oldest first. Answers how many tasks it has dealt with: fewer than `limit` means that no more are left.
    /// A task is dealt with once; one whose log has fewer than [`crate::COMPACT_EVENTS_MIN`] events never, and one with nothing
    /// to merge, or too much, stays as it is.
    ///
    /// Artifacts, their versions, status updates and history stay what they were. The log of a merged task is read as the task
    /// that it made: [`Store::snapshot`] of a moment before its end, and [`Store::events_after`] an earlier event, answer that
    /// there is none.
    async fn compact(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;

    /// Whether other instances may be at work on the same tasks: then leases of workers that are gone run out by themselves, and
    /// what others did is learned by [`Store::heard`] and by looking.
    fn is_shared(&self) -> bool {
        false
    }

    /// Waits until something is heard of what other instances committed. It is a hint that may be lost, late or needless, so
    /// whoever listens looks from time to time as well. A store of one instance never answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing. There is one listener.
    async fn heard(&self) -> Heard {
        std::future::pending().await
    }

    /// Whether the store can read and write now.
    async fn check(&self) -> Result<(), StoreError>;

    /// Finishes what was begun and closes. Every later call answers [`StoreError::Unavailable`].
    async fn close(&self) -> Result<(), StoreError>;
}
