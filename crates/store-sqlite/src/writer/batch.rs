use std::collections::BTreeMap;

use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp};
use longhaul_store::{Committed, Dedup, Expect, StoreError};
use rusqlite::params;

use super::Renewal;
use super::change::Change;
use super::transaction::{Known, Writer};
use crate::fault::Fault;
use crate::layout::{self, Compaction, int};
use crate::reader::row;
use longhaul_store::EncodedCommit;

/// How many expired keys of accepted messages a batch removes, besides two for each that it adds.
const FORGOTTEN_MIN: i64 = 8;

/// When a new task's id is found to be taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Existence {
    /// By the insert: costs nothing, and undoes the batch in the rare case.
    FoundAtTheEnd,
    /// By a look before anything is written.
    AskedBefore,
}

/// What a batch is made of.
#[derive(Clone, Copy)]
pub(super) enum Work<'b> {
    Commit(&'b EncodedCommit),
    Renew(&'b Renewal),
    Change(&'b dyn Change),
}

/// What became of a piece of work.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The error refuses the commit, before anything of it was written.
    Committed(Result<Committed, StoreError>),
    /// The tasks whose lease is over.
    Renewed(Vec<TaskId>),
    /// The change has its answer.
    Changed,
}

/// How many tasks came to be in each state, less those that left it.
type Counts = [i64; 8];

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum ContextKey<'b> {
    Number(i64),
    Name(i64, &'b ContextId),
}

/// A task whose row has to be written when the batch ends: once, however many of its commits are in the batch.
struct Touched<'b> {
    id: &'b TaskId,
    is_new: bool,
    /// The head as the last commit that had one made it.
    head: Option<Changed<'b>>,
    renewed: bool,
    /// When the last of its commits that appended to the log was made.
    appended: Option<Timestamp>,
    known: Known,
}

/// A head with what was written out of it.
#[derive(Clone, Copy)]
struct Changed<'b> {
    head: &'b TaskHead,
    failures: Option<&'b str>,
}

/// The commits of one transaction. Events and messages are written as they come; rows that many commits share (a
/// task's, its context's, its scope's) are written once, at the end, in the order of their keys.
pub(crate) struct Batch<'w, 'c, 'b> {
    pub(super) writer: &'w mut Writer<'c>,
    existence: Existence,
    touched: BTreeMap<i64, Touched<'b>>,
    contexts: BTreeMap<ContextKey<'b>, Counts>,
    scopes: BTreeMap<i64, Counts>,
    accepted: i64,
    now: Option<Timestamp>,
}

