//! The ledger of the client against real agents: what was delegated is found again, once, whatever dies between.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod away;
mod kill;
mod lost;
mod odd;
mod people;
mod support;
