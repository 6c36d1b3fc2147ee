//! Updates that a snapshot may hold already.
//!
//! An agent may make the snapshot of a subscription after it has begun to gather the events that come behind it: then the last
//! ones before the snapshot are in both.

use longhaul_protocol::wire;

use super::Fold;
use super::artifacts::Change;

/// How an update behind a snapshot stands to what is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::follow) enum Standing {
    /// It says what is known.
    Told,
    /// It appends what an artifact ends with already: once more, or that very piece.
    Unclear,
    /// It says something else.
    New,
}

impl Fold {
    /// Whether a status update is the status that is known, or one before it.
    pub(in crate::follow) fn has_told(&self, update: &wire::TaskStatusUpdateEvent) -> bool {
        if self.check("status update", &update.task_id, &update.context_id).is_err() {
            return false;
        }
        let (Some(status), Some(known)) = (&update.status, &self.status) else { return false };
        let times = status.timestamp.zip(known.timestamp);
        if self.has_status(status) {
            // Without times the same status may be meant anew, if it brings something of its own.
            return times.is_some() || update.metadata.as_ref().is_none_or(serde_json::Map::is_empty);
        }
        let is_seen = status.message.as_ref().is_some_and(|message| self.messages.contains(&message.message_id));
        is_seen && times.is_some_and(|(time, known)| time <= known)
    }

    /// How an artifact update stands to what is known.
    pub(in crate::follow) fn standing(&self, update: &wire::TaskArtifactUpdateEvent) -> Standing {
        let Some(artifact) = &update.artifact else { return Standing::New };
        if self.check("artifact update", &update.task_id, &update.context_id).is_err() {
            return Standing::New;
        }
        if update.append {
            return if self.artifacts.ends_around(artifact) { Standing::Unclear } else { Standing::New };
        }
        if matches!(self.artifacts.change(artifact), Change::None) { Standing::Told } else { Standing::New }
    }

    /// Whether the task shows the appended piece behind all that is known. None if it does not show what is known: then it says
    /// nothing about the piece.
    pub(in crate::follow) fn goes_on_with(
        &self,
        update: &wire::TaskArtifactUpdateEvent,
        task: wire::Task,
    ) -> Option<bool> {
        self.check("task", &task.id, &task.context_id).ok()?;
        let piece = update.artifact.as_ref()?;
        // Of two with one id, the last one counts.
        let whole = task.artifacts.into_iter().rfind(|artifact| artifact.artifact_id == piece.artifact_id)?;
        self.artifacts.goes_on_with(piece, whole)
    }
}
