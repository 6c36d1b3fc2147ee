use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_protocol::Timestamp;
use longhaul_store::{Committed, Release, StoreError};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use self::encoded::EncodedCommit;
use self::transaction::Writer;
use crate::fault::Fault;
use crate::lock::DirectoryLock;

mod batch;
pub(crate) mod encoded;
mod statements;
#[cfg(test)]
mod tests;
mod transaction;

/// How many jobs may wait for the writer before who sends one has to wait for a place.
pub(crate) const QUEUE_MAX: usize = 8192;
/// How many commits one transaction makes at the most.
const BATCH_COMMITS_MAX: usize = 512;
/// How much one transaction writes at the most, a single commit apart.
const BATCH_BYTES_MAX: usize = 4 << 20;

const WRITE: &str = "write a commit";

/// Where the writer leaves its answer.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer is asked to do.
#[derive(Debug)]
pub(crate) enum Job {
    Commit(Box<EncodedCommit>, Answer<Committed>),
    ReleaseLeases(Release, Timestamp, Answer<u64>),
    Check(Answer<()>),
    /// Do what is queued, then end.
    Close(Answer<()>),
}

/// What the writer has done since the store was opened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WriterStats {
    /// How many commits were answered, refused ones too.
    pub commits: u64,
    /// How many transactions they took: each is one `fsync`.
    pub batches: u64,
}

/// The counters behind [`WriterStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    batches: AtomicU64,
}

impl Counters {
    pub(crate) fn stats(&self) -> WriterStats {
        WriterStats { commits: self.commits.load(Ordering::Relaxed), batches: self.batches.load(Ordering::Relaxed) }
    }
}

/// One commit that is waiting, and who waits for it.
type Waiting = (Box<EncodedCommit>, Answer<Committed>);

/// Runs the writer on this thread until the queue ends. Tells `started` whether it could begin.
///
/// The lock is dropped last: nobody may open the file before the connection is closed.
pub(crate) fn run(
    connection: Connection,
    lock: DirectoryLock,
    queue: mpsc::Receiver<Job>,
    counters: &Arc<Counters>,
    started: &std::sync::mpsc::SyncSender<rusqlite::Result<()>>,
) {
    let closing = match Writer::new(&connection) {
        Ok(writer) => {
            // Whoever opens the store has the other end, and waits.
            let _ = started.send(Ok(()));
            serve(writer, queue, counters)
        }
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let closed = close(connection);
    drop(lock);
    match closed {
        Ok(()) => closing.into_iter().for_each(|answer| drop(answer.send(Ok(())))),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot close the database");
            let error = error.to_string();
            closing.into_iter().for_each(|answer| {
                drop(answer.send(Err(StoreError::unavailable("close the database", error.clone()))))
            });
        }
    }
}

/// Moves the write-ahead log into the file, so that one file is all there is to copy.
fn close(connection: Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
}

fn serve(mut writer: Writer<'_>, mut queue: mpsc::Receiver<Job>, counters: &Counters) -> Vec<Answer<()>> {
    let mut jobs = VecDeque::with_capacity(BATCH_COMMITS_MAX);
    let mut closing = Vec::new();
    loop {
        if jobs.is_empty() {
            match queue.blocking_recv() {
                Some(job) => jobs.push_back(job),
                None => return closing,
            }
        }
        // What came in while the last batch was written is the next one: no delay is ever added.
        while jobs.len() < BATCH_COMMITS_MAX
            && let Ok(job) = queue.try_recv()
        {
            jobs.push_back(job);
        }
        let batch = take_commits(&mut jobs);
        if !batch.is_empty() {
            write(&mut writer, batch, counters);
        }
        match jobs.pop_front() {
            Some(Job::ReleaseLeases(release, now, answer)) => {
                let released = writer.transact(|writer| writer.release_leases(release, now));
                drop(answer.send(released.map_err(|fault| fault.into_store("release leases"))));
            }
            Some(Job::Check(answer)) => {
                let checked = writer.transact(Writer::check);
                drop(answer.send(checked.map_err(|fault| fault.into_store("write to the database"))));
            }
            Some(Job::Close(answer)) => {
                queue.close();
                closing.push(answer);
            }
            Some(commit @ Job::Commit(..)) => jobs.push_front(commit),
            None => {}
        }
    }
}

/// Takes the commits at the front: as many as one transaction may make.
fn take_commits(jobs: &mut VecDeque<Job>) -> Vec<Waiting> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(job) = jobs.pop_front() {
        match job {
            Job::Commit(commit, answer) if batch.is_empty() || bytes + commit.bytes <= BATCH_BYTES_MAX => {
                bytes += commit.bytes;
                batch.push((commit, answer));
            }
            other => {
                jobs.push_front(other);
                break;
            }
        }
    }
    batch
}

/// Makes the commits in one transaction, and answers when it can no longer be lost.
fn write(writer: &mut Writer<'_>, batch: Vec<Waiting>, counters: &Counters) {
    counters.commits.fetch_add(batch.len() as u64, Ordering::Relaxed);
    counters.batches.fetch_add(1, Ordering::Relaxed);
    let commits: Vec<&EncodedCommit> = batch.iter().map(|(commit, _)| &**commit).collect();
    match writer.commit(&commits) {
        Ok(outcomes) => batch.into_iter().zip(outcomes).for_each(|((_, answer), outcome)| drop(answer.send(outcome))),
        Err(fault) if fault.may_be_one_commit() => {
            for (commit, answer) in batch {
                counters.batches.fetch_add(1, Ordering::Relaxed);
                drop(answer.send(writer.commit_alone(&commit)));
            }
        }
        Err(fault) => fail(batch, fault),
    }
}

/// Nothing of the batch was made: a full disk, or one that fails.
fn fail(batch: Vec<Waiting>, fault: Fault) {
    let error = fault.into_store(WRITE);
    tracing::error!(error = &error as &dyn std::error::Error, commits = batch.len(), "cannot write");
    let text = match std::error::Error::source(&error) {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    };
    for (_, answer) in batch {
        drop(answer.send(Err(StoreError::unavailable(WRITE, text.clone()))));
    }
}
