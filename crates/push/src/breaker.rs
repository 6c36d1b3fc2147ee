//! The circuit breaker of one host: a host that is down is asked once in a while by one delivery, not by all of them.
//!
//! Closed, all may send. After some failures in a row it opens, and nobody may. When its time is over one delivery is the probe;
//! a success closes it, a failure opens it for longer.

use std::time::Duration;

use longhaul_protocol::Timestamp;
use serde::{Deserialize, Serialize};

use crate::time::later;

/// When breakers open, and for how long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BreakerPolicy {
    /// Failures in a row that open it. Default 5, at least 1.
    pub failures_max: u32,
    /// How long it is open the first time; twice as long after each probe that failed. Default 10 s.
    pub open_min: Duration,
    /// The longest time that it is open. Default 5 min.
    pub open_max: Duration,
    /// How long a probe keeps the others out, should nobody report how it ended. Default 60 s; longer than an attempt may take.
    pub probe_max: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { failures_max: 5, open_min: seconds(10), open_max: seconds(300), probe_max: seconds(60) }
    }
}

/// What is known of a host. The default is a host of which nothing is known; it need not be stored.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// Failures in a row.
    pub failures: u32,
    /// Nothing is sent before this time.
    pub open_until: Option<Timestamp>,
    /// Whether a probe is under way; `open_until` is then when it counts as lost.
    pub is_probing: bool,
}

/// Whether a delivery may be sent to a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Permit {
    /// As many as one likes.
    Send,
    /// This one alone: store [`Breaker::on_probe`] before it is sent.
    Probe,
    /// None before this time.
    Wait(Timestamp),
}

impl Breaker {
    /// Whether a delivery may be sent now.
    #[must_use]
    pub fn may_send(&self, now: Timestamp) -> Permit {
        match self.open_until {
            None => Permit::Send,
            Some(until) if now < until => Permit::Wait(until),
            Some(_) => Permit::Probe,
        }
    }

    /// The breaker once a probe is on its way.
    #[must_use]
    pub fn on_probe(self, policy: &BreakerPolicy, now: Timestamp) -> Self {
        Self { open_until: Some(later(now, policy.probe_max)), is_probing: true, ..self }
    }

    /// The breaker after the host answered, to whichever delivery.
    #[must_use]
    pub fn on_success(self) -> Self {
        Self::default()
    }

    /// The breaker after a delivery failed for reasons of the host.
    ///
    /// While it is open and nothing probes, the failure is of a delivery that left before: it says nothing new.
    #[must_use]
    pub fn on_failure(self, policy: &BreakerPolicy, now: Timestamp) -> Self {
        if matches!(self.may_send(now), Permit::Wait(_)) && !self.is_probing {
            return self;
        }
        let failures = self.failures.saturating_add(1);
        let opens = failures.checked_sub(policy.failures_max.max(1));
        let open_until = opens.map(|times| {
            let factor = 2_u32.checked_pow(times).unwrap_or(u32::MAX);
            later(now, policy.open_min.saturating_mul(factor).min(policy.open_max))
        });
        Self { failures, open_until, is_probing: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: BreakerPolicy = BreakerPolicy {
        failures_max: 3,
        open_min: Duration::from_secs(10),
        open_max: Duration::from_secs(60),
        probe_max: Duration::from_secs(20),
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(seconds * 1000)
    }

    fn opened(now: Timestamp) -> Breaker {
        (0..3).fold(Breaker::default(), |breaker, _| breaker.on_failure(&POLICY, now))
    }

    #[test]
    fn it_opens_at_so_many_failures_in_a_row_and_not_before() {
        let two = Breaker::default().on_failure(&POLICY, at(0)).on_failure(&POLICY, at(0));
        assert_eq!(two.may_send(at(0)), Permit::Send);
        assert_eq!(two.on_failure(&POLICY, at(1)).may_send(at(1)), Permit::Wait(at(11)));
        let broken_row = two.on_success().on_failure(&POLICY, at(1)).on_failure(&POLICY, at(1));
        assert_eq!(broken_row.may_send(at(1)), Permit::Send);
    }

    #[test]
    fn one_probe_is_let_through_when_its_time_is_over() {
        let open = opened(at(0));
        assert_eq!(open.may_send(at(9)), Permit::Wait(at(10)));
        assert_eq!(open.may_send(at(10)), Permit::Probe);
        assert_eq!(open.on_probe(&POLICY, at(10)).may_send(at(10)), Permit::Wait(at(30)));
    }

    #[test]
    fn a_probe_that_nobody_reports_is_followed_by_another() {
        let probing = opened(at(0)).on_probe(&POLICY, at(10));
        assert_eq!(probing.may_send(at(30)), Permit::Probe);
    }

    #[test]
    fn a_good_probe_closes_it_and_a_bad_one_opens_it_for_longer_up_to_a_limit() {
        let probing = opened(at(0)).on_probe(&POLICY, at(10));
        assert_eq!(probing.on_success(), Breaker::default());
        let mut now = 10;
        let mut breaker = opened(at(0));
        for open in [20, 40, 60, 60] {
            breaker = breaker.on_probe(&POLICY, at(now)).on_failure(&POLICY, at(now));
            assert_eq!(breaker.may_send(at(now)), Permit::Wait(at(now + open)));
            now += open;
        }
        for _ in 0..100 {
            breaker = breaker.on_probe(&POLICY, at(now)).on_failure(&POLICY, at(now));
        }
        assert_eq!(breaker.may_send(at(now)), Permit::Wait(at(now + 60)));
    }

    #[test]
    fn failures_of_deliveries_that_left_before_it_opened_change_nothing() {
        let open = opened(at(0));
        assert_eq!(open.on_failure(&POLICY, at(5)), open);
    }

    #[test]
    fn it_is_the_same_after_it_was_stored() {
        let breaker = opened(at(0)).on_probe(&POLICY, at(10));
        let stored = serde_json::to_string(&breaker).unwrap();
        assert_eq!(stored, r#"{"failures":3,"open_until":"1970-01-01T00:00:30.000Z","is_probing":true}"#);
        assert_eq!(serde_json::from_str::<Breaker>(&stored).unwrap(), breaker);
    }
}
