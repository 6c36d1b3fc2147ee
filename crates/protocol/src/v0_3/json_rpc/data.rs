//! Tasks, messages, parts and artifacts.

use bytes::Bytes;

use crate::json::{JsonError, JsonObject, wire_message};
use crate::v0_3::content::{unwrap_data, wrap_data};
use crate::v0_3::fault::{fault, inside};
use crate::v0_3::form::{Form, all, each, optional};
use crate::wire;

use super::name::{Kind, PartKind, Role, TaskState, Time};

wire_message! {
    /// A task.
    Task {
        /// `task`.
        kind "kind": Option<Kind>,
        /// The id.
        id "id": String [required],
        /// The context.
        context_id "contextId": String [required],
        /// The status.
        status "status": Option<TaskStatus> [required],
        /// The results.
        artifacts "artifacts": Vec<Artifact>,
        /// Earlier messages, oldest first.
        history "history": Vec<Message>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// The state of a task, with what the agent says about it.
    TaskStatus {
        /// The state.
        state "state": Option<TaskState> [required],
        /// The message.
        message "message": Option<Message>,
        /// When it was so.
        timestamp "timestamp": Option<Time>,
    }
}

wire_message! {
    /// One turn of a conversation.
    Message {
        /// `message`.
        kind "kind": Option<Kind>,
        /// The id, made by the sender.
        message_id "messageId": String [required],
        /// The context.
        context_id "contextId": String,
        /// The task.
        task_id "taskId": String,
        /// Who sent it.
        role "role": Option<Role> [required],
        /// The content.
        parts "parts": Vec<Part> [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
        /// The extensions, by URI.
        extensions "extensions": Vec<String>,
        /// Other tasks that matter here.
        reference_task_ids "referenceTaskIds": Vec<String>,
    }
}

wire_message! {
    /// One piece of content: of `text`, `file` and `data` the one that `kind` names.
    Part {
        /// `text`, `file` or `data`.
        kind "kind": Option<PartKind>,
        /// Text.
        text "text": Option<String>,
        /// A file.
        file "file": Option<File>,
        /// JSON, which must be an object.
        data "data": Option<JsonObject>,
        /// More about the part.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// A file.
    File {
        /// Its name.
        name "name": String,
        /// Its media type.
        mime_type "mimeType": String,
    }
    /// Its bytes, or where they are.
    oneof content: FileContent {
        /// The bytes; base64 in JSON.
        bytes "bytes" => Bytes(Bytes),
        /// Where the file is.
        uri "uri" => Uri(String),
    }
}

wire_message! {
    /// A result of a task.
    Artifact {
        /// The id, unique in its task.
        artifact_id "artifactId": String [required],
        /// The name.
        name "name": String,
        /// A description for people.
        description "description": String,
        /// The content.
        parts "parts": Vec<Part> [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
        /// The extensions, by URI.
        extensions "extensions": Vec<String>,
    }
}

/// Refuses an object that says that it is something else.
pub(super) fn check_kind(kind: Option<Kind>, wanted: Kind) -> Result<(), JsonError> {
    match kind {
        Some(kind) if kind != wanted => Err(fault("kind", format!("must be {}", wanted.text()))),
        Some(_) | None => Ok(()),
    }
}

/// A status, or the unknown one: v0.3 requires one.
pub(super) fn status_or_unknown(status: Option<wire::TaskStatus>) -> Option<TaskStatus> {
    Some(TaskStatus::from_v1(status.unwrap_or_default()))
}

impl Form<wire::Task> for Task {
    fn from_v1(task: wire::Task) -> Self {
        let wire::Task { id, context_id, status, artifacts, history, metadata } = task;
        Self {
            kind: Some(Kind::Task),
            id,
            context_id,
            status: status_or_unknown(status),
            artifacts: all(artifacts),
            history: all(history),
            metadata,
        }
    }

    fn into_v1(self) -> Result<wire::Task, JsonError> {
        let Self { kind, id, context_id, status, artifacts, history, metadata } = self;
        check_kind(kind, Kind::Task)?;
        let status = optional(status, "status")?;
        let artifacts = each(artifacts, "artifacts")?;
        let history = each(history, "history")?;
        Ok(wire::Task { id, context_id, status, artifacts, history, metadata })
    }
}

impl Form<wire::TaskStatus> for TaskStatus {
    fn from_v1(status: wire::TaskStatus) -> Self {
        let wire::TaskStatus { state, message, timestamp } = status;
        Self { state: Some(state.into()), message: message.map(Form::from_v1), timestamp: timestamp.map(Time) }
    }

    fn into_v1(self) -> Result<wire::TaskStatus, JsonError> {
        let Self { state, message, timestamp } = self;
        Ok(wire::TaskStatus {
            state: state.map(Into::into).unwrap_or_default(),
            message: optional(message, "message")?,
            timestamp: timestamp.map(|time| time.0),
        })
    }
}

impl Form<wire::Message> for Message {
    fn from_v1(message: wire::Message) -> Self {
        let wire::Message { message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids } =
            message;
        Self {
            kind: Some(Kind::Message),
            message_id,
            context_id,
            task_id,
            role: Some(role.into()),
            parts: all(parts),
            metadata,
            extensions,
            reference_task_ids,
        }
    }

    fn into_v1(self) -> Result<wire::Message, JsonError> {
        let Self { kind, message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids } =
            self;
        check_kind(kind, Kind::Message)?;
        Ok(wire::Message {
            message_id,
            context_id,
            task_id,
            role: role.map(Into::into).unwrap_or_default(),
            parts: each(parts, "parts")?,
            metadata,
            extensions,
            reference_task_ids,
        })
    }
}

impl Form<wire::Artifact> for Artifact {
    fn from_v1(artifact: wire::Artifact) -> Self {
        let wire::Artifact { artifact_id, name, description, parts, metadata, extensions } = artifact;
        Self { artifact_id, name, description, parts: all(parts), metadata, extensions }
    }

    fn into_v1(self) -> Result<wire::Artifact, JsonError> {
        let Self { artifact_id, name, description, parts, metadata, extensions } = self;
        let parts = each(parts, "parts")?;
        Ok(wire::Artifact { artifact_id, name, description, parts, metadata, extensions })
    }
}

impl Form<wire::Part> for Part {
    fn from_v1(part: wire::Part) -> Self {
        let wire::Part { content, metadata, filename, media_type } = part;
        let file = |content| File { content: Some(content), name: filename, mime_type: media_type };
        let rest = Self::default();
        match content {
            Some(wire::PartContent::Text(text)) => {
                Self { kind: Some(PartKind::Text), text: Some(text), metadata, ..rest }
            }
            Some(wire::PartContent::Raw(bytes)) => {
                Self { kind: Some(PartKind::File), file: Some(file(FileContent::Bytes(bytes))), metadata, ..rest }
            }
            Some(wire::PartContent::Url(uri)) => {
                Self { kind: Some(PartKind::File), file: Some(file(FileContent::Uri(uri))), metadata, ..rest }
            }
            Some(wire::PartContent::Data(data)) => {
                let (data, metadata) = wrap_data(data, metadata);
                Self { kind: Some(PartKind::Data), data: Some(data), metadata, ..rest }
            }
            None => Self { kind: Some(PartKind::Text), text: Some(String::new()), metadata, ..rest },
        }
    }

    fn into_v1(self) -> Result<wire::Part, JsonError> {
        let kind = self.kind()?;
        let Self { kind: _, text, file, data, metadata } = self;
        match kind {
            PartKind::Text => {
                let text = text.ok_or_else(|| fault("text", REQUIRED))?;
                Ok(wire::Part { metadata, ..wire::Part::text(text) })
            }
            PartKind::File => {
                let File { content, name, mime_type } = file.ok_or_else(|| fault("file", REQUIRED))?;
                let content = match content {
                    Some(FileContent::Bytes(bytes)) => wire::PartContent::Raw(bytes),
                    Some(FileContent::Uri(uri)) => wire::PartContent::Url(uri),
                    None => return Err(inside("file")(fault("", "must have one of bytes, uri"))),
                };
                Ok(wire::Part { content: Some(content), metadata, filename: name, media_type: mime_type })
            }
            PartKind::Data => {
                let data = data.ok_or_else(|| fault("data", REQUIRED))?;
                let (data, metadata) = unwrap_data(data, metadata);
                Ok(wire::Part { metadata, ..wire::Part::data(data) })
            }
        }
    }
}

const REQUIRED: &str = "is required";

impl Part {
    /// What the part says that it is, or else the only thing that it can be.
    fn kind(&self) -> Result<PartKind, JsonError> {
        match (self.kind, &self.text, &self.file, &self.data) {
            (Some(kind), ..) => Ok(kind),
            (None, Some(_), None, None) => Ok(PartKind::Text),
            (None, None, Some(_), None) => Ok(PartKind::File),
            (None, None, None, Some(_)) => Ok(PartKind::Data),
            (None, ..) => Err(fault("kind", "is required, must be one of text, file, data")),
        }
    }
}
