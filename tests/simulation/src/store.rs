//! The stores of the simulation, as all instances share them: with books that are kept apart from them, and ways to make them
//! break a promise.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{TaskId, Timestamp};
use longhaul_store::{Commit, Committed, Expect, HeldLease, Scope, Store, StoreError, TaskMark};

use crate::bells::Bells;
use crate::books::Books;
use crate::entries::{Entries, Made, Renewed};
use crate::stores::Calls;
use crate::{Dice, Promise, Scenario, SimClock, Trace};

/// A way in which the store is made to break a promise, to show that this is found out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mutation {
    /// The epoch of a writer is not compared.
    DropEpochCheck,
    /// A commit is answered before it is stored, and lost when the instance dies meanwhile.
    TellBeforeCommit,
    /// What another instance has committed is never told to those who wait for it.
    ForgetWakeUp,
    /// A lease that has run out is renewed all the same.
    RenewAfterExpiry,
    /// The version on which a commit was decided is not compared.
    SkipVersionCheck,
    /// A task whose worker was lost is not due again.
    ForgetLostWorker,
}

/// What all instances share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub calls: Calls,
    pub clock: Arc<SimClock>,
    pub trace: Arc<Trace>,
    pub mutation: Option<Mutation>,
    /// Whether there is one instance at a time, whose start ends all leases.
    pub only_instance: bool,
    /// How instances hear of each other, if they do.
    pub bells: Option<Bells>,
    state: Mutex<State>,
}

/// Who writes, and where.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pub instance: u64,
    pub store: Arc<dyn Store>,
}

#[derive(Debug)]
struct State {
    books: Books,
    entries: Entries,
    /// Commits that are under way although nobody waits for them.
    late: BTreeMap<(i64, u64), Late>,
    late_count: u64,
    /// Commits that nobody waits for any more, while an instance dies.
    left: Option<Vec<Left>>,
    dice: Dice,
}

/// A commit that nobody waits for any more.
#[derive(Debug)]
struct Left {
    writer: Writer,
    commit: Commit,
    /// How late it may arrive at the most.
    later_millis: u64,
}

#[derive(Debug)]
struct Late {
    writer: Writer,
    commit: Commit,
    /// With whose death it is lost.
    dies_with: Option<u64>,
    /// Whether it was answered already.
    answered: bool,
}