impl<'w, 'c, 'b> Batch<'w, 'c, 'b> {
    pub(super) fn new(writer: &'w mut Writer<'c>, existence: Existence) -> Self {
        let (touched, contexts, scopes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { writer, existence, touched, contexts, scopes, accepted: 0, now: None }
    }

    /// Adds a piece of work.
    pub(super) fn add(&mut self, work: Work<'b>) -> Result<Outcome, Fault> {
        match work {
            Work::Commit(commit) => Ok(Outcome::Committed(self.commit(commit)?)),
            Work::Renew(renewal) => Ok(Outcome::Renewed(self.renew(renewal)?)),
            Work::Change(change) => change.make(self).map(|()| Outcome::Changed),
        }
    }

    /// Moves the ends of leases that are alive.
    fn renew(&mut self, renewal: &'b Renewal) -> Result<Vec<TaskId>, Fault> {
        let mut lost = Vec::new();
        for lease in &renewal.leases {
            let id = &lease.task_id;
            match self.writer.known(id)?.filter(|known| known.holds_lease(lease.epoch, renewal.now)) {
                None => lost.push(id.clone()),
                Some(known) => {
                    let known = Known { due_at: Some(renewal.until.unix_millis()), ..known };
                    self.writer.heads.insert(id.clone(), known);
                    let new = Touched { id, is_new: false, head: None, renewed: true, appended: None, known };
                    let touched = self.touched.entry(known.number).or_insert(new);
                    (touched.known, touched.renewed) = (known, true);
                }
            }
        }
        Ok(lost)
    }

    fn commit(&mut self, encoded: &'b EncodedCommit) -> Result<Result<Committed, StoreError>, Fault> {
        let commit = &encoded.commit;
        self.now = self.now.max(Some(commit.now));
        let dedup_scope = match &commit.dedup {
            None => None,
            Some(dedup) => {
                let scope = self.writer.scope(&dedup.scope)?;
                if let Some(duplicate) = self.find_accepted(scope, dedup, commit.now)? {
                    return Ok(Err(duplicate));
                }
                Some(scope)
            }
        };
        let before = match self.check(encoded)? {
            Ok(before) => before,
            Err(refused) => return Ok(Err(refused)),
        };
        let after = self.write(encoded, before)?;
        if let (Some(dedup), Some(scope)) = (&commit.dedup, dedup_scope) {
            self.accept(scope, &commit.task_id, dedup)?;
        }
        Ok(Ok(Committed { version: after.version, last_sequence: after.last_sequence, has_pushes: after.pushes }))
    }

    /// The task before the commit, or why the commit is refused.
    fn check(&mut self, encoded: &'b EncodedCommit) -> Result<Result<Known, StoreError>, Fault> {
        let commit = &encoded.commit;
        let task = &commit.task_id;
        let known = match &commit.expect {
            Expect::New(new) => {
                let Some(head) = &commit.head else { return Ok(Err(StoreError::corrupt("a new task without a head"))) };
                let taken = match self.existence {
                    Existence::FoundAtTheEnd => self.writer.heads.get(task).is_some(),
                    Existence::AskedBefore => self.writer.known(task)?.is_some(),
                };
                if taken {
                    return Ok(Err(StoreError::Conflict { task: task.clone() }));
                }
                let scope = self.writer.scope(&new.scope)?;
                Known::new(self.writer.take_number()?, scope, head)
            }
            Expect::Version(_) | Expect::Unheld(_) | Expect::LeaseAndVersion { .. } | Expect::Lease { .. } => {
                match self.writer.known(task)? {
                    None => return Ok(Err(StoreError::NotFound { task: task.clone() })),
                    Some(known) => known,
                }
            }
        };
        if let Err(refused) = commit.check(known.standing(commit.now)) {
            return Ok(Err(refused));
        }
        let last_sequence = known.last_sequence + commit.events.len() as u64;
        let history = known.history + commit.messages.len() as u64;
        if last_sequence > layout::PLACE_MAX || history > layout::PLACE_MAX {
            return Ok(Err(StoreError::LogFull { task: task.clone(), events_max: layout::PLACE_MAX }));
        }
        Ok(Ok(known))
    }

    fn write(&mut self, encoded: &'b EncodedCommit, before: Known) -> Result<Known, Fault> {
        let commit = &encoded.commit;
        let is_new = matches!(commit.expect, Expect::New(_));
        let mut after = before;
        if let Some(head) = &commit.head {
            after.follow(head);
            self.count(is_new, &before, head);
            let was_in_line = !is_new && before.in_line();
            self.writer.joined_line += i64::from(after.in_line()) - i64::from(was_in_line);
        }
        self.write_rows(encoded, &before, &mut after)?;
        self.add_pushes(commit, &before, &mut after)?;
        self.writer.heads.insert(commit.task_id.clone(), after);
        let id = &commit.task_id;
        let new = Touched { id, is_new, head: None, renewed: false, appended: None, known: after };
        let touched = self.touched.entry(after.number).or_insert(new);
        touched.known = after;
        if !commit.events.is_empty() {
            touched.appended = touched.appended.max(Some(commit.now));
        }
        if let Some(head) = &commit.head {
            touched.head = Some(Changed { head, failures: encoded.failures.as_deref() });
        }
        Ok(after)
    }

    /// Writes the rows that are this commit's alone.
    fn write_rows(&mut self, encoded: &EncodedCommit, before: &Known, after: &mut Known) -> Result<(), Fault> {
        let statements = &mut self.writer.statements;
        let (number, now) = (after.number, encoded.commit.now.unix_millis());
        for event in &encoded.commit.events {
            after.last_sequence += 1;
            let key = layout::key(number, after.last_sequence);
            statements.insert_event.execute(params![key, event.kind.code(), now, &*event.payload])?;
        }
        for (message, joins) in encoded.messages.iter().zip(&encoded.commit.messages) {
            let key = layout::key(number, after.history);
            let (sequence, request) = (int(joins.sequence(before.last_sequence)), message.request.as_deref());
            statements.insert_message.execute(params![key, sequence, &*message.payload, request])?;
            after.history += 1;
        }
        if let Some(status) = &encoded.status {
            statements.put_status.execute(params![number, &**status])?;
        } else if before.status && !after.status {
            statements.remove_status.execute([number])?;
        }
        if let Some(metadata) = &encoded.metadata {
            statements.put_metadata.execute(params![number, metadata])?;
        }
        if let Some(checkpoint) = &encoded.commit.checkpoint {
            statements.put_checkpoint.execute(params![number, &**checkpoint])?;
        }
        Ok(())
    }

    fn count(&mut self, is_new: bool, before: &Known, head: &'b TaskHead) {
        if !is_new && before.state == head.state {
            return;
        }
        let context = before.context.map_or(ContextKey::Name(before.scope, &head.context_id), ContextKey::Number);
        for counts in [self.contexts.entry(context).or_default(), self.scopes.entry(before.scope).or_default()] {
            add(counts, head.state, 1);
            if !is_new {
                add(counts, before.state, -1);
            }
        }
    }

    fn find_accepted(&mut self, scope: i64, dedup: &Dedup, now: Timestamp) -> Result<Option<StoreError>, Fault> {
        let wanted = params![scope, dedup.message_id.as_str(), now.unix_millis()];
        let mut rows = self.writer.statements.find_accepted.query(wanted)?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (task, digest) = row::accepted(row)?;
        drop(rows);
        if self.writer.known(&task)?.is_none() {
            return Ok(None);
        }
        Ok(Some(StoreError::Duplicate { task, digest }))
    }

    fn accept(&mut self, scope: i64, task: &TaskId, dedup: &Dedup) -> Result<(), Fault> {
        self.accepted += 1;
        let expires_at = layout::ceil_millis(dedup.expires_at);
        let row = params![scope, dedup.message_id.as_str(), task.as_str(), dedup.digest, expires_at];
        self.writer.statements.put_accepted.execute(row)?;
        Ok(())
    }

    /// Notes that a task has push configs, or none, where its row may not be written yet.
    pub(super) fn set_pushes(&mut self, id: &TaskId, known: &Known, pushes: bool) -> Result<(), Fault> {
        self.writer.heads.insert(id.clone(), Known { pushes, ..*known });
        if let Some(touched) = self.touched.get_mut(&known.number) {
            touched.known.pushes = pushes;
        }
        self.writer.statements.set_pushes.execute(params![known.number, pushes])?;
        Ok(())
    }

    /// Writes the rows that commits share.
    pub(super) fn finish(mut self) -> Result<(), Fault> {
        for (scope, counts) in std::mem::take(&mut self.scopes) {
            let [n1, n2, n3, n4, n5, n6, n7, n8] = counts;
            self.writer.statements.count_in_scope.execute(params![scope, n1, n2, n3, n4, n5, n6, n7, n8])?;
        }
        let named = self.write_contexts()?;
        for touched in std::mem::take(&mut self.touched).into_values() {
            if let Some(now) = touched.appended.filter(|_| touched.known.pushes) {
                let row = params![touched.id.as_str(), int(touched.known.last_sequence), now.unix_millis()];
                self.writer.statements.push_appended.execute(row)?;
            }
            self.write_task(touched, &named)?;
        }
        if let Some(now) = self.now.filter(|_| self.accepted > 0) {
            let limit = FORGOTTEN_MIN + 2 * self.accepted;
            self.writer.statements.forget_accepted.execute(params![now.unix_millis(), limit])?;
        }
        Ok(())
    }

    /// Answers the numbers of the contexts that were known by name only.
    fn write_contexts(&mut self) -> Result<BTreeMap<(i64, &'b ContextId), i64>, Fault> {
        let statements = &mut self.writer.statements;
        let mut named = BTreeMap::new();
        for (context, [n1, n2, n3, n4, n5, n6, n7, n8]) in std::mem::take(&mut self.contexts) {
            match context {
                ContextKey::Number(number) => {
                    statements.count_in_context.execute(params![number, n1, n2, n3, n4, n5, n6, n7, n8])?;
                }
                ContextKey::Name(scope, id) => {
                    let row = params![scope, id.as_str(), n1, n2, n3, n4, n5, n6, n7, n8];
                    let number = statements.count_in_named_context.query_row(row, |row| row.get(0))?;
                    named.insert((scope, id), number);
                }
            }
        }
        Ok(named)
    }

    fn write_task(&mut self, touched: Touched<'b>, named: &BTreeMap<(i64, &'b ContextId), i64>) -> Result<(), Fault> {
        let Touched { id, is_new, head, renewed, mut known, .. } = touched;
        let Some(Changed { head, failures }) = head else {
            let (sequence, history) = (int(known.last_sequence), int(known.history));
            if renewed {
                let row = params![known.number, sequence, history, known.due_at];
                self.writer.statements.renew_task.execute(row)?;
            } else {
                self.writer.statements.extend_task.execute(params![known.number, sequence, history])?;
            }
            return Ok(());
        };
        if is_new {
            known.context = named.get(&(known.scope, &head.context_id)).copied();
            self.insert_task(id, head, failures, &known)?;
            self.writer.heads.insert(id.clone(), known);
            return Ok(());
        }
        if head.state.is_terminal() {
            // Nothing more will be written to it, so it need not be remembered.
            self.writer.heads.remove(id);
        }
        self.writer.statements.update_task.execute(params![
            known.number,
            head.state.number(),
            head.status_timestamp.unix_millis(),
            int(head.version),
            int(known.last_sequence),
            int(head.epoch),
            head.attempt,
            head.leased,
            known.due_at,
            head.cancel_requested,
            int(head.messages),
            int(head.turn_message),
            int(known.history),
            known.status,
            layout::write_waiting(&head.waiting),
            failures,
            layout::write_worker(&head.worker),
            Compaction::of_head(head.state, known.last_sequence),
        ])?;
        Ok(())
    }

