//! The commits of one transaction: what they need to know, whether each may be made, and the rows that they become.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp};
use longhaul_store::columns::{self, int};
use longhaul_store::{Committed, Dedup, EncodedCommit, Expect, Scope, StoreError, TaskMark, is_compactable};

use super::known::{Key, Known};
use super::pushes::{Left, PushRows, Pushes};
use super::rows::{
    Accepted, AcceptedKey, AcceptedRow, CheckpointRow, Checkpoints, Columns, CountRow, CountRows, EventRow, Events,
    Extended, ExtendedRow, MessageRow, Messages, Metadata, MetadataRow, NewTaskRow, NewTasks, NoLeaseRow, NoLeases,
    NoStatusRow, NoStatuses, NotAccepted, StatusRow, Statuses, TaskRow, Tasks,
};
use crate::LeaseClock;
use crate::counts::{self, Counts};
use crate::shards;

/// When a new task's id is found to be taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Existence {
    /// By the insert: costs nothing, and undoes the batch in the rare case.
    FoundAtTheEnd,
    /// By a look before anything is written.
    AskedBefore,
}

/// Names a message that may have been accepted.
pub(super) type MessageKey<'b> = (i16, &'b str, &'b str, &'b str);

pub(super) fn message_key(dedup: &Dedup) -> MessageKey<'_> {
    let (tenant, owner) = (dedup.scope.tenant.as_str(), dedup.scope.owner.as_str());
    let shard = shards::of_message(&dedup.scope.tenant, &dedup.message_id);
    (shard, tenant, owner, dedup.message_id.as_str())
}

/// What a batch has to know before it can decide.
#[derive(Debug, Default)]
pub(super) struct Needs<'b> {
    /// Tasks that are changed, and waited for.
    pub(super) waits: BTreeSet<Key<'b>>,
    /// Tasks that are begun or given up because nobody works on them: whoever has one at this moment sees to it.
    pub(super) claims: BTreeSet<Key<'b>>,
    /// The tasks of which a lease must be over.
    pub(super) free: BTreeSet<Key<'b>>,
    pub(super) messages: BTreeSet<MessageKey<'b>>,
}

impl<'b> Needs<'b> {
    pub(super) fn of(commits: &[&'b EncodedCommit], existence: Existence) -> Self {
        let mut needs = Self::default();
        for encoded in commits {
            let commit = &encoded.commit;
            let key = Key::of(&commit.task_id);
            match commit.expect {
                Expect::New(_) if existence == Existence::FoundAtTheEnd => {}
                Expect::Unheld(_) => drop(needs.claims.insert(key)),
                Expect::New(_) | Expect::Version(_) | Expect::LeaseAndVersion { .. } | Expect::Lease { .. } => {
                    needs.waits.insert(key);
                }
            }
            if matches!(commit.expect, Expect::Unheld(_) | Expect::Version(_)) {
                needs.free.insert(key);
            }
            needs.messages.extend(commit.dedup.as_ref().map(message_key));
        }
        // Whoever waits for a task anyway has it.
        needs.claims.retain(|key| !needs.waits.contains(key));
        needs
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.waits.is_empty() && self.claims.is_empty() && self.messages.is_empty()
    }

    /// All tasks that are taken, in order.
    pub(super) fn tasks(&self) -> Vec<Key<'b>> {
        self.waits.union(&self.claims).copied().collect()
    }
}

/// A message that was accepted before.
#[derive(Clone, Debug)]
pub(super) struct AcceptedBefore {
    pub(super) task: TaskId,
    pub(super) digest: [u8; 32],
    pub(super) expires_at: i64,
    pub(super) task_is_there: bool,
}

/// What is known while the rows are taken.
#[derive(Debug, Default)]
pub(super) struct Facts<'b> {
    pub(super) tasks: HashMap<&'b str, Known>,
    /// Tasks that are there, but somebody else's at this moment.
    pub(super) busy: BTreeSet<&'b str>,
    pub(super) accepted: HashMap<MessageKey<'b>, AcceptedBefore>,
    /// By the clock that decides about leases; `None`: each commit's own time.
    pub(super) now: Option<i64>,
}

/// A task whose row is written when the batch ends: once, however many of its commits are in the batch.
#[derive(Debug)]
struct Touched<'b> {
    task_id: &'b TaskId,
    is_new: bool,
    /// The head as the last commit that had one made it, with its failures written out.
    head: Option<(&'b TaskHead, Option<&'b str>)>,
    /// Whether a status message is stored that nothing replaces.
    had_status: bool,
    had_renewed: bool,
    had_pushes: bool,
    /// When its log grew.
    grown_at: Option<i64>,
    status: Option<&'b [u8]>,
    checkpoint: Option<&'b [u8]>,
}

