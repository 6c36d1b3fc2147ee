use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, ContextId, JsonObject, MessageId, TaskId, TaskState, Timestamp, wire};

use crate::{
    ArtifactFold, ArtifactVersion, Claim, Commit, Committed, Expect, HistoryLimit, ListCursor, ListPage, ListQuery, Scope, Snapshot,
    SnapshotQuery, Store, StoreError, StoredEvent, StoredMessage, VersionFold, artifact_update, snapshot_task,
};

/// Tasks in this process's memory: for trying out and for tests. Nothing outlives the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

/// The tasks of one scope, in one context or in all, in one state: by status time, the newest first.
type Listed = BTreeSet<(Reverse<Timestamp>, Reverse<TaskId>)>;

#[derive(Debug, Default)]
struct Inner {
    tasks: HashMap<TaskId, Entry>,
    listed: HashMap<(Scope, Option<ContextId>, TaskState), Listed>,
    due: BTreeSet<(Timestamp, TaskId)>,
    accepted: HashMap<(Scope, MessageId), Accepted>,
    forgotten: BTreeSet<(Timestamp, Scope, MessageId)>,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    scope: Scope,
    metadata: Option<JsonObject>,
    head: TaskHead,
    events: Vec<StoredEvent>,
    messages: Vec<StoredMessage>,
}

#[derive(Debug)]
struct Accepted {
    task: TaskId,
    digest: [u8; 32],
    expires_at: Timestamp,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A panic while the lock was held can't leave a task half changed: every change is checked before it is begun.
    fn lock(&self) -> Result<MutexGuard<'_, Inner>, StoreError> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.closed {
            return Err(StoreError::unavailable("use the store", "the store is closed"));
        }
        Ok(inner)
    }
}

impl Inner {
    fn commit(&mut self, commit: Commit) -> Result<Committed, StoreError> {
        self.check_dedup(&commit)?;
        let mut entry = match &commit.expect {
            Expect::New(new) => {
                let Some(head) = &commit.head else { return Err(StoreError::corrupt("a new task without a head")) };
                if self.tasks.contains_key(&commit.task_id) {
                    return Err(StoreError::Conflict { task: commit.task_id });
                }
                let head = TaskHead { last_sequence: 0, ..head.clone() };
                Entry { scope: new.scope.clone(), metadata: new.metadata.clone(), head, events: Vec::new(), messages: Vec::new() }
            }
            Expect::Version(_) | Expect::LeaseAndVersion { .. } | Expect::Lease { .. } => {
                let Some(entry) = self.tasks.get(&commit.task_id) else {
                    return Err(StoreError::NotFound { task: commit.task_id });
                };
                expect_holds(&commit, &entry.head)?;
                let entry = self.tasks.remove(&commit.task_id).ok_or_else(|| StoreError::corrupt("a task vanished under the lock"))?;
                self.unlist(&entry);
                entry
            }
        };
        if let Some(head) = commit.head {
            entry.head = TaskHead { last_sequence: entry.head.last_sequence, ..head };
        }
        for event in commit.events {
            entry.head.last_sequence += 1;
            let sequence = entry.head.last_sequence;
            entry.events.push(StoredEvent { sequence, kind: event.kind, timestamp: commit.now, payload: event.payload });
        }
        for new in commit.messages {
            let ordinal = entry.messages.len() as u64;
            entry.messages.push(StoredMessage { ordinal, sequence: entry.head.last_sequence, message: new.message, request: new.request });
        }
        let committed = Committed { version: entry.head.version, last_sequence: entry.head.last_sequence };
        self.list_again(&entry);
        if let Some(dedup) = commit.dedup {
            let accepted = Accepted { task: commit.task_id.clone(), digest: dedup.digest, expires_at: dedup.expires_at };
            self.forgotten.insert((dedup.expires_at, dedup.scope.clone(), dedup.message_id.clone()));
            self.accepted.insert((dedup.scope, dedup.message_id), accepted);
        }
        self.tasks.insert(commit.task_id, entry);
        Ok(committed)
    }

    fn check_dedup(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let Some(dedup) = &commit.dedup else { return Ok(()) };
        while let Some((_, scope, message_id)) = self.forgotten.first().filter(|(expires_at, _, _)| *expires_at <= commit.now) {
            self.accepted.remove(&(scope.clone(), message_id.clone()));
            self.forgotten.pop_first();
        }
        match self.accepted.get(&(dedup.scope.clone(), dedup.message_id.clone())) {
            Some(accepted) => Err(StoreError::Duplicate { task: accepted.task.clone(), digest: accepted.digest }),
            None => Ok(()),
        }
    }

