//! Tasks in one SQLite file, for one instance.
//!
//! One thread writes. It takes the commits that are waiting, makes them in one transaction with one `fsync`, and only
//! then answers; a commit that is refused fails alone. A few threads read, each in a transaction of its own, and are
//! never in the writer's way. A lock file keeps a second instance out.
//!
//! What a task needs on every decision is one narrow row. Its events and messages are rows keyed by task number and
//! sequence, so an event costs its own size and a page of the log is one range. Listing costs the page: counters by
//! state give the total, an index by status time the order.

mod config;
mod connection;
mod error;
mod fault;
#[cfg(feature = "fill")]
mod fill;
mod layout;
mod lock;
mod migrations;
mod push;
mod reader;
mod recent;
mod statements;
mod store;
mod writer;

pub use config::{SqliteConfig, Synchronous};
pub use error::OpenError;
#[cfg(feature = "fill")]
pub use fill::fill;
pub use store::SqliteStore;
pub use writer::WriterStats;
