//! An instance's way to the store: slow, cut, and with answers that get lost, as the seed says.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_engine::Clock as _;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, MessageId, TaskId, TaskState, Timestamp, wire};
use longhaul_store::{
    ArtifactVersion, Claim, Commit, Committed, Due, Heard, HeldLease, ListPage, ListQuery, Rotation, Scope, Snapshot,
    SnapshotQuery, Store, StoreError, StoredEvent, StoredMessage, TaskMark,
};

use crate::bells::Ear;
use crate::store::{Mutation, Shared, Writer, give_way};
use crate::{Dice, Weather};

mod push;

#[derive(Debug)]
pub(crate) struct Link {
    instance: u64,
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
    /// How it hears of other instances, if it does.
    ear: Option<Arc<Ear>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    dice: Dice,
    weather: Weather,
    /// Nothing gets through until then.
    cut_until: i64,
    /// No renewal gets through until then.
    renewals_fail_until: i64,
    /// Until when a call is under way.
    busy_until: i64,
}

/// What happens to one call.
#[derive(Debug, Default)]
struct Plan {
    gives_way: bool,
    before: u64,
    fails_before: bool,
    after: u64,
    fails_after: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Call {
    Commit,
    Renew,
    /// A change of push configs or of what is delivered to them.
    Push,
    Read,
}

impl Link {
    /// The way of an instance to its store.
    pub fn new(writer: Writer, shared: Arc<Shared>, ear: Option<Arc<Ear>>, dice: Dice, weather: Weather) -> Arc<Self> {
        let state = State { dice, weather, cut_until: 0, renewals_fail_until: 0, busy_until: 0 };
        let Writer { instance, store } = writer;
        Arc::new(Self { instance, store, shared, ear, state: Mutex::new(state) })
    }

    fn writer(&self) -> Writer {
        Writer { instance: self.instance, store: Arc::clone(&self.store) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_weather(&self, weather: Weather) {
        let mut state = self.state();
        state.weather = weather;
        (state.cut_until, state.renewals_fail_until) = (0, 0);
    }

    pub fn cut_for(&self, millis: i64) {
        self.state().cut_until = self.shared.clock.millis() + millis;
    }

    pub fn fail_renewals_for(&self, millis: i64) {
        self.state().renewals_fail_until = self.shared.clock.millis() + millis;
    }

    /// Whether no call is held up any more.
    pub fn is_clear(&self) -> bool {
        self.state().busy_until <= self.shared.clock.millis()
    }

    fn plan(&self, call: Call) -> Plan {
        let plan = self.draw(call);
        let mut state = self.state();
        let until = self.shared.clock.millis() + i64::try_from(plan.before + plan.after).unwrap_or(0);
        state.busy_until = state.busy_until.max(until);
        plan
    }

    fn draw(&self, call: Call) -> Plan {
        let now = self.shared.clock.millis();
        let mut state = self.state();
        let State { dice, weather, cut_until, renewals_fail_until, .. } = &mut *state;
        if weather.is_calm() {
            return Plan::default();
        }
        if now < *cut_until {
            // Some calls fail at once, and some hang until the way is free again.
            let left = u64::try_from(*cut_until - now).unwrap_or(0);
            let hangs = dice.happens(400);
            return Plan {
                before: if hangs { left + dice.below(50) } else { dice.below(20) },
                fails_before: !hangs || dice.happens(500),
                ..Plan::default()
            };
        }
        let mut slow = |permille| match dice.pick(&[(permille, true), (1000 - permille, false)]) {
            Some(true) if dice.happens(100) => dice.below(weather.slowest_millis),
            Some(true) => dice.below(20),
            Some(false) | None => 0,
        };
        let (before, after) = (slow(weather.slow_permille), slow(weather.slow_permille / 2));
        let fails = match call {
            Call::Commit | Call::Push => weather.fails_permille,
            Call::Renew if now < *renewals_fail_until => 1000,
            Call::Renew => weather.fails_permille,
            Call::Read => weather.fails_permille / 3,
        };
        let fails = dice.happens(fails);
        let after_it_was_made = call != Call::Read && dice.happens(500);
        Plan {
            gives_way: dice.happens(300),
            before,
            fails_before: fails && !after_it_was_made,
            after,
            fails_after: fails && after_it_was_made,
        }
    }

    async fn pause(&self, millis: u64) {
        if millis > 0 {
            self.shared.clock.sleep(Duration::from_millis(millis)).await;
        }
    }

    async fn call<T>(&self, call: Call, name: &str, work: impl AsyncWork<T>) -> Result<T, StoreError> {
        self.shared.trace.called();
        let plan = self.plan(call);
        if plan.gives_way {
            give_way().await;
        }
        self.pause(plan.before).await;
        let answer = if plan.fails_before {
            work.get_lost();
            Err(failed("it did not get there"))
        } else {
            work.run().await
        };
        self.pause(plan.after).await;
        let answer = if plan.fails_after { answer.and_then(|_| Err(failed("the answer got lost"))) } else { answer };
        let outcome = answer.as_ref().map_or_else(outcome, |_| "ok");
        self.shared.trace.count("calls of the store");
        match &answer {
            Err(StoreError::LeaseLost { .. }) => self.shared.trace.count("writes refused for their lease"),
            Err(StoreError::Conflict { .. }) => self.shared.trace.count("conflicts"),
            Err(StoreError::Duplicate { .. }) => self.shared.trace.count("messages that were accepted before"),
            Err(StoreError::Unavailable { .. }) => {
                self.shared.trace.count(if plan.fails_after { "answers lost" } else { "calls lost" });
            }
            _ => {}
        }
        self.shared.trace.note(format_args!("{} {name}: {outcome}", self.instance));
        answer
    }

    /// Reads, by what `work` makes of the store.
    async fn read<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.call(Call::Read, name, Reading { link: self, name, work: Box::pin(work) }).await
    }

    /// Changes what is pushed, by what `work` makes of the store: it may be made, and its answer be lost.
    async fn write<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.call(Call::Push, name, Reading { link: self, name, work: Box::pin(work) }).await
    }

