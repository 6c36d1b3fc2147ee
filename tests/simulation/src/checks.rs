//! What must hold in the end, when nothing fails any more and everything is at rest.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use longhaul_engine::{EngineError, HistoryLimit, StreamItem};
use longhaul_protocol::{Role, TaskId, TaskState, json, wire};
use longhaul_store::{EventKind, ListQuery, Scope, Snapshot, SnapshotQuery, Store, StoreError, StoredEvent};

use crate::agent::end_of;
use crate::books::Book;
use crate::callers::{Answer, Asked, Call, Callers};
use crate::store::Shared;
use crate::{Mode, Promise};

/// Checks the store against the books, and what callers were told against the store.
pub(crate) fn at_the_end(shared: &Shared, store: &dyn Store, callers: &Callers, lives: impl Fn(u64) -> bool) {
    let check = Check { shared, store, moments: RefCell::default(), logs: RefCell::default() };
    shared.books(|books| {
        for (id, book) in &books.tasks {
            check.task(id, book);
            check.messages(id, book, &books.read, &books.run);
            check.words(id, book, &books.runs);
        }
        for (number, call) in callers.calls().iter().enumerate() {
            check.call(number, call, &books.tasks, lives(call.instance));
        }
        check.retries(&callers.calls());
        check.lists(&books.tasks);
    });
    check.line();
}

/// Whether a call without an answer may wait although everything is at rest: streams that stay open.
pub(crate) fn may_wait(shared: &Shared, call: &Call) -> bool {
    shared.books(|books| {
        let Some(book) = task_of(call).and_then(|id| books.tasks.get(&id)) else { return false };
        // Who hears of an event only by the sweep is behind for a while.
        let last = call.items.last().and_then(|item| item.sequence);
        last == Some(book.log.len() as u64) && stays_open(call, book.head.state)
    })
}

fn stays_open(call: &Call, state: TaskState) -> bool {
    match &call.asked {
        Asked::Subscribe { .. } => state.is_interrupted(),
        Asked::Send { mode: Mode::Stream, .. } => state == TaskState::AuthRequired,
        Asked::Send { .. } | Asked::Cancel { .. } | Asked::Read { .. } | Asked::Resume { .. } | Asked::Snoop { .. } => {
            false
        }
    }
}

/// The task that a call is about, as far as its caller knows.
fn task_of(call: &Call) -> Option<TaskId> {
    let told = |task: &wire::Task| TaskId::new(&task.id).ok();
    if let Some(Answer::Task(task)) = &call.answer {
        return told(task);
    }
    if let Some(task) = call.items.first().and_then(task_in) {
        return told(&task);
    }
    match &call.asked {
        Asked::Send { letter, .. } => letter.task.clone(),
        Asked::Cancel { task, .. }
        | Asked::Subscribe { task, .. }
        | Asked::Read { task, .. }
        | Asked::Resume { task, .. }
        | Asked::Snoop { task, .. } => Some(task.clone()),
    }
}

fn task_in(item: &StreamItem) -> Option<wire::Task> {
    let response: wire::StreamResponse = json::from_json(&item.payload).ok()?;
    match response.payload {
        Some(wire::StreamResponsePayload::Task(task)) => Some(task),
        _ => None,
    }
}

fn text_of(message: Option<&wire::Message>) -> String {
    message.map(|message| message.parts.iter().filter_map(wire::Part::as_text).collect()).unwrap_or_default()
}

/// How many events are read at once, to see that what is read in parts is the whole.
const READ_MAX: usize = 10;

/// Tasks as they stood at a moment, or stand now.
type Moments = BTreeMap<(TaskId, Option<u64>), Option<Rc<Snapshot>>>;

struct Check<'a> {
    shared: &'a Shared,
    store: &'a dyn Store,
    /// What was read already.
    moments: RefCell<Moments>,
    logs: RefCell<BTreeMap<TaskId, Rc<Vec<StoredEvent>>>>,
}

