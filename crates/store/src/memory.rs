use std::cmp::Reverse;
use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{
    ArtifactId, ContextId, JsonObject, Message, MessageId, TaskId, TaskState, Timestamp, json, wire,
};

use crate::{
    ArtifactFold, ArtifactVersion, Claim, Commit, Committed, Compaction, CompactionFold, Dedup, Due, Expect, HeldLease,
    HistoryLimit, Line, ListCursor, ListPage, ListQuery, NewEvent, NewMessage, Rotation, Scope, Snapshot,
    SnapshotQuery, Standing, Store, StoreError, StoredEvent, StoredMessage, TaskMark, TurnRequest, VersionFold,
    artifact_update, is_compactable, snapshot_task,
};

mod push;

use self::push::Pushes;

/// Tasks in this process's memory: for trying out and for tests. Nothing outlives the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

/// The place of a task in a list: by status time, the newest first.
type Place = (Reverse<Timestamp>, Reverse<TaskId>);

/// The tasks of one scope, in one context or in all, by state. Most contexts have one task, so one costs no tree.
#[derive(Debug)]
enum Listed {
    One(TaskState, Place),
    Many(Box<[BTreeSet<Place>; TaskState::ALL.len()]>),
}

impl Listed {
    fn insert(&mut self, state: TaskState, place: Place) {
        if let Self::One(known, first) = self {
            let mut places: Box<[BTreeSet<Place>; TaskState::ALL.len()]> = Box::default();
            set_of(&mut places, *known).insert(first.clone());
            *self = Self::Many(places);
        }
        if let Self::Many(places) = self {
            set_of(places, state).insert(place);
        }
    }

    /// A task's state or time has changed.
    fn moved(&mut self, before: (TaskState, &Place), after: (TaskState, Place)) {
        match self {
            Self::One(state, only) => (*state, *only) = after,
            Self::Many(places) => {
                set_of(places, before.0).remove(before.1);
                set_of(places, after.0).insert(after.1);
            }
        }
    }

    /// A task is gone. Answers whether it was the last one.
    fn remove(&mut self, state: TaskState, place: &Place) -> bool {
        match self {
            Self::One(..) => true,
            Self::Many(places) => {
                set_of(places, state).remove(place);
                places.iter().all(BTreeSet::is_empty)
            }
        }
    }

    fn len(&self, state: TaskState) -> usize {
        match self {
            Self::One(only, _) => usize::from(*only == state),
            Self::Many(places) => places.get(place_of(state)).map_or(0, BTreeSet::len),
        }
    }

    /// The places of a state with a status older than `before`, the oldest first.
    fn oldest(&self, state: TaskState, before: Timestamp) -> Box<dyn Iterator<Item = &Place> + '_> {
        match self {
            Self::One(known, only) => Box::new((*known == state && only.0.0 < before).then_some(only).into_iter()),
            Self::Many(places) => {
                let places = places.get(place_of(state)).into_iter();
                let older = move |place: &&Place| place.0.0 < before;
                Box::new(places.flat_map(move |places| places.iter().rev().take_while(older)))
            }
        }
    }

    /// The places of a state behind `after`, in order.
    fn behind<'a>(&'a self, state: TaskState, after: Option<&'a Place>) -> Box<dyn Iterator<Item = &'a Place> + 'a> {
        match self {
            Self::One(known, only) => {
                let is_behind = *known == state && after.is_none_or(|after| after < only);
                Box::new(is_behind.then_some(only).into_iter())
            }
            Self::Many(places) => {
                let start = after.map_or(Bound::Unbounded, Bound::Excluded);
                let places = places.get(place_of(state)).into_iter();
                Box::new(places.flat_map(move |places| places.range::<Place, _>((start, Bound::Unbounded))))
            }
        }
    }
}

fn place_of(state: TaskState) -> usize {
    TaskState::ALL.iter().position(|known| *known == state).unwrap_or(0)
}