    fn list_again(&mut self, entry: &Entry) {
        let place = (Reverse(entry.head.status_timestamp), Reverse(entry.head.id.clone()));
        for context in [None, Some(entry.head.context_id.clone())] {
            self.listed.entry((entry.scope.clone(), context, entry.head.state)).or_default().insert(place.clone());
        }
        if let Some(due_at) = entry.head.due_at {
            self.due.insert((due_at, entry.head.id.clone()));
        }
    }

    fn unlist(&mut self, entry: &Entry) {
        let place = (Reverse(entry.head.status_timestamp), Reverse(entry.head.id.clone()));
        for context in [None, Some(entry.head.context_id.clone())] {
            let key = (entry.scope.clone(), context, entry.head.state);
            if let Some(listed) = self.listed.get_mut(&key) {
                listed.remove(&place);
                if listed.is_empty() {
                    self.listed.remove(&key);
                }
            }
        }
        if let Some(due_at) = entry.head.due_at {
            self.due.remove(&(due_at, entry.head.id.clone()));
        }
    }

    fn entry(&self, scope: &Scope, task_id: &TaskId) -> Option<&Entry> {
        self.tasks.get(task_id).filter(|entry| entry.scope == *scope)
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        let states = query.state.map_or_else(|| TaskState::ALL.to_vec(), |state| vec![state]);
        let mut places = Vec::new();
        let mut total = 0;
        for state in states {
            let Some(listed) = self.listed.get(&(query.scope.clone(), query.context_id.clone(), state)) else { continue };
            total += match query.status_timestamp_after {
                None => listed.len(),
                Some(after) => listed.iter().take_while(|(timestamp, _)| timestamp.0 >= after).count(),
            };
            let start = match &query.after {
                None => Bound::Unbounded,
                Some(cursor) => Bound::Excluded((Reverse(cursor.timestamp), Reverse(cursor.task_id.clone()))),
            };
            let fresh_enough = |place: &&(Reverse<Timestamp>, Reverse<TaskId>)| {
                query.status_timestamp_after.is_none_or(|after| place.0.0 >= after)
            };
            places.extend(listed.range((start, Bound::Unbounded)).take_while(fresh_enough).take(query.page_size + 1));
        }
        places.sort();
        let more = places.len() > query.page_size;
        places.truncate(query.page_size);
        let next = places.last().filter(|_| more).map(|place| ListCursor { timestamp: place.0.0, task_id: place.1.0.clone() });
        let tasks = places
            .into_iter()
            .filter_map(|place| self.tasks.get(&place.1.0))
            .map(|entry| entry.task_at(None, query.history, query.artifacts))
            .collect::<Result<_, _>>()?;
        Ok(ListPage { tasks, next, total: total as u64 })
    }
}

impl Entry {
    fn events_until(&self, sequence: u64) -> &[StoredEvent] {
        let end = usize::try_from(sequence).unwrap_or(usize::MAX).min(self.events.len());
        self.events.get(..end).unwrap_or_default()
    }

    fn task_at(&self, at: Option<u64>, history: HistoryLimit, artifacts: bool) -> Result<wire::Task, StoreError> {
        let until = at.unwrap_or(self.head.last_sequence);
        let known = self.messages.iter().filter(|message| message.sequence <= until);
        let skip = match history {
            HistoryLimit::All => 0,
            HistoryLimit::Latest(limit) => known.clone().count().saturating_sub(limit),
        };
        let history = known.skip(skip).map(|message| message.message.as_wire().clone()).collect();
        let events = self.events_until(until);
        let mut fold = ArtifactFold::default();
        if artifacts {
            for event in events {
                if let Some(update) = artifact_update(event.kind, event.sequence, &event.payload)? {
                    fold.apply(update);
                }
            }
        }
        snapshot_task(&self.head, self.metadata.clone(), history, at.map(|_| events), fold.into_artifacts())
    }
}

