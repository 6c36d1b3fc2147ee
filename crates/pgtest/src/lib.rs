//! Private PostgreSQL clusters and fresh databases: for tests only.
//!
//! A test that needs a database takes [`Database::fresh`]: an empty one in a cluster that all tests of a run share. A
//! test that stops, kills or replaces the server starts a [`Cluster`] of its own.
//!
//! Every cluster lives in a temporary folder, listens on 127.0.0.1 only, and trusts whoever connects. It ends with the
//! process that started it, however that ends: a small shell process waits on a pipe for it (`watchdog.sh`).
//!
//! All functions block for as long as they take, and can be called from inside and outside of a tokio runtime.

mod cluster;
mod database;
mod error;
mod home;
mod installation;
mod options;
mod process;
mod server;
mod statement;

pub use cluster::{Cluster, Mode};
pub use database::Database;
pub use error::Error;
pub use options::{Durability, Options};
pub use server::{Row, Server};
