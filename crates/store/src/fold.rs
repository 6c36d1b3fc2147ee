use std::collections::HashMap;

use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, JsonObject, Timestamp, json, wire};

use crate::{EventKind, NewEvent, StoreError, StoredEvent};

/// One version of an artifact, as the log tells it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ArtifactVersion {
    /// Counted from 1.
    pub version: u64,
    /// The sequence of the newest event that belongs to the version.
    pub sequence: u64,
    /// When that event was committed.
    pub timestamp: Timestamp,
    /// Whether the version is complete.
    pub last_chunk: bool,
}

/// The artifacts of a task as a fold of its log (A2A §4.2.2).
///
/// `append: false` makes the next version of an artifact in the first one's place, `append: true` extends the newest:
/// parts and extensions are added, metadata is merged, a name or description that is given replaces the one before.
#[derive(Clone, Debug, Default)]
pub struct ArtifactFold {
    artifacts: Vec<wire::Artifact>,
    places: HashMap<String, usize>,
}

impl ArtifactFold {
    /// Takes in the next artifact update of the log.
    pub fn apply(&mut self, update: wire::TaskArtifactUpdateEvent) {
        let Some(piece) = update.artifact else { return };
        let place = self.places.get(&piece.artifact_id).copied();
        match place.and_then(|place| self.artifacts.get_mut(place)) {
            Some(known) if update.append => extend(known, piece),
            Some(known) => *known = piece,
            None => {
                self.places.insert(piece.artifact_id.clone(), self.artifacts.len());
                self.artifacts.push(piece);
            }
        }
    }

    /// The artifacts, in the order in which they first came.
    #[must_use]
    pub fn into_artifacts(self) -> Vec<wire::Artifact> {
        self.artifacts
    }

    /// The artifacts so far.
    #[must_use]
    pub fn artifacts(&self) -> &[wire::Artifact] {
        &self.artifacts
    }
}

/// Adds an appended piece to what is known of its version.
pub(crate) fn extend(known: &mut wire::Artifact, piece: wire::Artifact) {
    known.parts.extend(piece.parts);
    for extension in piece.extensions {
        if !known.extensions.contains(&extension) {
            known.extensions.push(extension);
        }
    }
    if !piece.name.is_empty() {
        known.name = piece.name;
    }
    if !piece.description.is_empty() {
        known.description = piece.description;
    }
    match (&mut known.metadata, piece.metadata) {
        (Some(metadata), Some(more)) => metadata.extend(more),
        (known @ None, more) => *known = more,
        (Some(_), None) => {}
    }
}

/// Reads an artifact update back from an event; `None` for an event of another kind.
///
/// # Errors
///
/// [`StoreError::Corrupt`] when the payload is not what was written.
pub fn artifact_update(
    kind: EventKind,
    sequence: u64,
    payload: &[u8],
) -> Result<Option<wire::TaskArtifactUpdateEvent>, StoreError> {
    if kind != EventKind::Artifact {
        return Ok(None);
    }
    match parse(sequence, payload)?.payload {
        Some(wire::StreamResponsePayload::ArtifactUpdate(update)) => Ok(Some(update)),
        _ => Err(StoreError::corrupt(format!("event {sequence} is not the artifact update that its kind says"))),
    }
}

fn parse(sequence: u64, payload: &[u8]) -> Result<wire::StreamResponse, StoreError> {
    json::from_json(payload).map_err(|error| StoreError::corrupt(format!("payload of event {sequence}: {error}")))
}

/// The first event of a log: the task as it was created. Its history is in rows of its own and joins when it is shown.
#[must_use]
pub fn created_event(head: &TaskHead, metadata: Option<&JsonObject>) -> NewEvent {
    let task = wire::Task {
        id: head.id.as_str().to_owned(),
        context_id: head.context_id.as_str().to_owned(),
        status: Some(wire::TaskStatus {
            state: longhaul_protocol::TaskState::Submitted.into(),
            message: None,
            timestamp: Some(head.status_timestamp),
        }),
        metadata: metadata.cloned(),
        ..wire::Task::default()
    };
    let response = wire::StreamResponse { payload: Some(wire::StreamResponsePayload::Task(task)) };
    NewEvent { kind: EventKind::Created, payload: json::to_json(&response) }
}

