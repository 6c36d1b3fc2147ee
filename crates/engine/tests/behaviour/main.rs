//! What the engine promises, on each store: one test a behaviour, run on the memory store and on SQLite.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a suite of tests: what breaks a promise has to fail, loudly and there"
)]

#[macro_use]
mod world;

mod agents;
mod cancels;
mod checkpoints;
mod housekeeping;
mod leases;
mod line;
mod lists;
mod push;
mod push_configs;
mod pushes;
mod recovery;
mod retries;
mod retrying;
mod sends;
mod sharing;
mod shutdown;
mod streams;
mod turns;
