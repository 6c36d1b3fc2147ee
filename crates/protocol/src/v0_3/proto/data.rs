//! Tasks, messages, parts and artifacts.

use bytes::Bytes;

use crate::json::{JsonError, JsonObject, wire_message};
use crate::timestamp::Timestamp;
use crate::v0_3::content::{unwrap_data, wrap_data};
use crate::v0_3::fault::{fault, inside};
use crate::v0_3::form::{Form, all, each, optional};
use crate::wire::{self, Role};

use super::state::TaskState;

wire_message! {
    /// A task.
    Task {
        /// The id.
        id "id": String,
        /// The context.
        context_id "contextId": String,
        /// The status.
        status "status": Option<TaskStatus>,
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
        state "state": TaskState,
        /// The message.
        update "message": Option<Message>,
        /// When it was so.
        timestamp "timestamp": Option<Timestamp>,
    }
}

wire_message! {
    /// One piece of content.
    Part {
        /// More about the part.
        metadata "metadata": Option<JsonObject>,
    }
    /// The content; none in an invalid part.
    oneof part: PartPart {
        /// Text.
        text "text" => Text(String),
        /// A file.
        file "file" => File(FilePart),
        /// JSON.
        data "data" => Data(DataPart),
    }
}

wire_message! {
    /// A file.
    FilePart {
        /// Its media type.
        mime_type "mimeType": String,
        /// Its name.
        name "name": String,
    }
    /// Where the file is, or its bytes.
    oneof file: FilePartFile {
        /// Where the file is.
        file_with_uri "fileWithUri" => FileWithUri(String),
        /// The bytes; base64 in JSON.
        file_with_bytes "fileWithBytes" => FileWithBytes(Bytes),
    }
}

wire_message! {
    /// JSON, which must be an object.
    DataPart {
        /// The object.
        data "data": Option<JsonObject>,
    }
}

wire_message! {
    /// One turn of a conversation.
    Message {
        /// The id, made by the sender.
        message_id "messageId": String,
        /// The context.
        context_id "contextId": String,
        /// The task.
        task_id "taskId": String,
        /// Who sent it.
        role "role": Role,
        /// The parts.
        content "content": Vec<Part>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
        /// The extensions, by URI.
        extensions "extensions": Vec<String>,
    }
}

wire_message! {
    /// A result of a task.
    Artifact {
        /// The id, unique in its task.
        artifact_id "artifactId": String,
        /// The name.
        name "name": String,
        /// A description for people.
        description "description": String,
        /// The content.
        parts "parts": Vec<Part>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
        /// The extensions, by URI.
        extensions "extensions": Vec<String>,
    }
}

impl Form<wire::Task> for Task {
    fn from_v1(task: wire::Task) -> Self {
        let wire::Task { id, context_id, status, artifacts, history, metadata } = task;
        let status = status.map(Form::from_v1);
        Self { id, context_id, status, artifacts: all(artifacts), history: all(history), metadata }
    }

    fn into_v1(self) -> Result<wire::Task, JsonError> {
        let Self { id, context_id, status, artifacts, history, metadata } = self;
        let status = optional(status, "status")?;
        let artifacts = each(artifacts, "artifacts")?;
        let history = each(history, "history")?;
        Ok(wire::Task { id, context_id, status, artifacts, history, metadata })
    }
}

impl Form<wire::TaskStatus> for TaskStatus {
    fn from_v1(status: wire::TaskStatus) -> Self {
        let wire::TaskStatus { state, message, timestamp } = status;
        Self { state: state.into(), update: message.map(Form::from_v1), timestamp }
    }

    fn into_v1(self) -> Result<wire::TaskStatus, JsonError> {
        let Self { state, update, timestamp } = self;
        Ok(wire::TaskStatus { state: state.into(), message: optional(update, "message")?, timestamp })
    }
}

impl Form<wire::Message> for Message {
    fn from_v1(message: wire::Message) -> Self {
        let wire::Message { message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids: _ } =
            message;
        Self { message_id, context_id, task_id, role, content: all(parts), metadata, extensions }
    }

    fn into_v1(self) -> Result<wire::Message, JsonError> {
        let Self { message_id, context_id, task_id, role, content, metadata, extensions } = self;
        let parts = each(content, "content")?;
        let reference_task_ids = Vec::new();
        Ok(wire::Message { message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids })
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
        let file = |file| PartPart::File(FilePart { file: Some(file), mime_type: media_type, name: filename });
        match content {
            Some(wire::PartContent::Text(text)) => Self { part: Some(PartPart::Text(text)), metadata },
            Some(wire::PartContent::Raw(bytes)) => {
                Self { part: Some(file(FilePartFile::FileWithBytes(bytes))), metadata }
            }
            Some(wire::PartContent::Url(uri)) => Self { part: Some(file(FilePartFile::FileWithUri(uri))), metadata },
            Some(wire::PartContent::Data(data)) => {
                let (data, metadata) = wrap_data(data, metadata);
                Self { part: Some(PartPart::Data(DataPart { data: Some(data) })), metadata }
            }
            None => Self { part: None, metadata },
        }
    }

    fn into_v1(self) -> Result<wire::Part, JsonError> {
        let Self { part, metadata } = self;
        match part {
            Some(PartPart::Text(text)) => Ok(wire::Part { metadata, ..wire::Part::text(text) }),
            Some(PartPart::File(FilePart { file, mime_type, name })) => {
                let content = match file {
                    Some(FilePartFile::FileWithBytes(bytes)) => wire::PartContent::Raw(bytes),
                    Some(FilePartFile::FileWithUri(uri)) => wire::PartContent::Url(uri),
                    None => {
                        return Err(inside("file")(fault("", "must have one of fileWithUri, fileWithBytes")));
                    }
                };
                Ok(wire::Part { content: Some(content), metadata, filename: name, media_type: mime_type })
            }
            // An empty object and none are the same to some writers.
            Some(PartPart::Data(DataPart { data })) => {
                let (data, metadata) = unwrap_data(data.unwrap_or_default(), metadata);
                Ok(wire::Part { metadata, ..wire::Part::data(data) })
            }
            None => Err(fault("", "must have one of text, file, data")),
        }
    }
}