impl Check<'_> {
    fn broken(&self, promise: Promise, what: impl Into<String>) {
        self.shared.trace.broken(promise, what);
    }

    /// What is read; `None`, and noted, when it can't be.
    fn read<T>(&self, what: &str, call: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
        match self.shared.calls.wait(call) {
            Ok(read) => Some(read),
            Err(error) => {
                self.broken(Promise::Sound, format!("{what} can't be read: {error}"));
                None
            }
        }
    }

    fn snapshot(&self, id: &TaskId, book: &Book, at: Option<u64>) -> Option<Rc<Snapshot>> {
        let key = (id.clone(), at);
        if let Some(known) = self.moments.borrow().get(&key) {
            return known.clone();
        }
        let query = SnapshotQuery { at, history: HistoryLimit::All, artifacts: true };
        let read = self.read(&format!("task {id}"), self.store.snapshot(&book.scope, id, query));
        let read = read.flatten().map(Rc::new);
        self.moments.borrow_mut().insert(key, read.clone());
        read
    }

    fn log(&self, id: &TaskId) -> Rc<Vec<StoredEvent>> {
        if let Some(known) = self.logs.borrow().get(id) {
            return Rc::clone(known);
        }
        let mut log = Vec::new();
        loop {
            let after = log.last().map_or(0, |event: &StoredEvent| event.sequence);
            let read = self.read(&format!("the log of task {id}"), self.store.events_after(id, after, READ_MAX));
            let read = read.unwrap_or_default();
            let is_last = read.len() < READ_MAX;
            log.extend(read);
            if is_last {
                break;
            }
        }
        let log = Rc::new(log);
        self.logs.borrow_mut().insert(id.clone(), Rc::clone(&log));
        log
    }

    /// The lists of an owner hold its tasks, and count them.
    fn lists(&self, tasks: &BTreeMap<TaskId, Book>) {
        let mut owned: BTreeMap<&Scope, BTreeMap<Option<TaskState>, BTreeSet<&str>>> = BTreeMap::new();
        for (id, book) in tasks {
            let lists = owned.entry(&book.scope).or_default();
            lists.entry(None).or_default().insert(id.as_str());
            lists.entry(Some(book.head.state)).or_default().insert(id.as_str());
        }
        for (scope, lists) in owned {
            for (state, expected) in lists {
                let query = ListQuery {
                    scope: scope.clone(),
                    context_id: None,
                    state,
                    status_timestamp_after: None,
                    after: None,
                    page_size: tasks.len(),
                    history: HistoryLimit::Latest(0),
                    artifacts: false,
                };
                let Some(page) = self.read("a list", self.store.list(query)) else { continue };
                let listed: BTreeSet<&str> = page.tasks.iter().map(|task| task.id.as_str()).collect();
                if listed != expected || page.total != expected.len() as u64 {
                    let (owner, total) = (scope.owner.as_str(), page.total);
                    let what =
                        format!("{owner} has {expected:?} in state {state:?}, listed are {listed:?}, counted {total}");
                    self.broken(Promise::ToldWhatIsStored, what);
                }
            }
        }
    }

    /// Nothing is due or in line, now that everything is at rest.
    fn line(&self) {
        let waiting = self.read("who is in line", self.store.backlog());
        let due = self.read("what is due", self.store.next_due());
        if (waiting, due) != (Some(0), Some(None)) {
            self.broken(Promise::ComesToRest, format!("all is at rest, and in line are {waiting:?}, due is {due:?}"));
        }
    }

    /// The store holds what it said, and the task is at rest.
    fn task(&self, id: &TaskId, book: &Book) {
        let Some(snapshot) = self.snapshot(id, book, None) else {
            self.broken(Promise::Kept, format!("task {id} was accepted and is gone"));
            return;
        };
        let (stored, head) = (&snapshot.head, &book.head);
        if (stored.version, stored.epoch, stored.state, stored.last_sequence)
            != (head.version, head.epoch, head.state, head.last_sequence)
        {
            self.broken(
                Promise::ToldWhatIsStored,
                format!("task {id} is stored as {stored:?}, and was told as {head:?}"),
            );
        }
        let log = self.log(id);
        if log.len() != book.log.len()
            || log.iter().zip(&book.log).any(|(stored, told)| (stored.kind, &stored.payload) != (told.0, &told.1))
        {
            self.broken(Promise::ToldWhatIsStored, format!("the log of task {id} is not what the store said it is"));
        }
        if log.iter().zip(1..).any(|(event, number)| event.sequence != number) {
            self.broken(Promise::OneOrder, format!("the log of task {id} has a gap"));
        }
        if log.iter().filter(|event| event.kind.is_terminal()).count() > 1 {
            self.broken(Promise::Final, format!("task {id} ended more than once"));
        }
        if !stored.rests() || stored.due_at.is_some() || stored.leased {
            self.broken(Promise::ComesToRest, format!("task {id} does not come to rest: {stored:?}"));
        }
    }

    /// No message is forgotten: an agent was run on each, or read it, unless the task had ended before.
    fn messages(
        &self,
        id: &TaskId,
        book: &Book,
        read: &BTreeSet<(TaskId, longhaul_protocol::MessageId)>,
        run: &BTreeSet<(TaskId, longhaul_protocol::MessageId)>,
    ) {
        if book.head.state.is_terminal() {
            return;
        }
        for (ordinal, (message, role)) in (0..).zip(&book.messages) {
            let key = (id.clone(), message.clone());
            let worked = *role != Role::User || read.contains(&key) || run.contains(&key);
            if !worked && !book.asked_for_authorization.contains(&ordinal) {
                self.broken(Promise::Kept, format!("message {message} of task {id} was never worked on"));
            }
        }
    }

    /// What agents said is in the log once and in order, and all of it if the run's outcome is.
    fn words(&self, id: &TaskId, book: &Book, runs: &BTreeMap<u64, Vec<String>>) {
        let mut said: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        let mut ended = BTreeSet::new();
        for (_, payload) in &book.log {
            let Ok(response) = json::from_json::<wire::StreamResponse>(payload) else {
                self.broken(Promise::Sound, format!("an event of task {id} can't be read"));
                continue;
            };
            let word = match response.payload {
                Some(wire::StreamResponsePayload::StatusUpdate(update)) => {
                    text_of(update.status.and_then(|status| status.message).as_ref())
                }
                Some(wire::StreamResponsePayload::ArtifactUpdate(update)) => update
                    .artifact
                    .map(|artifact| artifact.parts.iter().filter_map(wire::Part::as_text).collect())
                    .unwrap_or_default(),
                _ => String::new(),
            };
            let Some(run) = word.strip_prefix("run ").and_then(|rest| rest.split(' ').next()) else { continue };
            let Ok(run) = run.parse::<u64>() else { continue };
            if ended.contains(&run) {
                self.broken(Promise::OneOrder, format!("task {id}: {word:?} stands behind the end of its run"));
            }
            if word == end_of(run) {
                ended.insert(run);
            } else {
                said.entry(run).or_default().push(word);
            }
        }
        for (run, said) in &said {
            let written = runs.get(run).map(Vec::as_slice).unwrap_or_default();
            // What was told as written after the run ended on its own thread may be missing, but nothing in between.
            if !written.starts_with(said) && !said.starts_with(written) {
                self.broken(
                    Promise::OneOrder,
                    format!("task {id}: run {run} wrote {written:?}, and the log has {said:?}"),
                );
            }
        }
        for run in ended {
            let written = runs.get(&run).map(Vec::as_slice).unwrap_or_default();
            let said = said.get(&run).map(Vec::as_slice).unwrap_or_default();
            if written != said {
                self.broken(
                    Promise::Kept,
                    format!("task {id}: run {run} ended, wrote {written:?}, and the log has {said:?}"),
                );
            }
        }
    }

    fn call(&self, number: usize, call: &Call, tasks: &BTreeMap<TaskId, Book>, lives: bool) {
        let asked = &call.asked;
        let name = format!("call {number} ({asked:?})");
        self.items(&name, call, tasks);
        match &call.answer {
            None if call.over || !lives => {}
            None => {
                let book = task_of(call).and_then(|id| tasks.get(&id));
                let seen = call.items.last().and_then(|item| item.sequence);
                let open =
                    book.is_some_and(|book| stays_open(call, book.head.state) && seen == Some(book.log.len() as u64));
                if !open {
                    self.broken(Promise::ComesToRest, format!("{name} waits for ever, at {seen:?}"));
                }
            }
            Some(Answer::Task(task)) => self.told_task(&name, call, task, tasks),
            Some(Answer::StreamEnded) => self.stream_ended(&name, call, tasks),
            Some(Answer::Refused(EngineError::Internal { action, source })) => {
                self.broken(Promise::Sound, format!("{name}: cannot {action}: {source}"));
            }
            Some(Answer::Refused(EngineError::TaskNotCancelable(task))) => {
                if !tasks.get(task).is_some_and(|book| book.head.state.is_terminal()) {
                    self.broken(Promise::ToldWhatIsStored, format!("{name}: it has not ended, and is said to have"));
                }
            }
            Some(Answer::Refused(EngineError::TaskNotFound(task))) => {
                if !matches!(asked, Asked::Snoop { .. })
                    && TaskId::new(task).is_ok_and(|task| tasks.contains_key(&task))
                {
                    self.broken(Promise::Kept, format!("{name}: a task that is there was not found"));
                }
            }
            Some(Answer::Refused(error)) if matches!(asked, Asked::Snoop { .. }) => {
                self.broken(Promise::Private, format!("{name}: {error}"));
            }
            Some(Answer::Refused(_) | Answer::Direct | Answer::Done | Answer::StreamBroke) => {}
        }
        if matches!((asked, &call.answer), (Asked::Snoop { .. }, Some(Answer::StreamEnded))) {
            self.broken(Promise::Private, format!("{name}: somebody else's task was shown or changed"));
        }
    }

    /// A stream is a snapshot, and then the log from there without gap, double or other order.
    fn items(&self, name: &str, call: &Call, tasks: &BTreeMap<TaskId, Book>) {
        let Some(first) = call.items.first() else { return };
        let Some(sequence) = first.sequence else { return };
        let Some(task) = task_in(first) else {
            return self.broken(Promise::OneOrder, format!("{name}: the stream does not begin with the task"));
        };
        let Some((id, book)) = TaskId::new(&task.id).ok().and_then(|id| tasks.get_key_value(&id)) else {
            return self.broken(Promise::Kept, format!("{name}: a task was told that is not there"));
        };
        if let Asked::Subscribe { after: Some(after), known: true, .. } = call.asked
            && after != sequence
        {
            self.broken(Promise::OneOrder, format!("{name}: it goes on at {sequence}, after {after}"));
        }
        match self.snapshot(id, book, Some(sequence)) {
            Some(stored) if alike(&stored.task, &task) => {}
            _ => self.broken(Promise::ToldWhatIsStored, format!("{name}: the task never stood so at {sequence}")),
        }
        for (item, expected) in call.items.iter().skip(1).zip(sequence + 1..) {
            if item.sequence != Some(expected) {
                return self.broken(
                    Promise::OneOrder,
                    format!("{name}: item {:?} stands where {expected} has to", item.sequence),
                );
            }
            let place = usize::try_from(expected - 1).unwrap_or(usize::MAX);
            let log = self.log(id);
            let stored = log.get(place).map(|event| &event.payload);
            if stored != Some(&item.payload) || book.log.get(place).map(|(_, payload)| payload) != Some(&item.payload) {
                self.broken(
                    Promise::ToldWhatIsStored,
                    format!("{name}: event {expected} was told and is not in the log"),
                );
            }
        }
    }

    fn told_task(&self, name: &str, call: &Call, task: &wire::Task, tasks: &BTreeMap<TaskId, Book>) {
        let Some((id, book)) = TaskId::new(&task.id).ok().and_then(|id| tasks.get_key_value(&id)) else {
            return self.broken(Promise::Kept, format!("{name}: a task was told that is not there"));
        };
        let mut moments = (1..=book.log.len() as u64).filter_map(|at| self.snapshot(id, book, Some(at)));
        if !moments.any(|stored| alike(&stored.task, task)) {
            self.broken(Promise::ToldWhatIsStored, format!("{name}: the task never stood so: {task:?}"));
        }
        let state = task.status.as_ref().and_then(|status| status.state.known());
        let rests = state.is_some_and(|state| state.is_terminal() || state.is_interrupted());
        match &call.asked {
            Asked::Send { letter, mode } => {
                if !book.messages.iter().any(|(message, _)| *message == letter.id) {
                    self.broken(Promise::Kept, format!("{name}: the message was accepted and is gone"));
                }
                if *mode == Mode::Blocking && !rests {
                    self.broken(Promise::ToldWhatIsStored, format!("{name}: answered in state {state:?}"));
                }
                let told = task.history.iter().any(|message| message.message_id == letter.id.as_str());
                if *mode == Mode::Blocking && !told {
                    self.broken(Promise::ToldWhatIsStored, format!("{name}: answered without the message itself"));
                }
            }
            Asked::Cancel { .. } if state != Some(book.head.state) || !book.head.state.is_terminal() => {
                self.broken(Promise::Final, format!("{name}: told {state:?}, and it is {:?}", book.head.state));
            }
            _ => {}
        }
    }

    fn stream_ended(&self, name: &str, call: &Call, tasks: &BTreeMap<TaskId, Book>) {
        let Some(book) = task_of(call).and_then(|id| tasks.get(&id)) else { return };
        if call.going_down || matches!(call.asked, Asked::Snoop { .. }) {
            return;
        }
        let Some(last) = call.items.last().and_then(|item| item.sequence) else { return };
        let kind = usize::try_from(last - 1).ok().and_then(|place| book.log.get(place)).map(|(kind, _)| *kind);
        let waits = matches!(call.asked, Asked::Send { .. });
        let ends = match kind {
            Some(EventKind::Status { state, rests }) => {
                state.is_terminal() || (waits && rests && state == TaskState::InputRequired)
            }
            // A stream of a task as it stands may begin behind its last status.
            Some(EventKind::Artifact) => waits && book.log.len() as u64 == last,
            Some(EventKind::Created) | None => false,
        };
        if !ends {
            self.broken(Promise::OneOrder, format!("{name}: the stream ended at event {last}, {kind:?}"));
        }
    }

    /// A message that was sent again and again as the same one has made one task.
    fn retries(&self, calls: &[Call]) {
        let mut tasks: BTreeMap<&str, BTreeSet<TaskId>> = BTreeMap::new();
        for call in calls {
            if let (Asked::Send { letter, .. }, Some(id)) = (&call.asked, task_of(call))
                && letter.idempotent
            {
                tasks.entry(letter.id.as_str()).or_default().insert(id);
            }
        }
        for (message, tasks) in tasks.iter().filter(|(_, tasks)| tasks.len() > 1) {
            self.broken(Promise::Kept, format!("message {message} made more than one task: {tasks:?}"));
        }
    }
}

/// Whether a task that was told is the one that is stored: what was told of the history must be there, and more may have
/// joined it since, without an event.
fn alike(stored: &wire::Task, told: &wire::Task) -> bool {
    stored.status == told.status
        && stored.artifacts == told.artifacts
        && stored.context_id == told.context_id
        && told.history.iter().all(|message| stored.history.contains(message))
}
