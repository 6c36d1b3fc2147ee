use std::collections::HashMap;
use std::ops::RangeInclusive;

use longhaul_protocol::{TaskState, Timestamp, json, wire};

use crate::fold::extend;
use crate::{EventKind, StoreError, StoredEvent, artifact_update};

/// How many events a log has at least for its artifact updates to be merged: with fewer there is little to win.
pub const COMPACT_EVENTS_MIN: u64 = 8;
/// How many bytes of artifact updates a log may hold for them to be merged, since they are in memory meanwhile: 32 MiB.
pub const COMPACT_READ_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How many bytes may be written in place of the updates of one task, in the one step that does it: 16 MiB, which is as much as
/// one event may have.
pub const COMPACT_WRITE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many places of a log may change at the most, be it that a range goes or that an event is rewritten: in one step, which
/// others wait for.
pub const COMPACT_CHANGES_MAX: usize = 20_000;

/// Whether a task whose log ends at `last_sequence` in this state is to be looked at by [`crate::Store::compact`] one day.
#[must_use]
pub fn is_compactable(state: TaskState, last_sequence: u64) -> bool {
    state.is_terminal() && last_sequence >= COMPACT_EVENTS_MIN
}

/// What merging makes of a log. All of it is written in one step, or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// The sequences of events that go: in order, without overlaps. Only artifact updates have these.
    pub removed: Vec<RangeInclusive<u64>>,
    /// Events that stay in their places with another payload, in order.
    pub rewritten: Vec<StoredEvent>,
}

impl Compaction {
    /// Makes the change on a log that is held in memory.
    #[must_use]
    pub fn apply(self, log: Vec<StoredEvent>) -> Vec<StoredEvent> {
        let (mut removed, mut rewritten) = (self.removed.into_iter().peekable(), self.rewritten.into_iter().peekable());
        let mut merged = Vec::new();
        for event in log {
            while removed.next_if(|range| *range.end() < event.sequence).is_some() {}
            if removed.peek().is_some_and(|range| range.contains(&event.sequence)) {
                continue;
            }
            merged.push(rewritten.next_if(|other| other.sequence == event.sequence).unwrap_or(event));
        }
        merged
    }
}

/// Merges the artifact updates of a task that has ended: those of each version of an artifact become one, which stands at the
/// sequence and time of the version's newest.
///
/// The order of artifacts is that of their first updates. Where a version would move behind an artifact that came later, an
/// update without content stays where it began, and the merged one extends it.
#[derive(Debug, Default)]
pub struct CompactionFold {
    versions: Vec<Version>,
    /// The newest version of each artifact.
    newest: HashMap<String, usize>,
    /// The first version of each artifact, in the order in which they came.
    first: Vec<usize>,
    bytes: usize,
}

/// The updates of one version so far.
#[derive(Debug)]
struct Version {
    merged: wire::TaskArtifactUpdateEvent,
    sequences: Vec<u64>,
    began: (u64, Timestamp),
    ended: (u64, Timestamp),
}

impl CompactionFold {
    /// Takes in the next event of the log. Those that are not artifact updates may be left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] when the payload is not what was written.
    pub fn apply(&mut self, event: &StoredEvent) -> Result<(), StoreError> {
        let Some(mut update) = artifact_update(event.kind, event.sequence, &event.payload)? else { return Ok(()) };
        self.bytes = self.bytes.saturating_add(event.payload.len());
        if self.is_too_large() {
            *self = Self { bytes: self.bytes, ..Self::default() };
            return Ok(());
        }
        let Some(piece) = update.artifact.take() else { return Ok(()) };
        let place = (event.sequence, event.timestamp);
        let known = self.newest.get(&piece.artifact_id).copied();
        if update.append
            && let Some(version) = known.and_then(|known| self.versions.get_mut(known))
        {
            version.extend(piece, update, place);
            return Ok(());
        }
        if known.is_none() {
            self.first.push(self.versions.len());
        }
        self.newest.insert(piece.artifact_id.clone(), self.versions.len());
        let merged = wire::TaskArtifactUpdateEvent { artifact: Some(piece), append: false, ..update };
        self.versions.push(Version { merged, sequences: vec![event.sequence], began: place, ended: place });
        Ok(())
    }

