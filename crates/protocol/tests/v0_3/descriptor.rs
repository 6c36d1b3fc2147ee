//! The forms of `a2a.v1` against the facts of its proto: each member is read and written under its JSON name.

use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::v0_3::proto;
use longhaul_protocol::{from_json, to_json};
use serde_json::{Map, Value, json};

/// Messages that only cards are made of, and one without fields: the JSON of cards is another.
const NOT_HERE: &[&str] = &[
    "AgentInterface",
    "AgentCard",
    "AgentProvider",
    "AgentCapabilities",
    "AgentExtension",
    "AgentSkill",
    "AgentCardSignature",
    "StringList",
    "Security",
    "SecurityScheme",
    "APIKeySecurityScheme",
    "HTTPAuthSecurityScheme",
    "OAuth2SecurityScheme",
    "OpenIdConnectSecurityScheme",
    "MutualTlsSecurityScheme",
    "OAuthFlows",
    "AuthorizationCodeOAuthFlow",
    "ClientCredentialsOAuthFlow",
    "ImplicitOAuthFlow",
    "PasswordOAuthFlow",
    "GetAgentCardRequest",
];

#[test]
fn each_message_has_each_member_under_its_name() {
    let facts: Value = serde_json::from_str(include_str!("../data/descriptor.json")).unwrap();
    let messages = facts["v0.3"]["messages"].as_object().unwrap();
    let mut checked = 0;
    for name in messages.keys().filter(|name| !NOT_HERE.contains(&name.as_str())) {
        for sample in samples(name, messages) {
            assert_eq!(through(name, &sample), sample, "{name}");
        }
        checked += 1;
    }
    assert_eq!(checked + NOT_HERE.len(), messages.len());
}

/// Objects of a message that together have each of its members, with a member of a oneof in each.
fn samples(name: &str, messages: &Map<String, Value>) -> Vec<Value> {
    let fields = messages[name].as_object().unwrap();
    let (cases, plain): (Vec<_>, Vec<_>) = fields.values().partition(|field| field.get("oneof").is_some());
    let member = |field: &Value| (field["json"].as_str().unwrap().to_owned(), sample(field, messages));
    let plain: Map<String, Value> = plain.into_iter().map(member).collect();
    if cases.is_empty() {
        return vec![plain.into()];
    }
    cases.into_iter().map(|case| plain.clone().into_iter().chain([member(case)]).collect()).collect()
}

/// A value of a field that is not its default.
fn sample(field: &Value, messages: &Map<String, Value>) -> Value {
    let of = field["of"].as_str().unwrap_or_default();
    let value = match (field["type"].as_str().unwrap(), of) {
        ("string", _) => json!("x"),
        ("bytes", _) => json!("/wBh"),
        ("bool", _) => json!(true),
        ("int32", _) => json!(7),
        ("enum", "a2a.v1.TaskState") => json!("TASK_STATE_CANCELLED"),
        ("enum", "a2a.v1.Role") => json!("ROLE_AGENT"),
        ("message", "google.protobuf.Struct") => json!({"k": [1, null]}),
        ("message", "google.protobuf.Timestamp") => json!("2026-01-02T03:04:05.000Z"),
        ("message", of) => samples(of.trim_start_matches("a2a.v1."), messages).remove(0),
        (other, of) => panic!("a field of type {other} {of}"),
    };
    if field.get("repeated").is_some() { json!([value]) } else { value }
}

/// Reads and writes again as the message of this name.
fn through(name: &str, json: &Value) -> Value {
    fn by_type<T: ProtoJson>(json: &Value) -> Value {
        let message: T = from_json(json.to_string().as_bytes()).unwrap();
        serde_json::from_slice(&to_json(&message)).unwrap()
    }
    macro_rules! by_name {
        ($($name:ident)+) => {
            match name {
                $(stringify!($name) => by_type::<proto::$name>(json),)+
                other => panic!("there is no message {other}"),
            }
        };
    }
    by_name! {
        SendMessageConfiguration Task TaskStatus Part FilePart DataPart Message Artifact TaskStatusUpdateEvent
        TaskArtifactUpdateEvent PushNotificationConfig AuthenticationInfo TaskPushNotificationConfig
        SendMessageRequest GetTaskRequest CancelTaskRequest GetTaskPushNotificationConfigRequest
        DeleteTaskPushNotificationConfigRequest CreateTaskPushNotificationConfigRequest TaskSubscriptionRequest
        ListTaskPushNotificationConfigRequest SendMessageResponse StreamResponse
        ListTaskPushNotificationConfigResponse
    }
}
