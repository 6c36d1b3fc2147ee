use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{JsonObject, Message, MessageId, Owner, TaskId, Tenant, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{NewEvent, PushConfig, StoreError};

/// Whose tasks are meant: nobody sees a task of another scope, or learns that it exists (A2A §13.1).
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Scope {
    /// The tenant that the request was made for; empty when there is none.
    pub tenant: Tenant,
    /// The principal that the request was made by; empty when nobody has to prove who they are.
    pub owner: Owner,
}

/// What the store knows of a new task besides its head.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewTask {
    /// Whose task it is.
    pub scope: Scope,
    /// The task's metadata.
    pub metadata: Option<JsonObject>,
}

/// What a caller's message came with and the agent's turn needs, stored beside the message.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnRequest {
    /// The media types that the caller can take, in its order (A2A §3.2.2).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// The metadata of the request, not of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// The extensions that the caller activated by `A2A-Extensions`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

impl TurnRequest {
    /// Whether nothing was asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accepted_output_modes.is_empty() && self.metadata.is_none() && self.extensions.is_empty()
    }
}

/// One message that joins a task's history.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// The message.
    pub message: Message,
    /// What it came with; empty for a message of the agent.
    pub request: TurnRequest,
    /// How many of the commit's events are in the log when it joins: the last of these is the event that it joins with.
    /// 0 when it joins without an event.
    pub events: usize,
}

impl NewMessage {
    /// A message without a request, that joins with the last of so many of the commit's events.
    #[must_use]
    pub fn new(message: Message, events: usize) -> Self {
        Self { message, request: TurnRequest::default(), events }
    }

    /// The sequence that the message is stored at, in a log that ended at `last_sequence` before the commit.
    #[must_use]
    pub fn sequence(&self, last_sequence: u64) -> u64 {
        last_sequence + self.events as u64
    }
}

/// What must hold for a commit to be made. Compared in the write itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The task does not exist yet.
    New(NewTask),
    /// Nobody changed what decides since the head with this version was loaded. A head of a newer epoch takes the lease: it is
    /// refused as a conflict while the lease before is alive at the time of the commit, for it may have been renewed since.
    Version(u64),
    /// As `Version`, and no lease is alive at the time of the commit. For whoever acts because nobody works on the task: a
    /// renewal changes no version, so the lease may have been renewed since it was read.
    Unheld(u64),
    /// As `Version`, and the writer's lease is alive: it is of this epoch and has not run out at the time of the commit.
    LeaseAndVersion {
        /// The fencing token of the writer.
        epoch: u64,
        /// The version on which it decided.
        version: u64,
    },
    /// The writer's lease is alive, and the log ends where the writer saw it end: the same commit again, after an answer that
    /// was lost, doubles nothing. Only for commits that append artifact updates, which decide nothing.
    Lease {
        /// The fencing token of the writer.
        epoch: u64,
        /// The sequence of the newest event that the writer knows.
        last_sequence: u64,
    },
}

/// Makes a repeated send of one message the same task (design: a retried send).
#[derive(Clone, Debug, PartialEq)]
pub struct Dedup {
    /// Whose message it is.
    pub scope: Scope,
    /// The id that the caller gave the message.
    pub message_id: MessageId,
    /// SHA-256 of the content, so that other content under the same id is seen.
    pub digest: [u8; 32],
    /// Until when the message is remembered.
    pub expires_at: Timestamp,
}

/// One atomic change of one task: everything in it is written, or nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The task.
    pub task_id: TaskId,
    /// What must hold.
    pub expect: Expect,
    /// The head as it will be; `None` leaves all but `last_sequence` as it is (with [`Expect::Lease`]).
    /// `last_sequence` in it is ignored: the store counts. Where it keeps a lease, the lease ends at the later of `due_at` and
    /// what is stored: a renewal changes no version, so that the head may not know of it.
    pub head: Option<TaskHead>,
    /// The events to append to the log, in order.
    pub events: Vec<NewEvent>,
    /// The messages to append to the history, in order.
    pub messages: Vec<NewMessage>,
    /// What the agent wants to have in its next attempt or turn; `None` leaves what is there.
    pub checkpoint: Option<Bytes>,
    /// The key under which a repetition of the caller's message is recognized, if it asked for that.
    pub dedup: Option<Dedup>,
    /// Push configs to add, which are given this commit's events first. One of a known id replaces that one, as
    /// [`crate::PushStore::put_push_config`] does. How many a task may have is not asked here.
    pub pushes: Vec<PushConfig>,
    /// The time of the commit, by the store's clock.
    pub now: Timestamp,
}

/// What a store knows of a task when a commit comes to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// Its version.
    pub version: u64,
    /// The epoch of its newest lease.
    pub epoch: u64,
    /// Whether that lease is alive at the time of the commit.
    pub lease_lives: bool,
    /// The sequence of its newest event.
    pub last_sequence: u64,
}

impl Commit {
    /// Whether a task stands as the commit expects: the one rule of every store, to be asked in the step that writes.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`] for a writer whose lease is over, [`StoreError::Conflict`] when another writer was first.
    pub fn check(&self, standing: Standing) -> Result<(), StoreError> {
        let (epoch, version) = match self.expect {
            Expect::New(_) => return Ok(()),
            Expect::Version(version) | Expect::Unheld(version) => (None, Some(version)),
            Expect::LeaseAndVersion { epoch, version } => (Some(epoch), Some(version)),
            Expect::Lease { epoch, .. } => (Some(epoch), None),
        };
        // A worker that slept past its lease must not write, however recently it looked.
        if let Some(epoch) = epoch
            && !(epoch == standing.epoch && standing.lease_lives)
        {
            return Err(StoreError::LeaseLost { task: self.task_id.clone(), epoch });
        }
        // Likewise who takes over a lease that ran out, or acts because it did: it may have been renewed since.
        let takes_lease = self.head.as_ref().is_some_and(|head| head.leased && head.epoch != standing.epoch);
        let must_be_free = takes_lease || matches!(self.expect, Expect::Unheld(_));
        let is_held = must_be_free && standing.lease_lives;
        let has_grown =
            matches!(self.expect, Expect::Lease { last_sequence, .. } if last_sequence != standing.last_sequence);
        if is_held || has_grown || version.is_some_and(|version| version != standing.version) {
            return Err(StoreError::Conflict { task: self.task_id.clone() });
        }
        Ok(())
    }
}

/// What a commit made of the counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Committed {
    /// The task's version after the commit.
    pub version: u64,
    /// The sequence of the newest event: the commit's own events are the last ones up to it.
    pub last_sequence: u64,
    /// Whether the task has push configs, which are due now if there are events.
    pub has_pushes: bool,
}
