//! What is found out about delegations.

use std::sync::Arc;

use super::{Entry, Route, State};
use crate::ClientError;

/// What a follower or a recovery has to say about an entry. All of it is written down already.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "some findings wait for a person, who has to be told"]
pub enum Finding {
    /// It is over: [`Ledger::outcome`](super::Ledger::outcome) has the result.
    Settled(Entry),
    /// The agent, or this client, refused the request just now. If no task was meant, the entry is settled by it.
    Refused {
        /// The entry.
        entry: Entry,
        /// Why.
        error: Arc<ClientError>,
    },
    /// The agent asks something: [`Ledger::answer`](super::Ledger::answer).
    Question(Entry),
    /// The agent needs an authorization (§7.6).
    Authorization(Entry),
    /// The answer was lost, and what became of the message can't be found out: a person decides.
    Uncertain(Entry),
    /// The agent no longer knows the task: a person decides.
    Lost(Entry),
    /// The task runs. A recovery goes on following it, unless it was told to leave it.
    Running(Entry),
    /// The agent was silent beyond the deadline, or something else asks for a person's eye. The entry stays as it is.
    Alarm(Entry),
    /// Calls to an agent fail, all or some. They are tried again: this is said when it begins, and not for each.
    Trouble {
        /// Which agent.
        route: Arc<Route>,
        /// What is wrong.
        error: Arc<ClientError>,
    },
    /// How it stands could not be found out within the patience. It stays open, to be tried by the next recovery.
    Unreachable {
        /// The entry.
        entry: Entry,
        /// What was wrong at last.
        error: Arc<ClientError>,
    },
    /// Another follows it, and writes down what becomes of it.
    Elsewhere(Entry),
}

impl Finding {
    /// How the entry stands.
    pub(super) fn of(entry: Entry) -> Self {
        match &entry.state {
            State::Settled { .. } => Self::Settled(entry),
            State::Question { .. } => Self::Question(entry),
            State::Authorization { .. } => Self::Authorization(entry),
            State::Uncertain { .. } => Self::Uncertain(entry),
            State::Lost { .. } => Self::Lost(entry),
            State::Prepared { .. } | State::Accepted { .. } | State::Unknown { .. } => Self::Running(entry),
        }
    }

    /// What an entry that is not followed from here any more has become.
    pub(super) fn gone(entry: Entry) -> Self {
        if entry.state.is_settled() { Self::Settled(entry) } else { Self::Elsewhere(entry) }
    }

    /// The entry; none where it is about an agent.
    #[must_use]
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Settled(entry)
            | Self::Question(entry)
            | Self::Authorization(entry)
            | Self::Uncertain(entry)
            | Self::Lost(entry)
            | Self::Running(entry)
            | Self::Alarm(entry)
            | Self::Elsewhere(entry)
            | Self::Refused { entry, .. }
            | Self::Unreachable { entry, .. } => Some(entry),
            Self::Trouble { .. } => None,
        }
    }
}
