//! Streams of a server of v0.3, whole and over links that fail: each event once and in order.

use std::time::Duration;

use longhaul_client::Outcome;
use longhaul_client::follow::{FollowOptions, Until};
use longhaul_protocol::{TaskState, wire};
use longhaul_tests::{LinkFault, PATIENCE, Sdk, within};

use crate::client_links::{Decide, Link, by_number};
use crate::client_support::{Case, answer, artifact, chunks, said, say, state, states, texts, told};
use crate::{each, over_each};

/// How many chunks a stream has that is cut.
const CHUNKS: usize = 300;

#[tokio::test]
async fn stream_begins_with_the_task_and_ends_with_its_end() {
    each(async |case| {
        let events = case.events("burst 3 chunks 6").await;
        assert!(matches!(events[0].payload.payload, Some(wire::StreamResponsePayload::Task(_))), "{events:?}");
        assert_eq!(told(&events, "chunks"), chunks(6), "{}", case.name());
        let wanted = [TaskState::Submitted, TaskState::Working, TaskState::Completed];
        assert_eq!(states(&events), wanted, "{}", case.name());
        let events = case.events("msg").await;
        assert_eq!(events.len(), 1, "{}: {events:?}", case.name());
    })
    .await;
}

/// The SDK's subscriptions do not begin with the task, and a second stream of one would harm it.
#[tokio::test]
async fn task_that_runs_already_is_followed_from_how_it_stands() {
    each(async |case| {
        let begun = case.begin("burst 2 slow 0.7 chunks 5").await;
        let events = case.rest(case.client.follow(&begun.id, FollowOptions::default())).await;
        let Some(wire::StreamResponsePayload::Task(first)) = &events[0].payload.payload else { panic!("{events:?}") };
        assert_eq!(first.id, begun.id, "{}", case.name());
        assert_eq!(told(&events, "chunks"), chunks(5), "{}", case.name());
        assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}", case.name());
        let ended = case.rest(case.client.follow(&begun.id, FollowOptions::default())).await;
        assert_eq!((ended.len(), states(&ended).as_slice()), (1, [TaskState::Completed].as_slice()), "{}", case.name());
    })
    .await;
}

#[tokio::test]
async fn question_that_somebody_else_answers_is_no_end_where_the_end_is_wanted() {
    each(async |case| {
        let outcome = case.delegate(say("input")).await;
        let Outcome::NeedsInput { task, .. } = outcome else { panic!("{}: {outcome:?}", case.name()) };
        let mut options = FollowOptions::default();
        options.until = Until::Terminal;
        options.poll_interval = Duration::from_millis(50);
        let mut stream = case.client.follow(&task.id, options);
        let first = within(PATIENCE, "the task", stream.next()).await.unwrap();
        let Some(wire::StreamResponsePayload::Task(first)) = case.ok("the task", first).payload.payload else {
            panic!("{}", case.name())
        };
        assert_eq!(state(&first), Some(TaskState::InputRequired), "{}", case.name());
        let done = case.delegate(answer(&task, "echo that")).await;
        assert!(matches!(done, Outcome::Completed(_)), "{}: {done:?}", case.name());
        let events = case.rest(stream).await;
        assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}", case.name());
        assert_eq!(told(&events, "echo"), ["echo that"], "{}", case.name());
    })
    .await;
}

/// Runs a test over each binding, over a link that fails as `decide` says of each binding for itself; and each has failed.
async fn over_links(decide: impl Fn() -> Decide, test: impl AsyncFn(&Case<'_>)) {
    let link = Link::new(Sdk::PythonOld, &decide).await;
    over_each(&link.peer, test).await;
    link.assert_failed();
}

#[tokio::test]
async fn stream_that_is_cut_again_and_again_tells_each_chunk_once() {
    let decide = || {
        by_number(|number| match u64::try_from(number) {
            Ok(number @ 0..6) => LinkFault::CutAfter((number + 1) * 7_000),
            _ => LinkFault::None,
        })
    };
    over_links(decide, async |case| {
        let events = case.events(&format!("chunks {CHUNKS}")).await;
        assert_eq!(told(&events, "chunks"), chunks(CHUNKS), "{}", case.name());
        assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}", case.name());
        let Some(wire::StreamResponsePayload::Task(first)) = &events[0].payload.payload else { panic!("{events:?}") };
        let task = case.task(&first.id).await;
        assert_eq!(told(&events, "chunks"), texts(&artifact(&task, "chunks").parts), "{}", case.name());
    })
    .await;
}

#[tokio::test]
async fn stream_that_is_cut_whenever_it_is_silent_comes_to_its_end() {
    over_links(
        || by_number(|_| LinkFault::IdleCut(Duration::from_millis(300))),
        async |case| {
            let events = case.events("slow 1.5 chunks 5").await;
            assert_eq!(told(&events, "chunks"), chunks(5), "{}", case.name());
            assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}", case.name());
        },
    )
    .await;
}

#[tokio::test]
async fn waiting_goes_on_when_the_link_breaks() {
    over_links(
        || by_number(|number| if number < 3 { LinkFault::CutAfter(3_000) } else { LinkFault::None }),
        async |case| {
            let outcome = case.delegate(say("burst 50 slow 0.3 chunks 20 input")).await;
            let Outcome::NeedsInput { task, question } = outcome else { panic!("{}: {outcome:?}", case.name()) };
            assert_eq!(texts(&question.unwrap().parts), ["what else?"], "{}", case.name());
            assert_eq!(texts(&artifact(&task, "chunks").parts), chunks(20), "{}", case.name());
        },
    )
    .await;
}

#[tokio::test]
async fn statuses_of_a_whole_stream_are_told_once_and_in_order() {
    each(async |case| {
        let events = case.events("burst 200").await;
        let said: Vec<String> = events.iter().filter_map(|event| said(&event.payload)).collect();
        assert_eq!(said, (1..=200).map(|number| format!("{number} of 200")).collect::<Vec<_>>(), "{}", case.name());
    })
    .await;
}
