//! An instance's way to the store: slow, cut, and with answers that get lost, as the seed says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_engine::Clock as _;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, MessageId, TaskId, TaskState, Timestamp, wire};
use longhaul_store::{
    ArtifactVersion, Claim, Commit, Committed, Due, HeldLease, ListPage, ListQuery, Rotation, Scope, Snapshot,
    SnapshotQuery, Store, StoreError, StoredEvent, StoredMessage, TaskMark,
};

use crate::store::{Mutation, Shared, give_way};
use crate::{Dice, Weather};

#[derive(Debug)]
pub(crate) struct Link {
    pub instance: u64,
    shared: Arc<Shared>,
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
    Read,
}

impl Link {
    pub fn new(instance: u64, shared: Arc<Shared>, dice: Dice, weather: Weather) -> Arc<Self> {
        let state = State { dice, weather, cut_until: 0, renewals_fail_until: 0, busy_until: 0 };
        Arc::new(Self { instance, shared, state: Mutex::new(state) })
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
            Call::Commit => weather.fails_permille,
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
            Err(StoreError::Unavailable { .. }) => {
                self.shared.trace.count(if plan.fails_after { "answers lost" } else { "calls lost" });
            }
            _ => {}
        }
        self.shared.trace.note(format_args!("{} {name}: {outcome}", self.instance));
        answer
    }

    async fn read<T: Send>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.call(Call::Read, name, Waiting(work)).await
    }
}

/// What a call does when it gets there.
trait AsyncWork<T>: Send {
    fn run(self) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// It never gets there.
    fn get_lost(self);
}

struct Waiting<F>(F);

impl<T, F: Future<Output = Result<T, StoreError>> + Send> AsyncWork<T> for Waiting<F> {
    fn run(self) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.0
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
            Some(commit) => self.link.shared.commit(self.link.instance, commit),
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
            self.link.shared.leave(self.link.instance, commit, later.max(1));
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
        self.read("load", self.shared.memory.load(scope, task_id)).await
    }

    async fn scope_of(&self, task_id: &TaskId) -> Result<Option<Scope>, StoreError> {
        self.read("scope of", self.shared.memory.scope_of(task_id)).await
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, StoreError> {
        self.read("snapshot", self.shared.memory.snapshot(scope, task_id, query)).await
    }

    async fn accepted(
        &self,
        scope: &Scope,
        message_id: &MessageId,
        _now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, StoreError> {
        let now = self.shared.now();
        self.read("accepted", self.shared.memory.accepted(scope, message_id, now)).await
    }

    async fn events_after(&self, task_id: &TaskId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        self.read("events", self.shared.memory.events_after(task_id, after, limit)).await
    }

    async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, StoreError> {
        self.read("messages", self.shared.memory.messages(task_id, ordinals)).await
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.read("list", self.shared.memory.list(query)).await
    }

    async fn artifact_versions(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactVersion>>, StoreError> {
        let work = self.shared.memory.artifact_versions(scope, task_id, artifact_id, before, limit);
        self.read("artifact versions", work).await
    }

    async fn artifact(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        version: Option<u64>,
    ) -> Result<Option<(u64, wire::Artifact)>, StoreError> {
        self.read("artifact", self.shared.memory.artifact(scope, task_id, artifact_id, version)).await
    }

    async fn renew(&self, leases: &[HeldLease], _now: Timestamp, until: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        self.call(Call::Renew, "renew", Waiting(async { self.shared.renew(self.instance, leases, until) })).await
    }

    async fn due(&self, _now: Timestamp, limit: usize, rotation: Rotation) -> Result<Due, StoreError> {
        let work = async {
            let mut due = self.shared.memory.due(self.shared.now(), limit, rotation).await?;
            if self.shared.mutation == Some(Mutation::ForgetLostWorker) {
                due.claims.retain(|claim| !claim.head.leased);
            }
            Ok(due)
        };
        self.read("due", work).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let work = async {
            match self.shared.mutation {
                Some(Mutation::ForgetLostWorker) => Ok(None),
                _ => self.shared.memory.next_due().await,
            }
        };
        self.read("next due", work).await
    }

    async fn backlog(&self) -> Result<u64, StoreError> {
        self.read("backlog", self.shared.memory.backlog()).await
    }

    async fn expire_leases(&self, _now: Timestamp) -> Result<u64, StoreError> {
        self.read("expire leases", async { self.shared.expire_leases() }).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        self.read("checkpoint", async { self.shared.checkpoint(task_id) }).await
    }

    async fn stale(
        &self,
        states: &[TaskState],
        before: Timestamp,
        _now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, StoreError> {
        let now = self.shared.now();
        self.read("stale", self.shared.memory.stale(states, before, now, limit)).await
    }

    async fn purge(&self, state: TaskState, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.read("purge", self.shared.memory.purge(state, before, limit)).await
    }

    async fn give_back(&self, bytes_max: u64) -> Result<u64, StoreError> {
        self.read("give back", self.shared.memory.give_back(bytes_max)).await
    }

    async fn marks(&self, task_ids: &[TaskId]) -> Result<Vec<TaskMark>, StoreError> {
        let work = async {
            match self.shared.mutation {
                Some(Mutation::ForgetWakeUp) => Ok(Vec::new()),
                _ => self.shared.memory.marks(task_ids).await,
            }
        };
        self.read("marks", work).await
    }

    async fn compact(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.read("compact", self.shared.memory.compact(before, limit)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.read("check", self.shared.memory.check()).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
