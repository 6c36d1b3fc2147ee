//! What keeps the tables in order: removes what has ended for long enough, merges logs, and adds up counts in the background.
//!
//! Each step is small, and passes over what another instance has at this moment: any number of instances do this at once.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::LeaseClock;
use crate::backoff::jittered;
use crate::fault::Fault;
use crate::pool::Pool;
use crate::session::Database;

mod accepted;
mod compact;
mod counts;
mod purge;
mod statements;
#[cfg(test)]
mod tests;

pub(crate) use self::compact::compact;
pub(crate) use self::purge::purge;

/// How often counts are added up. Nobody waits for it: what was not added up yet is counted by whoever reads.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often messages are forgotten.
const FORGET_INTERVAL: Duration = Duration::from_secs(10);

/// Keeps the tables in order in the background, until `closing`.
pub(crate) fn start(database: Database, pool: Pool, closing: CancellationToken) {
    let tracker = database.tracker().clone();
    let counting = closing.clone().run_until_cancelled_owned(regularly(INTERVAL, "add up counts", {
        let pool = pool.clone();
        move || {
            let pool = pool.clone();
            async move { counts::fold(&pool).await }
        }
    }));
    tracker.spawn(counting);
    // Only the database's clock says of itself whether a time is over.
    if database.config.lease_clock == LeaseClock::Database {
        tracker.spawn(closing.run_until_cancelled_owned(regularly(
            FORGET_INTERVAL,
            "forget accepted messages",
            move || {
                let pool = pool.clone();
                async move { accepted::forget(&pool).await }
            },
        )));
    }
}

/// Does something again and again; where it fails, the next time may be better.
async fn regularly<F: Future<Output = Result<(), Fault>>>(
    interval: Duration,
    what: &'static str,
    step: impl Fn() -> F,
) {
    let mut failed = false;
    loop {
        tokio::time::sleep(jittered(interval)).await;
        match step().await {
            Ok(()) => failed = false,
            Err(fault) if failed => tracing::debug!(error = &fault as &dyn std::error::Error, what, "failed again"),
            Err(fault) => {
                tracing::warn!(error = &fault as &dyn std::error::Error, what, "failed, and is tried again");
                failed = true;
            }
        }
    }
}