fn set_of(places: &mut [BTreeSet<Place>; TaskState::ALL.len()], state: TaskState) -> &mut BTreeSet<Place> {
    #[expect(clippy::indexing_slicing, reason = "there is a set for each state")]
    &mut places[place_of(state)]
}

#[derive(Debug, Default)]
struct Inner {
    tasks: HashMap<TaskId, Box<Entry>>,
    index: Index,
    pushes: Pushes,
    accepted: HashMap<(Scope, MessageId), Accepted>,
    forgotten: BTreeSet<(Timestamp, Scope, MessageId)>,
    closed: bool,
}

/// Finds tasks by what their heads say.
#[derive(Debug, Default)]
struct Index {
    listed: HashMap<(Scope, Option<ContextId>), Listed>,
    scopes: BTreeSet<Scope>,
    /// When leases run out and waits are over.
    timed: BTreeSet<(Timestamp, TaskId)>,
    /// The tasks in line, as [`Line`] speaks of them.
    line: BTreeMap<Scope, BTreeMap<ContextId, BTreeSet<(Timestamp, TaskId)>>>,
    /// The same tasks since when they are in line.
    waiting: BTreeSet<(Timestamp, TaskId)>,
    /// Tasks whose logs are to be merged one day, by their end.
    compactable: BTreeSet<(Timestamp, TaskId)>,
}

#[derive(Debug)]
struct Entry {
    scope: Scope,
    metadata: Option<JsonObject>,
    head: TaskHead,
    events: Vec<StoredEvent>,
    messages: Vec<KeptMessage>,
    checkpoint: Option<Bytes>,
    /// Whether artifact updates were merged, so that the log has gaps.
    merged: bool,
}

/// A message as JSON, which takes a fraction of the memory that its structs do.
#[derive(Debug)]
struct KeptMessage {
    sequence: u64,
    json: Bytes,
    request: Option<Box<TurnRequest>>,
}

impl KeptMessage {
    /// A message of a log that is still empty.
    fn new(new: NewMessage) -> Self {
        let request = (!new.request.is_empty()).then(|| Box::new(new.request.clone()));
        Self { sequence: new.sequence(0), json: json::to_json(&new.message), request }
    }

