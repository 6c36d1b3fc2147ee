use std::fmt;
use std::time::Duration;

use longhaul_protocol::Timestamp;

use crate::TaskHead;

/// How one attempt of a turn came to nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttemptEnd {
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The epoch of its lease.
    pub epoch: u64,
    /// When its end was written.
    pub ended_at: Timestamp,
    /// What happened.
    pub how: AttemptOutcome,
}

/// What an attempt came to that did not end its turn.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AttemptOutcome {
    /// Its worker was not heard of in time: killed, cut off, or paused for too long.
    LeaseExpired,
    /// The agent failed, in a way that is worth another attempt.
    Failed {
        /// What the agent lets callers know of it; may be empty.
        reason: String,
    },
    /// It ran for longer than a turn may.
    TurnTooLong,
    /// It wrote nothing for longer than it may.
    Inactive,
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaseExpired => f.write_str("its worker was not heard of in time"),
            Self::Failed { reason } if reason.is_empty() => f.write_str("the agent failed"),
            Self::Failed { reason } => write!(f, "the agent failed: {reason}"),
            Self::TurnTooLong => f.write_str("it ran for longer than a turn may"),
            Self::Inactive => f.write_str("it wrote nothing for longer than it may"),
        }
    }
}

/// How often a turn is tried, and how soon again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How many attempts a turn has in all; at least 1.
    pub attempts_max: u32,
    /// How long to wait before the third attempt. The second comes at once.
    pub backoff_min: Duration,
    /// How long to wait at the most; each wait is twice the one before, until this.
    pub backoff_max: Duration,
}

/// What becomes of a turn of which an attempt came to nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// It is tried again at this time.
    Retry {
        /// When.
        at: Timestamp,
    },
    /// All its attempts are used up.
    GiveUp,
}

impl RetryPolicy {
    /// Decides what becomes of a turn after the attempt that `head` is at. `jitter` is a random number from 0 to 1, so that
    /// tasks which failed together do not come back together: it takes away up to half of the wait.
    #[must_use]
    pub fn next(&self, head: &TaskHead, jitter: f64, now: Timestamp) -> Next {
        if head.attempt >= self.attempts_max {
            return Next::GiveUp;
        }
        let Some(doublings) = head.attempt.checked_sub(2) else { return Next::Retry { at: now } };
        let wait = self.backoff_min.saturating_mul(1 << doublings.min(30)).min(self.backoff_max);
        let most = wait.as_secs_f64() * 1000.0;
        // The cast saturates, and makes 0 of what is no number: no setting and no jitter panics here.
        let millis = (most * (1.0 - jitter.clamp(0.0, 1.0) / 2.0)) as i64;
        Next::Retry { at: Timestamp::from_unix_millis(now.unix_millis().saturating_add(millis)) }
    }
}

/// Tells a person what became of each attempt of a turn that is given up.
#[must_use]
pub fn describe_attempts(failures: &[AttemptEnd]) -> String {
    let each = failures.iter().map(|end| format!("attempt {} ended at {}: {}", end.attempt, end.ended_at, end.how));
    let said: Vec<String> = each.collect();
    match said.len() {
        0 => "given up before the first attempt".to_owned(),
        1 => format!("given up after 1 attempt; {}", said.join("; ")),
        count => format!("given up after {count} attempts; {}", said.join("; ")),
    }
}
