//! One face for the three bindings.

use std::net::SocketAddr;

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::Value;

use crate::grpc::{GrpcClient, GrpcStream};
use crate::http_binding::{HttpClient, HttpStream};
use crate::old::{self, OldClient, OldStream, Speech};
use crate::{Instances, PATIENCE, Refusal, within};

/// A binding of the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Binding {
    /// JSON-RPC 2.0 (§9).
    JsonRpc,
    /// gRPC (§10).
    Grpc,
    /// HTTP+JSON (§11).
    HttpJson,
}

impl Binding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// Its name in a card.
    #[must_use]
    pub fn card_name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Grpc => "GRPC",
            Self::HttpJson => "HTTP+JSON",
        }
    }
}

/// An operation: those of §3.1, and ours of design section 9.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum Operation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreateTaskPushNotificationConfig,
    GetTaskPushNotificationConfig,
    ListTaskPushNotificationConfigs,
    DeleteTaskPushNotificationConfig,
    GetExtendedAgentCard,
    ListArtifactVersions,
    GetArtifact,
}

impl Operation {
    /// The protocol's name.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// Method and path in HTTP+JSON; a name in braces is a member of the parameters.
    #[must_use]
    pub fn route(self) -> (&'static str, &'static str) {
        match self {
            Self::SendMessage => ("POST", "/message:send"),
            Self::SendStreamingMessage => ("POST", "/message:stream"),
            Self::GetTask => ("GET", "/tasks/{id}"),
            Self::ListTasks => ("GET", "/tasks"),
            Self::CancelTask => ("POST", "/tasks/{id}:cancel"),
            Self::SubscribeToTask => ("GET", "/tasks/{id}:subscribe"),
            Self::CreateTaskPushNotificationConfig => ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
            Self::GetTaskPushNotificationConfig => ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
            Self::ListTaskPushNotificationConfigs => ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
            Self::DeleteTaskPushNotificationConfig => ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
            Self::GetExtendedAgentCard => ("GET", "/extendedAgentCard"),
            Self::ListArtifactVersions => ("GET", "/tasks/{taskId}/artifacts/{artifactId}/versions"),
            Self::GetArtifact => ("GET", "/tasks/{taskId}/artifacts/{artifactId}"),
        }
    }
}

/// One request, whichever binding it goes through.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked.
    pub operation: Operation,
    /// The request message as JSON.
    pub params: Value,
    /// Headers, or metadata, with names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Call {
    /// A request of version 1.0.
    #[must_use]
    pub fn new(operation: Operation, params: Value) -> Self {
        Self { operation, params, headers: vec![("a2a-version".to_owned(), "1.0".to_owned())] }
    }

    /// Sends another version, or none.
    #[must_use]
    pub fn version(mut self, version: Option<&str>) -> Self {
        self.headers.retain(|(name, _)| name != "a2a-version");
        match version {
            Some(version) => self.header("a2a-version", version),
            None => self,
        }
    }

    /// Adds a header, or metadata.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Asks for the events behind this one.
    #[must_use]
    pub fn after(self, sequence: u64) -> Self {
        self.header("last-event-id", &sequence.to_string())
    }
}

/// Why there is no result.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The server refused.
    Refused(Refusal),
    /// The connection was cut, or could not be made.
    Cut(String),
}

impl CallError {
    /// The refusal.
    ///
    /// # Panics
    ///
    /// When the connection was cut instead.
    #[must_use]
    pub fn refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Cut(why) => panic!("the connection was cut: {why}"),
        }
    }
}

impl From<std::io::Error> for CallError {
    fn from(error: std::io::Error) -> Self {
        Self::Cut(error.to_string())
    }
}

/// A client of one binding. Requests follow each other; for more at once there are more clients.
///
/// Of several instances each request goes to one that is drawn by lot, over a connection of its own.
#[derive(Debug)]
pub struct Client {
    binding: Binding,
    speech: Speech,
    instances: Vec<(Instance, OldClient)>,
    dice: StdRng,
}

/// The connections to one instance.
#[derive(Debug)]
enum Instance {
    /// JSON-RPC or HTTP+JSON.
    Http(HttpClient),
    /// gRPC.
    Grpc(GrpcClient),
}

impl Client {
    /// A client; it connects when it is used.
    #[must_use]
    pub fn new(binding: Binding, instances: impl Into<Instances>) -> Self {
        Self::speaking(Speech::V1_0, binding, instances)
    }

    /// A client that speaks this version.
    #[must_use]
    pub fn speaking(speech: Speech, binding: Binding, instances: impl Into<Instances>) -> Self {
        let instances = instances.into();
        let connect = |addr: &SocketAddr| {
            let client = match binding {
                Binding::JsonRpc | Binding::HttpJson => Instance::Http(HttpClient::new(binding, *addr)),
                Binding::Grpc => Instance::Grpc(GrpcClient::new(*addr)),
            };
            (client, OldClient::new(binding, *addr))
        };
        Self { binding, speech, instances: instances.addrs().iter().map(connect).collect(), dice: instances.dice() }
    }

