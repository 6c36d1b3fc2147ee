use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use longhaul_protocol::{TaskId, Timestamp};
use longhaul_store::{Committed, EncodedCommit, HeldLease, StoreError};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::batch::Batch;
use self::batch::{Outcome, Work};
use self::change::Change;
use self::compact::Compact;
use self::purge::{Purge, Purged};
use self::transaction::Writer;
use crate::fault::Fault;
use crate::lock::DirectoryLock;

mod batch;
pub(crate) mod change;
pub(crate) mod compact;
pub(crate) mod purge;
pub(crate) mod push;
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
    Renew(Box<Renewal>, Answer<Vec<TaskId>>),
    /// A change that joins a batch and knows whom to answer.
    Change(Box<dyn Change>),
    ExpireLeases(Timestamp, Answer<u64>),
    /// Remove tasks, as many as one short transaction may.
    Purge(Purge, Answer<Purged>),
    /// Remove a slice of what removed tasks have left. Answers whether there is more.
    Sweep(Answer<bool>),
    /// Put what was merged in the place of a task's log.
    Compact(Box<Compact>, Answer<()>),
    /// Give at most so many free pages back. Answers how many bytes they were.
    GiveBack(u32, Answer<u64>),
    Check(Answer<()>),
    /// Do what is queued, then end.
    Close(Answer<()>),
}

/// Leases whose ends are to be moved.
#[derive(Debug)]
pub(crate) struct Renewal {
    pub(crate) leases: Vec<HeldLease>,
    pub(crate) now: Timestamp,
    pub(crate) until: Timestamp,
}

/// What the writer has done since the store was opened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WriterStats {
    /// How many commits were answered, refused ones too.
    pub commits: u64,
    /// How many transactions they took: each is one `fsync`.
    pub batches: u64,
}

/// The counters behind [`WriterStats`], and how many tasks are in line.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    backlog: AtomicI64,
    commits: AtomicU64,
    batches: AtomicU64,
}

impl Counters {
    /// How many tasks wait for a worker, as of the last transaction.
    pub(crate) fn backlog(&self) -> u64 {
        u64::try_from(self.backlog.load(Ordering::Relaxed)).unwrap_or(0)
    }

    fn set_backlog(&self, tasks: i64) {
        self.backlog.store(tasks, Ordering::Relaxed);
    }

    fn add_to_backlog(&self, tasks: i64) {
        if tasks != 0 {
            self.backlog.fetch_add(tasks, Ordering::Relaxed);
        }
    }

    pub(crate) fn stats(&self) -> WriterStats {
        WriterStats { commits: self.commits.load(Ordering::Relaxed), batches: self.batches.load(Ordering::Relaxed) }
    }
}

/// A piece of work that is waiting to become a part of a batch, and who waits for it.
enum Waiting {
    Commit(Box<EncodedCommit>, Answer<Committed>),
    Renew(Box<Renewal>, Answer<Vec<TaskId>>),
    Change(Box<dyn Change>),
}

impl Waiting {
    fn work(&self) -> Work<'_> {
        match self {
            Self::Commit(commit, _) => Work::Commit(commit),
            Self::Renew(renewal, _) => Work::Renew(renewal),
            Self::Change(change) => Work::Change(&**change),
        }
    }

    fn action(&self) -> &'static str {
        match self {
            Self::Commit(..) => WRITE,
            Self::Renew(..) => "renew leases",
            Self::Change(change) => change.action(),
        }
    }

    fn answer(self, outcome: Outcome) {
        match (self, outcome) {
            (Self::Commit(_, answer), Outcome::Committed(outcome)) => drop(answer.send(outcome)),
            (Self::Renew(_, answer), Outcome::Renewed(lost)) => drop(answer.send(Ok(lost))),
            (Self::Change(change), Outcome::Changed) => change.answer(),
            // Whoever waits is told that the writer gave no answer.
            (Self::Commit(..) | Self::Renew(..) | Self::Change(_), _) => {}
        }
    }

    fn fail(self, error: StoreError) {
        match self {
            Self::Commit(_, answer) => drop(answer.send(Err(error))),
            Self::Renew(_, answer) => drop(answer.send(Err(error))),
            Self::Change(change) => change.fail(error),
        }
    }
}

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
    let closing = match Writer::new(&connection, Arc::clone(counters)) {
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
        let batch = take_batch(&mut jobs);
        if !batch.is_empty() {
            write(&mut writer, batch, counters);
        }
        match jobs.pop_front() {
            Some(Job::Close(answer)) => {
                queue.close();
                closing.push(answer);
            }
            Some(other) => do_alone(&mut writer, other, &mut jobs),
            None => {}
        }
    }
}

