//! Push configs and extended cards of other people's servers.

use longhaul_protocol::{ErrorCode, wire};
use longhaul_tests::hostile::Script;
use longhaul_tests::task::state_of;
use longhaul_tests::{Hostile, PATIENCE, until};

use crate::client_support::{Case, each, say};

const URL: &str = "http://127.0.0.1:9/hook";

fn config(task_id: &str, id: &str) -> wire::TaskPushNotificationConfig {
    wire::TaskPushNotificationConfig {
        task_id: task_id.to_owned(),
        id: id.to_owned(),
        url: URL.to_owned(),
        token: "a-token".to_owned(),
        ..Default::default()
    }
}

fn named(task_id: &str, id: &str) -> wire::GetTaskPushNotificationConfigRequest {
    wire::GetTaskPushNotificationConfigRequest { task_id: task_id.to_owned(), id: id.to_owned(), ..Default::default() }
}

fn delete(task_id: &str, id: &str) -> wire::DeleteTaskPushNotificationConfigRequest {
    wire::DeleteTaskPushNotificationConfigRequest {
        task_id: task_id.to_owned(),
        id: id.to_owned(),
        ..Default::default()
    }
}

async fn ids(case: &Case<'_>, task_id: &str) -> Vec<String> {
    let all = wire::ListTaskPushNotificationConfigsRequest { task_id: task_id.to_owned(), ..Default::default() };
    let page = case.ok("a list", case.client.list_push_configs(all).await);
    let mut ids: Vec<String> = page.configs.into_iter().map(|config| config.id).collect();
    ids.sort_unstable();
    ids
}

/// One pair of servers for all of them: starting one takes longer than asking it.
#[tokio::test]
async fn push_configs_and_extended_cards() {
    each(async |case| {
        configs_are_created_got_listed_and_deleted_twice(case).await;
        config_that_goes_with_the_message_is_told_of_the_end(case).await;
        extended_card_has_a_skill_more(case).await;
    })
    .await;
}

async fn configs_are_created_got_listed_and_deleted_twice(case: &Case<'_>) {
    let task = case.begin("slow 600").await;
    for id in ["one", "two"] {
        let made = case.ok("create", case.client.create_push_config(config(&task.id, id)).await);
        assert_eq!((made.id.as_str(), &made.task_id), (id, &task.id), "{}", case.name());
    }
    let got = case.ok("get", case.client.get_push_config(named(&task.id, "one")).await);
    assert_eq!((got.id.as_str(), got.url.as_str()), ("one", URL), "{}", case.name());
    assert_eq!(ids(case, &task.id).await, ["one", "two"], "{}", case.name());
    for _ in 0..2 {
        case.ok("delete", case.client.delete_push_config(delete(&task.id, "one")).await);
        assert_eq!(ids(case, &task.id).await, ["two"], "{}", case.name());
    }
    let gone = case.refusal("get", case.client.get_push_config(named(&task.id, "one")).await);
    assert_eq!(gone.code, Some(ErrorCode::TaskNotFound), "{}: {gone:?}", case.name());
}

async fn config_that_goes_with_the_message_is_told_of_the_end(case: &Case<'_>) {
    let hook = Hostile::start(|_| Script::whole(200, &[], "")).await;
    let mut request = say("slow 0.1 echo");
    let config = wire::TaskPushNotificationConfig { url: format!("{}/hook", hook.url()), ..config("", "mine") };
    request.configuration.get_or_insert_default().task_push_notification_config = Some(config);
    let outcome = case.delegate(request).await;
    let task = outcome.task().unwrap();
    assert_eq!(ids(case, &task.id).await, ["mine"], "{}", case.name());
    let told = until(PATIENCE, "the end is told", async || {
        hook.asked().into_iter().find(|asked| state_of(&asked.json()) == "COMPLETED")
    })
    .await;
    assert_eq!(told.header("x-a2a-notification-token"), Some("a-token"), "{}", case.name());
}

async fn extended_card_has_a_skill_more(case: &Case<'_>) {
    let card = case.ok("the extended card", case.client.get_extended_agent_card().await);
    let skills = |card: &wire::AgentCard| card.skills.iter().map(|skill| skill.id.clone()).collect::<Vec<_>>();
    assert_eq!(skills(&card), ["words", "more"], "{}", case.name());
    assert_eq!(skills(case.client.card()), ["words"], "{}", case.name());
    assert_eq!(card.supported_interfaces, case.client.card().supported_interfaces, "{}", case.name());
}
