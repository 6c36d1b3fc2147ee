//! Messages that the golden payloads do not reach, through protobuf bytes and back.

#![expect(clippy::unwrap_used, reason = "what a test cannot read or find is its failure")]

use std::fmt::Debug;

use longhaul_protobuf::json_value::JSON_DEPTH_MAX;
use longhaul_protobuf::{JsonValue, a2a, artifact};
use longhaul_protocol::json::ProtoJson;
use longhaul_protocol::{Timestamp, from_json, to_json, wire};
use prost::Message;
use serde_json::{Value, json};

#[test]
fn artifact_versions_come_back_as_they_were() {
    survives::<artifact::ListArtifactVersionsRequest, _>(wire::ListArtifactVersionsRequest {
        tenant: "x".to_owned(),
        task_id: "t1".to_owned(),
        artifact_id: "a1".to_owned(),
        page_size: Some(0),
        page_token: "p".to_owned(),
    });
    survives::<artifact::ListArtifactVersionsResponse, _>(wire::ListArtifactVersionsResponse {
        versions: vec![wire::ArtifactVersion {
            version: i64::MAX,
            sequence: 7,
            timestamp: Some(Timestamp::MIN),
            last_chunk: true,
        }],
        next_page_token: "n".to_owned(),
    });
    survives::<artifact::GetArtifactRequest, _>(wire::GetArtifactRequest {
        tenant: "x".to_owned(),
        task_id: "t1".to_owned(),
        artifact_id: "a1".to_owned(),
        version: Some(3),
    });
    survives::<artifact::GetArtifactResponse, _>(wire::GetArtifactResponse {
        version: 3,
        artifact: Some(wire::Artifact { artifact_id: "a1".to_owned(), ..Default::default() }),
    });
}

#[test]
fn requests_come_back_as_they_were() {
    survives_json::<a2a::CancelTaskRequest, wire::CancelTaskRequest>(
        &json!({"tenant": "x", "id": "t1", "metadata": {"a": [1, null]}}),
    );
    survives_json::<a2a::SubscribeToTaskRequest, wire::SubscribeToTaskRequest>(&json!({"tenant": "x", "id": "t1"}));
    survives_json::<a2a::GetExtendedAgentCardRequest, wire::GetExtendedAgentCardRequest>(&json!({"tenant": "x"}));
    let config = json!({
        "tenant": "x", "id": "c1", "taskId": "t1", "url": "https://example.com", "token": "k",
        "authentication": {"scheme": "Bearer", "credentials": "secret"},
    });
    survives_json::<a2a::TaskPushNotificationConfig, wire::TaskPushNotificationConfig>(&config);
    survives_json::<a2a::ListTaskPushNotificationConfigsResponse, wire::ListTaskPushNotificationConfigsResponse>(
        &json!({"configs": [config], "nextPageToken": "n"}),
    );
    survives_json::<a2a::ListTaskPushNotificationConfigsRequest, wire::ListTaskPushNotificationConfigsRequest>(
        &json!({"tenant": "x", "taskId": "t1", "pageSize": 5, "pageToken": "p"}),
    );
    let config = json!({"tenant": "x", "taskId": "t1", "id": "c1"});
    survives_json::<a2a::GetTaskPushNotificationConfigRequest, wire::GetTaskPushNotificationConfigRequest>(&config);
    survives_json::<a2a::DeleteTaskPushNotificationConfigRequest, wire::DeleteTaskPushNotificationConfigRequest>(
        &config,
    );
}

#[test]
fn every_kind_of_security_scheme_comes_back_as_it_was() {
    let scopes = json!({"read": "reads", "write": "writes"});
    let flows = [
        json!({"authorizationCode": {
            "authorizationUrl": "a", "tokenUrl": "t", "refreshUrl": "r", "scopes": scopes,
            "pkceRequired": true,
        }}),
        json!({"clientCredentials": {"tokenUrl": "t", "refreshUrl": "r", "scopes": scopes}}),
        json!({"implicit": {"authorizationUrl": "a", "refreshUrl": "r", "scopes": scopes}}),
        json!({"password": {"tokenUrl": "t", "refreshUrl": "r", "scopes": scopes}}),
        json!({"deviceCode": {
            "deviceAuthorizationUrl": "d", "tokenUrl": "t", "refreshUrl": "r", "scopes": scopes,
        }}),
    ];
    let mut schemes = vec![
        json!({"apiKeySecurityScheme": {"description": "d", "location": "header", "name": "n"}}),
        json!({"httpAuthSecurityScheme": {
            "description": "d", "scheme": "Bearer", "bearerFormat": "JWT",
        }}),
        json!({"openIdConnectSecurityScheme": {"description": "d", "openIdConnectUrl": "u"}}),
        json!({"mtlsSecurityScheme": {"description": "d"}}),
    ];
    schemes.extend(flows.map(|flow| {
        json!({"oauth2SecurityScheme": {
            "description": "d", "flows": flow, "oauth2MetadataUrl": "m",
        }})
    }));
    for scheme in schemes {
        survives_json::<a2a::SecurityScheme, wire::SecurityScheme>(&scheme);
    }
}

#[test]
fn the_deepest_data_that_is_read_from_protobuf_can_be_read_from_json() {
    let mut data = Value::Null;
    for _ in 0..JSON_DEPTH_MAX {
        data = json!([data]);
    }
    let part = a2a::Part { content: Some(a2a::part::Content::Data(JsonValue(data))), ..Default::default() };
    let message = a2a::Message { parts: vec![part], ..Default::default() };
    let task = a2a::Task {
        status: Some(a2a::TaskStatus { message: Some(message.clone()), ..Default::default() }),
        history: vec![message],
        ..Default::default()
    };
    let page = a2a::ListTasksResponse { tasks: vec![task], ..Default::default() };
    let read = a2a::ListTasksResponse::decode(page.encode_to_vec().as_slice()).unwrap();
    let stored = to_json(&wire::ListTasksResponse::try_from(read).unwrap());
    from_json::<wire::ListTasksResponse>(&stored).unwrap();
}

/// Reads `json`, which must set each member, and sends it through protobuf.
#[track_caller]
fn survives_json<P, W>(json: &Value)
where
    P: Message + Default + From<W>,
    W: ProtoJson + Clone + Debug + PartialEq + TryFrom<P, Error: Debug>,
{
    let message: W = from_json(json.to_string().as_bytes()).unwrap();
    let printed: Value = serde_json::from_slice(&to_json(&message)).unwrap();
    assert_eq!(printed, *json, "a member was not read");
    survives::<P, W>(message);
}

#[track_caller]
fn survives<P, W>(message: W)
where
    P: Message + Default + From<W>,
    W: Clone + Debug + PartialEq + TryFrom<P, Error: Debug>,
{
    let bytes = P::from(message.clone()).encode_to_vec();
    let back = W::try_from(P::decode(bytes.as_slice()).unwrap()).unwrap();
    assert_eq!(back, message);
}
