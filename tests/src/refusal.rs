//! The error table (§5.4) as a peer sees it: one value for what the three bindings say.

use serde_json::{Value, json};

use crate::Binding;

/// One error in each binding.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The `reason` of its `ErrorInfo`.
    pub reason: &'static str,
    /// The code in JSON-RPC.
    pub json_rpc: i64,
    /// The HTTP status in HTTP+JSON.
    pub http: u16,
    /// The number of the gRPC status.
    pub grpc: i32,
    /// The name of the gRPC status.
    pub grpc_name: &'static str,
}

const fn row(reason: &'static str, json_rpc: i64, http: u16, grpc: i32, grpc_name: &'static str) -> Row {
    Row { reason, json_rpc, http, grpc, grpc_name }
}

/// §5.4 and what it lacks. Written down apart from the server's table, so that each checks the other.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row("TASK_NOT_FOUND", -32001, 404, 5, "NOT_FOUND"),
    row("TASK_NOT_CANCELABLE", -32002, 400, 9, "FAILED_PRECONDITION"),
    row("PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400, 9, "FAILED_PRECONDITION"),
    row("UNSUPPORTED_OPERATION", -32004, 400, 9, "FAILED_PRECONDITION"),
    row("CONTENT_TYPE_NOT_SUPPORTED", -32005, 400, 3, "INVALID_ARGUMENT"),
    row("INVALID_AGENT_RESPONSE", -32006, 500, 13, "INTERNAL"),
    row("EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 400, 9, "FAILED_PRECONDITION"),
    row("EXTENSION_SUPPORT_REQUIRED", -32008, 400, 9, "FAILED_PRECONDITION"),
    row("VERSION_NOT_SUPPORTED", -32009, 400, 9, "FAILED_PRECONDITION"),
    row("INVALID_PARAMS", -32602, 400, 3, "INVALID_ARGUMENT"),
    row("TOO_LARGE", -32602, 413, 8, "RESOURCE_EXHAUSTED"),
    row("RESOURCE_EXHAUSTED", -32603, 429, 8, "RESOURCE_EXHAUSTED"),
    row("UNAVAILABLE", -32603, 503, 14, "UNAVAILABLE"),
];

/// What v0.3 has otherwise: the reason, its own name, the HTTP status, the number of the gRPC status.
#[rustfmt::skip]
const TABLE_V0_3: &[(&str, &str, u16, i32)] = &[
    ("TASK_NOT_FOUND", "TaskNotFoundError", 404, 5),
    ("TASK_NOT_CANCELABLE", "TaskNotCancelableError", 409, 9),
    ("PUSH_NOTIFICATION_NOT_SUPPORTED", "PushNotificationNotSupportedError", 501, 12),
    ("UNSUPPORTED_OPERATION", "UnsupportedOperationError", 501, 12),
    ("CONTENT_TYPE_NOT_SUPPORTED", "ContentTypeNotSupportedError", 415, 3),
    ("VERSION_NOT_SUPPORTED", "VersionNotSupportedError", 400, 9),
    ("INVALID_PARAMS", "InvalidParamsError", 400, 3),
];

fn row_v0_3(refusal: &Refusal) -> (&'static str, u16, i32) {
    let found = TABLE_V0_3.iter().find(|(reason, ..)| *reason == refusal.reason);
    let (_, name, http, grpc) = found.unwrap_or_else(|| panic!("a reason that is in no table: {refusal:?}"));
    (name, *http, *grpc)
}

/// The statuses that JSON-RPC errors come with instead of 200.
const JSON_RPC_STATUSES: [u16; 3] = [413, 429, 503];

/// A refusal, the same whichever binding it came through.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The `reason` of its `ErrorInfo`.
    pub reason: String,
    /// What happened, for a person.
    pub message: String,
    /// Its details in the JSON form of `google.protobuf.Any`.
    pub details: Vec<Value>,
    /// The numbers that the binding gave, as text, for when they are wrong.
    pub numbers: String,
}

