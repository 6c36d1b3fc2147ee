//! What v0.3 looks like to the letter.

use longhaul_protobuf::a2a_v0_3::{self, a2a_service_client::A2aServiceClient, part, stream_response::Payload};
use longhaul_tests::Channel;
use longhaul_tests::http::Request;
use serde_json::{Value, json};

use crate::{error, exchange, follow, message, next, open, result, rpc, rpc_request, say, say_to, server};

/// The states of the events of a stream, and which of them are final.
fn told(events: &[(Option<String>, Value)]) -> Vec<(String, bool)> {
    let updates = events.iter().map(|(_, event)| &event["result"]).filter(|event| event["kind"] == "status-update");
    let text = |event: &Value| event["status"]["state"].as_str().unwrap().to_owned();
    updates.map(|event| (text(event), event["final"].as_bool().unwrap())).collect()
}

#[tokio::test]
async fn a_send_is_answered_with_a_task_of_v0_3() {
    let (_server, mut connection) = server("").await;
    let mut params = say("echo");
    params["message"]["parts"] = json!([
        {"kind": "text", "text": "echo"},
        {"kind": "file", "file": {"bytes": "AAEC/w==", "name": "four.bin", "mimeType": "application/octet-stream"}},
        {"kind": "data", "data": {"n": 1}},
    ]);
    params["message"]["metadata"] = json!({"zero": 0, "null": null});
    let task = result(&mut connection, "message/send", params.clone()).await;
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")));
    let sent = &task["history"][0];
    for member in ["kind", "messageId", "role", "parts", "metadata"] {
        assert_eq!(sent[member], params["message"][member], "{member}");
    }
    assert_eq!(task["artifacts"][0]["parts"], params["message"]["parts"]);
    let read = result(&mut connection, "tasks/get", json!({"id": task["id"], "historyLength": 0})).await;
    assert_eq!(read, task, "0 is no limit");
    let direct = result(&mut connection, "message/send", say("msg")).await;
    assert_eq!((&direct["kind"], &direct["role"]), (&json!("message"), &json!("agent")));
}

#[tokio::test]
async fn a_send_waits_unless_it_is_told_not_to() {
    let (_server, mut connection) = server("").await;
    let mut rested = Vec::new();
    for configuration in [json!(null), json!({}), json!({"blocking": true}), json!({"blocking": false})] {
        let mut params = say("slow 1");
        params["configuration"] = configuration;
        let task = result(&mut connection, "message/send", params).await;
        rested.push(task["status"]["state"] == "completed");
    }
    assert_eq!(rested, [true, true, true, false], "over JSON-RPC");
    rested.clear();
    for configuration in [json!(null), json!({"blocking": true}), json!({}), json!({"blocking": false})] {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "slow 1"}]});
        let body = json!({"message": message, "configuration": configuration});
        let answer = exchange(&mut connection, &Request::new("POST", "/v1/message:send").json(&body)).await;
        assert_eq!((answer.status, answer.head.media_type()), (200, "application/json"));
        rested.push(answer.json()["task"]["status"]["state"] == "TASK_STATE_COMPLETED");
    }
    assert_eq!(rested, [true, true, false, false], "over HTTP+JSON");
}

#[tokio::test]
async fn a_stream_ends_with_what_is_final_and_an_authorization_is_not() {
    let (server, _) = server("").await;
    let stream = |text: &str| rpc_request(None, "message/stream", &say(text));
    let events = follow(&server, &stream("auth")).await;
    assert_eq!(events[0].1["result"]["kind"], "task");
    assert_eq!((&events[0].1["jsonrpc"], &events[0].1["id"]), (&json!("2.0"), &json!(7)));
    assert_eq!(events.iter().map(|(id, _)| id.clone().unwrap()).collect::<Vec<_>>()[..2], ["1", "2"]);
    let states = told(&events);
    assert!(states.contains(&("auth-required".to_owned(), false)), "{states:?}");
    assert_eq!(states.last(), Some(&("completed".to_owned(), true)));
    assert_eq!(states.iter().filter(|(_, is_final)| *is_final).count(), 1);

    let events = follow(&server, &stream("input")).await;
    assert_eq!(told(&events).last(), Some(&("input-required".to_owned(), true)));
    let events = follow(&server, &stream("chunks 2")).await;
    let chunk = events.iter().map(|(_, event)| &event["result"]).find(|event| event["kind"] == "artifact-update");
    assert_eq!(chunk.unwrap()["artifact"]["artifactId"], "chunks");
}