    fn parts(&self) -> (Arc<Shared>, Writer) {
        (Arc::clone(&self.shared), self.writer())
    }
}

/// What a call does when it gets there.
trait AsyncWork<T>: Send {
    fn run(self) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// It never gets there.
    fn get_lost(self);
}

struct Reading<'a, T> {
    link: &'a Link,
    name: &'static str,
    work: Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>,
}

impl<T: Send + 'static> AsyncWork<T> for Reading<'_, T> {
    async fn run(self) -> Result<T, StoreError> {
        let shared = &self.link.shared;
        shared.sound(self.name, shared.calls.make(self.work).await)
    }

    fn get_lost(self) {}
}

/// Leases on their way to be renewed.
struct Renewing<'a> {
    link: &'a Link,
    leases: Vec<HeldLease>,
    until: Timestamp,
}

impl AsyncWork<Vec<TaskId>> for Renewing<'_> {
    async fn run(self) -> Result<Vec<TaskId>, StoreError> {
        let (shared, writer) = self.link.parts();
        self.link.shared.calls.finish(shared.renew(writer, self.leases, self.until)).await
    }

    fn get_lost(self) {}
}

fn failed(why: &'static str) -> StoreError {
    StoreError::unavailable("reach the store", why)
}

fn outcome(error: &StoreError) -> &'static str {
    match error {
        StoreError::Conflict { .. } => "conflict",
        StoreError::LeaseLost { .. } => "lease lost",
        StoreError::NotFound { .. } => "not found",
        StoreError::Duplicate { .. } => "duplicate",
        StoreError::LogFull { .. } => "log full",
        StoreError::Unavailable { .. } => "unavailable",
        StoreError::Corrupt { .. } => "corrupt",
    }
}

/// A commit on its way. Dropped before it got there, because its instance died or nobody waits any more, it may arrive all
/// the same.
struct UnderWay<'a> {
    link: &'a Link,
    commit: Option<Commit>,
}

impl AsyncWork<Committed> for UnderWay<'_> {
    async fn run(mut self) -> Result<Committed, StoreError> {
        match self.commit.take() {
            Some(commit) => {
                let (shared, writer) = self.link.parts();
                self.link.shared.calls.finish(shared.commit(writer, commit)).await
            }
            None => Err(failed("there is nothing to commit")),
        }
    }

    fn get_lost(mut self) {
        self.commit = None;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(commit) = self.commit.take()
            && !std::thread::panicking()
        {
            let later = self.link.state().weather.slowest_millis;
            self.link.shared.leave(self.link.writer(), commit, later.max(1));
        }
    }
}