impl Shared {
    pub fn new(
        calls: Calls,
        clock: Arc<SimClock>,
        trace: Arc<Trace>,
        mutation: Option<Mutation>,
        scenario: &Scenario,
    ) -> Arc<Self> {
        let books = Books { attempts_max: scenario.attempts_max, ..Books::default() };
        let dice = Dice::of(scenario.seed, "store");
        let state =
            State { books, entries: Entries::default(), late: BTreeMap::new(), late_count: 0, left: None, dice };
        let only_instance = scenario.instances == 1 && !scenario.shared;
        let bells = scenario.shared.then(Bells::default);
        Arc::new(Self { calls, clock, trace, mutation, only_instance, bells, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into the books.
    pub fn books<T>(&self, look: impl FnOnce(&mut Books) -> T) -> T {
        look(&mut self.state().books)
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.clock.millis())
    }

    /// What a store answered by itself, with nothing in between. There is no reason for it to fail.
    pub fn sound<T>(&self, name: &str, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ (StoreError::Unavailable { .. } | StoreError::Corrupt { .. })) = &answer {
            let mut what = format!("the store fails by itself ({name}): {error}");
            let mut source = std::error::Error::source(error);
            while let Some(error) = source {
                what.push_str(&format!(": {error}"));
                source = error.source();
            }
            self.trace.broken(Promise::Sound, what);
        }
        answer
    }

    /// Commits at the store's own time, and enters it into the books.
    pub async fn commit(self: Arc<Self>, writer: Writer, commit: Commit) -> Result<Committed, StoreError> {
        let commit = Commit { now: self.now(), ..commit };
        if self.mutation == Some(Mutation::TellBeforeCommit) && self.state().dice.happens(100) {
            return Ok(self.tell_before(writer, commit).await);
        }
        let mutated = self.mutated(&writer, commit.clone()).await;
        self.write(&writer, commit, mutated).await
    }

    /// Writes `written`, and enters it as what was asked for.
    async fn write(&self, writer: &Writer, asked: Commit, written: Commit) -> Result<Committed, StoreError> {
        let task_id = asked.task_id.clone();
        self.state().entries.begin(&self.trace, &task_id);
        let answer = self.sound("commit", writer.store.commit(written).await);
        if let (Ok(committed), Some(bells)) = (&answer, &self.bells) {
            let Committed { version, last_sequence, .. } = *committed;
            let due =
                asked.head.as_ref().is_some_and(|head| !head.leased && head.due_at.is_some_and(|at| at <= asked.now));
            bells.ring(writer.instance, &TaskMark { task_id: task_id.clone(), version, last_sequence }, due);
        }
        let made =
            answer.as_ref().ok().map(|committed| Made { by: writer.instance, commit: asked, committed: *committed });
        let State { books, entries, .. } = &mut *self.state();
        entries.committed(books, &self.trace, &task_id, made);
        answer
    }

    /// Renews at the store's own time.
    pub async fn renew(
        self: Arc<Self>,
        writer: Writer,
        leases: Vec<HeldLease>,
        until: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError> {
        let now = self.now();
        let told = match self.mutation {
            Some(Mutation::RenewAfterExpiry) => Timestamp::from_unix_millis(0),
            _ => now,
        };
        leases.iter().for_each(|lease| self.state().entries.begin(&self.trace, &lease.task_id));
        let answer = self.sound("renew", writer.store.renew(&leases, told, until).await);
        let State { books, entries, .. } = &mut *self.state();
        for lease in leases {
            let task_id = lease.task_id.clone();
            let (now, until) = (now.unix_millis(), until.unix_millis());
            let renewed = answer.as_ref().is_ok_and(|lost| !lost.contains(&task_id));
            let renewed = renewed.then_some(Renewed { by: writer.instance, lease, now, until });
            entries.renewed(books, &self.trace, &task_id, renewed);
        }
        answer
    }

    pub async fn expire_leases(self: Arc<Self>, writer: Writer) -> Result<u64, StoreError> {
        if !self.only_instance {
            return Ok(0);
        }
        let now = self.now();
        let expired = writer.store.expire_leases(now).await?;
        self.state().books.expired(now.unix_millis());
        Ok(expired)
    }

    pub async fn checkpoint(self: Arc<Self>, writer: Writer, task_id: TaskId) -> Result<Option<Bytes>, StoreError> {
        let before = self.known_checkpoint(&task_id);
        let read = writer.store.checkpoint(&task_id).await?;
        let known = self.known_checkpoint(&task_id).filter(|known| before.as_ref() == Some(known));
        if known.is_some_and(|known| read != known) {
            self.trace.broken(Promise::Kept, format!("task {task_id} has another checkpoint than was stored"));
        }
        Ok(read)
    }

    /// The checkpoint of a task, unless somebody is about to write.
    fn known_checkpoint(&self, task_id: &TaskId) -> Option<Option<Bytes>> {
        let State { books, entries, .. } = &*self.state();
        let known = || books.tasks.get(task_id).and_then(|book| book.checkpoint.clone());
        entries.is_entered(task_id).then(known)
    }

    /// Lets an instance die by `die`, which may leave many commits at once. In which order it lets go of them no seed says.
    pub fn bury(self: &Arc<Self>, die: impl FnOnce()) {
        self.state().left = Some(Vec::new());
        die();
        let mut left = self.state().left.take().unwrap_or_default();
        left.sort_by_cached_key(|left| (left.commit.task_id.clone(), format!("{:?}", left.commit)));
        left.into_iter().for_each(|Left { writer, commit, later_millis }| self.leave(writer, commit, later_millis));
    }

    /// A commit is under way that nobody waits for any more: it may arrive all the same, now or later, or be lost.
    pub fn leave(self: &Arc<Self>, writer: Writer, commit: Commit, later_millis: u64) {
        let fate = {
            let mut state = self.state();
            if let Some(left) = &mut state.left {
                left.push(Left { writer, commit, later_millis });
                return;
            }
            let later = if self.only_instance { 0 } else { 1 };
            state.dice.pick(&[(1, Fate::Lost), (1, Fate::Now), (later, Fate::Later)])
        };
        match fate {
            Some(Fate::Now) => {
                let shared = Arc::clone(self);
                self.calls.detach(async move {
                    let by = writer.instance;
                    let made = Arc::clone(&shared).commit(writer, commit).await.is_ok();
                    shared.trace.note(format_args!("a commit that {by} left arrives at once: {made}"));
                });
            }
            Some(Fate::Later) => {
                let mut state = self.state();
                let at = self.clock.millis() + i64::try_from(state.dice.from_to(1, later_millis)).unwrap_or(1);
                state.put(at, Late { writer, commit, dies_with: None, answered: false });
            }
            Some(Fate::Lost) | None => {}
        }
    }

    /// When the next commit arrives that is under way.
    pub fn next_late(&self) -> Option<i64> {
        self.state().late.keys().next().map(|(at, _)| *at)
    }

    /// Lets commits arrive whose time has come.
    pub fn arrive(self: &Arc<Self>) {
        loop {
            let late = {
                let mut state = self.state();
                match state.late.first_entry() {
                    Some(first) if first.key().0 <= self.clock.millis() => first.remove(),
                    Some(_) | None => return,
                }
            };
            let shared = Arc::clone(self);
            self.calls.detach(async move { shared.arrived(late).await });
        }
    }

    async fn arrived(&self, late: Late) {
        let commit = Commit { now: self.now(), ..late.commit };
        let task_id = commit.task_id.clone();
        let made = match late.answered {
            true => self.sound("late commit", late.writer.store.commit(commit).await).is_ok(),
            false => self.write(&late.writer, commit.clone(), commit).await.is_ok(),
        };
        self.trace.note(format_args!("late commit of {task_id}: {made}"));
        self.trace.count(if made { "late commits taken" } else { "late commits refused" });
    }

    /// An instance has died, and what it held in memory with it.
    pub fn died(&self, instance: u64) {
        self.state().late.retain(|_, late| late.dies_with != Some(instance));
        self.bells.iter().for_each(|bells| bells.gone(instance));
    }

    async fn tell_before(&self, writer: Writer, commit: Commit) -> Committed {
        let last_sequence = match self.current(&writer, &commit.task_id).await {
            Some(head) => head.last_sequence,
            None => 0,
        };
        let version = commit.head.as_ref().map_or(0, |head| head.version);
        let committed =
            Committed { version, last_sequence: last_sequence + commit.events.len() as u64, has_pushes: false };
        let mut state = self.state();
        let by = writer.instance;
        state.books.enter(&self.trace, by, &commit, committed);
        let at = self.clock.millis() + i64::try_from(state.dice.from_to(1, 300)).unwrap_or(1);
        state.put(at, Late { writer, commit, dies_with: Some(by), answered: true });
        committed
    }

    async fn current(&self, writer: &Writer, task_id: &TaskId) -> Option<TaskHead> {
        let scope: Scope = self.books(|books| books.tasks.get(task_id).map(|book| book.scope.clone()))?;
        writer.store.load(&scope, task_id).await.ok().flatten()
    }

    async fn mutated(&self, writer: &Writer, mut commit: Commit) -> Commit {
        let wanted = matches!(self.mutation, Some(Mutation::DropEpochCheck | Mutation::SkipVersionCheck));
        if !wanted {
            return commit;
        }
        let Some(current) = self.current(writer, &commit.task_id).await else { return commit };
        commit.expect = match (self.mutation, commit.expect) {
            (Some(Mutation::SkipVersionCheck), Expect::Version(_)) => Expect::Version(current.version),
            (Some(Mutation::SkipVersionCheck), Expect::Unheld(_)) => Expect::Unheld(current.version),
            (Some(Mutation::SkipVersionCheck), Expect::LeaseAndVersion { epoch, .. }) => {
                Expect::LeaseAndVersion { epoch, version: current.version }
            }
            (Some(Mutation::DropEpochCheck), Expect::LeaseAndVersion { version, .. }) => Expect::Version(version),
            (Some(Mutation::DropEpochCheck), Expect::Lease { .. }) => {
                let version = current.version;
                commit.head.get_or_insert(current);
                Expect::Version(version)
            }
            (_, as_it_is) => as_it_is,
        };
        commit
    }
}

#[derive(Clone, Copy)]
enum Fate {
    Lost,
    Now,
    Later,
}

impl State {
    fn put(&mut self, at: i64, late: Late) {
        self.late_count += 1;
        self.late.insert((at, self.late_count), late);
    }
}

/// Lets whoever else is ready go first.
pub(crate) async fn give_way() {
    let mut gave_way = false;
    poll_fn(|context| {
        if gave_way {
            return Poll::Ready(());
        }
        gave_way = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
