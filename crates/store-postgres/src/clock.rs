//! The database's clock, as far as it is known here.

use std::sync::atomic::{AtomicI64, Ordering};

/// How far the database's clock is ahead of this process's monotonic one. All instances on a database follow one clock by it,
/// whatever their own say.
#[derive(Debug, Default)]
pub struct ClockOffset {
    millis: AtomicI64,
}
