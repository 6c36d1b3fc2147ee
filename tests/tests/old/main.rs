//! v0.3 beside v1.0 by the real binary: which version a request is of, what v0.3 looks like to the letter, and that there is one
//! store behind both. `tests/bindings` runs its scenarios through v0.3 too.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod card;
mod chosen;
mod drafts;
mod letter;
mod metrics;
mod push;
mod store;

use longhaul_tests::http::{Answer, Connection, Request};
use longhaul_tests::sse::{Item, Items};
use longhaul_tests::{Launch, PATIENCE, Server, Store, within};
use serde_json::{Value, json};

/// A server in memory with these lines as `longhaul.toml`, and a connection to it.
async fn server(config: &str) -> (Server, Connection) {
    let server = Server::launch(Launch { config: config.to_owned(), ..Launch::new(Store::Memory) }).await;
    let connection = Connection::open(server.addr()).await.unwrap();
    (server, connection)
}

async fn exchange(connection: &mut Connection, request: &Request) -> Answer {
    let answer = within(PATIENCE, "an answer", connection.exchange(request)).await;
    answer.unwrap_or_else(|error| panic!("{request:?}: {error}"))
}

/// With this `A2A-Version`, if any.
fn versioned(request: Request, version: Option<&str>) -> Request {
    match version {
        Some(version) => request.with("A2A-Version", version),
        None => request,
    }
}

fn rpc_request(version: Option<&str>, method: &str, params: &Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    versioned(Request::new("POST", "/").json(&body), version)
}

/// The answer to a method of v0.3, which no header names.
async fn rpc(connection: &mut Connection, method: &str, params: Value) -> Answer {
    exchange(connection, &rpc_request(None, method, &params)).await
}

/// Its result.
async fn result(connection: &mut Connection, method: &str, params: Value) -> Value {
    let answer = rpc(connection, method, params).await;
    assert_eq!(answer.header("a2a-version"), Some("0.3"), "{answer:?}");
    let body = answer.json();
    assert!(body.get("error").is_none(), "{method}: {body}");
    body["result"].clone()
}

/// Its error.
async fn error(connection: &mut Connection, method: &str, params: Value) -> Value {
    let answer = rpc(connection, method, params).await;
    assert_eq!((answer.status, answer.header("a2a-version")), (200, Some("0.3")), "{answer:?}");
    answer.json()["error"].clone()
}

/// A message of v0.3's JSON-RPC.
fn message(text: &str) -> Value {
    let id = longhaul_tests::task::message(json!([]))["messageId"].clone();
    json!({"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]})
}

fn say(text: &str) -> Value {
    json!({"message": message(text)})
}

fn say_to(task: &Value, text: &str) -> Value {
    let mut params = say(text);
    params["message"]["taskId"] = task["id"].clone();
    params
}

/// Follows a stream of events to its end: each with its id.
async fn follow(server: &Server, request: &Request) -> Vec<(Option<String>, Value)> {
    let mut items = open(server, request).await;
    let mut events = Vec::new();
    while let Some(event) = next(&mut items).await {
        events.push(event);
    }
    events
}

async fn open(server: &Server, request: &Request) -> Items {
    let mut connection = Connection::open(server.addr()).await.unwrap();
    let head = connection.send(request).await.unwrap();
    assert_eq!((head.status, head.media_type()), (200, "text/event-stream"), "{request:?}");
    assert_eq!(head.header("a2a-version"), Some("0.3"), "{head:?}");
    Items::new(connection)
}

async fn next(items: &mut Items) -> Option<(Option<String>, Value)> {
    loop {
        match within(PATIENCE, "an event", items.next()).await.unwrap() {
            Some(Item::Comment(_)) => {}
            Some(Item::Event { id, data }) => return Some((id, serde_json::from_str(&data).unwrap())),
            None => return None,
        }
    }
}
