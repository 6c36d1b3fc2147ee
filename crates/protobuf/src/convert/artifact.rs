//! Artifact versions, Longhaul's own extension.

use longhaul_protocol::wire;

use crate::artifact;
use crate::convert::{mirror, try_mirror};

mirror! {
    artifact::ListArtifactVersionsRequest, wire::ListArtifactVersionsRequest {
        tenant,
        task_id,
        artifact_id,
        page_size,
        page_token,
    }
    artifact::GetArtifactRequest, wire::GetArtifactRequest {
        tenant,
        task_id,
        artifact_id,
        version,
    }
    artifact::GetArtifactResponse, wire::GetArtifactResponse { version, artifact }
}

try_mirror! {
    artifact::ArtifactVersion, wire::ArtifactVersion {
        version,
        sequence,
        last_chunk;
        try timestamp: "timestamp"
    }
    artifact::ListArtifactVersionsResponse, wire::ListArtifactVersionsResponse {
        next_page_token;
        try versions: "versions"
    }
}
