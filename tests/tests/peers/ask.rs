//! Asks a peer in any binding, and takes what these servers say: our own harness is strict about ours.

use std::net::SocketAddr;

use longhaul_tests::http::{Connection, Request};
use longhaul_tests::http_binding::escape;
use longhaul_tests::{Binding, Call, Client, Operation, PATIENCE, Peer, within};
use serde_json::{Value, json};

/// The result, or what was said instead.
pub type Outcome = Result<Value, String>;

/// Asks the peer itself.
pub async fn call(peer: &Peer, binding: Binding, operation: Operation, params: Value) -> Outcome {
    through(peer, where_is(peer, binding), binding, operation, params).await
}

/// Asks through this address.
pub async fn through(peer: &Peer, at: SocketAddr, binding: Binding, operation: Operation, params: Value) -> Outcome {
    if binding == Binding::Grpc {
        let answer = Client::new(binding, at).call(&Call::new(operation, params)).await;
        return answer.map_err(|error| format!("{error:?}"));
    }
    let request = request(peer, binding, operation, params);
    let answer = async { Connection::open(at).await?.exchange(&request).await };
    let answer = within(PATIENCE, "an answer of a peer", answer).await.map_err(|error| error.to_string())?;
    if !(200..300).contains(&answer.status) {
        return Err(format!("{} {}", answer.status, answer.text()));
    }
    if answer.body.is_empty() {
        return Ok(Value::Null);
    }
    result(binding, answer.json())
}

/// The items of a stream to its orderly end; those that came before it was cut, when it was.
///
/// # Panics
///
/// When it is no stream.
pub async fn follow(
    peer: &Peer,
    at: SocketAddr,
    binding: Binding,
    operation: Operation,
    params: Value,
) -> Result<Vec<Value>, Vec<Value>> {
    let mut items = Vec::new();
    if binding == Binding::Grpc {
        let mut stream = Client::new(binding, at).follow(&Call::new(operation, params)).await;
        items.extend(stream.rest().await.into_iter().map(|event| event.data));
        return Ok(items);
    }
    let mut connection = Connection::open(at).await.unwrap();
    let request = request(peer, binding, operation, params);
    let head = within(PATIENCE, "the head of a stream", connection.send(&request)).await.unwrap();
    assert_eq!((head.status, head.media_type()), (200, "text/event-stream"), "{head:?}");
    let mut text = String::new();
    let whole = loop {
        match within(PATIENCE, "a piece of a stream", connection.piece()).await {
            Ok(Some(piece)) => text.push_str(&String::from_utf8(piece).unwrap()),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let text = text.replace("\r\n", "\n");
    let (events, _half) = text.rsplit_once("\n\n").unwrap_or_default();
    for data in events.lines().filter_map(|line| line.strip_prefix("data:")) {
        items.push(result(binding, serde_json::from_str(data).unwrap()).unwrap());
    }
    if whole { Ok(items) } else { Err(items) }
}

/// Where the peer itself has this binding.
pub fn where_is(peer: &Peer, binding: Binding) -> SocketAddr {
    match binding {
        Binding::JsonRpc | Binding::HttpJson => peer.http(),
        Binding::Grpc => peer.grpc(),
    }
}

fn request(peer: &Peer, binding: Binding, operation: Operation, params: Value) -> Request {
    let url = peer.url(binding);
    let (_, after) = url.split_once("://").unwrap();
    let prefix = &after[after.find('/').unwrap()..];
    if binding == Binding::JsonRpc {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": operation.name(), "params": params});
        return Request::new("POST", prefix).v1().json(&body);
    }
    let (method, route) = operation.route();
    let mut path = format!("{prefix}{route}");
    for name in ["id", "taskId"] {
        let id = params[name].as_str().unwrap_or_default();
        path = path.replace(&format!("{{{name}}}"), &escape(id));
    }
    let request = Request::new(method, &path).v1();
    if method == "POST" { request.json(&params) } else { request }
}

fn result(binding: Binding, body: Value) -> Outcome {
    if binding == Binding::HttpJson {
        return Ok(body);
    }
    assert_eq!(body["id"], 7, "{body}");
    match body.get("error") {
        Some(error) => Err(error.to_string()),
        None => Ok(body["result"].clone()),
    }
}
