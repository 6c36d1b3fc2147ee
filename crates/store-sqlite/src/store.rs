use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, MessageId, TaskId, TaskState, Timestamp, wire};
use longhaul_store::{
    ArtifactVersion, Claim, Commit, Committed, Compaction, Due, EncodedCommit, HeldLease, ListPage, ListQuery,
    Rotation, Scope, Snapshot, SnapshotQuery, Store, StoreError, StoredEvent, StoredMessage, TaskMark,
};
use tokio::sync::{mpsc, oneshot};

use crate::fault::Fault;
use crate::lock::DirectoryLock;
use crate::reader::compact::PartlyRead;
use crate::reader::{self, Read, Reads};
use crate::writer::change;
use crate::writer::compact::Compact;
use crate::writer::purge::Purge;
use crate::writer::{self, Answer, Batch, Counters, Job, Renewal, WriterStats};
use crate::{OpenError, SqliteConfig, connection};

/// How many tasks one job removes at the most, and how many pages it gives back: so that it takes a few milliseconds.
const PURGE_MAX: usize = 64;
const PAGES_MAX: u32 = 64;

/// Tasks in one SQLite file, for one instance.
///
/// Dropped without [`Store::close`], it finishes in the background what was queued; the folder is free once that is done.
pub struct SqliteStore {
    /// `None` once the store is closed.
    queues: RwLock<Option<Queues>>,
    threads: Mutex<Threads>,
    counters: Arc<Counters>,
    latest_time: Timestamp,
}

#[derive(Clone)]
struct Queues {
    jobs: mpsc::Sender<Job>,
    reads: mpsc::Sender<Read>,
}

#[derive(Default)]
struct Threads {
    writer: Option<JoinHandle<()>>,
    readers: Vec<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens the store in a folder, and makes it when there is none.
    ///
    /// Reads and writes files on the thread that calls it. `now` decides which accepted messages are still remembered.
    ///
    /// # Errors
    ///
    /// [`OpenError`], most of all [`OpenError::Held`] when another instance has the folder. A file that is refused is
    /// left as it is.
    pub fn open(config: &SqliteConfig, now: Timestamp) -> Result<Self, OpenError> {
        let lock = DirectoryLock::take(&config.directory)?;
        let connection = connection::open_writer(config, now)?;
        let latest_time = connection::latest_time(&connection, config)?;
        let counters = Arc::new(Counters::default());
        let (jobs, queue) = mpsc::channel(writer::QUEUE_MAX);
        let writer = {
            let counters = Arc::clone(&counters);
            start(config, "longhaul-sqlite-writer".to_owned(), move |started| {
                writer::run(connection, lock, queue, &counters, started)
            })?
        };
        let (reads, queue) = mpsc::channel(reader::QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let mut readers = Vec::new();
        for number in 1..=config.readers.clamp(1, SqliteConfig::READERS_MAX) {
            let connection = connection::open_reader(config)?;
            let queue = Arc::clone(&queue);
            let name = format!("longhaul-sqlite-reader-{number}");
            readers.push(start(config, name, move |started| reader::run(&connection, &queue, started))?);
        }
        let queues = RwLock::new(Some(Queues { jobs, reads }));
        Ok(Self { queues, threads: Mutex::new(Threads { writer: Some(writer), readers }), counters, latest_time })
    }

    /// The latest status time that the file held when it was opened. A clock that goes on from here gives no task a
    /// status that is older than one before, whatever the machine's clock says.
    #[must_use]
    pub fn latest_time(&self) -> Timestamp {
        self.latest_time
    }

    /// What the writer has done since the store was opened.
    #[must_use]
    pub fn writer_stats(&self) -> WriterStats {
        self.counters.stats()
    }

    fn queues(&self, action: &'static str) -> Result<Queues, StoreError> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.clone().ok_or_else(|| StoreError::unavailable(action, "the store is closed"))
    }

    /// Has the writer do a job.
    async fn write<T>(&self, action: &'static str, job: impl FnOnce(Answer<T>) -> Job) -> Result<T, StoreError> {
        let queues = self.queues(action)?;
        let (answer, answered) = oneshot::channel();
        let sent = queues.jobs.send(job(answer)).await;
        sent.map_err(|_| StoreError::unavailable(action, "the writer has stopped"))?;
        answered.await.map_err(|_| StoreError::unavailable(action, "the writer stopped before it answered"))?
    }

    /// Has the writer change something as a part of its next batch.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        action: &'static str,
        make: impl Fn(&mut Batch<'_, '_, '_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write(action, |answer| Job::Change(change::prepare(action, make, answer))).await
    }

    /// What merging makes of a task's log, which changes no more; `None` when it stays as it is.
    async fn merged(&self, number: i64) -> Result<Option<Compaction>, StoreError> {
        const ACTION: &str = "read a log to merge";
        let mut partly = self.read(ACTION, move |reads| reads.merge(number, PartlyRead::default())).await?;
        while partly.after.is_some() {
            partly = self.read(ACTION, move |reads| reads.merge(number, partly)).await?;
        }
        // Megabytes may have to be written out.
        let merged = tokio::task::spawn_blocking(move || partly.fold.finish()).await;
        merged.map_err(|error| StoreError::unavailable(ACTION, error))
    }

    /// Has a reader read something.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        action: &'static str,
        read: impl FnOnce(&mut Reads<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let queues = self.queues(action)?;
        let (read, answered) = reader::prepare(action, read);
        let sent = queues.reads.send(read).await;
        sent.map_err(|_| StoreError::unavailable(action, "the readers have stopped"))?;
        answered.await.map_err(|_| StoreError::unavailable(action, "the reader stopped before it answered"))?
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SqliteStore").field("stats", &self.counters.stats()).finish_non_exhaustive()
    }
}

/// Starts a thread and waits until it says that it could begin.
fn start(
    config: &SqliteConfig,
    name: String,
    run: impl FnOnce(&std::sync::mpsc::SyncSender<rusqlite::Result<()>>) + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    let failed = |action: &'static str, source: Box<dyn std::error::Error + Send + Sync>| OpenError::Database {
        action,
        path: connection::path(config),
        source,
    };
    let (started, starting) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(name).spawn(move || run(&started));
    let thread = thread.map_err(|error| failed("start a thread for", error.into()))?;
    match starting.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(failed("prepare the statements for", error.into())),
        Err(error) => Err(failed("start a thread for", error.into())),
    }
}

