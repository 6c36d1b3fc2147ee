//! Our own messages: artifact versions, extension `urn:longhaul:ext:artifact-versions:v1`.

use crate::json::wire_message;
use crate::timestamp::Timestamp;

use super::Artifact;

wire_message! {
    /// The request of `ListArtifactVersions`.
    ListArtifactVersionsRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The task.
        task_id "taskId": String [required],
        /// The artifact.
        artifact_id "artifactId": String [required],
        /// The most versions of a page, 1 to 100; 50 when absent.
        page_size "pageSize": Option<i32>,
        /// Where the page starts; empty for the first.
        page_token "pageToken": String,
    }
}

wire_message! {
    /// One page of the versions of an artifact, newest first.
    ListArtifactVersionsResponse {
        /// The versions.
        versions "versions": Vec<ArtifactVersion> [required],
        /// Where the next page starts; empty when there is none.
        next_page_token "nextPageToken": String [required],
    }
}

wire_message! {
    /// One version of an artifact.
    ArtifactVersion {
        /// The number of the version, from 1.
        version "version": i64 [required],
        /// The sequence of the newest event of the version.
        sequence "sequence": i64 [required],
        /// When that event was stored.
        timestamp "timestamp": Option<Timestamp>,
        /// Whether the version is complete.
        last_chunk "lastChunk": bool,
    }
}

wire_message! {
    /// The request of `GetArtifact`.
    GetArtifactRequest {
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The task.
        task_id "taskId": String [required],
        /// The artifact.
        artifact_id "artifactId": String [required],
        /// The number of the version, from 1; the newest when absent.
        version "version": Option<i64>,
    }
}

wire_message! {
    /// One version of an artifact, whole.
    GetArtifactResponse {
        /// The number of the version.
        version "version": i64 [required],
        /// The artifact as it is in this version.
        artifact "artifact": Option<Artifact> [required],
    }
}
