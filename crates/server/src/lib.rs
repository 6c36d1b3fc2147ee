//! The three bindings of A2A v1.0 on one port: JSON-RPC (§9), gRPC (§10) and HTTP+JSON (§11); and those of v0.3 beside them.
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
mod requests;
mod route;
mod sse;
mod v0_3;
mod version;

pub use config::{Metrics, ServerConfig};
pub use listen::{Server, ServerError};
pub use version::{Version, Versions};
