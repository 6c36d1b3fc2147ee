use std::collections::BTreeMap;

use longhaul_protocol::{Artifact, ArtifactId, ContextId, JsonObject, TaskId, wire};
use thiserror::Error;

/// One piece of an artifact on its way into the log (A2A §4.2.2).
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactUpdate {
    /// The artifact, or the parts that it is extended by.
    pub artifact: Artifact,
    /// Whether the parts extend the newest version; otherwise they begin the next one.
    pub append: bool,
    /// Whether this version is complete with this piece.
    pub last_chunk: bool,
    /// Metadata of the update itself.
    pub metadata: Option<JsonObject>,
}

impl ArtifactUpdate {
    /// The update as the protocol's stream response.
    #[must_use]
    pub fn into_wire(self, task_id: &TaskId, context_id: &ContextId) -> wire::StreamResponse {
        wire::StreamResponse {
            payload: Some(wire::StreamResponsePayload::ArtifactUpdate(wire::TaskArtifactUpdateEvent {
                task_id: task_id.as_str().to_owned(),
                context_id: context_id.as_str().to_owned(),
                artifact: Some(self.artifact.into_wire()),
                append: self.append,
                last_chunk: self.last_chunk,
                metadata: self.metadata,
            })),
        }
    }
}

/// Why an artifact update was refused: always the agent's error.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ArtifactRejection {
    /// `append: true` for an artifact id that the task does not have.
    #[error("artifact {0} cannot be appended to: it does not exist")]
    Unknown(ArtifactId),
    /// `append: true` after `lastChunk: true`.
    #[error("artifact {0} cannot be appended to: its last chunk was sent")]
    Closed(ArtifactId),
    /// The task has as many artifacts as it may have.
    #[error("the task has {0} artifacts already, which is the limit")]
    TooMany(usize),
}

/// What is known of a task's artifacts while a turn writes them: the newest version of each, and whether it is closed.
///
/// One turn writes at a time, so its ledger is the truth between two claims of the task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArtifactLedger {
    newest: BTreeMap<ArtifactId, Newest>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Newest {
    version: u64,
    closed: bool,
}

impl ArtifactLedger {
    /// How many artifacts a task may have.
    pub const ARTIFACTS_MAX: usize = 10_000;

    /// Takes note of an update, in the order of the log, and tells which version of the artifact it belongs to.
    ///
    /// # Errors
    ///
    /// [`ArtifactRejection`]; the ledger is then as it was.
    pub fn apply(&mut self, id: &ArtifactId, append: bool, last_chunk: bool) -> Result<u64, ArtifactRejection> {
        let known = self.newest.len();
        match self.newest.get_mut(id) {
            Some(newest) if append && newest.closed => Err(ArtifactRejection::Closed(id.clone())),
            Some(newest) => {
                newest.version += u64::from(!append);
                newest.closed = last_chunk;
                Ok(newest.version)
            }
            None if append => Err(ArtifactRejection::Unknown(id.clone())),
            None if known >= Self::ARTIFACTS_MAX => Err(ArtifactRejection::TooMany(Self::ARTIFACTS_MAX)),
            None => {
                self.newest.insert(id.clone(), Newest { version: 1, closed: last_chunk });
                Ok(1)
            }
        }
    }

    /// The newest version of an artifact, counted from 1.
    #[must_use]
    pub fn version(&self, id: &ArtifactId) -> Option<u64> {
        self.newest.get(id).map(|newest| newest.version)
    }
}
