//! The operations of §3.1, each with its form in the three bindings.

pub(crate) mod v0_3;

use std::future::Future;

use http::Method;
use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_protobuf::artifact::artifact_service_client::ArtifactServiceClient;
use longhaul_protobuf::{ConvertError, a2a, artifact};
use longhaul_protocol::json::{JsonError, ProtoJson};
use longhaul_protocol::{from_json, wire};
use tonic::{Request, Response, Status};

use crate::binding::http_json::Route;
use crate::transport::GrpcHttp;

/// One operation: its request, and how it goes over each binding.
pub(crate) trait Operation: ProtoJson + Clone + Send + Sync + 'static {
    /// What is answered.
    type Reply: Reply;
    /// The request in protobuf.
    type Proto: From<Self> + Send;

    /// The name of the method in JSON-RPC and gRPC.
    const NAME: &'static str;
    /// Whether the same request may be sent again without asking for anything twice.
    const REPETITION: Repetition;

    /// Where the tenant goes.
    fn tenant_mut(&mut self) -> &mut String;

    /// Method, path and query in HTTP+JSON (§11.3).
    fn route(&self) -> Route;

    /// The call over gRPC.
    fn call(
        client: &mut GrpcClients,
        request: Request<Self::Proto>,
    ) -> impl Future<Output = Result<Response<<Self::Reply as Reply>::Proto>, Status>> + Send;

    /// What it is in v0.3; what to say about it where v0.3 does not have it.
    const V0_3: v0_3::InV0_3<Self, Self::Reply>;

    /// What is wrong with an answer to this request: an answer about another task, say.
    fn check(&self, reply: &Self::Reply) -> Result<(), String>;
}

/// Whether a request may be sent a second time when it is not known what became of the first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Repetition {
    /// It changes nothing, or the second time nothing more.
    Safe,
    /// A send: only where the agent says that it tells a repetition by the message's id, or the caller says so.
    ByMessageId,
    /// Only when the first cannot have been acted on.
    Asks,
}

/// An answer: what it is in JSON and in protobuf.
pub(crate) trait Reply: Sized + Send {
    /// The message of protobuf.
    type Proto: Send;

    /// Reads it from JSON.
    fn from_json(json: &[u8]) -> Result<Self, JsonError>;

    /// Reads it from protobuf.
    fn from_proto(proto: Self::Proto) -> Result<Self, ConvertError>;

    /// States are read the way that a client reads them.
    fn normalize(&mut self) {}
}

/// The clients of the gRPC services, on one pool.
#[derive(Clone, Debug)]
pub(crate) struct GrpcClients {
    pub a2a: A2aServiceClient<GrpcHttp>,
    pub a2a_v0_3: v0_3::Client,
    pub artifact: ArtifactServiceClient<GrpcHttp>,
}

/// An answer that says nothing: an empty object, `null`, or no body at all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Nothing;

impl Reply for Nothing {
    type Proto = ();

    fn from_json(_: &[u8]) -> Result<Self, JsonError> {
        Ok(Self)
    }

    fn from_proto((): ()) -> Result<Self, ConvertError> {
        Ok(Self)
    }
}

macro_rules! replies {
    ($($reply:ident of $proto:path $(, $normalize:expr)?;)*) => {$(
        impl Reply for wire::$reply {
            type Proto = $proto;

            fn from_json(json: &[u8]) -> Result<Self, JsonError> {
                from_json(json)
            }

            fn from_proto(proto: Self::Proto) -> Result<Self, ConvertError> {
                Self::try_from(proto).map_err(ConvertError::from)
            }

            $(fn normalize(&mut self) {
                $normalize(self);
            })?
        }
    )*};
}

replies! {
    Task of a2a::Task, normalize_task;
    SendMessageResponse of a2a::SendMessageResponse, normalize_send;
    StreamResponse of a2a::StreamResponse, normalize_item;
    ListTasksResponse of a2a::ListTasksResponse, normalize_page;
    TaskPushNotificationConfig of a2a::TaskPushNotificationConfig;
    ListTaskPushNotificationConfigsResponse of a2a::ListTaskPushNotificationConfigsResponse;
    AgentCard of a2a::AgentCard;
    ListArtifactVersionsResponse of artifact::ListArtifactVersionsResponse;
    GetArtifactResponse of artifact::GetArtifactResponse;
}

fn normalize_task(task: &mut wire::Task) {
    if let Some(status) = &mut task.status {
        normalize_status(status);
    }
}

/// A state that is not known is unspecified.
fn normalize_status(status: &mut wire::TaskStatus) {
    if status.state == wire::TaskState::CANCELLED {
        status.state = longhaul_protocol::TaskState::Canceled.into();
    } else if status.state.known().is_none() {
        status.state = wire::TaskState::default();
    }
}

fn normalize_send(response: &mut wire::SendMessageResponse) {
    if let Some(wire::SendMessageResponsePayload::Task(task)) = &mut response.payload {
        normalize_task(task);
    }
}

