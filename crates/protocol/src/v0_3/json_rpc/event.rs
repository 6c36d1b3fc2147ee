//! What a send answers, and the items of a stream: objects told apart by `kind`.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::json::{JsonError, JsonObject, ProtoJson, Segment, wire_message, within};
use crate::v0_3::content::is_final;
use crate::v0_3::fault::fault;
use crate::v0_3::form::{Form, optional};
use crate::wire;

use super::data::{Artifact, Message, Part, Task, TaskStatus, check_kind, status_or_unknown};
use super::name::{Kind, Role};

wire_message! {
    /// Tells that the status of a task changed.
    TaskStatusUpdateEvent {
        /// `status-update`.
        kind "kind": Option<Kind>,
        /// The task.
        task_id "taskId": String [required],
        /// The context.
        context_id "contextId": String [required],
        /// The status.
        status "status": Option<TaskStatus> [required],
        /// Whether the stream ends here.
        r#final "final": bool [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// Tells that an artifact came into being or grew.
    TaskArtifactUpdateEvent {
        /// `artifact-update`.
        kind "kind": Option<Kind>,
        /// The task.
        task_id "taskId": String [required],
        /// The context.
        context_id "contextId": String [required],
        /// The artifact, or the chunk of it.
        artifact "artifact": Option<Artifact> [required],
        /// Whether the parts go after those that the artifact has.
        append "append": bool,
        /// Whether the artifact is complete with this.
        last_chunk "lastChunk": bool,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

/// The result of `message/send`, and of each item of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// What it is; none in an invalid one, which is never read.
    pub payload: Option<EventPayload>,
}

/// What an [`Event`] can be.
#[derive(Clone, Debug, PartialEq)]
pub enum EventPayload {
    /// A task.
    Task(Task),
    /// A message of the agent.
    Message(Message),
    /// A change of status.
    StatusUpdate(TaskStatusUpdateEvent),
    /// A new or longer artifact.
    ArtifactUpdate(TaskArtifactUpdateEvent),
}

impl Event {
    /// Whether the sender says that its stream ends with this.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(&self.payload, Some(EventPayload::StatusUpdate(event)) if event.r#final)
    }
}

wire_message! {
    /// The members of each of them, as they come.
    AnyEvent {
        kind "kind": Option<Kind>,
        id "id": String,
        message_id "messageId": String,
        task_id "taskId": String,
        context_id "contextId": String,
        status "status": Option<TaskStatus>,
        artifacts "artifacts": Vec<Artifact>,
        history "history": Vec<Message>,
        role "role": Option<Role>,
        parts "parts": Vec<Part>,
        extensions "extensions": Vec<String>,
        reference_task_ids "referenceTaskIds": Vec<String>,
        artifact "artifact": Option<Artifact>,
        append "append": bool,
        last_chunk "lastChunk": bool,
        r#final "final": bool,
        metadata "metadata": Option<JsonObject>,
    }
}

impl AnyEvent {
    /// What the object says that it is, or else the only thing that it can be.
    fn kind(&self) -> Option<Kind> {
        let guess = || match (&self.status, &self.artifact) {
            (_, Some(_)) => Some(Kind::ArtifactUpdate),
            (Some(_), None) if !self.task_id.is_empty() => Some(Kind::StatusUpdate),
            (Some(_), None) => Some(Kind::Task),
            (None, None) if !self.message_id.is_empty() => Some(Kind::Message),
            (None, None) => None,
        };
        self.kind.or_else(guess)
    }

    fn into_payload(self) -> Option<EventPayload> {
        let kind = self.kind();
        let Self { task_id, context_id, status, metadata, .. } = self;
        Some(match kind? {
            Kind::Task => EventPayload::Task(Task {
                kind,
                id: self.id,
                context_id,
                status,
                artifacts: self.artifacts,
                history: self.history,
                metadata,
            }),
            Kind::Message => EventPayload::Message(Message {
                kind,
                message_id: self.message_id,
                context_id,
                task_id,
                role: self.role,
                parts: self.parts,
                metadata,
                extensions: self.extensions,
                reference_task_ids: self.reference_task_ids,
            }),
            Kind::StatusUpdate => EventPayload::StatusUpdate(TaskStatusUpdateEvent {
                kind,
                task_id,
                context_id,
                status,
                r#final: self.r#final,
                metadata,
            }),
            Kind::ArtifactUpdate => EventPayload::ArtifactUpdate(TaskArtifactUpdateEvent {
                kind,
                task_id,
                context_id,
                artifact: self.artifact,
                append: self.append,
                last_chunk: self.last_chunk,
                metadata,
            }),
        })
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match AnyEvent::deserialize(deserializer)?.into_payload() {
            Some(payload) => Ok(Self { payload: Some(payload) }),
            None => within(|| Segment::Member("kind"), Err(D::Error::custom(KINDS))),
        }
    }
}

const KINDS: &str = "must be one of task, message, status-update, artifact-update";

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.payload {
            Some(EventPayload::Task(task)) => task.serialize(serializer),
            Some(EventPayload::Message(message)) => message.serialize(serializer),
            Some(EventPayload::StatusUpdate(event)) => event.serialize(serializer),
            Some(EventPayload::ArtifactUpdate(event)) => event.serialize(serializer),
            None => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

impl ProtoJson for Event {}

impl Form<wire::StreamResponse> for Event {
    fn from_v1(item: wire::StreamResponse) -> Self {
        use wire::StreamResponsePayload as V1;
        let payload = item.payload.map(|payload| match payload {
            V1::Task(task) => EventPayload::Task(Form::from_v1(task)),
            V1::Message(message) => EventPayload::Message(Form::from_v1(message)),
            V1::StatusUpdate(event) => EventPayload::StatusUpdate(Form::from_v1(event)),
            V1::ArtifactUpdate(event) => EventPayload::ArtifactUpdate(Form::from_v1(event)),
        });
        Self { payload }
    }

    fn into_v1(self) -> Result<wire::StreamResponse, JsonError> {
        use wire::StreamResponsePayload as V1;
        let payload = match self.payload {
            Some(EventPayload::Task(task)) => Some(V1::Task(task.into_v1()?)),
            Some(EventPayload::Message(message)) => Some(V1::Message(message.into_v1()?)),
            Some(EventPayload::StatusUpdate(event)) => Some(V1::StatusUpdate(event.into_v1()?)),
            Some(EventPayload::ArtifactUpdate(event)) => Some(V1::ArtifactUpdate(event.into_v1()?)),
            None => None,
        };
        Ok(wire::StreamResponse { payload })
    }
}

impl Form<wire::SendMessageResponse> for Event {
    fn from_v1(answer: wire::SendMessageResponse) -> Self {
        use wire::SendMessageResponsePayload as V1;
        let payload = answer.payload.map(|payload| match payload {
            V1::Task(task) => EventPayload::Task(Form::from_v1(task)),
            V1::Message(message) => EventPayload::Message(Form::from_v1(message)),
        });
        Self { payload }
    }

    fn into_v1(self) -> Result<wire::SendMessageResponse, JsonError> {
        use wire::SendMessageResponsePayload as V1;
        let payload = match self.payload {
            Some(EventPayload::Task(task)) => Some(V1::Task(task.into_v1()?)),
            Some(EventPayload::Message(message)) => Some(V1::Message(message.into_v1()?)),
            Some(EventPayload::StatusUpdate(_) | EventPayload::ArtifactUpdate(_)) => {
                return Err(fault("kind", "must be one of task, message"));
            }
            None => None,
        };
        Ok(wire::SendMessageResponse { payload })
    }
}

impl Form<wire::TaskStatusUpdateEvent> for TaskStatusUpdateEvent {
    fn from_v1(event: wire::TaskStatusUpdateEvent) -> Self {
        let wire::TaskStatusUpdateEvent { task_id, context_id, status, metadata } = event;
        Self {
            kind: Some(Kind::StatusUpdate),
            task_id,
            context_id,
            r#final: is_final(status.as_ref()),
            status: status_or_unknown(status),
            metadata,
        }
    }

    fn into_v1(self) -> Result<wire::TaskStatusUpdateEvent, JsonError> {
        let Self { kind, task_id, context_id, status, r#final: _, metadata } = self;
        check_kind(kind, Kind::StatusUpdate)?;
        Ok(wire::TaskStatusUpdateEvent { task_id, context_id, status: optional(status, "status")?, metadata })
    }
}

impl Form<wire::TaskArtifactUpdateEvent> for TaskArtifactUpdateEvent {
    fn from_v1(event: wire::TaskArtifactUpdateEvent) -> Self {
        let wire::TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk, metadata } = event;
        Self {
            kind: Some(Kind::ArtifactUpdate),
            task_id,
            context_id,
            artifact: Some(Form::from_v1(artifact.unwrap_or_default())),
            append,
            last_chunk,
            metadata,
        }
    }

    fn into_v1(self) -> Result<wire::TaskArtifactUpdateEvent, JsonError> {
        let Self { kind, task_id, context_id, artifact, append, last_chunk, metadata } = self;
        check_kind(kind, Kind::ArtifactUpdate)?;
        let artifact = optional(artifact, "artifact")?;
        Ok(wire::TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk, metadata })
    }
}
