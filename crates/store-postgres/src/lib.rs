//! Tasks in PostgreSQL, for many instances.
//!
//! [`PostgresStore`] implements [`longhaul_store::Store`]. Instances know of each other by the tables alone: what a transaction has
//! made is what all of them see. Commits that wait share a transaction, sessions that fail are replaced, and leases live by the
//! database's clock.

mod backoff;
mod clock;
mod config;
mod connect;
mod counts;
mod error;
mod fault;
#[cfg(feature = "fill")]
mod fill;
mod migrations;
mod notify;
mod pool;
mod push;
mod reader;
mod session;
mod shards;
mod store;
#[cfg(test)]
mod testing;
mod upkeep;
mod writer;

pub use clock::ClockOffset;
pub use config::{LeaseClock, PostgresConfig};
pub use error::OpenError;
#[cfg(feature = "fill")]
pub use fill::fill;
pub use migrations::SchemaState;
pub use store::{PostgresStore, migrate};
pub use writer::WriterStats;
