//! How values lie in the columns of a database, whatever database it is.

use longhaul_lifecycle::{AttemptEnd, AttemptOutcome, WorkerId};
use longhaul_protocol::{JsonObject, Message, TaskState, Timestamp, json, wire};
use serde::{Deserialize, Serialize};

use crate::{StoreError, TurnRequest};

/// The format of stored payloads: the protocol's JSON.
pub const PAYLOAD_FORMAT: i64 = 1;

/// A counter as a signed integer. None of them comes near the end.
#[must_use]
pub fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A counter out of a column.
///
/// # Errors
///
/// [`StoreError::Corrupt`] when it is negative; likewise below, when a column does not hold what was written.
pub fn count(value: i64, what: &'static str) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| StoreError::corrupt(format!("{what} is {value}")))
}

/// A state out of its number.
///
/// # Errors
///
/// As [`count`].
pub fn state(number: i64) -> Result<TaskState, StoreError> {
    let known = i32::try_from(number).ok().and_then(TaskState::from_number);
    known.ok_or_else(|| StoreError::corrupt(format!("task state {number}")))
}

/// The first whole millisecond that is not before `timestamp`.
#[must_use]
pub fn ceil_millis(timestamp: Timestamp) -> i64 {
    let floor = timestamp.unix_millis();
    if Timestamp::from_unix_millis(floor) < timestamp { floor + 1 } else { floor }
}

/// Ordinals, separated by spaces; NULL when there are none.
#[must_use]
pub fn write_waiting(ordinals: &[u64]) -> Option<String> {
    if ordinals.is_empty() {
        return None;
    }
    Some(ordinals.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
}

/// Reads what [`write_waiting`] made.
///
/// # Errors
///
/// As [`count`].
pub fn read_waiting(text: Option<&str>) -> Result<Vec<u64>, StoreError> {
    let ordinals = text.unwrap_or_default().split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>();
    ordinals.map_err(|error| StoreError::corrupt(format!("waiting messages: {error}")))
}

/// An [`AttemptEnd`] as JSON.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredEnd {
    attempt: u32,
    epoch: u64,
    ended_at: i64,
    how: StoredOutcome,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum StoredOutcome {
    LeaseExpired,
    Failed,
    TurnTooLong,
    Inactive,
}

impl From<&AttemptEnd> for StoredEnd {
    fn from(end: &AttemptEnd) -> Self {
        let (how, reason) = match &end.how {
            AttemptOutcome::LeaseExpired => (StoredOutcome::LeaseExpired, ""),
            AttemptOutcome::Failed { reason } => (StoredOutcome::Failed, reason.as_str()),
            AttemptOutcome::TurnTooLong => (StoredOutcome::TurnTooLong, ""),
            AttemptOutcome::Inactive => (StoredOutcome::Inactive, ""),
        };
        let ended_at = end.ended_at.unix_millis();
        Self { attempt: end.attempt, epoch: end.epoch, ended_at, how, reason: reason.to_owned() }
    }
}

impl From<StoredEnd> for AttemptEnd {
    fn from(stored: StoredEnd) -> Self {
        let how = match stored.how {
            StoredOutcome::LeaseExpired => AttemptOutcome::LeaseExpired,
            StoredOutcome::Failed => AttemptOutcome::Failed { reason: stored.reason },
            StoredOutcome::TurnTooLong => AttemptOutcome::TurnTooLong,
            StoredOutcome::Inactive => AttemptOutcome::Inactive,
        };
        let ended_at = Timestamp::from_unix_millis(stored.ended_at);
        Self { attempt: stored.attempt, epoch: stored.epoch, ended_at, how }
    }
}

/// Attempts that came to nothing, as JSON; NULL when there are none.
///
/// # Errors
///
/// As [`write_request`].
pub fn write_failures(failures: &[AttemptEnd]) -> Result<Option<String>, StoreError> {
    if failures.is_empty() {
        return Ok(None);
    }
    let stored: Vec<StoredEnd> = failures.iter().map(StoredEnd::from).collect();
    let text = serde_json::to_string(&stored);
    text.map(Some).map_err(|error| StoreError::unavailable("encode the attempts of a task", error))
}

/// Reads what [`write_failures`] made.
///
/// # Errors
///
/// As [`count`].
pub fn read_failures(text: Option<&str>) -> Result<Vec<AttemptEnd>, StoreError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let stored: Vec<StoredEnd> =
        serde_json::from_str(text).map_err(|error| StoreError::corrupt(format!("attempts of a task: {error}")))?;
    Ok(stored.into_iter().map(AttemptEnd::from).collect())
}

/// Who holds a lease; NULL for nobody.
#[must_use]
pub fn write_worker(worker: &WorkerId) -> Option<&str> {
    (!worker.is_nobody()).then(|| worker.as_str())
}

/// Whether a task waits for a worker, as an index on the line has it.
#[must_use]
pub fn in_line(state: TaskState, leased: bool, due_at: Option<i64>) -> bool {
    !leased && due_at.is_some() && matches!(state, TaskState::Submitted | TaskState::Working)
}

/// Reads a message as the protocol shows it.
///
/// # Errors
///
/// As [`count`].
pub fn read_wire_message(payload: &[u8]) -> Result<wire::Message, StoreError> {
    json::from_json(payload).map_err(|error| StoreError::corrupt(format!("payload of a message: {error}")))
}

/// Reads a message.
///
/// # Errors
///
/// As [`count`].
pub fn read_message(payload: &[u8]) -> Result<Message, StoreError> {
    let message = read_wire_message(payload)?;
    Message::new(message)
        .map_err(|violations| StoreError::corrupt(format!("a message that breaks {} rules", violations.len())))
}

/// What a message came with, as JSON; nothing when that is nothing.
///
/// # Errors
///
/// [`StoreError::Unavailable`] when it can't be written as JSON, likewise below.
pub fn write_request(request: &TurnRequest) -> Result<Option<Vec<u8>>, StoreError> {
    if request.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_vec(request);
    text.map(Some).map_err(|error| StoreError::unavailable("encode what a message came with", error))
}

/// Reads what [`write_request`] made.
///
/// # Errors
///
/// As [`count`].
pub fn read_request(text: Option<&[u8]>) -> Result<TurnRequest, StoreError> {
    let Some(text) = text else { return Ok(TurnRequest::default()) };
    serde_json::from_slice(text).map_err(|error| StoreError::corrupt(format!("what a message came with: {error}")))
}

/// A task's metadata as JSON.
///
/// # Errors
///
/// As [`write_request`].
pub fn write_metadata(metadata: &JsonObject) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(metadata).map_err(|error| StoreError::unavailable("encode a task's metadata", error))
}

/// Reads what [`write_metadata`] made.
///
/// # Errors
///
/// As [`count`].
pub fn read_metadata(text: &[u8]) -> Result<JsonObject, StoreError> {
    serde_json::from_slice(text).map_err(|error| StoreError::corrupt(format!("metadata of a task: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_a_millisecond_counts_up() {
        let whole = Timestamp::from_unix_millis(1_700_000_000_001);
        assert_eq!(ceil_millis(whole), 1_700_000_000_001);
        let later: Timestamp = "2023-11-14T22:13:20.001000001Z".parse().unwrap();
        assert_eq!(ceil_millis(later), 1_700_000_000_002);
    }

    #[test]
    fn waiting_messages_read_back() {
        assert_eq!(write_waiting(&[]), None);
        let text = write_waiting(&[3, 4, 50]);
        assert_eq!(read_waiting(text.as_deref()).unwrap(), [3, 4, 50]);
        assert!(read_waiting(Some("3 x")).is_err());
    }
}
