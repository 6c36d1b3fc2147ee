//! Sums of moments and durations, which saturate.

use std::time::Duration;

use longhaul_protocol::Timestamp;

pub(crate) fn later(from: Timestamp, by: Duration) -> Timestamp {
    let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_unix_millis(from.unix_millis().saturating_add(millis))
}

/// How long it is from `from` to `to`; nothing if `to` is not later.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.unix_millis().saturating_sub(from.unix_millis())).unwrap_or(0))
}
