use bytes::Bytes;
use longhaul_protocol::{TaskState, Timestamp};

use crate::StoreError;

/// What an event is, so that a reader need not look into its payload.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EventKind {
    /// The task as it was created: always the first event.
    Created,
    /// A status update.
    Status {
        /// The state that it tells.
        state: TaskState,
        /// Whether the task rests in that state when the commit is through.
        rests: bool,
    },
    /// An artifact update.
    Artifact,
}

impl EventKind {
    const CREATED: i64 = 0;
    const ARTIFACT: i64 = 1;
    const STATUS: i64 = 16;
    const RESTS: i64 = 128;

    /// The kind as one small number, for a column.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Created => Self::CREATED,
            Self::Artifact => Self::ARTIFACT,
            Self::Status { state, rests } => {
                Self::STATUS + i64::from(state.number()) + if rests { Self::RESTS } else { 0 }
            }
        }
    }

    /// Reads what [`EventKind::code`] made.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] for any other number.
    pub fn from_code(code: i64) -> Result<Self, StoreError> {
        match code {
            Self::CREATED => Ok(Self::Created),
            Self::ARTIFACT => Ok(Self::Artifact),
            _ => {
                let rests = code & Self::RESTS != 0;
                i32::try_from((code & !Self::RESTS) - Self::STATUS)
                    .ok()
                    .and_then(TaskState::from_number)
                    .map(|state| Self::Status { state, rests })
                    .ok_or_else(|| StoreError::corrupt(format!("event kind {code}")))
            }
        }
    }

    /// Whether the event brings the task to a terminal state.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Status { state, .. } if state.is_terminal())
    }
}

/// One event on its way into a log. Its sequence is given by the commit.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// What the event is.
    pub kind: EventKind,
    /// The `StreamResponse` as JSON: the very bytes that streams send.
    pub payload: Bytes,
}

/// One event of a task's log.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// Its number in the log, counted from 1 without gaps.
    pub sequence: u64,
    /// What the event is.
    pub kind: EventKind,
    /// When it was committed, by the store's clock.
    pub timestamp: Timestamp,
    /// The `StreamResponse` as JSON: the very bytes that streams send.
    pub payload: Bytes,
}
