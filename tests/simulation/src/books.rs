use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use longhaul_lifecycle::{ArtifactLedger, AttemptOutcome, TaskHead, WorkerId};
use longhaul_protocol::{ArtifactId, MessageId, Role, TaskId, TaskState};
use longhaul_store::{Commit, Committed, EventKind, Expect, Scope, artifact_update};

use crate::entries::Renewed;
use crate::{Promise, Trace};

/// What the store must hold by what it answered, kept apart from it: each commit is checked against the promises as it is
/// accepted, and the store against the books in the end.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub tasks: BTreeMap<TaskId, Book>,
    /// The tasks in the order in which they were made.
    pub order: Vec<TaskId>,
    /// How often a turn may be tried.
    pub attempts_max: u32,
    /// Messages that agents have read from their inboxes.
    pub read: BTreeSet<(TaskId, MessageId)>,
    /// Messages on which agents were run.
    pub run: BTreeSet<(TaskId, MessageId)>,
    /// What agents wrote and the engine took, by run, in order.
    pub runs: BTreeMap<u64, Vec<String>>,
}

/// What is known of one task.
#[derive(Debug)]
pub(crate) struct Book {
    pub scope: Scope,
    pub head: TaskHead,
    pub lease: Option<Lease>,
    pub log: Vec<(EventKind, Bytes)>,
    pub messages: Vec<(MessageId, Role)>,
    pub checkpoint: Option<Bytes>,
    /// Ordinals of messages on which a turn was to run that asked for an authorization: another message may take their place.
    pub asked_for_authorization: BTreeSet<u64>,
    ledger: ArtifactLedger,
}

/// A lease as the store has granted it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    pub epoch: u64,
    /// The instance that took it.
    pub by: u64,
    /// In milliseconds since the epoch.
    pub until: i64,
}

impl Books {
    /// An agent begins to run on a message. Answers the number of the run.
    pub fn begin_run(&mut self, task: TaskId, message: MessageId) -> u64 {
        self.run.insert((task, message));
        let run = self.runs.len() as u64 + 1;
        self.runs.insert(run, Vec::new());
        run
    }

    /// The engine took what an agent said.
    pub fn said(&mut self, run: u64, word: String) {
        self.runs.entry(run).or_default().push(word);
    }

    /// A commit was accepted.
    pub fn enter(&mut self, trace: &Trace, by: u64, commit: &Commit, committed: Committed) {
        let id = commit.task_id.clone();
        let now = commit.now.unix_millis();
        if let (Expect::New(new), Some(head)) = (&commit.expect, &commit.head) {
            if self.tasks.contains_key(&id) {
                trace.broken(Promise::OneOrder, format!("task {id} was made twice"));
                return;
            }
            if commit.events.first().map(|event| event.kind) != Some(EventKind::Created) {
                trace.broken(Promise::OneOrder, format!("the log of task {id} does not begin with its creation"));
            }
            let book = Book {
                scope: new.scope.clone(),
                head: TaskHead {
                    last_sequence: 0,
                    version: 0,
                    epoch: 0,
                    leased: false,
                    worker: WorkerId::default(),
                    messages: 0,
                    waiting: Vec::new(),
                    ..head.clone()
                },
                lease: None,
                log: Vec::new(),
                messages: Vec::new(),
                checkpoint: None,
                asked_for_authorization: BTreeSet::new(),
                ledger: ArtifactLedger::default(),
            };
            trace.count("tasks");
            self.order.push(id.clone());
            self.tasks.insert(id.clone(), book);
        }
        trace.count("commits");
        let attempts_max = self.attempts_max;
        let Some(book) = self.tasks.get_mut(&id) else {
            trace.broken(Promise::OneOrder, format!("a commit of task {id}, which nobody made, was accepted"));
            return;
        };
        book.check_writer(trace, by, &id, commit, now);
        book.log_events(trace, &id, commit, committed);
        for message in &commit.messages {
            book.messages.push((message.message.id().clone(), message.message.role()));
        }
        if let Some(checkpoint) = &commit.checkpoint {
            book.checkpoint = Some(checkpoint.clone());
        }
        if let Some(head) = &commit.head {
            let read = |ordinal: u64| {
                let message = usize::try_from(ordinal).ok().and_then(|place| book.messages.get(place));
                message.is_some_and(|(message, _)| self.read.contains(&(id.clone(), message.clone())))
            };
            for ordinal in book.head.waiting.iter().filter(|ordinal| !head.waiting.contains(ordinal)) {
                if !(head.state.is_terminal() || head.turn_message == *ordinal || read(*ordinal)) {
                    trace.broken(Promise::Kept, format!("message {ordinal} of task {id} was in line and is forgotten"));
                }
            }
            book.check_head(trace, by, &id, head, attempts_max, now);
            let last_sequence = book.log.len() as u64;
            book.head = TaskHead { last_sequence, ..head.clone() };
            if head.state == TaskState::AuthRequired {
                book.asked_for_authorization.insert(head.turn_message);
            }
        }
        book.head.last_sequence = book.log.len() as u64;
    }