/// Does a job that is not part of a batch.
fn do_alone(writer: &mut Writer<'_>, job: Job, jobs: &mut VecDeque<Job>) {
    match job {
        Job::ExpireLeases(now, answer) => {
            answer_with(answer, "end leases", writer.transact(|writer| writer.expire_leases(now)));
        }
        Job::Purge(purge, answer) => {
            answer_with(answer, "remove tasks", writer.transact(|writer| writer.purge(&purge)));
        }
        Job::Sweep(answer) => answer_with(answer, "remove what tasks have left", writer.transact(Writer::sweep)),
        Job::Compact(compact, answer) => {
            answer_with(answer, "merge a log", writer.transact(|writer| writer.compact(&compact)));
        }
        Job::GiveBack(pages, answer) => answer_with(answer, "give space back", writer.give_back(pages)),
        Job::Check(answer) => answer_with(answer, "write to the database", writer.transact(Writer::check)),
        batched @ (Job::Commit(..) | Job::Renew(..) | Job::Change(_) | Job::Close(_)) => jobs.push_front(batched),
    }
}

fn answer_with<T>(answer: Answer<T>, action: &'static str, done: Result<T, Fault>) {
    drop(answer.send(done.map_err(|fault| fault.into_store(action))));
}

/// Takes the commits, renewals and changes at the front: as many as one transaction may make.
fn take_batch(jobs: &mut VecDeque<Job>) -> Vec<Waiting> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(job) = jobs.pop_front() {
        match job {
            Job::Commit(commit, answer) if batch.is_empty() || bytes + commit.bytes <= BATCH_BYTES_MAX => {
                bytes += commit.bytes;
                batch.push(Waiting::Commit(commit, answer));
            }
            Job::Renew(renewal, answer) => batch.push(Waiting::Renew(renewal, answer)),
            Job::Change(change) => batch.push(Waiting::Change(change)),
            other => {
                jobs.push_front(other);
                break;
            }
        }
    }
    batch
}

/// Does the work in one transaction, and answers when it can no longer be lost.
fn write(writer: &mut Writer<'_>, batch: Vec<Waiting>, counters: &Counters) {
    let commits = batch.iter().filter(|waiting| matches!(waiting, Waiting::Commit(..))).count();
    counters.commits.fetch_add(commits as u64, Ordering::Relaxed);
    counters.batches.fetch_add(1, Ordering::Relaxed);
    let work: Vec<Work<'_>> = batch.iter().map(Waiting::work).collect();
    let done = writer.work(&work);
    drop(work);
    match done {
        Ok(outcomes) => batch.into_iter().zip(outcomes).for_each(|(waiting, outcome)| waiting.answer(outcome)),
        Err(fault) if fault.may_be_one_commit() => {
            for waiting in batch {
                counters.batches.fetch_add(1, Ordering::Relaxed);
                match writer.work_alone(waiting.work()) {
                    Ok(outcome) => waiting.answer(outcome),
                    Err(fault) => {
                        let action = waiting.action();
                        waiting.fail(fault.into_store(action));
                    }
                }
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
    for waiting in batch {
        let action = waiting.action();
        waiting.fail(StoreError::unavailable(action, text.clone()));
    }
}
