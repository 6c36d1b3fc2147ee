//! Streams of other people's servers, with nothing in between.

use longhaul_client::follow::FollowOptions;
use longhaul_protocol::{TaskState, wire};
use wire::StreamResponsePayload as Payload;

use crate::client_support::{Case, answer, artifact, chunks, each, said, say, states, texts, told};

/// One pair of servers for all of them: starting one takes longer than asking it.
#[tokio::test]
async fn streams_are_whole() {
    each(async |case| {
        all_events_come_once_and_in_order(case).await;
        direct_answer_is_the_only_event(case).await;
        stream_that_continues_a_task_goes_to_its_end(case).await;
        stream_of_a_task_that_is_rejected_ends_there(case).await;
        twenty_streams_at_once_do_not_mix(case).await;
    })
    .await;
}

async fn all_events_come_once_and_in_order(case: &Case<'_>) {
    let events = case.events("burst 20 chunks 50 echo").await;
    let Some(Payload::Task(first)) = &events[0].payload.payload else { panic!("{}: {events:?}", case.name()) };
    let name = case.name();
    let wanted = [TaskState::Submitted, TaskState::Working, TaskState::Completed];
    assert_eq!(states(&events), wanted, "{name}");
    let said: Vec<String> = events.iter().filter_map(|event| said(&event.payload)).collect();
    assert_eq!(said, (1..=20).map(|number| format!("{number} of 20")).collect::<Vec<_>>(), "{name}");
    let updates = events.iter().filter(|event| matches!(event.payload.payload, Some(Payload::ArtifactUpdate(_))));
    assert_eq!(updates.count(), 51, "{name}");
    let task = case.task(&first.id).await;
    for id in ["chunks", "echo"] {
        assert_eq!(told(&events, id), texts(&artifact(&task, id).parts), "{name}");
    }
    assert_eq!(told(&events, "chunks").len(), 50, "{name}");
}

async fn direct_answer_is_the_only_event(case: &Case<'_>) {
    let events = case.events("msg").await;
    assert_eq!(events.len(), 1, "{}: {events:?}", case.name());
    let Some(Payload::Message(message)) = &events[0].payload.payload else { panic!("{}", case.name()) };
    assert_eq!(texts(&message.parts), ["a direct answer"], "{}", case.name());
}

async fn stream_that_continues_a_task_goes_to_its_end(case: &Case<'_>) {
    let events = case.events("chunks 2 input").await;
    assert_eq!(states(&events).last(), Some(&TaskState::InputRequired), "{}: {events:?}", case.name());
    let Some(Payload::Task(task)) = &events[0].payload.payload else { panic!("{}", case.name()) };
    let request = answer(task, "echo it");
    let stream = case.client.send_streaming_message(request, FollowOptions::default());
    let events = case.rest(case.ok("a stream", stream)).await;
    // The Python SDK does not begin it with the task.
    assert_eq!(states(&events), [TaskState::Working, TaskState::Completed], "{}: {events:?}", case.name());
    assert_eq!(told(&events, "echo"), ["echo it"], "{}: {events:?}", case.name());
    let whole = case.task(&task.id).await;
    assert_eq!(texts(&artifact(&whole, "chunks").parts).len(), 2, "{}", case.name());
}

async fn stream_of_a_task_that_is_rejected_ends_there(case: &Case<'_>) {
    let events = case.events("reject").await;
    assert_eq!(states(&events), [TaskState::Submitted, TaskState::Rejected], "{}: {events:?}", case.name());
}

async fn twenty_streams_at_once_do_not_mix(case: &Case<'_>) {
    let mut contexts = Vec::new();
    let mut all = Vec::new();
    for _ in 0..20 {
        let stream = case.client.send_streaming_message(say("chunks 30"), FollowOptions::default());
        all.push(case.ok("a stream", stream));
    }
    // Each is begun before any is read to its end.
    for stream in &mut all {
        let first = stream.next().await.unwrap();
        let first = case.ok("the first event", first);
        let Some(Payload::Task(task)) = first.payload.payload else { panic!("{}", case.name()) };
        contexts.push(task.context_id);
    }
    for stream in all {
        let events = case.rest(stream).await;
        assert_eq!(told(&events, "chunks"), chunks(30), "{}", case.name());
    }
    contexts.sort_unstable();
    contexts.dedup();
    assert_eq!(contexts.len(), 20, "{}", case.name());
}
