//! Callers of drafts before 0.3.

use longhaul_tests::http::{Connection, Request};
use longhaul_tests::sse::Items;
use longhaul_tests::task::id_of;
use longhaul_tests::{Binding, Client, Operation, Server};
use serde_json::{Value, json};

use crate::{exchange, next, server};

const CONFIG: &str = "server.drafts_path = \"/drafts\"";

fn request(method: &str, params: &Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    Request::new("POST", "/drafts").json(&body)
}

async fn ask(connection: &mut Connection, method: &str, params: Value) -> Value {
    let answer = exchange(connection, &request(method, &params)).await;
    assert_eq!((answer.status, answer.header("a2a-version")), (200, Some("0.1")), "{answer:?}");
    answer.json()
}

async fn result(connection: &mut Connection, method: &str, params: Value) -> Value {
    let body = ask(connection, method, params).await;
    assert!(body.get("error").is_none(), "{method}: {body}");
    body["result"].clone()
}

fn say(id: &str, text: &str) -> Value {
    json!({"id": id, "sessionId": "s-1", "message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
}

async fn follow(server: &Server, method: &str, params: &Value) -> Vec<Value> {
    let mut items = open(server, method, params).await;
    let mut events = Vec::new();
    while let Some((_, event)) = next(&mut items).await {
        assert_eq!(event["id"], 7);
        events.push(event["result"].clone());
    }
    events
}

async fn open(server: &Server, method: &str, params: &Value) -> Items {
    let mut connection = Connection::open(server.addr()).await.unwrap();
    let head = connection.send(&request(method, params)).await.unwrap();
    assert_eq!((head.status, head.media_type()), (200, "text/event-stream"), "{head:?}");
    Items::new(connection)
}

#[tokio::test]
async fn a_task_goes_by_the_id_that_its_caller_made() {
    let (server, mut connection) = server(CONFIG).await;
    let connection = &mut connection;
    let asked = result(connection, "tasks/send", say("mine", "input")).await;
    assert_eq!((&asked["id"], &asked["sessionId"]), (&json!("mine"), &json!("s-1")));
    assert_eq!(asked["status"]["state"], "input-required");
    assert_eq!(asked["status"]["message"]["parts"][0]["type"], "text");
    let done = result(connection, "tasks/send", say("mine", "echo")).await;
    assert_eq!((&done["id"], &done["status"]["state"]), (&json!("mine"), &json!("completed")));
    let artifact = &done["artifacts"][0];
    assert_eq!((&artifact["index"], &artifact["parts"]), (&json!(0), &json!([{"type": "text", "text": "echo"}])));
    assert!(done.get("history").is_none(), "none was asked for: {done}");
    let read = result(connection, "tasks/get", json!({"id": "mine", "historyLength": 2})).await;
    assert_eq!((&read["sessionId"], read["history"].as_array().map(Vec::len)), (&json!("s-1"), Some(2)));
    // It is one task of the store, and its own id does as well.
    let mut new = Client::new(Binding::JsonRpc, server.addr());
    let page = new.ask(Operation::ListTasks, json!({"contextId": "mine"})).await;
    assert_eq!(page["totalSize"], 1, "{page}");
    let own = id_of(&page["tasks"][0]);
    let read = result(connection, "tasks/get", json!({"id": own})).await;
    assert_eq!((&read["id"], &read["status"]), (&json!(own), &done["status"]));
    // A message to a task that has ended begins the next one of that name.
    let again = result(connection, "tasks/send", say("mine", "chunks 2")).await;
    assert_eq!((&again["id"], &again["status"]["state"]), (&json!("mine"), &json!("completed")));
    assert_eq!(result(connection, "tasks/get", json!({"id": "mine"})).await["artifacts"], again["artifacts"]);
}

#[tokio::test]
async fn states_that_the_drafts_lack_are_failures_with_the_reason() {
    let (server, mut connection) = server(CONFIG).await;
    for (word, real) in [("reject", "rejected"), ("auth", "auth-required")] {
        let task = result(&mut connection, "tasks/send", say(word, word)).await;
        assert_eq!(task["status"]["state"], "failed", "{task}");
        let parts = task["status"]["message"]["parts"].as_array().unwrap();
        assert_eq!(parts[0]["text"], format!("The task is in state {real}."));
        assert!(parts.len() > 1, "the reason is told: {task}");
        let events = follow(&server, "tasks/sendSubscribe", &say(&format!("{word} again"), word)).await;
        let last = events.last().unwrap();
        assert_eq!((&last["status"]["state"], &last["final"]), (&json!("failed"), &json!(true)), "{events:?}");
    }
}

#[tokio::test]
async fn streams_tell_statuses_and_artifacts() {
    let (server, mut connection) = server(CONFIG).await;
    let events = follow(&server, "tasks/sendSubscribe", &say("chunky", "chunks 3")).await;
    assert!(events.iter().all(|event| event["id"] == "chunky"), "{events:?}");
    assert_eq!((&events[0]["status"]["state"], &events[0]["final"]), (&json!("submitted"), &json!(false)));
    let chunks: Vec<&Value> = events.iter().map(|event| &event["artifact"]).filter(|it| it.is_object()).collect();
    let told: Vec<_> =
        chunks.iter().map(|it| (it["index"] == 0, it["append"] == true, it["lastChunk"] == true)).collect();
    assert_eq!(told, [(true, false, false), (true, true, false), (true, true, true)]);
    assert_eq!(events.last().unwrap()["final"], true);
    let direct = follow(&server, "tasks/sendSubscribe", &say("direct", "msg")).await;
    assert_eq!((direct.len(), &direct[0]["status"]["state"]), (1, &json!("completed")));

    let mut items = open(&server, "tasks/sendSubscribe", &say("slow", "slow 60")).await;
    next(&mut items).await.unwrap();
    let mut other = open(&server, "tasks/resubscribe", &json!({"id": "slow"})).await;
    assert_eq!(next(&mut other).await.unwrap().1["result"]["id"], "slow");
    let canceled = result(&mut connection, "tasks/cancel", json!({"id": "slow"})).await;
    assert_eq!((&canceled["id"], &canceled["status"]["state"]), (&json!("slow"), &json!("canceled")));
    for items in [&mut items, &mut other] {
        let mut last = Value::Null;
        while let Some((_, event)) = next(items).await {
            last = event["result"].clone();
        }
        assert_eq!((&last["status"]["state"], &last["final"]), (&json!("canceled"), &json!(true)));
    }
}

#[tokio::test]
async fn what_goes_wrong_is_told_by_the_codes_of_the_drafts() {
    let (_server, mut connection) = server(CONFIG).await;
    let done = result(&mut connection, "tasks/send", say("done", "echo")).await;
    let mut pushing = say("pushing", "echo");
    pushing["pushNotification"] = json!({"url": "https://example.com/"});
    for (method, params, code) in [
        ("tasks/get", json!({"id": "nobody"}), -32001),
        ("tasks/cancel", json!({"id": done["id"]}), -32002),
        ("tasks/resubscribe", json!({"id": done["id"]}), -32004),
        ("tasks/send", pushing, -32003),
        ("tasks/send", json!({"id": "empty"}), -32602),
        ("tasks/send", json!({"id": "a\nb", "message": {"role": "user", "parts": [{"text": "x"}]}}), -32602),
        ("message/send", json!({}), -32601),
    ] {
        let body = ask(&mut connection, method, params.clone()).await;
        assert_eq!(body["error"]["code"], code, "{method} {params}: {body}");
    }
}

#[tokio::test]
async fn they_are_served_nowhere_unless_that_is_set_and_only_there() {
    let (_server, mut connection) = server("").await;
    assert_eq!(exchange(&mut connection, &request("tasks/get", &json!({"id": "x"}))).await.status, 404);
    let (_server, mut connection) = server("server.drafts_path = \"/drafts\"\nserver.prefix = \"/one\"").await;
    let mut below = request("tasks/get", &json!({"id": "x"}));
    assert_eq!(exchange(&mut connection, &below).await.status, 404);
    below.target = "/one/drafts/".to_owned();
    assert_eq!(exchange(&mut connection, &below).await.json()["error"]["code"], -32001);
    below.target = "/one".to_owned();
    let answer = exchange(&mut connection, &below).await;
    assert_eq!((answer.header("a2a-version"), answer.json()["error"]["code"].clone()), (Some("0.3"), json!(-32001)));
}
