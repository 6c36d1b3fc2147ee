use bytes::Bytes;
use longhaul_protocol::json;

use crate::{Commit, Expect, NewMessage, StoreError, columns};

/// A commit with everything written out, so that whoever writes it need not.
#[derive(Debug)]
pub struct EncodedCommit {
    /// The commit.
    pub commit: Commit,
    /// Its messages, in their order.
    pub messages: Vec<EncodedMessage>,
    /// The message of the head's status.
    pub status: Option<Bytes>,
    /// The metadata of a new task.
    pub metadata: Option<Vec<u8>>,
    /// The head's attempts that came to nothing.
    pub failures: Option<String>,
    /// About how much is to be written.
    pub bytes: usize,
}

/// A message that joins a history, written out.
#[derive(Debug)]
pub struct EncodedMessage {
    /// The message as JSON.
    pub payload: Bytes,
    /// What it came with, as JSON; nothing when that is nothing.
    pub request: Option<Vec<u8>>,
}

impl EncodedCommit {
    /// Writes a commit out.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] when something can't be written as JSON.
    pub fn new(commit: Commit) -> Result<Self, StoreError> {
        let encode = |new: &NewMessage| {
            let payload = json::to_json(new.message.as_wire());
            columns::write_request(&new.request).map(|request| EncodedMessage { payload, request })
        };
        let messages = commit.messages.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
        let status = commit
            .head
            .as_ref()
            .and_then(|head| head.status_message.as_ref())
            .map(|message| json::to_json(message.as_wire()));
        let metadata = match &commit.expect {
            Expect::New(new) => new.metadata.as_ref().map(columns::write_metadata).transpose()?,
            Expect::Version(_) | Expect::Unheld(_) | Expect::LeaseAndVersion { .. } | Expect::Lease { .. } => None,
        };
        let failures = commit.head.as_ref().map(|head| columns::write_failures(&head.failures)).transpose()?.flatten();
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
