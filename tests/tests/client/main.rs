//! `longhaul-client` against a real server, through faulty links, and against servers that are hostile.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod healing;
mod hostile;
mod limits;
mod memory;
mod operations;
mod overlap;
mod relay;
mod scripted;
mod stories;
mod streams;
mod support;
mod waiting;
