//! What is read of v0.3, and what is refused, with its path.

use longhaul_protocol::rules::DATA_DEPTH_MAX;
use longhaul_protocol::v0_3::{self, Form, json_rpc, proto};
use longhaul_protocol::{JsonError, to_json, wire};
use serde_json::{Value, json};

fn read<F: Form<W>, W>(object: &Value) -> Result<W, JsonError> {
    v0_3::from_json::<F, W>(object.to_string().as_bytes())
}

fn send(object: &Value) -> Result<wire::SendMessageRequest, JsonError> {
    read::<json_rpc::MessageSendParams, wire::SendMessageRequest>(object)
}

fn event(object: &Value) -> Result<wire::StreamResponse, JsonError> {
    read::<json_rpc::Event, wire::StreamResponse>(object)
}

fn printed<W: longhaul_protocol::json::ProtoJson>(message: &W) -> Value {
    serde_json::from_slice(&to_json(message)).unwrap()
}

#[test]
fn a_fault_is_told_with_its_path_in_the_names_of_json_rpc() {
    let part = |part: Value| json!({"message": {"parts": [{"text": "x"}, part]}});
    let check = |request: Value, wanted: &str| assert_eq!(send(&request).unwrap_err().to_string(), wanted);
    check(part(json!({"kind": "video"})), "message.parts[1].kind: must be one of text, file, data");
    check(part(json!({"kind": "task"})), "message.parts[1].kind: must be one of text, file, data");
    check(part(json!({})), "message.parts[1].kind: is required, must be one of text, file, data");
    check(
        part(json!({"text": "x", "data": {}})),
        "message.parts[1].kind: is required, must be one of text, file, data",
    );
    check(part(json!({"kind": "text"})), "message.parts[1].text: is required");
    check(part(json!({"kind": "file"})), "message.parts[1].file: is required");
    check(part(json!({"kind": "file", "file": {}})), "message.parts[1].file: must have one of bytes, uri");
    check(
        part(json!({"kind": "file", "file": {"bytes": "AA==", "uri": "u"}})),
        "message.parts[1].file: only one of bytes, uri is allowed, `uri` is the second",
    );
    check(part(json!({"kind": "file", "file": {"bytes": "?"}})), "message.parts[1].file.bytes: must be base64");
    check(part(json!({"kind": "data"})), "message.parts[1].data: is required");
    check(part(json!({"role": 1})), "message.parts[1].kind: is required, must be one of text, file, data");
    check(json!({"message": {"role": "ROLE_USER"}}), "message.role: must be one of user, agent");
    check(json!({"message": {"kind": "task"}}), "message.kind: must be message");
    let error = send(&part(json!({"kind": "data", "data": [1]}))).unwrap_err();
    assert_eq!(error.path, "message.parts[1].data");
}

#[test]
fn a_fault_is_told_with_its_path_in_the_names_of_the_proto() {
    fn check<F: Form<W>, W: std::fmt::Debug>(object: &Value, wanted: &str) {
        assert_eq!(read::<F, W>(object).unwrap_err().to_string(), wanted);
    }
    let part = |part: Value| json!({"message": {"content": [{"text": "x"}, part]}});
    type Send = proto::SendMessageRequest;
    check::<Send, wire::SendMessageRequest>(&part(json!({})), "message.content[1]: must have one of text, file, data");
    check::<Send, wire::SendMessageRequest>(
        &part(json!({"file": {}})),
        "message.content[1].file: must have one of fileWithUri, fileWithBytes",
    );
    let item = json!({"task": {"artifacts": [{"parts": [{}]}]}});
    check::<proto::StreamResponse, wire::StreamResponse>(
        &item,
        "task.artifacts[0].parts[0]: must have one of text, file, data",
    );
    check::<proto::GetTaskRequest, wire::GetTaskRequest>(&json!({"name": "t1"}), "name: must be tasks/{id}");
    check::<proto::GetTaskRequest, wire::GetTaskRequest>(&json!({"name": "tasks/a/b"}), "name: must be tasks/{id}");
    check::<proto::GetTaskPushNotificationConfigRequest, wire::GetTaskPushNotificationConfigRequest>(
        &json!({"name": "tasks/t1"}),
        "name: must be tasks/{id}/pushNotificationConfigs/{id}",
    );
}

