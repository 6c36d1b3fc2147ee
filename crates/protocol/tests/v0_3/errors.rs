//! The errors of v0.3, and breaches of our rules told in its names.

use longhaul_protocol::rules::FieldRules;
use longhaul_protocol::v0_3::{self, Form, error, json_rpc, proto};
use longhaul_protocol::{A2aError, ErrorCode, wire};
use serde_json::{Value, json};

#[test]
fn each_error_has_the_codes_of_v0_3() {
    use ErrorCode::*;
    #[rustfmt::skip]
    let table = [
        (TaskNotFound,                   -32001, 404, "NOT_FOUND",           "TaskNotFoundError"),
        (TaskNotCancelable,              -32002, 409, "FAILED_PRECONDITION", "TaskNotCancelableError"),
        (PushNotificationNotSupported,   -32003, 501, "UNIMPLEMENTED",       "PushNotificationNotSupportedError"),
        (UnsupportedOperation,           -32004, 501, "UNIMPLEMENTED",       "UnsupportedOperationError"),
        (ContentTypeNotSupported,        -32005, 415, "INVALID_ARGUMENT",    "ContentTypeNotSupportedError"),
        (InvalidAgentResponse,           -32006, 502, "INTERNAL",            "InvalidAgentResponseError"),
        (ExtendedAgentCardNotConfigured, -32007, 404, "FAILED_PRECONDITION", "AuthenticatedExtendedCardNotConfiguredError"),
        (ExtensionSupportRequired,       -32008, 400, "FAILED_PRECONDITION", "ExtensionSupportRequiredError"),
        (VersionNotSupported,            -32009, 400, "FAILED_PRECONDITION", "VersionNotSupportedError"),
        (InvalidArgument,                -32602, 400, "INVALID_ARGUMENT",    "InvalidParamsError"),
        (TooLarge,                       -32602, 413, "RESOURCE_EXHAUSTED",  "InvalidParamsError"),
        (ResourceExhausted,              -32603, 429, "RESOURCE_EXHAUSTED",  "InternalError"),
        (Unavailable,                    -32603, 503, "UNAVAILABLE",         "InternalError"),
        (Internal,                       -32603, 500, "INTERNAL",            "InternalError"),
        (ParseError,                     -32700, 400, "INVALID_ARGUMENT",    "JSONParseError"),
        (InvalidRequest,                 -32600, 400, "INVALID_ARGUMENT",    "InvalidRequestError"),
        (MethodNotFound,                 -32601, 404, "UNIMPLEMENTED",       "MethodNotFoundError"),
        (RouteNotFound,                  -32601, 404, "NOT_FOUND",           "MethodNotFoundError"),
        (MethodNotAllowed,               -32601, 405, "UNIMPLEMENTED",       "MethodNotFoundError"),
    ];
    assert_eq!(table.map(|row| row.0), ErrorCode::ALL);
    for (code, json_rpc, http, grpc, name) in table {
        let row = error::row(code);
        let found = (code, row.json_rpc, row.http, row.grpc.name(), error::name(code));
        assert_eq!(found, (code, json_rpc, http, grpc, name));
    }
}

#[test]
fn an_error_is_told_and_understood() {
    let told = A2aError::task_not_found("t1");
    let object = told.to_json_rpc_error();
    assert_eq!((&object["code"], &object["message"]), (&json!(-32001), &json!("task \"t1\" not found")));
    assert_eq!(object["data"][0]["reason"], "TASK_NOT_FOUND");
    let mut body: Value = serde_json::from_slice(&error::to_http_json(&told)).unwrap();
    for member in ["error", "type"] {
        assert_eq!(body.as_object_mut().unwrap().remove(member), Some(json!("TaskNotFoundError")));
    }
    assert_eq!(body, object);

    let understood = error::from_grpc_message(&error::to_grpc_message(&told)).unwrap();
    assert_eq!((understood.code, understood.message), (told.code, told.message));
    assert_eq!(error::from_grpc_message("TaskNotFoundError"), None);
    assert_eq!(error::from_grpc_message("Error: x"), None);
    for code in [-32001, -32002, -32003, -32004, -32005, -32006, -32007, -32700, -32600] {
        assert_eq!(error::row(error::from_json_rpc_code(code).unwrap()).json_rpc, code);
    }
    assert_eq!(error::from_json_rpc_code(-32602), Some(ErrorCode::InvalidArgument));
    assert_eq!(error::from_json_rpc_code(-32603), Some(ErrorCode::Internal));
    assert_eq!(error::from_json_rpc_code(-32601), Some(ErrorCode::MethodNotFound));
    assert_eq!(error::from_json_rpc_code(-1), None);
}