#[tokio::test]
async fn a_task_is_followed_again_until_its_turn_is_over() {
    let (server, mut connection) = server("").await;
    let asked = result(&mut connection, "message/send", say("input")).await;
    let mut items = open(&server, &rpc_request(None, "tasks/resubscribe", &json!({"id": asked["id"]}))).await;
    assert_eq!(next(&mut items).await.unwrap().1["result"], asked, "it begins with the task");
    let again = result(&mut connection, "message/send", say_to(&asked, "input")).await;
    assert_eq!(again["status"]["state"], "input-required");
    let mut last = Value::Null;
    while let Some((_, event)) = next(&mut items).await {
        last = event["result"].clone();
    }
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("input-required"), &json!(true)));
    let done = result(&mut connection, "message/send", say_to(&asked, "echo")).await;
    let refused = error(&mut connection, "tasks/resubscribe", json!({"id": done["id"]})).await;
    assert_eq!(refused["code"], -32004, "{refused}");
}

#[tokio::test]
async fn a_refusal_is_an_event_to_whoever_asks_for_events_alone() {
    let (server, mut connection) = server("").await;
    let request =
        |accepted: &str| rpc_request(None, "tasks/resubscribe", &json!({"id": "nobody's"})).with("Accept", accepted);
    // The Python client has both, each in a line of its own.
    let both = request("*/*").with("Accept", "text/event-stream");
    let events = follow(&server, &both).await;
    assert_eq!(events, follow(&server, &request("text/event-stream")).await);
    assert_eq!(events.len(), 1, "{events:?}");
    let (id, event) = &events[0];
    assert_eq!((id, &event["id"], &event["error"]["code"]), (&None, &json!(7), &json!(-32001)));
    for accepted in ["text/event-stream, application/json", "application/json", "*/*"] {
        let answer = exchange(&mut connection, &request(accepted)).await;
        assert_eq!((answer.status, answer.head.media_type()), (200, "application/json"), "{accepted}");
        assert_eq!(answer.json()["error"], event["error"], "{accepted}");
    }
}

#[tokio::test]
async fn a_task_is_canceled_once() {
    let (_server, mut connection) = server("").await;
    let mut params = say("slow 60");
    params["configuration"] = json!({"blocking": false});
    let id = result(&mut connection, "message/send", params).await["id"].clone();
    let canceled = result(&mut connection, "tasks/cancel", json!({"id": id})).await;
    assert_eq!(canceled["status"]["state"], "canceled");
    let refused = error(&mut connection, "tasks/cancel", json!({"id": id})).await;
    assert_eq!(refused["code"], -32002);
    let cancel = Request::new("POST", &format!("/v1/tasks/{}:cancel", id.as_str().unwrap()));
    let refused = exchange(&mut connection, &cancel).await;
    assert_eq!((refused.status, refused.json()["error"].clone()), (409, json!("TaskNotCancelableError")));
}

#[tokio::test]
async fn what_is_wrong_is_told_by_the_names_of_v0_3() {
    let (_server, mut connection) = server("").await;
    let field = |error: &Value| {
        let field = error["data"][1]["fieldViolations"][0]["field"].as_str();
        field.unwrap_or_else(|| panic!("no field is named: {error}")).to_owned()
    };
    let file = |file: Value| json!([{"kind": "file", "file": file}]);
    for (parts, path) in [
        (json!([{"kind": "image"}]), "message.parts[0].kind"),
        (file(json!({"bytes": "%"})), "message.parts[0].file.bytes"),
        (file(json!({"name": "x"})), "message.parts[0].file"),
        (json!([]), "message.parts"),
    ] {
        let mut params = say("echo");
        params["message"]["parts"] = parts;
        let refused = error(&mut connection, "message/send", params).await;
        assert_eq!((refused["code"].as_i64(), field(&refused).as_str()), (Some(-32602), path), "{refused}");
    }
    let refused = error(&mut connection, "agent/getAuthenticatedExtendedCard", json!({})).await;
    assert_eq!(refused["code"], -32007);
    let broken = Request::new("POST", "/").with("Content-Type", "application/json").body("{");
    let answer = exchange(&mut connection, &broken).await;
    assert_eq!((answer.json()["error"]["code"].clone(), answer.header("a2a-version")), (json!(-32700), Some("0.3")));
    let body = json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": []}});
    let answer = exchange(&mut connection, &Request::new("POST", "/v1/message:send").json(&body)).await;
    assert_eq!((answer.status, field(&answer.json()).as_str()), (400, "message.content"), "{}", answer.text());
}

