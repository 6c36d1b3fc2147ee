//! The wall clock, where it is read.

use longhaul_protocol::Timestamp;

/// The moment that it is: for what is kept in files and compared with other machines' clocks.
#[expect(
    clippy::disallowed_methods,
    reason = "HTTP's caching and the ledger go by the wall clock; tests hand moments in below it"
)]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
