//! What instances hear of each other: hints that come late, twice, without need, or not at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_engine::Clock as _;
use longhaul_store::{Heard, TaskMark};
use tokio::sync::Notify;

use crate::{Dice, SimClock};

/// Rings for what was committed.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    ears: Mutex<BTreeMap<u64, Arc<Ear>>>,
}

impl Bells {
    fn ears(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Ear>>> {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An instance listens from now on.
    pub fn listen(&self, instance: u64, clock: Arc<SimClock>, dice: Dice) -> Arc<Ear> {
        let state = State { dice, coming: BTreeMap::new(), count: 0 };
        let ear = Arc::new(Ear { clock, state: Mutex::new(state), rung: Notify::new() });
        self.ears().insert(instance, Arc::clone(&ear));
        ear
    }

    /// An instance is gone.
    pub fn gone(&self, instance: u64) {
        self.ears().remove(&instance);
    }

    /// An instance has changed a task; `due` if it waits for a worker now.
    pub fn ring(&self, by: u64, mark: &TaskMark, due: bool) {
        let ears: Vec<_> =
            self.ears().iter().filter(|(instance, _)| **instance != by).map(|(_, ear)| Arc::clone(ear)).collect();
        ears.iter().for_each(|ear| ear.ring(mark, due));
    }
}

/// How an instance hears of the others.
#[derive(Debug)]
pub(crate) struct Ear {
    clock: Arc<SimClock>,
    state: Mutex<State>,
    rung: Notify,
}

#[derive(Debug)]
struct State {
    dice: Dice,
    /// Hints on their way, by when they arrive.
    coming: BTreeMap<(i64, u64), Hint>,
    count: u64,
}

#[derive(Debug)]
enum Hint {
    Task { mark: TaskMark, due: bool },
    Anything,
}

#[derive(Clone, Copy)]
enum Fate {
    Soon,
    Late,
    Twice,
    Anything,
    Lost,
}

impl State {
    fn put(&mut self, at: i64, hint: Hint) {
        self.count += 1;
        self.coming.insert((at, self.count), hint);
    }

    fn soon_after(&mut self, now: i64, millis_max: u64) -> i64 {
        now + i64::try_from(self.dice.below(millis_max)).unwrap_or(0)
    }
}

impl Ear {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, mark: &TaskMark, due: bool) {
        let now = self.clock.millis();
        let mut state = self.state();
        let fates = [(60, Fate::Soon), (10, Fate::Late), (5, Fate::Twice), (5, Fate::Anything), (20, Fate::Lost)];
        let fate = state.dice.pick(&fates).unwrap_or(Fate::Soon);
        let (soon, late) = (state.soon_after(now, 30), state.soon_after(now, 2000));
        let hint = || Hint::Task { mark: mark.clone(), due };
        match fate {
            Fate::Soon => state.put(soon, hint()),
            Fate::Late => state.put(late, hint()),
            Fate::Twice => {
                state.put(soon, hint());
                state.put(late, hint());
            }
            Fate::Anything => state.put(soon, Hint::Anything),
            Fate::Lost => return,
        }
        drop(state);
        self.rung.notify_one();
    }

    /// Waits until something is heard.
    pub async fn heard(&self) -> Heard {
        loop {
            let now = self.clock.millis();
            let next = self.state().coming.keys().next().map(|(at, _)| *at);
            match next {
                Some(at) if at <= now => return self.take(now),
                Some(at) => tokio::select! {
                    biased;
                    () = self.rung.notified() => {}
                    () = self.clock.sleep(Duration::from_millis(u64::try_from(at - now).unwrap_or(0))) => {}
                },
                None => self.rung.notified().await,
            }
        }
    }

    /// What has arrived, as one.
    fn take(&self, now: i64) -> Heard {
        let mut state = self.state();
        let later = state.coming.split_off(&(now + 1, 0));
        let arrived = std::mem::replace(&mut state.coming, later);
        let (mut marks, mut any_due) = (Vec::new(), false);
        for hint in arrived.into_values() {
            match hint {
                Hint::Task { mark, due } => {
                    marks.push(mark);
                    any_due |= due;
                }
                Hint::Anything => return Heard::Anything,
            }
        }
        Heard::Tasks { marks, due: any_due }
    }
}