#[test]
fn unknown_members_and_nulls_are_as_if_absent() {
    let request = send(&json!({
        "message": {
            "kind": null, "messageId": "m", "role": "user", "taskId": null, "metadata": null, "future": {"deep": [1]},
            "parts": [{"kind": "text", "text": "x", "file": null, "thought": true}],
        },
        "configuration": null,
        "tenant": "x",
    }))
    .unwrap();
    assert_eq!(
        printed(&request),
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}})
    );
}

#[test]
fn snake_case_is_read_as_the_python_sdk_reads_it() {
    let request = send(&json!({
        "message": {"message_id": "m", "role": "user", "context_id": "c", "parts": [
            {"file": {"uri": "u", "mime_type": "text/plain"}},
        ]},
        "configuration": {"history_length": 2, "blocking": false},
    }))
    .unwrap();
    assert_eq!(
        printed(&request),
        json!({
            "message": {"messageId": "m", "contextId": "c", "role": "ROLE_USER", "parts": [
                {"url": "u", "mediaType": "text/plain"},
            ]},
            "configuration": {"historyLength": 2, "returnImmediately": true},
        })
    );
}

#[test]
fn a_send_waits_or_not_as_its_binding_has_it() {
    let json_rpc = |object: Value| {
        let read = read::<json_rpc::MessageSendParams, wire::SendMessageRequest>(&object).unwrap();
        read.configuration.is_some_and(|configuration| configuration.return_immediately)
    };
    let proto = |object: Value| {
        let read = read::<proto::SendMessageRequest, wire::SendMessageRequest>(&object).unwrap();
        read.configuration.is_some_and(|configuration| configuration.return_immediately)
    };
    let table = [
        (json!({}), false, false),
        (json!({"configuration": {}}), false, true),
        (json!({"configuration": {"blocking": false}}), true, true),
        (json!({"configuration": {"blocking": true}}), false, false),
    ];
    for (object, at_once_json_rpc, at_once_proto) in table {
        assert_eq!(json_rpc(object.clone()), at_once_json_rpc, "{object}");
        assert_eq!(proto(object.clone()), at_once_proto, "{object}");
    }
}

#[test]
fn no_limit_of_the_history_is_none() {
    for length in [json!(0), json!(null)] {
        let get = read::<json_rpc::TaskQueryParams, wire::GetTaskRequest>(&json!({"id": "t", "historyLength": length}));
        assert_eq!(get.unwrap().history_length, None);
    }
    let get = read::<proto::GetTaskRequest, wire::GetTaskRequest>(&json!({"name": "tasks/t"})).unwrap();
    assert_eq!((get.id.as_str(), get.history_length), ("t", None));
    let get = read::<json_rpc::TaskQueryParams, wire::GetTaskRequest>(&json!({"id": "t", "historyLength": 3}));
    assert_eq!(get.unwrap().history_length, Some(3));
}

#[test]
fn an_event_without_a_kind_is_what_its_members_say() {
    use wire::StreamResponsePayload::*;
    let status = json!({"state": "working"});
    let read = |object: Value| event(&object).unwrap().payload.unwrap();
    assert!(matches!(read(json!({"id": "t", "contextId": "c", "status": status})), Task(_)));
    assert!(matches!(read(json!({"taskId": "t", "contextId": "c", "status": status})), StatusUpdate(_)));
    assert!(matches!(read(json!({"taskId": "t", "contextId": "c", "artifact": {"parts": []}})), ArtifactUpdate(_)));
    assert!(matches!(read(json!({"messageId": "m", "role": "agent", "parts": []})), Message(_)));
    let kinds = "kind: must be one of task, message, status-update, artifact-update";
    assert_eq!(event(&json!({"id": "t"})).unwrap_err().to_string(), kinds);
    assert_eq!(event(&json!({"kind": "text", "text": "x"})).unwrap_err().to_string(), kinds);
    assert_eq!(event(&json!([])).unwrap_err().path, "");
}

#[test]
fn only_a_task_or_a_message_answers_a_send() {
    let answer = |object: Value| read::<json_rpc::Event, wire::SendMessageResponse>(&object);
    let update = json!({"kind": "status-update", "taskId": "t", "status": {"state": "working"}});
    assert_eq!(answer(update).unwrap_err().to_string(), "kind: must be one of task, message");
    assert!(answer(json!({"kind": "task", "id": "t", "status": {"state": "working"}})).is_ok());
}

