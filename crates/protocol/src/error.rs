//! Errors as peers see them, and the one table from an error to its form in each binding (§5.4).

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::json::{JsonError, JsonErrorKind};

/// The `domain` of each `google.rpc.ErrorInfo` that this server sends (§11.6).
pub const ERROR_DOMAIN: &str = "a2a-protocol.org";

/// One thing that is wrong with one member of a request; becomes part of `google.rpc.BadRequest`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldViolation {
    /// The path of the member in JSON names, such as `message.parts[0]`.
    pub field: String,
    /// What is wrong with it and what is allowed.
    pub description: String,
}

macro_rules! grpc_codes {
    ($($(#[$doc:meta])* $code:ident = $number:literal, $name:literal;)+) => {
        /// A status code of gRPC; its name is also the `status` of HTTP+JSON errors (§11.6).
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum GrpcCode {
            $($(#[$doc])* $code,)+
        }

        impl GrpcCode {
            /// The number on the wire.
            #[must_use]
            pub fn number(self) -> i32 {
                match self {
                    $(Self::$code => $number,)+
                }
            }

            /// The name, such as `FAILED_PRECONDITION`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }
        }
    };
}

grpc_codes! {
    /// The request itself is wrong.
    InvalidArgument = 3, "INVALID_ARGUMENT";
    /// What was asked for does not exist.
    NotFound = 5, "NOT_FOUND";
    /// A limit was reached.
    ResourceExhausted = 8, "RESOURCE_EXHAUSTED";
    /// The request does not fit the state of what it is about.
    FailedPrecondition = 9, "FAILED_PRECONDITION";
    /// The method does not exist or is switched off.
    Unimplemented = 12, "UNIMPLEMENTED";
    /// A fault of the server.
    Internal = 13, "INTERNAL";
    /// The service cannot answer at the moment.
    Unavailable = 14, "UNAVAILABLE";
}

/// What an error is in each binding: one row of the table of §5.4.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ErrorRow {
    /// The code of the JSON-RPC error object.
    pub json_rpc: i32,
    /// The HTTP status.
    pub http: u16,
    /// The gRPC status.
    pub grpc: GrpcCode,
    /// The `reason` of `google.rpc.ErrorInfo`.
    pub reason: &'static str,
    /// The message when there is nothing more particular to say.
    pub message: &'static str,
}

macro_rules! error_codes {
    ($($(#[$doc:meta])* $code:ident: $json_rpc:literal, $http:literal, $grpc:ident, $reason:literal, $message:literal;)+) => {
        /// Each error that a peer can be told.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum ErrorCode {
            $($(#[$doc])* $code,)+
        }

        impl ErrorCode {
            /// Each code once.
            pub const ALL: &[Self] = &[$(Self::$code,)+];

            /// The row of the table: what this error is in each binding.
            #[must_use]
            pub fn row(self) -> ErrorRow {
                match self {
                    $(Self::$code => ErrorRow {
                        json_rpc: $json_rpc,
                        http: $http,
                        grpc: GrpcCode::$grpc,
                        reason: $reason,
                        message: $message,
                    },)+
                }
            }
        }
    };
}

#[rustfmt::skip]
error_codes! {
    // The errors of the protocol (§5.4).

    /// `TaskNotFoundError`: no such task, or not for this caller.
    TaskNotFound: -32001, 404, NotFound, "TASK_NOT_FOUND", "task not found";
    /// `TaskNotCancelableError`: the task has ended.
    TaskNotCancelable: -32002, 400, FailedPrecondition, "TASK_NOT_CANCELABLE", "task cannot be canceled";
    /// `PushNotificationNotSupportedError`: the agent sends no push notifications.
    PushNotificationNotSupported: -32003, 400, FailedPrecondition, "PUSH_NOTIFICATION_NOT_SUPPORTED", "push notifications are not supported";
    /// `UnsupportedOperationError`: the operation does not fit the agent or the task's state.
    UnsupportedOperation: -32004, 400, FailedPrecondition, "UNSUPPORTED_OPERATION", "operation is not supported";
    /// `ContentTypeNotSupportedError`: a part has a media type that the agent does not take.
    ContentTypeNotSupported: -32005, 400, InvalidArgument, "CONTENT_TYPE_NOT_SUPPORTED", "media type is not supported";
    /// `InvalidAgentResponseError`: the agent answered with something that the protocol forbids.
    InvalidAgentResponse: -32006, 500, Internal, "INVALID_AGENT_RESPONSE", "agent gave an invalid response";
    /// `ExtendedAgentCardNotConfiguredError`: there is no extended card.
    ExtendedAgentCardNotConfigured: -32007, 400, FailedPrecondition, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "no extended agent card is configured";
    /// `ExtensionSupportRequiredError`: the agent requires an extension that the caller did not name.
    ExtensionSupportRequired: -32008, 400, FailedPrecondition, "EXTENSION_SUPPORT_REQUIRED", "a required extension was not requested";
    /// `VersionNotSupportedError`: the protocol version of the request is not served here.
    VersionNotSupported: -32009, 400, FailedPrecondition, "VERSION_NOT_SUPPORTED", "protocol version is not supported";

    // What §5.4 lacks.

    /// A member of the request breaks a rule. Its reason is the one that the official clients know.
    InvalidArgument: -32602, 400, InvalidArgument, "INVALID_PARAMS", "invalid parameters";
    /// The request is larger than a limit.
    TooLarge: -32602, 413, ResourceExhausted, "TOO_LARGE", "request is too large";
    /// The caller is over a limit, or the backlog is full; to be tried again later.
    ResourceExhausted: -32603, 429, ResourceExhausted, "RESOURCE_EXHAUSTED", "limit reached, try again later";
    /// The store, or another part that is needed, cannot answer at the moment.
    Unavailable: -32603, 503, Unavailable, "UNAVAILABLE", "service is unavailable, try again later";
    /// A fault of the server. Its cause is logged, never sent.
    Internal: -32603, 500, Internal, "INTERNAL", "internal error";

    // Framing.

    /// The body is no JSON.
    ParseError: -32700, 400, InvalidArgument, "PARSE_ERROR", "invalid JSON payload";
    /// The JSON is no JSON-RPC request.
    InvalidRequest: -32600, 400, InvalidArgument, "INVALID_REQUEST", "request is not a valid JSON-RPC 2.0 request";
    /// No JSON-RPC method has this name.
    MethodNotFound: -32601, 404, Unimplemented, "METHOD_NOT_FOUND", "method not found";
    /// No route has this path.
    RouteNotFound: -32601, 404, NotFound, "ROUTE_NOT_FOUND", "no such route";
    /// The path exists, but not for this HTTP method.
    MethodNotAllowed: -32601, 405, Unimplemented, "METHOD_NOT_ALLOWED", "HTTP method is not allowed here";
}

/// An error as a peer sees it: the same in every binding.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct A2aError {
    /// Which error it is.
    pub code: ErrorCode,
    /// What happened, for a person; holds nothing that the caller may not know.
    pub message: String,
    /// What is wrong with which member of the request.
    pub violations: Vec<FieldViolation>,
    /// The `metadata` of `google.rpc.ErrorInfo`, each key once.
    pub metadata: Vec<(String, String)>,
    /// How long to wait before trying again.
    pub retry_after: Option<Duration>,
}

impl A2aError {
    /// An error with this message; an empty one is replaced by the code's own.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.is_empty() {
            message.push_str(code.row().message);
        }
        Self { code, message, violations: Vec::new(), metadata: Vec::new(), retry_after: None }
    }

    /// `TaskNotFoundError` for this id. The same whether the task does not exist or belongs to
    /// somebody else.
    #[must_use]
    pub fn task_not_found(task_id: &str) -> Self {
        Self::new(ErrorCode::TaskNotFound, format!("task {task_id:?} not found")).with_metadata("taskId", task_id)
    }

    /// Invalid argument for these violations; the first one is told in the message.
    #[must_use]
    pub fn invalid_argument(violations: Vec<FieldViolation>) -> Self {
        let message = violations.first().map(|first| match first.field.as_str() {
            "" => format!("invalid parameters: {}", first.description),
            field => format!("invalid parameters: {field}: {}", first.description),
        });
        let mut error = Self::new(ErrorCode::InvalidArgument, message.unwrap_or_default());
        error.violations = violations;
        error
    }

    /// Adds a member to the error's metadata, or replaces the one with this key.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        self.metadata.retain(|(known, _)| *known != key);
        self.metadata.push((key, value.into()));
        self
    }

    /// Says when to try again.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// The details in the JSON form of `google.protobuf.Any`: `ErrorInfo`, then `BadRequest` when
    /// there are violations, then `RetryInfo` when it is known when to try again.
    #[must_use]
    pub fn details_json(&self) -> Vec<Value> {
        let mut details = vec![self.error_info()];
        if !self.violations.is_empty() {
            let violations: Vec<Value> = self
                .violations
                .iter()
                .map(|violation| json!({"field": violation.field, "description": violation.description}))
                .collect();
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": violations,
            }));
        }
        if let Some(delay) = self.retry_after {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": duration_json(delay),
            }));
        }
        details
    }

    fn error_info(&self) -> Value {
        let mut info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.code.row().reason,
            "domain": ERROR_DOMAIN,
        });
        if !self.metadata.is_empty()
            && let Some(members) = info.as_object_mut()
        {
            let metadata = self.metadata.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
            members.insert("metadata".to_owned(), Value::Object(metadata.collect()));
        }
        info
    }

    /// The body of an HTTP+JSON error (§11.6): `{"error": {code, status, message, details}}`.
    #[must_use]
    pub fn to_status_json(&self) -> Bytes {
        let row = self.code.row();
        let body = json!({
            "error": {
                "code": row.http,
                "status": row.grpc.name(),
                "message": self.message,
                "details": self.details_json(),
            }
        });
        Bytes::from(body.to_string())
    }

    /// The error object of JSON-RPC (§9.5): `{code, message, data}`.
    #[must_use]
    pub fn to_json_rpc_error(&self) -> Value {
        json!({
            "code": self.code.row().json_rpc,
            "message": self.message,
            "data": self.details_json(),
        })
    }
}

/// The JSON form of `google.protobuf.Duration`: seconds with 0, 3, 6 or 9 digits of fraction.
fn duration_json(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    if nanos == 0 {
        format!("{seconds}s")
    } else if nanos.is_multiple_of(1_000_000) {
        format!("{seconds}.{:03}s", nanos / 1_000_000)
    } else if nanos.is_multiple_of(1000) {
        format!("{seconds}.{:06}s", nanos / 1000)
    } else {
        format!("{seconds}.{nanos:09}s")
    }
}

impl fmt::Display for A2aError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for A2aError {}

impl From<ErrorCode> for A2aError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code, "")
    }
}

/// What is not JSON is a parse error; JSON of the wrong form is an invalid argument that names the
/// member.
impl From<JsonError> for A2aError {
    fn from(error: JsonError) -> Self {
        match error.kind {
            JsonErrorKind::Syntax => {
                Self::new(ErrorCode::ParseError, format!("invalid JSON payload: {}", error.message))
            }
            JsonErrorKind::Depth | JsonErrorKind::Invalid => {
                Self::invalid_argument(vec![FieldViolation { field: error.path, description: error.message }])
            }
        }
    }
}
