//! The binary as its users see it: what it prints, what it answers, how it ends.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which fail by panicking"
)]

mod calling;
mod cards;
mod databases;
mod kit;
mod ledgers;
mod logins;
mod oddities;
mod operators;
mod push;
mod receiver;
mod refusals;
mod scripted;
mod serving;
mod sources;
mod support;
mod terminals;
