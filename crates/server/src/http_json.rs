//! The HTTP+JSON binding (A2A §11).

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{Method, Response, StatusCode};
use longhaul_engine::StreamItem;
use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::{A2aError, from_json, to_json, wire};

use crate::body::Body;
use crate::operation::{Stream, invalid};
use crate::parameters::Parameters;
use crate::path::Resource;
use crate::query::Query;
use crate::requests::Operation;
use crate::route::{A2A_JSON, App, event_stream, json_answer, status_answer};
use crate::sse::{Envelope, Then};
use crate::version::Version;

pub(crate) mod v0_3;

/// The operation that a method of a resource is.
pub(crate) fn operation(method: &Method, resource: &Resource) -> Operation {
    match resource {
        Resource::SendMessage => Operation::SendMessage,
        Resource::SendStreamingMessage => Operation::SendStreamingMessage,
        Resource::Tasks => Operation::ListTasks,
        Resource::Task { .. } => Operation::GetTask,
        Resource::CancelTask { .. } => Operation::CancelTask,
        Resource::SubscribeToTask { .. } => Operation::SubscribeToTask,
        Resource::PushConfigs { .. } if *method == Method::POST => Operation::CreatePushConfig,
        Resource::PushConfigs { .. } => Operation::ListPushConfigs,
        Resource::PushConfig { .. } if *method == Method::DELETE => Operation::DeletePushConfig,
        Resource::PushConfig { .. } => Operation::GetPushConfig,
        Resource::ExtendedAgentCard => Operation::GetExtendedAgentCard,
        Resource::Artifact { .. } | Resource::ArtifactVersion { .. } => Operation::GetArtifact,
        Resource::ArtifactVersions { .. } => Operation::ListArtifactVersions,
    }
}

/// The methods that a resource answers to.
pub(crate) fn methods(resource: &Resource) -> &'static [Method] {
    match resource {
        Resource::SendMessage | Resource::SendStreamingMessage | Resource::CancelTask { .. } => &[Method::POST],
        Resource::SubscribeToTask { .. } | Resource::PushConfigs { .. } => &[Method::GET, Method::POST],
        Resource::PushConfig { .. } => &[Method::GET, Method::DELETE],
        Resource::Tasks
        | Resource::Task { .. }
        | Resource::ExtendedAgentCard
        | Resource::Artifact { .. }
        | Resource::ArtifactVersions { .. }
        | Resource::ArtifactVersion { .. } => &[Method::GET],
    }
}

enum Answer {
    Result(Bytes),
    Stream(Stream),
}

/// Answers one request whose method its resource answers to.
pub(crate) async fn answer(
    app: &App,
    parameters: &Parameters,
    (method, resource): (&Method, Resource),
    query: Query,
    body: Result<Bytes, A2aError>,
) -> Response<Body> {
    match dispatch(app, parameters, (method, resource), query, body).await {
        Ok(Answer::Result(result)) => json_answer(StatusCode::OK, A2A_JSON, result),
        Ok(Answer::Stream(stream)) => event_stream(app, stream, Box::new(PlainEnvelope { version: Version::V1_0 })),
        Err(error) => status_answer(&error),
    }
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
    match resource {
        Resource::SendMessage => result(operations.send_message(parameters, parse(&body?)?).await),
        Resource::SendStreamingMessage => {
            operations.send_streaming_message(parameters, parse(&body?)?).await.map(Answer::Stream)
        }
        Resource::Tasks => result(operations.list_tasks(parameters, query.list_tasks()?).await),
        Resource::Task { id } => result(operations.get_task(parameters, query.get_task(id)?).await),
        Resource::CancelTask { id } => {
            let request: wire::CancelTaskRequest = parse_if_any(&body?)?;
            result(operations.cancel_task(parameters, wire::CancelTaskRequest { id, ..request }).await)
        }
        Resource::SubscribeToTask { id } => {
            let request: wire::SubscribeToTaskRequest = parse_if_any(&body?)?;
            let from_query = query.subscribe_to_task(id);
            let tenant = if request.tenant.is_empty() { from_query.tenant } else { request.tenant };
            let request = wire::SubscribeToTaskRequest { tenant, id: from_query.id };
            operations.subscribe_to_task(parameters, request).await.map(Answer::Stream)
        }
        Resource::PushConfigs { task_id } if *method == Method::POST => {
            let config = config_of(task_id, parse(&body?)?)?;
            result(operations.create_push_config(parameters, config).await)
        }
        Resource::PushConfigs { task_id } => {
            result(operations.list_push_configs(parameters, query.list_push_configs(task_id)?).await)
        }
        Resource::PushConfig { task_id, id } if *method == Method::DELETE => {
            operations.delete_push_config(parameters, query.delete_push_config(task_id, id)).await?;
            Ok(Answer::Result(Bytes::from_static(b"{}")))
        }
        Resource::PushConfig { task_id, id } => {
            result(operations.get_push_config(parameters, query.get_push_config(task_id, id)).await)
        }
        Resource::ExtendedAgentCard => Err(operations.extended_card_not_supported()),
        Resource::Artifact { task_id, artifact_id } => {
            result(operations.get_artifact(parameters, query.get_artifact(task_id, artifact_id, None)?).await)
        }
        Resource::ArtifactVersion { task_id, artifact_id, version } => {
            result(operations.get_artifact(parameters, query.get_artifact(task_id, artifact_id, Some(&version))?).await)
        }
        Resource::ArtifactVersions { task_id, artifact_id } => result(
            operations.list_artifact_versions(parameters, query.list_artifact_versions(task_id, artifact_id)?).await,
        ),
    }
}

/// The task of a config is the one of its path.
fn config_of(
    task_id: String,
    config: wire::TaskPushNotificationConfig,
) -> Result<wire::TaskPushNotificationConfig, A2aError> {
    if !config.task_id.is_empty() && config.task_id != task_id {
        return Err(invalid("taskId", "is not the task of the path; leave it out"));
    }
    Ok(wire::TaskPushNotificationConfig { task_id, ..config })
}

fn parse<T: ProtoJson>(body: &[u8]) -> Result<T, A2aError> {
    from_json(body).map_err(A2aError::from)
}

/// Some clients send nothing where the body has nothing to say.
fn parse_if_any<T: ProtoJson + Default>(body: &[u8]) -> Result<T, A2aError> {
    if body.iter().all(u8::is_ascii_whitespace) { Ok(T::default()) } else { parse(body) }
}

fn result<T: ProtoJson>(result: Result<T, A2aError>) -> Result<Answer, A2aError> {
    result.map(|result| Answer::Result(to_json(&result)))
}

struct PlainEnvelope {
    version: Version,
}

impl Envelope for PlainEnvelope {
    fn item(&mut self, item: &StreamItem, out: &mut BytesMut) -> Result<Then, A2aError> {
        match self.version {
            Version::V1_0 => {
                out.put_slice(&item.payload);
                Ok(Then::More)
            }
            Version::V0_3 => {
                let (event, then) = crate::v0_3::proto_event(item)?;
                out.put_slice(&to_json(&event));
                Ok(then)
            }
        }
    }

    fn error(&self, error: &A2aError, out: &mut BytesMut) {
        out.put_slice(&match self.version {
            Version::V1_0 => error.to_status_json(),
            Version::V0_3 => longhaul_protocol::v0_3::error::to_http_json(error),
        });
    }
}
