//! Time, so that tests can hand it in.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::Timestamp;

/// Tells the time, and waits.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time of the wall clock.
    fn now(&self) -> Timestamp;

    /// Returns after so long.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        crate::clock::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
