use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::Clock;
use longhaul_protocol::Timestamp;
use tokio::sync::watch;

/// A clock that stands still until it is moved by hand; who sleeps wakes when the time is reached.
#[derive(Debug)]
pub struct ManualClock {
    state: watch::Sender<State>,
}

#[derive(Debug)]
struct State {
    millis: i64,
    /// The moments at which somebody wants to be woken.
    deadlines: Vec<i64>,
}

impl ManualClock {
    /// Where every manual clock begins: 2026-01-01T00:00:00Z.
    pub const START_MILLIS: i64 = 1_767_225_600_000;

    /// A clock at its start.
    #[must_use]
    pub fn new() -> Self {
        Self { state: watch::Sender::new(State { millis: Self::START_MILLIS, deadlines: Vec::new() }) }
    }

    /// Moves the clock on, by whole milliseconds.
    pub fn advance(&self, duration: Duration) {
        self.state.send_modify(|state| state.millis += millis(duration));
    }

    /// Waits until somebody sleeps who has exactly this time left. Choose a time that nobody else sleeps for.
    pub async fn slept_for(&self, duration: Duration) {
        let asleep = |state: &State| state.deadlines.contains(&(state.millis + millis(duration)));
        self.state.subscribe().wait_for(asleep).await.expect("a clock holds its own sender");
    }

    /// Waits until so many sleep who have exactly this time left.
    pub async fn slept_for_by(&self, duration: Duration, sleepers: usize) {
        let asleep = |state: &State| {
            let deadline = state.millis + millis(duration);
            state.deadlines.iter().filter(|known| **known == deadline).count() >= sleepers
        };
        self.state.subscribe().wait_for(asleep).await.expect("a clock holds its own sender");
    }

    /// Waits until somebody sleeps for this time, and then moves the clock on by it.
    pub async fn pass(&self, duration: Duration) {
        self.slept_for(duration).await;
        self.advance(duration);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.state.borrow().millis)
    }

    async fn sleep(&self, duration: Duration) {
        let mut changes = self.state.subscribe();
        let mut deadline = 0;
        self.state.send_modify(|state| {
            deadline = state.millis.saturating_add(millis(duration));
            state.deadlines.push(deadline);
        });
        let asleep = Asleep { clock: self, deadline };
        changes.wait_for(|state| state.millis >= asleep.deadline).await.expect("a clock holds its own sender");
    }
}

/// One who sleeps, until it is woken or gives up.
struct Asleep<'a> {
    clock: &'a ManualClock,
    deadline: i64,
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.clock.state.send_modify(|state| {
            if let Some(place) = state.deadlines.iter().position(|deadline| *deadline == self.deadline) {
                state.deadlines.swap_remove(place);
            }
        });
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}
