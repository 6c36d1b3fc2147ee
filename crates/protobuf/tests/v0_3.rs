//! Messages of v0.3's package `a2a.v1`, through protobuf bytes and back.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "../../protocol/tests/v0_3/any.rs"]
mod any;

use std::fmt::Debug;

use longhaul_protobuf::a2a_v0_3;
use longhaul_protobuf::convert::v0_3::{Older, card_from_v1, card_into_v1};
use longhaul_protocol::v0_3::card::{card_from_json, card_to_v0_3};
use longhaul_protocol::v0_3::{self, Form, proto};
use longhaul_protocol::{from_json, wire};
use proptest::prelude::*;
use prost::Message;
use serde_json::{Value, json};

/// What went through protobuf says the same as what went through JSON, but for integers: protobuf has none in metadata.
#[track_caller]
fn check<P, F, W>(message: &W)
where
    P: Older<W> + Message + Default,
    F: Form<W>,
    W: Clone + Debug,
{
    let bytes = P::from_v1(message.clone()).encode_to_vec();
    let back: W = P::decode(bytes.as_slice()).unwrap().into_v1().unwrap();
    let json = |message: W| v0_3::to_json::<F, W>(message);
    let through_json = v0_3::from_json::<F, W>(&json(message.clone())).unwrap();
    let printed = |message: W| by_value(&serde_json::from_slice(&json(message)).unwrap());
    assert_eq!(printed(back), printed(through_json));
}

fn by_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.iter().map(by_value).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), by_value(value))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #[test]
    fn an_item_of_a_stream_comes_back(item in any::item()) {
        check::<a2a_v0_3::StreamResponse, proto::StreamResponse, _>(&item);
    }

    #[test]
    fn an_answer_comes_back(answer in any::answer()) {
        check::<a2a_v0_3::SendMessageResponse, proto::SendMessageResponse, _>(&answer);
    }

    #[test]
    fn a_send_comes_back(request in any::send()) {
        check::<a2a_v0_3::SendMessageRequest, proto::SendMessageRequest, _>(&request);
    }

    #[test]
    fn a_request_about_a_task_comes_back(get in any::get_task(), cancel in any::cancel()) {
        check::<a2a_v0_3::GetTaskRequest, proto::GetTaskRequest, _>(&get);
        check::<a2a_v0_3::CancelTaskRequest, proto::CancelTaskRequest, _>(&cancel);
        let subscribe = wire::SubscribeToTaskRequest { tenant: cancel.tenant, id: cancel.id };
        check::<a2a_v0_3::TaskSubscriptionRequest, proto::TaskSubscriptionRequest, _>(&subscribe);
    }

    #[test]
    fn a_push_config_comes_back(config in any::push_config(), page in any::push_configs()) {
        check::<a2a_v0_3::TaskPushNotificationConfig, proto::TaskPushNotificationConfig, _>(&config);
        type Create = proto::CreateTaskPushNotificationConfigRequest;
        check::<a2a_v0_3::CreateTaskPushNotificationConfigRequest, Create, _>(&config);
        type Page = proto::ListTaskPushNotificationConfigResponse;
        check::<a2a_v0_3::ListTaskPushNotificationConfigResponse, Page, _>(&page);
    }

    #[test]
    fn a_request_about_push_configs_comes_back(get in any::get_push_config(), list in any::list_push_configs()) {
        type Get = proto::GetTaskPushNotificationConfigRequest;
        check::<a2a_v0_3::GetTaskPushNotificationConfigRequest, Get, _>(&get);
        let delete = wire::DeleteTaskPushNotificationConfigRequest {
            tenant: get.tenant,
            task_id: get.task_id,
            id: get.id,
        };
        type Delete = proto::DeleteTaskPushNotificationConfigRequest;
        check::<a2a_v0_3::DeleteTaskPushNotificationConfigRequest, Delete, _>(&delete);
        type List = proto::ListTaskPushNotificationConfigRequest;
        check::<a2a_v0_3::ListTaskPushNotificationConfigRequest, List, _>(&list);
    }
}

#[test]
fn the_bytes_of_a_file_are_not_encoded_in_protobuf() {
    let part = a2a_v0_3::Part::from_v1(wire::Part::raw(&b"\xff\x00a"[..]));
    let Some(a2a_v0_3::part::Part::File(file)) = part.part else { panic!("not a file") };
    assert_eq!(file.file, Some(a2a_v0_3::file_part::File::FileWithBytes(b"\xff\x00a"[..].into())));
}

#[test]
fn a_configuration_that_does_not_say_so_does_not_wait() {
    let request = |configuration| a2a_v0_3::SendMessageRequest { configuration, ..Default::default() };
    let read: wire::SendMessageRequest = request(Some(Default::default())).into_v1().unwrap();
    assert!(read.configuration.unwrap().return_immediately);
    let read: wire::SendMessageRequest = request(None).into_v1().unwrap();
    assert_eq!(read.configuration, None);
    // Ours says so in any case.
    let written = a2a_v0_3::SendMessageRequest::from_v1(wire::SendMessageRequest::default());
    assert!(written.configuration.unwrap().blocking);
}

