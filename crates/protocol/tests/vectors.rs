//! The golden vectors of the reference ProtoJSON parser hold for the wire layer.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails as the test does"
)]

use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::{JsonError, Timestamp, from_json, to_json, wire};
use serde_json::{Map, Value};

/// Reads and writes again as the message of this name.
fn round_trip(message: &str, json: &[u8]) -> Result<Value, JsonError> {
    fn through<T: ProtoJson + PartialEq + std::fmt::Debug>(json: &[u8]) -> Result<Value, JsonError> {
        let message: T = from_json(json)?;
        let printed = to_json(&message);
        // Printed forms are compared: an enum's name that nobody knows is not written.
        let back = from_json::<T>(&printed).map(|message| to_json(&message));
        assert_eq!(back, Ok(printed.clone()), "what is written reads back");
        Ok(serde_json::from_slice(&printed).expect("what is written is JSON"))
    }
    macro_rules! by_name {
        ($($name:ident)+) => {
            match message {
                $(stringify!($name) => through::<wire::$name>(json),)+
                other => panic!("wire lacks message {other}"),
            }
        };
    }
    by_name! {
        SendMessageConfiguration Task TaskStatus Part Message Artifact TaskStatusUpdateEvent
        TaskArtifactUpdateEvent AuthenticationInfo AgentInterface AgentCard AgentProvider
        AgentCapabilities AgentExtension AgentSkill AgentCardSignature TaskPushNotificationConfig
        StringList SecurityRequirement SecurityScheme APIKeySecurityScheme HTTPAuthSecurityScheme
        OAuth2SecurityScheme OpenIdConnectSecurityScheme MutualTlsSecurityScheme OAuthFlows
        AuthorizationCodeOAuthFlow ClientCredentialsOAuthFlow ImplicitOAuthFlow PasswordOAuthFlow
        DeviceCodeOAuthFlow SendMessageRequest GetTaskRequest ListTasksRequest ListTasksResponse
        CancelTaskRequest GetTaskPushNotificationConfigRequest
        DeleteTaskPushNotificationConfigRequest SubscribeToTaskRequest
        ListTaskPushNotificationConfigsRequest GetExtendedAgentCardRequest SendMessageResponse
        StreamResponse ListTaskPushNotificationConfigsResponse
    }
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a vector is JSON"))
}

/// Says where `ours` lacks something of `wanted`, numbers and times compared by value. Members that
/// only `ours` has must hold a default value: A2A requires them.
fn difference(path: &str, wanted: &Value, ours: &Value) -> Option<String> {
    let is_same = match (wanted, ours) {
        (Value::Object(wanted), Value::Object(ours)) => {
            return object_difference(path, wanted, ours);
        }
        (Value::Array(wanted), Value::Array(ours)) if wanted.len() == ours.len() => {
            return wanted
                .iter()
                .zip(ours)
                .enumerate()
                .find_map(|(index, (wanted, ours))| difference(&format!("{path}[{index}]"), wanted, ours));
        }
        (Value::Number(wanted), Value::Number(ours)) => wanted.as_f64() == ours.as_f64(),
        (Value::String(wanted), Value::String(ours)) => {
            let times = (wanted.parse::<Timestamp>(), ours.parse::<Timestamp>());
            wanted == ours || matches!(times, (Ok(wanted), Ok(ours)) if wanted == ours)
        }
        (wanted, ours) => wanted == ours,
    };
    (!is_same).then(|| format!("{path}: {ours}, not {wanted}"))
}

fn object_difference(path: &str, wanted: &Map<String, Value>, ours: &Map<String, Value>) -> Option<String> {
    for (name, ours) in ours {
        let is_default = match ours {
            Value::Null => false,
            Value::Bool(value) => !value,
            Value::Number(value) => value.as_f64() == Some(0.0),
            Value::String(value) => value.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
        };
        if !wanted.contains_key(name) && !is_default {
            return Some(format!("{path}.{name}: {ours} is not wanted"));
        }
    }
    wanted.iter().find_map(|(name, wanted)| match ours.get(name) {
        Some(ours) => difference(&format!("{path}.{name}"), wanted, ours),
        None => Some(format!("{path}.{name}: missing")),
    })
}

