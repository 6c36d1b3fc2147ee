//! Scripted agents, a manual clock, counted ids and a store that fails on demand: for tests only.
//!
//! Nothing here waits for a time to pass. A test opens a [`Gate`] when something may go on, moves a [`ManualClock`] by
//! hand, and waits for what it wants to see: an agent that arrived, a commit that was made, a sleeper that sleeps.
#![expect(clippy::expect_used, reason = "a tool of tests: what breaks a promise has to fail, loudly and there")]

mod agent;
mod clock;
mod gate;
mod ids;
mod push;
mod send;
mod store;

pub use agent::{Run, RunFuture, ScriptedAgent, Step, end_of, piece};
pub use clock::ManualClock;
pub use gate::Gate;
pub use ids::CountedIds;
pub use push::{PlainVault, ScriptedCourier, VerdictFuture};
pub use send::{SendBuilder, send};
pub use store::{Fault, FaultStore, Operation};

/// The version of the protocol that callers speak in tests.
pub const VERSION: &str = "1.0";
