//! When a call is tried again.

use std::time::Duration;

use rand::RngExt as _;

use crate::error::ClientError;
use crate::operation::Repetition;

/// How often, and after how long, a call that failed is tried again (§3.3.1 says what is safe).
///
/// Reading, canceling and deleting are safe to repeat. A send is repeated when the agent cannot have acted on it, and
/// otherwise only where the agent's card declares `urn:longhaul:ext:idempotent-send:v1` or [`resend`](Self::resend) says so.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The most attempts, the first one counted. Default 4.
    pub attempts_max: u32,
    /// The longest wait before the second attempt; it doubles with each further one. Default 250 ms.
    pub backoff_min: Duration,
    /// The longest wait before any attempt. Default 10 s. A peer that asks to be left alone for longer is not asked again.
    pub backoff_max: Duration,
    /// Whether a send is repeated towards an agent that does not say that it tells a repetition. Default
    /// [`Resend::OnlyIfSafe`].
    pub resend: Resend,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 4,
            backoff_min: Duration::from_millis(250),
            backoff_max: Duration::from_secs(10),
            resend: Resend::OnlyIfSafe,
        }
    }
}

impl RetryPolicy {
    /// Nothing is tried again.
    #[must_use]
    pub fn never() -> Self {
        Self { attempts_max: 1, ..Self::default() }
    }

    /// How long to wait before the next attempt; none if there shall be none.
    pub(crate) fn wait(&self, error: &ClientError, attempts: u32, repetition: Repetition) -> Option<Duration> {
        if attempts >= self.attempts_max || !error.is_transient() {
            return None;
        }
        if repetition != Repetition::Safe && !error.is_before_acting() {
            return None;
        }
        let asked = error.retry_after().unwrap_or_default();
        (asked <= self.backoff_max).then(|| asked.max(self.backoff(attempts)))
    }

    /// A wait of half to all of the step, so that callers who failed together do not come back together.
    pub(crate) fn backoff(&self, attempts: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).min(30));
        let step = self.backoff_min.saturating_mul(doubled).min(self.backoff_max);
        step.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

/// Whether a send is repeated when it is not known whether the agent acted on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resend {
    /// Only where the agent's card says that it tells a repetition by its message id.
    OnlyIfSafe,
    /// Always: the caller knows that the agent tells a repetition, or does not mind two tasks.
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken() -> ClientError {
        ClientError::Broken { whom: "http://h".to_owned(), source: "cut".into() }
    }

    fn refused() -> ClientError {
        ClientError::Connect { whom: "http://h".to_owned(), source: "refused".into() }
    }

    #[test]
    fn what_may_have_been_done_is_not_asked_for_twice() {
        let policy = RetryPolicy::default();
        assert!(policy.wait(&broken(), 1, Repetition::Asks).is_none());
        assert!(policy.wait(&broken(), 1, Repetition::Safe).is_some());
        assert!(policy.wait(&refused(), 1, Repetition::Asks).is_some());
    }

    #[test]
    fn waits_grow_to_a_limit_and_attempts_end() {
        let policy = RetryPolicy { attempts_max: 100, ..RetryPolicy::default() };
        for attempts in 1..100 {
            let wait = policy.wait(&refused(), attempts, Repetition::Asks).unwrap();
            let step =
                Duration::from_millis(250).saturating_mul(2_u32.saturating_pow(attempts - 1)).min(policy.backoff_max);
            assert!(wait <= step && wait >= step / 2, "{attempts}: {wait:?}");
        }
        assert!(policy.wait(&refused(), 100, Repetition::Safe).is_none());
    }

    #[test]
    fn a_peer_that_asks_for_peace_gets_it() {
        let busy = |seconds| ClientError::Http {
            whom: "http://h".to_owned(),
            status: 429,
            excerpt: String::new(),
            retry_after: Some(Duration::from_secs(seconds)),
        };
        let policy = RetryPolicy::default();
        assert_eq!(policy.wait(&busy(7), 1, Repetition::Asks), Some(Duration::from_secs(7)));
        assert_eq!(policy.wait(&busy(11), 1, Repetition::Asks), None);
    }
}
