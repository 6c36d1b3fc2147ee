use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_store::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use self::statements::Statements;
use crate::fault::Fault;

pub(crate) mod compact;
mod due;
mod list;
mod oldest;
mod push;
pub(crate) mod row;
mod statements;
mod view;

/// How many reads may wait for a reader before who sends one has to wait for a place.
pub(crate) const QUEUE_MAX: usize = 1024;

/// One read on its way to a thread that reads.
pub(crate) type Read = Box<dyn FnOnce(&mut Reads<'_>) + Send>;

/// One connection that only reads, with its statements.
pub(crate) struct Reads<'c> {
    connection: &'c Connection,
    statements: Statements<'c>,
}

impl<'c> Reads<'c> {
    fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self { connection, statements: Statements::prepare(connection)? })
    }

    /// Does `read` in one transaction: all that it reads is of one moment.
    fn transact<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if !self.connection.is_autocommit() {
            self.statements.commit.execute([])?;
        }
        self.statements.begin.execute([])?;
        let done = read(self);
        self.statements.commit.execute([])?;
        done
    }
}

/// Makes a read of `read`, and the place where its answer will be.
pub(crate) fn prepare<T: Send + 'static>(
    action: &'static str,
    read: impl FnOnce(&mut Reads<'_>) -> Result<T, Fault> + Send + 'static,
) -> (Read, oneshot::Receiver<Result<T, StoreError>>) {
    let (answer, answered) = oneshot::channel();
    let read = move |reads: &mut Reads<'_>| {
        // Who waits for it may have gone.
        if !answer.is_closed() {
            let _ = answer.send(reads.transact(read).map_err(|fault| fault.into_store(action)));
        }
    };
    (Box::new(read), answered)
}

/// Runs one reader on this thread until the queue ends.
pub(crate) fn run(
    connection: &Connection,
    queue: &Arc<Mutex<mpsc::Receiver<Read>>>,
    started: &std::sync::mpsc::SyncSender<rusqlite::Result<()>>,
) {
    let mut reads = match Reads::new(connection) {
        Ok(reads) => reads,
        Err(error) => {
            // Whoever opens the store has the other end, and waits.
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(()));
    loop {
        // One idle reader waits for the queue, the others for this lock. Nothing can panic while it is held.
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(read) = next else { return };
        // A read that panics has dropped its answer, which its caller sees; the reader goes on with the next.
        if catch_unwind(AssertUnwindSafe(|| read(&mut reads))).is_err() {
            tracing::error!("a read of the database panicked");
        }
    }
}
