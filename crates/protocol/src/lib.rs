//! The A2A v1.0 data model, its ProtoJSON form, typed ids, the field rules and the error table.
//!
//! Two layers, and one way between them:
//!
//! - [`wire`] has one struct for each message of the normative `a2a.proto`. It holds whatever a peer
//!   sent and is read and written as ProtoJSON by [`json`].
//! - The types at the root ([`TaskId`], [`TaskState`], [`Message`], …) are valid by construction. What
//!   is optional on the wire and required by the specification is checked once, by [`rules`].
//!
//! The crate does no input or output, reads no clock and draws no random number.

pub mod drafts;
mod error;
mod ids;
pub mod json;
mod message;
pub mod rules;
mod state;
mod timestamp;
pub mod v0_3;
pub mod wire;

pub use error::{A2aError, ERROR_DOMAIN, ErrorCode, ErrorRow, FieldViolation, GrpcCode};
pub use ids::{ArtifactId, ContextId, IdProblem, InvalidId, MessageId, Owner, PushConfigId, TaskId, Tenant};
pub use json::{JsonError, JsonErrorKind, JsonObject, from_json, to_json};
pub use message::{Artifact, Message};
pub use state::{Role, TaskState};
pub use timestamp::{InvalidTimestamp, Timestamp};