    fn read(&self) -> Result<Message, StoreError> {
        json::from_json(&self.json).map_err(|error| StoreError::corrupt(format!("a message: {error}")))
    }
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
        for context in [None, Some(head.context_id.clone())] {
            match self.listed.entry((scope.clone(), context)) {
                MapEntry::Occupied(mut listed) => listed.get_mut().insert(head.state, place(head)),
                MapEntry::Vacant(vacant) => {
                    vacant.insert(Listed::One(head.state, place(head)));
                }
            }
        }
        if !self.scopes.contains(scope) {
            self.scopes.insert(scope.clone());
        }
        self.due_again(scope, None, Some(head));
    }

    fn moved(&mut self, scope: &Scope, before: &TaskHead, after: &TaskHead) {
        if (before.state, before.status_timestamp) != (after.state, after.status_timestamp) {
            let place_before = place(before);
            for context in [None, Some(after.context_id.clone())] {
                if let Some(listed) = self.listed.get_mut(&(scope.clone(), context)) {
                    listed.moved((before.state, &place_before), (after.state, place(after)));
                }
            }
        }
        self.due_again(scope, Some(before), Some(after));
    }

    fn remove(&mut self, scope: &Scope, head: &TaskHead) {
        for context in [None, Some(head.context_id.clone())] {
            if let MapEntry::Occupied(mut listed) = self.listed.entry((scope.clone(), context))
                && listed.get_mut().remove(head.state, &place(head))
            {
                listed.remove();
            }
        }
        self.compactable.remove(&(head.status_timestamp, head.id.clone()));
        self.due_again(scope, Some(head), None);
    }

    /// The task has ended, and its log is to be merged one day if it is worth it.
    fn ended(&mut self, head: &TaskHead) {
        if is_compactable(head.state, head.last_sequence) {
            self.compactable.insert((head.status_timestamp, head.id.clone()));
        }
    }

    fn due_again(&mut self, scope: &Scope, before: Option<&TaskHead>, after: Option<&TaskHead>) {
        let place = |head: &TaskHead| head.due_at.map(|due_at| (due_at, in_line(head)));
        if before.and_then(place) == after.and_then(place) {
            return;
        }
        if let Some((head, due_at)) = before.and_then(|head| head.due_at.map(|due_at| (head, due_at))) {
            let entry = (due_at, head.id.clone());
            if in_line(head) {
                self.waiting.remove(&entry);
                self.leave_line(scope, &head.context_id, &entry);
            } else {
                self.timed.remove(&entry);
            }
        }
        if let Some((head, due_at)) = after.and_then(|head| head.due_at.map(|due_at| (head, due_at))) {
            let entry = (due_at, head.id.clone());
            if in_line(head) {
                let contexts = self.line.entry(scope.clone()).or_default();
                contexts.entry(head.context_id.clone()).or_default().insert(entry.clone());
                self.waiting.insert(entry);
            } else {
                self.timed.insert(entry);
            }
        }
    }

    fn leave_line(&mut self, scope: &Scope, context: &ContextId, entry: &(Timestamp, TaskId)) {
        let Some(contexts) = self.line.get_mut(scope) else { return };
        if let Some(tasks) = contexts.get_mut(context) {
            tasks.remove(entry);
            if tasks.is_empty() {
                contexts.remove(context);
            }
        }
        if contexts.is_empty() {
            self.line.remove(scope);
        }
    }

    /// The oldest tasks in these states with a status older than `before`, as far as `wanted`.
    fn oldest(
        &self,
        states: &[TaskState],
        before: Timestamp,
        limit: usize,
        wanted: impl Fn(&TaskId) -> bool,
    ) -> Vec<TaskId> {
        let mut oldest = Vec::new();
        for scope in &self.scopes {
            let Some(listed) = self.listed.get(&(scope.clone(), None)) else { continue };
            for state in states {
                let places = listed.oldest(*state, before).filter(|place| wanted(&place.1.0)).take(limit);
                oldest.extend(places.map(|place| (place.0.0, place.1.0.clone())));
            }
        }
        oldest.sort_unstable();
        oldest.truncate(limit);
        oldest.into_iter().map(|(_, task_id)| task_id).collect()
    }
}

/// Whether a task waits for a worker.
fn in_line(head: &TaskHead) -> bool {
    !head.leased && head.due_at.is_some() && matches!(head.state, TaskState::Submitted | TaskState::Working)
}

/// The line at one time.
struct DueLine<'a> {
    inner: &'a Inner,
    now: Timestamp,
}

impl Line for DueLine<'_> {
    fn scope_behind(&mut self, after: Option<&Scope>) -> Result<Option<Scope>, StoreError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut scopes = self.inner.index.line.range::<Scope, _>((start, Bound::Unbounded));
        let due = scopes.find(|(_, contexts)| contexts.values().any(|tasks| is_due(tasks, self.now)));
        Ok(due.map(|(scope, _)| scope.clone()))
    }

    fn context_behind(&mut self, scope: &Scope, after: Option<&ContextId>) -> Result<Option<ContextId>, StoreError> {
        let Some(contexts) = self.inner.index.line.get(scope) else { return Ok(None) };
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut contexts = contexts.range::<ContextId, _>((start, Bound::Unbounded));
        Ok(contexts.find(|(_, tasks)| is_due(tasks, self.now)).map(|(context, _)| context.clone()))
    }

    fn task(&mut self, scope: &Scope, context: &ContextId, place: usize) -> Result<Option<Claim>, StoreError> {
        let tasks = self.inner.index.line.get(scope).and_then(|contexts| contexts.get(context));
        let found = tasks.and_then(|tasks| tasks.iter().nth(place)).filter(|(due_at, _)| *due_at <= self.now);
        Ok(found.and_then(|(_, task_id)| self.inner.claim(task_id)))
    }
}

