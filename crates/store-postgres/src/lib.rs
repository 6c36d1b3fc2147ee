//! Tasks in PostgreSQL, for many instances.
//!
//! [`PostgresStore`] implements [`longhaul_store::Store`]. Instances know of each other by the tables alone: what a transaction has
//! made is what all of them see. Commits that wait share a transaction, sessions that fail are replaced, and leases live by the
//! database's clock.

mod clock;
mod config;
mod connect;
mod error;
mod fault;
mod migrations;
mod pool;
mod session;

pub use config::{LeaseClock, PostgresConfig};
pub use error::OpenError;