/// How many tasks of a scope, or of one of its contexts, changed their state.
type CountKey = (Scope, Option<ContextId>);

/// The commits of one transaction, on their way to rows.
pub(super) struct Batch<'b> {
    clock: LeaseClock,
    facts: Facts<'b>,
    touched: BTreeMap<Key<'b>, Touched<'b>>,
    counts: BTreeMap<CountKey, Counts>,
    events: Events<'b>,
    messages: Messages<'b>,
    metadata: Metadata<'b>,
    accepted: Accepted<'b>,
    not_accepted: NotAccepted<'b>,
    pushes: Pushes<'b>,
    joined_line: i64,
}

/// What a transaction made besides its rows.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) marks: Vec<TaskMark>,
    /// Whether a task waits for a worker now.
    pub(super) due: bool,
    /// How many more tasks than before are in line.
    pub(super) joined_line: i64,
}

impl<'b> Batch<'b> {
    pub(super) fn new(clock: LeaseClock, facts: Facts<'b>) -> Self {
        Self {
            clock,
            facts,
            touched: BTreeMap::new(),
            counts: BTreeMap::new(),
            events: Events::default(),
            messages: Messages::default(),
            metadata: Metadata::default(),
            accepted: Accepted::default(),
            not_accepted: NotAccepted::default(),
            pushes: Pushes::default(),
            joined_line: 0,
        }
    }

    /// Adds a commit. An error refuses it, and leaves nothing of it.
    pub(super) fn add(&mut self, encoded: &'b EncodedCommit) -> Result<Committed, StoreError> {
        let commit = &encoded.commit;
        if let Some(dedup) = &commit.dedup {
            self.refuse_repeated(dedup, commit.now)?;
        }
        let before = self.check(encoded)?;
        let after = self.write(encoded, &before);
        if let Some(dedup) = &commit.dedup {
            self.accept(&commit.task_id, dedup);
        }
        let Known { version, last_sequence, pushes, .. } = after;
        let committed = Committed { version, last_sequence, has_pushes: pushes };
        self.facts.tasks.insert(commit.task_id.as_str(), after);
        Ok(committed)
    }

    fn refuse_repeated(&self, dedup: &Dedup, now: Timestamp) -> Result<(), StoreError> {
        let known = self.facts.accepted.get(&message_key(dedup));
        match known.filter(|known| known.task_is_there && known.expires_at > now.unix_millis()) {
            Some(known) => Err(StoreError::Duplicate { task: known.task.clone(), digest: known.digest }),
            None => Ok(()),
        }
    }

    /// The task before the commit.
    fn check(&self, encoded: &'b EncodedCommit) -> Result<Known, StoreError> {
        let commit = &encoded.commit;
        let task = || commit.task_id.clone();
        let known = self.facts.tasks.get(commit.task_id.as_str());
        let known = match (&commit.expect, known) {
            (Expect::New(_), Some(_)) => return Err(StoreError::Conflict { task: task() }),
            (Expect::New(new), None) => {
                let head = commit.head.as_ref().ok_or_else(|| StoreError::corrupt("a new task without a head"))?;
                Known::new(&new.scope, head)
            }
            (_, None) if self.facts.busy.contains(commit.task_id.as_str()) => {
                return Err(StoreError::Conflict { task: task() });
            }
            (_, None) => return Err(StoreError::NotFound { task: task() }),
            (_, Some(known)) => known.clone(),
        };
        let now = self.facts.now.unwrap_or_else(|| commit.now.unix_millis());
        commit.check(known.standing(now))?;
        Ok(known)
    }

    fn write(&mut self, encoded: &'b EncodedCommit, before: &Known) -> Known {
        let commit = &encoded.commit;
        let is_new = matches!(commit.expect, Expect::New(_));
        let mut after = before.clone();
        if let Some(head) = &commit.head {
            let decided = commit.now.unix_millis();
            after.follow(head, self.clock, decided, self.facts.now.unwrap_or(decided));
            self.count(is_new, before, head.state);
            self.joined_line += i64::from(after.in_line()) - i64::from(!is_new && before.in_line());
        }
        self.write_log(encoded, before, &mut after);
        self.pushes.add(commit, before, &mut after);
        self.touch(encoded, is_new, before);
        after
    }