    /// The version that it speaks.
    #[must_use]
    pub fn speech(&self) -> Speech {
        self.speech
    }

    /// Whether a call is made in v0.3: what v0.3 has no operation for is asked in v1.0.
    fn is_old(&self, call: &Call) -> bool {
        self.speech == Speech::V0_3 && old::method(call.operation).is_some()
    }

    /// Its binding.
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// The instance that the next request goes to.
    fn instance(&mut self) -> &mut (Instance, OldClient) {
        let number = self.dice.random_range(0..self.instances.len());
        &mut self.instances[number]
    }

    /// Asks, and waits for the one answer.
    ///
    /// # Errors
    ///
    /// When the server refuses, or is gone.
    pub async fn call(&mut self, call: &Call) -> Result<Value, CallError> {
        let what = format!("{:?} {:?}", self.binding(), call.operation);
        let is_old = self.is_old(call);
        let answer = async {
            match self.instance() {
                (_, old) if is_old => old.call(call).await,
                (Instance::Http(client), _) => client.call(call).await,
                (Instance::Grpc(client), _) => client.call(call).await,
            }
        };
        within(PATIENCE, &what, answer).await
    }

    /// Asks for a stream, and waits until it is open or refused.
    ///
    /// # Errors
    ///
    /// When the server refuses, or is gone.
    pub async fn open(&mut self, call: &Call) -> Result<Stream, CallError> {
        let what = format!("{:?} {:?}", self.binding(), call.operation);
        let is_old = self.is_old(call);
        let answer = async {
            match self.instance() {
                (_, old) if is_old => old.open(call).await.map(Stream::Old),
                (Instance::Http(client), _) => client.open(call).await.map(Stream::Http),
                (Instance::Grpc(client), _) => client.open(call).await.map(Stream::Grpc),
            }
        };
        within(PATIENCE, &what, answer).await
    }

    /// The result of `operation`.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub async fn ask(&mut self, operation: Operation, params: Value) -> Value {
        match self.call(&Call::new(operation, params.clone())).await {
            Ok(result) => result,
            Err(error) => panic!("{:?} {operation:?} {params}: {error:?}", self.binding()),
        }
    }

    /// The refusal of `operation`, which has to be this one.
    ///
    /// # Panics
    ///
    /// When it is answered, or refused otherwise.
    pub async fn refused(&mut self, call: &Call, reason: &str) -> Refusal {
        let binding = self.binding();
        match self.call(call).await {
            Ok(result) => panic!("{binding:?} {call:?} was not refused: {result}"),
            Err(error) => {
                let refusal = error.refusal();
                refusal.assert(binding, reason);
                refusal
            }
        }
    }

    /// Opens a stream.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub async fn follow(&mut self, call: &Call) -> Stream {
        match self.open(call).await {
            Ok(stream) => stream,
            Err(error) => panic!("{:?} {call:?}: {error:?}", self.binding()),
        }
    }
}

/// One item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number in the task's log; direct messages have none.
    pub sequence: Option<u64>,
    /// The `StreamResponse`.
    pub data: Value,
    /// Its text as it came, in JSON-RPC with the envelope; in gRPC, as it would be in JSON.
    pub text: String,
}

impl Event {
    /// What is the same whichever request and binding it came through.
    #[must_use]
    pub fn content(&self) -> (Option<u64>, &Value) {
        (self.sequence, &self.data)
    }
}

/// The contents of these events.
#[must_use]
pub fn contents(events: &[Event]) -> Vec<(Option<u64>, &Value)> {
    events.iter().map(Event::content).collect()
}

/// An open stream. Dropping it drops its connection.
#[derive(Debug)]
pub enum Stream {
    /// Server-sent events.
    Http(HttpStream),
    /// A gRPC response stream.
    Grpc(GrpcStream),
    /// Either of them, in v0.3.
    Old(OldStream),
}

impl Stream {
    /// The next item; `None` when the stream has ended in order.
    ///
    /// # Errors
    ///
    /// When the stream ended with an error, or was cut.
    pub async fn next(&mut self) -> Result<Option<Event>, CallError> {
        let next = async {
            match self {
                Self::Http(stream) => stream.next().await,
                Self::Grpc(stream) => stream.next().await,
                Self::Old(stream) => stream.next().await,
            }
        };
        within(PATIENCE, "the next item of a stream", next).await
    }

    /// The next item.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub async fn event(&mut self) -> Event {
        match self.next().await {
            Ok(Some(event)) => event,
            other => panic!("a stream has no next item: {other:?}"),
        }
    }

    /// All items up to the orderly end.
    ///
    /// # Panics
    ///
    /// When the end is not orderly.
    pub async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            match self.next().await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return events,
                Err(error) => panic!("a stream was cut after {} items: {error:?}", events.len()),
            }
        }
    }
}
