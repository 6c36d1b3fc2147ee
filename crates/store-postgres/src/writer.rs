//! Writers: each has a connection of its own and makes one transaction of whatever waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use longhaul_store::{Committed, EncodedCommit, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use self::batch::{Existence, Told};
use self::transaction::{Failure, transact};
use crate::backoff::jittered;
use crate::fault::{Fault, Remedy};
use crate::notify::Notifier;
use crate::session::{Database, Session};

mod batch;
mod known;
mod leases;
mod pushes;
mod rows;
mod statements;
mod transaction;

pub(crate) use self::leases::{check, expire, renew};

/// How many commits may wait for a writer before who sends one has to wait for a place.
pub(crate) const QUEUE_MAX: usize = 8192;
/// How many commits one transaction makes at the most.
const BATCH_COMMITS_MAX: usize = 512;
/// How much one transaction writes at the most, a single commit apart.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// How often a transaction is tried that collides with others.
const COLLISIONS_MAX: u32 = 10;
/// For how long a commit waits for a connection, while it is known that nothing of it was made.
const PATIENCE: Duration = Duration::from_secs(3);
const RECONNECT_MIN: Duration = Duration::from_millis(50);
const RECONNECT_MAX: Duration = Duration::from_secs(1);

const WRITE: &str = "write a commit";

/// Where a writer leaves its answer.
pub(crate) type Answer = oneshot::Sender<Result<Committed, StoreError>>;

/// A commit on its way, and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) commit: Box<EncodedCommit>,
    pub(crate) answer: Answer,
    pub(crate) since: Instant,
}

impl Job {
    fn answer(self, outcome: Result<Committed, StoreError>) {
        // Who waited may have gone.
        drop(self.answer.send(outcome));
    }

    fn fail(self, fault: &Fault) {
        self.answer(Err(StoreError::unavailable(WRITE, fault.told())));
    }
}

/// What the writers have done since the store was opened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WriterStats {
    /// How many commits were answered, refused ones too.
    pub commits: u64,
    /// How many transactions they took.
    pub batches: u64,
}

/// The counters behind [`WriterStats`], and how many more tasks are in line than when they were counted last.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) joined_line: AtomicI64,
    commits: AtomicU64,
    batches: AtomicU64,
}

impl Counters {
    pub(crate) fn stats(&self) -> WriterStats {
        WriterStats { commits: self.commits.load(Ordering::Relaxed), batches: self.batches.load(Ordering::Relaxed) }
    }
}

/// One of the hands that write.
pub(crate) struct Writer {
    database: Database,
    session: Option<Session>,
    notifier: Notifier,
    counters: Arc<Counters>,
}

impl Writer {
    pub(crate) fn new(database: Database, notifier: Notifier, counters: Arc<Counters>) -> Self {
        Self { database, session: None, notifier, counters }
    }

    /// Writes what comes until the queue ends.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut left_over = None;
        loop {
            let first = match left_over.take() {
                Some(job) => job,
                None => match queue.recv().await {
                    Some(job) => job,
                    None => return,
                },
            };
            // What came in while the last batch was written is the next one: no delay is ever added.
            let (batch, next) = take_batch(first, &mut queue);
            left_over = next;
            self.counters.commits.fetch_add(batch.len() as u64, Ordering::Relaxed);
            self.write(batch).await;
        }
    }

    /// Writes a batch; what may be one commit's fault is then tried commit by commit.
    async fn write(&mut self, batch: Vec<Job>) {
        let (batch, fault) = match self.write_together(batch, Existence::FoundAtTheEnd).await {
            Ok(()) => return,
            Err(failed) => failed,
        };
        if fault.remedy() != Remedy::Alone {
            return fail(batch, &fault);
        }
        for job in batch {
            if let Err((jobs, fault)) = self.write_together(vec![job], Existence::AskedBefore).await {
                fail(jobs, &fault);
            }
        }
    }

    /// Writes a batch in one transaction, and answers when it can no longer be lost. What collides with others, and what was
    /// certainly not made because a connection ended, is done again.
    async fn write_together(&mut self, batch: Vec<Job>, existence: Existence) -> Result<(), (Vec<Job>, Fault)> {
        let mut collisions = 0;
        let mut delay = RECONNECT_MIN;
        loop {
            self.counters.batches.fetch_add(1, Ordering::Relaxed);
            let failure = match self.transact(&batch, existence).await {
                Ok((outcomes, told)) => {
                    self.counters.joined_line.fetch_add(told.joined_line, Ordering::Relaxed);
                    self.notifier.ring(told.marks, told.due);
                    batch.into_iter().zip(outcomes).for_each(|(job, outcome)| job.answer(outcome));
                    return Ok(());
                }
                Err(failure) => failure,
            };
            let Failure { fault, may_be_made } = failure;
            match fault.remedy() {
                Remedy::Again if collisions < COLLISIONS_MAX => {
                    collisions += 1;
                    tokio::time::sleep(jittered(RECONNECT_MIN / 10 * collisions)).await;
                }
                // A key that another instance took at this moment: the next look finds it.
                Remedy::Alone
                    if existence == Existence::AskedBefore && fault.is_taken() && collisions < COLLISIONS_MAX =>
                {
                    collisions += 1;
                }
                Remedy::Reconnect => {
                    self.session = None;
                    let waited = batch.iter().map(|job| job.since.elapsed()).max().unwrap_or_default();
                    if may_be_made || waited + delay > PATIENCE {
                        return Err((batch, fault));
                    }
                    tokio::time::sleep(jittered(delay)).await;
                    delay = (delay * 2).min(RECONNECT_MAX);
                }
                Remedy::Again | Remedy::Alone | Remedy::GiveUp => return Err((batch, fault)),
            }
        }
    }

    async fn transact(
        &mut self,
        batch: &[Job],
        existence: Existence,
    ) -> Result<(Vec<Result<Committed, StoreError>>, Told), Failure> {
        let commits: Vec<&EncodedCommit> = batch.iter().map(|job| &*job.commit).collect();
        let session = match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => session,
            None => self.database.connect().await.map_err(Failure::before)?,
        };
        let session = self.session.insert(session);
        transact(session, &self.database.config, &commits, existence).await
    }
}

fn fail(batch: Vec<Job>, fault: &Fault) {
    let error = fault as &dyn std::error::Error;
    tracing::error!(error, commits = batch.len(), "cannot write");
    batch.into_iter().for_each(|job| job.fail(fault));
}

/// Takes what waits: as many commits as one transaction may make, and the one that did not fit.
fn take_batch(first: Job, queue: &mut mpsc::Receiver<Job>) -> (Vec<Job>, Option<Job>) {
    let mut bytes = first.commit.bytes;
    let mut batch = vec![first];
    while batch.len() < BATCH_COMMITS_MAX {
        let Ok(job) = queue.try_recv() else { return (batch, None) };
        if bytes + job.commit.bytes > BATCH_BYTES_MAX {
            return (batch, Some(job));
        }
        bytes += job.commit.bytes;
        batch.push(job);
    }
    (batch, None)
}
