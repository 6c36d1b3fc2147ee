use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{JsonObject, Message, json, wire};

use crate::{Commit, HistoryLimit};

/// What a task ought to be, from its commits, with no thought for cost: everything is kept and looked through anew.
pub(super) struct Model {
    id: String,
    context_id: String,
    metadata: Option<JsonObject>,
    statuses: Vec<(u64, wire::TaskStatus)>,
    pieces: Vec<(u64, wire::TaskArtifactUpdateEvent)>,
    messages: Vec<(u64, wire::Message)>,
    sequence: u64,
}

impl Model {
    pub fn begin(head: &TaskHead, metadata: Option<JsonObject>, first: &Message) -> Self {
        let status =
            wire::TaskStatus { state: head.state.into(), message: None, timestamp: Some(head.status_timestamp) };
        Self {
            id: head.id.as_str().to_owned(),
            context_id: head.context_id.as_str().to_owned(),
            metadata,
            statuses: vec![(1, status)],
            pieces: Vec::new(),
            messages: vec![(1, first.as_wire().clone())],
            sequence: 1,
        }
    }

    pub fn commit(&mut self, commit: &Commit) {
        let before = self.sequence;
        for event in &commit.events {
            self.sequence += 1;
            let event: wire::StreamResponse =
                json::from_json(&event.payload).expect("the suite writes events that can be read");
            match event.payload.expect("an event holds something") {
                wire::StreamResponsePayload::StatusUpdate(update) => {
                    self.statuses.push((self.sequence, update.status.expect("a status")));
                }
                wire::StreamResponsePayload::ArtifactUpdate(update) => self.pieces.push((self.sequence, update)),
                wire::StreamResponsePayload::Task(_) | wire::StreamResponsePayload::Message(_) => {
                    panic!("not an update")
                }
            }
        }
        self.messages
            .extend(commit.messages.iter().map(|new| (before + new.events as u64, new.message.as_wire().clone())));
    }

    pub fn last_sequence(&self) -> u64 {
        self.sequence
    }

    /// The task as it stood when its log ended at `sequence`.
    pub fn task(&self, sequence: u64, history: HistoryLimit, artifacts: bool) -> wire::Task {
        let status = self.statuses.iter().rev().find(|(known, _)| *known <= sequence).expect("a first status");
        let mut messages: Vec<_> =
            self.messages.iter().filter(|(known, _)| *known <= sequence).map(|(_, message)| message.clone()).collect();
        if let HistoryLimit::Latest(limit) = history {
            messages.drain(..messages.len().saturating_sub(limit));
        }
        wire::Task {
            id: self.id.clone(),
            context_id: self.context_id.clone(),
            status: Some(status.1.clone()),
            artifacts: if artifacts { self.artifacts(sequence) } else { Vec::new() },
            history: messages,
            metadata: self.metadata.clone(),
        }
    }

    fn artifacts(&self, sequence: u64) -> Vec<wire::Artifact> {
        let pieces: Vec<_> =
            self.pieces.iter().filter(|(known, _)| *known <= sequence).map(|(_, piece)| piece).collect();
        let mut ids: Vec<&str> = Vec::new();
        for piece in &pieces {
            let id = id_of(piece);
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids.into_iter()
            .map(|id| {
                let own: Vec<_> = pieces.iter().filter(|piece| id_of(piece) == id).collect();
                let newest = own.iter().rposition(|piece| !piece.append).expect("a version begins without append");
                joined(own[newest..].iter().map(|piece| piece.artifact.clone().expect("an artifact")))
            })
            .collect()
    }
}

fn id_of(piece: &wire::TaskArtifactUpdateEvent) -> &str {
    &piece.artifact.as_ref().expect("an artifact").artifact_id
}

/// The pieces of one version put together.
fn joined(pieces: impl Iterator<Item = wire::Artifact>) -> wire::Artifact {
    let pieces: Vec<_> = pieces.collect();
    let last = |texts: Vec<String>| texts.into_iter().rfind(|text| !text.is_empty()).unwrap_or_default();
    let mut extensions: Vec<String> = Vec::new();
    for extension in pieces.iter().flat_map(|piece| &piece.extensions) {
        if !extensions.contains(extension) {
            extensions.push(extension.clone());
        }
    }
    let metadata: Vec<_> = pieces.iter().filter_map(|piece| piece.metadata.clone()).collect();
    wire::Artifact {
        artifact_id: pieces[0].artifact_id.clone(),
        name: last(pieces.iter().map(|piece| piece.name.clone()).collect()),
        description: last(pieces.iter().map(|piece| piece.description.clone()).collect()),
        parts: pieces.iter().flat_map(|piece| piece.parts.clone()).collect(),
        metadata: (!metadata.is_empty()).then(|| metadata.into_iter().flatten().collect()),
        extensions,
    }
}
