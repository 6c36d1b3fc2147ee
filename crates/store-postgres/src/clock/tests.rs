use longhaul_pgtest::Database as Fresh;
use tokio_util::task::TaskTracker;

use super::*;
use crate::PostgresConfig;
use crate::connect::Connector;

const SECOND: i64 = 1_000_000;

/// An answer that took `duration`, from a clock that was `offset` ahead of ours when half of that had passed.
fn sample(asked: i64, duration: i64, offset: i64) -> Sample {
    Sample { asked, answered: asked + duration, theirs: asked + duration / 2 + offset }
}

#[test]
fn the_time_is_theirs_at_the_middle_of_the_question() {
    let course = Course::begin(sample(100, 2_000, 7 * SECOND));
    assert_eq!(course.at(2_100), 7 * SECOND + 2_100);
    assert_eq!(course.at(9 * SECOND), 16 * SECOND);
}

#[test]
fn a_clock_that_is_found_ahead_is_followed_at_once() {
    let mut course = Course::begin(sample(0, 0, 0));
    course.correct(sample(SECOND, 100, 60 * SECOND));
    assert_eq!(course.at(SECOND + 100), 61 * SECOND + 100);
}

#[test]
fn a_clock_that_is_found_behind_is_met_a_tenth_slower_and_never_by_going_back() {
    let mut course = Course::begin(sample(0, 0, 10 * SECOND));
    course.correct(sample(5 * SECOND, 0, 9 * SECOND));
    let mut last = 15 * SECOND;
    for moment in (5 * SECOND..20 * SECOND).step_by(1_000) {
        let time = course.at(moment);
        assert!(time >= last && time - last <= 1_000, "{last} {time}");
        assert!(moment == 5 * SECOND || time - last >= 900, "{last} {time}");
        last = time;
    }
    assert_eq!(course.at(14 * SECOND), 23 * SECOND + SECOND / 10);
    // It was a second behind, which is ten seconds of going a tenth slower.
    assert_eq!(course.at(15 * SECOND), 24 * SECOND);
    assert_eq!(course.at(16 * SECOND), 25 * SECOND);
}

#[test]
fn steps_to_and_fro_never_take_the_time_back() {
    let mut course = Course::begin(sample(0, 10, 0));
    let mut last = course.at(10);
    let offsets = [3, -40, -39, 12, 12, -7, 0, 100, -100].map(|seconds| seconds * SECOND);
    for (round, offset) in (1..).zip(offsets) {
        let asked = round * 5 * SECOND;
        for moment in (asked - 4 * SECOND..asked).step_by(100_000) {
            assert!(course.at(moment) >= last);
            last = course.at(moment);
        }
        course.correct(sample(asked, 300, offset));
        assert!(course.at(asked + 300) >= last);
        last = course.at(asked + 300);
    }
}

#[test]
fn an_answer_that_took_too_long_to_contradict_changes_nothing() {
    let mut course = Course::begin(sample(0, 10, SECOND));
    course.correct(sample(5 * SECOND, 2 * SECOND, 2 * SECOND - 10));
    assert_eq!(course.offset, SECOND);
    course.correct(sample(5 * SECOND, 2 * SECOND, 2 * SECOND + 10));
    assert_eq!(course.offset, 2 * SECOND + 10);
}

fn database(fresh: &Fresh) -> Database {
    let config = PostgresConfig { url: fresh.url().to_owned(), ..PostgresConfig::default() };
    let connector = Connector::new(&config).unwrap();
    Database::new(config, connector, TaskTracker::new())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_is_that_of_the_database() {
    let fresh = Fresh::fresh().unwrap();
    let database = database(&fresh);
    let clock = ClockOffset::follow(&database, CancellationToken::new()).await.unwrap();
    let session = database.connect().await.unwrap();
    let before = clock.now().unix_millis();
    let rows = session.query(ASK, &[]).await.unwrap();
    let after = clock.now().unix_millis();
    let theirs = rows[0].get::<_, i64>(0) / 1000;
    // What the first questions left open, at worst half of their time.
    assert!((before - 50..=after + 50).contains(&theirs), "{before} {theirs} {after}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ended_is_replaced_for_the_next_question() {
    let fresh = Fresh::fresh().unwrap();
    let database = database(&fresh);
    let closing = CancellationToken::new();
    let clock = ClockOffset::follow(&database, closing.clone()).await.unwrap();
    let mut session = Some(database.connect().await.unwrap());
    fresh
        .execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longhaul' AND datname = current_database()")
        .unwrap();
    let mut answers = Vec::new();
    while answers.last().is_none_or(Result::is_err) {
        assert!(answers.len() < 3, "{answers:?}");
        answers.push(asked_again(&clock, &database, &mut session).await);
    }
    closing.cancel();
    database.tracker().close();
    drop(session);
    // Nothing stays behind.
    tokio::time::timeout(Duration::from_secs(10), database.tracker().wait()).await.unwrap();
}
