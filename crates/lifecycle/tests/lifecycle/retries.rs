use std::time::Duration;

use longhaul_lifecycle::{AttemptEnd, AttemptOutcome, Command, Next, RetryPolicy, TaskHead, describe_attempts};
use longhaul_protocol::{TaskState, Timestamp};

use crate::support::{after, at, failed, start, submitted, working};

const POLICY: RetryPolicy = RetryPolicy {
    attempts_max: 10,
    backoff_min: Duration::from_millis(1000),
    backoff_max: Duration::from_millis(60_000),
};

/// A task at its attempt of that number.
fn at_attempt(attempt: u32) -> TaskHead {
    TaskHead { attempt, ..working() }
}

/// How long to wait after an attempt, in milliseconds; `None` when it was the last one.
fn wait(policy: RetryPolicy, attempt: u32, jitter: f64) -> Option<i64> {
    match policy.next(&at_attempt(attempt), jitter, at(7)) {
        Next::Retry { at: next } => Some(next.unix_millis() - at(7).unix_millis()),
        Next::GiveUp => None,
    }
}

#[test]
fn the_first_retry_is_at_once_and_each_wait_is_twice_the_one_before() {
    let waits: Vec<_> = (1..=10).map(|attempt| wait(POLICY, attempt, 0.0)).collect();
    let expected = [0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];
    assert_eq!(waits, expected.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
}

#[test]
fn the_attempts_are_used_up_at_their_limit() {
    for attempts_max in 1..5 {
        let policy = RetryPolicy { attempts_max, ..POLICY };
        for attempt in 1..8 {
            assert_eq!(wait(policy, attempt, 0.0).is_none(), attempt >= attempts_max, "{attempt} of {attempts_max}");
        }
    }
    assert_eq!(wait(RetryPolicy { attempts_max: 1, ..POLICY }, 1, 0.5), None, "one attempt means no retry");
}

#[test]
fn jitter_takes_away_up_to_half_of_the_wait() {
    assert_eq!([0.0, 0.5, 1.0].map(|jitter| wait(POLICY, 3, jitter)), [2000, 1500, 1000].map(Some));
    assert_eq!([-3.0, 9.0].map(|jitter| wait(POLICY, 3, jitter)), [2000, 1000].map(Some), "what is no share is one");
    assert_eq!(wait(POLICY, 1, 0.7), Some(0), "nothing is taken from nothing");
}

#[test]
fn no_setting_and_no_attempt_is_too_large() {
    let endless = RetryPolicy { attempts_max: u32::MAX, backoff_min: Duration::MAX, backoff_max: Duration::MAX };
    for jitter in [0.0, 1.0] {
        assert_eq!(endless.next(&at_attempt(40), jitter, at(7)), Next::Retry { at: Timestamp::MAX });
    }
    let zero = RetryPolicy { backoff_min: Duration::ZERO, ..endless };
    assert_eq!(wait(zero, u32::MAX - 1, 0.0), Some(0));
    assert!(wait(POLICY, 3, f64::NAN).is_some_and(|wait| (0..=2000).contains(&wait)));
}

#[test]
fn a_turn_whose_attempts_all_come_to_nothing_is_given_up_and_says_why() {
    let policy = RetryPolicy { attempts_max: 3, ..POLICY };
    let outcomes = [AttemptOutcome::LeaseExpired, failed("no network"), AttemptOutcome::TurnTooLong];
    let mut head = after(&submitted(), start(0), 0);
    let (mut now, mut ends) = (0, Vec::new());
    for how in outcomes {
        now += 10;
        ends.push(AttemptEnd { attempt: head.attempt, epoch: head.epoch, ended_at: at(now), how: how.clone() });
        let Next::Retry { at: next } = policy.next(&head, 0.0, at(now)) else { break };
        head = after(&head, Command::Retry { how, at: next }, now);
        assert_eq!((head.state, &head.failures), (TaskState::Working, &ends));
        now = next.unix_millis() - at(0).unix_millis();
        head = after(&head, start(now), now);
    }
    assert_eq!((head.attempt, head.epoch, ends.len()), (3, 3, 3));
    assert_eq!(
        describe_attempts(&ends),
        "given up after 3 attempts; \
         attempt 1 ended at 2023-11-14T22:13:20.010Z: its worker was not heard of in time; \
         attempt 2 ended at 2023-11-14T22:13:20.020Z: the agent failed: no network; \
         attempt 3 ended at 2023-11-14T22:13:21.030Z: it ran for longer than a turn may"
    );
}

#[test]
fn the_end_of_each_attempt_reads_as_a_sentence() {
    let end = |how| AttemptEnd { attempt: 1, epoch: 4, ended_at: at(0), how };
    let told = |how| describe_attempts(&[end(how)]);
    let prefix = "given up after 1 attempt; attempt 1 ended at 2023-11-14T22:13:20.000Z: ";
    for (how, text) in [
        (AttemptOutcome::LeaseExpired, "its worker was not heard of in time"),
        (failed(""), "the agent failed"),
        (failed("out of memory"), "the agent failed: out of memory"),
        (AttemptOutcome::TurnTooLong, "it ran for longer than a turn may"),
        (AttemptOutcome::Inactive, "it wrote nothing for longer than it may"),
    ] {
        assert_eq!(told(how), format!("{prefix}{text}"));
    }
    assert_eq!(describe_attempts(&[]), "given up before the first attempt");
}
