//! The error table against §5.4, and the forms that errors take.

use std::time::Duration;

use longhaul_protocol::{A2aError, ErrorCode, FieldViolation, from_json, wire};
use serde_json::{Value, json};

#[test]
fn each_error_has_the_codes_of_the_specification() {
    use ErrorCode::*;
    #[rustfmt::skip]
    let table = [
        (TaskNotFound,                   -32001, 404, 5,  "NOT_FOUND",           "TASK_NOT_FOUND"),
        (TaskNotCancelable,              -32002, 400, 9,  "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
        (PushNotificationNotSupported,   -32003, 400, 9,  "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (UnsupportedOperation,           -32004, 400, 9,  "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
        (ContentTypeNotSupported,        -32005, 400, 3,  "INVALID_ARGUMENT",    "CONTENT_TYPE_NOT_SUPPORTED"),
        (InvalidAgentResponse,           -32006, 500, 13, "INTERNAL",            "INVALID_AGENT_RESPONSE"),
        (ExtendedAgentCardNotConfigured, -32007, 400, 9,  "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
        (ExtensionSupportRequired,       -32008, 400, 9,  "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
        (VersionNotSupported,            -32009, 400, 9,  "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
        (InvalidArgument,                -32602, 400, 3,  "INVALID_ARGUMENT",    "INVALID_PARAMS"),
        (TooLarge,                       -32602, 413, 8,  "RESOURCE_EXHAUSTED",  "TOO_LARGE"),
        (ResourceExhausted,              -32603, 429, 8,  "RESOURCE_EXHAUSTED",  "RESOURCE_EXHAUSTED"),
        (Unavailable,                    -32603, 503, 14, "UNAVAILABLE",         "UNAVAILABLE"),
        (Internal,                       -32603, 500, 13, "INTERNAL",            "INTERNAL"),
        (ParseError,                     -32700, 400, 3,  "INVALID_ARGUMENT",    "PARSE_ERROR"),
        (InvalidRequest,                 -32600, 400, 3,  "INVALID_ARGUMENT",    "INVALID_REQUEST"),
        (MethodNotFound,                 -32601, 404, 12, "UNIMPLEMENTED",       "METHOD_NOT_FOUND"),
        (RouteNotFound,                  -32601, 404, 5,  "NOT_FOUND",           "ROUTE_NOT_FOUND"),
        (MethodNotAllowed,               -32601, 405, 12, "UNIMPLEMENTED",       "METHOD_NOT_ALLOWED"),
    ];
    assert_eq!(table.map(|row| row.0), ErrorCode::ALL);
    for (code, json_rpc, http, grpc, status, reason) in table {
        let row = code.row();
        let found = (code, row.json_rpc, row.http, row.grpc.number(), row.grpc.name(), row.reason);
        assert_eq!(found, (code, json_rpc, http, grpc, status, reason));
        assert!(!row.message.is_empty());
    }
}

#[test]
fn a_missing_task_is_told_with_its_id() {
    let error = A2aError::task_not_found("t\"1");
    let body: Value = serde_json::from_slice(&error.to_status_json()).unwrap();
    assert_eq!(
        body,
        json!({"error": {
            "code": 404,
            "status": "NOT_FOUND",
            "message": "task \"t\\\"1\" not found",
            "details": [{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "TASK_NOT_FOUND",
                "domain": "a2a-protocol.org",
                "metadata": {"taskId": "t\"1"},
            }],
        }})
    );
}

#[test]
fn an_invalid_argument_is_told_with_its_members() {
    let violation = FieldViolation { field: "id".to_owned(), description: "must not be empty".to_owned() };
    let error = A2aError::invalid_argument(vec![violation]);
    assert_eq!(
        error.to_json_rpc_error(),
        json!({
            "code": -32602,
            "message": "invalid parameters: id: must not be empty",
            "data": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "INVALID_PARAMS",
                    "domain": "a2a-protocol.org",
                },
                {
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": [{"field": "id", "description": "must not be empty"}],
                },
            ],
        })
    );
}

#[test]
fn an_error_says_when_to_try_again() {
    for (delay, wanted) in [
        (Duration::from_secs(1), "1s"),
        (Duration::from_millis(1500), "1.500s"),
        (Duration::from_micros(20), "0.000020s"),
        (Duration::from_nanos(7), "0.000000007s"),
    ] {
        let error = A2aError::from(ErrorCode::Unavailable).with_retry_after(delay);
        let details = error.details_json();
        assert_eq!(details[1], json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": wanted}));
    }
}

#[test]
fn metadata_has_each_key_once() {
    let error = A2aError::new(ErrorCode::VersionNotSupported, "no")
        .with_metadata("supported", "0.3")
        .with_metadata("supported", "1.0");
    assert_eq!(error.metadata, [("supported".to_owned(), "1.0".to_owned())]);
}

#[test]
fn broken_json_is_a_parse_error_and_wrong_json_an_invalid_argument() {
    let read = |json: &str| A2aError::from(from_json::<wire::Message>(json.as_bytes()).unwrap_err());
    assert_eq!(read("{").code, ErrorCode::ParseError);
    assert_eq!(read("[]").code, ErrorCode::InvalidArgument);
    let error = read(r#"{"parts":[{"raw":"!"}]}"#);
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert_eq!(error.violations[0].field, "parts[0].raw");
    assert_eq!(error.message, "invalid parameters: parts[0].raw: must be base64");
    let deep = format!(r#"{{"metadata":{{"a":{}"#, "[".repeat(10_000));
    assert_eq!(read(&deep).code, ErrorCode::InvalidArgument);
}
