//! The binary as its users see it: what it prints, what it answers, how it ends.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which fail by panicking"
)]

mod databases;
mod operators;
mod push;
mod receiver;
mod refusals;
mod serving;
mod support;
