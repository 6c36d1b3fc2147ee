use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul_protocol::TaskId;
use tokio_util::sync::CancellationToken;

use crate::turn::TurnShared;

/// The turns that run in this process.
#[derive(Debug, Default)]
pub(crate) struct Running {
    turns: Mutex<HashMap<TaskId, RunningTurn>>,
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

    /// Tells the agent of a turn that a caller wants it to be canceled.
    pub fn cancel(&self, task_id: &TaskId) {
        if let Some(turn) = self.turns().get(task_id) {
            turn.shared.cancel.cancel();
        }
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
        if let Some(turn) = self.turns().get(task_id) {
            turn.shared.deliver(ordinal);
        }
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
