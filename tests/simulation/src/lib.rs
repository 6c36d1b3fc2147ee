//! Runs several engines over one store that fails, from a seed, and checks the promises of the design all the while.
//!
//! The engines are the real ones. What is around them follows from the seed: the clock jumps from one moment at which
//! something happens to the next, each engine has a runtime of one thread which is run until it can't go on by itself, the
//! store is in memory, and the way to it is slow, is cut, and loses calls and answers. Instances die, stand still past their
//! leases and go on as if nothing had happened, and are told to stop. In the end nothing fails any more, and everything has to
//! come to rest.
//!
//! There are no expectations, only checkers: [`run`] answers which promises were broken. A seed gives the same run, to the last
//! call of the store, as long as neither the engine nor the simulation changes.
//!
//! [`run_over`] does the same over other stores, such as those on a database. There the seed still says what happens and what
//! fails, and the database who is first of those who write at the same time: such a run can't be repeated exactly.

mod agent;
mod bells;
mod books;
mod callers;
mod checks;
mod clock;
mod dice;
mod entries;
mod instance;
mod link;
mod panics;
mod report;
mod scenario;
pub mod seeds;
mod store;
mod stores;
mod world;

pub use clock::SimClock;
pub use dice::Dice;
pub use report::{Promise, Trace, Violation};
pub use scenario::{LEASE_MILLIS, Mode, Op, Scenario, Weather};
pub use store::Mutation;
pub use stores::Stores;
pub use world::{Outcome, run, run_over};
