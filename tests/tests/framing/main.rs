//! The bytes around the operations: JSON-RPC 2.0, HTTP, event streams and gRPC, to the letter.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod card;
mod events;
mod grpc;
mod json_rpc;
mod limits;
mod prefix;
mod routes;

use longhaul_tests::http::{Answer, Connection, Request};
use longhaul_tests::task::say;
use longhaul_tests::{PATIENCE, Server, Store, within};
use serde_json::{Value, json};

/// A server in memory, and a connection to it.
async fn server() -> (Server, Connection) {
    let server = Server::start(Store::Memory).await;
    let connection = Connection::open(server.addr()).await.unwrap();
    (server, connection)
}

/// Sends a request and reads its answer.
async fn exchange(connection: &mut Connection, request: &Request) -> Answer {
    let answer = connection.exchange(request);
    let answer = within(PATIENCE, "an answer", answer).await;
    answer.unwrap_or_else(|error| panic!("{request:?}: {error}"))
}

/// Sends a body to the JSON-RPC endpoint.
async fn rpc(connection: &mut Connection, body: impl Into<Vec<u8>>) -> Answer {
    let request = Request::new("POST", "/").v1().with("Content-Type", "application/json").body(body);
    exchange(connection, &request).await
}

/// Sends a message over HTTP+JSON and returns its task.
async fn send(connection: &mut Connection, text: &str) -> Value {
    let request = Request::new("POST", "/message:send").v1().json(&say(text));
    let answer = exchange(connection, &request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["task"].clone()
}

/// Checks that an answer is a `google.rpc.Status` in JSON (§11.6), and returns its error.
fn status(answer: &Answer, code: u16, name: &str, reason: &str) -> Value {
    assert_eq!(answer.status, code, "{answer:?} {}", answer.text());
    assert_eq!(answer.head.media_type(), "application/a2a+json", "{answer:?}");
    assert_eq!(answer.header("a2a-version"), Some("1.0"), "{answer:?}");
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], code, "{error}");
    assert_eq!(error["status"], name, "{error}");
    assert!(!error["message"].as_str().unwrap().is_empty(), "{error}");
    let info = &error["details"][0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    assert_eq!(info["domain"], "a2a-protocol.org");
    assert_eq!(info["reason"], reason, "{error}");
    error
}

/// How many tasks there are.
async fn count(connection: &mut Connection) -> Value {
    let answer = exchange(connection, &Request::get("/tasks").v1()).await;
    answer.json()["totalSize"].clone()
}

/// A JSON-RPC request as text.
fn request_text(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}
