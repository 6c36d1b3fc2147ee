//! Errors of agents, read from each binding's form (§5.4, §9.5, §10.6, §11.6).

pub(crate) mod v0_3;

use std::time::Duration;

use http::StatusCode;
use longhaul_protocol::{A2aError, ERROR_DOMAIN, ErrorCode, FieldViolation, GrpcCode};
use serde_json::Value;

use crate::error::AgentError;

const TYPE_PREFIX: &str = "type.googleapis.com/google.rpc.";
/// How many details of an error, and members of one, are looked at.
const DETAILS_MAX: usize = 64;

/// The error object of JSON-RPC (§9.5); none if it has no code.
pub(crate) fn from_json_rpc(error: &Value) -> Option<AgentError> {
    let wire_code = error.get("code").and_then(Value::as_i64)?;
    Some(read(wire_code, of_json_rpc(wire_code), text(error, "message"), error.get("data")))
}

/// What a code of JSON-RPC means where nothing says more. Several errors share the one of an internal error: without a reason
/// it is no promise that the agent has not acted, or that it will do better soon.
fn of_json_rpc(wire_code: i64) -> Option<ErrorCode> {
    let is = |code: &ErrorCode| i64::from(code.row().json_rpc) == wire_code;
    Some(ErrorCode::Internal).filter(is).or_else(|| ErrorCode::ALL.iter().copied().find(is))
}

/// The body of an HTTP+JSON error, `{"error": {code, status, message, details}}` (§11.6); none if it is something else.
pub(crate) fn from_status_json(body: &[u8], status: StatusCode) -> Option<AgentError> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error").filter(|error| error.is_object())?;
    let wire_code = error.get("code").and_then(Value::as_i64).unwrap_or_else(|| i64::from(status.as_u16()));
    let by_status = error.get("status").and_then(Value::as_str).and_then(of_grpc_name);
    let by_code = by_status.or_else(|| of_http(status));
    Some(read(wire_code, by_code, text(error, "message"), error.get("details")))
}

/// The status that ended a gRPC call (§10.6).
pub(crate) fn from_grpc(status: &tonic::Status) -> AgentError {
    let wire_code = i64::from(i32::from(status.code()));
    if let Some(error) = longhaul_protobuf::status::decode(status) {
        return AgentError { code: Some(error.code), error, wire_code };
    }
    let by_code = GRPC.iter().find(|(code, _)| i64::from(code.number()) == wire_code).map(|(_, code)| *code);
    read(wire_code, by_code, status.message(), None)
}

/// What a status of gRPC means where nothing says more.
const GRPC: &[(GrpcCode, ErrorCode)] = &[
    (GrpcCode::InvalidArgument, ErrorCode::InvalidArgument),
    (GrpcCode::NotFound, ErrorCode::TaskNotFound),
    (GrpcCode::ResourceExhausted, ErrorCode::ResourceExhausted),
    (GrpcCode::Unimplemented, ErrorCode::UnsupportedOperation),
    (GrpcCode::Internal, ErrorCode::Internal),
    (GrpcCode::Unavailable, ErrorCode::Unavailable),
];

fn of_grpc_name(name: &str) -> Option<ErrorCode> {
    GRPC.iter().find(|(code, _)| code.name() == name).map(|(_, code)| *code)
}

fn of_http(status: StatusCode) -> Option<ErrorCode> {
    match status {
        StatusCode::BAD_REQUEST => Some(ErrorCode::InvalidArgument),
        StatusCode::NOT_FOUND => Some(ErrorCode::TaskNotFound),
        StatusCode::PAYLOAD_TOO_LARGE => Some(ErrorCode::TooLarge),
        StatusCode::TOO_MANY_REQUESTS => Some(ErrorCode::ResourceExhausted),
        StatusCode::INTERNAL_SERVER_ERROR => Some(ErrorCode::Internal),
        StatusCode::NOT_IMPLEMENTED => Some(ErrorCode::UnsupportedOperation),
        StatusCode::SERVICE_UNAVAILABLE => Some(ErrorCode::Unavailable),
        _ => None,
    }
}

