use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longhaul_lifecycle::{
    AttemptEnd, AttemptOutcome, Command, Joins, Next, RetryPolicy, TaskHead, Transition, WorkerId, describe_attempts,
};
use longhaul_protocol::{ContextId, Message, MessageId, TaskId, Timestamp, json, wire};
use longhaul_store::{
    Commit, Committed, EventKind, HistoryLimit, NewEvent, NewMessage, Scope, Snapshot, SnapshotQuery, Store, StoreError,
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{later, within};
use crate::hub::Hub;
use crate::push::{Push, PushParts, send_pushes};
use crate::running::{Running, Stop};
use crate::turn::agent_message;
use crate::{Agent, Clock, Config, EngineError, IdSource, text_part};

/// What an engine is made of.
#[derive(Debug)]
pub struct EngineParts {
    /// Where tasks are kept.
    pub store: Arc<dyn Store>,
    /// What does the work.
    pub agent: Arc<dyn Agent>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub ids: Arc<dyn IdSource>,
    /// How it works.
    pub config: Config,
}

/// How an engine is doing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EngineStats {
    /// How many turns run.
    pub turns: usize,
    /// How many writes were refused because their turn's lease was over.
    pub refused_writes: u64,
}

/// The operations of A2A (§3.1) over a store and an agent. Cloning gives another handle to the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub store: Arc<dyn Store>,
    pub agent: Arc<dyn Agent>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub config: Config,
    /// This process, as leases name it.
    pub worker: WorkerId,
    pub hub: Arc<Hub>,
    pub running: Arc<Running>,
    /// Set when push notifications are sent.
    pub push: OnceLock<Arc<Push>>,
    workers: Arc<Semaphore>,
    /// Rung when a task may have become due, or a worker free while tasks wait.
    pub scheduler: Notify,
    pub line: LineFlag,
    pub refused_writes: AtomicU64,
    pub tracker: TaskTracker,
    /// What goes on until the engine is down, and is not waited for before.
    pub background: TaskTracker,
    /// Nothing new is begun, and streams and waits end.
    pub closing: CancellationToken,
    /// No turn is left.
    pub down: CancellationToken,
}

