//! Three instances on one PostgreSQL database: any of them serves any task, any may die or sleep, and the database may fail
//! under all of them (promises 1 to 6).
//!
//! `LONGHAUL_SEED` repeats a run's choices, not its timing.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod anywhere;
mod connections;
mod database;
mod failover;
mod killed;
mod latency;
mod support;
mod zombie;
