//! How a delegation to an agent of v0.3 can stand.

use longhaul_client::card::Binding;
use longhaul_client::{Outcome, WaitOptions};
use longhaul_protocol::{Role, TaskState, wire};
use longhaul_tests::peers::FILE;
use longhaul_tests::{PATIENCE, within};
use serde_json::json;

use crate::client_support::{answer, artifact, say, state, texts};
use crate::each;

#[tokio::test]
async fn each_way_in_which_a_task_can_stand_is_told() {
    each(async |case| {
        let outcome = case.delegate(say("echo hello there")).await;
        let Outcome::Completed(task) = outcome else { panic!("{}: {outcome:?}", case.name()) };
        assert_eq!(texts(&artifact(&task, "echo").parts), ["echo hello there"], "{}", case.name());
        assert_eq!(task.history[0].role.known(), Some(Role::User), "{}", case.name());
        // The SDK leaves it out of what it says in protobuf.
        let is_timed = task.status.unwrap().timestamp.is_some();
        assert_eq!(is_timed, case.binding == Binding::JsonRpc, "{}", case.name());

        let outcome = case.delegate(say("fail")).await;
        let Outcome::Failed(task) = outcome else { panic!("{}: {outcome:?}", case.name()) };
        let said = task.status.unwrap().message.unwrap();
        assert_eq!(
            (texts(&said.parts).as_slice(), said.role.known()),
            (["the agent failed"].as_slice(), Some(Role::Agent))
        );

        let outcome = case.delegate(say("reject")).await;
        assert!(matches!(outcome, Outcome::Rejected(_)), "{}: {outcome:?}", case.name());
        let outcome = case.delegate(say("auth")).await;
        let Outcome::NeedsAuthorization { explanation, .. } = outcome else { panic!("{}: {outcome:?}", case.name()) };
        assert!(texts(&explanation.unwrap().parts)[0].starts_with("authorization is needed"), "{}", case.name());
        let outcome = case.delegate(say("msg")).await;
        let Outcome::Answered(message) = outcome else { panic!("{}: {outcome:?}", case.name()) };
        assert_eq!(texts(&message.parts), ["a direct answer"], "{}", case.name());
    })
    .await;
}

#[tokio::test]
async fn question_is_answered_and_the_task_goes_on() {
    each(async |case| {
        let outcome = case.delegate(say("input")).await;
        let Outcome::NeedsInput { task, question } = outcome else { panic!("{}: {outcome:?}", case.name()) };
        assert_eq!(texts(&question.unwrap().parts), ["what else?"], "{}", case.name());
        let outcome = case.delegate(answer(&task, "echo that")).await;
        let Outcome::Completed(done) = outcome else { panic!("{}: {outcome:?}", case.name()) };
        assert_eq!((&done.id, &done.context_id), (&task.id, &task.context_id), "{}", case.name());
        assert_eq!(texts(&artifact(&done, "echo").parts), ["echo that"], "{}", case.name());
    })
    .await;
}

#[tokio::test]
async fn task_that_runs_is_waited_for_by_its_id() {
    each(async |case| {
        let task = case.begin("slow 0.5 chunks 3").await;
        let rest = within(PATIENCE, "the task's rest", case.client.wait(&task.id, WaitOptions::default())).await;
        let outcome = case.ok("wait", rest);
        assert!(matches!(outcome, Outcome::Completed(_)), "{}: {outcome:?}", case.name());
        let outcome = case.ok("outcome", case.client.outcome(&task.id).await);
        let Outcome::Completed(done) = outcome else { panic!("{}: {outcome:?}", case.name()) };
        assert_eq!(artifact(&done, "chunks").parts.len(), 3, "{}", case.name());
    })
    .await;
}

/// Over HTTP+JSON and gRPC the SDK encodes the bytes of a file once more, and reads only those that are text
/// (`docs/migration.md`).
#[tokio::test]
async fn each_kind_of_part_goes_there_and_comes_back() {
    each(async |case| {
        let mut request = say("data file echo these");
        let sent = request.message.as_mut().unwrap();
        let metadata = json!({"key": "value"}).as_object().cloned().map(|map| map.into_iter().collect());
        sent.metadata = metadata;
        sent.parts.push(wire::Part {
            content: Some(wire::PartContent::Raw(b"aGVsbG8=".to_vec().into())),
            filename: "all.bin".to_owned(),
            media_type: "application/octet-stream".to_owned(),
            ..Default::default()
        });
        sent.parts.push(wire::Part {
            content: Some(wire::PartContent::Url("https://example.com/a.png".to_owned())),
            media_type: "image/png".to_owned(),
            ..Default::default()
        });
        let sent = sent.clone();
        let outcome = case.delegate(request).await;
        let Outcome::Completed(task) = outcome else { panic!("{}: {outcome:?}", case.name()) };
        assert_eq!(artifact(&task, "echo").parts, sent.parts, "{}", case.name());
        assert_eq!(task.history[0].metadata, sent.metadata, "{}", case.name());
        let file = &artifact(&task, "file").parts[0];
        let Some(wire::PartContent::Raw(bytes)) = &file.content else { panic!("{}: {file:?}", case.name()) };
        match case.binding {
            Binding::JsonRpc => assert_eq!(bytes[..], FILE),
            Binding::HttpJson | Binding::Grpc => assert!(bytes.starts_with(b"AAECAwQF") && bytes.len() == 344),
        }
        assert_eq!((file.filename.as_str(), file.media_type.as_str()), ("bytes.bin", "application/octet-stream"));
        let data = longhaul_protocol::to_json(&artifact(&task, "data").parts[0]);
        let data: serde_json::Value = serde_json::from_slice(&data).unwrap();
        // Protobuf has no integers in JSON.
        assert_eq!(data["data"]["list"][0].as_f64(), Some(1.0), "{}: {data}", case.name());
        assert_eq!(data["data"]["list"][1], 2.5, "{}: {data}", case.name());
        assert_eq!((&data["data"]["nothing"], &data["data"]["yes"]), (&json!(null), &json!(true)), "{}", case.name());
    })
    .await;
}

#[tokio::test]
async fn send_waits_for_the_task_or_does_not() {
    each(async |case| {
        let begun = case.begin("slow 0.5 echo x").await;
        assert!(matches!(state(&begun), Some(TaskState::Submitted | TaskState::Working)), "{}: {begun:?}", case.name());
        let sent = case.ok("a send", case.client.send_message(say("slow 0.5 echo x")).await);
        let Some(wire::SendMessageResponsePayload::Task(task)) = sent.payload else { panic!("{}", case.name()) };
        assert_eq!(state(&task), Some(TaskState::Completed), "{}", case.name());
    })
    .await;
}
