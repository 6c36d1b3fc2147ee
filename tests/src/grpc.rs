//! gRPC: the generated clients over one HTTP/2 connection.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_protobuf::artifact::artifact_service_client::ArtifactServiceClient;
use longhaul_protobuf::{a2a, artifact, rpc};
use longhaul_protocol::json::{ProtoJson, from_json, to_json};
use longhaul_protocol::wire;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Status};

use crate::{Call, CallError, Event, Operation, Refusal};

/// The largest message that is read.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// One HTTP/2 connection as tonic wants it. Its driver ends with the last clone.
#[derive(Clone, Debug)]
pub struct Channel {
    sender: SendRequest<Body>,
    /// Where requests go.
    pub origin: Uri,
    _driver: Arc<JoinSet<()>>,
}

impl Channel {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When nobody listens, or speaks no HTTP/2.
    pub async fn open(addr: SocketAddr) -> Result<Self, CallError> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (sender, connection) = handshake.await.map_err(cut)?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // How it ended is told to the calls.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            origin: format!("http://{addr}").parse().expect("an address is a URI"),
            _driver: Arc::new(driver),
        })
    }
}

impl Service<http::Request<Body>> for Channel {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = self.sender.send_request(request);
        Box::pin(answer)
    }
}

/// A client of the two services.
#[derive(Debug)]
pub struct GrpcClient {
    addr: SocketAddr,
    kept: Option<Channel>,
}

macro_rules! unary {
    ($client:expr, $method:ident, $call:expr, $ask:ty => $proto:ty, $reply:ty) => {{
        let message: $proto = <$ask>::into(read_params($call));
        let reply = $client.$method(request($call, message)).await;
        let reply: $reply = into_wire(reply.map_err(refused)?.into_inner());
        Ok(to_value(&reply))
    }};
}

impl GrpcClient {
    pub(crate) fn new(addr: SocketAddr) -> Self {
        Self { addr, kept: None }
    }

    async fn channel(&mut self) -> Result<Channel, CallError> {
        if let Some(channel) = &self.kept
            && !channel.sender.is_closed()
        {
            return Ok(channel.clone());
        }
        let channel = Channel::open(self.addr).await?;
        Ok(self.kept.insert(channel).clone())
    }