#[test]
fn an_error_over_http_is_known_by_its_code_or_by_its_name() {
    let read =
        |body: Value| error::from_http_json(body.to_string().as_bytes()).map(|error| (error.code, error.message));
    let not_found = Some((ErrorCode::TaskNotFound, "gone".to_owned()));
    assert_eq!(read(json!({"code": -32001, "message": "gone"})), not_found);
    assert_eq!(read(json!({"error": "TaskNotFoundError", "message": "gone"})), not_found);
    assert_eq!(read(json!({"error": "org.example.TaskNotFoundError", "message": "gone"})), not_found);
    assert_eq!(read(json!({"code": 404, "error": {"message": "gone"}})), None);
    assert_eq!(read(json!({"message": "gone"})), None);
    assert_eq!(error::from_http_json(b"<html>"), None);
    let told = A2aError::task_not_found("t1");
    let read = error::from_http_json(&error::to_http_json(&told)).unwrap();
    assert_eq!((read.code, read.message), (told.code, told.message));
}

/// The fields of the breaches that our rules find in an object of v0.3, and the message of the error.
fn breaches<F: Form<W>, W: FieldRules>(object: &Value) -> (Vec<String>, String) {
    let request: W = v0_3::from_json::<F, W>(object.to_string().as_bytes()).unwrap();
    let error = v0_3::in_names_of::<F, W>(A2aError::invalid_argument(request.violations()));
    (error.violations.into_iter().map(|breach| breach.field).collect(), error.message)
}

#[test]
fn a_breach_of_a_rule_is_told_in_the_names_of_json_rpc() {
    let (fields, message) = breaches::<json_rpc::MessageSendParams, wire::SendMessageRequest>(&json!({
        "message": {"parts": [
            {"kind": "text", "text": "x"},
            {"kind": "file", "file": {"uri": "u", "name": "\u{1}", "mimeType": "\u{1}"}},
        ]},
        "configuration": {
            "historyLength": -1,
            "pushNotificationConfig": {"authentication": {"schemes": [], "credentials": "x"}},
        },
    }));
    assert_eq!(
        fields,
        [
            "message.messageId",
            "message.role",
            "message.parts[1].file.name",
            "message.parts[1].file.mimeType",
            "configuration.pushNotificationConfig.url",
            "configuration.pushNotificationConfig.authentication.schemes[0]",
            "configuration.historyLength",
        ]
    );
    assert_eq!(message, "invalid parameters: message.messageId: must not be empty");

    let agent = json!({"message": {"messageId": "m", "role": "agent", "parts": [{"text": "x"}]}});
    let (_, message) = breaches::<json_rpc::MessageSendParams, wire::SendMessageRequest>(&agent);
    assert_eq!(message, "invalid parameters: message.role: must be user in a request, not agent");

    type Params = json_rpc::PushNotificationConfigParams;
    let (fields, _) = breaches::<Params, wire::DeleteTaskPushNotificationConfigRequest>(&json!({}));
    assert_eq!(fields, ["id", "pushNotificationConfigId"]);
    let (fields, _) = breaches::<json_rpc::TaskIdParams, wire::ListTaskPushNotificationConfigsRequest>(&json!({}));
    assert_eq!(fields, ["id"]);
    let (fields, _) =
        breaches::<json_rpc::TaskPushNotificationConfig, wire::TaskPushNotificationConfig>(&json!({"taskId": "t"}));
    assert_eq!(fields, ["pushNotificationConfig.url"]);
}

#[test]
fn a_breach_of_a_rule_is_told_in_the_names_of_the_proto() {
    let (fields, message) = breaches::<proto::SendMessageRequest, wire::SendMessageRequest>(&json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "content": [
            {"file": {"fileWithUri": "u", "name": "\u{1}"}},
        ]},
        "configuration": {"pushNotification": {"authentication": {"credentials": "x"}}},
    }));
    assert_eq!(
        fields,
        [
            "message.content[0].file.name",
            "configuration.pushNotification.url",
            "configuration.pushNotification.authentication.schemes[0]",
        ]
    );
    assert_eq!(message, "invalid parameters: message.content[0].file.name: must not hold control characters");
    let (fields, _) = breaches::<proto::GetTaskRequest, wire::GetTaskRequest>(&json!({}));
    assert_eq!(fields, ["name"]);
    let (fields, _) = breaches::<proto::PushConfigBody, wire::TaskPushNotificationConfig>(&json!({}));
    assert_eq!(fields, ["parent", "config.pushNotificationConfig.url"]);
}

#[test]
fn a_message_with_more_to_say_is_kept() {
    let mut error = A2aError::invalid_argument(wire::GetTaskRequest::default().violations());
    error.message = "the task must be named".to_owned();
    let told = v0_3::in_names_of::<proto::GetTaskRequest, wire::GetTaskRequest>(error);
    assert_eq!(told.message, "the task must be named");
    assert_eq!(told.violations[0].field, "name");
}