impl Engine {
    /// Makes an engine. It works after [`Engine::start`].
    #[must_use]
    pub fn new(parts: EngineParts) -> Self {
        let EngineParts { store, agent, clock, ids, config } = parts;
        let workers = Arc::new(Semaphore::new(config.workers_max.clamp(1, Semaphore::MAX_PERMITS)));
        let incarnation = ids.message_id(clock.now());
        let worker = match config.worker_name.as_str() {
            "" => WorkerId::new(incarnation.as_str()),
            name => WorkerId::new(format!("{name}/{incarnation}")),
        };
        let inner = Inner {
            worker,
            store,
            agent,
            clock,
            ids,
            config,
            hub: Arc::new(Hub::new()),
            running: Arc::default(),
            push: OnceLock::new(),
            workers,
            scheduler: Notify::new(),
            line: LineFlag::default(),
            refused_writes: AtomicU64::new(0),
            tracker: TaskTracker::new(),
            background: TaskTracker::new(),
            closing: CancellationToken::new(),
            down: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Begins to work. The only instance on a store lets the leases of its former workers run out at once; where there may be
    /// others they run out by themselves.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unavailable`] when the store can't be written.
    pub async fn start(&self) -> Result<(), EngineError> {
        let inner = &self.inner;
        if !inner.store.is_shared() {
            inner.expire_leases().await?;
        }
        inner.tracker.spawn(crate::schedule::schedule(Arc::clone(inner)));
        inner.tracker.spawn(crate::listen::sweep(Arc::clone(inner)));
        inner.tracker.spawn(crate::listen::listen(Arc::clone(inner)));
        if let Some(push) = inner.push.get() {
            inner.tracker.spawn(send_pushes(Arc::clone(inner), Arc::clone(push)));
        }
        inner.background.spawn(crate::heartbeat::heartbeat(Arc::clone(inner)));
        inner.tracker.spawn(crate::housekeeping::housekeeping(Arc::clone(inner)));
        Ok(())
    }

    /// Offers push notifications from now on. Before [`Engine::start`], and once.
    #[must_use]
    pub fn with_push(self, parts: PushParts) -> Self {
        let config = &self.inner.config;
        let push = Push::new(parts, config.push_in_flight_max, config.push_host_max);
        // A second time changes nothing.
        let _ = self.inner.push.set(Arc::new(push));
        self
    }

    /// Begins nothing new from now on, and ends streams and waits.
    pub fn begin_shutdown(&self) {
        self.inner.closing.cancel();
        self.inner.scheduler.notify_one();
    }

    /// Lets running turns end for `drain`, then hands the others back to the store, which makes them due for the next
    /// process at once, their attempt unspent. A turn that must not run twice has failed.
    ///
    /// # Errors
    ///
    /// None at present: what can't be handed back is due when its lease runs out.
    pub async fn shutdown(&self, drain: Duration) -> Result<(), EngineError> {
        self.begin_shutdown();
        let inner = &self.inner;
        inner.tracker.close();
        let drained = within(&*inner.clock, drain, inner.tracker.wait()).await.is_some();
        if !drained {
            tracing::info!(turns = inner.running.len(), "turns that did not end in time are handed back");
            inner.running.stop_all(&Stop::HandBack);
            if within(&*inner.clock, LET_GO, inner.tracker.wait()).await.is_none() {
                tracing::warn!("some turns do not let go");
            }
        }
        inner.down.cancel();
        inner.background.close();
        inner.background.wait().await;
        Ok(())
    }

    /// How the engine is doing.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        let inner = &self.inner;
        EngineStats { turns: inner.running.len(), refused_writes: inner.refused_writes.load(Ordering::Relaxed) }
    }

    /// Closes the store, after a shutdown.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unavailable`] when it can't be closed in order.
    pub async fn close(&self) -> Result<(), EngineError> {
        self.inner.store.close().await.map_err(|error| EngineError::store("close the store", error))
    }

    /// An id that no message has yet, for the message of a caller who gave it none.
    #[must_use]
    pub fn new_message_id(&self) -> MessageId {
        self.inner.ids.message_id(self.inner.clock.now())
    }

    /// Whether a shutdown has begun.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.inner.closing.is_cancelled()
    }

    /// Waits until a shutdown begins.
    pub async fn closed(&self) {
        self.inner.closing.cancelled().await;
    }

    /// Whether the store can read and write now.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unavailable`] when it can't.
    pub async fn check(&self) -> Result<(), EngineError> {
        self.inner.store.check().await.map_err(|error| EngineError::store("use the store", error))
    }

    /// Reads a task (A2A §3.1.3).
    ///
    /// # Errors
    ///
    /// [`EngineError::TaskNotFound`], [`EngineError::Unavailable`].
    pub async fn get_task(
        &self,
        scope: &Scope,
        task_id: &str,
        history: HistoryLimit,
    ) -> Result<wire::Task, EngineError> {
        let task_id = known_form(task_id)?;
        Ok(self.inner.snapshot(scope, &task_id, None, history).await?.task)
    }
}

/// How long turns may take to let go that were told to.
const LET_GO: Duration = Duration::from_secs(5);

/// An id that has not the form of an id can't be one of ours.
pub(crate) fn known_form(task_id: &str) -> Result<TaskId, EngineError> {
    TaskId::new(task_id).map_err(|_| EngineError::TaskNotFound(task_id.to_owned()))
}

/// Whether tasks may be due that no worker has taken. It is down only when the store said that there is none, and nobody got
/// in line since it was asked: so nobody is served before those who wait.
#[derive(Debug, Default)]
pub(crate) struct LineFlag(AtomicU8);

impl LineFlag {
    const EMPTY: u8 = 0;
    /// Occupied when the store was asked.
    const ASKED: u8 = 1;
    const OCCUPIED: u8 = 2;

