//! How many requests came of which version.

use longhaul_tests::http::Request;
use longhaul_tests::{Binding, Client, Operation, Speech};
use serde_json::json;

use crate::{exchange, rpc_request, server};

#[tokio::test]
async fn requests_are_counted_by_version_binding_and_operation() {
    let (server, mut connection) = server("server.metrics = true").await;
    for speech in [Speech::V0_3, Speech::V1_0] {
        for binding in Binding::ALL {
            let mut client = Client::speaking(speech, binding, server.addr());
            client.ask(Operation::SendMessage, longhaul_tests::task::say("echo")).await;
        }
    }
    for _ in 0..2 {
        exchange(&mut connection, &rpc_request(None, "GetTask", &json!({"id": "x"}))).await;
    }
    exchange(&mut connection, &Request::get("/tasks/x")).await;
    let answer = exchange(&mut connection, &Request::get("/metrics")).await;
    assert_eq!((answer.status, answer.head.media_type()), (200, "text/plain"));
    let text = answer.text();
    let counted: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("longhaul_requests_total")).collect();
    let line = |version: &str, binding: &str, operation: &str, count: u32| {
        format!("{{version=\"{version}\",binding=\"{binding}\",operation=\"{operation}\"}} {count}")
    };
    let mut expected = Vec::new();
    for version in ["1.0", "0.3"] {
        for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
            expected.push(line(version, binding, "SendMessage", 1));
        }
    }
    expected.push(line("refused", "JSONRPC", "GetTask", 2));
    expected.push(line("refused", "HTTP+JSON", "GetTask", 1));
    assert_eq!(counted, expected, "{text}");
    assert_eq!(exchange(&mut connection, &Request::new("POST", "/metrics").json(&json!({}))).await.status, 405);
}

#[tokio::test]
async fn nobody_reads_the_counters_unless_that_is_set() {
    let (_server, mut connection) = server("").await;
    assert_eq!(exchange(&mut connection, &Request::get("/metrics")).await.status, 404);
}
