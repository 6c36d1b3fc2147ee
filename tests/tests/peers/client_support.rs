//! How our client reaches other people's servers.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_client::card::{Binding, Preference};
use longhaul_client::follow::{Event, EventStream, FollowOptions};
use longhaul_client::{
    AgentError, Client, ClientBuilder, ClientError, Outcome, RetryPolicy, WaitOptions, WireEvent, WireLog,
};
use longhaul_protocol::{Role, TaskState, wire};
use longhaul_tests::{PATIENCE, Peer, Sdk, within};
use wire::{SendMessageResponsePayload, StreamResponsePayload};

/// A builder that takes this binding, and does not wait long before it tries again.
pub fn builder(binding: Binding) -> ClientBuilder {
    let mut retry = RetryPolicy::default();
    retry.backoff_min = Duration::from_millis(5);
    retry.backoff_max = Duration::from_millis(50);
    Client::builder().preference(prefer(binding)).retry(retry).timeout(PATIENCE).blocking_timeout(PATIENCE)
}

/// This binding before the others.
pub fn prefer(binding: Binding) -> Preference {
    Preference { bindings: vec![binding], ..Preference::default() }
}

/// A client by the peer's own card.
pub async fn connect(binding: Binding, peer: &Peer) -> Client {
    connect_by(builder(binding), binding, peer).await
}

/// The same with a builder of the test's own.
pub async fn connect_by(builder: ClientBuilder, binding: Binding, peer: &Peer) -> Client {
    let client = builder.connect(&peer.card_url()).await.unwrap();
    assert_eq!(client.binding(), binding);
    client
}

/// One of our clients at one of their servers, and what tells it from the others.
pub struct Case<'a> {
    pub peer: &'a Peer,
    pub sdk: Sdk,
    pub binding: Binding,
    pub client: Client,
}

/// Runs a test against each SDK over each binding, all at once.
pub async fn each(test: impl AsyncFn(&Case<'_>)) {
    let [python, js] = Sdk::ALL;
    tokio::join!(over_each(python, &test), over_each(js, &test));
}

/// Runs a test against one SDK over each binding.
async fn over_each(sdk: Sdk, test: &impl AsyncFn(&Case<'_>)) {
    let peer = &Peer::start(sdk).await;
    let over = async |binding| {
        let client = connect(binding, peer).await;
        test(&Case { peer, sdk, binding, client }).await;
    };
    tokio::join!(over(Binding::JsonRpc), over(Binding::HttpJson), over(Binding::Grpc));
}

impl Case<'_> {
    /// What a failure names.
    pub fn name(&self) -> String {
        format!("{:?} {}", self.sdk, self.binding)
    }

    /// What came of it.
    pub fn ok<T>(&self, what: &str, result: Result<T, ClientError>) -> T {
        result.unwrap_or_else(|error| panic!("{}: {what}: {error:?}", self.name()))
    }

    /// The error that the agent answered with.
    pub fn refusal<T: Debug>(&self, what: &str, result: Result<T, ClientError>) -> AgentError {
        match result {
            Err(ClientError::Agent(error)) => error,
            other => panic!("{}: {what}: {other:?}", self.name()),
        }
    }

    /// Delegates, and waits until the task rests.
    pub async fn delegate(&self, request: wire::SendMessageRequest) -> Outcome {
        let what = format!("{request:?}");
        let rest = within(PATIENCE, &what, self.client.delegate(request, WaitOptions::default())).await;
        self.ok(&what, rest)
    }

    /// Begins a task, and does not wait for it.
    pub async fn begin(&self, text: &str) -> wire::Task {
        let mut request = say(text);
        request.configuration.get_or_insert_default().return_immediately = true;
        match self.ok(text, self.client.send_message(request).await).payload {
            Some(SendMessageResponsePayload::Task(task)) => task,
            other => panic!("{}: {text}: {other:?}", self.name()),
        }
    }

    /// A task as it stands.
    pub async fn task(&self, id: &str) -> wire::Task {
        self.ok("GetTask", self.client.get_task(get(id)).await)
    }

    /// All events of a task that is begun by this text.
    pub async fn events(&self, text: &str) -> Vec<Event> {
        let stream = self.client.send_streaming_message(say(text), FollowOptions::default());
        self.rest(self.ok(text, stream)).await
    }

    /// The events that are left, to the end.
    pub async fn rest(&self, mut stream: EventStream) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = within(PATIENCE, "the next event", stream.next()).await {
            events.push(self.ok(&format!("an event behind {events:?}"), event));
        }
        events
    }
}

/// A message of one text.
pub fn say(text: &str) -> wire::SendMessageRequest {
    let message = wire::Message { role: Role::User.into(), parts: vec![wire::Part::text(text)], ..Default::default() };
    wire::SendMessageRequest { message: Some(message), ..Default::default() }
}

