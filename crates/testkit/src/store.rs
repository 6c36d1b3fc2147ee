mod push;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, MessageId, TaskId, TaskState, Timestamp, wire};
use longhaul_store::{
    ArtifactVersion, Claim, Commit, Committed, Due, Heard, HeldLease, ListPage, ListQuery, Rotation, Scope, Snapshot,
    SnapshotQuery, Store, StoreError, StoredEvent, StoredMessage, TaskMark,
};

use crate::Gate;

/// An operation of a store, to count it and to make it fail.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "each variant is the operation of the same name")]
pub enum Operation {
    Commit,
    Load,
    Snapshot,
    Accepted,
    EventsAfter,
    Messages,
    List,
    Artifacts,
    Due,
    NextDue,
    Renew,
    Backlog,
    ExpireLeases,
    Checkpoint,
    Stale,
    Purge,
    GiveBack,
    Marks,
    Compact,
    PushConfigs,
    ClaimDeliveries,
    SettleDelivery,
    NextDelivery,
    PushHost,
    Other,
}

/// What goes wrong with one operation.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It fails, and nothing was done.
    Before,
    /// It is done, and still it fails.
    After,
    /// It begins when the gate is open.
    Hold(Gate),
    /// It is done at once, and answers when the gate is open.
    HoldAnswer(Gate),
    /// A commit fails, and is made all the same, but only when the next one comes, and before it.
    Late,
}

/// A store in front of another one, which counts what is asked and fails when it is told to.
#[derive(Debug)]
pub struct FaultStore {
    store: Arc<dyn Store>,
    shared: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<Operation, u64>,
    faults: HashMap<Operation, VecDeque<Fault>>,
    /// Commits that are made before the next one.
    late: Vec<Commit>,
}

impl State {
    fn is_next(&self, operation: Operation, fault: &Fault) -> bool {
        let next = self.faults.get(&operation).and_then(VecDeque::front);
        next.is_some_and(|next| std::mem::discriminant(next) == std::mem::discriminant(fault))
    }
}

impl FaultStore {
    /// Stands in front of `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, shared: AtomicBool::default(), state: Mutex::default() }
    }

    /// Says from now on that other instances may be on the store.
    pub fn share(&self) {
        self.shared.store(true, Ordering::SeqCst);
    }

    /// Makes the next call of an operation that has no fault yet go wrong in this way.
    pub fn next(&self, operation: Operation, fault: Fault) {
        self.state().faults.entry(operation).or_default().push_back(fault);
    }

    /// How often an operation was called.
    #[must_use]
    pub fn count(&self, operation: Operation) -> u64 {
        self.state().counts.get(&operation).copied().unwrap_or(0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let fault = {
            let mut state = self.state();
            *state.counts.entry(operation).or_default() += 1;
            state.faults.get_mut(&operation).and_then(VecDeque::pop_front)
        };
        let failed = || StoreError::unavailable("do it", "the test says so");
        match fault {
            None => call.await,
            Some(Fault::Before | Fault::Late) => Err(failed()),
            Some(Fault::After) => call.await.and_then(|_| Err(failed())),
            Some(Fault::Hold(gate)) => {
                gate.pass().await;
                call.await
            }
            Some(Fault::HoldAnswer(gate)) => {
                let answer = call.await;
                gate.pass().await;
                answer
            }
        }
    }
}

#[async_trait]
impl Store for FaultStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let late = std::mem::take(&mut self.state().late);
        for commit in late {
            // Whoever sent it was told already.
            drop(self.store.commit(commit).await);
        }
        if self.state().is_next(Operation::Commit, &Fault::Late) {
            self.state().late.push(commit.clone());
        }
        self.call(Operation::Commit, self.store.commit(commit)).await
    }

    async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, StoreError> {
        self.call(Operation::Load, self.store.load(scope, task_id)).await
    }

    async fn scope_of(&self, task_id: &TaskId) -> Result<Option<Scope>, StoreError> {
        self.call(Operation::Other, self.store.scope_of(task_id)).await
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, StoreError> {
        self.call(Operation::Snapshot, self.store.snapshot(scope, task_id, query)).await
    }

    async fn accepted(
        &self,
        scope: &Scope,
        message_id: &MessageId,
        now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, StoreError> {
        self.call(Operation::Accepted, self.store.accepted(scope, message_id, now)).await
    }

    async fn events_after(&self, task_id: &TaskId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        self.call(Operation::EventsAfter, self.store.events_after(task_id, after, limit)).await
    }

    async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, StoreError> {
        self.call(Operation::Messages, self.store.messages(task_id, ordinals)).await
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.call(Operation::List, self.store.list(query)).await
    }

    async fn artifact_versions(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactVersion>>, StoreError> {
        self.call(Operation::Artifacts, self.store.artifact_versions(scope, task_id, artifact_id, before, limit)).await
    }

    async fn artifact(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        version: Option<u64>,
    ) -> Result<Option<(u64, wire::Artifact)>, StoreError> {
        self.call(Operation::Artifacts, self.store.artifact(scope, task_id, artifact_id, version)).await
    }

    async fn renew(&self, leases: &[HeldLease], now: Timestamp, until: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        self.call(Operation::Renew, self.store.renew(leases, now, until)).await
    }

    async fn due(&self, now: Timestamp, limit: usize, rotation: Rotation) -> Result<Due, StoreError> {
        self.call(Operation::Due, self.store.due(now, limit, rotation)).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.call(Operation::NextDue, self.store.next_due()).await
    }

    async fn backlog(&self) -> Result<u64, StoreError> {
        self.call(Operation::Backlog, self.store.backlog()).await
    }

    async fn expire_leases(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.call(Operation::ExpireLeases, self.store.expire_leases(now)).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        self.call(Operation::Checkpoint, self.store.checkpoint(task_id)).await
    }

    async fn stale(
        &self,
        states: &[TaskState],
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, StoreError> {
        self.call(Operation::Stale, self.store.stale(states, before, now, limit)).await
    }

    async fn purge(&self, state: TaskState, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.call(Operation::Purge, self.store.purge(state, before, limit)).await
    }

    async fn give_back(&self, bytes_max: u64) -> Result<u64, StoreError> {
        self.call(Operation::GiveBack, self.store.give_back(bytes_max)).await
    }

    async fn marks(&self, task_ids: &[TaskId]) -> Result<Vec<TaskMark>, StoreError> {
        self.call(Operation::Marks, self.store.marks(task_ids)).await
    }

    async fn compact(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.call(Operation::Compact, self.store.compact(before, limit)).await
    }

    fn is_shared(&self) -> bool {
        self.shared.load(Ordering::SeqCst) || self.store.is_shared()
    }

    async fn heard(&self) -> Heard {
        self.store.heard().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.call(Operation::Other, self.store.check()).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.call(Operation::Other, self.store.close()).await
    }
}
