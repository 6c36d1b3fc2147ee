//! Errors of agents that speak v0.3. Those of ours hold the details of v1.0 too.

use http::StatusCode;
use longhaul_protocol::ErrorCode;
use longhaul_protocol::v0_3::error as v0_3;
use serde_json::Value;

use super::{read, text};
use crate::error::AgentError;

/// The error object of JSON-RPC; none if it has no code.
pub(crate) fn from_json_rpc(error: &Value) -> Option<AgentError> {
    let wire_code = error.get("code").and_then(Value::as_i64)?;
    let by_code = i32::try_from(wire_code).ok().and_then(v0_3::from_json_rpc_code);
    Some(read(wire_code, by_code, text(error, "message"), error.get("data")))
}

/// The body of an HTTP+JSON error: an object with a `message`, and what else it is the SDKs disagree on. Where it has no code
/// and no name, the status says what it is. None if it is something else.
pub(crate) fn from_http_json(body: &[u8], status: StatusCode) -> Option<AgentError> {
    // Some serve v0.3, and have errors of v1.0 only.
    super::from_status_json(body, status).or_else(|| from_object(body, status))
}

fn from_object(body: &[u8], status: StatusCode) -> Option<AgentError> {
    let named = v0_3::from_http_json(body).map(|error| error.code);
    let body: Value = serde_json::from_slice(body).ok()?;
    let message = body.get("message").and_then(Value::as_str)?;
    let code = named.or_else(|| of_http(status))?;
    let wire_code = body.get("code").and_then(Value::as_i64).unwrap_or_else(|| i64::from(status.as_u16()));
    Some(read(wire_code, Some(code), message, body.get("data")))
}

/// What a status means where the body says nothing more. Proxies write such bodies too, and theirs is what 502 and 504 are.
fn of_http(status: StatusCode) -> Option<ErrorCode> {
    match status {
        StatusCode::CONFLICT => Some(ErrorCode::TaskNotCancelable),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Some(ErrorCode::ContentTypeNotSupported),
        StatusCode::UNPROCESSABLE_ENTITY => Some(ErrorCode::InvalidArgument),
        _ => super::of_http(status),
    }
}

/// The status that ended a gRPC call.
pub(crate) fn from_grpc(status: &tonic::Status) -> AgentError {
    match longhaul_protobuf::status::decode_v0_3(status) {
        Some(error) => {
            let wire_code = i64::from(i32::from(status.code()));
            AgentError { code: Some(error.code), error, wire_code }
        }
        None => super::from_grpc(status),
    }
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::A2aError;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_error_comes_back_from_each_binding() {
        for code in ErrorCode::ALL.iter().copied() {
            let sent = A2aError::new(code, "what happened").with_metadata("taskId", "t");
            let status = StatusCode::from_u16(v0_3::row(code).http).unwrap();
            for read in [
                from_json_rpc(&sent.to_json_rpc_error()).unwrap(),
                from_http_json(&v0_3::to_http_json(&sent), status).unwrap(),
                from_grpc(&longhaul_protobuf::status::encode_v0_3(&sent)),
            ] {
                assert_eq!((read.code, &read.error), (Some(code), &sent), "{code:?}");
            }
        }
    }

    #[test]
    fn without_details_code_name_or_status_decide() {
        let read = from_json_rpc(&json!({"code": -32007, "message": "none"})).unwrap();
        assert_eq!(read.code, Some(ErrorCode::ExtendedAgentCardNotConfigured));
        assert_eq!(from_json_rpc(&json!({"code": -1, "message": "odd"})).unwrap().code, None);
        let http = |body: &str, status: u16| {
            from_http_json(body.as_bytes(), StatusCode::from_u16(status).unwrap()).and_then(|error| error.code)
        };
        assert_eq!(http(r#"{"message": "Task not found"}"#, 404), Some(ErrorCode::TaskNotFound));
        assert_eq!(http(r#"{"message": "done"}"#, 409), Some(ErrorCode::TaskNotCancelable));
        assert_eq!(http(r#"{"message": "what?"}"#, 422), Some(ErrorCode::InvalidArgument));
        assert_eq!(
            http(r#"{"message": "x", "error": "a.b.TaskNotCancelableError"}"#, 400),
            Some(ErrorCode::TaskNotCancelable)
        );
        let read = from_grpc(&tonic::Status::not_found("TaskNotFoundError: gone"));
        assert_eq!((read.code, read.error.message.as_str()), (Some(ErrorCode::TaskNotFound), "gone"));
        assert_eq!(from_grpc(&tonic::Status::unavailable("down")).code, Some(ErrorCode::Unavailable));
    }

    #[test]
    fn a_body_of_something_else_is_no_error_of_an_agent() {
        for body in
            ["<html>", "{}", "[]", "", r#"{"message": "Bad Gateway"}"#, r#"{"message": {"role": "ROLE_AGENT"}}"#]
        {
            assert!(from_http_json(body.as_bytes(), StatusCode::BAD_GATEWAY).is_none(), "{body}");
        }
    }
}