#[async_trait]
impl Store for Link {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let name = format!("commit {} {} events", commit.task_id, commit.events.len());
        self.call(Call::Commit, &name, UnderWay { link: self, commit: Some(commit) }).await
    }

    async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, StoreError> {
        let (store, scope, task_id) = (Arc::clone(&self.store), scope.clone(), task_id.clone());
        self.read("load", async move { store.load(&scope, &task_id).await }).await
    }

    async fn scope_of(&self, task_id: &TaskId) -> Result<Option<Scope>, StoreError> {
        let (store, task_id) = (Arc::clone(&self.store), task_id.clone());
        self.read("scope of", async move { store.scope_of(&task_id).await }).await
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, StoreError> {
        let (store, scope, task_id) = (Arc::clone(&self.store), scope.clone(), task_id.clone());
        self.read("snapshot", async move { store.snapshot(&scope, &task_id, query).await }).await
    }

    async fn accepted(
        &self,
        scope: &Scope,
        message_id: &MessageId,
        _now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, StoreError> {
        let now = self.shared.now();
        let (store, scope, message_id) = (Arc::clone(&self.store), scope.clone(), message_id.clone());
        self.read("accepted", async move { store.accepted(&scope, &message_id, now).await }).await
    }

    async fn events_after(&self, task_id: &TaskId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let (store, task_id) = (Arc::clone(&self.store), task_id.clone());
        self.read("events", async move { store.events_after(&task_id, after, limit).await }).await
    }

    async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, StoreError> {
        let (store, task_id, ordinals) = (Arc::clone(&self.store), task_id.clone(), ordinals.to_vec());
        self.read("messages", async move { store.messages(&task_id, &ordinals).await }).await
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        let store = Arc::clone(&self.store);
        self.read("list", async move { store.list(query).await }).await
    }

    async fn artifact_versions(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactVersion>>, StoreError> {
        let store = Arc::clone(&self.store);
        let (scope, task_id, artifact_id) = (scope.clone(), task_id.clone(), artifact_id.clone());
        let work = async move { store.artifact_versions(&scope, &task_id, &artifact_id, before, limit).await };
        self.read("artifact versions", work).await
    }

    async fn artifact(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        version: Option<u64>,
    ) -> Result<Option<(u64, wire::Artifact)>, StoreError> {
        let store = Arc::clone(&self.store);
        let (scope, task_id, artifact_id) = (scope.clone(), task_id.clone(), artifact_id.clone());
        self.read("artifact", async move { store.artifact(&scope, &task_id, &artifact_id, version).await }).await
    }

    async fn renew(&self, leases: &[HeldLease], _now: Timestamp, until: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        self.call(Call::Renew, "renew", Renewing { link: self, leases: leases.to_vec(), until }).await
    }

    async fn due(&self, _now: Timestamp, limit: usize, rotation: Rotation) -> Result<Due, StoreError> {
        let (shared, Writer { store, .. }) = self.parts();
        let work = async move {
            let mut due = store.due(shared.now(), limit, rotation).await?;
            if shared.mutation == Some(Mutation::ForgetLostWorker) {
                due.claims.retain(|claim| !claim.head.leased);
            }
            Ok(due)
        };
        self.read("due", work).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let (shared, Writer { store, .. }) = self.parts();
        let work = async move {
            match shared.mutation {
                Some(Mutation::ForgetLostWorker) => Ok(None),
                _ => store.next_due().await,
            }
        };
        self.read("next due", work).await
    }

    async fn backlog(&self) -> Result<u64, StoreError> {
        let store = Arc::clone(&self.store);
        self.read("backlog", async move { store.backlog().await }).await
    }

    async fn expire_leases(&self, _now: Timestamp) -> Result<u64, StoreError> {
        let (shared, writer) = self.parts();
        self.read("expire leases", shared.expire_leases(writer)).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        let (shared, writer) = self.parts();
        self.read("checkpoint", shared.checkpoint(writer, task_id.clone())).await
    }

    async fn stale(
        &self,
        states: &[TaskState],
        before: Timestamp,
        _now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, StoreError> {
        let now = self.shared.now();
        let (store, states) = (Arc::clone(&self.store), states.to_vec());
        self.read("stale", async move { store.stale(&states, before, now, limit).await }).await
    }

    async fn purge(&self, state: TaskState, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let store = Arc::clone(&self.store);
        self.read("purge", async move { store.purge(state, before, limit).await }).await
    }

    async fn give_back(&self, bytes_max: u64) -> Result<u64, StoreError> {
        let store = Arc::clone(&self.store);
        self.read("give back", async move { store.give_back(bytes_max).await }).await
    }

    async fn marks(&self, task_ids: &[TaskId]) -> Result<Vec<TaskMark>, StoreError> {
        let (shared, Writer { store, .. }) = self.parts();
        let task_ids = task_ids.to_vec();
        let work = async move {
            match shared.mutation {
                Some(Mutation::ForgetWakeUp) => Ok(task_ids.into_iter().map(never_changed).collect()),
                _ => store.marks(&task_ids).await,
            }
        };
        self.read("marks", work).await
    }

    async fn compact(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let store = Arc::clone(&self.store);
        self.read("compact", async move { store.compact(before, limit).await }).await
    }

    fn is_shared(&self) -> bool {
        self.ear.is_some()
    }

    async fn heard(&self) -> Heard {
        loop {
            let heard = match &self.ear {
                Some(ear) if self.shared.mutation != Some(Mutation::ForgetWakeUp) => ear.heard().await,
                Some(_) | None => std::future::pending().await,
            };
            // What comes while the way is cut is lost.
            if self.state().cut_until <= self.shared.clock.millis() {
                self.shared.trace.note(format_args!("{} heard {heard:?}", self.instance));
                return heard;
            }
        }
    }

    async fn check(&self) -> Result<(), StoreError> {
        let store = Arc::clone(&self.store);
        self.read("check", async move { store.check().await }).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A task as one that is known to nobody to have changed.
fn never_changed(task_id: TaskId) -> TaskMark {
    TaskMark { task_id, version: 0, last_sequence: 0 }
}
