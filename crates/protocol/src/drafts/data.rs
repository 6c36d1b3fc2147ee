//! Tasks, messages, parts, artifacts and events.

use crate::json::{JsonError, JsonObject, wire_message};
use crate::state;
use crate::v0_3::json_rpc::{self, File, PartKind, Role, TaskState, Time};
use crate::v0_3::{Form, all, each};
use crate::wire;

wire_message! {
    /// A task.
    Task {
        /// The id that its caller gave it.
        id "id": String [required],
        /// The session that it belongs to.
        session_id "sessionId": String [required],
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
        /// Who sent it.
        role "role": Option<Role> [required],
        /// The content.
        parts "parts": Vec<Part> [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// One piece of content: of `text`, `file` and `data` the one that `type` names.
    Part {
        /// `text`, `file` or `data`.
        kind "type": Option<PartKind>,
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
    /// A result of a task, or a chunk of it.
    Artifact {
        /// The name.
        name "name": String,
        /// A description for people.
        description "description": String,
        /// The content.
        parts "parts": Vec<Part> [required],
        /// Which of the task's artifacts it is, from 0.
        index "index": i32 [required],
        /// Whether the parts go after those that the artifact has.
        append "append": bool,
        /// Whether the artifact is complete with this.
        last_chunk "lastChunk": bool,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// Tells that the status of a task changed.
    TaskStatusUpdateEvent {
        /// The task.
        id "id": String [required],
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
        /// The task.
        id "id": String [required],
        /// The artifact, or the chunk of it.
        artifact "artifact": Option<Artifact> [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

impl Message {
    /// The message as one of v1.0, under an id that the drafts do not know.
    ///
    /// # Errors
    ///
    /// [`JsonError`] for a part that is not exactly one of text, file and data.
    pub fn into_v1(self, message_id: String) -> Result<wire::Message, JsonError> {
        let Self { role, parts, metadata } = self;
        Ok(wire::Message {
            message_id,
            role: role.map(Into::into).unwrap_or_default(),
            parts: each(parts, "parts")?,
            metadata,
            ..wire::Message::default()
        })
    }

    pub(super) fn from_v1(message: wire::Message) -> Self {
        Self { role: Some(message.role.into()), parts: all(message.parts), metadata: message.metadata }
    }
}

impl Form<wire::Part> for Part {
    fn from_v1(part: wire::Part) -> Self {
        let json_rpc::Part { kind, text, file, data, metadata } = json_rpc::Part::from_v1(part);
        Self { kind, text, file, data, metadata }
    }

    fn into_v1(self) -> Result<wire::Part, JsonError> {
        let Self { kind, text, file, data, metadata } = self;
        json_rpc::Part { kind, text, file, data, metadata }.into_v1().map_err(|error| {
            let path = if error.path == "kind" { "type".to_owned() } else { error.path };
            JsonError { path, ..error }
        })
    }
}

impl Artifact {
    pub(super) fn from_v1(artifact: wire::Artifact, index: i32) -> Self {
        let wire::Artifact { artifact_id: _, name, description, parts, metadata, extensions: _ } = artifact;
        Self { name, description, parts: all(parts), index, append: false, last_chunk: false, metadata }
    }
}

impl TaskStatus {
    pub(super) fn from_v1(status: wire::TaskStatus) -> Self {
        let wire::TaskStatus { state, mut message, timestamp } = status;
        let told = match state.known() {
            Some(state::TaskState::AuthRequired | state::TaskState::Rejected) => {
                // The drafts have no word for it, and their callers must not wait.
                let real = format!("The task is in state {}.", TaskState::from(state).text());
                let reason = message.get_or_insert_with(|| wire::Message {
                    role: state::Role::Agent.into(),
                    ..wire::Message::default()
                });
                reason.parts.insert(0, wire::Part::text(real));
                TaskState::Failed
            }
            Some(
                state::TaskState::Submitted
                | state::TaskState::Working
                | state::TaskState::InputRequired
                | state::TaskState::Completed
                | state::TaskState::Canceled
                | state::TaskState::Failed,
            )
            | None => state.into(),
        };
        Self { state: Some(told), message: message.map(Message::from_v1), timestamp: timestamp.map(Time) }
    }

    /// Whether a stream ends with it.
    pub(super) fn is_final(&self) -> bool {
        match self.state {
            Some(TaskState::InputRequired | TaskState::Completed | TaskState::Canceled | TaskState::Failed) => true,
            Some(
                TaskState::Submitted
                | TaskState::Working
                | TaskState::Rejected
                | TaskState::AuthRequired
                | TaskState::Unknown,
            )
            | None => false,
        }
    }
}
