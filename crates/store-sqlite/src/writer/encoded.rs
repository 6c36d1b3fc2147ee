use bytes::Bytes;
use longhaul_protocol::json;
use longhaul_store::{Commit, Expect, StoreError};

use crate::layout;

/// A commit with everything written out, so that the writer's thread need not.
#[derive(Debug)]
pub(crate) struct EncodedCommit {
    pub(crate) commit: Commit,
    pub(crate) messages: Vec<EncodedMessage>,
    /// The message of the head's status.
    pub(crate) status: Option<Bytes>,
    /// The metadata of a new task.
    pub(crate) metadata: Option<Vec<u8>>,
    /// The head's attempts that came to nothing.
    pub(crate) failures: Option<String>,
    /// About how much is to be written.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
pub(crate) struct EncodedMessage {
    pub(crate) payload: Bytes,
    pub(crate) request: Option<Vec<u8>>,
}

impl EncodedCommit {
    pub(crate) fn new(commit: Commit) -> Result<Self, StoreError> {
        let encode = |new: &longhaul_store::NewMessage| {
            let payload = json::to_json(new.message.as_wire());
            layout::write_request(&new.request).map(|request| EncodedMessage { payload, request })
        };
        let messages = commit.messages.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
        let status = commit
            .head
            .as_ref()
            .and_then(|head| head.status_message.as_ref())
            .map(|message| json::to_json(message.as_wire()));
        let metadata = match &commit.expect {
            Expect::New(new) => new.metadata.as_ref().map(layout::write_metadata).transpose()?,
            Expect::Version(_) | Expect::Unheld(_) | Expect::LeaseAndVersion { .. } | Expect::Lease { .. } => None,
        };
        let failures = commit.head.as_ref().map(|head| layout::write_failures(&head.failures)).transpose()?.flatten();
        let bytes = commit.events.iter().map(|event| event.payload.len()).sum::<usize>()
            + messages
                .iter()
                .map(|message| message.payload.len() + message.request.as_ref().map_or(0, Vec::len))
                .sum::<usize>()
            + status.as_ref().map_or(0, Bytes::len)
            + commit.checkpoint.as_ref().map_or(0, Bytes::len)
            + metadata.as_ref().map_or(0, Vec::len);
        Ok(Self { commit, messages, status, metadata, failures, bytes })
    }
}