#[test]
fn the_senders_mark_of_the_last_event_can_be_seen() {
    let object = json!({"kind": "status-update", "taskId": "t", "status": {"state": "working"}, "final": true});
    let event: json_rpc::Event = longhaul_protocol::from_json(object.to_string().as_bytes()).unwrap();
    assert!(event.is_final());
    let object = json!({"statusUpdate": {"taskId": "t", "final": true}});
    let event: proto::StreamResponse = longhaul_protocol::from_json(object.to_string().as_bytes()).unwrap();
    assert!(event.is_final());
    assert!(!json_rpc::Event::default().is_final());
}

#[test]
fn times_are_read_as_agents_write_them() {
    let time = |text: &str| {
        let object = json!({"state": "working", "timestamp": text});
        read::<json_rpc::TaskStatus, wire::TaskStatus>(&object).unwrap().timestamp.map(|time| time.to_string())
    };
    assert_eq!(time("2026-01-02T03:04:05.678Z").as_deref(), Some("2026-01-02T03:04:05.678Z"));
    assert_eq!(time("2026-01-02T04:04:05.678901+01:00").as_deref(), Some("2026-01-02T03:04:05.678901Z"));
    assert_eq!(time("2026-01-02T03:04:05.5").as_deref(), Some("2026-01-02T03:04:05.500Z"));
    assert_eq!(time("yesterday"), None);
    assert_eq!(time(""), None);
}

#[test]
fn the_proto_spells_one_state_in_its_own_way() {
    let status = |name: &str| {
        let read = read::<proto::TaskStatus, wire::TaskStatus>(&json!({"state": name})).unwrap();
        let back: Value = serde_json::from_slice(&v0_3::to_json::<proto::TaskStatus, _>(read)).unwrap();
        back["state"].clone()
    };
    assert_eq!(status("TASK_STATE_CANCELLED"), "TASK_STATE_CANCELLED");
    assert_eq!(status("TASK_STATE_CANCELED"), "TASK_STATE_CANCELLED");
    assert_eq!(status("TASK_STATE_AUTH_REQUIRED"), "TASK_STATE_AUTH_REQUIRED");
}