/// Puts a task together as the protocol shows it: from its head for the present, or, with the events up to a moment of
/// the past, as it stood then.
///
/// # Errors
///
/// [`StoreError::Corrupt`] when the log is not what was written.
pub fn snapshot_task(
    head: &TaskHead,
    metadata: Option<JsonObject>,
    history: Vec<wire::Message>,
    past: Option<&[StoredEvent]>,
    artifacts: Vec<wire::Artifact>,
) -> Result<wire::Task, StoreError> {
    let status = match past {
        None => wire::TaskStatus {
            state: head.state.into(),
            message: head.status_message.as_ref().map(|message| message.as_wire().clone()),
            timestamp: Some(head.status_timestamp),
        },
        Some(events) => status_at(events)?,
    };
    Ok(wire::Task {
        id: head.id.as_str().to_owned(),
        context_id: head.context_id.as_str().to_owned(),
        status: Some(status),
        artifacts,
        history,
        metadata,
    })
}

/// The status that the last of these events left behind.
fn status_at(events: &[StoredEvent]) -> Result<wire::TaskStatus, StoreError> {
    let newest = events.iter().rev().find(|event| event.kind != EventKind::Artifact);
    let Some(event) = newest else {
        return Err(StoreError::corrupt("a log does not begin with the task as created"));
    };
    let status = match parse(event.sequence, &event.payload)?.payload {
        Some(wire::StreamResponsePayload::Task(task)) => task.status,
        Some(wire::StreamResponsePayload::StatusUpdate(update)) => update.status,
        Some(wire::StreamResponsePayload::Message(_) | wire::StreamResponsePayload::ArtifactUpdate(_)) | None => None,
    };
    status.ok_or_else(|| StoreError::corrupt(format!("event {} holds no status", event.sequence)))
}

/// The versions of one artifact as a fold of its task's log, and the content of one of them.
#[derive(Debug)]
pub struct VersionFold {
    artifact_id: ArtifactId,
    wanted: Option<u64>,
    versions: Vec<ArtifactVersion>,
    content: ArtifactFold,
}

impl VersionFold {
    /// Follows `artifact_id`, and keeps the content of version `wanted`, or of the newest.
    #[must_use]
    pub fn new(artifact_id: ArtifactId, wanted: Option<u64>) -> Self {
        Self { artifact_id, wanted, versions: Vec::new(), content: ArtifactFold::default() }
    }

    /// Takes in the next event of the log.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] when the payload is not what was written.
    pub fn apply(&mut self, event: &StoredEvent) -> Result<(), StoreError> {
        let Some(update) = artifact_update(event.kind, event.sequence, &event.payload)? else { return Ok(()) };
        if update.artifact.as_ref().is_none_or(|artifact| artifact.artifact_id != self.artifact_id.as_str()) {
            return Ok(());
        }
        let (sequence, timestamp, last_chunk) = (event.sequence, event.timestamp, update.last_chunk);
        match self.versions.last_mut() {
            Some(newest) if update.append => {
                *newest = ArtifactVersion { version: newest.version, sequence, timestamp, last_chunk };
            }
            newest => {
                let version = newest.map_or(0, |newest| newest.version) + 1;
                self.versions.push(ArtifactVersion { version, sequence, timestamp, last_chunk });
            }
        }
        let version = self.versions.last().map(|newest| newest.version);
        if self.wanted.is_none() || self.wanted == version {
            self.content.apply(update);
        }
        Ok(())
    }

    /// The versions older than `before`, the newest first; `None` when there is no such artifact.
    #[must_use]
    pub fn into_versions(self, before: Option<u64>, limit: usize) -> Option<Vec<ArtifactVersion>> {
        if self.versions.is_empty() {
            return None;
        }
        let older = self.versions.into_iter().rev().filter(|known| before.is_none_or(|before| known.version < before));
        Some(older.take(limit).collect())
    }

    /// The version that was wanted, with its number.
    #[must_use]
    pub fn into_artifact(self) -> Option<(u64, wire::Artifact)> {
        let version = self.wanted.or_else(|| self.versions.last().map(|newest| newest.version))?;
        self.content.into_artifacts().into_iter().next().map(|artifact| (version, artifact))
    }
}
