//! How values lie in columns.

use longhaul_lifecycle::{AttemptEnd, AttemptOutcome};
use longhaul_protocol::{JsonObject, Message, TaskState, Timestamp, json, wire};
use longhaul_store::{StoreError, TurnRequest};
use serde::{Deserialize, Serialize};

/// The format of stored payloads: the protocol's JSON.
pub(crate) const PAYLOAD_FORMAT: i64 = 1;

const PLACE_BITS: u32 = 26;
/// The last place in a task's log or history: 67,108,863.
pub(crate) const PLACE_MAX: u64 = (1 << PLACE_BITS) - 1;
/// The greatest number of a task, so that every key fits.
pub(crate) const TASK_NUMBER_MAX: i64 = (1 << (63 - PLACE_BITS)) - 1;

/// The key of a task's event or message at a place; of its last possible one when the place is beyond.
pub(crate) fn key(task_number: i64, place: u64) -> i64 {
    (task_number << PLACE_BITS) | int(place.min(PLACE_MAX))
}

/// The place within the task: a sequence, or an ordinal.
pub(crate) fn place(key: i64) -> u64 {
    key.unsigned_abs() & PLACE_MAX
}

/// Counters as SQLite's integers. None of them comes near the end.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn count(value: i64, what: &'static str) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| StoreError::corrupt(format!("{what} is {value}")))
}

pub(crate) fn state(number: i64) -> Result<TaskState, StoreError> {
    let known = i32::try_from(number).ok().and_then(TaskState::from_number);
    known.ok_or_else(|| StoreError::corrupt(format!("task state {number}")))
}

/// The first whole millisecond that is not before `timestamp`.
pub(crate) fn ceil_millis(timestamp: Timestamp) -> i64 {
    let floor = timestamp.unix_millis();
    if Timestamp::from_unix_millis(floor) < timestamp { floor + 1 } else { floor }
}

/// Ordinals, separated by spaces; NULL when there are none.
pub(crate) fn write_waiting(ordinals: &[u64]) -> Option<String> {
    if ordinals.is_empty() {
        return None;
    }
    Some(ordinals.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
}

pub(crate) fn read_waiting(text: Option<&str>) -> Result<Vec<u64>, StoreError> {
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
pub(crate) fn write_failures(failures: &[AttemptEnd]) -> Result<Option<String>, StoreError> {
    if failures.is_empty() {
        return Ok(None);
    }
    let stored: Vec<StoredEnd> = failures.iter().map(StoredEnd::from).collect();
    let text = serde_json::to_string(&stored);
    text.map(Some).map_err(|error| StoreError::unavailable("encode the attempts of a task", error))
}

pub(crate) fn read_failures(text: Option<&str>) -> Result<Vec<AttemptEnd>, StoreError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let stored: Vec<StoredEnd> =
        serde_json::from_str(text).map_err(|error| StoreError::corrupt(format!("attempts of a task: {error}")))?;
    Ok(stored.into_iter().map(AttemptEnd::from).collect())
}

/// Whether a task waits for a worker, as the indexes `task_line` and `task_wait` have it.
pub(crate) fn in_line(state: TaskState, leased: bool, due_at: Option<i64>) -> bool {
    !leased && due_at.is_some() && matches!(state, TaskState::Submitted | TaskState::Working)
}

pub(crate) fn read_wire_message(payload: &[u8]) -> Result<wire::Message, StoreError> {
    json::from_json(payload).map_err(|error| StoreError::corrupt(format!("payload of a message: {error}")))
}

pub(crate) fn read_message(payload: &[u8]) -> Result<Message, StoreError> {
    let message = read_wire_message(payload)?;
    Message::new(message)
        .map_err(|violations| StoreError::corrupt(format!("a message that breaks {} rules", violations.len())))
}

pub(crate) fn write_request(request: &TurnRequest) -> Result<Option<Vec<u8>>, StoreError> {
    if request.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_vec(request);
    text.map(Some).map_err(|error| StoreError::unavailable("encode what a message came with", error))
}

pub(crate) fn read_request(text: Option<&[u8]>) -> Result<TurnRequest, StoreError> {
    let Some(text) = text else { return Ok(TurnRequest::default()) };
    serde_json::from_slice(text).map_err(|error| StoreError::corrupt(format!("what a message came with: {error}")))
}

pub(crate) fn write_metadata(metadata: &JsonObject) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(metadata).map_err(|error| StoreError::unavailable("encode a task's metadata", error))
}

pub(crate) fn read_metadata(text: &[u8]) -> Result<JsonObject, StoreError> {
    serde_json::from_slice(text).map_err(|error| StoreError::corrupt(format!("metadata of a task: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_number_and_place() {
        assert_eq!(place(key(7, 12)), 12);
        assert_eq!(key(7, PLACE_MAX) + 1, key(8, 0));
        assert!(key(TASK_NUMBER_MAX, PLACE_MAX) == i64::MAX);
    }

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