#[test]
fn a_field_that_is_wrong_is_named_as_v0_3_names_it() {
    let item = |status| a2a_v0_3::StreamResponse {
        payload: Some(a2a_v0_3::stream_response::Payload::StatusUpdate(a2a_v0_3::TaskStatusUpdateEvent {
            status: Some(status),
            ..Default::default()
        })),
    };
    let late = a2a_v0_3::TaskStatus {
        timestamp: Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 }),
        ..Default::default()
    };
    let error = Older::<wire::StreamResponse>::into_v1(item(late)).unwrap_err();
    assert_eq!(error.field(), "statusUpdate.status.timestamp");

    let update = a2a_v0_3::Message { content: vec![Default::default()], ..Default::default() };
    let empty = a2a_v0_3::TaskStatus { update: Some(update), ..Default::default() };
    let error = Older::<wire::StreamResponse>::into_v1(item(empty)).unwrap_err();
    assert_eq!(error.field(), "statusUpdate.status.message.content[0]");
    assert_eq!(error.description(), "must have one of text, file, data");

    let get = a2a_v0_3::GetTaskRequest { name: "t1".to_owned(), ..Default::default() };
    assert_eq!(Older::<wire::GetTaskRequest>::into_v1(get).unwrap_err().field(), "name");
}

/// A card with each kind of security scheme that v0.3 has, and an interface of each version.
fn card() -> wire::AgentCard {
    let scopes = json!({"read": "reads"});
    let oauth =
        |flow: Value| json!({"oauth2SecurityScheme": {"description": "d", "flows": flow, "oauth2MetadataUrl": "m"}});
    let card = json!({
        "name": "n", "description": "d", "version": "7", "documentationUrl": "https://example.com/d", "iconUrl": "i",
        "provider": {"url": "https://example.com", "organization": "o"},
        "supportedInterfaces": [
            {"url": "https://example.com/1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "https://example.com/2", "protocolBinding": "GRPC", "protocolVersion": "0.3"},
            {"url": "https://example.com/3", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
        ],
        "capabilities": {
            "streaming": true, "pushNotifications": true, "extendedAgentCard": true,
            "extensions": [{"uri": "urn:x", "description": "d", "required": true, "params": {"k": "v"}}],
        },
        "securitySchemes": {
            "a": {"apiKeySecurityScheme": {"description": "d", "location": "header", "name": "n"}},
            "b": {"httpAuthSecurityScheme": {"description": "d", "scheme": "Bearer", "bearerFormat": "JWT"}},
            "c": {"openIdConnectSecurityScheme": {"description": "d", "openIdConnectUrl": "u"}},
            "d": {"mtlsSecurityScheme": {"description": "d"}},
            "e": oauth(json!({"authorizationCode": {
                "authorizationUrl": "a", "tokenUrl": "t", "refreshUrl": "r", "scopes": scopes,
            }})),
            "f": oauth(json!({"clientCredentials": {"tokenUrl": "t", "refreshUrl": "r", "scopes": scopes}})),
            "g": oauth(json!({"implicit": {"authorizationUrl": "a", "refreshUrl": "r", "scopes": scopes}})),
            "h": oauth(json!({"password": {"tokenUrl": "t", "refreshUrl": "r", "scopes": scopes}})),
        },
        "securityRequirements": [{"schemes": {"a": {"list": ["read"]}, "b": {}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": "s", "name": "n", "description": "d", "tags": ["t"], "examples": ["e"], "inputModes": ["text/plain"],
            "outputModes": ["text/plain"], "securityRequirements": [{"schemes": {"c": {}}}],
        }],
        "signatures": [{"protected": "p", "signature": "s", "header": {"k": "v"}}],
    });
    from_json(card.to_string().as_bytes()).unwrap()
}

#[test]
fn a_card_says_in_protobuf_what_it_says_in_json() {
    let bytes = card_from_v1(&card()).unwrap().unwrap().encode_to_vec();
    let back = card_into_v1(a2a_v0_3::AgentCard::decode(bytes.as_slice()).unwrap()).unwrap();
    let json = Value::Object(card_to_v0_3(&card()).unwrap());
    assert_eq!(back, card_from_json(json.to_string().as_bytes()).unwrap());
    assert_eq!(back.supported_interfaces[0].url, "https://example.com/2");
    assert_eq!(back.security_schemes.len(), 8);
    assert_eq!(back.capabilities, card().capabilities);
}

#[test]
fn a_card_without_an_interface_of_v0_3_is_none_of_v0_3() {
    let mut card = card();
    card.supported_interfaces.truncate(1);
    assert_eq!(card_from_v1(&card), Ok(None));
}
