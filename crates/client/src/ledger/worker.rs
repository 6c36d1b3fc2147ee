//! The thread that has the file. It takes what is waiting, does it in one transaction with one `fsync`, and only then answers.

use std::path::Path;

use rusqlite::ErrorCode;
use tokio::sync::{mpsc, oneshot};

use super::db::Db;
use super::{LedgerError, file};

/// How many jobs may wait before who sends one has to wait for a place.
pub(super) const QUEUE_MAX: usize = 1024;
/// How many jobs one transaction does at the most.
const BATCH_JOBS_MAX: usize = 512;

/// Where an answer is left.
pub(super) type Answer<T> = oneshot::Sender<Result<T, LedgerError>>;

/// Whether a job changes something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    Read,
    Write,
}

/// What the thread is asked to do.
pub(super) enum Order {
    Do(Box<dyn Job>),
    /// Do what is queued, then end.
    Close(Answer<()>),
}

/// A piece of work that knows whom to answer.
pub(super) trait Job: Send {
    fn access(&self) -> Access;
    /// Does the work within a transaction. Says whether it is to be kept.
    fn make(&mut self, db: &Db<'_>) -> Made;
    /// Tells what the work gave: it can no longer be lost.
    fn answer(self: Box<Self>);
    /// Tells that the transaction failed.
    fn fail(self: Box<Self>, fault: &Fault);
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Made {
    Done,
    Refused,
}

/// What is wrong below the ledger's own rules.
#[derive(Debug)]
pub(super) enum Fault {
    /// Another process had the file for too long.
    Busy,
    /// What SQLite says.
    Failed(String),
}

impl Fault {
    pub(super) fn error(&self, action: &'static str) -> LedgerError {
        match self {
            Self::Busy => LedgerError::Busy { after: file::BUSY_TIMEOUT },
            Self::Failed(text) => LedgerError::Unavailable { action, source: text.clone().into() },
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// What a job's own work comes to grief by.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The ledger's rules.
    Refused(LedgerError),
    /// The database.
    Database(rusqlite::Error),
}

impl From<LedgerError> for Trouble {
    fn from(error: LedgerError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// Makes a job of a function. What waits for its answer may go: the job is done all the same.
pub(super) fn job<T, F>(access: Access, action: &'static str, work: F, answer: Answer<T>) -> Box<dyn Job>
where
    T: Send + 'static,
    F: FnOnce(&Db<'_>) -> Result<T, Trouble> + Send + 'static,
{
    Box::new(Work { access, action, work: Some(work), outcome: None, answer })
}

struct Work<T, F> {
    access: Access,
    action: &'static str,
    work: Option<F>,
    outcome: Option<Result<T, LedgerError>>,
    answer: Answer<T>,
}

impl<T: Send, F: FnOnce(&Db<'_>) -> Result<T, Trouble> + Send> Job for Work<T, F> {
    fn access(&self) -> Access {
        self.access
    }

    fn make(&mut self, db: &Db<'_>) -> Made {
        let Some(work) = self.work.take() else { return Made::Refused };
        let outcome = work(db).map_err(|trouble| match trouble {
            Trouble::Refused(error) => error,
            Trouble::Database(error) => Fault::from(error).error(self.action),
        });
        let made = if outcome.is_ok() { Made::Done } else { Made::Refused };
        self.outcome = Some(outcome);
        made
    }

    fn answer(self: Box<Self>) {
        if let Some(outcome) = self.outcome {
            // Who waited may have gone.
            let _ = self.answer.send(outcome);
        }
    }

    fn fail(self: Box<Self>, fault: &Fault) {
        let error = match self.outcome {
            // It has a reason of its own, which says more.
            Some(Err(error)) => error,
            Some(Ok(_)) | None => fault.error(self.action),
        };
        let _ = self.answer.send(Err(error));
    }
}

/// Opens the file, tells `opened`, and works until the queue ends.
pub(super) fn run(path: &Path, mut queue: mpsc::Receiver<Order>, opened: Answer<()>) {
    let connection = match file::open(path) {
        Ok(connection) => connection,
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    if opened.send(Ok(())).is_err() {
        return;
    }
    let closing = serve(&Db::new(&connection), &mut queue);
    let closed = connection.close().map_err(|(_, error)| Fault::from(error));
    for answer in closing {
        let _ = answer.send(closed.as_ref().copied().map_err(|fault| fault.error("be closed")));
    }
}

/// Works until the queue is at its end. Returns who wants to know that the file is closed.
fn serve(db: &Db<'_>, queue: &mut mpsc::Receiver<Order>) -> Vec<Answer<()>> {
    let mut closing = Vec::new();
    // What came in while the last batch was written is the next one: no delay is ever added.
    let mut orders = Vec::with_capacity(BATCH_JOBS_MAX);
    while queue.blocking_recv_many(&mut orders, BATCH_JOBS_MAX) > 0 {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for order in orders.drain(..) {
            match order {
                Order::Do(job) if job.access() == Access::Read => reads.push(job),
                Order::Do(job) => writes.push(job),
                Order::Close(answer) => {
                    queue.close();
                    closing.push(answer);
                }
            }
        }
        do_all(db, "BEGIN", reads);
        do_all(db, "BEGIN IMMEDIATE", writes);
    }
    closing
}

/// Does the jobs in one transaction, and answers when it can no longer be lost.
fn do_all(db: &Db<'_>, begin: &str, mut jobs: Vec<Box<dyn Job>>) {
    if jobs.is_empty() {
        return;
    }
    match transact(db, begin, &mut jobs) {
        Ok(()) => jobs.into_iter().for_each(|job| job.answer()),
        Err(fault) => {
            if !db.connection.is_autocommit() {
                // It fails when SQLite has undone the transaction by itself.
                let _ = db.connection.execute_batch("ROLLBACK");
            }
            tracing::warn!(fault = ?fault, jobs = jobs.len(), "nothing of a batch was written to the ledger");
            for job in jobs {
                job.fail(&fault);
            }
        }
    }
}

fn transact(db: &Db<'_>, begin: &str, jobs: &mut [Box<dyn Job>]) -> Result<(), Fault> {
    let say = |sql: &str| db.prepare(sql).and_then(|mut statement| statement.execute([]));
    say(begin)?;
    for job in jobs {
        // A job that is refused fails alone.
        say("SAVEPOINT job")?;
        if job.make(db) == Made::Refused {
            if db.connection.is_autocommit() {
                return Err(Fault::Failed("the transaction was undone: the disk is full or broken".to_owned()));
            }
            say("ROLLBACK TO job")?;
        }
        say("RELEASE job")?;
    }
    say("COMMIT")?;
    Ok(())
}
