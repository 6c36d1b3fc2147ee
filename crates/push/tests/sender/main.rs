//! The sender against real receivers on loopback.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

mod connections;
mod receiver;
mod support;
