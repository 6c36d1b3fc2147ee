//! Servers and a follower's view, so simple that they are right at a glance.

use serde_json::Value;

use super::*;

pub fn text(text: &str) -> wire::Part {
    wire::Part { content: Some(wire::PartContent::Text(text.to_owned())), ..wire::Part::default() }
}

pub fn data(data: Value) -> wire::Part {
    wire::Part { content: Some(wire::PartContent::Data(data)), ..wire::Part::default() }
}

pub fn artifact(id: &str, parts: Vec<wire::Part>) -> wire::Artifact {
    wire::Artifact { artifact_id: id.to_owned(), parts, ..wire::Artifact::default() }
}

pub fn agent_message(id: &str, said: &str) -> wire::Message {
    wire::Message {
        message_id: id.to_owned(),
        role: Role::Agent.into(),
        parts: vec![text(said)],
        ..wire::Message::default()
    }
}

pub fn status(state: wire::TaskState, message: Option<wire::Message>, at_millis: i64) -> wire::TaskStatus {
    wire::TaskStatus { state, message, timestamp: Some(Timestamp::from_unix_millis(at_millis)) }
}

/// Task `t` of context `c`, submitted.
pub fn task(artifacts: Vec<wire::Artifact>) -> wire::Task {
    let status = Some(status(TaskState::Submitted.into(), None, 0));
    wire::Task { id: "t".to_owned(), context_id: "c".to_owned(), status, artifacts, ..wire::Task::default() }
}

pub fn status_update(status: wire::TaskStatus) -> Payload {
    Payload::StatusUpdate(wire::TaskStatusUpdateEvent {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        status: Some(status),
        metadata: None,
    })
}

pub fn artifact_update(artifact: wire::Artifact, append: bool) -> Payload {
    Payload::ArtifactUpdate(wire::TaskArtifactUpdateEvent {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        artifact: Some(artifact),
        append,
        ..wire::TaskArtifactUpdateEvent::default()
    })
}

pub fn item(payload: Payload) -> wire::StreamResponse {
    wire::StreamResponse { payload: Some(payload) }
}

/// How a server keeps what is appended to an artifact.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keeps {
    /// Part by part. So does a follower.
    Parts,
    /// Part by part; name, description and extensions stay those of the first piece.
    FirstDetails,
    /// Appended texts are joined to the text before them.
    JoinedAppends,
    /// Texts are joined to the text before them, wherever they come from.
    JoinedTexts,
}

impl Keeps {
    pub const ALL: [Self; 4] = [Self::Parts, Self::FirstDetails, Self::JoinedAppends, Self::JoinedTexts];

    /// What becomes of a task by an item.
    pub fn apply(self, task: &mut wire::Task, item: &wire::StreamResponse) {
        match item.payload.clone().unwrap() {
            Payload::Task(new) => *task = new,
            Payload::StatusUpdate(update) => {
                let before = std::mem::replace(&mut task.status, update.status);
                task.history.extend(before.and_then(|status| status.message));
            }
            Payload::ArtifactUpdate(update) => self.apply_artifact(task, update.artifact.unwrap(), update.append),
            Payload::Message(_) => {}
        }
    }

    fn apply_artifact(self, task: &mut wire::Task, mut piece: wire::Artifact, append: bool) {
        let known = task.artifacts.iter_mut().find(|known| known.artifact_id == piece.artifact_id);
        let Some(known) = known else {
            if self == Self::JoinedTexts {
                piece.parts = joined(&piece.parts);
            }
            return task.artifacts.push(piece);
        };
        if !append {
            *known = wire::Artifact { parts: Vec::new(), ..piece.clone() };
        }
        for part in piece.parts {
            let join = self == Self::JoinedTexts || (self == Self::JoinedAppends && append);
            if !(join && join_to_last(&mut known.parts, &part)) {
                known.parts.push(part);
            }
        }
        if let Some(metadata) = piece.metadata {
            known.metadata.get_or_insert_default().extend(metadata);
        }
        if self != Self::FirstDetails {
            let new = piece.extensions.into_iter().filter(|extension| !known.extensions.contains(extension));
            let new: Vec<_> = new.collect();
            known.extensions.extend(new);
            for (known, given) in [(&mut known.name, piece.name), (&mut known.description, piece.description)] {
                if !given.is_empty() {
                    *known = given;
                }
            }
        }
    }
}

fn join_to_last(parts: &mut [wire::Part], part: &wire::Part) -> bool {
    let Some(last) = parts.last_mut() else { return false };
    let members = |part: &wire::Part| wire::Part { content: None, ..part.clone() };
    if members(last) != members(part) {
        return false;
    }
    let (Some(wire::PartContent::Text(last)), Some(wire::PartContent::Text(text))) = (&mut last.content, &part.content)
    else {
        return false;
    };
    last.push_str(text);
    true
}

/// The parts with adjacent texts joined and empty ones left out.
pub fn joined(parts: &[wire::Part]) -> Vec<wire::Part> {
    let mut joined: Vec<wire::Part> = Vec::new();
    for part in parts {
        let is_empty = part.content == Some(wire::PartContent::Text(String::new()));
        if !is_empty && !join_to_last(&mut joined, part) {
            joined.push(part.clone());
        }
    }
    joined
}