    /// Somebody is in line.
    pub fn occupied(&self) {
        self.0.store(Self::OCCUPIED, Ordering::SeqCst);
    }

    /// The store is going to be asked who is in line.
    pub fn asked(&self) {
        let _ = self.0.compare_exchange(Self::OCCUPIED, Self::ASKED, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Nobody was in line when the store was asked.
    pub fn found_empty(&self) {
        let _ = self.0.compare_exchange(Self::ASKED, Self::EMPTY, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub fn may_be_occupied(&self) -> bool {
        self.0.load(Ordering::SeqCst) != Self::EMPTY
    }
}

/// A free worker. Dropping it lets the next due task begin.
#[derive(Debug)]
pub(crate) struct Worker {
    inner: Arc<Inner>,
    permit: Option<OwnedSemaphorePermit>,
    silent: bool,
}

impl Worker {
    /// The same worker, of which the scheduler need not hear if it is not used: it is the scheduler that holds it, and
    /// would go round and round for a task that can't be begun.
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// The same worker, which is used.
    pub fn used(mut self) -> Self {
        self.silent = false;
        self
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.permit = None;
        if !self.silent && self.inner.line.may_be_occupied() {
            self.inner.scheduler.notify_one();
        }
    }
}

impl Inner {
    /// A worker, if one is free and the engine is not going down.
    pub fn free_worker(self: &Arc<Self>) -> Option<Worker> {
        if self.closing.is_cancelled() {
            return None;
        }
        let permit = Arc::clone(&self.workers).try_acquire_owned().ok()?;
        Some(Worker { inner: Arc::clone(self), permit: Some(permit), silent: false })
    }

    /// A worker for a task that need not wait in line: none if others wait already.
    pub fn worker_out_of_line(self: &Arc<Self>) -> Option<Worker> {
        if self.line.may_be_occupied() {
            return None;
        }
        self.free_worker()
    }

    /// Refuses a task when too many wait in line already.
    pub async fn admit_to_the_line(&self) -> Result<(), EngineError> {
        let backlog = self.store.backlog().await.map_err(|error| EngineError::store("look at the line", error))?;
        if backlog >= self.config.backlog_max {
            return Err(EngineError::Exhausted(format!("{backlog} tasks wait for a worker already; try again later")));
        }
        Ok(())
    }

    pub fn free_workers(&self) -> usize {
        self.workers.available_permits()
    }

    /// A push notification may be due.
    pub fn ring_sender(&self) {
        if let Some(push) = self.push.get() {
            push.ring();
        }
    }

    /// A task has become due, or will be at a time that the scheduler has to learn of.
    pub fn due(&self) {
        self.line.occupied();
        self.scheduler.notify_one();
    }

    pub fn refuse_when_closing(&self) -> Result<(), EngineError> {
        if self.closing.is_cancelled() {
            return Err(EngineError::Unavailable { action: "begin anything: the server is going down", source: None });
        }
        Ok(())
    }

    /// Reads a task that must be there.
    pub async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        at: Option<u64>,
        history: HistoryLimit,
    ) -> Result<Snapshot, EngineError> {
        let query = SnapshotQuery { at, history, artifacts: true };
        let read = self.store.snapshot(scope, task_id, query).await;
        read.map_err(|error| EngineError::store("read the task", error))?
            .ok_or_else(|| EngineError::TaskNotFound(task_id.as_str().to_owned()))
    }

    pub async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<TaskHead, EngineError> {
        let read = self.store.load(scope, task_id).await;
        read.map_err(|error| EngineError::store("read the task", error))?
            .ok_or_else(|| EngineError::TaskNotFound(task_id.as_str().to_owned()))
    }

    /// Commits, and tells whoever waits for the task.
    pub async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let (task_id, events, head) = (commit.task_id.clone(), commit.events.clone(), commit.head.clone());
        let committed = self.store.commit(commit).await?;
        self.told(&task_id, committed.last_sequence, &events);
        if committed.has_pushes && !events.is_empty() {
            self.ring_sender();
        }
        if let Some(head) = head {
            log_change(&head, committed.last_sequence);
        }
        Ok(committed)
    }

    async fn expire_leases(&self) -> Result<(), EngineError> {
        let expired = self.store.expire_leases(self.clock.now()).await;
        let expired = expired.map_err(|error| EngineError::store("take up interrupted tasks", error))?;
        if expired > 0 {
            tracing::info!(tasks = expired, "tasks whose worker is gone are due again");
        }
        Ok(())
    }

    /// The start of a turn in this process.
    pub fn start_command(&self, now: Timestamp) -> Command {
        Command::Start { lease_until: self.lease_until(now), worker: self.worker.clone() }
    }

    /// When a lease runs out that is taken now.
    pub fn lease_until(&self, now: Timestamp) -> Timestamp {
        later(now, self.config.lease_duration)
    }

    pub fn attempts_max(&self) -> u32 {
        self.agent.attempts_max().unwrap_or(self.config.attempts_max).max(1)
    }

    /// What becomes of a turn whose attempt came to nothing.
    pub fn after_failure(&self, head: &TaskHead, how: AttemptOutcome, now: Timestamp) -> Command {
        let (attempts_max, backoff_min) = (self.attempts_max(), self.config.backoff_min);
        let policy = RetryPolicy { attempts_max, backoff_min, backoff_max: self.config.backoff_max };
        match policy.next(head, self.ids.jitter(), now) {
            Next::Retry { at } => Command::Retry { how, at },
            Next::GiveUp => {
                let end = AttemptEnd { attempt: head.attempt, epoch: head.epoch, ended_at: now, how };
                let failures: Vec<_> = head.failures.iter().cloned().chain([end]).collect();
                Command::Fail { message: self.say(head, describe_attempts(&failures), now) }
            }
        }
    }

    /// A message of the engine itself in a task.
    pub fn say(&self, head: &TaskHead, text: impl Into<String>, now: Timestamp) -> Option<Message> {
        let id = self.ids.message_id(now);
        agent_message(id, &head.context_id, Some(&head.id), vec![text_part(text)]).ok()
    }

    /// Rings for what was committed.
    pub fn told(&self, task_id: &TaskId, last_sequence: u64, events: &[NewEvent]) {
        self.hub.publish(task_id, last_sequence, events);
    }
}

/// What an operation gives up with when other writers were always first.
pub(crate) fn contended(task_id: &TaskId) -> EngineError {
    EngineError::Internal {
        action: "change the task",
        source: Box::new(StoreError::Conflict { task: task_id.clone() }),
    }
}

/// The status updates of a transition as events.
pub(crate) fn status_events(transition: &Transition, task_id: &TaskId, context_id: &ContextId) -> Vec<NewEvent> {
    let event = |update: &longhaul_lifecycle::StatusUpdate| NewEvent {
        kind: EventKind::Status { state: update.state, rests: update.rests },
        payload: json::to_json(&update.to_wire(task_id, context_id)),
    };
    transition.updates.iter().map(event).collect()
}

/// The messages of a transition as a commit joins them, behind so many events that are not of the transition.
pub(crate) fn new_messages(history: Vec<Joins>, events_before: usize) -> Vec<NewMessage> {
    let join = |joins: Joins| {
        let events = if joins.updates == 0 { 0 } else { events_before + joins.updates };
        NewMessage::new(joins.message, events)
    };
    history.into_iter().map(join).collect()
}

/// One line for each change of a task.
pub(crate) fn log_change(head: &TaskHead, last_sequence: u64) {
    tracing::info!(
        task_id = head.id.as_str(),
        state = head.state.wire_name(),
        sequence = last_sequence,
        attempt = head.attempt,
        "task changed"
    );
}

/// The later of two moments, in whole milliseconds: a status is never older than the one before.
pub(crate) fn status_time(head: &TaskHead, now: Timestamp) -> Timestamp {
    now.max(head.status_timestamp)
}
