//! The gRPC binding (A2A §10), by tonic's generated services: the package of v1.0, that of v0.3, and ours.

use std::sync::Arc;

use http::{HeaderMap, Request as HttpRequest, Response as HttpResponse};
use hyper::body::Incoming;
use longhaul_engine::{EngineError, StreamItem};
use longhaul_protobuf::a2a::a2a_service_server::{A2aService, A2aServiceServer};
use longhaul_protobuf::a2a_v0_3::a2a_service_server::A2aServiceServer as OlderServiceServer;
use longhaul_protobuf::artifact::artifact_service_server::{ArtifactService, ArtifactServiceServer};
use longhaul_protobuf::{a2a, artifact, convert, status};
use longhaul_protocol::{A2aError, wire};
use tonic::{Request, Response, Status};
use tower_service::Service as _;

use crate::ServerConfig;
use crate::body::Body;
use crate::operation::{Operations, told};
use crate::parameters::{Parameters, asked};
use crate::requests::{Operation, Requests, Spoken, Transport};
use crate::route::in_version;
use crate::sse::Then;
use crate::version::{Asked, Version, Versions};

mod limited;
mod stream;
mod v0_3;

use limited::LimitedBody;
use stream::{GrpcStream, Tells};

/// The services.
#[derive(Debug)]
pub(crate) struct Grpc {
    a2a: A2aServiceServer<Binding>,
    artifacts: ArtifactServiceServer<Binding>,
    older: OlderServiceServer<v0_3::Binding>,
    versions: Versions,
    requests: Arc<Requests>,
    prefix: String,
    body_bytes_max: usize,
}

#[derive(Clone, Debug)]
struct Binding {
    operations: Arc<Operations>,
}

impl Grpc {
    pub fn new(
        operations: &Arc<Operations>,
        requests: &Arc<Requests>,
        card: &wire::AgentCard,
        config: &ServerConfig,
    ) -> Self {
        let (binding, bytes_max) = (Binding { operations: Arc::clone(operations) }, config.body_bytes_max);
        let older = v0_3::Binding::new(operations, card);
        Self {
            a2a: A2aServiceServer::new(binding.clone()).max_decoding_message_size(bytes_max),
            artifacts: ArtifactServiceServer::new(binding).max_decoding_message_size(bytes_max),
            older: OlderServiceServer::new(older).max_decoding_message_size(bytes_max),
            versions: config.versions.clone(),
            requests: Arc::clone(requests),
            prefix: config.prefix.clone(),
            body_bytes_max: bytes_max,
        }
    }

    pub async fn answer(&self, request: HttpRequest<Incoming>) -> HttpResponse<Body> {
        let request = self.below_the_prefix(request);
        let mut path = request.uri().path().split('/').skip(1);
        let (service, method) = (path.next().unwrap_or_default(), path.next().unwrap_or_default());
        let Some(service) = Service::of(service) else {
            let message = format!("there is no service {service:?}");
            return Status::unimplemented(message).into_http().map(Body::Grpc);
        };
        let operation = Operation::of_method(method);
        let version = match self.version_of(service, request.headers()) {
            Ok(version) => version,
            Err(status) => {
                self.requests.count(Spoken::Refused, Transport::Grpc, operation);
                return status.into_http().map(Body::Grpc);
            }
        };
        self.requests.count(version.into(), Transport::Grpc, operation);
        let request = request.map(|body| LimitedBody::new(body, self.body_bytes_max, service.error()));
        // The services are always ready, and their errors can't happen.
        let answer = match service {
            Service::A2a => self.a2a.clone().call(request).await,
            Service::Artifacts => self.artifacts.clone().call(request).await,
            Service::Older => self.older.clone().call(request).await,
        };
        match answer {
            Ok(answer) => in_version(version, answer.map(Body::Grpc)),
            Err(impossible) => match impossible {},
        }
    }

    /// The version of a request. The messages of the old package are of v0.3, so it says all by itself.
    fn version_of(&self, service: Service, headers: &HeaderMap) -> Result<Version, Status> {
        let chosen = match service {
            Service::A2a | Service::Artifacts => {
                self.versions.require_v1_0(asked(headers), "this package").map(|()| Version::V1_0)
            }
            Service::Older => self.versions.choose(Asked::Known(Version::V0_3)),
        };
        chosen.map_err(|error| service.error()(&error))
    }
}

/// A service, by its package.
#[derive(Clone, Copy, Debug)]
enum Service {
    A2a,
    Artifacts,
    Older,
}

impl Service {
    fn of(name: &str) -> Option<Self> {
        match name {
            "lf.a2a.v1.A2AService" => Some(Self::A2a),
            "longhaul.v1.ArtifactService" => Some(Self::Artifacts),
            "a2a.v1.A2AService" => Some(Self::Older),
            _ => None,
        }
    }

    /// How it tells errors.
    fn error(self) -> fn(&A2aError) -> Status {
        match self {
            Self::A2a | Self::Artifacts => status::encode,
            Self::Older => status::encode_v0_3,
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

fn message(item: &StreamItem) -> Result<(a2a::StreamResponse, Then), Status> {
    let message = convert::stream_response_from_json(&item.payload).map_err(|error| {
        let source = Box::new(error);
        status::encode(&told(EngineError::Internal { action: "read an event", source }))
    })?;
    Ok((message, Then::More))
}

/// How v1.0 tells streams.
const TELLS: Tells<a2a::StreamResponse> = Tells { item: message, error: status::encode };

async fn stream_answer(
    stream: Result<crate::operation::Stream, A2aError>,
) -> Result<Response<GrpcStream<a2a::StreamResponse>>, Status> {
    stream::answer(stream, TELLS).await
}

impl Binding {
    /// What comes beside the message, and the message; refused if an extension is missing.
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
    type SendStreamingMessageStream = GrpcStream<a2a::StreamResponse>;
    type SubscribeToTaskStream = GrpcStream<a2a::StreamResponse>;

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
    ) -> Result<Response<GrpcStream<a2a::StreamResponse>>, Status> {
        let (parameters, request) = self.admit(request)?;
        stream_answer(self.operations.send_streaming_message(&parameters, request.into()).await).await
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
    ) -> Result<Response<GrpcStream<a2a::StreamResponse>>, Status> {
        let (parameters, request) = self.admit(request)?;
        stream_answer(self.operations.subscribe_to_task(&parameters, request.into()).await).await
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
