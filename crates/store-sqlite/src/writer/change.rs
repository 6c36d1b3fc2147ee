//! Changes that join a batch and bring their answer along, whatever it is.

use std::cell::Cell;
use std::fmt;

use longhaul_store::StoreError;

use super::Answer;
use super::batch::Batch;
use crate::fault::Fault;

/// A change with a place for its answer, and who waits for that.
pub(crate) trait Change: fmt::Debug + Send {
    /// What is attempted, for the error that says that it failed.
    fn action(&self) -> &'static str;

    /// Makes the change. It is made again when the batch that it was made in is undone.
    fn make(&self, batch: &mut Batch<'_, '_, '_>) -> Result<(), Fault>;

    /// It can no longer be lost.
    fn answer(self: Box<Self>);

    /// It was not made.
    fn fail(self: Box<Self>, error: StoreError);
}

/// Makes a change of what a batch does for it.
pub(crate) fn prepare<T: Send + 'static>(
    action: &'static str,
    make: impl Fn(&mut Batch<'_, '_, '_>) -> Result<T, Fault> + Send + 'static,
    answer: Answer<T>,
) -> Box<dyn Change> {
    Box::new(Prepared { action, make, done: Cell::new(None), answer })
}

struct Prepared<T, F> {
    action: &'static str,
    make: F,
    done: Cell<Option<T>>,
    answer: Answer<T>,
}

impl<T, F> fmt::Debug for Prepared<T, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Prepared").field("action", &self.action).finish_non_exhaustive()
    }
}

impl<T: Send, F: Fn(&mut Batch<'_, '_, '_>) -> Result<T, Fault> + Send> Change for Prepared<T, F> {
    fn action(&self) -> &'static str {
        self.action
    }

    fn make(&self, batch: &mut Batch<'_, '_, '_>) -> Result<(), Fault> {
        self.done.set(Some((self.make)(batch)?));
        Ok(())
    }

    fn answer(self: Box<Self>) {
        // Who waited may have gone; without an answer it is told that the writer gave none.
        if let Some(done) = self.done.take() {
            let _ = self.answer.send(Ok(done));
        }
    }

    fn fail(self: Box<Self>, error: StoreError) {
        let _ = self.answer.send(Err(error));
    }
}
