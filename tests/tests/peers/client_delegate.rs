//! Delegations to other people's servers: each ends as it does at ours.

use longhaul_client::follow::{FollowOptions, Until};
use longhaul_client::{ClientError, Outcome, WaitOptions};
use longhaul_protocol::wire::PartContent;
use longhaul_protocol::{ErrorCode, TaskState, wire};
use longhaul_tests::Sdk;
use longhaul_tests::peers::FILE;
use serde_json::json;

use crate::client_support::{Case, answer, artifact, builder, chunks, each, say, sends, state, states, texts};

/// One pair of servers for all of them: starting one takes longer than asking it.
#[tokio::test]
async fn delegations_end_in_each_way() {
    each(async |case| {
        each_way_to_end_is_told_apart(case).await;
        results_hold_all_chunks_the_data_and_the_bytes(case).await;
        what_is_sent_comes_back_as_it_was(case).await;
        question_is_no_end_and_its_answer_is_one(case).await;
        authorization_is_no_end_and_the_task_goes_on_by_itself(case).await;
        agent_that_raises_is_asked_once(case).await;
        waiting_no_longer_leaves_the_task_running(case).await;
    })
    .await;
}

async fn each_way_to_end_is_told_apart(case: &Case<'_>) {
    for text in ["echo hello", "chunks 3", "burst 3", "slow 0.05"] {
        let outcome = case.delegate(say(text)).await;
        assert!(matches!(outcome, Outcome::Completed(_)), "{} {text}: {outcome:?}", case.name());
    }
    for text in ["fail", "fail late"] {
        let outcome = case.delegate(say(text)).await;
        let Outcome::Failed(task) = outcome else { panic!("{} {text}: {outcome:?}", case.name()) };
        let message = task.status.unwrap().message.unwrap();
        assert_eq!(texts(&message.parts), ["the agent failed"], "{}", case.name());
    }
    let outcome = case.delegate(say("reject")).await;
    assert!(matches!(outcome, Outcome::Rejected(_)), "{}: {outcome:?}", case.name());
    let outcome = case.delegate(say("msg")).await;
    let Outcome::Answered(message) = outcome else { panic!("{}: {outcome:?}", case.name()) };
    assert_eq!(texts(&message.parts), ["a direct answer"], "{}", case.name());
}

async fn results_hold_all_chunks_the_data_and_the_bytes(case: &Case<'_>) {
    let outcome = case.delegate(say("chunks 100 data file")).await;
    let Outcome::Completed(task) = outcome else { panic!("{}: {outcome:?}", case.name()) };
    assert_eq!(texts(&artifact(&task, "chunks").parts), chunks(100), "{}", case.name());
    let Some(PartContent::Data(data)) = &artifact(&task, "data").parts[0].content else { panic!("{task:?}") };
    assert_eq!((&data["nothing"], &data["yes"]), (&json!(null), &json!(true)), "{}", case.name());
    // Over HTTP+JSON the Python SDK says 1.0 for 1.
    assert_eq!((data["list"][0].as_f64(), data["list"][1].as_f64()), (Some(1.0), Some(2.5)), "{}", case.name());
    let file = &artifact(&task, "file").parts[0];
    assert_eq!(file.content, Some(PartContent::Raw(FILE.to_vec().into())), "{}", case.name());
    assert_eq!((file.filename.as_str(), file.media_type.as_str()), ("bytes.bin", "application/octet-stream"));
}

async fn what_is_sent_comes_back_as_it_was(case: &Case<'_>) {
    let mut request = say("echo \u{1F980} <a&b>'\"\u{2028} \u{4E2D}");
    let bytes = wire::Part { media_type: "application/octet-stream".to_owned(), ..wire::Part::raw(FILE.to_vec()) };
    let data = wire::Part::data(json!({"a": null, "b": [false, 0.5, ""], "c": {}}));
    request.message.as_mut().unwrap().parts.extend([bytes, data]);
    let sent = request.message.clone().unwrap().parts;
    let outcome = case.delegate(request).await;
    let Outcome::Completed(task) = outcome else { panic!("{}: {outcome:?}", case.name()) };
    let back = &artifact(&task, "echo").parts;
    let contents = |parts: &[wire::Part]| parts.iter().map(|part| part.content.clone()).collect::<Vec<_>>();
    assert_eq!(contents(back), contents(&sent), "{}", case.name());
}

