//! What each operation is in v0.3, over each of its bindings: one table for each.

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::Method;
use longhaul_protobuf::convert::v0_3::{Older as _, card_into_v1};
use longhaul_protobuf::{ConvertError, a2a_v0_3};
use longhaul_protocol::json::JsonError;
use longhaul_protocol::v0_3::card::card_from_json;
use longhaul_protocol::v0_3::{from_json, json_rpc, proto, to_json};
use longhaul_protocol::wire;
use tonic::Request;

use super::Nothing;
use crate::binding::http_json::Route;
use crate::binding::said::GrpcAnswer;
use crate::transport::GrpcHttp;

/// The client of the gRPC service of v0.3.
pub(crate) type Client = a2a_v0_3::a2a_service_client::A2aServiceClient<GrpcHttp>;

/// An operation with request `Q` and answer `R`, or what to say of one that v0.3 does not have.
pub(crate) type InV0_3<Q, R> = Result<Forms<Q, R>, &'static str>;

/// How v0.3 says an operation.
#[derive(Debug)]
pub(crate) struct Forms<Q, R> {
    /// The method of JSON-RPC.
    pub method: &'static str,
    /// Its parameters.
    pub params: fn(Q) -> Bytes,
    /// Its result.
    pub result: fn(&[u8]) -> Result<R, JsonError>,
    /// Method and path of HTTP+JSON.
    pub route: fn(&Q) -> Route,
    /// The body, where the route has one.
    pub body: fn(Q) -> Bytes,
    /// The body of the answer.
    pub answer: fn(&[u8]) -> Result<R, JsonError>,
    /// The call over gRPC.
    pub grpc: fn(Client, Request<Q>) -> GrpcAnswer<Result<R, ConvertError>>,
    /// What of the answer was not asked for, taken away.
    pub settle: fn(&Q, &mut R),
}

/// A call over gRPC whose request and answer have forms in v0.3.
macro_rules! over_grpc {
    ($request:ident => $method:ident) => {
        |mut client, request| {
            let request = request.map(a2a_v0_3::$request::from_v1);
            async move { Ok(client.$method(request).await?.map(|answer| answer.into_v1())) }.boxed()
        }
    };
}

fn no_body<Q>(_: Q) -> Bytes {
    Bytes::new()
}

fn as_it_is<Q, R>(_: &Q, _: &mut R) {}

/// A result that says nothing.
fn nothing(_: &[u8]) -> Result<Nothing, JsonError> {
    Ok(Nothing)
}

const PUSH_CONFIGS: &str = "pushNotificationConfigs";

pub(super) const SEND_MESSAGE: InV0_3<wire::SendMessageRequest, wire::SendMessageResponse> = Ok(Forms {
    method: "message/send",
    params: to_json::<json_rpc::MessageSendParams, _>,
    result: from_json::<json_rpc::Event, _>,
    route: |_| Route::new(Method::POST, &["v1", "message:send"]),
    body: to_json::<proto::SendMessageRequest, _>,
    answer: from_json::<proto::SendMessageResponse, _>,
    grpc: over_grpc!(SendMessageRequest => send_message),
    settle: |request, answer| {
        if let Some(wire::SendMessageResponsePayload::Task(task)) = &mut answer.payload
            && wants_no_history(request)
        {
            task.history.clear();
        }
    },
});

pub(super) const GET_TASK: InV0_3<wire::GetTaskRequest, wire::Task> = Ok(Forms {
    method: "tasks/get",
    params: to_json::<json_rpc::TaskQueryParams, _>,
    result: from_json::<json_rpc::Task, _>,
    route: |request| {
        Route::new(Method::GET, &["v1", "tasks", &request.id]).number("historyLength", request.history_length)
    },
    body: no_body,
    answer: from_json::<proto::Task, _>,
    grpc: over_grpc!(GetTaskRequest => get_task),
    settle: |request, task| {
        if request.history_length == Some(0) {
            task.history.clear();
        }
    },
});

pub(super) const CANCEL_TASK: InV0_3<wire::CancelTaskRequest, wire::Task> = Ok(Forms {
    method: "tasks/cancel",
    params: to_json::<json_rpc::TaskIdParams, _>,
    result: from_json::<json_rpc::Task, _>,
    route: |request| Route::verb(Method::POST, &["v1", "tasks"], &request.id, "cancel"),
    body: to_json::<proto::CancelTaskRequest, _>,
    answer: from_json::<proto::Task, _>,
    grpc: over_grpc!(CancelTaskRequest => cancel_task),
    settle: as_it_is,
});

