//! What `SendMessage` and the streams answer.

use longhaul_protocol::wire;

use crate::a2a;
use crate::convert::{mirror, try_mirror, try_mirror_oneof};

mirror! {
    a2a::TaskArtifactUpdateEvent, wire::TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact,
        append,
        last_chunk,
        metadata,
    }
}

try_mirror! {
    a2a::TaskStatusUpdateEvent, wire::TaskStatusUpdateEvent {
        task_id,
        context_id,
        metadata;
        try status: "status"
    }
    a2a::SendMessageResponse, wire::SendMessageResponse {
        ;
        try payload: ""
    }
    a2a::StreamResponse, wire::StreamResponse {
        ;
        try payload: ""
    }
}

try_mirror_oneof!(
    a2a::send_message_response::Payload,
    wire::SendMessageResponsePayload {
        Message;
        try Task: "task"
    }
);

try_mirror_oneof!(
    a2a::stream_response::Payload,
    wire::StreamResponsePayload {
        Message,
        ArtifactUpdate;
        try Task: "task", StatusUpdate: "statusUpdate"
    }
);
