//! What a command does to a task: a pure function from (task, command, writer, time) to a transition or a rejection.
//!
//! This crate alone decides (A2A §3.1, §4.1.3). It reads no clock, draws no random number and awaits nothing: time and
//! ids come in as arguments, and what it answers is written by `Store::commit` whole or not at all. Tasks move between
//! eight states, of which four are terminal and two are interrupted; an interrupted task waits, it has not ended.
#![warn(clippy::wildcard_enum_match_arm)]

mod artifact;
mod command;
mod decide;
mod head;
mod retry;
mod transition;
mod worker;

pub use artifact::{ArtifactLedger, ArtifactRejection, ArtifactUpdate};
pub use command::{Command, CommandKind, Writer};
pub use decide::decide;
pub use head::TaskHead;
pub use retry::{AttemptEnd, AttemptOutcome, Next, RetryPolicy, describe_attempts};
pub use transition::{Joins, Lease, Rejection, StatusUpdate, Transition};
pub use worker::WorkerId;
