//! The methods of drafts before 0.3, on a path of their own: three of them are spelled as v0.3 spells others.
//!
//! A caller of a draft makes the id of its task. It is the context of ours, so that it is found again without a memory: whoever
//! asks for an id that is no task's gets the newest task of that context. Its session is kept in the metadata of its messages.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderValue, Response, StatusCode};
use longhaul_engine::StreamItem;
use longhaul_protocol::drafts::{TaskIdParams, TaskQueryParams, TaskSendParams, Teller};
use longhaul_protocol::{A2aError, ErrorCode, FieldViolation, JsonError, Role, to_json, wire};
use serde_json::Value;

use super::{Id, NO_ID, error_answer, no_method, nothing, parse, put_error, put_result, read, result_envelope};
use crate::body::Body;
use crate::operation::{Stream, invalid};
use crate::parameters::{Parameters, VERSION_HEADER};
use crate::requests::{Operation, Spoken, Transport};
use crate::route::{App, JSON, event_stream, json_answer};
use crate::sse::{Envelope, NEXT_EVENT, Then};
use crate::version::Version;

/// The member of a message's metadata that keeps the session.
const SESSION: &str = "sessionId";

/// What answers say of their version: that of the drafts.
const NAME: HeaderValue = HeaderValue::from_static("0.1");

/// Answers one request.
pub(crate) async fn answer(app: &App, parameters: Parameters, body: Result<Bytes, A2aError>) -> Response<Body> {
    let mut answer = answer_in_any_version(app, parameters, body).await;
    answer.headers_mut().insert(VERSION_HEADER, NAME);
    answer
}

async fn answer_in_any_version(app: &App, parameters: Parameters, body: Result<Bytes, A2aError>) -> Response<Body> {
    let body = match body {
        Ok(body) => body,
        Err(error) => return error_answer(&NO_ID, &error),
    };
    let call = match read(&body) {
        Ok(call) => call,
        Err(refused) => return error_answer(&refused.id, &refused.error),
    };
    let Some(id) = call.id else { return nothing() };
    app.requests.count(Spoken::Draft, Transport::JsonRpc, Operation::of_method(&call.method));
    // No delivery can be asked for, so nobody is told anything later.
    match dispatch(app, &parameters.spoken(Version::V0_3), &call.method, call.params).await {
        Ok(Told::Result(result)) => json_answer(StatusCode::OK, JSON, result_envelope(&id, &result)),
        Ok(Told::Stream(stream, teller)) => event_stream(app, stream, Box::new(DraftEnvelope { id, teller })),
        Err(error) => error_answer(&id, &in_names_of_drafts(error)),
    }
}

enum Told {
    Result(Bytes),
    Stream(Stream, Teller),
}

async fn dispatch(app: &App, parameters: &Parameters, method: &str, params: &[u8]) -> Result<Told, A2aError> {
    let operations = &app.operations;
    operations.admit(parameters)?;
    match method {
        "tasks/send" => {
            let params: TaskSendParams = parse(params)?;
            let history_length = params.history_length;
            let (request, teller) = send_request(app, parameters, params).await?;
            let task = match operations.send_message(parameters, request).await?.payload {
                Some(wire::SendMessageResponsePayload::Task(task)) => teller.task(task, history_length),
                Some(wire::SendMessageResponsePayload::Message(message)) => teller.message(message),
                None => return Err(ErrorCode::Internal.into()),
            };
            Ok(Told::Result(to_json(&task)))
        }
        "tasks/sendSubscribe" => {
            let (request, teller) = send_request(app, parameters, parse(params)?).await?;
            Ok(Told::Stream(operations.send_streaming_message(parameters, request).await?, teller))
        }
        "tasks/get" => {
            let params: TaskQueryParams = parse(params)?;
            let task = known(app, parameters, &params.id).await?;
            let teller = Teller::new(params.id, session(&task));
            Ok(Told::Result(to_json(&teller.task(task, params.history_length))))
        }
        "tasks/cancel" => {
            let params: TaskIdParams = parse(params)?;
            let task = known(app, parameters, &params.id).await?;
            let teller = Teller::new(params.id, session(&task));
            let request = wire::CancelTaskRequest { tenant: String::new(), id: task.id, metadata: params.metadata };
            Ok(Told::Result(to_json(&teller.task(operations.cancel_task(parameters, request).await?, None))))
        }
        "tasks/resubscribe" => {
            let params: TaskQueryParams = parse(params)?;
            let task = known(app, parameters, &params.id).await?;
            let teller = Teller::new(params.id, session(&task));
            let request = wire::SubscribeToTaskRequest { tenant: String::new(), id: task.id };
            Ok(Told::Stream(operations.subscribe_to_task(parameters, request).await?, teller))
        }
        _ => Err(no_method(method, "0.1")),
    }
}

