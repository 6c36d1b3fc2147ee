use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul_lifecycle::AttemptOutcome;
use longhaul_protocol::TaskId;
use tokio::sync::Notify;

use crate::turn::TurnShared;

/// The turns that run in this process.
#[derive(Debug, Default)]
pub(crate) struct Running {
    turns: Mutex<Turns>,
    /// How often something was to be told to a turn that was not there: one that has its lease, but does not run yet,
    /// has to look.
    missed: AtomicU64,
}

#[derive(Debug, Default)]
struct Turns {
    by_task: BTreeMap<TaskId, RunningTurn>,
    /// Why all turns were stopped: one that comes later is stopped as well.
    all: Option<Stop>,
    /// How many starts of each task are on their way here: their leases may be taken, and their turns are not there yet.
    begun: BTreeMap<TaskId, usize>,
}

/// Why a turn is stopped from outside.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Stop {
    /// Its lease is over, or somebody ended the task: whatever it does counts no more.
    Lost,
    /// The engine goes down.
    HandBack,
    /// The attempt hangs.
    Attempt(AttemptOutcome),
}

/// The way to stop a turn: the first reason counts, but for the loss of its lease, which always does.
#[derive(Debug, Default)]
pub(crate) struct Stopper {
    stop: Mutex<Option<Stop>>,
    rung: Notify,
}

impl Stopper {
    pub fn stop(&self, stop: Stop) {
        let mut known = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() || stop == Stop::Lost {
            *known = Some(stop);
        }
        drop(known);
        self.rung.notify_one();
    }

    /// Whether the turn was told and has not heard it: nobody polls it.
    fn is_deaf(&self) -> bool {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits until there is a reason. The same one may come again.
    pub async fn stopped(&self) -> Stop {
        loop {
            let rung = self.rung.notified();
            if let Some(stop) = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return stop;
            }
            rung.await;
        }
    }
}

#[derive(Debug)]
struct RunningTurn {
    shared: Arc<TurnShared>,
    stopper: Arc<Stopper>,
}

impl Running {
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a turn in; it is taken out again when what this answers is dropped.
    pub fn register(self: &Arc<Self>, shared: Arc<TurnShared>) -> Registered {
        let stopper = Arc::new(Stopper::default());
        let (task_id, epoch) = (shared.task_id.clone(), shared.epoch);
        let mut turns = self.turns();
        if let Some(stop) = &turns.all {
            stopper.stop(stop.clone());
        }
        if turns.by_task.get(&task_id).is_some_and(|turn| turn.shared.epoch > epoch) {
            stopper.stop(Stop::Lost);
        } else if let Some(before) =
            turns.by_task.insert(task_id.clone(), RunningTurn { shared, stopper: Arc::clone(&stopper) })
        {
            // A lease that ran out here may be taken over before its heartbeat has noticed: nobody finds that turn from
            // now on.
            before.stopper.stop(Stop::Lost);
        }
        drop(turns);
        Registered { running: Arc::clone(self), task_id, epoch, stopper }
    }

    /// Says that a lease is about to be taken, until its turn is registered or the start came to nothing.
    pub fn begins(self: &Arc<Self>, task_id: &TaskId) -> Begins {
        let missed = self.missed();
        *self.turns().begun.entry(task_id.clone()).or_default() += 1;
        Begins { running: Arc::clone(self), task_id: task_id.clone(), missed, is_over: false }
    }

    /// The same for a lease that was found to be taken for a turn of this process, if no other start here may have taken it.
    /// `missed` as it was before it was found.
    pub fn begins_alone(self: &Arc<Self>, task_id: &TaskId, missed: u64) -> Option<Begins> {
        let mut turns = self.turns();
        if turns.by_task.contains_key(task_id) || turns.begun.contains_key(task_id) {
            return None;
        }
        turns.begun.insert(task_id.clone(), 1);
        Some(Begins { running: Arc::clone(self), task_id: task_id.clone(), missed, is_over: false })
    }

    /// How often somebody looked for a turn that was not there. Ask before a lease is taken, and again when its turn is
    /// registered: if it is the same number, nothing was missed.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::SeqCst)
    }

    fn tell(&self, task_id: &TaskId, tell: impl FnOnce(&TurnShared)) {
        let turns = self.turns();
        match turns.by_task.get(task_id) {
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

    /// Stops a turn, if it still is of this epoch.
    pub fn stop(&self, task_id: &TaskId, epoch: u64, stop: Stop) {
        if let Some(turn) = self.turns().by_task.get(task_id).filter(|turn| turn.shared.epoch == epoch) {
            turn.stopper.stop(stop);
        }
    }

    /// Stops all turns, those that come later too.
    pub fn stop_all(&self, stop: &Stop) {
        let mut turns = self.turns();
        turns.all = Some(stop.clone());
        for turn in turns.by_task.values() {
            turn.stopper.stop(stop.clone());
        }
    }

    /// The turns that run and listen. An agent that holds its thread for ever cannot be stopped, but its lease can be left
    /// to run out.
    pub fn turns_now(&self) -> Vec<Arc<TurnShared>> {
        let turns = self.turns();
        let listening = turns.by_task.values().filter(|turn| !turn.stopper.is_deaf());
        listening.map(|turn| Arc::clone(&turn.shared)).collect()
    }

    /// Puts a message that waits into the inbox of the task's turn.
    pub fn deliver(&self, task_id: &TaskId, ordinal: u64) {
        self.tell(task_id, |shared| shared.deliver(ordinal));
    }

    /// The turn of a task, if it runs here and listens.
    pub fn turn(&self, task_id: &TaskId) -> Option<Arc<TurnShared>> {
        let turns = self.turns();
        let turn = turns.by_task.get(task_id).filter(|turn| !turn.stopper.is_deaf());
        turn.map(|turn| Arc::clone(&turn.shared))
    }

    /// Whether the task has a turn here.
    pub fn runs(&self, task_id: &TaskId) -> bool {
        self.turns().by_task.contains_key(task_id)
    }

    /// How many turns run.
    pub fn len(&self) -> usize {
        self.turns().by_task.len()
    }
}

/// A start on its way.
#[derive(Debug)]
pub(crate) struct Begins {
    running: Arc<Running>,
    task_id: TaskId,
    missed: u64,
    is_over: bool,
}

impl Begins {
    /// Whether somebody looked for a turn that was not there since the start began.
    pub fn has_missed(&self) -> bool {
        self.running.missed() != self.missed
    }

    /// The turn is there, or the start came to nothing as far as is known.
    pub fn over(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let mut turns = self.running.turns();
        if let Some(count) = turns.begun.get_mut(&self.task_id) {
            *count -= 1;
            if *count == 0 {
                turns.begun.remove(&self.task_id);
            }
        }
    }
}

impl Drop for Begins {
    fn drop(&mut self) {
        self.over();
    }
}

#[derive(Debug)]
pub(crate) struct Registered {
    running: Arc<Running>,
    task_id: TaskId,
    epoch: u64,
    pub stopper: Arc<Stopper>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut turns = self.running.turns();
        if turns.by_task.get(&self.task_id).is_some_and(|turn| turn.shared.epoch == self.epoch) {
            turns.by_task.remove(&self.task_id);
        }
    }
}
