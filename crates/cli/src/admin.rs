//! How operators reach a store that a server holds: `DIR/admin.sock`, a Unix socket for the server's own user.
//!
//! A connection carries one request and one answer, each a JSON object on a line of its own with the version of this
//! protocol in it. Both are limited in size and time. The commands of the same binary are its only client.

mod client;
mod perform;
mod protocol;
mod server;
mod socket;

pub use client::{AskError, ask, hello};
pub use perform::perform;
pub use protocol::{Answer, DeadRow, Operation, StateName};
pub use server::AdminServer;
pub use socket::FILE_NAME;
