//! The HTTP+JSON binding of v0.3: the resources below `/v1` (§3.5.6 of v0.3).

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use longhaul_protocol::v0_3::proto::{
    ListTaskPushNotificationConfigResponse, PushConfigBody, SendMessageRequest, SendMessageResponse, Task,
    TaskPushNotificationConfig,
};
use longhaul_protocol::v0_3::{error, from_json, in_names_of, to_json};
use longhaul_protocol::{A2aError, ErrorCode, wire};

use super::{Answer, PlainEnvelope};
use crate::body::Body;
use crate::parameters::Parameters;
use crate::path::Resource;
use crate::query::Query;
use crate::route::{App, JSON, event_stream, in_version, json_answer, with_retry_after};
use crate::v0_3::push_config;
use crate::version::Version;

/// Answers one request whose method its resource answers to.
pub(crate) async fn answer(
    app: &App,
    parameters: &Parameters,
    (method, resource): (&Method, Resource),
    query: Query,
    body: Result<Bytes, A2aError>,
) -> Response<Body> {
    let answer = match dispatch(app, parameters, (method, resource), query, body).await {
        Ok(Answer::Result(result)) => json_answer(StatusCode::OK, JSON, result),
        Ok(Answer::Stream(stream)) => event_stream(app, stream, Box::new(PlainEnvelope { version: Version::V0_3 })),
        Err(error) => return status_answer(&error),
    };
    in_version(Version::V0_3, answer)
}

/// An error, by the statuses and in the words of v0.3.
pub(crate) fn status_answer(error: &A2aError) -> Response<Body> {
    let status = StatusCode::from_u16(error::row(error.code).http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let answer = json_answer(status, JSON, error::to_http_json(error));
    in_version(Version::V0_3, with_retry_after(answer, error))
}

async fn dispatch(
    app: &App,
    parameters: &Parameters,
    (method, resource): (&Method, Resource),
    query: Query,
    body: Result<Bytes, A2aError>,
) -> Result<Answer, A2aError> {
    let operations = &app.operations;
    operations.admit(parameters)?;
    let tenant = String::new();
    match resource {
        Resource::SendMessage => {
            let request = from_json::<SendMessageRequest, _>(&body?)?;
            let sent = operations.send_message(parameters, request).await;
            let sent = sent.map_err(in_names_of::<SendMessageRequest, wire::SendMessageRequest>)?;
            Ok(Answer::Result(to_json::<SendMessageResponse, _>(sent)))
        }
        Resource::SendStreamingMessage => {
            let request = from_json::<SendMessageRequest, _>(&body?)?;
            let sent = operations.send_streaming_message(parameters, request).await;
            sent.map(Answer::Stream).map_err(in_names_of::<SendMessageRequest, wire::SendMessageRequest>)
        }
        Resource::Task { id } => {
            let request = query.get_task(id)?;
            // No limit, as in the other bindings of v0.3.
            let history_length = request.history_length.filter(|length| *length != 0);
            let request = wire::GetTaskRequest { tenant, id: request.id, history_length };
            operations.get_task(parameters, request).await.map(task)
        }
        Resource::CancelTask { id } => {
            // The body says again what the path says.
            body?;
            let request = wire::CancelTaskRequest { tenant, id, metadata: None };
            operations.cancel_task(parameters, request).await.map(task)
        }
        Resource::SubscribeToTask { id } => {
            body?;
            let request = wire::SubscribeToTaskRequest { tenant, id };
            operations.subscribe_to_task(parameters, request).await.map(Answer::Stream)
        }
        Resource::PushConfigs { task_id } if *method == Method::POST => {
            let config = wire::TaskPushNotificationConfig { task_id, ..from_json::<PushConfigBody, _>(&body?)? };
            let made = operations.create_push_config(parameters, config).await;
            made.map(config_answer).map_err(in_names_of::<PushConfigBody, wire::TaskPushNotificationConfig>)
        }
        Resource::PushConfigs { task_id } => {
            let request = query.list_push_configs(task_id)?;
            let request = wire::ListTaskPushNotificationConfigsRequest { tenant, ..request };
            let page = operations.list_push_configs(parameters, request).await?;
            Ok(Answer::Result(to_json::<ListTaskPushNotificationConfigResponse, _>(page)))
        }
        Resource::PushConfig { task_id, id } if *method == Method::DELETE => {
            let request = wire::DeleteTaskPushNotificationConfigRequest { tenant, task_id, id };
            operations.delete_push_config(parameters, request).await?;
            Ok(Answer::Result(Bytes::from_static(b"{}")))
        }
        Resource::PushConfig { task_id, id } => {
            let request = wire::GetTaskPushNotificationConfigRequest { tenant, task_id, id };
            push_config(operations, parameters, request).await.map(config_answer)
        }
        Resource::ExtendedAgentCard => Ok(Answer::Result(app.card.json())),
        Resource::Tasks
        | Resource::Artifact { .. }
        | Resource::ArtifactVersions { .. }
        | Resource::ArtifactVersion { .. } => Err(A2aError::from(ErrorCode::RouteNotFound)),
    }
}

fn task(task: wire::Task) -> Answer {
    Answer::Result(to_json::<Task, _>(task))
}

fn config_answer(config: wire::TaskPushNotificationConfig) -> Answer {
    Answer::Result(to_json::<TaskPushNotificationConfig, _>(config))
}
