//! The gRPC binding (A2A §10), by tonic's generated services.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream as FuturesStream;
use http::{Request as HttpRequest, Response as HttpResponse};
use hyper::body::Incoming;
use longhaul_engine::{EngineError, StreamItem};
use longhaul_protobuf::a2a::a2a_service_server::{A2aService, A2aServiceServer};
use longhaul_protobuf::artifact::artifact_service_server::{ArtifactService, ArtifactServiceServer};
use longhaul_protobuf::{a2a, artifact, convert, status};
use longhaul_protocol::A2aError;
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Request, Response, Status};
use tower_service::Service as _;

use crate::body::Body;
use crate::follow::{Next, next};
use crate::operation::{Operations, Stream, told};
use crate::parameters::Parameters;

mod limited;

use limited::LimitedBody;

const LAST_EVENT_ID: &str = "last-event-id";

/// Both services.
#[derive(Debug)]
pub(crate) struct Grpc {
    a2a: A2aServiceServer<Binding>,
    artifacts: ArtifactServiceServer<Binding>,
    prefix: String,
    body_bytes_max: usize,
}

#[derive(Clone, Debug)]
struct Binding {
    operations: Arc<Operations>,
}

impl Grpc {
    pub fn new(operations: &Arc<Operations>, prefix: &str, body_bytes_max: usize) -> Self {
        let binding = Binding { operations: Arc::clone(operations) };
        Self {
            a2a: A2aServiceServer::new(binding.clone()).max_decoding_message_size(body_bytes_max),
            artifacts: ArtifactServiceServer::new(binding).max_decoding_message_size(body_bytes_max),
            prefix: prefix.to_owned(),
            body_bytes_max,
        }
    }

    pub async fn answer(&self, request: HttpRequest<Incoming>) -> HttpResponse<Body> {
        let request = self.below_the_prefix(request).map(|body| LimitedBody::new(body, self.body_bytes_max));
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        // Both services are always ready, and their errors can't happen.
        let answer = match service {
            "longhaul.v1.ArtifactService" => self.artifacts.clone().call(request).await,
            "lf.a2a.v1.A2AService" => self.a2a.clone().call(request).await,
            _ => Ok(Status::unimplemented(format!("there is no service {service:?}")).into_http()),
        };
        match answer {
            Ok(answer) => answer.map(Body::Grpc),
            Err(impossible) => match impossible {},
        }
    }
}

impl Grpc {
    /// gRPC is found by its path alone, since a card names its host and port and nothing else; but below the prefix too.
    fn below_the_prefix<T>(&self, mut request: HttpRequest<T>) -> HttpRequest<T> {
        let path = request.uri().path();
        let below =
            path.strip_prefix(self.prefix.as_str()).filter(|below| below.starts_with('/') && below.len() < path.len());
        if let Some(uri) = below.and_then(|below| below.parse().ok()) {
            *request.uri_mut() = uri;
        }
        request
    }
}

/// The items of a stream as protobuf messages.
pub(crate) struct GrpcStream {
    next: Option<Next>,
    ready: std::vec::IntoIter<StreamItem>,
    _permit: OwnedSemaphorePermit,
}

impl FuturesStream for GrpcStream {
    type Item = Result<a2a::StreamResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.next() {
                return Poll::Ready(Some(message(&item)));
            }
            let Some(waiting) = self.next.as_mut() else { return Poll::Ready(None) };
            let (stream, items) = std::task::ready!(waiting.as_mut().poll(context));
            self.next = None;
            match items {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(status::encode(&told(error))))),
                Some(Ok(items)) => {
                    self.ready = items.into_iter();
                    self.next = Some(next(stream));
                }
            }
        }
    }
}

fn message(item: &StreamItem) -> Result<a2a::StreamResponse, Status> {
    convert::stream_response_from_json(&item.payload).map_err(|error| {
        let source = Box::new(error);
        status::encode(&told(EngineError::Internal { action: "read an event", source }))
    })
}

/// Answers with a stream. gRPC has no place for an id beside an item, so the first one's is told in the metadata.
async fn stream_answer(stream: Stream) -> Result<Response<GrpcStream>, Status> {
    let Stream { mut events, permit } = stream;
    let first = events.next().await.transpose().map_err(|error| status::encode(&told(error)))?.unwrap_or_default();
    let first_sequence = first.first().and_then(|item| item.sequence);
    let mut answer = Response::new(GrpcStream { next: Some(next(events)), ready: first.into_iter(), _permit: permit });
    if let Some(id) = first_sequence.and_then(|sequence| sequence.to_string().parse().ok()) {
        answer.metadata_mut().insert(LAST_EVENT_ID, id);
    }
    Ok(answer)
}

