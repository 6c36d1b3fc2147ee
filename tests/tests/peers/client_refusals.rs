//! What other people's servers refuse, typed the same over each binding.

use longhaul_client::card::{Binding, CardDocument, CardOrigin, ProtocolVersion};
use longhaul_client::follow::FollowOptions;
use longhaul_client::{Client, ClientError, FoundCard, Outcome, WaitOptions};
use longhaul_protocol::{ErrorCode, wire};
use longhaul_tests::{PATIENCE, Sdk, within};
use serde_json::Value;

use crate::client_support::{Case, answer, artifact, builder, cancel, each, get, prefer, say, texts};

/// One pair of servers for all of them: starting one takes longer than asking it.
#[tokio::test]
async fn what_is_refused_is_refused_by_name() {
    each(async |case| {
        task_that_nobody_knows_is_not_found_by_any_operation(case).await;
        message_to_an_ended_task_is_refused(case).await;
        page_that_no_list_has_is_an_invalid_argument(case).await;
        message_without_parts_is_refused_by_name_where_the_server_looks(case).await;
        large_message_is_taken_or_refused_with_its_status(case).await;
        version_that_the_server_does_not_speak_is_refused(case).await;
        tenant_of_the_card_is_in_each_request(case).await;
    })
    .await;
}

async fn task_that_nobody_knows_is_not_found_by_any_operation(case: &Case<'_>) {
    let client = &case.client;
    let nobody = wire::Task { id: "nobody".to_owned(), ..Default::default() };
    let config = wire::TaskPushNotificationConfig {
        task_id: "nobody".to_owned(),
        id: "c".to_owned(),
        url: "http://127.0.0.1:9/hook".to_owned(),
        ..Default::default()
    };
    let configs = wire::ListTaskPushNotificationConfigsRequest { task_id: "nobody".to_owned(), ..Default::default() };
    let mut followed = client.follow("nobody", FollowOptions::default());
    let followed = within(PATIENCE, "a refusal", followed.next()).await.unwrap();
    let refusals = [
        case.refusal("GetTask", client.get_task(get("nobody")).await),
        case.refusal("CancelTask", client.cancel_task(cancel("nobody")).await),
        case.refusal("SendMessage", client.send_message(answer(&nobody, "hello")).await),
        case.refusal("a delegation", client.delegate(answer(&nobody, "hello"), WaitOptions::default()).await),
        case.refusal("SubscribeToTask", followed),
        case.refusal("a config", client.create_push_config(config).await),
        case.refusal("configs", client.list_push_configs(configs).await),
    ];
    for error in refusals {
        assert_eq!(error.code, Some(ErrorCode::TaskNotFound), "{}: {error:?}", case.name());
        assert_eq!(error.name(), "TaskNotFoundError");
    }
}

async fn message_to_an_ended_task_is_refused(case: &Case<'_>) {
    for text in ["echo x", "fail", "reject"] {
        let outcome = case.delegate(say(text)).await;
        let task = outcome.task().unwrap().clone();
        let sent = case.client.send_message(answer(&task, "more")).await;
        let delegated = case.client.delegate(answer(&task, "more"), WaitOptions::default()).await;
        for error in [case.refusal(text, sent), case.refusal(text, delegated)] {
            assert_eq!(error.code, Some(ErrorCode::UnsupportedOperation), "{} {text}: {error:?}", case.name());
        }
        assert_eq!(case.task(&task.id).await.status, task.status, "{}", case.name());
    }
}

async fn page_that_no_list_has_is_an_invalid_argument(case: &Case<'_>) {
    let sized = |size| wire::ListTasksRequest { page_size: Some(size), ..Default::default() };
    let strange = wire::ListTasksRequest { page_token: "of another server".to_owned(), ..Default::default() };
    for request in [sized(0), sized(101), sized(-1), strange] {
        let error = case.refusal("ListTasks", case.client.list_tasks(request.clone()).await);
        assert_eq!(error.code, Some(ErrorCode::InvalidArgument), "{} {request:?}: {error:?}", case.name());
    }
}