async fn question_is_no_end_and_its_answer_is_one(case: &Case<'_>) {
    let outcome = case.delegate(say("input")).await;
    let Outcome::NeedsInput { task, question } = outcome else { panic!("{}: {outcome:?}", case.name()) };
    assert_eq!(texts(&question.unwrap().parts), ["what else?"], "{}", case.name());
    // It asks once more, which is not the question that was answered.
    let outcome = case.delegate(answer(&task, "slow 0.05 input")).await;
    let Outcome::NeedsInput { task: again, .. } = outcome else { panic!("{}: {outcome:?}", case.name()) };
    assert_eq!(again.id, task.id);
    assert_ne!(again.status, task.status, "{}", case.name());
    let outcome = case.delegate(answer(&task, "echo here it is")).await;
    let Outcome::Completed(ended) = outcome else { panic!("{}: {outcome:?}", case.name()) };
    assert_eq!((&ended.id, &ended.context_id), (&task.id, &task.context_id), "{}", case.name());
    assert_eq!(texts(&artifact(&ended, "echo").parts), ["echo here it is"], "{}", case.name());
}

async fn authorization_is_no_end_and_the_task_goes_on_by_itself(case: &Case<'_>) {
    let outcome = case.delegate(say("auth echo x")).await;
    let Outcome::NeedsAuthorization { task, explanation } = outcome else {
        panic!("{}: {outcome:?}", case.name());
    };
    assert!(texts(&explanation.unwrap().parts)[0].starts_with("authorization is needed"), "{}", case.name());
    let mut options = FollowOptions::default();
    options.until = Until::Terminal;
    let events = case.rest(case.client.follow(&task.id, options)).await;
    assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{}: {events:?}", case.name());
    assert_eq!(state(&case.task(&task.id).await), Some(TaskState::Completed));
}

async fn agent_that_raises_is_asked_once(case: &Case<'_>) {
    let (log, client) = sends(builder(case.binding), case).await;
    let outcome = client.delegate(say("raise"), WaitOptions::default()).await;
    match (case.sdk, outcome) {
        // The JavaScript SDK makes a task of it, the Python SDK an error: over gRPC of a code that says nothing.
        (Sdk::JavaScript, Ok(Outcome::Failed(_))) => {}
        (Sdk::Python, Err(ClientError::Agent(error))) => {
            let is_grpc = client.binding() == longhaul_client::card::Binding::Grpc;
            assert_eq!(error.code, (!is_grpc).then_some(ErrorCode::Internal), "{}: {error:?}", case.name());
        }
        (_, other) => panic!("{}: {other:?}", case.name()),
    }
    assert_eq!(log.count("SendStreamingMessage"), 1, "{}", case.name());
    let sent = client.send_message(say("raise")).await;
    assert_eq!(sent.is_err(), case.sdk == Sdk::Python, "{}: {sent:?}", case.name());
    assert_eq!(log.count("SendMessage"), 1, "{}", case.name());
}

async fn waiting_no_longer_leaves_the_task_running(case: &Case<'_>) {
    let task = case.begin("slow 600").await;
    let mut options = WaitOptions::default();
    options.timeout = Some(std::time::Duration::from_millis(300));
    let outcome = case.ok("a task that is slow", case.client.wait(&task.id, options).await);
    let Outcome::Running(task) = outcome else { panic!("{}: {outcome:?}", case.name()) };
    assert_eq!(state(&case.task(&task.id).await), Some(TaskState::Working), "{}", case.name());
}
