//! What is written down of one delegation.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::{Timestamp, wire};
use rand::RngExt as _;
use thiserror::Error;
use uuid::Uuid;

use super::{LedgerError, State, StateKind};
use crate::clock::later;

/// Identifies an entry: a UUID of version 7, so that entries sort by the millisecond in which they were made.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct EntryId(Uuid);

/// Says that a text is no entry's id.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("must be a UUID, such as 0190b2a4-7c1e-7d3a-9f00-3b1c5a2e8d47")]
pub struct InvalidEntryId;

impl EntryId {
    /// A new id, for an entry that is made now.
    pub(super) fn new(now: Timestamp) -> Self {
        Self(uuid_v7(now))
    }

    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    pub(super) fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

fn uuid_v7(now: Timestamp) -> Uuid {
    let millis = u64::try_from(now.unix_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &rand::rng().random()).into_uuid()
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryId({self})")
    }
}

impl FromStr for EntryId {
    type Err = InvalidEntryId;

    fn from_str(text: &str) -> Result<Self, InvalidEntryId> {
        Uuid::try_parse(text).map(Self).map_err(|_| InvalidEntryId)
    }
}

/// A text that is kept to be shown: at most [`Note::BYTES_MAX`] bytes, what is longer is cut.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Note(String);

impl Note {
    /// The most bytes that are kept.
    pub const BYTES_MAX: usize = 2048;

    /// Keeps as much of the text as has room. Where it is cut, an ellipsis stands.
    #[must_use]
    pub fn new(text: &str) -> Self {
        const CUT: char = '…';
        if text.len() <= Self::BYTES_MAX {
            return Self(text.to_owned());
        }
        let end = text.floor_char_boundary(Self::BYTES_MAX - CUT.len_utf8());
        let (kept, _) = text.split_at(end);
        Self(format!("{kept}{CUT}"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// By which way an agent is reached: all that is needed to reach it again. Credentials are not a part of it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Route {
    /// The reference or URL of the agent's card, as the caller gave it. 1 to 4,096 bytes.
    pub card: String,
    /// The URL of the interface (§8.3.2). 1 to 4,096 bytes.
    pub interface_url: String,
    /// The interface's binding, such as `JSONRPC`. 1 to 64 bytes.
    pub binding: String,
    /// The interface's version of the protocol, such as `1.0`. 1 to 64 bytes.
    pub protocol_version: String,
    /// The interface's tenant; empty when there is none. At most 1,024 bytes.
    pub tenant: String,
}

/// When silence raises an alarm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deadline {
    /// At this moment, unless the delegation is settled by then.
    At(Timestamp),
    /// When the agent was not heard for so long, in whole milliseconds. Not while a person is waited for.
    Quiet(Duration),
}

/// A delegation that is to be written down.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// To whom.
    pub route: Route,
    /// Why, for the person who finds it later. At most [`NewEntry::PURPOSE_BYTES_MAX`] bytes.
    pub purpose: String,
    /// The request, with its message and that message's id; as ProtoJSON at most [`NewEntry::REQUEST_BYTES_MAX`] bytes.
    pub request: wire::SendMessageRequest,
    /// When silence raises an alarm; never when there is none.
    pub deadline: Option<Deadline>,
}

impl NewEntry {
    /// The most bytes of [`purpose`](Self::purpose): 4 KiB.
    pub const PURPOSE_BYTES_MAX: usize = 4096;
    /// The most bytes of a request as ProtoJSON: 16 MiB.
    pub const REQUEST_BYTES_MAX: usize = 16 << 20;
}

/// One delegation, as the ledger has it. The request and the result, which may be large, are read apart:
/// [`Ledger::request`](super::Ledger::request), [`Ledger::outcome`](super::Ledger::outcome).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The id.
    pub id: EntryId,
    /// To whom it was delegated.
    pub route: Route,
    /// Why.
    pub purpose: String,
    /// The id of the message that was sent last, or is to be.
    pub message_id: String,
    /// The context: the caller's or, if it gave none, the agent's.
    pub context_id: Option<String>,
    /// When it was written down.
    pub created_at: Timestamp,
    /// When silence raises an alarm.
    pub deadline: Option<Deadline>,
    /// How it stands.
    pub state: State,
    /// Since when it stands so.
    pub since: Timestamp,
    /// The id of the last event of a stream that was handled, to go on from.
    pub last_event_id: Option<String>,
    /// When the agent was last heard.
    pub last_heard_at: Option<Timestamp>,
    /// How often the message may have been sent. While it is 0 it can be sent without a question: it certainly was not, or a
    /// person wants it sent again.
    pub attempts: u32,
    /// When the next alarm is due.
    pub alarm_at: Option<Timestamp>,
    /// When the alarm was raised.
    pub alarmed_at: Option<Timestamp>,
    /// When a person said that it saw how the entry stands, or its alarm; forgotten when either changes.
    pub acknowledged_at: Option<Timestamp>,
    /// Who follows it, or did until it died.
    pub claimed: Option<Claimant>,
    /// Whether [`Ledger::outcome`](super::Ledger::outcome) has something.
    pub kept: Kept,
    /// Counts the changes, apart from claims and what is heard without changing anything.
    pub version: u64,
}