fn is_due(tasks: &BTreeSet<(Timestamp, TaskId)>, now: Timestamp) -> bool {
    tasks.first().is_some_and(|(due_at, _)| *due_at <= now)
}

fn place(head: &TaskHead) -> Place {
    (Reverse(head.status_timestamp), Reverse(head.id.clone()))
}

impl Inner {
    fn commit(&mut self, commit: Commit, messages: Vec<KeptMessage>) -> Result<Committed, StoreError> {
        self.check_dedup(&commit)?;
        if let Expect::New(_) = &commit.expect {
            if self.tasks.contains_key(&commit.task_id) {
                return Err(StoreError::Conflict { task: commit.task_id });
            }
            return self.create(commit, messages);
        }
        let Some(entry) = self.tasks.get_mut(&commit.task_id) else {
            return Err(StoreError::NotFound { task: commit.task_id });
        };
        commit.check(standing(&entry.head, commit.now))?;
        if let Some(head) = commit.head {
            let mut head = TaskHead { last_sequence: entry.head.last_sequence, ..head };
            if entry.head.leased && head.leased && entry.head.epoch == head.epoch {
                head.due_at = head.due_at.max(entry.head.due_at);
            }
            let before = std::mem::replace(&mut entry.head, head);
            self.index.moved(&entry.scope, &before, &entry.head);
        }
        entry.checkpoint = commit.checkpoint.or(entry.checkpoint.take());
        let before = entry.head.last_sequence;
        let mut committed = entry.append(commit.events, messages, commit.now);
        self.index.ended(&entry.head);
        for config in commit.pushes {
            self.pushes.add(&entry.scope, &commit.task_id, config, before, commit.now);
        }
        self.pushes.appended(&commit.task_id, committed.last_sequence, commit.now);
        committed.has_pushes = self.pushes.has_configs(&commit.task_id);
        if let Some(dedup) = commit.dedup {
            self.remember(dedup, commit.task_id);
        }
        Ok(committed)
    }

    fn create(&mut self, commit: Commit, messages: Vec<KeptMessage>) -> Result<Committed, StoreError> {
        let (Expect::New(new), Some(head)) = (commit.expect, commit.head) else {
            return Err(StoreError::corrupt("a new task without a head"));
        };
        let head = TaskHead { last_sequence: 0, ..head };
        let mut entry = Box::new(Entry {
            scope: new.scope,
            metadata: new.metadata,
            head,
            events: Vec::with_capacity(commit.events.len()),
            messages: Vec::with_capacity(messages.len()),
            checkpoint: commit.checkpoint,
            merged: false,
        });
        let mut committed = entry.append(commit.events, messages, commit.now);
        self.index.insert(&entry.scope, &entry.head);
        self.index.ended(&entry.head);
        for config in commit.pushes {
            self.pushes.add(&entry.scope, &commit.task_id, config, 0, commit.now);
        }
        self.pushes.appended(&commit.task_id, committed.last_sequence, commit.now);
        committed.has_pushes = self.pushes.has_configs(&commit.task_id);
        if let Some(dedup) = commit.dedup {
            self.remember(dedup, commit.task_id.clone());
        }
        self.tasks.insert(commit.task_id, entry);
        Ok(committed)
    }

    fn remember(&mut self, dedup: Dedup, task: TaskId) {
        let Dedup { scope, message_id, digest, expires_at } = dedup;
        let key = (scope.clone(), message_id.clone());
        // There is one before it when its task is gone.
        if let Some(before) = self.accepted.insert(key, Accepted { task, digest, expires_at }) {
            self.forgotten.remove(&(before.expires_at, scope.clone(), message_id.clone()));
        }
        self.forgotten.insert((expires_at, scope, message_id));
    }