pub(super) const CREATE_PUSH_CONFIG: InV0_3<wire::TaskPushNotificationConfig, wire::TaskPushNotificationConfig> =
    Ok(Forms {
        method: "tasks/pushNotificationConfig/set",
        params: to_json::<json_rpc::TaskPushNotificationConfig, _>,
        result: from_json::<json_rpc::TaskPushNotificationConfig, _>,
        route: |request| Route::new(Method::POST, &["v1", "tasks", &request.task_id, PUSH_CONFIGS]),
        body: to_json::<proto::CreateTaskPushNotificationConfigRequest, _>,
        answer: from_json::<proto::TaskPushNotificationConfig, _>,
        grpc: over_grpc!(CreateTaskPushNotificationConfigRequest => create_task_push_notification_config),
        settle: as_it_is,
    });

pub(super) const GET_PUSH_CONFIG: InV0_3<wire::GetTaskPushNotificationConfigRequest, wire::TaskPushNotificationConfig> =
    Ok(Forms {
        method: "tasks/pushNotificationConfig/get",
        params: to_json::<json_rpc::PushNotificationConfigParams, _>,
        result: from_json::<json_rpc::TaskPushNotificationConfig, _>,
        route: |request| Route::new(Method::GET, &["v1", "tasks", &request.task_id, PUSH_CONFIGS, &request.id]),
        body: no_body,
        answer: from_json::<proto::TaskPushNotificationConfig, _>,
        grpc: over_grpc!(GetTaskPushNotificationConfigRequest => get_task_push_notification_config),
        settle: as_it_is,
    });

pub(super) const LIST_PUSH_CONFIGS: InV0_3<
    wire::ListTaskPushNotificationConfigsRequest,
    wire::ListTaskPushNotificationConfigsResponse,
> = Ok(Forms {
    method: "tasks/pushNotificationConfig/list",
    params: to_json::<json_rpc::TaskIdParams, _>,
    result: from_json::<json_rpc::TaskPushNotificationConfigs, _>,
    route: |request| {
        Route::new(Method::GET, &["v1", "tasks", &request.task_id, PUSH_CONFIGS])
            .number("pageSize", Some(request.page_size).filter(|size| *size != 0))
            .text("pageToken", &request.page_token)
    },
    body: no_body,
    answer: from_json::<proto::ListTaskPushNotificationConfigResponse, _>,
    grpc: over_grpc!(ListTaskPushNotificationConfigRequest => list_task_push_notification_config),
    settle: as_it_is,
});

pub(super) const DELETE_PUSH_CONFIG: InV0_3<wire::DeleteTaskPushNotificationConfigRequest, Nothing> = Ok(Forms {
    method: "tasks/pushNotificationConfig/delete",
    params: to_json::<json_rpc::PushNotificationConfigParams, _>,
    result: nothing,
    route: |request| Route::new(Method::DELETE, &["v1", "tasks", &request.task_id, PUSH_CONFIGS, &request.id]),
    body: no_body,
    answer: nothing,
    grpc: |mut client, request| {
        let request = request.map(a2a_v0_3::DeleteTaskPushNotificationConfigRequest::from_v1);
        async move { Ok(client.delete_task_push_notification_config(request).await?.map(|()| Ok(Nothing))) }.boxed()
    },
    settle: as_it_is,
});

/// The card of v0.3 is the same in HTTP+JSON and JSON-RPC. The method has no parameters.
pub(super) const GET_EXTENDED_CARD: InV0_3<wire::GetExtendedAgentCardRequest, wire::AgentCard> = Ok(Forms {
    method: "agent/getAuthenticatedExtendedCard",
    params: |_| Bytes::from_static(b"{}"),
    result: card_from_json,
    route: |_| Route::new(Method::GET, &["v1", "card"]),
    body: no_body,
    answer: card_from_json,
    grpc: |mut client, request| {
        let request = request.map(|_| a2a_v0_3::GetAgentCardRequest {});
        async move { Ok(client.get_agent_card(request).await?.map(card_into_v1)) }.boxed()
    },
    settle: as_it_is,
});

/// Whether a send asks for none of the history. Servers of v0.3 take 0 for all of it.
pub(crate) fn wants_no_history(request: &wire::SendMessageRequest) -> bool {
    request.configuration.as_ref().and_then(|configuration| configuration.history_length) == Some(0)
}