#[test]
fn the_bytes_of_a_file_are_encoded_once() {
    let part = wire::Part::raw(&b"\xff\x00a"[..]);
    let json_rpc = v0_3::to_json::<json_rpc::Part, _>(part.clone());
    assert_eq!(json_rpc, r#"{"kind":"file","file":{"bytes":"/wBh"}}"#);
    let proto = v0_3::to_json::<proto::Part, _>(part.clone());
    assert_eq!(proto, r#"{"file":{"fileWithBytes":"/wBh"}}"#);
    assert_eq!(v0_3::from_json::<json_rpc::Part, wire::Part>(&json_rpc), Ok(part.clone()));
    assert_eq!(v0_3::from_json::<proto::Part, wire::Part>(&proto), Ok(part));
}

#[test]
fn data_that_is_no_object_is_put_into_one_and_taken_out_again() {
    let part = wire::Part {
        metadata: Some([("k".to_owned(), json!(1))].into_iter().collect()),
        ..wire::Part::data(json!([1]))
    };
    let wrapped: Value = serde_json::from_slice(&v0_3::to_json::<json_rpc::Part, _>(part.clone())).unwrap();
    assert_eq!(
        wrapped,
        json!({"kind": "data", "data": {"value": [1]}, "metadata": {"k": 1, "data_part_compat": true}})
    );
    assert_eq!(read::<json_rpc::Part, wire::Part>(&wrapped), Ok(part));
    // Marked, but with more than the value: left as it is.
    let other = json!({"data": {"value": 1, "more": 2}, "metadata": {"data_part_compat": true}});
    let kept = read::<json_rpc::Part, wire::Part>(&other).unwrap();
    assert_eq!(printed(&kept), other);
}

#[test]
fn the_push_config_of_a_task_is_read_in_each_form_that_clients_send() {
    let wanted = json!({"taskId": "t", "id": "c", "url": "https://example.com/h"});
    let config = json!({"id": "c", "url": "https://example.com/h"});
    let named = json!({"name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": config});
    let whole = json!({"parent": "tasks/t", "configId": "c", "config": named});
    let body = |object: &Value| read::<proto::PushConfigBody, wire::TaskPushNotificationConfig>(object).unwrap();
    assert_eq!(printed(&body(&whole)), wanted);
    let without_task = json!({"id": "c", "url": "https://example.com/h"});
    assert_eq!(printed(&body(&named)), without_task);
    // A client without an id for the config writes its absence into the name.
    let nameless = json!({
        "parent": "tasks/t",
        "config": {"name": "tasks/t/pushNotificationConfigs/None", "pushNotificationConfig": {"url": "u"}},
    });
    assert_eq!(printed(&body(&nameless)), json!({"taskId": "t", "url": "u"}));
    let answer = read::<proto::TaskPushNotificationConfig, wire::TaskPushNotificationConfig>(&named).unwrap();
    assert_eq!(printed(&answer), wanted);
}

#[test]
fn a_list_of_push_configs_is_an_array_in_json_rpc() {
    let config = json!({"taskId": "t", "pushNotificationConfig": {"id": "c", "url": "u"}});
    type Page = wire::ListTaskPushNotificationConfigsResponse;
    let page = read::<json_rpc::TaskPushNotificationConfigs, Page>(&json!([config])).unwrap();
    assert_eq!(printed(&page), json!({"configs": [{"taskId": "t", "id": "c", "url": "u"}]}));
    let back: Value = serde_json::from_slice(&v0_3::to_json::<json_rpc::TaskPushNotificationConfigs, _>(page)).unwrap();
    assert_eq!(back, json!([config]));
    let error = read::<json_rpc::TaskPushNotificationConfigs, Page>(&json!([{"taskId": 1}])).unwrap_err();
    assert_eq!(error.path, "[0].taskId");
}

#[test]
fn authentication_without_schemes_and_credentials_is_none() {
    let config = |authentication: Value| {
        let object = json!({"url": "u", "authentication": authentication});
        read::<json_rpc::PushNotificationConfig, wire::TaskPushNotificationConfig>(&object).unwrap().authentication
    };
    assert_eq!(config(json!({"schemes": []})), None);
    assert_eq!(config(json!({"schemes": ["Bearer"]})).unwrap().scheme, "Bearer");
    assert_eq!(config(json!({"schemes": [], "credentials": "x"})).unwrap().scheme, "");
}

#[test]
fn the_deepest_data_that_the_rules_allow_comes_back_in_both_dialects() {
    let array = (0..DATA_DEPTH_MAX).fold(Value::Null, |inside, _| json!([inside]));
    let object = (0..DATA_DEPTH_MAX).fold(Value::Null, |inside, _| json!({"k": inside}));
    for data in [array, object] {
        let message = wire::Message { parts: vec![wire::Part::data(data)], ..Default::default() };
        let task = wire::Task {
            status: Some(wire::TaskStatus { message: Some(message.clone()), ..Default::default() }),
            history: vec![wire::Message { role: wire::Role(2), ..message }],
            ..Default::default()
        };
        let item = wire::StreamResponse { payload: Some(wire::StreamResponsePayload::Task(task)) };
        let json = v0_3::to_json::<json_rpc::Event, _>(item.clone());
        assert!(v0_3::from_json::<json_rpc::Event, wire::StreamResponse>(&json).is_ok());
        let json = v0_3::to_json::<proto::StreamResponse, _>(item.clone());
        assert_eq!(v0_3::from_json::<proto::StreamResponse, wire::StreamResponse>(&json), Ok(item));
    }
}

#[test]
fn a_state_that_nobody_knows_is_unspecified_and_a_misspelt_one_is_canceled() {
    let state = |name: &str| {
        let object = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": name}});
        let item = event(&object).unwrap();
        let Some(wire::StreamResponsePayload::Task(task)) = item.payload else { panic!("{item:?}") };
        task.status.unwrap().state
    };
    for name in ["unknown", "paused", ""] {
        assert_eq!(state(name), wire::TaskState::default(), "{name:?}");
    }
    assert_eq!(state("cancelled"), longhaul_protocol::TaskState::Canceled.into());
}