    fn write_log(&mut self, encoded: &'b EncodedCommit, before: &Known, after: &mut Known) {
        let commit = &encoded.commit;
        let Key { shard, id: task_id } = Key::of(&commit.task_id);
        for event in &commit.events {
            after.last_sequence += 1;
            let (sequence, kind) = (int(after.last_sequence), i16::try_from(event.kind.code()).unwrap_or(i16::MAX));
            let (time, payload) = (commit.now.unix_millis(), &*event.payload);
            self.events.push(EventRow { shard, task_id, sequence, kind, time, payload });
        }
        for (message, joins) in encoded.messages.iter().zip(&commit.messages) {
            let (ordinal, sequence) = (int(after.history), int(joins.sequence(before.last_sequence)));
            let (payload, request) = (&*message.payload, message.request.as_deref());
            self.messages.push(MessageRow { shard, task_id, ordinal, sequence, payload, request });
            after.history += 1;
        }
        if let Some(metadata) = &encoded.metadata {
            self.metadata.push(MetadataRow { shard, task_id, metadata });
        }
    }

    fn touch(&mut self, encoded: &'b EncodedCommit, is_new: bool, before: &Known) {
        let commit = &encoded.commit;
        let touched = self.touched.entry(Key::of(&commit.task_id)).or_insert_with(|| Touched {
            task_id: &commit.task_id,
            is_new,
            head: None,
            had_status: before.status,
            had_renewed: before.renewed,
            had_pushes: before.pushes,
            grown_at: None,
            status: None,
            checkpoint: None,
        });
        if let Some(head) = &commit.head {
            touched.head = Some((head, encoded.failures.as_deref()));
            touched.status = encoded.status.as_deref();
        }
        if !commit.events.is_empty() {
            touched.grown_at.get_or_insert(commit.now.unix_millis());
        }
        if let Some(checkpoint) = &commit.checkpoint {
            touched.checkpoint = Some(checkpoint);
        }
    }

    fn count(&mut self, is_new: bool, before: &Known, state: TaskState) {
        if !is_new && before.state == state {
            return;
        }
        for context in [None, Some(before.context.clone())] {
            let counts = self.counts.entry((before.scope.clone(), context)).or_default();
            counts::add(counts, state, 1);
            if !is_new {
                counts::add(counts, before.state, -1);
            }
        }
    }

    fn accept(&mut self, task: &'b TaskId, dedup: &'b Dedup) {
        let key = message_key(dedup);
        let expires_at = columns::ceil_millis(dedup.expires_at);
        let accepted = AcceptedBefore { task: task.clone(), digest: dedup.digest, expires_at, task_is_there: true };
        let (shard, tenant, owner, message_id) = key;
        // One before it is forgotten, or its task is gone.
        if self.facts.accepted.insert(key, accepted).is_some() {
            self.not_accepted.push(AcceptedKey { shard, tenant, owner, message_id });
        }
        let (task_id, task_shard) = (task.as_str(), shards::of_task(task));
        let digest = &dedup.digest[..];
        self.accepted.push(AcceptedRow { shard, tenant, owner, message_id, task_id, task_shard, digest, expires_at });
    }

    /// Makes rows of what was added.
    pub(super) fn finish(self, batch: i64) -> (Written<'b>, Told) {
        let mut written = Written {
            events: self.events,
            messages: self.messages,
            metadata: self.metadata,
            accepted: self.accepted,
            not_accepted: self.not_accepted,
            ..Written::default()
        };
        let mut told =
            Told { marks: Vec::with_capacity(self.touched.len()), due: false, joined_line: self.joined_line };
        for (key, touched) in &self.touched {
            let Some(known) = self.facts.tasks.get(key.id) else { continue };
            let mark = TaskMark {
                task_id: touched.task_id.clone(),
                version: known.version,
                last_sequence: known.last_sequence,
            };
            told.marks.push(mark);
            told.due |= known.in_line();
            written.task(*key, touched, known);
            let left = Left { known, had_pushes: touched.had_pushes, grown_at: touched.grown_at };
            written.pushes.task(*key, &left, &self.pushes);
        }
        for ((scope, context), counts) in self.counts {
            if counts != Counts::default() {
                written.count(scope, context, counts, batch);
            }
        }
        (written, told)
    }
}

