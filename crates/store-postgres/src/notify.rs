//! The bells: instances tell each other by NOTIFY what they committed.
//!
//! They only ring. What is heard may be lost, late or doubled, and the tables alone say what happened. NOTIFY takes a lock of the
//! whole database until its transaction has ended, so it is said on a connection of its own, outside of the transactions of tasks,
//! and at most once in [`notifier::REST`].

mod listener;
mod notifier;
mod payload;
mod slate;

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::fault::Fault;

pub(crate) use self::listener::Listener;
pub(crate) use self::notifier::Notifier;

const RECONNECT_MIN: Duration = Duration::from_millis(100);
const RECONNECT_MAX: Duration = Duration::from_secs(5);
/// How often the same trouble is logged.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// What goes wrong again and again: waits grow, and the log does not fill.
#[derive(Debug)]
struct Trouble {
    backoff: Backoff,
    complained: Option<Instant>,
}

impl Trouble {
    fn new() -> Self {
        Self { backoff: Backoff::new(RECONNECT_MIN, RECONNECT_MAX), complained: None }
    }

    /// Logs a fault, unless one was a moment ago, and says how long to wait.
    fn meet(&mut self, fault: &Fault, what: &'static str) -> Duration {
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAINT_INTERVAL) {
            let error = fault as &dyn std::error::Error;
            tracing::warn!(error, what, "instances look once a second until the bells between them are back");
            self.complained = Some(Instant::now());
        }
        self.backoff.next()
    }

    fn over(&mut self) {
        self.backoff.reset();
    }
}
