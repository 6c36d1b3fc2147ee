use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, MessageId, TaskId, TaskState, Timestamp, wire};
use longhaul_store::Claim;
use longhaul_store::{
    ArtifactVersion, Commit, Committed, Due, EncodedCommit, Heard, HeldLease, ListPage, ListQuery, Rotation, Scope,
    Snapshot, SnapshotQuery, Store, StoreError, StoredEvent, StoredMessage, TaskMark, shard_of_task,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::ClockOffset;
use crate::connect::Connector;
use crate::fault::Fault;
use crate::migrations::{self, SchemaState};
use crate::notify::{Listener, Notifier};
use crate::pool::Pool;
use crate::push::settle;
use crate::reader::Reader;
use crate::session::Database;
use crate::writer::{self, Counters, Job, Writer, WriterStats};
use crate::{OpenError, PostgresConfig};

/// For how long a number of tasks in line is good that was counted: others change it as well.
const LINE_COUNT_AGE_MAX: Duration = Duration::from_secs(1);

/// Tasks in PostgreSQL, for any number of instances.
///
/// What one instance commits all of them see. Dropped without [`Store::close`], it finishes in the background what was queued.
pub struct PostgresStore {
    database: Database,
    pub(crate) pool: Pool,
    /// One connection, for renewals alone: readers that hang or are many must not cost anybody a lease.
    renewals: Pool,
    reader: Reader,
    /// Empty once the store is closed.
    writers: Mutex<Vec<mpsc::Sender<Job>>>,
    writing: Mutex<Vec<JoinHandle<()>>>,
    /// `None` once the store is closed.
    settler: Mutex<Option<mpsc::Sender<settle::Job>>>,
    counters: Arc<Counters>,
    line: Mutex<Option<LineCount>>,
    clock: Arc<ClockOffset>,
    listener: Listener,
    notifier: Notifier,
    schema: SchemaState,
    closed: AtomicBool,
    /// Ends what listens, once everything is written.
    closing: CancellationToken,
}

/// How many tasks were in line when they were counted.
#[derive(Clone, Copy, Debug)]
struct LineCount {
    tasks: i64,
    /// What [`Counters`] said then.
    joined_before: i64,
    at: Instant,
}

/// Makes the tables of a store, or brings them up to date, and tells from which version to which.
///
/// # Errors
///
/// [`OpenError`]; nothing of a step that failed is kept.
pub async fn migrate(config: &PostgresConfig) -> Result<SchemaState, OpenError> {
    let database = Database::new(config.clone(), Connector::new(config)?, TaskTracker::new());
    migrations::prepare(&database, true).await
}

impl PostgresStore {
    /// Opens the store in a database; makes the tables, or brings them up to date, if the configuration says so.
    ///
    /// # Errors
    ///
    /// [`OpenError`]. What is in the database is as it was.
    pub async fn open(config: &PostgresConfig) -> Result<Self, OpenError> {
        let tracker = TaskTracker::new();
        let closing = CancellationToken::new();
        let database = Database::new(config.clone(), Connector::new(config)?, tracker.clone());
        let schema = migrations::prepare(&database, config.migrate).await?;
        let unreachable = |fault: Fault| OpenError::Unreachable { place: database.place(), source: fault.into() };
        let pool = Pool::new(&database).map_err(unreachable)?;
        let renewals = Pool::single(&database).map_err(unreachable)?;
        let clock = ClockOffset::follow(&database, closing.clone()).await.map_err(unreachable)?;
        let notifier = Notifier::start(database.clone(), closing.clone());
        let listener = Listener::start(database.clone(), &notifier, closing.clone());
        crate::upkeep::start(database.clone(), pool.clone(), closing.clone());
        let counters = Arc::new(Counters::default());
        let (mut writers, mut writing) = (Vec::new(), Vec::new());
        for _ in 0..config.writers.clamp(1, PostgresConfig::WRITERS_MAX) {
            let (jobs, queue) = mpsc::channel(writer::QUEUE_MAX);
            let writer = Writer::new(database.clone(), notifier.clone(), Arc::clone(&counters));
            writing.push(tracker.spawn(writer.run(queue)));
            writers.push(jobs);
        }
        let (settler, queue) = mpsc::channel(settle::QUEUE_MAX);
        writing.push(tracker.spawn(settle::run(pool.clone(), queue)));
        Ok(Self {
            reader: Reader::new(pool.clone()),
            pool,
            renewals,
            database,
            writers: Mutex::new(writers),
            writing: Mutex::new(writing),
            settler: Mutex::new(Some(settler)),
            counters,
            line: Mutex::new(None),
            clock,
            listener,
            notifier,
            schema,
            closed: AtomicBool::new(false),
            closing,
        })
    }

    /// The database's clock, which all instances follow.
    #[must_use]
    pub fn clock(&self) -> Arc<ClockOffset> {
        Arc::clone(&self.clock)
    }

    /// Where the database is, without secrets.
    #[must_use]
    pub fn place(&self) -> String {
        self.database.place()
    }

    /// What the database says of its tables.
    #[must_use]
    pub fn schema(&self) -> &SchemaState {
        &self.schema
    }

    /// What the writers have done since the store was opened.
    #[must_use]
    pub fn writer_stats(&self) -> WriterStats {
        self.counters.stats()
    }

    fn refuse_closed(&self, action: &'static str) -> Result<(), StoreError> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(StoreError::unavailable(action, "the store is closed")),
            false => Ok(()),
        }
    }

    /// Does something on a connection of those that read.
    pub(crate) async fn read<T>(
        &self,
        action: &'static str,
        read: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        self.refuse_closed(action)?;
        read.await.map_err(|fault| fault.into_store(action))
    }

    /// The writer of a task: its commits are made in the order in which they came.
    fn writer(&self, task_id: &TaskId, action: &'static str) -> Result<mpsc::Sender<Job>, StoreError> {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::from(shard_of_task(task_id)).checked_rem(writers.len());
        let writer = place.and_then(|place| writers.get(place)).cloned();
        writer.ok_or_else(|| StoreError::unavailable(action, "the store is closed"))
    }

    /// Where settlements go.
    pub(crate) fn settler(&self, action: &'static str) -> Result<mpsc::Sender<settle::Job>, StoreError> {
        let settler = self.settler.lock().unwrap_or_else(PoisonError::into_inner).clone();
        settler.ok_or_else(|| StoreError::unavailable(action, "the store is closed"))
    }

    /// How many tasks are in line, if they were counted lately.
    fn known_line(&self) -> Option<u64> {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let count = line.filter(|count| count.at.elapsed() < LINE_COUNT_AGE_MAX)?;
        let joined = self.counters.joined_line.load(Ordering::Relaxed) - count.joined_before;
        Some(u64::try_from(count.tasks + joined).unwrap_or(0))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("PostgresStore");
        debug.field("place", &self.place()).field("stats", &self.writer_stats()).finish_non_exhaustive()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        const ACTION: &str = "write a commit";
        let writer = self.writer(&commit.task_id, ACTION)?;
        let commit = Box::new(EncodedCommit::new(commit)?);
        let (answer, answered) = oneshot::channel();
        let sent = writer.send(Job { commit, answer, since: Instant::now() }).await;
        sent.map_err(|_| StoreError::unavailable(ACTION, "the writer has stopped"))?;
        answered.await.map_err(|_| StoreError::unavailable(ACTION, "the writer stopped before it answered"))?
    }

    async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, StoreError> {
        self.read("load a task", self.reader.load(scope, task_id)).await
    }

    async fn scope_of(&self, task_id: &TaskId) -> Result<Option<Scope>, StoreError> {
        self.read("read whose task it is", self.reader.scope_of(task_id)).await
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, StoreError> {
        self.read("read a task", self.reader.snapshot(scope, task_id, query)).await
    }

    async fn accepted(
        &self,
        scope: &Scope,
        message_id: &MessageId,
        now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, StoreError> {
        self.read("look up an accepted message", self.reader.accepted(scope, message_id, now)).await
    }

    async fn events_after(&self, task_id: &TaskId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        self.read("read a task's log", self.reader.events_after(task_id, after, limit)).await
    }

    async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, StoreError> {
        self.read("read a task's messages", self.reader.messages(task_id, ordinals)).await
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.read("list tasks", self.reader.list(&query)).await
    }

    async fn artifact_versions(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactVersion>>, StoreError> {
        let versions = self.reader.versions(scope, task_id, artifact_id, None);
        let versions = self.read("read the versions of an artifact", versions).await?;
        Ok(versions.and_then(|versions| versions.into_versions(before, limit)))
    }

    async fn artifact(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        version: Option<u64>,
    ) -> Result<Option<(u64, wire::Artifact)>, StoreError> {
        let versions = self.reader.versions(scope, task_id, artifact_id, version);
        Ok(self.read("read an artifact", versions).await?.and_then(longhaul_store::VersionFold::into_artifact))
    }

    async fn renew(&self, leases: &[HeldLease], now: Timestamp, until: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        let clock = self.database.config.lease_clock;
        self.read("renew leases", writer::renew(&self.renewals, clock, leases, now, until)).await
    }

    async fn due(&self, now: Timestamp, limit: usize, rotation: Rotation) -> Result<Due, StoreError> {
        let clock = self.database.config.lease_clock;
        self.read("read which tasks are due", self.reader.due(clock, now, limit, rotation)).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read when a task is due", self.reader.next_due()).await
    }

    async fn backlog(&self) -> Result<u64, StoreError> {
        const ACTION: &str = "count the tasks in line";
        self.refuse_closed(ACTION)?;
        if let Some(tasks) = self.known_line() {
            return Ok(tasks);
        }
        // Before it is counted: what joins meanwhile may be counted twice for a while, but not be missed.
        let joined_before = self.counters.joined_line.load(Ordering::Relaxed);
        let tasks = self.read(ACTION, self.reader.count_line()).await?;
        let count = LineCount { tasks: longhaul_store::columns::int(tasks), joined_before, at: Instant::now() };
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = Some(count);
        Ok(tasks)
    }

    async fn expire_leases(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.read("end leases", writer::expire(&self.pool, now)).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        self.read("read a checkpoint", self.reader.checkpoint(task_id)).await
    }

    async fn stale(
        &self,
        states: &[TaskState],
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, StoreError> {
        self.read("look for stale tasks", self.reader.stale(states, before, now, limit)).await
    }

    async fn purge(&self, state: TaskState, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.read("remove tasks", crate::upkeep::purge(&self.pool, &self.reader, state, before, limit)).await
    }

    async fn compact(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.read("merge the logs of tasks", crate::upkeep::compact(&self.database, &self.pool, before, limit)).await
    }

    async fn give_back(&self, _bytes_max: u64) -> Result<u64, StoreError> {
        // The database's own vacuum does that.
        self.refuse_closed("give space back").map(|()| 0)
    }

    async fn marks(&self, task_ids: &[TaskId]) -> Result<Vec<TaskMark>, StoreError> {
        self.read("read how far tasks have come", self.reader.marks(task_ids)).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn heard(&self) -> Heard {
        self.listener.heard().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.read("use the database", writer::check(&self.pool)).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.refuse_closed("close the store")?;
        self.closed.store(true, Ordering::Release);
        // The writers end when they have written what is queued.
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        drop(self.settler.lock().unwrap_or_else(PoisonError::into_inner).take());
        let writing = std::mem::take(&mut *self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        for writer in writing {
            writer.await.map_err(|error| StoreError::unavailable("close the store", error))?;
        }
        self.notifier.flush().await;
        self.closing.cancel();
        self.pool.close();
        self.renewals.close();
        Ok(())
    }
}
