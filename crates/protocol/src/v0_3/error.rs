//! The errors of v0.3: one table from our error to its form in each binding, and back.
//!
//! The error object of JSON-RPC is that of v1.0 ([`A2aError::to_json_rpc_error`]): v0.3 has the same codes. Its specification
//! has no HTTP and no gRPC statuses: these are what its SDKs agree on, and where they do not, what its clients can tell apart.

use bytes::Bytes;
use serde_json::Value;

use crate::error::{A2aError, ErrorCode, ErrorRow, GrpcCode};

/// The row of v0.3's table for an error: all but the statuses is that of v1.0.
#[must_use]
pub fn row(code: ErrorCode) -> ErrorRow {
    use ErrorCode as E;
    use GrpcCode as G;
    let row = code.row();
    let (http, grpc) = match code {
        E::TaskNotCancelable => (409, G::FailedPrecondition),
        E::PushNotificationNotSupported | E::UnsupportedOperation => (501, G::Unimplemented),
        E::ContentTypeNotSupported => (415, G::InvalidArgument),
        E::InvalidAgentResponse => (502, G::Internal),
        E::ExtendedAgentCardNotConfigured => (404, G::FailedPrecondition),
        E::TaskNotFound
        | E::ExtensionSupportRequired
        | E::VersionNotSupported
        | E::InvalidArgument
        | E::TooLarge
        | E::ResourceExhausted
        | E::Unavailable
        | E::Internal
        | E::ParseError
        | E::InvalidRequest
        | E::MethodNotFound
        | E::RouteNotFound
        | E::MethodNotAllowed => (row.http, row.grpc),
    };
    ErrorRow { http, grpc, ..row }
}

/// The name of an error in v0.3, with which the message of a gRPC status begins.
#[must_use]
pub fn name(code: ErrorCode) -> &'static str {
    use ErrorCode as E;
    match code {
        E::TaskNotFound => "TaskNotFoundError",
        E::TaskNotCancelable => "TaskNotCancelableError",
        E::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        E::UnsupportedOperation => "UnsupportedOperationError",
        E::ContentTypeNotSupported => "ContentTypeNotSupportedError",
        E::InvalidAgentResponse => "InvalidAgentResponseError",
        E::ExtendedAgentCardNotConfigured => "AuthenticatedExtendedCardNotConfiguredError",
        // These two came with v1.0.
        E::ExtensionSupportRequired => "ExtensionSupportRequiredError",
        E::VersionNotSupported => "VersionNotSupportedError",
        E::InvalidArgument | E::TooLarge => "InvalidParamsError",
        E::ResourceExhausted | E::Unavailable | E::Internal => "InternalError",
        E::ParseError => "JSONParseError",
        E::InvalidRequest => "InvalidRequestError",
        E::MethodNotFound | E::RouteNotFound | E::MethodNotAllowed => "MethodNotFoundError",
    }
}

/// The body of an HTTP+JSON error, and of an `error` event of its streams: the object of JSON-RPC, and in `error` and `type` the
/// name. Some clients look at the one and some at another.
#[must_use]
pub fn to_http_json(error: &A2aError) -> Bytes {
    let mut body = error.to_json_rpc_error();
    if let Some(members) = body.as_object_mut() {
        for member in ["error", "type"] {
            members.insert(member.to_owned(), name(error.code).into());
        }
    }
    Bytes::from(body.to_string())
}

/// The message of a gRPC status: the error's name, then its message. Old clients see no details.
#[must_use]
pub fn to_grpc_message(error: &A2aError) -> String {
    format!("{}: {}", name(error.code), error.message)
}

/// The error that a code of JSON-RPC stands for.
#[must_use]
pub fn from_json_rpc_code(code: i32) -> Option<ErrorCode> {
    find(|candidate| row(candidate).json_rpc == code)
}

/// The error that the body of an HTTP+JSON error tells, by its `code` or by its name in `error`.
///
/// `None` when it tells neither: then only the HTTP status is known.
#[must_use]
pub fn from_http_json(body: &[u8]) -> Option<A2aError> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let by_code = || from_json_rpc_code(i32::try_from(body.get("code")?.as_i64()?).ok()?);
    // One SDK writes the path of the class.
    let by_name = || from_name(body.get("error")?.as_str()?.rsplit('.').next()?);
    let code = by_code().or_else(by_name)?;
    Some(A2aError::new(code, body.get("message").and_then(Value::as_str).unwrap_or_default()))
}

/// The error that the message of a gRPC status names, and the rest of the message.
#[must_use]
pub fn from_grpc_message(message: &str) -> Option<A2aError> {
    let (name_of_error, rest) = message.split_once(": ")?;
    Some(A2aError::new(from_name(name_of_error)?, rest))
}

fn from_name(name_of_error: &str) -> Option<ErrorCode> {
    find(|candidate| name(candidate) == name_of_error)
}

/// The first error that is meant where several of ours have one code and one name.
fn find(is_it: impl Fn(ErrorCode) -> bool) -> Option<ErrorCode> {
    const FIRST: &[ErrorCode] = &[ErrorCode::InvalidArgument, ErrorCode::Internal, ErrorCode::MethodNotFound];
    FIRST.iter().chain(ErrorCode::ALL).copied().find(|candidate| is_it(*candidate))
}