fn normalize_item(item: &mut wire::StreamResponse) {
    match &mut item.payload {
        Some(wire::StreamResponsePayload::Task(task)) => normalize_task(task),
        Some(wire::StreamResponsePayload::StatusUpdate(update)) => {
            if let Some(status) = &mut update.status {
                normalize_status(status);
            }
        }
        Some(wire::StreamResponsePayload::Message(_) | wire::StreamResponsePayload::ArtifactUpdate(_)) | None => {}
    }
}

fn normalize_page(page: &mut wire::ListTasksResponse) {
    page.tasks.iter_mut().for_each(normalize_task);
}

macro_rules! operation {
    (
        $request:ident as $name:literal, $repetition:ident, $proto:path => $reply:ty, $service:ident.$method:ident, $v0_3:expr,
        |$route:ident| $path:expr, |$asked:ident, $answered:ident| $check:expr
    ) => {
        impl Operation for wire::$request {
            type Reply = $reply;
            type Proto = $proto;

            const NAME: &'static str = $name;
            const REPETITION: Repetition = Repetition::$repetition;
            const V0_3: v0_3::InV0_3<Self, Self::Reply> = $v0_3;

            fn tenant_mut(&mut self) -> &mut String {
                &mut self.tenant
            }

            fn route(&self) -> Route {
                let $route = self;
                $path
            }

            async fn call(
                client: &mut GrpcClients,
                request: Request<Self::Proto>,
            ) -> Result<Response<<Self::Reply as Reply>::Proto>, Status> {
                client.$service.$method(request).await
            }

            fn check(&self, reply: &Self::Reply) -> Result<(), String> {
                let ($asked, $answered) = (self, reply);
                $check
            }
        }
    };
}

operation! {
    SendMessageRequest as "SendMessage", ByMessageId, a2a::SendMessageRequest => wire::SendMessageResponse,
    a2a.send_message, v0_3::SEND_MESSAGE,
    |_request| Route::new(Method::POST, &["message:send"]),
    |asked, answered| check_sent(asked, answered)
}

operation! {
    GetTaskRequest as "GetTask", Safe, a2a::GetTaskRequest => wire::Task, a2a.get_task, v0_3::GET_TASK,
    |request| Route::new(Method::GET, &["tasks", &request.id]).number("historyLength", request.history_length),
    |asked, answered| same_task(&asked.id, &answered.id)
}

operation! {
    ListTasksRequest as "ListTasks", Safe, a2a::ListTasksRequest => wire::ListTasksResponse,
    a2a.list_tasks, Err("ListTasks, which the version 0.3 that it speaks does not have"),
    |request| list_route(request),
    |_asked, answered| match answered.tasks.iter().any(|task| task.id.is_empty()) {
        true => Err("a task without an id is in the page".to_owned()),
        false => Ok(()),
    }
}

operation! {
    CancelTaskRequest as "CancelTask", Safe, a2a::CancelTaskRequest => wire::Task, a2a.cancel_task, v0_3::CANCEL_TASK,
    |request| Route::verb(Method::POST, &["tasks"], &request.id, "cancel"),
    |asked, answered| same_task(&asked.id, &answered.id)
}

operation! {
    TaskPushNotificationConfig as "CreateTaskPushNotificationConfig", Asks,
    a2a::TaskPushNotificationConfig => wire::TaskPushNotificationConfig,
    a2a.create_task_push_notification_config, v0_3::CREATE_PUSH_CONFIG,
    |request| Route::new(Method::POST, &["tasks", &request.task_id, "pushNotificationConfigs"]),
    |asked, answered| same_task_if_named(&asked.task_id, &answered.task_id)
}

operation! {
    GetTaskPushNotificationConfigRequest as "GetTaskPushNotificationConfig", Safe,
    a2a::GetTaskPushNotificationConfigRequest => wire::TaskPushNotificationConfig,
    a2a.get_task_push_notification_config, v0_3::GET_PUSH_CONFIG,
    |request| Route::new(Method::GET, &["tasks", &request.task_id, "pushNotificationConfigs", &request.id]),
    |asked, answered| match asked.id == answered.id {
        true => same_task_if_named(&asked.task_id, &answered.task_id),
        false => Err(format!("it is about push config {:?}, not {:?}", answered.id, asked.id)),
    }
}

operation! {
    ListTaskPushNotificationConfigsRequest as "ListTaskPushNotificationConfigs", Safe,
    a2a::ListTaskPushNotificationConfigsRequest => wire::ListTaskPushNotificationConfigsResponse,
    a2a.list_task_push_notification_configs, v0_3::LIST_PUSH_CONFIGS,
    |request| Route::new(Method::GET, &["tasks", &request.task_id, "pushNotificationConfigs"])
        .number("pageSize", Some(request.page_size).filter(|size| *size != 0))
        .text("pageToken", &request.page_token),
    |asked, answered| answered.configs.iter().try_for_each(|config| same_task_if_named(&asked.task_id, &config.task_id))
}