    /// A lease was renewed. Answers whether it is alive, as it has to be.
    pub fn renew(&mut self, renewed: &Renewed) -> bool {
        let Renewed { by, lease, now, until } = renewed;
        let known = self.tasks.get_mut(&lease.task_id).and_then(|book| book.lease.as_mut());
        let alive = known.filter(|alive| alive.epoch == lease.epoch && alive.by == *by && alive.until > *now);
        alive.map(|alive| alive.until = *until).is_some()
    }

    /// All leases were let run out.
    pub fn expired(&mut self, now: i64) {
        for book in self.tasks.values_mut() {
            if let Some(lease) = book.lease.as_mut().filter(|lease| lease.until > now) {
                lease.until = now;
                book.head.version += 1;
            }
        }
    }
}

impl Book {
    fn check_writer(&self, trace: &Trace, by: u64, id: &TaskId, commit: &Commit, now: i64) {
        let (epoch, version) = match commit.expect {
            Expect::New(_) => (None, None),
            Expect::Version(version) | Expect::Unheld(version) => (None, Some(version)),
            Expect::LeaseAndVersion { epoch, version } => (Some(epoch), Some(version)),
            Expect::Lease { epoch, .. } => (Some(epoch), None),
        };
        if self.head.state.is_terminal() && !matches!(commit.expect, Expect::New(_)) {
            trace.broken(Promise::Final, format!("task {id} has ended, and was written to: {:?}", commit.expect));
        }
        let alive = self.lease.filter(|lease| lease.until > now);
        let ends_as_lost = |head: &TaskHead| {
            let noted = head.failures.iter().any(|end| {
                end.how == AttemptOutcome::LeaseExpired && alive.is_some_and(|lease| lease.epoch == end.epoch)
            });
            noted || (head.state == TaskState::Failed && alive.is_some())
        };
        if epoch.is_none() && commit.head.as_ref().is_some_and(ends_as_lost) {
            trace.broken(Promise::Fenced, format!("the worker of task {id} was given up, and its lease is alive"));
        }
        if let Some(epoch) = epoch
            && !alive.is_some_and(|lease| lease.epoch == epoch && lease.by == by)
        {
            let held = self.lease.map(|lease| (lease.epoch, lease.by, lease.until - now));
            trace.broken(
                Promise::Fenced,
                format!("task {id} was written to by {by} under epoch {epoch}, while the lease (epoch, instance, ms left) is {held:?}"),
            );
        }
        if let Some(version) = version
            && version != self.head.version
        {
            let current = self.head.version;
            trace.broken(
                Promise::OneOrder,
                format!("task {id} was changed on version {version}, while it stands at {current}"),
            );
        }
    }

