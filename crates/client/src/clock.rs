//! The wall clock, where it is read.

use std::time::{Duration, UNIX_EPOCH};

use longhaul_protocol::Timestamp;

/// The moment that it is: for what is kept in files and compared with other machines' clocks.
#[expect(
    clippy::disallowed_methods,
    reason = "HTTP's caching and the ledger go by the wall clock; tests hand moments in below it"
)]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How long it is from one time to another; zero if that is past.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.unix_millis().saturating_sub(from.unix_millis())).unwrap_or(0))
}

/// A time later by so much; the last that there is if it is later still.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_unix_millis(time.unix_millis().saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}

/// A date as HTTP writes it (RFC 9110 §5.6.7), in any of its three forms; none before 1970.
pub(crate) fn http_date(text: &str) -> Option<Timestamp> {
    let at = httpdate::parse_http_date(text.trim()).ok()?;
    let millis = at.duration_since(UNIX_EPOCH).ok()?.as_millis();
    i64::try_from(millis).ok().map(Timestamp::from_unix_millis)
}
