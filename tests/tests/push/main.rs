//! Push notifications by the real binary, to receivers that fail by script, over SQLite and PostgreSQL.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

mod configs;
mod failing;
mod order;
mod support;