    fn log_events(&mut self, trace: &Trace, id: &TaskId, commit: &Commit, committed: Committed) {
        for event in &commit.events {
            if self.log.last().is_some_and(|(kind, _)| kind.is_terminal()) {
                trace.broken(Promise::Final, format!("task {id} got an event after its end: {:?}", event.kind));
            }
            let sequence = self.log.len() as u64 + 1;
            match artifact_update(event.kind, sequence, &event.payload) {
                Ok(None) => {}
                Ok(Some(update)) => {
                    let artifact = update.artifact.unwrap_or_default();
                    let applied = ArtifactId::new(&artifact.artifact_id).map_err(|error| error.to_string()).and_then(
                        |artifact| {
                            self.ledger
                                .apply(&artifact, update.append, update.last_chunk)
                                .map_err(|error| error.to_string())
                        },
                    );
                    if let Err(error) = applied {
                        trace.broken(Promise::OneOrder, format!("event {sequence} of task {id}: {error}"));
                    }
                }
                Err(error) => trace.broken(Promise::Sound, format!("event {sequence} of task {id}: {error}")),
            }
            self.log.push((event.kind, event.payload.clone()));
        }
        let (told, counted) = (committed.last_sequence, self.log.len() as u64);
        if told != counted {
            trace.broken(
                Promise::OneOrder,
                format!("the log of task {id} holds {counted} events, and the store says {told}"),
            );
        }
    }

    fn check_head(&mut self, trace: &Trace, by: u64, id: &TaskId, head: &TaskHead, attempts_max: u32, now: i64) {
        let broken = |promise, what: String| trace.broken(promise, format!("task {id}: {what}"));
        if head.version <= self.head.version {
            broken(Promise::OneOrder, format!("version {} comes after {}", head.version, self.head.version));
        }
        if head.messages != self.messages.len() as u64 {
            broken(
                Promise::Kept,
                format!("{} messages are counted, and {} are stored", head.messages, self.messages.len()),
            );
        }
        if self.head.leased && !head.leased && head.state == TaskState::Working {
            trace.count("turns handed back or to be tried again");
        }
        if head.state.is_terminal() || head.state.is_interrupted() {
            trace.count(match head.state {
                TaskState::Completed => "tasks completed",
                TaskState::Failed => "tasks failed",
                TaskState::Canceled => "tasks canceled",
                TaskState::Rejected => "tasks rejected",
                _ => "questions",
            });
        }
        if head.attempt > attempts_max {
            broken(Promise::ComesToRest, format!("attempt {} of {attempts_max}", head.attempt));
        }
        if head.epoch < self.head.epoch || head.epoch > self.head.epoch + 1 {
            broken(Promise::Fenced, format!("epoch {} comes after {}", head.epoch, self.head.epoch));
        }
        let due = head.due_at.map(longhaul_protocol::Timestamp::unix_millis);
        if head.epoch != self.head.epoch {
            trace.count("leases");
            if self.head.leased {
                trace.count("leases taken over");
            }
            if let Some(lease) = self.lease.filter(|lease| lease.until > now) {
                broken(Promise::Fenced, format!("the lease of epoch {} was taken while it is alive", lease.epoch));
            }
            self.lease = None;
        }
        self.lease = match (head.leased, due) {
            (true, Some(until)) => {
                let until = self.lease.map_or(until, |lease| until.max(lease.until));
                let by = self.lease.map_or(by, |lease| lease.by);
                Some(Lease { epoch: head.epoch, by, until })
            }
            (true, None) => {
                broken(Promise::ComesToRest, "a lease that never runs out".to_owned());
                None
            }
            (false, _) => None,
        };
        let due = due.is_some();
        let question = head.status_message.is_some();
        // Ended, waiting with its question, leased, or in line: there is no fifth case.
        let rests = match head.state {
            TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected => {
                !head.leased && !due && head.waiting.is_empty()
            }
            TaskState::InputRequired => !head.leased && !due && question && head.waiting.is_empty(),
            TaskState::AuthRequired => !head.leased && question && head.waiting.is_empty(),
            TaskState::Submitted => !head.leased && due,
            TaskState::Working => due,
        };
        if !rests {
            broken(Promise::ComesToRest, format!("neither at rest nor in work: {head:?}"));
        }
    }
}
