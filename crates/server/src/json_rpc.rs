//! The JSON-RPC binding (A2A §9), JSON-RPC 2.0 to the letter. v1.0 and v0.3 have their methods on one path.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{Response, StatusCode};
use longhaul_engine::StreamItem;
use longhaul_protocol::json::{JsonError, ProtoJson};
use longhaul_protocol::{A2aError, ErrorCode, from_json, to_json};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::body::Body;
use crate::operation::Stream;
use crate::parameters::Parameters;
use crate::requests::{Operation, Spoken, Transport};
use crate::route::{App, JSON, event_answer, event_stream, in_version, json_answer, with_retry_after};
use crate::sse::{Envelope, Then};
use crate::version::Version;

pub(crate) mod drafts;
mod v0_3;

/// A request as it came. Members that are absent are told from those that are `null`.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The id of a request, as its bytes.
type Id = Bytes;

const NO_ID: Id = Id::from_static(b"null");

/// Answers one request.
pub(crate) async fn answer(app: &App, parameters: Parameters, body: Result<Bytes, A2aError>) -> Response<Body> {
    let no_request = |id, error| {
        let likely = app.versions.choose(parameters.asked()).unwrap_or(Version::V1_0);
        in_version(likely, error_answer(id, error))
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return no_request(&NO_ID, &error),
    };
    let call = match read(&body) {
        Ok(call) => call,
        Err(refused) => return no_request(&refused.id, &refused.error),
    };
    let Some(id) = call.id else {
        return nothing();
    };
    let operation = Operation::of_method(&call.method);
    let version = match version_of(app, &parameters, &call.method) {
        Ok(version) => version,
        Err(error) => {
            app.requests.count(Spoken::Refused, Transport::JsonRpc, operation);
            return error_answer(&id, &error);
        }
    };
    app.requests.count(version.into(), Transport::JsonRpc, operation);
    let parameters = parameters.spoken(version);
    let answered = match version {
        Version::V1_0 => dispatch(app, &parameters, &call.method, call.params).await,
        Version::V0_3 => v0_3::dispatch(app, &parameters, &call.method, call.params).await,
    };
    let answer = match answered {
        Ok(Answer::Result(result)) => json_answer(StatusCode::OK, JSON, result_envelope(&id, &result)),
        Ok(Answer::Stream(stream)) => event_stream(app, stream, Box::new(RpcEnvelope { id, version })),
        // The clients of v0.3 read no other answer to what would have been a stream.
        Err(error) if version == Version::V0_3 && parameters.asks_for_events => error_event(&id, &error),
        Err(error) => error_answer(&id, &error),
    };
    in_version(version, answer)
}

/// A notification gets no answer, so nobody could learn what it did: it does nothing.
fn nothing() -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// The version of a request. v1.0 names its methods in PascalCase and v0.3 by paths, so a caller of a method of v1.0 that names
/// no version is told what it lacks.
fn version_of(app: &App, parameters: &Parameters, method: &str) -> Result<Version, A2aError> {
    if !method.starts_with(|first: char| first.is_ascii_uppercase()) {
        return app.versions.choose(parameters.asked());
    }
    let shown = fmt::from_fn(|f| {
        let mut letters = method.chars().filter(char::is_ascii_alphanumeric).take(METHOD_SHOWN_MAX);
        letters.try_for_each(|letter| f.write_char(letter))
    });
    app.versions.require_v1_0(parameters.asked(), shown).map(|()| Version::V1_0)
}

/// How much of the name of a method is told back, in characters.
const METHOD_SHOWN_MAX: usize = 64;

/// A request of the right form.
struct Checked<'a> {
    id: Option<Id>,
    method: Cow<'a, str>,
    params: &'a [u8],
}

/// A request that is none, and the id that its answer names.
struct Refused {
    id: Id,
    error: A2aError,
}

fn read(body: &Bytes) -> Result<Checked<'_>, Box<Refused>> {
    let refused = |id: &Id, error| Box::new(Refused { id: id.clone(), error });
    let invalid = |id: &Id, why: &str| refused(id, A2aError::new(ErrorCode::InvalidRequest, why));
    let call: Call<'_> = serde_json::from_slice(body).map_err(|error| match error.is_data() {
        true if first_byte(body) == Some(b'[') => {
            invalid(&NO_ID, "batches are not supported; send one request at a time")
        }
        true => invalid(&NO_ID, "a request is one object with jsonrpc, id, method and params, each at most once"),
        false => refused(&NO_ID, A2aError::new(ErrorCode::ParseError, format!("the body is not JSON: {error}"))),
    })?;
    let id = match call.id {
        None => None,
        Some(raw) if is_id(raw.get()) => Some(Bytes::copy_from_slice(raw.get().as_bytes())),
        Some(_) => return Err(invalid(&NO_ID, "id must be a string, a whole number or null")),
    };
    let answer_to = id.clone().unwrap_or(NO_ID);
    if call.jsonrpc.and_then(text).as_deref() != Some("2.0") {
        return Err(invalid(&answer_to, "jsonrpc must be \"2.0\""));
    }
    let method = call.method.and_then(text).ok_or_else(|| invalid(&answer_to, "method must be a string"))?;
    let params = match call.params.map(RawValue::get) {
        None => "{}",
        Some(object) if object.starts_with('{') => object,
        Some(array) if array.starts_with('[') => {
            let why = "params must be an object: A2A names its parameters";
            return Err(refused(&answer_to, A2aError::new(ErrorCode::InvalidArgument, why)));
        }
        Some(_) => return Err(invalid(&answer_to, "params must be an object")),
    };
    Ok(Checked { id, method, params: params.as_bytes() })
}