/// The rows of a batch, by kind. Those of tasks are in the order in which tasks are taken.
#[derive(Default)]
pub(super) struct Written<'b> {
    new_tasks: NewTasks<'b>,
    tasks: Tasks<'b>,
    extended: Extended<'b>,
    events: Events<'b>,
    messages: Messages<'b>,
    statuses: Statuses<'b>,
    no_statuses: NoStatuses<'b>,
    metadata: Metadata<'b>,
    checkpoints: Checkpoints<'b>,
    no_leases: NoLeases<'b>,
    not_accepted: NotAccepted<'b>,
    accepted: Accepted<'b>,
    pushes: PushRows<'b>,
    counts: CountRows<'b>,
}

impl<'b> Written<'b> {
    fn task(&mut self, key: Key<'b>, touched: &Touched<'b>, known: &Known) {
        let Key { shard, id } = key;
        if let Some(data) = touched.checkpoint {
            self.checkpoints.push(CheckpointRow { shard, task_id: id, data });
        }
        let Some((head, failures)) = touched.head else {
            let (last_sequence, history) = (int(known.last_sequence), int(known.history));
            self.extended.push(ExtendedRow { shard, id, last_sequence, history, pushes: known.pushes });
            return;
        };
        match touched.status.filter(|_| known.status) {
            Some(message) => self.statuses.push(StatusRow { shard, task_id: id, message }),
            None if touched.had_status && !known.status => self.no_statuses.push(NoStatusRow { shard, task_id: id }),
            None => {}
        }
        if touched.had_renewed && !known.renewed {
            self.no_leases.push(NoLeaseRow { shard, task_id: id });
        }
        let row = TaskRow {
            shard,
            id,
            state: small(head.state.number()),
            status_time: head.status_timestamp.unix_millis(),
            version: int(head.version),
            last_sequence: int(known.last_sequence),
            epoch: int(head.epoch),
            attempt: i64::from(head.attempt),
            leased: head.leased,
            // A renewed lease ends as its own row says.
            due_at: known.due_at.filter(|_| !known.renewed),
            cancel_requested: head.cancel_requested,
            messages: int(head.messages),
            turn_message: int(head.turn_message),
            history: int(known.history),
            status: known.status,
            compaction: i16::from(is_compactable(head.state, known.last_sequence)),
            pushes: known.pushes,
            waiting: columns::write_waiting(&head.waiting),
            failures,
            worker: columns::write_worker(&head.worker),
        };
        match touched.is_new {
            true => self.new_task(row, known),
            false => self.tasks.push(row),
        }
    }

    fn new_task(&mut self, row: TaskRow<'b>, known: &Known) {
        let (tenant, owner) = (known.scope.tenant.as_str(), known.scope.owner.as_str());
        self.new_tasks.push(NewTaskRow {
            shard: row.shard,
            id: row.id,
            tenant: tenant.to_owned().into(),
            owner: owner.to_owned().into(),
            context_id: known.context.as_str().to_owned().into(),
            state: row.state,
            status_time: row.status_time,
            version: row.version,
            last_sequence: row.last_sequence,
            epoch: row.epoch,
            attempt: row.attempt,
            leased: row.leased,
            due_at: row.due_at,
            cancel_requested: row.cancel_requested,
            messages: row.messages,
            turn_message: row.turn_message,
            history: row.history,
            status: row.status,
            compaction: row.compaction,
            pushes: row.pushes,
            waiting: row.waiting,
            failures: row.failures,
            worker: row.worker,
        });
    }

    fn count(&mut self, scope: Scope, context: Option<ContextId>, counts: Counts, batch: i64) {
        let [n1, n2, n3, n4, n5, n6, n7, n8] = counts;
        self.counts.push(CountRow {
            shard: shards::of_counts(&scope, context.as_ref()),
            tenant: scope.tenant.as_str().to_owned().into(),
            owner: scope.owner.as_str().to_owned().into(),
            context_id: context.as_ref().map_or("", ContextId::as_str).to_owned().into(),
            batch,
            n1,
            n2,
            n3,
            n4,
            n5,
            n6,
            n7,
            n8,
        });
    }

    /// The columns of each kind that has rows, in the order in which they are written.
    pub(super) fn columns(&self) -> Vec<&dyn Columns> {
        let all: [&dyn Columns; 12] = [
            &self.new_tasks,
            &self.tasks,
            &self.extended,
            &self.no_leases,
            &self.events,
            &self.messages,
            &self.statuses,
            &self.no_statuses,
            &self.metadata,
            &self.checkpoints,
            &self.not_accepted,
            &self.accepted,
        ];
        let last: [&dyn Columns; 1] = [&self.counts];
        let all = all.into_iter().chain(self.pushes.columns()).chain(last);
        all.filter(|columns| columns.len() > 0).collect()
    }
}

fn small(number: i32) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}
