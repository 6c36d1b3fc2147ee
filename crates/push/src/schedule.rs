//! When a delivery that failed is tried again, and when it is given up.

use std::time::Duration;

use longhaul_protocol::Timestamp;

use crate::time::{between, later};

/// How long to wait between attempts, and for how long in all.
///
/// The wait doubles from attempt to attempt. Each is drawn from the upper half of its step, so that deliveries that failed
/// together don't come back together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Schedule {
    /// The shortest wait. Default 1 s, at least 1 ms.
    pub delay_min: Duration,
    /// The longest wait, unless the receiver asks for a longer one. Default 15 min, at least `delay_min`.
    pub delay_max: Duration,
    /// From the first failure to the last attempt. Default 24 h.
    pub window: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(3600);
        Self { delay_min: Duration::from_secs(1), delay_max: HOUR / 4, window: HOUR * 24 }
    }
}

/// What is known of a delivery when an attempt has failed.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// How many attempts have failed, this one included: from 1.
    pub attempts: u32,
    /// When the first of them failed.
    pub first_failure_at: Timestamp,
    /// The time now.
    pub now: Timestamp,
    /// What the receiver asked for by `Retry-After`.
    pub retry_after: Option<Duration>,
    /// Chance, evenly from all numbers: where in its range the wait lies.
    pub jitter: u32,
}

/// What becomes of a delivery after a failed attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// It is due again at this time.
    At(Timestamp),
    /// Its window is over: it is kept, and sent again only when somebody asks for it.
    Dead,
}

impl Schedule {
    /// When to try again.
    ///
    /// A `Retry-After` lengthens the wait and never shortens it. The last attempt is at the end of the window, whatever the
    /// receiver asks for.
    #[must_use]
    pub fn next(&self, failed: Failed) -> Next {
        let end = later(failed.first_failure_at, self.window);
        if failed.now >= end {
            return Next::Dead;
        }
        let wait = self.delay(failed.attempts, failed.jitter).max(failed.retry_after.unwrap_or_default());
        // A clock that was set back must not make the window longer than it is.
        let left = between(failed.now, end).min(self.window);
        Next::At(later(failed.now, wait.min(left)))
    }

    /// The wait after this many failures, between `delay_min` and `delay_max`.
    #[must_use]
    pub fn delay(&self, attempts: u32, jitter: u32) -> Duration {
        let longest = self.delay_max.max(self.delay_min);
        let step = 2_u32.checked_pow(attempts.max(1)).map_or(longest, |factor| self.delay_min.saturating_mul(factor));
        let half = step.min(longest) / 2;
        let share = half.as_millis().saturating_mul(jitter.into()) / u128::from(u32::MAX);
        let drawn = half + Duration::from_millis(u64::try_from(share).unwrap_or(u64::MAX));
        drawn.clamp(self.delay_min, longest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000 + i64::try_from(millis).unwrap())
    }

    fn failed(attempts: u32, now: u64) -> Failed {
        Failed { attempts, first_failure_at: at(0), now: at(now), retry_after: None, jitter: 0 }
    }

    #[test]
    fn waits_double_from_a_second_to_a_quarter_of_an_hour() {
        let schedule = Schedule::default();
        let seconds = |attempt, jitter| schedule.delay(attempt, jitter).as_secs();
        let shortest: Vec<_> = (1..=12).map(|attempt| seconds(attempt, 0)).collect();
        let longest: Vec<_> = (1..=12).map(|attempt| seconds(attempt, u32::MAX)).collect();
        assert_eq!(shortest, [1, 2, 4, 8, 16, 32, 64, 128, 256, 450, 450, 450]);
        assert_eq!(longest, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
    }

    #[test]
    fn retry_after_lengthens_the_wait_and_never_shortens_it() {
        let schedule = Schedule::default();
        let asked = |seconds| Failed { retry_after: Some(Duration::from_secs(seconds)), ..failed(5, 0) };
        assert_eq!(schedule.next(asked(3600)), Next::At(at(3_600_000)));
        assert_eq!(schedule.next(asked(0)), Next::At(at(16_000)));
    }

    #[test]
    fn the_last_attempt_is_at_the_end_of_the_window_and_then_it_is_dead() {
        let schedule = Schedule::default();
        let day = 86_400_000;
        let last = Failed { retry_after: Some(MINUTE * 60 * 24 * 365), ..failed(100, day - 5000) };
        assert_eq!(schedule.next(last), Next::At(at(day)));
        assert_eq!(schedule.next(failed(100, day)), Next::Dead);
    }

    #[test]
    fn a_day_has_about_a_hundred_attempts() {
        let schedule = Schedule::default();
        let attempts = |jitter| {
            let mut state = Failed { jitter, ..failed(1, 0) };
            while let Next::At(next) = schedule.next(state) {
                state = Failed { attempts: state.attempts + 1, now: next, ..state };
            }
            state.attempts
        };
        assert_eq!((attempts(u32::MAX), attempts(0)), (105, 201));
    }

    proptest! {
        #[test]
        fn the_next_attempt_is_later_within_the_window_and_not_before_the_shortest_wait(
            attempts in 0_u32.., jitter: u32, since in 0_u64..200_000_000, asked in proptest::option::of(0_u64..u64::MAX)
        ) {
            let schedule = Schedule::default();
            let retry_after = asked.map(Duration::from_secs);
            let now = at(since);
            match schedule.next(Failed { jitter, retry_after, ..failed(attempts, since) }) {
                Next::Dead => prop_assert!(since >= 86_400_000),
                Next::At(next) => {
                    prop_assert!(next > now && next <= at(86_400_000));
                    let is_last = next == at(86_400_000);
                    prop_assert!(is_last || between(now, next) >= schedule.delay_min);
                    let longest = schedule.delay_max.max(retry_after.unwrap_or_default());
                    prop_assert!(between(now, next) <= longest);
                }
            }
        }

        #[test]
        fn a_clock_that_was_set_back_waits_no_longer_than_the_window(back in 0_u64..10_000_000_000) {
            let schedule = Schedule::default();
            let now = Timestamp::from_unix_millis(at(0).unix_millis() - i64::try_from(back).unwrap());
            let next = schedule.next(Failed { now, retry_after: Some(Duration::MAX), ..failed(1, 0) });
            prop_assert_eq!(next, Next::At(later(now, schedule.window)));
        }
    }
}
