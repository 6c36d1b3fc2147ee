use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::Timestamp;

/// How long to wait for a store whose clock is behind.
pub(crate) const CLOCKS_DIFFER: Duration = Duration::from_millis(10);

/// Where time comes from. Everything that counts time takes it from here.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now, which never goes back.
    fn now(&self) -> Timestamp;

    /// Waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the wait.
    async fn sleep(&self, duration: Duration);
}

/// The wall clock as it was at the start, carried on by the monotonic clock: setting the machine's clock moves nothing.
#[derive(Debug)]
pub struct SystemClock {
    wall_at_start: Timestamp,
    start: std::time::Instant,
}

impl SystemClock {
    /// A clock that begins now.
    #[must_use]
    pub fn new() -> Self {
        Self::not_before(Timestamp::from_unix_millis(0))
    }

    /// A clock that begins now, or at `earliest` if the machine's clock is behind that: a store's times must not go back.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time enters")]
    pub fn not_before(earliest: Timestamp) -> Self {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let wall = Timestamp::from_unix_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX));
        Self { wall_at_start: wall.max(earliest), start: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        later(self.wall_at_start, self.start.elapsed())
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Waits for a future, but not longer than `limit` by this clock; `None` when the time is up.
pub(crate) async fn within<T>(clock: &dyn Clock, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    // Most are ready at once, and then no timer is made.
    if let Poll::Ready(output) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        return Some(output);
    }
    tokio::select! {
        biased;
        output = future => Some(output),
        () = clock.sleep(limit) => None,
    }
}

/// The time `duration` after `timestamp`.
#[must_use]
pub fn later(timestamp: Timestamp, duration: Duration) -> Timestamp {
    let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_unix_millis(timestamp.unix_millis().saturating_add(millis))
}

/// The time `duration` before `timestamp`.
#[must_use]
pub fn earlier(timestamp: Timestamp, duration: Duration) -> Timestamp {
    let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_unix_millis(timestamp.unix_millis().saturating_sub(millis))
}

/// How long it is from `from` until `until`; nothing if that is past.
#[must_use]
pub fn until(from: Timestamp, until: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(until.unix_millis().saturating_sub(from.unix_millis())).unwrap_or(0))
}
