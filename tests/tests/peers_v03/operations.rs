//! Every operation that v0.3 has, and what is said of those that it has not.

use longhaul_client::card::Binding;
use longhaul_client::{ClientError, Outcome};
use longhaul_protocol::{ErrorCode, TaskState, wire};
use longhaul_tests::hostile::Script;
use longhaul_tests::{Hostile, PATIENCE, until};

use crate::client_support::{answer, cancel, get, say, state};
use crate::each;

#[tokio::test]
async fn task_is_got_with_as_much_history_as_asked_for() {
    each(async |case| {
        let Outcome::NeedsInput { task, .. } = case.delegate(say("input")).await else { panic!("{}", case.name()) };
        let outcome = case.delegate(answer(&task, "echo it")).await;
        assert!(matches!(outcome, Outcome::Completed(_)), "{}: {outcome:?}", case.name());
        let all = case.task(&task.id).await;
        assert!(all.history.len() > 1, "{}: {all:?}", case.name());
        for length in [0, 1] {
            let request = wire::GetTaskRequest { history_length: Some(length), ..get(&task.id) };
            let short = case.ok("GetTask", case.client.get_task(request).await);
            let length = usize::try_from(length).unwrap();
            assert_eq!(short.history, all.history[all.history.len() - length..], "{}", case.name());
        }
    })
    .await;
}

/// Servers of v0.3 take a length of 0 for all.
#[tokio::test]
async fn send_that_asks_for_no_history_gets_none() {
    each(async |case| {
        let mut request = say("echo x");
        request.configuration.get_or_insert_default().history_length = Some(0);
        let sent = case.ok("a send", case.client.send_message(request.clone()).await);
        let Some(wire::SendMessageResponsePayload::Task(task)) = sent.payload else { panic!("{}", case.name()) };
        assert!(task.history.is_empty(), "{}: {task:?}", case.name());
        assert!(!case.task(&task.id).await.history.is_empty(), "{}", case.name());
        let stream = case.client.send_streaming_message(request, Default::default());
        let events = case.rest(case.ok("a stream", stream)).await;
        let Some(wire::StreamResponsePayload::Task(first)) = &events[0].payload.payload else { panic!("{events:?}") };
        assert!(first.history.is_empty(), "{}: {first:?}", case.name());
    })
    .await;
}

#[tokio::test]
async fn task_is_canceled() {
    each(async |case| {
        let task = case.begin("slow 600").await;
        let canceled = case.ok("cancel", case.client.cancel_task(cancel(&task.id)).await);
        assert_eq!((&canceled.id, state(&canceled)), (&task.id, Some(TaskState::Canceled)), "{}", case.name());
    })
    .await;
}

#[tokio::test]
async fn what_v0_3_does_not_have_is_not_offered() {
    each(async |case| {
        let listed = case.client.list_tasks(wire::ListTasksRequest::default()).await.map(|_| ());
        let versions = wire::ListArtifactVersionsRequest::default();
        let versions = case.client.list_artifact_versions(versions).await.map(|_| ());
        let got = case.client.get_artifact(wire::GetArtifactRequest::default()).await.map(|_| ());
        for (name, answer) in [("ListTasks", listed), ("ListArtifactVersions", versions), ("GetArtifact", got)] {
            let Err(error @ ClientError::NotOffered { .. }) = answer else { panic!("{}: {answer:?}", case.name()) };
            let wanted = format!("{name}, which the version 0.3 that it speaks does not have");
            assert!(error.to_string().contains(&wanted), "{}: {error}", case.name());
        }
    })
    .await;
}

const URL: &str = "http://127.0.0.1:9/hook";

fn config(task_id: &str, id: &str) -> wire::TaskPushNotificationConfig {
    wire::TaskPushNotificationConfig {
        task_id: task_id.to_owned(),
        id: id.to_owned(),
        url: URL.to_owned(),
        token: "a-token".to_owned(),
        authentication: Some(wire::AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: "secret".to_owned(),
        }),
        ..Default::default()
    }
}

/// The SDK lists and deletes over JSON-RPC only.
#[tokio::test]
async fn push_configs_are_created_got_listed_and_deleted() {
    each(async |case| {
        let task = case.begin("slow 600").await;
        let made = case.ok("create", case.client.create_push_config(config(&task.id, "one")).await);
        assert_eq!(made, config(&task.id, "one"), "{}", case.name());
        let one = wire::GetTaskPushNotificationConfigRequest {
            task_id: task.id.clone(),
            id: "one".to_owned(),
            ..Default::default()
        };
        let got = case.ok("get", case.client.get_push_config(one.clone()).await);
        assert_eq!(got, made, "{}", case.name());
        let all = wire::ListTaskPushNotificationConfigsRequest { task_id: task.id.clone(), ..Default::default() };
        let listed = case.client.list_push_configs(all.clone()).await;
        let delete = wire::DeleteTaskPushNotificationConfigRequest {
            task_id: task.id.clone(),
            id: "one".to_owned(),
            ..Default::default()
        };
        let deleted = case.client.delete_push_config(delete).await;
        match case.binding {
            Binding::JsonRpc => {
                assert_eq!(case.ok("list", listed).configs, [made], "{}", case.name());
                case.ok("delete", deleted);
                assert!(case.ok("list", case.client.list_push_configs(all).await).configs.is_empty());
            }
            Binding::HttpJson => {
                assert_eq!(case.refusal("list", listed).code, Some(ErrorCode::Internal));
                assert!(matches!(deleted, Err(ClientError::Http { status: 404 | 405, .. })), "{deleted:?}");
            }
            Binding::Grpc => {
                assert_eq!(case.refusal("list", listed).code, Some(ErrorCode::UnsupportedOperation));
                assert_eq!(case.refusal("delete", deleted).code, Some(ErrorCode::UnsupportedOperation));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn config_that_goes_with_the_message_is_told_of_the_task() {
    each(async |case| {
        let hook = Hostile::start(|_| Script::whole(200, &[], "")).await;
        let mut request = say("slow 0.1 echo");
        let config = wire::TaskPushNotificationConfig { url: format!("{}/hook", hook.url()), ..config("", "mine") };
        request.configuration.get_or_insert_default().task_push_notification_config = Some(config);
        let outcome = case.delegate(request).await;
        assert!(matches!(outcome, Outcome::Completed(_)), "{}: {outcome:?}", case.name());
        let told = until(PATIENCE, "the end is told", async || {
            hook.asked().into_iter().find(|asked| asked.json()["status"]["state"] == "completed")
        })
        .await;
        assert_eq!(told.header("x-a2a-notification-token"), Some("a-token"), "{}", case.name());
    })
    .await;
}

#[tokio::test]
async fn extended_card_is_read_in_the_form_of_v1_0() {
    each(async |case| {
        let card = case.ok("the extended card", case.client.get_extended_agent_card().await);
        let skills: Vec<&str> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
        assert_eq!(skills, ["words", "more"], "{}", case.name());
        assert_eq!(card.supported_interfaces, case.client.card().supported_interfaces, "{}", case.name());
    })
    .await;
}
