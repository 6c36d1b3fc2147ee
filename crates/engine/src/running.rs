use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul_protocol::TaskId;
use tokio_util::sync::CancellationToken;

use crate::turn::TurnShared;

/// The turns that run in this process.
#[derive(Debug, Default)]
pub(crate) struct Running {
    turns: Mutex<HashMap<TaskId, RunningTurn>>,
    /// How often something was to be told to a turn that was not there: one that has its lease, but does not run yet,
    /// has to look.
    missed: AtomicU64,
}

#[derive(Debug)]
struct RunningTurn {
    shared: Arc<TurnShared>,
    abort: CancellationToken,
}

impl Running {
    fn turns(&self) -> MutexGuard<'_, HashMap<TaskId, RunningTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a turn in; it is taken out again when what this answers is dropped.
    pub fn register(self: &Arc<Self>, shared: Arc<TurnShared>) -> Registered {
        let abort = CancellationToken::new();
        let (task_id, epoch) = (shared.task_id.clone(), shared.epoch);
        self.turns().insert(task_id.clone(), RunningTurn { shared, abort: abort.clone() });
        Registered { running: Arc::clone(self), task_id, epoch, abort }
    }

    /// How often somebody looked for a turn that was not there. Ask before a lease is taken, and again when its turn is
    /// registered: if it is the same number, nothing was missed.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::SeqCst)
    }

    fn tell(&self, task_id: &TaskId, tell: impl FnOnce(&TurnShared)) {
        let turns = self.turns();
        match turns.get(task_id) {
            Some(turn) => tell(&turn.shared),
            // Counted under the lock, so that whoever registers later sees it.
            None => {
                self.missed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Tells the agent of a turn that a caller wants it to be canceled.
    pub fn cancel(&self, task_id: &TaskId) {
        self.tell(task_id, |shared| shared.cancel.cancel());
    }

    /// Ends a turn whose lease is over: its agent is dropped.
    pub fn abort(&self, task_id: &TaskId) {
        if let Some(turn) = self.turns().get(task_id) {
            turn.abort.cancel();
        }
    }

    /// Ends all turns.
    pub fn abort_all(&self) {
        for turn in self.turns().values() {
            turn.abort.cancel();
        }
    }

    /// Puts a message that waits into the inbox of the task's turn.
    pub fn deliver(&self, task_id: &TaskId, ordinal: u64) {
        self.tell(task_id, |shared| shared.deliver(ordinal));
    }

    /// Whether the task has a turn here.
    pub fn runs(&self, task_id: &TaskId) -> bool {
        self.turns().contains_key(task_id)
    }

    /// How many turns run.
    pub fn len(&self) -> usize {
        self.turns().len()
    }
}

#[derive(Debug)]
pub(crate) struct Registered {
    running: Arc<Running>,
    task_id: TaskId,
    epoch: u64,
    pub abort: CancellationToken,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut turns = self.running.turns();
        if turns.get(&self.task_id).is_some_and(|turn| turn.shared.epoch == self.epoch) {
            turns.remove(&self.task_id);
        }
    }
}
