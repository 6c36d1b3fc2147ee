//! Heartbeats: the leases of all turns that run here are renewed, and turns that hang are stopped.

use std::sync::Arc;
use std::time::Duration;

use longhaul_lifecycle::AttemptOutcome;
use longhaul_protocol::Timestamp;
use longhaul_store::{HeldLease, StoreError};

use crate::clock::{later, until, within};
use crate::engine::Inner;
use crate::running::Stop;
use crate::turn::TurnShared;

/// How often a heartbeat that the store did not take is tried again until the next one would be due.
const TRIES: u32 = 4;

/// Renews leases until the engine is down: turns that end while it goes down need theirs as well.
pub(crate) async fn heartbeat(inner: Arc<Inner>) {
    let interval = inner.config.heartbeat_interval();
    let mut next = interval;
    loop {
        tokio::select! {
            biased;
            () = inner.down.cancelled() => return,
            () = inner.clock.sleep(next) => {}
        }
        let turns = inner.running.turns_now();
        stop_what_hangs(&inner, &turns);
        let renewed = turns.is_empty() || renew(&inner, &turns, interval).await;
        next = if renewed { interval } else { interval / TRIES };
    }
}

/// Renews the leases of all turns in one step, and answers whether the store did. A turn counts the end of its lease from
/// before the heartbeat was sent, so it never believes longer than the store does.
async fn renew(inner: &Inner, turns: &[Arc<TurnShared>], interval: Duration) -> bool {
    let now = inner.clock.now();
    let lease_until = inner.lease_until(now);
    let held = |turn: &Arc<TurnShared>| HeldLease { task_id: turn.task_id.clone(), epoch: turn.epoch };
    let held: Vec<_> = turns.iter().map(held).collect();
    // A store that does not answer must not keep a turn from being stopped before its lease is over.
    let first_end = turns.iter().map(|turn| until(now, turn.lease_until())).min().unwrap_or(interval);
    let patience = first_end.saturating_sub(interval / TRIES).min(interval / 2);
    let error = match within(&*inner.clock, patience, inner.store.renew(&held, now, lease_until)).await {
        Some(Ok(lost)) => {
            for turn in turns {
                match lost.contains(&turn.task_id) {
                    true => inner.running.stop(&turn.task_id, turn.epoch, Stop::Lost),
                    false => turn.renewed(lease_until),
                }
            }
            return true;
        }
        Some(Err(error)) => error,
        None => StoreError::unavailable("renew leases", "the store does not answer"),
    };
    tracing::warn!(error = &error as &dyn std::error::Error, leases = held.len(), "cannot renew leases");
    // A lease that ends before it is tried again may be somebody else's by then.
    let next = later(inner.clock.now(), interval / TRIES);
    for turn in turns.iter().filter(|turn| turn.lease_until() <= next) {
        inner.running.stop(&turn.task_id, turn.epoch, Stop::Lost);
    }
    false
}

fn stop_what_hangs(inner: &Inner, turns: &[Arc<TurnShared>]) {
    let now = inner.clock.now();
    for turn in turns {
        if let Some(stop) = hangs(inner, turn, now) {
            tracing::warn!(task_id = turn.task_id.as_str(), epoch = turn.epoch, ?stop, "a turn is stopped");
            inner.running.stop(&turn.task_id, turn.epoch, stop);
        }
    }
}

/// Why a turn must not go on: a lease that could not be renewed in time, or an attempt that takes too long.
fn hangs(inner: &Inner, turn: &TurnShared, now: Timestamp) -> Option<Stop> {
    let age = |since: Timestamp| until(since, now);
    if turn.lease_until() <= now {
        return Some(Stop::Lost);
    }
    if age(turn.begun_at) >= inner.config.turn_duration_max {
        return Some(Stop::Attempt(AttemptOutcome::TurnTooLong));
    }
    if inner.config.inactivity_max.is_some_and(|limit| age(turn.last_write()) >= limit) {
        return Some(Stop::Attempt(AttemptOutcome::Inactive));
    }
    None
}
