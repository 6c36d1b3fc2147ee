//! What a send answers, and the items of a stream.

use crate::json::{JsonError, JsonObject, wire_message};
use crate::v0_3::content::is_final;
use crate::v0_3::fault::inside;
use crate::v0_3::form::{Form, optional};
use crate::wire;

use super::data::{Artifact, Message, Task, TaskStatus};

wire_message! {
    /// Tells that the status of a task changed.
    TaskStatusUpdateEvent {
        /// The task.
        task_id "taskId": String,
        /// The context.
        context_id "contextId": String,
        /// The status.
        status "status": Option<TaskStatus>,
        /// Whether the stream ends here.
        r#final "final": bool,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// Tells that an artifact came into being or grew.
    TaskArtifactUpdateEvent {
        /// The task.
        task_id "taskId": String,
        /// The context.
        context_id "contextId": String,
        /// The artifact, or the chunk of it.
        artifact "artifact": Option<Artifact>,
        /// Whether the parts go after those that the artifact has.
        append "append": bool,
        /// Whether the artifact is complete with this.
        last_chunk "lastChunk": bool,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// The answer to `SendMessage`.
    SendMessageResponse {
    }
    /// What is answered; none in an invalid answer.
    oneof payload: SendMessageResponsePayload {
        /// A task.
        task "task" => Task(Task),
        /// A message of the agent.
        msg "message" => Msg(Message),
    }
}

wire_message! {
    /// One item of a stream.
    StreamResponse {
    }
    /// What the item holds; none in an invalid item.
    oneof payload: StreamResponsePayload {
        /// A task.
        task "task" => Task(Task),
        /// A message of the agent.
        msg "message" => Msg(Message),
        /// A change of status.
        status_update "statusUpdate" => StatusUpdate(TaskStatusUpdateEvent),
        /// A new or longer artifact.
        artifact_update "artifactUpdate" => ArtifactUpdate(TaskArtifactUpdateEvent),
    }
}

impl StreamResponse {
    /// Whether the sender says that its stream ends with this.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(&self.payload, Some(StreamResponsePayload::StatusUpdate(event)) if event.r#final)
    }
}

impl Form<wire::TaskStatusUpdateEvent> for TaskStatusUpdateEvent {
    fn from_v1(event: wire::TaskStatusUpdateEvent) -> Self {
        let wire::TaskStatusUpdateEvent { task_id, context_id, status, metadata } = event;
        let r#final = is_final(status.as_ref());
        Self { task_id, context_id, status: status.map(Form::from_v1), r#final, metadata }
    }

    fn into_v1(self) -> Result<wire::TaskStatusUpdateEvent, JsonError> {
        let Self { task_id, context_id, status, r#final: _, metadata } = self;
        Ok(wire::TaskStatusUpdateEvent { task_id, context_id, status: optional(status, "status")?, metadata })
    }
}

impl Form<wire::TaskArtifactUpdateEvent> for TaskArtifactUpdateEvent {
    fn from_v1(event: wire::TaskArtifactUpdateEvent) -> Self {
        let wire::TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk, metadata } = event;
        Self { task_id, context_id, artifact: artifact.map(Form::from_v1), append, last_chunk, metadata }
    }

    fn into_v1(self) -> Result<wire::TaskArtifactUpdateEvent, JsonError> {
        let Self { task_id, context_id, artifact, append, last_chunk, metadata } = self;
        let artifact = optional(artifact, "artifact")?;
        Ok(wire::TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk, metadata })
    }
}

impl Form<wire::SendMessageResponse> for SendMessageResponse {
    fn from_v1(answer: wire::SendMessageResponse) -> Self {
        use wire::SendMessageResponsePayload as V1;
        let payload = answer.payload.map(|payload| match payload {
            V1::Task(task) => SendMessageResponsePayload::Task(Form::from_v1(task)),
            V1::Message(message) => SendMessageResponsePayload::Msg(Form::from_v1(message)),
        });
        Self { payload }
    }

    fn into_v1(self) -> Result<wire::SendMessageResponse, JsonError> {
        use SendMessageResponsePayload as V0_3;
        use wire::SendMessageResponsePayload as V1;
        let payload = match self.payload {
            Some(V0_3::Task(task)) => Some(V1::Task(task.into_v1().map_err(inside("task"))?)),
            Some(V0_3::Msg(message)) => Some(V1::Message(message.into_v1().map_err(inside("message"))?)),
            None => None,
        };
        Ok(wire::SendMessageResponse { payload })
    }
}

impl Form<wire::StreamResponse> for StreamResponse {
    fn from_v1(item: wire::StreamResponse) -> Self {
        use StreamResponsePayload as V0_3;
        use wire::StreamResponsePayload as V1;
        let payload = item.payload.map(|payload| match payload {
            V1::Task(task) => V0_3::Task(Form::from_v1(task)),
            V1::Message(message) => V0_3::Msg(Form::from_v1(message)),
            V1::StatusUpdate(event) => V0_3::StatusUpdate(Form::from_v1(event)),
            V1::ArtifactUpdate(event) => V0_3::ArtifactUpdate(Form::from_v1(event)),
        });
        Self { payload }
    }

    fn into_v1(self) -> Result<wire::StreamResponse, JsonError> {
        use StreamResponsePayload as V0_3;
        use wire::StreamResponsePayload as V1;
        let payload = match self.payload {
            Some(V0_3::Task(task)) => Some(V1::Task(task.into_v1().map_err(inside("task"))?)),
            Some(V0_3::Msg(message)) => Some(V1::Message(message.into_v1().map_err(inside("message"))?)),
            Some(V0_3::StatusUpdate(event)) => Some(V1::StatusUpdate(event.into_v1().map_err(inside("statusUpdate"))?)),
            Some(V0_3::ArtifactUpdate(event)) => {
                Some(V1::ArtifactUpdate(event.into_v1().map_err(inside("artifactUpdate"))?))
            }
            None => None,
        };
        Ok(wire::StreamResponse { payload })
    }
}