/// Whether the head is what the commit expects it to be.
fn expect_holds(commit: &Commit, head: &TaskHead) -> Result<(), StoreError> {
    let (epoch, version) = match commit.expect {
        Expect::New(_) => return Ok(()),
        Expect::Version(version) => (None, Some(version)),
        Expect::LeaseAndVersion { epoch, version } => (Some(epoch), Some(version)),
        Expect::Lease { epoch } => (Some(epoch), None),
    };
    if let Some(epoch) = epoch
        && (head.epoch != epoch || !head.leased)
    {
        return Err(StoreError::LeaseLost { task: head.id.clone(), epoch });
    }
    if version.is_some_and(|version| version != head.version) {
        return Err(StoreError::Conflict { task: head.id.clone() });
    }
    Ok(())
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.lock()?.commit(commit)
    }

    async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, StoreError> {
        Ok(self.lock()?.entry(scope, task_id).map(|entry| entry.head.clone()))
    }

    async fn snapshot(&self, scope: &Scope, task_id: &TaskId, query: SnapshotQuery) -> Result<Option<Snapshot>, StoreError> {
        let inner = self.lock()?;
        let Some(entry) = inner.entry(scope, task_id) else { return Ok(None) };
        if query.at.is_some_and(|at| at == 0 || at > entry.head.last_sequence) {
            return Ok(None);
        }
        let task = entry.task_at(query.at, query.history, query.artifacts)?;
        Ok(Some(Snapshot { head: entry.head.clone(), sequence: query.at.unwrap_or(entry.head.last_sequence), task }))
    }

    async fn accepted(&self, scope: &Scope, message_id: &MessageId, now: Timestamp) -> Result<Option<(TaskId, [u8; 32])>, StoreError> {
        let inner = self.lock()?;
        let accepted = inner.accepted.get(&(scope.clone(), message_id.clone())).filter(|accepted| accepted.expires_at > now);
        Ok(accepted.map(|accepted| (accepted.task.clone(), accepted.digest)))
    }

    async fn events_after(&self, task_id: &TaskId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let inner = self.lock()?;
        let Some(entry) = inner.tasks.get(task_id) else { return Ok(Vec::new()) };
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        Ok(entry.events.iter().skip(skip).take(limit).cloned().collect())
    }

    async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, StoreError> {
        let inner = self.lock()?;
        let Some(entry) = inner.tasks.get(task_id) else { return Ok(Vec::new()) };
        Ok(entry.messages.iter().filter(|message| ordinals.contains(&message.ordinal)).cloned().collect())
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.lock()?.list(&query)
    }

    async fn artifact_versions(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactVersion>>, StoreError> {
        let inner = self.lock()?;
        let Some(entry) = inner.entry(scope, task_id) else { return Ok(None) };
        let mut fold = VersionFold::new(artifact_id.clone(), None);
        for event in &entry.events {
            fold.apply(event)?;
        }
        Ok(fold.into_versions(before, limit))
    }

    async fn artifact(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        version: Option<u64>,
    ) -> Result<Option<(u64, wire::Artifact)>, StoreError> {
        let inner = self.lock()?;
        let Some(entry) = inner.entry(scope, task_id) else { return Ok(None) };
        let mut fold = VersionFold::new(artifact_id.clone(), version);
        for event in &entry.events {
            fold.apply(event)?;
        }
        Ok(fold.into_artifact())
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Claim>, StoreError> {
        let inner = self.lock()?;
        let due = inner.due.iter().take_while(|(due_at, _)| *due_at <= now).take(limit);
        let entries = due.filter_map(|(_, task_id)| inner.tasks.get(task_id));
        Ok(entries.map(|entry| Claim { scope: entry.scope.clone(), head: entry.head.clone() }).collect())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.lock()?.due.first().map(|(due_at, _)| *due_at))
    }

    async fn release_leases(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut inner = self.lock()?;
        let mut released = Vec::new();
        for entry in inner.tasks.values_mut().filter(|entry| entry.head.leased) {
            entry.head.leased = false;
            entry.head.version += 1;
            released.push((entry.head.due_at.replace(now), entry.head.id.clone()));
        }
        let count = released.len() as u64;
        for (due_before, task_id) in released {
            if let Some(due_before) = due_before {
                inner.due.remove(&(due_before, task_id.clone()));
            }
            inner.due.insert((now, task_id));
        }
        Ok(count)
    }

    async fn last_sequences(&self, task_ids: &[TaskId]) -> Result<Vec<(TaskId, u64)>, StoreError> {
        let inner = self.lock()?;
        let known = task_ids.iter().filter_map(|task_id| inner.tasks.get(task_id));
        Ok(known.map(|entry| (entry.head.id.clone(), entry.head.last_sequence)).collect())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.lock().map(drop)
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.lock()?.closed = true;
        Ok(())
    }
}