    fn insert_task(
        &mut self,
        id: &TaskId,
        head: &TaskHead,
        failures: Option<&str>,
        known: &Known,
    ) -> Result<(), Fault> {
        let Some(context) = known.context else {
            return Err(StoreError::corrupt(format!("task {id} changed its context")).into());
        };
        let inserted = self.writer.statements.insert_task.execute(params![
            known.number,
            id.as_str(),
            known.scope,
            context,
            head.state.number(),
            head.status_timestamp.unix_millis(),
            int(head.version),
            int(known.last_sequence),
            int(head.epoch),
            head.attempt,
            head.leased,
            known.due_at,
            head.cancel_requested,
            int(head.messages),
            int(head.turn_message),
            int(known.history),
            known.status,
            layout::write_waiting(&head.waiting),
            failures,
            layout::write_worker(&head.worker),
            Compaction::of_head(head.state, known.last_sequence),
            known.pushes,
        ])?;
        // Undoes the batch; its commits are then made one by one, with a look before.
        if inserted == 0 { Err(StoreError::Conflict { task: id.clone() }.into()) } else { Ok(()) }
    }
}

fn add(counts: &mut Counts, state: TaskState, by: i64) {
    let place = usize::try_from(state.number() - 1).unwrap_or_default();
    if let Some(count) = counts.get_mut(place) {
        *count += by;
    }
}