    async fn a2a(&mut self) -> Result<A2aServiceClient<Channel>, CallError> {
        let channel = self.channel().await?;
        let origin = channel.origin.clone();
        Ok(A2aServiceClient::with_origin(channel, origin).max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    async fn artifacts(&mut self) -> Result<ArtifactServiceClient<Channel>, CallError> {
        let channel = self.channel().await?;
        let origin = channel.origin.clone();
        Ok(ArtifactServiceClient::with_origin(channel, origin).max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    #[rustfmt::skip]
    pub(crate) async fn call(&mut self, call: &Call) -> Result<Value, CallError> {
        let mut a2a = self.a2a().await?;
        let mut artifacts = self.artifacts().await?;
        match call.operation {
            Operation::SendMessage => unary!(a2a, send_message, call, wire::SendMessageRequest => a2a::SendMessageRequest, wire::SendMessageResponse),
            Operation::GetTask => unary!(a2a, get_task, call, wire::GetTaskRequest => a2a::GetTaskRequest, wire::Task),
            Operation::ListTasks => unary!(a2a, list_tasks, call, wire::ListTasksRequest => a2a::ListTasksRequest, wire::ListTasksResponse),
            Operation::CancelTask => unary!(a2a, cancel_task, call, wire::CancelTaskRequest => a2a::CancelTaskRequest, wire::Task),
            Operation::CreateTaskPushNotificationConfig => unary!(a2a, create_task_push_notification_config, call, wire::TaskPushNotificationConfig => a2a::TaskPushNotificationConfig, wire::TaskPushNotificationConfig),
            Operation::GetTaskPushNotificationConfig => unary!(a2a, get_task_push_notification_config, call, wire::GetTaskPushNotificationConfigRequest => a2a::GetTaskPushNotificationConfigRequest, wire::TaskPushNotificationConfig),
            Operation::ListTaskPushNotificationConfigs => unary!(a2a, list_task_push_notification_configs, call, wire::ListTaskPushNotificationConfigsRequest => a2a::ListTaskPushNotificationConfigsRequest, wire::ListTaskPushNotificationConfigsResponse),
            Operation::GetExtendedAgentCard => unary!(a2a, get_extended_agent_card, call, wire::GetExtendedAgentCardRequest => a2a::GetExtendedAgentCardRequest, wire::AgentCard),
            Operation::ListArtifactVersions => unary!(artifacts, list_artifact_versions, call, wire::ListArtifactVersionsRequest => artifact::ListArtifactVersionsRequest, wire::ListArtifactVersionsResponse),
            Operation::GetArtifact => unary!(artifacts, get_artifact, call, wire::GetArtifactRequest => artifact::GetArtifactRequest, wire::GetArtifactResponse),
            Operation::DeleteTaskPushNotificationConfig => {
                let message: wire::DeleteTaskPushNotificationConfigRequest = read_params(call);
                let message = a2a::DeleteTaskPushNotificationConfigRequest::from(message);
                let reply = a2a.delete_task_push_notification_config(request(call, message)).await;
                reply.map(|_| json!({})).map_err(refused)
            }
            Operation::SendStreamingMessage | Operation::SubscribeToTask => panic!("{call:?} is a stream"),
        }
    }

    pub(crate) async fn open(&mut self, call: &Call) -> Result<GrpcStream, CallError> {
        let mut client = self.a2a().await?;
        let reply = match call.operation {
            Operation::SendStreamingMessage => {
                let message: wire::SendMessageRequest = read_params(call);
                let message = a2a::SendMessageRequest::from(message);
                client.send_streaming_message(request(call, message)).await
            }
            Operation::SubscribeToTask => {
                let message: wire::SubscribeToTaskRequest = read_params(call);
                let message = a2a::SubscribeToTaskRequest::from(message);
                client.subscribe_to_task(request(call, message)).await
            }
            _ => panic!("{call:?} is no stream"),
        };
        let reply = reply.map_err(refused)?;
        Ok(GrpcStream { sequence: first_sequence(reply.metadata()), items: reply.into_inner() })
    }
}

/// A response stream.
#[derive(Debug)]
pub struct GrpcStream {
    /// The number of the next item: the first one's is in the metadata, and there are no gaps.
    sequence: Option<u64>,
    items: tonic::Streaming<a2a::StreamResponse>,
}

impl GrpcStream {
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, CallError> {
        let Some(item) = self.items.message().await.map_err(refused)? else {
            return Ok(None);
        };
        let item: wire::StreamResponse = into_wire(item);
        let data = to_value(&item);
        let sequence = self.sequence;
        self.sequence = sequence.map(|sequence| sequence + 1);
        Ok(Some(Event { sequence, text: data.to_string(), data }))
    }
}

/// The number of a stream's first item.
pub(crate) fn first_sequence(metadata: &MetadataMap) -> Option<u64> {
    let id = metadata.get("last-event-id")?.to_str().expect("an event id is ASCII");
    Some(id.parse().expect("an event id is a number"))
}

pub(crate) fn read_params<T: ProtoJson>(call: &Call) -> T {
    from_json(call.params.to_string().as_bytes())
        .unwrap_or_else(|error| panic!("{call:?} has no protobuf form: {error}"))
}

pub(crate) fn request<T>(call: &Call, message: T) -> Request<T> {
    let mut request = Request::new(message);
    for (name, value) in &call.headers {
        let name: tonic::metadata::MetadataKey<_> = name.parse().expect("a metadata key");
        let value = value.parse().expect("a metadata value");
        request.metadata_mut().append(name, value);
    }
    request
}

fn into_wire<A, B>(message: A) -> B
where
    B: TryFrom<A>,
    B::Error: std::fmt::Debug,
{
    message.try_into().expect("the server's times are in range")
}

pub(crate) fn to_value<T: ProtoJson>(message: &T) -> Value {
    serde_json::from_slice(&to_json(message)).expect("it was just written")
}

fn cut(error: hyper::Error) -> CallError {
    CallError::Cut(format!("{error:?}"))
}

/// What a status says: a refusal when the server wrote it, a cut when the transport did.
fn refused(status: Status) -> CallError {
    refused_as(Refusal::of_grpc, status)
}

/// The same of v0.3.
pub(crate) fn refused_v0_3(status: Status) -> CallError {
    refused_as(Refusal::of_grpc_v0_3, status)
}

fn refused_as(refusal: fn(i32, &str, Vec<Value>) -> Refusal, status: Status) -> CallError {
    let silent = status.code() == Code::Unknown && status.details().is_empty();
    if silent || std::error::Error::source(&status).is_some() {
        return CallError::Cut(format!("{status:?}"));
    }
    let details = details_json(status.details());
    CallError::Refused(refusal(status.code() as i32, status.message(), details))
}

/// The details of a status in their JSON form.
fn details_json(details: &[u8]) -> Vec<Value> {
    use tonic_prost::prost::Message as _;
    let status = rpc::Status::decode(details).expect("the details are a google.rpc.Status");
    let details = status.details.into_iter().map(|any| {
        let bytes = any.value.as_slice();
        let mut detail = match any.type_url.rsplit('.').next() {
            Some("ErrorInfo") => {
                let info = rpc::ErrorInfo::decode(bytes).expect("an ErrorInfo");
                let mut json = json!({"reason": info.reason, "domain": info.domain});
                if !info.metadata.is_empty() {
                    json["metadata"] = json!(info.metadata);
                }
                json
            }
            Some("BadRequest") => {
                let bad = rpc::BadRequest::decode(bytes).expect("a BadRequest");
                let violations = bad.field_violations.into_iter();
                let violations: Vec<Value> =
                    violations.map(|it| json!({"field": it.field, "description": it.description})).collect();
                json!({ "fieldViolations": violations })
            }
            Some("RetryInfo") => {
                let retry = rpc::RetryInfo::decode(bytes).expect("a RetryInfo");
                let delay = retry.retry_delay.unwrap_or_default();
                json!({"retryDelay": format!("{}s", delay.seconds)})
            }
            _ => panic!("a detail of an unknown kind: {}", any.type_url),
        };
        detail["@type"] = any.type_url.into();
        detail
    });
    details.collect()
}