operation! {
    DeleteTaskPushNotificationConfigRequest as "DeleteTaskPushNotificationConfig", Safe,
    a2a::DeleteTaskPushNotificationConfigRequest => Nothing,
    a2a.delete_task_push_notification_config, v0_3::DELETE_PUSH_CONFIG,
    |request| Route::new(Method::DELETE, &["tasks", &request.task_id, "pushNotificationConfigs", &request.id]),
    |_asked, _answered| Ok(())
}

operation! {
    GetExtendedAgentCardRequest as "GetExtendedAgentCard", Safe,
    a2a::GetExtendedAgentCardRequest => wire::AgentCard, a2a.get_extended_agent_card, v0_3::GET_EXTENDED_CARD,
    |_request| Route::new(Method::GET, &["extendedAgentCard"]),
    |_asked, _answered| Ok(())
}

operation! {
    ListArtifactVersionsRequest as "ListArtifactVersions", Safe,
    artifact::ListArtifactVersionsRequest => wire::ListArtifactVersionsResponse,
    artifact.list_artifact_versions, Err("ListArtifactVersions, which the version 0.3 that it speaks does not have"),
    |request| Route::new(Method::GET, &["tasks", &request.task_id, "artifacts", &request.artifact_id, "versions"])
        .number("pageSize", request.page_size)
        .text("pageToken", &request.page_token),
    |_asked, _answered| Ok(())
}

operation! {
    GetArtifactRequest as "GetArtifact", Safe, artifact::GetArtifactRequest => wire::GetArtifactResponse,
    artifact.get_artifact, Err("GetArtifact, which the version 0.3 that it speaks does not have"),
    |request| match request.version {
        None => Route::new(Method::GET, &["tasks", &request.task_id, "artifacts", &request.artifact_id]),
        Some(version) => Route::new(
            Method::GET,
            &["tasks", &request.task_id, "artifacts", &request.artifact_id, "versions", &version.to_string()],
        ),
    },
    |asked, answered| match &answered.artifact {
        Some(artifact) if artifact.artifact_id == asked.artifact_id => Ok(()),
        Some(artifact) => Err(format!("it is artifact {:?}, not {:?}", artifact.artifact_id, asked.artifact_id)),
        None => Err("the artifact is missing".to_owned()),
    }
}

fn list_route(request: &wire::ListTasksRequest) -> Route {
    Route::new(Method::GET, &["tasks"])
        .text("contextId", &request.context_id)
        .text("status", request.status.known().map_or("", |state| state.wire_name()))
        .number("pageSize", request.page_size)
        .text("pageToken", &request.page_token)
        .number("historyLength", request.history_length)
        .text("statusTimestampAfter", &request.status_timestamp_after.map(|time| time.to_string()).unwrap_or_default())
        .text("includeArtifacts", request.include_artifacts.map_or("", |is| if is { "true" } else { "false" }))
}

fn check_sent(asked: &wire::SendMessageRequest, answered: &wire::SendMessageResponse) -> Result<(), String> {
    let named = asked.message.as_ref().map(|message| message.task_id.as_str()).unwrap_or_default();
    match &answered.payload {
        Some(wire::SendMessageResponsePayload::Task(task)) if named.is_empty() => has_id(&task.id),
        Some(wire::SendMessageResponsePayload::Task(task)) => same_task(named, &task.id),
        Some(wire::SendMessageResponsePayload::Message(_)) => Ok(()),
        None => Err("it holds neither a task nor a message".to_owned()),
    }
}

fn has_id(id: &str) -> Result<(), String> {
    if id.is_empty() { Err("the task has no id".to_owned()) } else { Ok(()) }
}

fn same_task(asked: &str, answered: &str) -> Result<(), String> {
    match answered == asked {
        true => Ok(()),
        false => Err(format!("it is about task {answered:?}, not {asked:?}")),
    }
}

fn same_task_if_named(asked: &str, answered: &str) -> Result<(), String> {
    if answered.is_empty() { Ok(()) } else { same_task(asked, answered) }
}

/// How a stream is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Opening {
    /// `SendStreamingMessage`.
    Send(Box<wire::SendMessageRequest>),
    /// `SubscribeToTask`.
    Subscribe(wire::SubscribeToTaskRequest),
}

impl Opening {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Send(_) => "SendStreamingMessage",
            Self::Subscribe(_) => "SubscribeToTask",
        }
    }

    pub fn tenant_mut(&mut self) -> &mut String {
        match self {
            Self::Send(request) => &mut request.tenant,
            Self::Subscribe(request) => &mut request.tenant,
        }
    }

    /// Whether the task is wanted without its history.
    pub fn wants_no_history(&self) -> bool {
        matches!(self, Self::Send(request) if v0_3::wants_no_history(request))
    }

    pub fn json(&self) -> bytes::Bytes {
        match self {
            Self::Send(request) => longhaul_protocol::to_json(&**request),
            Self::Subscribe(request) => longhaul_protocol::to_json(request),
        }
    }

    pub fn route(&self) -> Route {
        match self {
            Self::Send(_) => Route::new(Method::POST, &["message:stream"]),
            Self::Subscribe(request) => Route::verb(Method::GET, &["tasks"], &request.id, "subscribe"),
        }
    }
}