/// The task that a caller knows by this id.
async fn find(app: &App, parameters: &Parameters, id: &str) -> Result<Option<wire::Task>, A2aError> {
    let get = wire::GetTaskRequest { id: id.to_owned(), ..Default::default() };
    match app.operations.get_task(parameters, get).await {
        Ok(task) => return Ok(Some(task)),
        Err(error) if error.code == ErrorCode::TaskNotFound => {}
        Err(error) => return Err(error),
    }
    let list = wire::ListTasksRequest {
        context_id: id.to_owned(),
        page_size: Some(1),
        include_artifacts: Some(true),
        ..Default::default()
    };
    Ok(app.operations.list_tasks(parameters, list).await?.tasks.into_iter().next())
}

async fn known(app: &App, parameters: &Parameters, id: &str) -> Result<wire::Task, A2aError> {
    find(app, parameters, id).await?.ok_or_else(|| A2aError::task_not_found(id))
}

/// The session of a task: that of its newest message that names one, else its context.
fn session(task: &wire::Task) -> String {
    let of_message = |message: &wire::Message| match message.metadata.as_ref()?.get(SESSION)? {
        Value::String(session) if message.role.known() == Some(Role::User) => Some(session.clone()),
        _ => None,
    };
    task.history.iter().rev().find_map(of_message).unwrap_or_else(|| task.context_id.clone())
}

fn has_ended(task: &wire::Task) -> bool {
    let state = task.status.as_ref().and_then(|status| status.state.known());
    state.is_some_and(longhaul_protocol::TaskState::is_terminal)
}

async fn send_request(
    app: &App,
    parameters: &Parameters,
    params: TaskSendParams,
) -> Result<(wire::SendMessageRequest, Teller), A2aError> {
    if params.push_notification.is_some() {
        let message = "callers of drafts get no push notifications; speak version 0.3 for them";
        return Err(A2aError::new(ErrorCode::PushNotificationNotSupported, message));
    }
    let known = find(app, parameters, &params.id).await?;
    let session_id = match (params.session_id, &known) {
        (given, _) if !given.is_empty() => given,
        (_, Some(task)) => session(task),
        (_, None) => params.id.clone(),
    };
    let message_id = app.operations.engine().new_message_id().as_str().to_owned();
    let message = params.message.ok_or_else(|| invalid("message", "is required"))?;
    let mut message = message
        .into_v1(message_id)
        .map_err(|error| super::wrong_params(JsonError { path: format!("message.{}", error.path), ..error }))?;
    match known {
        // One that has ended and goes by its own id takes no message; one that goes by its context is followed by another.
        Some(task) if task.id == params.id || !has_ended(&task) => message.task_id = task.id,
        Some(_) | None => message.context_id = params.id.clone(),
    }
    if session_id != params.id {
        message.metadata.get_or_insert_default().insert(SESSION.to_owned(), session_id.clone().into());
    }
    let configuration =
        wire::SendMessageConfiguration { accepted_output_modes: params.accepted_output_modes, ..Default::default() };
    let request = wire::SendMessageRequest {
        tenant: String::new(),
        message: Some(message),
        configuration: Some(configuration),
        metadata: params.metadata,
    };
    Ok((request, Teller::new(params.id, session_id)))
}

/// The ids of v1.0 were one.
fn in_names_of_drafts(error: A2aError) -> A2aError {
    if error.code != ErrorCode::InvalidArgument || error.violations.is_empty() {
        return error;
    }
    let violations = error.violations.into_iter().map(|violation| {
        let is_id = ["contextId", "message.contextId", "message.taskId"].contains(&violation.field.as_str());
        FieldViolation { field: if is_id { "id".to_owned() } else { violation.field }, ..violation }
    });
    A2aError::invalid_argument(violations.collect())
}

struct DraftEnvelope {
    id: Id,
    teller: Teller,
}

impl Envelope for DraftEnvelope {
    fn item(&mut self, item: &StreamItem, out: &mut BytesMut) -> Result<Then, A2aError> {
        let mut then = Then::More;
        for (index, event) in self.teller.events(crate::v0_3::read(item)?).iter().enumerate() {
            if index > 0 {
                out.put_slice(NEXT_EVENT);
            }
            put_result(&self.id, &event.to_json(), out);
            if event.is_final() {
                then = Then::End;
            }
        }
        Ok(then)
    }

    fn error(&self, error: &A2aError, out: &mut BytesMut) {
        put_error(&self.id, error, out);
    }
}
