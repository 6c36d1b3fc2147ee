//! Messages, parts, artifacts, tasks, and the events about them.

use longhaul_protocol::v0_3::proto;

use crate::a2a_v0_3;
use crate::convert::{Mirror, mirror, mirror_oneof, try_mirror, try_mirror_oneof};

impl Mirror<proto::TaskState> for i32 {
    fn mirror(self) -> proto::TaskState {
        proto::TaskState(self)
    }
}

impl Mirror<i32> for proto::TaskState {
    fn mirror(self) -> i32 {
        self.number()
    }
}

mirror_oneof!(
    a2a_v0_3::part::Part,
    proto::PartPart {
        Text = Text,
        File = File,
        Data = Data,
    }
);

mirror_oneof!(
    a2a_v0_3::file_part::File,
    proto::FilePartFile {
        FileWithUri = FileWithUri,
        FileWithBytes = FileWithBytes,
    }
);

mirror! {
    a2a_v0_3::Part, proto::Part { part, metadata }
    a2a_v0_3::FilePart, proto::FilePart { file, mime_type, name }
    a2a_v0_3::DataPart, proto::DataPart { data }
    a2a_v0_3::Message, proto::Message {
        message_id,
        context_id,
        task_id,
        role,
        content,
        metadata,
        extensions,
    }
    a2a_v0_3::Artifact, proto::Artifact {
        artifact_id,
        name,
        description,
        parts,
        metadata,
        extensions,
    }
    a2a_v0_3::TaskArtifactUpdateEvent, proto::TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact,
        append,
        last_chunk,
        metadata,
    }
}

try_mirror! {
    a2a_v0_3::TaskStatus, proto::TaskStatus {
        state,
        update;
        try timestamp: "timestamp"
    }
    a2a_v0_3::Task, proto::Task {
        id,
        context_id,
        artifacts,
        history,
        metadata;
        try status: "status"
    }
    a2a_v0_3::TaskStatusUpdateEvent, proto::TaskStatusUpdateEvent {
        task_id,
        context_id,
        r#final,
        metadata;
        try status: "status"
    }
    a2a_v0_3::SendMessageResponse, proto::SendMessageResponse {
        ;
        try payload: ""
    }
    a2a_v0_3::StreamResponse, proto::StreamResponse {
        ;
        try payload: ""
    }
}

try_mirror_oneof!(
    a2a_v0_3::send_message_response::Payload,
    proto::SendMessageResponsePayload {
        Msg;
        try Task: "task"
    }
);

try_mirror_oneof!(
    a2a_v0_3::stream_response::Payload,
    proto::StreamResponsePayload {
        Msg,
        ArtifactUpdate;
        try Task: "task", StatusUpdate: "statusUpdate"
    }
);