async fn message_without_parts_is_refused_by_name_where_the_server_looks(case: &Case<'_>) {
    let mut request = say("");
    request.message.as_mut().unwrap().parts.clear();
    let answer = case.client.send_message(request).await;
    if case.sdk == Sdk::JavaScript {
        // It takes such messages.
        case.ok("a message without parts", answer);
        return;
    }
    let error = case.refusal("a message without parts", answer);
    assert_eq!(error.code, Some(ErrorCode::InvalidArgument), "{}: {error:?}", case.name());
    assert_eq!(error.error.violations[0].field, "message.parts", "{}: {error:?}", case.name());
}

async fn large_message_is_taken_or_refused_with_its_status(case: &Case<'_>) {
    let text = "x".repeat(4_500_000);
    let sent = case.client.delegate(say(&format!("echo {text}")), WaitOptions::default()).await;
    match (case.sdk, case.binding, sent) {
        // Something before the agent refuses it, in HTML.
        (Sdk::JavaScript, Binding::JsonRpc | Binding::HttpJson, Err(ClientError::Http { status: 413, .. })) => {}
        (Sdk::Python, _, Ok(Outcome::Completed(task))) | (_, Binding::Grpc, Ok(Outcome::Completed(task))) => {
            let back = texts(&artifact(&task, "echo").parts)[0].len();
            assert_eq!(back, "echo ".len() + text.len(), "{}", case.name());
        }
        (_, _, other) => panic!("{}: {other:?}", case.name()),
    }
}

/// A client by the peer's card, with something changed in each interface.
fn by_changed_card(case: &Case<'_>, version: ProtocolVersion, change: impl Fn(&mut Value)) -> Client {
    let mut card = case.peer.card().clone();
    card["supportedInterfaces"].as_array_mut().unwrap().iter_mut().for_each(change);
    let url = case.peer.card_url();
    let document = CardDocument::parse(card.to_string().as_bytes(), &url).unwrap().into();
    let found = FoundCard { document, origin: CardOrigin::url(&url).unwrap() };
    let mut preference = prefer(case.binding);
    preference.versions = vec![version];
    let client = builder(case.binding).preference(preference).with_card(found).unwrap();
    assert_eq!((client.binding(), client.interface().version), (case.binding, version));
    client
}

async fn version_that_the_server_does_not_speak_is_refused(case: &Case<'_>) {
    let version: ProtocolVersion = "9.9".parse().unwrap();
    let client = by_changed_card(case, version, |interface| interface["protocolVersion"] = "9.9".into());
    let delegated = client.delegate(say("echo x"), WaitOptions::default()).await;
    if case.sdk == Sdk::Python && case.binding == Binding::Grpc {
        // It looks at the version in the other two bindings only.
        assert!(matches!(delegated, Ok(Outcome::Completed(_))), "{}: {delegated:?}", case.name());
        return;
    }
    for error in [
        case.refusal("SendMessage", client.send_message(say("echo x")).await),
        case.refusal("GetTask", client.get_task(get("nobody")).await),
        case.refusal("a stream", delegated),
    ] {
        assert_eq!(error.code, Some(ErrorCode::VersionNotSupported), "{}: {error:?}", case.name());
    }
}

async fn tenant_of_the_card_is_in_each_request(case: &Case<'_>) {
    let version = ProtocolVersion::V1_0;
    let client = by_changed_card(case, version, |interface| interface["tenant"] = "a-tenant".into());
    let outcome = client.delegate(say("chunks 3"), WaitOptions::default()).await;
    if case.sdk == Sdk::Python && case.binding == Binding::HttpJson {
        // It has the tenant before the prefix of its routes, and no client that follows the specification gets there.
        assert!(matches!(outcome, Err(ClientError::Http { status: 404, .. })), "{}: {outcome:?}", case.name());
        return;
    }
    let outcome = case.ok("a delegation", outcome);
    let Outcome::Completed(task) = outcome else { panic!("{}: {outcome:?}", case.name()) };
    let got = case.ok("GetTask", client.get_task(get(&task.id)).await);
    assert_eq!(got.id, task.id, "{}", case.name());
    let page = case.ok("ListTasks", client.list_tasks(wire::ListTasksRequest::default()).await);
    assert!(page.tasks.iter().any(|listed| listed.id == task.id), "{}", case.name());
}
