use std::cmp::Reverse;
use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, ContextId, JsonObject, MessageId, TaskId, TaskState, Timestamp, wire};

use crate::{
    ArtifactFold, ArtifactVersion, Claim, Commit, Committed, Dedup, Expect, HistoryLimit, ListCursor, ListPage, ListQuery, NewEvent, NewMessage, Release, Scope, Snapshot,
    SnapshotQuery, Store, StoreError, StoredEvent, StoredMessage, VersionFold, artifact_update, snapshot_task,
};

/// Tasks in this process's memory: for trying out and for tests. Nothing outlives the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

/// The place of a task in a list: by status time, the newest first.
type Place = (Reverse<Timestamp>, Reverse<TaskId>);

/// The tasks of one scope, in one context or in all, in one state. Most contexts have one task, so one costs no tree.
#[derive(Debug)]
enum Listed {
    One(Place),
    Many(BTreeSet<Place>),
}

impl Listed {
    fn insert(&mut self, place: Place) {
        match self {
            Self::Many(places) => {
                places.insert(place);
            }
            Self::One(first) => *self = Self::Many(BTreeSet::from([first.clone(), place])),
        }
    }

    /// Takes a place out, and says whether it was the last one.
    fn remove(&mut self, place: &Place) -> bool {
        match self {
            Self::One(only) => only == place,
            Self::Many(places) => {
                places.remove(place);
                places.is_empty()
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(places) => places.len(),
        }
    }

    /// The places behind `after`, in order.
    fn behind<'a>(&'a self, after: Option<&'a Place>) -> Box<dyn Iterator<Item = &'a Place> + 'a> {
        match self {
            Self::One(only) => Box::new(std::iter::once(only).filter(move |_| after.is_none_or(|after| after < only))),
            Self::Many(places) => {
                let start = after.map_or(Bound::Unbounded, Bound::Excluded);
                Box::new(places.range::<Place, _>((start, Bound::Unbounded)))
            }
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    tasks: HashMap<TaskId, Box<Entry>>,
    index: Index,
    accepted: HashMap<(Scope, MessageId), Accepted>,
    forgotten: BTreeSet<(Timestamp, Scope, MessageId)>,
    closed: bool,
}

/// Finds tasks by what their heads say.
#[derive(Debug, Default)]
struct Index {
    listed: HashMap<(Scope, Option<ContextId>, TaskState), Listed>,
    due: BTreeSet<(Timestamp, TaskId)>,
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

impl Index {
    fn insert(&mut self, scope: &Scope, head: &TaskHead) {
        let place = (Reverse(head.status_timestamp), Reverse(head.id.clone()));
        for context in [None, Some(head.context_id.clone())] {
            match self.listed.entry((scope.clone(), context, head.state)) {
                MapEntry::Occupied(mut listed) => listed.get_mut().insert(place.clone()),
                MapEntry::Vacant(vacant) => {
                    vacant.insert(Listed::One(place.clone()));
                }
            }
        }
        if let Some(due_at) = head.due_at {
            self.due.insert((due_at, head.id.clone()));
        }
    }

    fn remove(&mut self, scope: &Scope, head: &TaskHead) {
        let place = (Reverse(head.status_timestamp), Reverse(head.id.clone()));
        for context in [None, Some(head.context_id.clone())] {
            if let MapEntry::Occupied(mut listed) = self.listed.entry((scope.clone(), context, head.state))
                && listed.get_mut().remove(&place)
            {
                listed.remove();
            }
        }
        if let Some(due_at) = head.due_at {
            self.due.remove(&(due_at, head.id.clone()));
        }
    }

    fn moved(&mut self, scope: &Scope, before: &TaskHead, after: &TaskHead) {
        self.remove(scope, before);
        self.insert(scope, after);
    }
}

impl Inner {
    fn commit(&mut self, commit: Commit) -> Result<Committed, StoreError> {
        self.check_dedup(&commit)?;
        if let Expect::New(_) = &commit.expect {
            if self.tasks.contains_key(&commit.task_id) {
                return Err(StoreError::Conflict { task: commit.task_id });
            }
            return self.create(commit);
        }
        let Some(entry) = self.tasks.get_mut(&commit.task_id) else {
            return Err(StoreError::NotFound { task: commit.task_id });
        };
        expect_holds(&commit, &entry.head)?;
        if let Some(head) = commit.head {
            let head = TaskHead { last_sequence: entry.head.last_sequence, ..head };
            let before = std::mem::replace(&mut entry.head, head);
            self.index.moved(&entry.scope, &before, &entry.head);
        }
        let committed = entry.append(commit.events, commit.messages, commit.now);
        if let Some(dedup) = commit.dedup {
            self.remember(dedup, commit.task_id);
        }
        Ok(committed)
    }

    fn create(&mut self, commit: Commit) -> Result<Committed, StoreError> {
        let (Expect::New(new), Some(head)) = (commit.expect, commit.head) else {
            return Err(StoreError::corrupt("a new task without a head"));
        };
        let head = TaskHead { last_sequence: 0, ..head };
        let mut entry = Box::new(Entry { scope: new.scope, metadata: new.metadata, head, events: Vec::new(), messages: Vec::new() });
        let committed = entry.append(commit.events, commit.messages, commit.now);
        self.index.insert(&entry.scope, &entry.head);
        if let Some(dedup) = commit.dedup {
            self.remember(dedup, commit.task_id.clone());
        }
        self.tasks.insert(commit.task_id, entry);
        Ok(committed)
    }

    fn remember(&mut self, dedup: Dedup, task: TaskId) {
        let Dedup { scope, message_id, digest, expires_at } = dedup;
        self.forgotten.insert((expires_at, scope.clone(), message_id.clone()));
        self.accepted.insert((scope, message_id), Accepted { task, digest, expires_at });
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

    fn entry(&self, scope: &Scope, task_id: &TaskId) -> Option<&Entry> {
        self.tasks.get(task_id).map(|entry| &**entry).filter(|entry| entry.scope == *scope)
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        let states = query.state.map_or_else(|| TaskState::ALL.to_vec(), |state| vec![state]);
        let mut places = Vec::new();
        let mut total = 0;
        for state in states {
            let Some(listed) = self.index.listed.get(&(query.scope.clone(), query.context_id.clone(), state)) else { continue };
            let fresh_enough = |place: &&Place| query.status_timestamp_after.is_none_or(|after| place.0.0 >= after);
            total += match query.status_timestamp_after {
                None => listed.len(),
                Some(_) => listed.behind(None).take_while(fresh_enough).count(),
            };
            let after = query.after.as_ref().map(|cursor| (Reverse(cursor.timestamp), Reverse(cursor.task_id.clone())));
            places.extend(listed.behind(after.as_ref()).take_while(fresh_enough).take(query.page_size + 1).cloned());
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
    fn append(&mut self, events: Vec<NewEvent>, messages: Vec<NewMessage>, now: Timestamp) -> Committed {
        for event in events {
            self.head.last_sequence += 1;
            let sequence = self.head.last_sequence;
            self.events.push(StoredEvent { sequence, kind: event.kind, timestamp: now, payload: event.payload });
        }
        for new in messages {
            let ordinal = self.messages.len() as u64;
            let sequence = self.head.last_sequence;
            self.messages.push(StoredMessage { ordinal, sequence, message: new.message, request: new.request });
        }
        Committed { version: self.head.version, last_sequence: self.head.last_sequence }
    }

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
        let due = inner.index.due.iter().take_while(|(due_at, _)| *due_at <= now).take(limit);
        let entries = due.filter_map(|(_, task_id)| inner.tasks.get(task_id));
        Ok(entries.map(|entry| Claim { scope: entry.scope.clone(), head: entry.head.clone() }).collect())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.lock()?.index.due.first().map(|(due_at, _)| *due_at))
    }

    async fn release_leases(&self, release: Release, now: Timestamp) -> Result<u64, StoreError> {
        let mut inner = self.lock()?;
        let Inner { tasks, index, .. } = &mut *inner;
        let mut count = 0;
        for entry in tasks.values_mut().filter(|entry| entry.head.leased) {
            let before = entry.head.clone();
            entry.head.leased = false;
            entry.head.version += 1;
            entry.head.due_at = Some(now);
            if release == Release::HandedBack {
                entry.head.attempt = entry.head.attempt.saturating_sub(1);
            }
            index.moved(&entry.scope, &before, &entry.head);
            count += 1;
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
