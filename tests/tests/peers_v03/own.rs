//! Our client at our own server by v0.3: every operation, and streams that are subscribed to again, since the server numbers
//! events in v0.3 as well.

use std::sync::Arc;

use longhaul_client::card::{Binding, Preference, ProtocolVersion};
use longhaul_client::follow::FollowOptions;
use longhaul_client::{Client, ClientBuilder, ClientError, Outcome, WaitOptions};
use longhaul_protocol::{ErrorCode, TaskState, wire};
use longhaul_tests::{FaultProxy, Launch, LinkFault, PATIENCE, Server, Store, within};

use crate::client_support::{Counter, answer, artifact, builder, cancel, chunks, get, say, state, states, texts, told};

/// A builder of clients that speak nothing but v0.3.
fn only_old(binding: Binding) -> ClientBuilder {
    builder(binding).preference(Preference { bindings: vec![binding], versions: vec![ProtocolVersion::V0_3] })
}

async fn connect(builder: ClientBuilder, binding: Binding, url: &str) -> Client {
    let client = builder.connect(url).await.unwrap();
    assert_eq!((client.binding(), client.interface().version), (binding, ProtocolVersion::V0_3));
    client
}

/// A client over each binding.
async fn clients(server: &Server) -> Vec<Client> {
    let mut clients = Vec::new();
    for binding in Binding::ALL {
        clients.push(connect(only_old(binding), binding, &format!("http://{}", server.addr())).await);
    }
    clients
}

async fn delegate(client: &Client, request: wire::SendMessageRequest) -> Outcome {
    within(PATIENCE, "the task's rest", client.delegate(request, WaitOptions::default())).await.unwrap()
}

#[tokio::test]
async fn agent_of_both_versions_is_called_by_the_one_that_is_allowed() {
    let server = Server::start(Store::Memory).await;
    for client in clients(&server).await {
        let name = client.binding().to_string();
        let Outcome::NeedsInput { task, .. } = delegate(&client, say("input")).await else { panic!("{name}") };
        let done = delegate(&client, answer(&task, "echo more")).await;
        let Outcome::Completed(done) = done else { panic!("{name}: {done:?}") };
        assert_eq!(texts(&artifact(&done, "echo").parts), ["echo more"], "{name}");
        for length in [0, 1] {
            let request = wire::GetTaskRequest { history_length: Some(length), ..get(&task.id) };
            let short = client.get_task(request).await.unwrap();
            assert_eq!(short.history.len(), usize::try_from(length).unwrap(), "{name}");
        }
        let refused = client.cancel_task(cancel(&task.id)).await.unwrap_err();
        assert_eq!(refused.code(), Some(ErrorCode::TaskNotCancelable), "{name}: {refused:?}");
        let refused = client.get_task(get("nobody")).await.unwrap_err();
        assert_eq!(refused.code(), Some(ErrorCode::TaskNotFound), "{name}: {refused:?}");
        let refused = client.list_tasks(wire::ListTasksRequest::default()).await.unwrap_err();
        assert!(matches!(refused, ClientError::NotOffered { .. }), "{name}: {refused:?}");
        let rejected = delegate(&client, say("reject")).await;
        assert!(matches!(rejected, Outcome::Rejected(_)), "{name}: {rejected:?}");
        let waits = delegate(&client, say("auth")).await;
        assert!(matches!(waits, Outcome::NeedsAuthorization { .. }), "{name}: {waits:?}");
    }
}

#[tokio::test]
async fn push_configs_are_created_got_listed_and_deleted() {
    let config = "push.allow = [\"127.0.0.1\"]\npush.allow_http = true";
    let server = Server::launch(Launch { config: config.to_owned(), ..Launch::new(Store::Memory) }).await;
    for client in clients(&server).await {
        let name = client.binding().to_string();
        let mut request = say("slow 600");
        request.configuration.get_or_insert_default().return_immediately = true;
        let begun = client.send_message(request).await.unwrap();
        let Some(wire::SendMessageResponsePayload::Task(task)) = begun.payload else { panic!("{name}") };
        let config = |id: &str| wire::TaskPushNotificationConfig {
            task_id: task.id.clone(),
            id: id.to_owned(),
            url: "http://127.0.0.1:9/hook".to_owned(),
            token: "a-token".to_owned(),
            ..Default::default()
        };
        for id in ["one", "two"] {
            let made = client.create_push_config(config(id)).await.unwrap();
            assert_eq!((made.id.as_str(), &made.task_id), (id, &task.id), "{name}");
        }
        let (task_id, id) = (task.id.clone(), "one".to_owned());
        let one = wire::GetTaskPushNotificationConfigRequest { task_id, id, ..Default::default() };
        let got = client.get_push_config(one.clone()).await.unwrap();
        assert_eq!((got.id.as_str(), got.url.as_str()), ("one", "http://127.0.0.1:9/hook"), "{name}");
        let all = wire::ListTaskPushNotificationConfigsRequest { task_id: task.id.clone(), ..Default::default() };
        assert_eq!(client.list_push_configs(all.clone()).await.unwrap().configs.len(), 2, "{name}");
        let (task_id, id) = (task.id.clone(), "one".to_owned());
        let delete = wire::DeleteTaskPushNotificationConfigRequest { task_id, id, ..Default::default() };
        client.delete_push_config(delete).await.unwrap();
        assert_eq!(client.list_push_configs(all).await.unwrap().configs[0].id, "two", "{name}");
        let gone = client.get_push_config(one).await.unwrap_err();
        assert_eq!(gone.code(), Some(ErrorCode::TaskNotFound), "{name}: {gone:?}");
        let canceled = client.cancel_task(cancel(&task.id)).await.unwrap();
        assert_eq!(state(&canceled), Some(TaskState::Canceled), "{name}");
    }
}

#[tokio::test]
async fn stream_that_is_cut_is_subscribed_to_again_behind_the_last_event() {
    const CHUNKS: usize = 300;
    for binding in Binding::ALL {
        let proxy = FaultProxy::start(|asked| match asked.path().starts_with("/.well-known/") {
            true => LinkFault::None,
            false => LinkFault::CutAfter(20_000),
        })
        .await;
        let args = vec!["--public-url".to_owned(), format!("http://{}", proxy.addr())];
        let server = Server::launch(Launch { args, ..Launch::new(Store::Memory) }).await;
        proxy.aim(server.addr());
        let log = Arc::new(Counter::default());
        let url = format!("http://{}", proxy.addr());
        let client = connect(only_old(binding).wire_log(log.clone()), binding, &url).await;
        let text = format!("slow 0.2 chunks {CHUNKS}");
        let mut stream = client.send_streaming_message(say(&text), FollowOptions::default()).unwrap();
        let mut events = Vec::new();
        while let Some(event) = within(PATIENCE, "the next event", stream.next()).await {
            events.push(event.unwrap());
        }
        assert_eq!(told(&events, "chunks"), chunks(CHUNKS), "{binding}");
        assert_eq!(states(&events).last(), Some(&TaskState::Completed), "{binding}");
        let numbers: Vec<u64> = events.iter().map(|event| event.id.as_ref().unwrap().parse().unwrap()).collect();
        let last = u64::try_from(numbers.len()).unwrap();
        assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "{binding}");
        assert!(proxy.faults() > 0 && log.count("SubscribeToTask") > 0, "{binding}: {} faults", proxy.faults());
        assert_eq!(log.count("GetTask"), 0, "{binding}");
    }
}