/// `ErrorInfo` says more than a code, which several errors share.
fn read(wire_code: i64, by_code: Option<ErrorCode>, message: &str, details: Option<&Value>) -> AgentError {
    let details: Vec<&Value> = match details {
        Some(Value::Array(details)) => details.iter().take(DETAILS_MAX).collect(),
        Some(one @ Value::Object(_)) => vec![one],
        _ => Vec::new(),
    };
    let info = details.iter().find(|detail| is(detail, "ErrorInfo") && text(detail, "domain") == ERROR_DOMAIN);
    let reason = info.map(|info| text(info, "reason"));
    let by_reason = reason.and_then(|reason| ErrorCode::ALL.iter().copied().find(|code| code.row().reason == reason));
    let code = by_reason.or(by_code);
    let mut error = A2aError::new(code.unwrap_or(ErrorCode::Internal), message);
    if let Some(metadata) = info.and_then(|info| info.get("metadata")).and_then(Value::as_object) {
        for (key, value) in metadata.iter().take(DETAILS_MAX) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            error = error.with_metadata(key, value);
        }
    }
    error.violations = violations(&details);
    let delay = details.iter().find(|detail| is(detail, "RetryInfo")).map(|detail| text(detail, "retryDelay"));
    if let Some(delay) = delay.and_then(duration) {
        error = error.with_retry_after(delay);
    }
    AgentError { code, error, wire_code }
}

fn is(detail: &Value, name: &str) -> bool {
    text(detail, "@type").strip_prefix(TYPE_PREFIX) == Some(name)
}

fn violations(details: &[&Value]) -> Vec<FieldViolation> {
    let bad = details.iter().find(|detail| is(detail, "BadRequest"));
    let listed = bad.and_then(|bad| bad.get("fieldViolations")).and_then(Value::as_array);
    let violation = |violation: &Value| FieldViolation {
        field: text(violation, "field").to_owned(),
        description: text(violation, "description").to_owned(),
    };
    listed.map(|listed| listed.iter().take(DETAILS_MAX).map(violation).collect()).unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The JSON form of `google.protobuf.Duration`: `1.5s`.
fn duration(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_error_comes_back_from_each_binding() {
        for code in ErrorCode::ALL.iter().copied() {
            let violation = FieldViolation { field: "message.parts".to_owned(), description: "is empty".to_owned() };
            let mut sent = A2aError::new(code, "what happened").with_metadata("taskId", "t");
            sent.violations.push(violation);
            let sent = sent.with_retry_after(Duration::from_millis(1500));
            let status = StatusCode::from_u16(code.row().http).unwrap();
            for read in [
                from_json_rpc(&sent.to_json_rpc_error()).unwrap(),
                from_status_json(&sent.to_status_json(), status).unwrap(),
                from_grpc(&longhaul_protobuf::status::encode(&sent)),
            ] {
                assert_eq!((read.code, &read.error), (Some(code), &sent), "{code:?}");
            }
        }
    }

    #[test]
    fn without_details_the_code_decides() {
        let read = from_json_rpc(&json!({"code": -32001, "message": "gone"})).unwrap();
        assert_eq!((read.code, read.name()), (Some(ErrorCode::TaskNotFound), "TaskNotFoundError"));
        let read = from_json_rpc(&json!({"code": -31999, "message": "odd", "data": "text"})).unwrap();
        assert_eq!((read.code, read.wire_code), (None, -31999));
        assert_eq!(read.to_string(), "the agent's error -31999: odd");
        assert!(from_json_rpc(&json!({"message": "no code"})).is_none());
        let read = from_json_rpc(&json!({"code": -32603, "message": "it raised"})).unwrap();
        assert_eq!(read.code, Some(ErrorCode::Internal), "it may have acted, and is not asked again");
        let read = from_json_rpc(&json!({"code": -32602, "message": "no parts"})).unwrap();
        assert_eq!(read.code, Some(ErrorCode::InvalidArgument));
        let read = from_json_rpc(&json!({"code": -32601, "message": "what?"})).unwrap();
        assert_eq!(read.code, Some(ErrorCode::MethodNotFound));
        let read = from_grpc(&tonic::Status::unavailable("down"));
        assert_eq!(read.code, Some(ErrorCode::Unavailable));
    }

    #[test]
    fn a_body_of_something_else_is_no_error_of_an_agent() {
        for body in ["<html>", "{}", "{\"error\":\"text\"}", "[]", ""] {
            assert!(from_status_json(body.as_bytes(), StatusCode::BAD_GATEWAY).is_none(), "{body}");
        }
    }
}
