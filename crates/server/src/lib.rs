//! The three bindings of A2A v1.0 on one port: JSON-RPC (§9), gRPC (§10) and HTTP+JSON (§11).
//!
//! Bindings translate: they hold no rule and no state. What a request means is decided once, in `operation`, for all of
//! them; the same scenario gives the same result through each.

mod body;
mod card;
mod config;
mod follow;
mod grpc;
mod http_json;
mod json_rpc;
mod listen;
mod operation;
mod parameters;
mod path;
mod query;
mod route;
mod sse;

pub use config::ServerConfig;
pub use listen::{Server, ServerError};