    /// Whether the log is longer than is merged, so that the rest of it need not be read.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.bytes > COMPACT_READ_BYTES_MAX
    }

    /// What merging makes of the log; `None` when the log stays as it is: there is nothing to merge, or too much.
    #[must_use]
    pub fn finish(self) -> Option<Compaction> {
        if self.is_too_large() {
            return None;
        }
        let held = self.held_places();
        let (mut removed, mut rewritten) = (Vec::new(), Vec::new());
        for (version, held) in self.versions.into_iter().zip(held) {
            version.finish(held, &mut removed, &mut rewritten);
        }
        rewritten.sort_by_key(|event| event.sequence);
        removed.sort_unstable();
        let removed = ranges(&removed);
        let bytes: usize = rewritten.iter().map(|event| event.payload.len()).sum();
        let changes = removed.len() + rewritten.len();
        let fits = bytes <= COMPACT_WRITE_BYTES_MAX && changes <= COMPACT_CHANGES_MAX;
        (changes > 0 && fits).then_some(Compaction { removed, rewritten })
    }

    /// For each version, whether the place where it began is held, so that its artifact stays before those that came later.
    fn held_places(&self) -> Vec<bool> {
        let mut held = vec![false; self.versions.len()];
        // From the last artifact on: where the one behind it is first met.
        let mut next = u64::MAX;
        for first in self.first.iter().rev() {
            if let (Some(version), Some(held)) = (self.versions.get(*first), held.get_mut(*first)) {
                *held = version.ended.0 > next;
                next = if *held { version.began.0 } else { version.ended.0 };
            }
        }
        held
    }
}

impl Version {
    fn extend(&mut self, piece: wire::Artifact, update: wire::TaskArtifactUpdateEvent, place: (u64, Timestamp)) {
        let artifact = match self.merged.artifact.take() {
            Some(mut known) => {
                extend(&mut known, piece);
                known
            }
            None => piece,
        };
        self.merged = wire::TaskArtifactUpdateEvent { artifact: Some(artifact), append: false, ..update };
        self.sequences.push(place.0);
        self.ended = place;
    }

    fn finish(mut self, held: bool, removed: &mut Vec<u64>, rewritten: &mut Vec<StoredEvent>) {
        let kept = |sequence: &u64| *sequence == self.ended.0 || (held && *sequence == self.began.0);
        let before = removed.len();
        removed.extend(self.sequences.iter().copied().filter(|sequence| !kept(sequence)));
        if removed.len() == before {
            return;
        }
        if held && let Some(artifact) = &mut self.merged.artifact {
            let held = wire::Artifact {
                artifact_id: artifact.artifact_id.clone(),
                // What extends it adds only extensions that it has not: so they come out as they are.
                extensions: std::mem::take(&mut artifact.extensions),
                ..wire::Artifact::default()
            };
            let held = wire::TaskArtifactUpdateEvent {
                task_id: self.merged.task_id.clone(),
                context_id: self.merged.context_id.clone(),
                artifact: Some(held),
                ..wire::TaskArtifactUpdateEvent::default()
            };
            rewritten.push(event(self.began, held));
        }
        rewritten.push(event(self.ended, wire::TaskArtifactUpdateEvent { append: held, ..self.merged }));
    }
}

fn event((sequence, timestamp): (u64, Timestamp), update: wire::TaskArtifactUpdateEvent) -> StoredEvent {
    let response = wire::StreamResponse { payload: Some(wire::StreamResponsePayload::ArtifactUpdate(update)) };
    StoredEvent { sequence, kind: EventKind::Artifact, timestamp, payload: json::to_json(&response) }
}

/// Sequences in order, as ranges.
fn ranges(sequences: &[u64]) -> Vec<RangeInclusive<u64>> {
    let runs = sequences.chunk_by(|one, next| one + 1 == *next);
    runs.filter_map(|run| Some(*run.first()?..=*run.last()?)).collect()
}

#[cfg(test)]
mod tests;
