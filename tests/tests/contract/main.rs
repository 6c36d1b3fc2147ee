//! The client's commands against the public contract for A2A command lines: at least one test a requirement, named for its
//! id. They drive the real binary in a clean environment, against our own server, against one that answers by script so that
//! what is on the wire can be seen, and against the SDKs' servers.
//!
//! [`registry`] lists all requirements, and fails where one that is claimed has no test.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod agents;
mod auth;
mod card_get;
mod chat;
mod cli;
mod config;
mod errors;
mod grpc_agent;
mod interact;
mod login;
mod output;
mod parts;
mod poll;
mod push;
mod redaction;
mod registry;
mod send;
mod signatures;
mod surface;
mod task_get;
mod task_list;
mod text;
mod tls;
mod transport;
mod version;