impl Entry {
    /// Whether it is of those that a person has to look at: it waits for one, or its alarm was raised and not acknowledged.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        let is_alarmed = self.alarmed_at.is_some() && self.acknowledged_at.is_none();
        self.state.waits_for_person() || (is_alarmed && !self.state.is_settled())
    }

    /// Whether someone follows it at this moment.
    #[must_use]
    pub fn is_claimed(&self, now: Timestamp) -> bool {
        self.claimed.as_ref().is_some_and(|claimed| claimed.until > now)
    }

    /// Sets when the next alarm is due, after something else has changed.
    pub(super) fn arm(&mut self) {
        let is_raised = self.alarmed_at.is_some();
        self.alarm_at = match self.deadline {
            _ if self.state.is_settled() || is_raised => None,
            None => None,
            Some(Deadline::At(moment)) => Some(moment),
            Some(Deadline::Quiet(_)) if self.state.waits_for_person() => None,
            Some(Deadline::Quiet(longest)) => {
                let heard = self.last_heard_at.unwrap_or(self.created_at).max(self.since);
                Some(later(heard, longest))
            }
        };
    }

    /// Takes note that the agent was heard.
    pub(super) fn heard(&mut self, now: Timestamp) {
        self.last_heard_at = Some(now);
        if let Some(Deadline::Quiet(_)) = self.deadline {
            self.alarmed_at = None;
        }
    }
}

/// Who follows an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claimant {
    /// Who.
    pub by: Follower,
    /// Until when, unless that is renewed.
    pub until: Timestamp,
}

/// How much of what the agent told is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kept {
    /// Nothing: it has not told, or the task runs.
    Nothing,
    /// All.
    Whole,
    /// What was left after history, artifacts and more were taken out, because it was larger than
    /// [`OUTCOME_BYTES_MAX`](super::OUTCOME_BYTES_MAX). The agent may still have it.
    Trimmed,
}

/// Names one process, or one part of it, that follows entries.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Follower(Arc<str>);

impl Follower {
    /// The most bytes of the name.
    pub const BYTES_MAX: usize = 128;

    /// A name that no other has: the process's id, for people, and a random part.
    #[must_use]
    pub fn of_this_process(now: Timestamp) -> Self {
        Self(format!("process {} ({})", std::process::id(), uuid_v7(now)).into())
    }

    /// A name that the caller keeps unique.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Invalid`] when it is empty or longer than [`Self::BYTES_MAX`].
    pub fn new(name: &str) -> Result<Self, LedgerError> {
        super::check::length("the follower's name", name, 1, Self::BYTES_MAX)?;
        Ok(Self(name.into()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The right to send and to follow one entry. It runs out after [`CLAIM_DURATION`](super::CLAIM_DURATION) unless it is renewed;
/// it still holds then, until another takes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    pub(super) entry: EntryId,
    /// Grows with each claim of the entry: the fencing token.
    pub(super) epoch: i64,
}

impl Claim {
    /// Of which entry.
    #[must_use]
    pub fn entry_id(&self) -> EntryId {
        self.entry
    }
}

/// An entry and the right to follow it.
#[derive(Clone, Debug)]
#[must_use = "until it runs out or is released, nobody else follows the entry"]
pub struct Held {
    /// The entry.
    pub entry: Entry,
    /// The right.
    pub claim: Claim,
}

/// One line of what happened to an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Happening {
    /// From 1, without gaps but for what was dropped.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
    /// What, in a word or two for people.
    pub what: String,
    /// How the entry stood afterwards.
    pub state: StateKind,
    /// More, such as the question or the error; may be empty.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_their_millisecond_and_are_read_as_they_are_printed() {
        let [first, second] = [1_800_000_000_000, 1_800_000_000_001].map(Timestamp::from_unix_millis).map(EntryId::new);
        assert!(first < second);
        assert_eq!(first.to_string().parse(), Ok(first));
        assert_eq!(first.0.get_version_num(), 7);
        assert_eq!("entry 7".parse::<EntryId>(), Err(InvalidEntryId));
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        assert_eq!(Note::new("short").as_str(), "short");
        let whole = "x".repeat(Note::BYTES_MAX);
        assert_eq!(Note::new(&whole).as_str(), whole);
        let long = Note::new(&"ü".repeat(Note::BYTES_MAX));
        assert!(long.as_str().len() <= Note::BYTES_MAX && long.as_str().ends_with("ü…"), "{long}");
    }
}
