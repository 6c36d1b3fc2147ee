use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::Clock;
use longhaul_protocol::Timestamp;

/// A clock that jumps from one moment at which something happens to the next; sleepers wake in the order of their time,
/// and of their going to sleep.
///
/// The manual clock of the testkit wakes in an order that is drawn, which no seed repeats.
#[derive(Debug, Default)]
pub struct SimClock {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    millis: i64,
    sleepers: BTreeMap<(i64, u64), Waker>,
    next: u64,
}

/// Where the clock begins: 2026-01-01T00:00:00Z.
const START_MILLIS: i64 = 1_767_225_600_000;
/// Who sleeps for longer than this waits for ever.
const FOR_EVER_MILLIS: i64 = 1000 * 86_400_000;

impl SimClock {
    /// A clock at its start.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { millis: START_MILLIS, ..State::default() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub fn millis(&self) -> i64 {
        self.state().millis
    }

    /// Milliseconds since the start.
    #[must_use]
    pub fn elapsed(&self) -> i64 {
        self.millis() - START_MILLIS
    }

    /// The next moment for which somebody sleeps.
    #[must_use]
    pub fn next_millis(&self) -> Option<i64> {
        self.state().sleepers.keys().next().map(|(deadline, _)| *deadline)
    }

    /// Moves the clock on to this moment, and wakes whoever slept until then.
    pub fn move_to(&self, millis: i64) {
        let mut state = self.state();
        state.millis = state.millis.max(millis);
        let later = state.sleepers.split_off(&(millis + 1, 0));
        let woken = std::mem::replace(&mut state.sleepers, later);
        drop(state);
        woken.into_values().for_each(Waker::wake);
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.millis())
    }

    async fn sleep(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        if millis >= FOR_EVER_MILLIS {
            return std::future::pending().await;
        }
        self.until(millis).await;
    }
}

impl SimClock {
    fn until(&self, millis: i64) -> Sleep<'_> {
        let mut state = self.state();
        state.next += 1;
        Sleep { clock: self, key: (state.millis + millis, state.next) }
    }
}

/// The clock as one instance reads it: no two machines have quite the same time.
#[derive(Debug)]
pub(crate) struct Skewed {
    pub clock: Arc<SimClock>,
    pub millis: i64,
}

#[async_trait]
impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.clock.millis() + self.millis)
    }

    async fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration).await;
    }
}

struct Sleep<'a> {
    clock: &'a SimClock,
    key: (i64, u64),
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state();
        if state.millis >= self.key.0 {
            return Poll::Ready(());
        }
        state.sleepers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        self.clock.state().sleepers.remove(&self.key);
    }
}
