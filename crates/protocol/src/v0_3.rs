//! The older version 0.3 of the protocol, as a translation to and from [`wire`](crate::wire). Pure functions; nothing else
//! knows of it.
//!
//! Version 0.3 has two dialects of JSON, and each has its forms here, by the names of its specification:
//!
//! - [`json_rpc`]: the objects of JSON-RPC, told apart by `kind`.
//! - [`proto`]: the messages of the protobuf package `a2a.v1`, for HTTP+JSON, and for gRPC through
//!   `longhaul-protobuf`.
//!
//! Each form says by [`Form`] which message of v1.0 it stands for. One object may stand for several: [`TaskIdParams`]
//! cancels and subscribes. What v0.3 cannot say is lost on the way to it; the list is in `docs/migration.md`.
//!
//! [`TaskIdParams`]: json_rpc::TaskIdParams

pub mod card;
mod content;
pub mod error;
mod fault;
mod form;
pub mod json_rpc;
pub mod proto;

pub use form::{Form, from_json, in_names_of, to_json};
pub(crate) use form::{all, each};
