//! The store of the simulation: one in memory, with books that are kept apart from it, that can be made to break a promise.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{TaskId, Timestamp};
use longhaul_store::{Commit, Committed, Expect, HeldLease, MemoryStore, Scope, Store, StoreError};

use crate::books::Books;
use crate::{Dice, Promise, SimClock, Trace};

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
    pub memory: MemoryStore,
    pub clock: Arc<SimClock>,
    pub trace: Arc<Trace>,
    pub mutation: Option<Mutation>,
    /// Whether there is one instance at a time, whose start ends all leases.
    pub only_instance: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    books: Books,
    /// Commits that are under way although nobody waits for them.
    late: BTreeMap<(i64, u64), Late>,
    late_count: u64,
    dice: Dice,
}

#[derive(Debug)]
struct Late {
    by: u64,
    commit: Commit,
    /// With whose death it is lost.
    dies_with: Option<u64>,
    /// Whether it was answered already.
    answered: bool,
}

impl Shared {
    pub fn new(
        clock: Arc<SimClock>,
        trace: Arc<Trace>,
        mutation: Option<Mutation>,
        only_instance: bool,
        attempts_max: u32,
        dice: Dice,
    ) -> Arc<Self> {
        let books = Books { attempts_max, ..Books::default() };
        let state = Mutex::new(State { books, late: BTreeMap::new(), late_count: 0, dice });
        Arc::new(Self { memory: MemoryStore::new(), clock, trace, mutation, only_instance, state })
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

    /// Commits at the store's own time, and enters it into the books.
    pub fn commit(&self, by: u64, commit: Commit) -> Result<Committed, StoreError> {
        let commit = Commit { now: self.now(), ..commit };
        if self.mutation == Some(Mutation::TellBeforeCommit) && self.state().dice.happens(100) {
            return self.tell_before(by, commit);
        }
        let made = at_once(self.memory.commit(self.mutated(commit.clone())));
        if let Ok(committed) = &made {
            self.state().books.enter(&self.trace, by, &commit, *committed);
        }
        made
    }

    /// Renews at the store's own time.
    pub fn renew(&self, by: u64, leases: &[HeldLease], until: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        let now = match self.mutation {
            Some(Mutation::RenewAfterExpiry) => Timestamp::from_unix_millis(0),
            _ => self.now(),
        };
        let lost = at_once(self.memory.renew(leases, now, until))?;
        let now = self.now().unix_millis();
        self.state().books.renewed(&self.trace, by, leases, &lost, (now, until.unix_millis()));
        Ok(lost)
    }

    pub fn expire_leases(&self) -> Result<u64, StoreError> {
        if !self.only_instance {
            return Ok(0);
        }
        let now = self.now();
        let expired = at_once(self.memory.expire_leases(now))?;
        self.state().books.expired(now.unix_millis());
        Ok(expired)
    }

    pub fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        let read = at_once(self.memory.checkpoint(task_id))?;
        let stored = self.books(|books| books.tasks.get(task_id).and_then(|book| book.checkpoint.clone()));
        if read != stored {
            self.trace.broken(Promise::Kept, format!("task {task_id} has another checkpoint than was stored"));
        }
        Ok(read)
    }

    /// A commit is under way that nobody waits for any more: it may arrive all the same, now or later, or be lost.
    pub fn leave(&self, by: u64, commit: Commit, later_millis: u64) {
        let fate = {
            let mut state = self.state();
            let later = if self.only_instance { 0 } else { 1 };
            state.dice.pick(&[(1, Fate::Lost), (1, Fate::Now), (later, Fate::Later)])
        };
        match fate {
            Some(Fate::Now) => {
                let made = self.commit(by, commit).is_ok();
                self.trace.note(format_args!("a commit that {by} left arrives at once: {made}"));
            }
            Some(Fate::Later) => {
                let mut state = self.state();
                let at = self.clock.millis() + i64::try_from(state.dice.from_to(1, later_millis)).unwrap_or(1);
                state.put(at, Late { by, commit, dies_with: None, answered: false });
            }
            Some(Fate::Lost) | None => {}
        }
    }

    /// When the next commit arrives that is under way.
    pub fn next_late(&self) -> Option<i64> {
        self.state().late.keys().next().map(|(at, _)| *at)
    }

    /// Lets commits arrive whose time has come.
    pub fn arrive(&self) {
        loop {
            let late = {
                let mut state = self.state();
                match state.late.first_entry() {
                    Some(first) if first.key().0 <= self.clock.millis() => first.remove(),
                    Some(_) | None => return,
                }
            };
            let commit = Commit { now: self.now(), ..late.commit };
            let made = at_once(self.memory.commit(commit.clone()));
            self.trace.note(format_args!("late commit of {}: {}", commit.task_id, made.is_ok()));
            self.trace.count(if made.is_ok() { "late commits taken" } else { "late commits refused" });
            if let (Ok(committed), false) = (made, late.answered) {
                self.state().books.enter(&self.trace, late.by, &commit, committed);
            }
        }
    }

    /// An instance has died, and what it held in memory with it.
    pub fn died(&self, instance: u64) {
        self.state().late.retain(|_, late| late.dies_with != Some(instance));
    }

    fn tell_before(&self, by: u64, commit: Commit) -> Result<Committed, StoreError> {
        let last_sequence = match self.current(&commit.task_id) {
            Some(head) => head.last_sequence,
            None => 0,
        };
        let version = commit.head.as_ref().map_or(0, |head| head.version);
        let committed = Committed { version, last_sequence: last_sequence + commit.events.len() as u64 };
        let mut state = self.state();
        state.books.enter(&self.trace, by, &commit, committed);
        let at = self.clock.millis() + i64::try_from(state.dice.from_to(1, 300)).unwrap_or(1);
        state.put(at, Late { by, commit, dies_with: Some(by), answered: true });
        Ok(committed)
    }

    fn current(&self, task_id: &TaskId) -> Option<TaskHead> {
        let scope: Scope = self.books(|books| books.tasks.get(task_id).map(|book| book.scope.clone()))?;
        at_once(self.memory.load(&scope, task_id)).ok().flatten()
    }

    fn mutated(&self, mut commit: Commit) -> Commit {
        let wanted = matches!(self.mutation, Some(Mutation::DropEpochCheck | Mutation::SkipVersionCheck));
        let Some(current) = wanted.then(|| self.current(&commit.task_id)).flatten() else { return commit };
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

/// The output of a future that is ready at once, as all of the memory store's are.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the memory store waits for nothing"),
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