#[tokio::test]
async fn an_extension_may_be_named_as_v0_3_does() {
    let config = "[[card.extensions]]\nuri = \"urn:x:needed\"\nrequired = true\n";
    let (_server, mut connection) = server(config).await;
    let request = rpc_request(None, "message/send", &json!({"message": message("echo")}));
    let refused = exchange(&mut connection, &request).await.json();
    assert_eq!(refused["error"]["code"], -32008, "{refused}");
    let answer = exchange(&mut connection, &request.with("X-A2A-Extensions", "urn:x:needed")).await.json();
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
}

#[tokio::test]
async fn grpc_streams_end_with_what_is_final_and_the_card_is_told() {
    let (server, _) = server("").await;
    let channel = Channel::open(server.addr()).await.unwrap();
    let origin = channel.origin.clone();
    let mut client = A2aServiceClient::with_origin(channel, origin);
    let part = a2a_v0_3::Part { part: Some(part::Part::Text("auth".to_owned())), ..Default::default() };
    let message = a2a_v0_3::Message { message_id: "m".to_owned(), role: 1, content: vec![part], ..Default::default() };
    let send = a2a_v0_3::SendMessageRequest { request: Some(message), ..Default::default() };
    let answer = client.send_streaming_message(send).await.unwrap();
    assert_eq!(answer.metadata().get("a2a-version").unwrap(), "0.3");
    assert_eq!(answer.metadata().get("last-event-id").unwrap(), "1");
    let (mut stream, mut finals) = (answer.into_inner(), Vec::new());
    while let Some(item) = stream.message().await.unwrap() {
        if let Some(Payload::StatusUpdate(update)) = item.payload {
            finals.push((update.status.unwrap().state, update.r#final));
        }
    }
    let (auth_required, completed) = (8, 3);
    assert!(finals.contains(&(auth_required, false)), "{finals:?}");
    assert_eq!(finals.last(), Some(&(completed, true)));

    let card = client.get_agent_card(a2a_v0_3::GetAgentCardRequest {}).await.unwrap().into_inner();
    assert_eq!((card.protocol_version.as_str(), card.preferred_transport.as_str()), ("0.3", "JSONRPC"));
    assert_eq!(card.url, format!("http://{}", server.addr()));
}

#[tokio::test]
async fn what_is_too_large_is_told_in_v0_3_by_each_binding() {
    let (server, mut connection) = server("server.body_bytes_max = 4096").await;
    let text = "x".repeat(8000);
    let answer = rpc(&mut connection, "message/send", say(&text)).await;
    assert_eq!((answer.status, answer.header("a2a-version")), (413, Some("0.3")));
    assert_eq!(answer.json()["error"]["code"], -32602);
    let body = json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": text}]}});
    let answer = exchange(&mut connection, &Request::new("POST", "/v1/message:send").json(&body)).await;
    assert_eq!((answer.status, answer.json()["error"].clone()), (413, json!("InvalidParamsError")));
    let channel = Channel::open(server.addr()).await.unwrap();
    let origin = channel.origin.clone();
    let get = a2a_v0_3::GetTaskRequest { name: format!("tasks/{text}"), ..Default::default() };
    let status = A2aServiceClient::with_origin(channel, origin).get_task(get).await.unwrap_err();
    assert!(status.message().starts_with("InvalidParamsError: "), "{status:?}");
}

#[tokio::test]
async fn a_notification_does_nothing_and_parameters_are_named() {
    let (_server, mut connection) = server("").await;
    let body = json!({"jsonrpc": "2.0", "method": "message/send", "params": say("echo")});
    let answer = exchange(&mut connection, &Request::new("POST", "/").json(&body)).await;
    assert_eq!(answer.status, 204);
    let page = exchange(&mut connection, &Request::get("/tasks").v1()).await;
    assert_eq!(page.json()["totalSize"], 0);
    let answer = rpc(&mut connection, "message/send", json!([])).await;
    assert_eq!(answer.json()["error"]["code"], -32602);
}