/// Waits for threads that are about to end.
async fn join(threads: Vec<JoinHandle<()>>) -> Result<(), StoreError> {
    let joined =
        tokio::task::spawn_blocking(move || threads.into_iter().map(JoinHandle::join).all(|joined| joined.is_ok()))
            .await;
    match joined {
        Ok(true) => Ok(()),
        Ok(false) => Err(StoreError::unavailable("close the store", "a thread panicked")),
        Err(error) => Err(StoreError::unavailable("close the store", error)),
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let commit = Box::new(EncodedCommit::new(commit)?);
        self.write("write a commit", |answer| Job::Commit(commit, answer)).await
    }

    async fn load(&self, scope: &Scope, task_id: &TaskId) -> Result<Option<TaskHead>, StoreError> {
        let (scope, task_id) = (scope.clone(), task_id.clone());
        self.read("load a task", move |reads| reads.load(&scope, &task_id)).await
    }

    async fn scope_of(&self, task_id: &TaskId) -> Result<Option<Scope>, StoreError> {
        let task_id = task_id.clone();
        self.read("read whose task it is", move |reads| reads.scope_of(&task_id)).await
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        query: SnapshotQuery,
    ) -> Result<Option<Snapshot>, StoreError> {
        let (scope, task_id) = (scope.clone(), task_id.clone());
        self.read("read a task", move |reads| reads.snapshot(&scope, &task_id, query)).await
    }

    async fn accepted(
        &self,
        scope: &Scope,
        message_id: &MessageId,
        now: Timestamp,
    ) -> Result<Option<(TaskId, [u8; 32])>, StoreError> {
        let (scope, message_id) = (scope.clone(), message_id.clone());
        self.read("look up an accepted message", move |reads| reads.accepted(&scope, &message_id, now)).await
    }

    async fn events_after(&self, task_id: &TaskId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let task_id = task_id.clone();
        self.read("read a task's log", move |reads| reads.events_after(&task_id, after, limit)).await
    }

    async fn messages(&self, task_id: &TaskId, ordinals: &[u64]) -> Result<Vec<StoredMessage>, StoreError> {
        let (task_id, ordinals) = (task_id.clone(), ordinals.to_vec());
        self.read("read a task's messages", move |reads| reads.messages(&task_id, &ordinals)).await
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.read("list tasks", move |reads| reads.list(&query)).await
    }

    async fn artifact_versions(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactVersion>>, StoreError> {
        let (scope, task_id, artifact_id) = (scope.clone(), task_id.clone(), artifact_id.clone());
        let read = move |reads: &mut Reads<'_>| reads.artifact_versions(&scope, &task_id, &artifact_id, before, limit);
        self.read("read the versions of an artifact", read).await
    }

    async fn artifact(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        artifact_id: &ArtifactId,
        version: Option<u64>,
    ) -> Result<Option<(u64, wire::Artifact)>, StoreError> {
        let (scope, task_id, artifact_id) = (scope.clone(), task_id.clone(), artifact_id.clone());
        let read = move |reads: &mut Reads<'_>| reads.versions(&scope, &task_id, &artifact_id, version);
        Ok(self.read("read an artifact", read).await?.and_then(longhaul_store::VersionFold::into_artifact))
    }

    async fn renew(&self, leases: &[HeldLease], now: Timestamp, until: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        let renewal = Box::new(Renewal { leases: leases.to_vec(), now, until });
        self.write("renew leases", |answer| Job::Renew(renewal, answer)).await
    }

    async fn due(&self, now: Timestamp, limit: usize, rotation: Rotation) -> Result<Due, StoreError> {
        self.read("read which tasks are due", move |reads| reads.due(now, limit, rotation)).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read when a task becomes due", |reads| reads.next_due()).await
    }

    async fn backlog(&self) -> Result<u64, StoreError> {
        self.queues("count the tasks in line")?;
        Ok(self.counters.backlog())
    }

    async fn expire_leases(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.write("end leases", |answer| Job::ExpireLeases(now, answer)).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Bytes>, StoreError> {
        let task_id = task_id.clone();
        self.read("read a checkpoint", move |reads| reads.checkpoint(&task_id)).await
    }

    async fn stale(
        &self,
        states: &[TaskState],
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, StoreError> {
        let states: Vec<_> = states.iter().copied().filter(|state| !state.is_terminal()).collect();
        self.read("find stale tasks", move |reads| reads.stale(&states, before, now, limit)).await
    }

    async fn purge(&self, state: TaskState, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        if !state.is_terminal() {
            return Ok(0);
        }
        let (numbers, mut leftovers) =
            self.read("find tasks to remove", move |reads| reads.ended(state, before, limit)).await?;
        let (mut rest, mut removed) = (numbers.as_slice(), 0);
        while !rest.is_empty() {
            let numbers = rest.iter().copied().take(PURGE_MAX).collect();
            let purge = Purge { numbers, state, before };
            let purged = self.write("remove tasks", |answer| Job::Purge(purge, answer)).await?;
            rest = rest.get(purged.handled..).unwrap_or_default();
            removed += purged.removed;
            leftovers |= purged.leftovers;
        }
        while leftovers {
            leftovers = self.write("remove what tasks have left", Job::Sweep).await?;
        }
        Ok(removed)
    }

    async fn give_back(&self, bytes_max: u64) -> Result<u64, StoreError> {
        let page = u64::from(connection::PAGE_BYTES);
        let (mut left, mut given) = (bytes_max / page, 0);
        while left > 0 {
            let pages = u32::try_from(left).unwrap_or(PAGES_MAX).min(PAGES_MAX);
            let bytes = self.write("give space back", |answer| Job::GiveBack(pages, answer)).await?;
            given += bytes;
            if bytes < u64::from(pages) * page {
                break;
            }
            left -= u64::from(pages);
        }
        Ok(given)
    }

    async fn compact(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let numbers = self.read("find logs to merge", move |reads| reads.compactable(before, limit)).await?;
        let count = numbers.len() as u64;
        for number in numbers {
            let changes = match self.merged(number).await {
                Ok(changes) => changes,
                // Left as it is, or no other would ever get its turn.
                Err(StoreError::Corrupt { what }) => {
                    tracing::warn!(number, what, "cannot merge a log");
                    None
                }
                Err(error) => return Err(error),
            };
            let compact = Box::new(Compact { number, changes });
            self.write("merge a log", |answer| Job::Compact(compact, answer)).await?;
        }
        Ok(count)
    }

    async fn marks(&self, task_ids: &[TaskId]) -> Result<Vec<TaskMark>, StoreError> {
        let task_ids = task_ids.to_vec();
        self.read("read how far tasks have come", move |reads| reads.marks(task_ids)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.write("write to the database", Job::Check).await?;
        self.read("read from the database", |reads| reads.check()).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        let queues = self.queues.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Queues { jobs, reads }) = queues else {
            return Err(StoreError::unavailable("close the store", "the store is closed"));
        };
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // The readers end first, so that nobody is in the way of the last checkpoint.
        drop(reads);
        join(threads.readers).await?;
        let (answer, answered) = oneshot::channel();
        let sent = jobs.send(Job::Close(answer)).await;
        sent.map_err(|_| StoreError::unavailable("close the store", "the writer has stopped"))?;
        let closed = answered
            .await
            .map_err(|_| StoreError::unavailable("close the store", "the writer stopped before it answered"))?;
        join(threads.writer.into_iter().collect()).await?;
        closed
    }
}
