//! JSON, data model and protobuf bytes against what the reference implementation makes of them.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read or find is its failure"
)]

use std::fmt::Debug;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use longhaul_protobuf::a2a;
use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::{Timestamp, from_json, to_json, wire};
use prost::Message;
use serde_json::Value;

/// One payload a line: its JSON, the reference's protobuf encoding, and its JSON printed again.
const GOLDEN: &str = include_str!("data/protojson.jsonl");

#[test]
fn json_becomes_the_protobuf_message_of_the_reference() {
    let checked = for_each_accepted(|golden| match golden.of.as_str() {
        "Part" => golden.encodes::<a2a::Part, wire::Part>(),
        "Message" => golden.encodes::<a2a::Message, wire::Message>(),
        "Task" => golden.encodes::<a2a::Task, wire::Task>(),
        "TaskStatus" => golden.encodes::<a2a::TaskStatus, wire::TaskStatus>(),
        "StreamResponse" => golden.encodes::<a2a::StreamResponse, wire::StreamResponse>(),
        "SendMessageRequest" => {
            golden.encodes::<a2a::SendMessageRequest, wire::SendMessageRequest>();
        }
        "SendMessageResponse" => {
            golden.encodes::<a2a::SendMessageResponse, wire::SendMessageResponse>();
        }
        "GetTaskRequest" => golden.encodes::<a2a::GetTaskRequest, wire::GetTaskRequest>(),
        "ListTasksRequest" => golden.encodes::<a2a::ListTasksRequest, wire::ListTasksRequest>(),
        "ListTasksResponse" => golden.encodes::<a2a::ListTasksResponse, wire::ListTasksResponse>(),
        "AgentCard" => golden.encodes::<a2a::AgentCard, wire::AgentCard>(),
        other => panic!("no such message here: {other}"),
    });
    assert!(checked > 70, "only {checked} payloads were checked");
}

#[test]
fn protobuf_of_the_reference_becomes_its_json() {
    let checked = for_each_accepted(|golden| match golden.of.as_str() {
        "Part" => golden.decodes::<a2a::Part, wire::Part>(),
        "Message" => golden.decodes::<a2a::Message, wire::Message>(),
        "Task" => golden.decodes::<a2a::Task, wire::Task>(),
        "TaskStatus" => golden.decodes::<a2a::TaskStatus, wire::TaskStatus>(),
        "StreamResponse" => golden.decodes::<a2a::StreamResponse, wire::StreamResponse>(),
        "SendMessageRequest" => {
            golden.decodes::<a2a::SendMessageRequest, wire::SendMessageRequest>();
        }
        "SendMessageResponse" => {
            golden.decodes::<a2a::SendMessageResponse, wire::SendMessageResponse>();
        }
        "GetTaskRequest" => golden.decodes::<a2a::GetTaskRequest, wire::GetTaskRequest>(),
        "ListTasksRequest" => golden.decodes::<a2a::ListTasksRequest, wire::ListTasksRequest>(),
        "ListTasksResponse" => golden.decodes::<a2a::ListTasksResponse, wire::ListTasksResponse>(),
        "AgentCard" => golden.decodes::<a2a::AgentCard, wire::AgentCard>(),
        other => panic!("no such message here: {other}"),
    });
    assert!(checked > 70, "only {checked} payloads were checked");
}

/// One accepted payload.
struct Golden {
    of: String,
    about: String,
    input: String,
    proto: Vec<u8>,
    canonical: Value,
}

impl Golden {
    /// JSON to the data model to protobuf, compared as what its bytes decode to: the order of map
    /// entries is free.
    fn encodes<P, W>(&self)
    where
        P: Message + Debug + Default + PartialEq + From<W>,
        W: ProtoJson,
    {
        let message: W = from_json(self.input.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", self.about));
        let bytes = P::from(message).encode_to_vec();
        let ours = P::decode(bytes.as_slice()).unwrap();
        let reference = P::decode(self.proto.as_slice()).unwrap();
        assert_eq!(ours, reference, "{}: {}", self.of, self.about);
    }

    /// Protobuf to the data model to JSON, compared by meaning.
    fn decodes<P, W>(&self)
    where
        P: Message + Default,
        W: ProtoJson + TryFrom<P, Error: Debug>,
    {
        let message = P::decode(self.proto.as_slice()).unwrap();
        let json = to_json(&W::try_from(message).unwrap());
        let ours: Value = serde_json::from_slice(&json).unwrap();
        assert!(
            same_meaning(&ours, &self.canonical),
            "{}: {}\n     ours: {ours}\nreference: {}",
            self.of,
            self.about,
            self.canonical
        );
    }
}

fn for_each_accepted(check: impl Fn(&Golden)) -> usize {
    let mut checked = 0;
    for line in GOLDEN.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["ok"] != true {
            continue;
        }
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        check(&Golden {
            of: text("type"),
            about: text("about"),
            input: text("input"),
            proto: STANDARD.decode(text("proto")).unwrap(),
            canonical: line["canonical"].clone(),
        });
        checked += 1;
    }
    checked
}

/// Compares JSON where `1` and `1.0` are one number, a time may have more digits of fraction, and
/// ours may print the default value of a member that A2A requires.
fn same_meaning(ours: &Value, reference: &Value) -> bool {
    match (ours, reference) {
        (Value::Object(ours), Value::Object(reference)) => {
            let missing = reference.keys().any(|name| !ours.contains_key(name));
            !missing
                && ours.iter().all(|(name, value)| match reference.get(name) {
                    Some(reference) => same_meaning(value, reference),
                    None => is_default(value),
                })
        }
        (Value::Array(ours), Value::Array(reference)) => {
            ours.len() == reference.len()
                && ours.iter().zip(reference).all(|(ours, reference)| same_meaning(ours, reference))
        }
        (Value::Number(ours), Value::Number(reference)) => ours.as_f64() == reference.as_f64(),
        (Value::String(ours), Value::String(reference)) => {
            ours == reference
                || matches!(
                    (ours.parse::<Timestamp>(), reference.parse::<Timestamp>()),
                    (Ok(ours), Ok(reference)) if ours == reference
                )
        }
        _ => ours == reference,
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}
