//! Messages, parts, artifacts and tasks.

use longhaul_protocol::wire;

use crate::a2a;
use crate::convert::{mirror, mirror_oneof, try_mirror};

mirror_oneof!(
    a2a::part::Content,
    wire::PartContent {
        Text = Text,
        Raw = Raw,
        Url = Url,
        Data = Data
    }
);

mirror! {
    a2a::Part, wire::Part { content, metadata, filename, media_type }
    a2a::Message, wire::Message {
        message_id,
        context_id,
        task_id,
        role,
        parts,
        metadata,
        extensions,
        reference_task_ids,
    }
    a2a::Artifact, wire::Artifact {
        artifact_id,
        name,
        description,
        parts,
        metadata,
        extensions,
    }
}

try_mirror! {
    a2a::TaskStatus, wire::TaskStatus {
        state,
        message;
        try timestamp: "timestamp"
    }
    a2a::Task, wire::Task {
        id,
        context_id,
        artifacts,
        history,
        metadata;
        try status: "status"
    }
}
