//! The golden vectors: objects of v0.3, what they become, and what they become on the way back.

use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::v0_3::{self, Form, json_rpc};
use longhaul_protocol::{from_json, to_json, wire};
use serde_json::Value;

#[test]
fn each_object_becomes_what_the_reference_makes_of_it_and_back() {
    let mut checked = 0;
    for line in include_str!("../data/v03.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["type"].as_str().unwrap() {
            "Part" => check::<json_rpc::Part, wire::Part>(&line),
            "Message" => check::<json_rpc::Message, wire::Message>(&line),
            "Task" => check::<json_rpc::Task, wire::Task>(&line),
            "TaskStatusUpdateEvent" => check::<json_rpc::TaskStatusUpdateEvent, wire::TaskStatusUpdateEvent>(&line),
            "TaskArtifactUpdateEvent" => {
                check::<json_rpc::TaskArtifactUpdateEvent, wire::TaskArtifactUpdateEvent>(&line);
            }
            "MessageSendConfiguration" => {
                check::<json_rpc::MessageSendConfiguration, wire::SendMessageConfiguration>(&line);
            }
            "PushNotificationConfig" => {
                check::<json_rpc::PushNotificationConfig, wire::TaskPushNotificationConfig>(&line);
            }
            // Cards have a test of their own.
            "AgentCard" => continue,
            other => panic!("a vector of unknown type {other}"),
        }
        checked += 1;
    }
    assert_eq!(checked, 28);
}

fn check<F: Form<W>, W: ProtoJson + Clone>(line: &Value) {
    let read: W = v0_3::from_json::<F, W>(line["v03"].to_string().as_bytes()).unwrap();
    assert_eq!(printed(&to_json(&read)), by_value(&line["v1"]), "{}", line["about"]);
    assert_eq!(printed(&v0_3::to_json::<F, W>(read)), by_value(&line["back"]), "{}", line["about"]);
    let v1: W = from_json(line["v1"].to_string().as_bytes()).unwrap();
    assert_eq!(printed(&v0_3::to_json::<F, W>(v1)), by_value(&line["back"]), "{}", line["about"]);
}

fn printed(json: &[u8]) -> Value {
    by_value(&serde_json::from_slice(json).unwrap())
}

/// The same JSON with each number as a float: the reference has no others.
fn by_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.iter().map(by_value).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), by_value(value))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