fn first_byte(body: &[u8]) -> Option<u8> {
    body.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

/// Whether a value may be an id: a string, a number without a fraction, or null.
fn is_id(raw: &str) -> bool {
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Cow<'_, str>>(raw).is_ok(),
        Some(b'-' | b'0'..=b'9') => !raw.contains(['.', 'e', 'E']),
        Some(_) => raw == "null",
        None => false,
    }
}

enum Answer {
    Result(Bytes),
    Stream(Stream),
}

fn parse<T: ProtoJson>(params: &[u8]) -> Result<T, A2aError> {
    from_json(params).map_err(wrong_params)
}

fn wrong_params(error: JsonError) -> A2aError {
    let error = A2aError::from(error);
    // The body was JSON, so whatever is wrong with the parameters, they are invalid.
    match error.code {
        ErrorCode::ParseError => A2aError::new(ErrorCode::InvalidArgument, error.message),
        _ => error,
    }
}

fn no_method(method: &str, version: &str) -> A2aError {
    let shown: String = method.chars().take(METHOD_SHOWN_MAX).collect();
    let message = format!("there is no method {shown:?} in version {version} of the protocol");
    A2aError::new(ErrorCode::MethodNotFound, message)
}

fn result<T: ProtoJson>(result: Result<T, A2aError>) -> Result<Answer, A2aError> {
    result.map(|result| Answer::Result(to_json(&result)))
}

async fn dispatch(app: &App, parameters: &Parameters, method: &str, params: &[u8]) -> Result<Answer, A2aError> {
    let operations = &app.operations;
    operations.admit(parameters)?;
    match method {
        "SendMessage" => result(operations.send_message(parameters, parse(params)?).await),
        "SendStreamingMessage" => {
            operations.send_streaming_message(parameters, parse(params)?).await.map(Answer::Stream)
        }
        "GetTask" => result(operations.get_task(parameters, parse(params)?).await),
        "ListTasks" => result(operations.list_tasks(parameters, parse(params)?).await),
        "CancelTask" => result(operations.cancel_task(parameters, parse(params)?).await),
        "SubscribeToTask" => operations.subscribe_to_task(parameters, parse(params)?).await.map(Answer::Stream),
        "CreateTaskPushNotificationConfig" => result(operations.create_push_config(parameters, parse(params)?).await),
        "GetTaskPushNotificationConfig" => result(operations.get_push_config(parameters, parse(params)?).await),
        "ListTaskPushNotificationConfigs" => result(operations.list_push_configs(parameters, parse(params)?).await),
        "DeleteTaskPushNotificationConfig" => {
            operations.delete_push_config(parameters, parse(params)?).await?;
            Ok(Answer::Result(Bytes::from_static(b"{}")))
        }
        "GetExtendedAgentCard" => Err(operations.extended_card_not_supported()),
        "ListArtifactVersions" => result(operations.list_artifact_versions(parameters, parse(params)?).await),
        "GetArtifact" => result(operations.get_artifact(parameters, parse(params)?).await),
        _ => Err(no_method(method, Version::V1_0.name())),
    }
}

fn result_envelope(id: &[u8], result: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(result.len() + id.len() + 40);
    put_result(id, result, &mut out);
    out.freeze()
}

fn put_result(id: &[u8], result: &[u8], out: &mut BytesMut) {
    out.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.put_slice(id);
    out.put_slice(b",\"result\":");
    out.put_slice(result);
    out.put_slice(b"}");
}

/// Errors are the same in each version.
fn put_error(id: &[u8], error: &A2aError, out: &mut BytesMut) {
    out.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.put_slice(id);
    out.put_slice(b",\"error\":");
    out.put_slice(error.to_json_rpc_error().to_string().as_bytes());
    out.put_slice(b"}");
}

/// An error's answer. Three statuses are told by HTTP as well: clients look there before they read the body.
fn error_answer(id: &[u8], error: &A2aError) -> Response<Body> {
    let mut out = BytesMut::new();
    put_error(id, error, &mut out);
    with_retry_after(json_answer(status_of(error), JSON, out.freeze()), error)
}

/// An error as the only event of a stream, unless HTTP tells it as well.
fn error_event(id: &[u8], error: &A2aError) -> Response<Body> {
    if status_of(error) != StatusCode::OK {
        return error_answer(id, error);
    }
    let mut out = BytesMut::from(&b"data: "[..]);
    put_error(id, error, &mut out);
    out.put_slice(b"\n\n");
    event_answer(Body::from(out.freeze()))
}

fn status_of(error: &A2aError) -> StatusCode {
    match error.code {
        ErrorCode::TooLarge | ErrorCode::ResourceExhausted | ErrorCode::Unavailable => {
            StatusCode::from_u16(error.code.row().http).unwrap_or(StatusCode::OK)
        }
        _ => StatusCode::OK,
    }
}

struct RpcEnvelope {
    id: Id,
    version: Version,
}

impl Envelope for RpcEnvelope {
    fn item(&mut self, item: &StreamItem, out: &mut BytesMut) -> Result<Then, A2aError> {
        match self.version {
            Version::V1_0 => {
                put_result(&self.id, &item.payload, out);
                Ok(Then::More)
            }
            Version::V0_3 => {
                let (event, then) = crate::v0_3::rpc_event(item)?;
                put_result(&self.id, &to_json(&event), out);
                Ok(then)
            }
        }
    }

    fn error(&self, error: &A2aError, out: &mut BytesMut) {
        put_error(&self.id, error, out);
    }
}