/// A message to a task, in its context: the Python SDK gives one that names none a new one.
pub fn answer(task: &wire::Task, text: &str) -> wire::SendMessageRequest {
    let mut request = say(text);
    if let Some(message) = &mut request.message {
        message.task_id.clone_from(&task.id);
        message.context_id.clone_from(&task.context_id);
    }
    request
}

/// The request of a task.
pub fn get(id: &str) -> wire::GetTaskRequest {
    wire::GetTaskRequest { id: id.to_owned(), ..Default::default() }
}

/// The request of its end.
pub fn cancel(id: &str) -> wire::CancelTaskRequest {
    wire::CancelTaskRequest { id: id.to_owned(), ..Default::default() }
}

/// How a task stands.
pub fn state(task: &wire::Task) -> Option<TaskState> {
    task.status.as_ref().and_then(|status| status.state.known())
}

/// The artifact with this id.
pub fn artifact<'a>(task: &'a wire::Task, id: &str) -> &'a wire::Artifact {
    task.artifacts.iter().find(|artifact| artifact.artifact_id == id).unwrap_or_else(|| panic!("no {id} in {task:?}"))
}

/// What `chunks` writes, so many of them.
pub fn chunks(number: usize) -> Vec<String> {
    (1..=number).map(|number| format!("chunk {number}\n")).collect()
}

/// The texts of some parts.
pub fn texts(parts: &[wire::Part]) -> Vec<&str> {
    parts.iter().filter_map(wire::Part::as_text).collect()
}

/// The texts of an artifact as the events told it, each as it came.
pub fn told(events: &[Event], id: &str) -> Vec<String> {
    let mut told = Vec::new();
    for event in events {
        match &event.payload.payload {
            Some(StreamResponsePayload::Task(task)) => {
                let snapshot = task.artifacts.iter().find(|artifact| artifact.artifact_id == id);
                told = snapshot.map(|artifact| owned(&artifact.parts)).unwrap_or_default();
            }
            Some(StreamResponsePayload::ArtifactUpdate(update)) => {
                let Some(artifact) = update.artifact.as_ref().filter(|artifact| artifact.artifact_id == id) else {
                    continue;
                };
                if !update.append {
                    told.clear();
                }
                told.extend(owned(&artifact.parts));
            }
            _ => {}
        }
    }
    told
}

/// How many parts of artifacts came, each as often as it did.
pub fn parts(events: &[Event]) -> usize {
    let of = |event: &Event| match &event.payload.payload {
        Some(StreamResponsePayload::Task(task)) => task.artifacts.iter().map(|artifact| artifact.parts.len()).sum(),
        Some(StreamResponsePayload::ArtifactUpdate(update)) => {
            update.artifact.as_ref().map_or(0, |artifact| artifact.parts.len())
        }
        _ => 0,
    };
    events.iter().map(of).sum()
}

fn owned(parts: &[wire::Part]) -> Vec<String> {
    texts(parts).into_iter().map(str::to_owned).collect()
}

/// The states as the events told them, without repetition.
pub fn states(events: &[Event]) -> Vec<TaskState> {
    let mut states: Vec<TaskState> = events.iter().filter_map(|event| state_of(&event.payload)).collect();
    states.dedup();
    states
}

fn state_of(item: &wire::StreamResponse) -> Option<TaskState> {
    let status = match item.payload.as_ref()? {
        StreamResponsePayload::Task(task) => task.status.as_ref(),
        StreamResponsePayload::StatusUpdate(update) => update.status.as_ref(),
        StreamResponsePayload::ArtifactUpdate(_) | StreamResponsePayload::Message(_) => None,
    };
    status.and_then(|status| status.state.known())
}

/// Counts what is asked.
#[derive(Debug, Default)]
pub struct Counter {
    asked: Mutex<Vec<&'static str>>,
}

impl Counter {
    /// How often this operation was asked for.
    pub fn count(&self, operation: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| **asked == operation).count()
    }
}

impl WireLog for Counter {
    fn record(&self, event: &WireEvent<'_>) {
        if let WireEvent::Request { operation, .. } = event {
            self.asked.lock().unwrap().push(operation);
        }
    }
}

/// A client of the case's peer whose requests are counted.
pub async fn sends(builder: ClientBuilder, case: &Case<'_>) -> (Arc<Counter>, Client) {
    let counter = Arc::new(Counter::default());
    let client = connect_by(builder.wire_log(counter.clone()), case.binding, case.peer).await;
    (counter, client)
}

/// What a status says.
pub fn said(item: &wire::StreamResponse) -> Option<String> {
    let Some(StreamResponsePayload::StatusUpdate(update)) = &item.payload else { return None };
    let message = update.status.as_ref()?.message.as_ref()?;
    texts(&message.parts).first().map(|text| (*text).to_owned())
}
