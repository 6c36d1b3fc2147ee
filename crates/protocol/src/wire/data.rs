//! Tasks, messages and artifacts (§4.1), and the events about them (§4.2).

use bytes::Bytes;
use serde_json::Value;

use crate::json::{JsonObject, wire_enum, wire_message};
use crate::timestamp::Timestamp;

wire_enum! {
    /// The state of a task as a number of the proto: 0 is unspecified, others may be unknown (§4.1.3).
    TaskState = crate::state::TaskState, unspecified "TASK_STATE_UNSPECIFIED",
    /// What a misspelling that is found in the field stands for, `TASK_STATE_CANCELLED`. As unknown as any other name
    /// ([`known`](Self::known) has nothing for it); a client may read it as CANCELED.
    misspelt CANCELLED "TASK_STATE_CANCELLED"
}

wire_enum! {
    /// The role of a message as a number of the proto: 0 is unspecified, others may be unknown (§4.1.5).
    Role = crate::state::Role, unspecified "ROLE_UNSPECIFIED"
}

wire_message! {
    /// A task as it is shown to its caller (§4.1.1).
    Task {
        /// The id.
        id "id": String [required],
        /// The context; may be empty where the proto lets it.
        context_id "contextId": String,
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
    /// The state of a task, with what the agent says about it (§4.1.2).
    TaskStatus {
        /// The state.
        state "state": TaskState [required],
        /// The message.
        message "message": Option<Message>,
        /// When it was so.
        timestamp "timestamp": Option<Timestamp>,
    }
}

wire_message! {
    /// One piece of content (§4.1.6).
    Part {
        /// More about the part.
        metadata "metadata": Option<JsonObject>,
        /// The name of a file; may be empty.
        filename "filename": String,
        /// The media type of the content; may be empty.
        media_type "mediaType": String,
    }
    /// The content; none in an invalid part.
    oneof content: PartContent {
        /// Text.
        text "text" => Text(String),
        /// The bytes of a file; base64 in JSON.
        raw "raw" => Raw(Bytes),
        /// Where a file is.
        url "url" => Url(String),
        /// Any JSON, `null` too.
        data "data" => Data(Value),
    }
}

wire_message! {
    /// One turn of a conversation (§4.1.4).
    Message {
        /// The id, made by the sender.
        message_id "messageId": String [required],
        /// The context; may be empty where the proto lets it.
        context_id "contextId": String,
        /// The task.
        task_id "taskId": String,
        /// Who sent it.
        role "role": Role [required],
        /// The content.
        parts "parts": Vec<Part> [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
        /// The extensions, by URI in messages and artifacts.
        extensions "extensions": Vec<String>,
        /// Other tasks that matter here.
        reference_task_ids "referenceTaskIds": Vec<String>,
    }
}

wire_message! {
    /// A result of a task (§4.1.7).
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
        /// The extensions, by URI in messages and artifacts.
        extensions "extensions": Vec<String>,
    }
}

wire_message! {
    /// Tells that the status of a task changed (§4.2.1).
    TaskStatusUpdateEvent {
        /// The task.
        task_id "taskId": String [required],
        /// The context; may be empty where the proto lets it.
        context_id "contextId": String [required],
        /// The status.
        status "status": Option<TaskStatus> [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// Tells that an artifact came into being or grew (§4.2.2).
    TaskArtifactUpdateEvent {
        /// The task.
        task_id "taskId": String [required],
        /// The context; may be empty where the proto lets it.
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

wire_message! {
    /// The answer to `SendMessage`: a task or a message (§3.1.1).
    SendMessageResponse {
    }
    /// What is answered; none in an invalid answer.
    oneof payload: SendMessageResponsePayload {
        /// A task.
        task "task" => Task(Task),
        /// A message of the agent.
        message "message" => Message(Message),
    }
}

wire_message! {
    /// One item of a stream (§3.2.3).
    StreamResponse {
    }
    /// What the item holds; none in an invalid item.
    oneof payload: StreamResponsePayload {
        /// A task.
        task "task" => Task(Task),
        /// A message of the agent.
        message "message" => Message(Message),
        /// A change of status.
        status_update "statusUpdate" => StatusUpdate(TaskStatusUpdateEvent),
        /// A new or longer artifact.
        artifact_update "artifactUpdate" => ArtifactUpdate(TaskArtifactUpdateEvent),
    }
}
