//! The operations of A2A (§3.1) on tokio: load, decide, commit, and tell.
//!
//! The engine is the shell around `longhaul_lifecycle`: it loads a task, lets the lifecycle decide, commits with the
//! version that it loaded, and on a conflict does it again. Nothing is told before it is stored: replies and streams
//! show only what a commit has answered. The agent never depends on its caller: a caller that leaves changes nothing.

mod agent;
mod artifacts;
mod cancel;
mod clock;
mod config;
mod drive;
mod engine;
mod error;
mod heartbeat;
mod housekeeping;
mod hub;
mod ids;
mod list;
mod listen;
mod operator;
mod push;
mod running;
mod schedule;
mod send;
mod settle;
mod stream;
mod turn;
mod unwind;

pub use agent::{Accept, Agent, AgentError, Incoming, Outcome, text_part};
pub use artifacts::{ArtifactVersionPage, VersionsQuery};
pub use clock::{Clock, SystemClock};
pub use config::{Config, DedupMode, Retention};
pub use engine::{Engine, EngineParts, EngineStats};
pub use error::EngineError;
pub use housekeeping::{Reclaim, Reclaimed};
pub use ids::{IdSource, RandomIds, uuid_v7};
pub use list::{TaskPage, TasksQuery};
pub use push::{
    Content, Courier, Parcel, PushConfigPage, PushConfigsQuery, PushParts, Rotated, Secrets, SecretsError, Vault,
    Verdict,
};
pub use send::{SendReply, SendRequest};
pub use stream::{EventStream, StreamItem, SubscribeRequest};
pub use turn::{ArtifactPiece, Turn, TurnError, TurnWriter};

pub use longhaul_store::{HistoryLimit, Scope, Store, TurnRequest, shard};

/// The extension by which a caller asks that a repeated `messageId` is taken for a retry of the same send.
pub const IDEMPOTENT_SEND: &str = "urn:longhaul:ext:idempotent-send:v1";
/// The extension that reads the versions of an artifact.
pub const ARTIFACT_VERSIONS: &str = "urn:longhaul:ext:artifact-versions:v1";
/// The extension that resumes a stream after an event.
pub const STREAM_RESUME: &str = "urn:longhaul:ext:stream-resume:v1";