impl Refusal {
    /// What has to be the same in each binding: the reason, and all the details.
    #[must_use]
    pub fn comparable(&self) -> Value {
        json!({"refused": self.reason, "details": self.details})
    }

    /// The names of the members that are wrong.
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        let bad = detail(&self.details, "BadRequest");
        let violations = bad.and_then(|bad| bad["fieldViolations"].as_array());
        let names = violations.into_iter().flatten();
        names.map(|violation| violation["field"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// A member of the `metadata` of its `ErrorInfo`.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        detail(&self.details, "ErrorInfo")?["metadata"][key].as_str()
    }

    pub(crate) fn of_json_rpc(http: u16, error: &Value) -> Self {
        let details = error["data"].as_array().cloned().unwrap_or_default();
        let refusal = Self::new(error["message"].as_str(), details, error.to_string());
        let row = refusal.row();
        assert_eq!(error["code"], row.json_rpc, "{refusal:?}");
        let status = JSON_RPC_STATUSES.into_iter().find(|code| *code == row.http);
        assert_eq!(http, status.unwrap_or(200), "{refusal:?}");
        refusal
    }

    pub(crate) fn of_http(http: u16, body: &Value) -> Self {
        let error = &body["error"];
        let details = error["details"].as_array().cloned().unwrap_or_default();
        let refusal = Self::new(error["message"].as_str(), details, body.to_string());
        let row = refusal.row();
        assert_eq!(http, row.http, "{refusal:?}");
        assert_eq!(error["code"], row.http, "{refusal:?}");
        assert_eq!(error["status"], row.grpc_name, "{refusal:?}");
        refusal
    }

    pub(crate) fn of_grpc(code: i32, message: &str, details: Vec<Value>) -> Self {
        let refusal = Self::new(Some(message), details, format!("gRPC {code}"));
        assert_eq!(code, refusal.row().grpc, "{refusal:?}");
        refusal
    }

    pub(crate) fn of_http_v0_3(http: u16, body: &Value) -> Self {
        let details = body["data"].as_array().cloned().unwrap_or_default();
        let refusal = Self::new(body["message"].as_str(), details, body.to_string());
        let (name, status, _) = row_v0_3(&refusal);
        assert_eq!((http, &body["error"]), (status, &name.into()), "{refusal:?}");
        assert_eq!(body["code"], refusal.row().json_rpc, "{refusal:?}");
        refusal
    }

    pub(crate) fn of_grpc_v0_3(code: i32, message: &str, details: Vec<Value>) -> Self {
        let refusal = Self::new(Some(message), details, format!("gRPC {code}"));
        let (name, _, number) = row_v0_3(&refusal);
        assert_eq!(code, number, "{refusal:?}");
        assert!(message.starts_with(&format!("{name}: ")), "{refusal:?}");
        refusal
    }

    fn new(message: Option<&str>, details: Vec<Value>, numbers: String) -> Self {
        let info = detail(&details, "ErrorInfo")
            .unwrap_or_else(|| panic!("an error without ErrorInfo: {numbers} {details:?}"));
        assert_eq!(info["domain"], "a2a-protocol.org", "{info}");
        let message = message.unwrap_or_default().to_owned();
        assert!(!message.is_empty(), "an error says what is wrong: {numbers}");
        Self { reason: info["reason"].as_str().unwrap_or_default().to_owned(), message, details, numbers }
    }

    fn row(&self) -> Row {
        let found = TABLE.iter().find(|row| row.reason == self.reason);
        *found.unwrap_or_else(|| panic!("a reason that is in no table: {self:?}"))
    }

    /// Fails unless this is that error; its numbers were checked when it was read.
    pub fn assert(&self, binding: Binding, reason: &str) {
        assert_eq!(self.reason, reason, "{binding:?}: {self:?}");
    }
}

fn detail<'a>(details: &'a [Value], name: &str) -> Option<&'a Value> {
    let kind = format!("type.googleapis.com/google.rpc.{name}");
    details.iter().find(|detail| detail["@type"] == kind)
}