#[test]
fn each_line_of_the_protojson_vectors_holds() {
    let mut faults = Vec::new();
    let mut count = 0;
    for line in lines(include_str!("data/protojson.jsonl")) {
        count += 1;
        let about = line["about"].as_str().unwrap();
        let input = line["input"].as_str().unwrap();
        let result = round_trip(line["type"].as_str().unwrap(), input.as_bytes());
        match (line["ok"].as_bool().unwrap(), result) {
            (true, Ok(ours)) => {
                if let Some(fault) = difference("", &line["canonical"], &ours) {
                    faults.push(format!("{about}: {fault}"));
                }
            }
            (false, Err(_)) => {}
            (true, Err(error)) => faults.push(format!("{about}: refused: {error}")),
            (false, Ok(_)) => faults.push(format!("{about}: accepted")),
        }
    }
    assert_eq!(count, 109);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn each_agent_card_of_the_vectors_comes_back() {
    for line in lines(include_str!("data/cards.jsonl")) {
        for card in [&line["card"], &line["signed"]] {
            let ours = round_trip("AgentCard", card.to_string().as_bytes()).unwrap();
            // The vectors hold empty lists, which are left out; so compared the other way round.
            assert_eq!(difference("", &ours, card), None, "{}", line["about"]);
        }
    }
}

/// JSON that a field with these facts takes, different from its default.
fn sample(facts: &Value) -> Value {
    let one = match (facts["type"].as_str().unwrap(), facts["of"].as_str()) {
        ("string", _) => "x".into(),
        ("bytes", _) => "AA==".into(),
        ("int32", _) => 7.into(),
        ("bool", _) => true.into(),
        ("enum", _) => 1.into(),
        ("message", Some("google.protobuf.Timestamp")) => "2026-01-02T03:04:05.678Z".into(),
        ("message", Some("google.protobuf.Value")) => Value::Null,
        ("message", Some(_)) => Value::Object(Map::new()),
        ("map", _) if facts["value"] == "string" => serde_json::json!({"k": "v"}),
        ("map", _) => serde_json::json!({"k": {}}),
        (other, of) => panic!("no sample for {other} {of:?}"),
    };
    if facts["repeated"] == true { vec![one].into() } else { one }
}

#[test]
fn wire_has_each_message_and_field_of_the_proto() {
    let descriptor: Value = serde_json::from_str(include_str!("data/descriptor.json")).unwrap();
    let messages = descriptor["v1.0"]["messages"].as_object().unwrap();
    assert_eq!(messages.len(), 44);
    for (message, fields) in messages {
        let defaults = round_trip(message, b"{}").unwrap();
        for (field, facts) in fields.as_object().unwrap() {
            let json_name = facts["json"].as_str().unwrap();
            let value = sample(facts);
            for name in [json_name, field] {
                let input = serde_json::json!({name: value});
                let ours = round_trip(message, input.to_string().as_bytes()).unwrap();
                assert!(ours.get(json_name).is_some(), "{message} lacks {name}: {ours}");
            }
            // A2A requires the member, so its default is printed; an absent message and an
            // unspecified enum have no form to print.
            let has_default = match (facts["type"].as_str().unwrap(), &facts["repeated"]) {
                ("message", Value::Null) | ("enum", _) => false,
                _ => facts["required"] == true,
            };
            assert_eq!(defaults.get(json_name).is_some(), has_default, "{message}.{json_name}");

            // Presence: what the proto calls optional tells absent from default.
            if facts["optional"] == true {
                let default = match facts["type"].as_str().unwrap() {
                    "bool" => Value::Bool(false),
                    "int32" => Value::from(0),
                    _ => Value::from(""),
                };
                let input = serde_json::json!({json_name: default});
                let ours = round_trip(message, input.to_string().as_bytes()).unwrap();
                assert_eq!(ours.get(json_name), Some(&default), "{message}.{json_name}");
            }
        }
    }
}

#[test]
fn wire_has_each_enum_value_of_the_proto() {
    let descriptor: Value = serde_json::from_str(include_str!("data/descriptor.json")).unwrap();
    let enums = descriptor["v1.0"]["enums"].as_object().unwrap();
    assert_eq!(enums.len(), 2);
    for (name, values) in enums {
        for (value, number) in values.as_object().unwrap() {
            let json = Value::from(value.as_str()).to_string();
            let (ours, printed) = match name.as_str() {
                "TaskState" => {
                    let state: wire::TaskState = serde_json::from_str(&json).unwrap();
                    (state.0, serde_json::to_string(&state).unwrap())
                }
                "Role" => {
                    let role: wire::Role = serde_json::from_str(&json).unwrap();
                    (role.0, serde_json::to_string(&role).unwrap())
                }
                other => panic!("wire lacks enum {other}"),
            };
            assert_eq!(i64::from(ours), number.as_i64().unwrap(), "{value}");
            assert_eq!(printed, json);
        }
    }
}