    fn check_dedup(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let Some(dedup) = &commit.dedup else { return Ok(()) };
        while let Some((_, scope, message_id)) =
            self.forgotten.first().filter(|(expires_at, _, _)| *expires_at <= commit.now)
        {
            self.accepted.remove(&(scope.clone(), message_id.clone()));
            self.forgotten.pop_first();
        }
        match self.accepted.get(&(dedup.scope.clone(), dedup.message_id.clone())) {
            Some(accepted) if self.tasks.contains_key(&accepted.task) => {
                Err(StoreError::Duplicate { task: accepted.task.clone(), digest: accepted.digest })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn claim(&self, task_id: &TaskId) -> Option<Claim> {
        self.tasks.get(task_id).map(|entry| Claim { scope: entry.scope.clone(), head: entry.head.clone() })
    }

    fn due(&self, now: Timestamp, limit: usize, mut rotation: Rotation) -> Result<Due, StoreError> {
        let timed = self.index.timed.iter().take_while(|(due_at, _)| *due_at <= now).take(limit);
        let mut claims: Vec<Claim> = timed.filter_map(|(_, task_id)| self.claim(task_id)).collect();
        let left = limit - claims.len();
        claims.extend(rotation.take(&mut DueLine { inner: self, now }, left)?);
        Ok(Due { claims, rotation })
    }

    /// Moves the end of a lease that is alive. Answers whether it was.
    fn renew(&mut self, lease: &HeldLease, now: Timestamp, until: Timestamp) -> bool {
        let Some(entry) = self.tasks.get_mut(&lease.task_id) else { return false };
        if !holds_lease(&entry.head, lease.epoch, now) {
            return false;
        }
        let renewed = TaskHead { due_at: Some(until), ..entry.head.clone() };
        let before = std::mem::replace(&mut entry.head, renewed);
        self.index.moved(&entry.scope, &before, &entry.head);
        true
    }

    fn expire_leases(&mut self, now: Timestamp) -> u64 {
        let alive = self.index.timed.iter().rev().take_while(|(due_at, _)| *due_at > now);
        let alive: Vec<TaskId> = alive.map(|(_, task_id)| task_id.clone()).collect();
        let mut count = 0;
        for task_id in alive {
            let Some(entry) = self.tasks.get_mut(&task_id).filter(|entry| entry.head.leased) else { continue };
            let expired = TaskHead { due_at: Some(now), version: entry.head.version + 1, ..entry.head.clone() };
            let before = std::mem::replace(&mut entry.head, expired);
            self.index.moved(&entry.scope, &before, &entry.head);
            count += 1;
        }
        count
    }

    fn purge(&mut self, state: TaskState, before: Timestamp, limit: usize) -> u64 {
        if !state.is_terminal() {
            return 0;
        }
        let ended = self.index.oldest(&[state], before, limit, |task_id| !self.pushes.is_pending(task_id));
        for task_id in &ended {
            if let Some(entry) = self.tasks.remove(task_id) {
                self.index.remove(&entry.scope, &entry.head);
                self.pushes.forget(task_id);
            }
        }
        ended.len() as u64
    }

    /// The oldest tasks whose logs are to be merged, with their logs.
    fn compactable(&self, before: Timestamp, limit: usize) -> Vec<(TaskId, Vec<StoredEvent>)> {
        let old = self.index.compactable.iter().take_while(|(ended_at, _)| *ended_at < before);
        // What is to be delivered, or may be tried again, is read from the log.
        let old = old.filter(|(_, task_id)| !self.pushes.needs_log(task_id)).take(limit);
        let known = old.filter_map(|(_, task_id)| Some((task_id, self.tasks.get(task_id)?)));
        known.map(|(task_id, entry)| (task_id.clone(), entry.events.clone())).collect()
    }

    /// Merges a log, unless the task is gone or another was first.
    fn compact(&mut self, task_id: &TaskId, changes: Option<Compaction>) {
        let Some(entry) = self.tasks.get_mut(task_id) else { return };
        let waited = self.index.compactable.remove(&(entry.head.status_timestamp, task_id.clone()));
        if let Some(changes) = changes.filter(|_| waited) {
            entry.events = changes.apply(std::mem::take(&mut entry.events));
            entry.merged = true;
        }
    }

    fn entry(&self, scope: &Scope, task_id: &TaskId) -> Option<&Entry> {
        self.tasks.get(task_id).map(|entry| &**entry).filter(|entry| entry.scope == *scope)
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        let states = query.state.map_or_else(|| TaskState::ALL.to_vec(), |state| vec![state]);
        let mut places = Vec::new();
        let mut total = 0;
        let after = query.after.as_ref().map(|cursor| (Reverse(cursor.timestamp), Reverse(cursor.task_id.clone())));
        let fresh_enough = |place: &&Place| query.status_timestamp_after.is_none_or(|after| place.0.0 >= after);
        if let Some(listed) = self.index.listed.get(&(query.scope.clone(), query.context_id.clone())) {
            for state in states {
                total += match query.status_timestamp_after {
                    None => listed.len(state),
                    Some(_) => listed.behind(state, None).take_while(fresh_enough).count(),
                };
                let behind = listed.behind(state, after.as_ref()).take_while(fresh_enough);
                places.extend(behind.take(query.page_size + 1).cloned());
            }
        }
        places.sort();
        let more = places.len() > query.page_size;
        places.truncate(query.page_size);
        let next =
            places.last().filter(|_| more).map(|place| ListCursor { timestamp: place.0.0, task_id: place.1.0.clone() });
        let tasks = places
            .into_iter()
            .filter_map(|place| self.tasks.get(&place.1.0))
            .map(|entry| entry.task_at(None, query.history, query.artifacts))
            .collect::<Result<_, _>>()?;
        Ok(ListPage { tasks, next, total: total as u64 })
    }
}

impl Entry {
    fn append(&mut self, events: Vec<NewEvent>, messages: Vec<KeptMessage>, now: Timestamp) -> Committed {
        let before = self.head.last_sequence;
        for event in events {
            self.head.last_sequence += 1;
            let sequence = self.head.last_sequence;
            self.events.push(StoredEvent { sequence, kind: event.kind, timestamp: now, payload: event.payload });
        }
        let joined = |kept: KeptMessage| KeptMessage { sequence: kept.sequence + before, ..kept };
        self.messages.extend(messages.into_iter().map(joined));
        Committed { version: self.head.version, last_sequence: self.head.last_sequence, has_pushes: false }
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
        let history =
            known.skip(skip).map(|message| message.read().map(Message::into_wire)).collect::<Result<_, _>>()?;
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

fn standing(head: &TaskHead, now: Timestamp) -> Standing {
    let lease_lives = holds_lease(head, head.epoch, now);
    Standing { version: head.version, epoch: head.epoch, lease_lives, last_sequence: head.last_sequence }
}

/// Whether the lease of this epoch is alive.
fn holds_lease(head: &TaskHead, epoch: u64, now: Timestamp) -> bool {
    head.epoch == epoch && head.leased && !head.lease_is_over(now)
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let mut commit = commit;
        // Written before the lock is taken, which all others wait for.
        let messages = std::mem::take(&mut commit.messages).into_iter().map(KeptMessage::new).collect();
        self.lock()?.commit(commit, messages)
    }

    async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, StoreError> {
        Ok(self.lock()?.entry(scope, task_id).map(|entry| entry.head.clone()))
    }

    async fn scope_of(&self, task_id: &TaskId) -> Result<Option<Scope>, StoreError> {
        Ok(self.lock()?.tasks.get(task_id).map(|entry| entry.scope.clone()))
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, StoreError> {
        let inner = self.lock()?;
        let Some(entry) = inner.entry(scope, task_id) else { return Ok(None) };
        let (first, last) = (if entry.merged { entry.head.last_sequence } else { 1 }, entry.head.last_sequence);
        if query.at.is_some_and(|at| !(first..=last).contains(&at)) {
            return Ok(None);
        }
        let task = entry.task_at(query.at, query.history, query.artifacts)?;
        Ok(Some(Snapshot { head: entry.head.clone(), sequence: query.at.unwrap_or(entry.head.last_sequence), task }))
    }

    async fn accepted(
        &self,
        scope: &Scope,
        message_id: &MessageId,
        now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, StoreError> {
        let inner = self.lock()?;
        let accepted = inner.accepted.get(&(scope.clone(), message_id.clone()));
        let accepted = accepted.filter(|known| known.expires_at > now && inner.tasks.contains_key(&known.task));
        Ok(accepted.map(|accepted| (accepted.task.clone(), accepted.digest)))
    }

    async fn events_after(&self, task_id: &TaskId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let inner = self.lock()?;
        let Some(entry) = inner.tasks.get(task_id).filter(|entry| !entry.merged) else { return Ok(Vec::new()) };
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        Ok(entry.events.iter().skip(skip).take(limit).cloned().collect())
    }

    async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, StoreError> {
        let inner = self.lock()?;
        let Some(entry) = inner.tasks.get(task_id) else { return Ok(Vec::new()) };
        let wanted = (0..).zip(&entry.messages).filter(|(ordinal, _)| ordinals.contains(ordinal));
        let stored = |(ordinal, kept): (u64, &KeptMessage)| {
            let request = kept.request.as_deref().cloned().unwrap_or_default();
            Ok(StoredMessage { ordinal, sequence: kept.sequence, message: kept.read()?, request })
        };
        wanted.map(stored).collect()
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

    async fn renew(&self, leases: &[HeldLease], now: Timestamp, until: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        let mut inner = self.lock()?;
        let lost = leases.iter().filter(|lease| !inner.renew(lease, now, until));
        Ok(lost.map(|lease| lease.task_id.clone()).collect())
    }

    async fn due(&self, now: Timestamp, limit: usize, rotation: Rotation) -> Result<Due, StoreError> {
        self.lock()?.due(now, limit, rotation)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let inner = self.lock()?;
        let earliest =
            inner.index.timed.first().into_iter().chain(inner.index.waiting.first()).map(|(due_at, _)| *due_at);
        Ok(earliest.min())
    }

    async fn backlog(&self) -> Result<u64, StoreError> {
        Ok(self.lock()?.index.waiting.len() as u64)
    }

    async fn expire_leases(&self, now: Timestamp) -> Result<u64, StoreError> {
        Ok(self.lock()?.expire_leases(now))
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        Ok(self.lock()?.tasks.get(task_id).and_then(|entry| entry.checkpoint.clone()))
    }

    async fn stale(
        &self,
        states: &[TaskState],
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, StoreError> {
        let inner = self.lock()?;
        let idle = |task_id: &TaskId| {
            inner.tasks.get(task_id).is_some_and(|entry| !holds_lease(&entry.head, entry.head.epoch, now))
        };
        let states: Vec<TaskState> = states.iter().copied().filter(|state| !state.is_terminal()).collect();
        let stale = inner.index.oldest(&states, before, limit, idle);
        Ok(stale.iter().filter_map(|task_id| inner.claim(task_id)).collect())
    }

    async fn purge(&self, state: TaskState, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        Ok(self.lock()?.purge(state, before, limit))
    }

    async fn give_back(&self, _bytes_max: u64) -> Result<u64, StoreError> {
        self.lock().map(|_| 0)
    }

    async fn compact(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let logs = self.lock()?.compactable(before, limit);
        let count = logs.len() as u64;
        // Merged without the lock, which all others wait for: a task that has ended changes no more.
        for (task_id, log) in logs {
            let mut fold = CompactionFold::default();
            for event in &log {
                fold.apply(event)?;
            }
            self.lock()?.compact(&task_id, fold.finish());
        }
        Ok(count)
    }

    async fn marks(&self, task_ids: &[TaskId]) -> Result<Vec<TaskMark>, StoreError> {
        let inner = self.lock()?;
        let known = task_ids.iter().filter_map(|task_id| inner.tasks.get(task_id));
        Ok(known.map(|entry| TaskMark::of(&entry.head)).collect())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.lock().map(drop)
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.lock()?.closed = true;
        Ok(())
    }
}
