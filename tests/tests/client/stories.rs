//! What a follower was told, compared with what the server has.

use std::net::SocketAddr;
use std::time::Duration;

use longhaul_client::follow::{Event, FollowOptions};
use longhaul_client::{Client, ClientBuilder, ClientError, RetryPolicy};
use longhaul_protocol::{to_json, wire};
use longhaul_tests::task::{assert_numbered, fold, text_of};
use longhaul_tests::{Binding, Call, Client as Harness, Event as Told, Operation, within};
use serde_json::{Value, json};

use crate::support::{builder, get};

/// How long one stream may take.
const STORY_MAX: Duration = Duration::from_secs(90);

/// The events of one stream.
#[derive(Debug)]
pub struct Story {
    pub events: Vec<Event>,
}

/// A client that does not wait long before it tries again, and often.
pub fn hasty(binding: longhaul_client::card::Binding) -> ClientBuilder {
    let mut policy = RetryPolicy::default();
    policy.attempts_max = 30;
    policy.backoff_min = Duration::from_millis(2);
    policy.backoff_max = Duration::from_millis(100);
    builder(binding).retry(policy)
}

/// Polls often, for the same reason.
pub fn options() -> FollowOptions {
    let mut options = FollowOptions::default();
    options.poll_interval = Duration::from_millis(50);
    options.poll_interval_max = Duration::from_millis(200);
    options
}

/// Sends the message, and follows what comes of it to its end.
pub async fn tell(client: &Client, request: wire::SendMessageRequest) -> Story {
    let events = client.send_streaming_message(request, options()).unwrap();
    let told = within(STORY_MAX, "the end of a stream", collect(events)).await;
    told.unwrap_or_else(|(error, events)| panic!("after {} events: {error:?}", events.len()))
}

/// The same; none when it is not known whether the message arrived.
pub async fn try_to_tell(client: &Client, request: wire::SendMessageRequest) -> Option<Story> {
    let events = client.send_streaming_message(request, options()).unwrap();
    match within(STORY_MAX, "the end of a stream", collect(events)).await {
        Ok(story) => Some(story),
        Err((ClientError::Broken { .. } | ClientError::Connect { .. }, events)) if events.is_empty() => None,
        Err((error, events)) => panic!("after {} events: {error:?}", events.len()),
    }
}

/// All events up to the end, or to the error.
pub async fn collect(mut stream: longhaul_client::follow::EventStream) -> Result<Story, (ClientError, Vec<Event>)> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return Err((error, events)),
        }
    }
    Ok(Story { events })
}

/// The payload as JSON.
pub fn shown(event: &Event) -> Value {
    serde_json::from_slice(&to_json(&event.payload)).unwrap()
}

impl Story {
    /// As the harness tells it.
    fn told(&self) -> Vec<Told> {
        let told = |event: &Event| Told {
            sequence: event.id.as_deref().map(|id| id.parse().unwrap()),
            data: shown(event),
            text: String::new(),
        };
        self.events.iter().map(told).collect()
    }

    pub fn task_id(&self) -> String {
        shown(&self.events[0])["task"]["id"].as_str().expect("the first event is the task").to_owned()
    }

    /// Checks that these are the events of the task's log from one on, each once and unchanged, to its end, before which the
    /// first event shows all. Gives how many the log has.
    pub async fn assert_is_the_log(&self, server: SocketAddr) -> usize {
        let told = self.told();
        let id = self.task_id();
        let mut harness = Harness::new(Binding::HttpJson, server);
        let call = Call::new(Operation::SubscribeToTask, json!({"id": id})).after(1);
        let log = harness.follow(&call).await.rest().await;
        assert_numbered(&log, 1);
        let first = told[0].sequence.expect("our server numbers its events");
        assert_numbered(&told, first);
        let from = usize::try_from(first).unwrap();
        assert_eq!(told[0].data["task"], fold(&log[..from]));
        let content = |events: &[Told]| events.iter().map(|event| event.data.clone()).collect::<Vec<_>>();
        assert_eq!(content(&told[1..]), content(&log[from..]), "{id}");
        self.assert_folds_to_the_task(server).await;
        log.len()
    }

    /// Checks that they add up to the task as our server has it.
    pub async fn assert_folds_to_the_task(&self, server: SocketAddr) {
        let mut harness = Harness::new(Binding::HttpJson, server);
        let task = harness.ask(Operation::GetTask, json!({"id": self.task_id()})).await;
        self.assert_folds(&task);
        let said = |task: &Value| -> Vec<Value> {
            let before = task["history"].as_array().into_iter().flatten().chain(task["status"].get("message"));
            before
                .filter(|message| message["role"] == "ROLE_AGENT")
                .map(|message| message["messageId"].clone())
                .collect()
        };
        assert_eq!(said(&fold(&self.told())), said(&task), "each message of the agent once, in order");
    }

    /// Checks that they add up to the task as the agent has it.
    pub async fn assert_folds_to(&self, client: &Client) {
        let task = loop {
            match client.get_task(get(&self.task_id())).await {
                Ok(task) => break task,
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        };
        self.assert_folds(&serde_json::from_slice(&to_json(&task)).unwrap());
    }

    fn assert_folds(&self, task: &Value) {
        let folded = fold(&self.told());
        assert_eq!(text_of(&folded), text_of(task), "{folded:#}\n{task:#}");
        assert_eq!(folded["status"]["state"], task["status"]["state"]);
        let ids = |task: &Value| -> Vec<Value> {
            task["artifacts"].as_array().into_iter().flatten().map(|artifact| artifact["artifactId"].clone()).collect()
        };
        assert_eq!(ids(&folded), ids(task));
    }
}

/// Checks how many tasks a server has.
pub async fn assert_tasks(server: SocketAddr, expected: usize) {
    let mut harness = Harness::new(Binding::HttpJson, server);
    let page = harness.ask(Operation::ListTasks, json!({"pageSize": 1})).await;
    assert_eq!(page["totalSize"], json!(expected));
}