impl Binding {
    /// What comes beside the message, and the message; refused if the version or an extension is wrong.
    fn admit<T>(&self, request: Request<T>) -> Result<(Parameters, T), Status> {
        let (metadata, _, message) = request.into_parts();
        let parameters = Parameters::from_headers(&metadata.into_headers());
        self.operations.admit(&parameters).map_err(|error| status::encode(&error))?;
        Ok((parameters, message))
    }
}

fn answer<A, B: From<A>>(result: Result<A, A2aError>) -> Result<Response<B>, Status> {
    result.map(|answer| Response::new(answer.into())).map_err(|error| status::encode(&error))
}

fn refused<T>(error: &A2aError) -> Result<Response<T>, Status> {
    Err(status::encode(error))
}

#[tonic::async_trait]
impl A2aService for Binding {
    type SendStreamingMessageStream = GrpcStream;
    type SubscribeToTaskStream = GrpcStream;

    async fn send_message(
        &self,
        request: Request<a2a::SendMessageRequest>,
    ) -> Result<Response<a2a::SendMessageResponse>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.send_message(&parameters, request.into()).await)
    }

    async fn send_streaming_message(
        &self,
        request: Request<a2a::SendMessageRequest>,
    ) -> Result<Response<GrpcStream>, Status> {
        let (parameters, request) = self.admit(request)?;
        let stream = self.operations.send_streaming_message(&parameters, request.into()).await;
        stream_answer(stream.map_err(|error| status::encode(&error))?).await
    }

    async fn get_task(&self, request: Request<a2a::GetTaskRequest>) -> Result<Response<a2a::Task>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.get_task(&parameters, request.into()).await)
    }

    async fn list_tasks(
        &self,
        request: Request<a2a::ListTasksRequest>,
    ) -> Result<Response<a2a::ListTasksResponse>, Status> {
        let (parameters, request) = self.admit(request)?;
        let request =
            request.try_into().map_err(|error: longhaul_protobuf::ConvertError| status::encode(&error.into()))?;
        answer(self.operations.list_tasks(&parameters, request).await)
    }

    async fn cancel_task(&self, request: Request<a2a::CancelTaskRequest>) -> Result<Response<a2a::Task>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.cancel_task(&parameters, request.into()).await)
    }

    async fn subscribe_to_task(
        &self,
        request: Request<a2a::SubscribeToTaskRequest>,
    ) -> Result<Response<GrpcStream>, Status> {
        let (parameters, request) = self.admit(request)?;
        let stream = self.operations.subscribe_to_task(&parameters, request.into()).await;
        stream_answer(stream.map_err(|error| status::encode(&error))?).await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<a2a::TaskPushNotificationConfig>,
    ) -> Result<Response<a2a::TaskPushNotificationConfig>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.create_push_config(&parameters, request.into()).await)
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<a2a::GetTaskPushNotificationConfigRequest>,
    ) -> Result<Response<a2a::TaskPushNotificationConfig>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.get_push_config(&parameters, request.into()).await)
    }

    async fn list_task_push_notification_configs(
        &self,
        request: Request<a2a::ListTaskPushNotificationConfigsRequest>,
    ) -> Result<Response<a2a::ListTaskPushNotificationConfigsResponse>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.list_push_configs(&parameters, request.into()).await)
    }

    async fn get_extended_agent_card(
        &self,
        request: Request<a2a::GetExtendedAgentCardRequest>,
    ) -> Result<Response<a2a::AgentCard>, Status> {
        self.admit(request)?;
        refused(&self.operations.extended_card_not_supported())
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<a2a::DeleteTaskPushNotificationConfigRequest>,
    ) -> Result<Response<()>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.delete_push_config(&parameters, request.into()).await)
    }
}

#[tonic::async_trait]
impl ArtifactService for Binding {
    async fn list_artifact_versions(
        &self,
        request: Request<artifact::ListArtifactVersionsRequest>,
    ) -> Result<Response<artifact::ListArtifactVersionsResponse>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.list_artifact_versions(&parameters, request.into()).await)
    }

    async fn get_artifact(
        &self,
        request: Request<artifact::GetArtifactRequest>,
    ) -> Result<Response<artifact::GetArtifactResponse>, Status> {
        let (parameters, request) = self.admit(request)?;
        answer(self.operations.get_artifact(&parameters, request.into()).await)
    }
}
