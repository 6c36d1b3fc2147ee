//! JSON-RPC 2.0 (rows 122 to 125).

use longhaul_tests::http::{Answer, Request};
use longhaul_tests::task::say;
use serde_json::{Value, json};

use crate::{count, exchange, request_text, rpc, send, server};

/// Checks the envelope of an error and returns it.
fn error(answer: &Answer, code: i32) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.head.media_type(), "application/json", "{answer:?}");
    assert_eq!(answer.header("a2a-version"), Some("1.0"), "{answer:?}");
    let envelope = answer.json();
    assert_eq!(envelope["jsonrpc"], "2.0", "{envelope}");
    assert_eq!(envelope["error"]["code"], code, "{envelope}");
    assert!(!envelope["error"]["message"].as_str().unwrap().is_empty());
    assert!(envelope.get("result").is_none(), "{envelope}");
    assert!(envelope.get("id").is_some(), "{envelope}");
    envelope
}

#[tokio::test]
async fn what_is_no_json_is_a_parse_error() {
    let (_server, mut connection) = server().await;
    let bodies: [&[u8]; 8] = [
        b"{",
        b"",
        b"{\"jsonrpc\":\"2.0\",",
        b"nonsense",
        b"\xff\xfe",
        b"{\"a\":1}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"id\":\"\xff\"}}",
        b"{'jsonrpc':'2.0'}",
    ];
    for body in bodies {
        let envelope = error(&rpc(&mut connection, body).await, -32700);
        assert_eq!(envelope["id"], Value::Null);
    }
}

#[tokio::test]
async fn what_is_no_request_is_an_invalid_request() {
    let (_server, mut connection) = server().await;
    for body in [
        "[]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"id":1,"method":"GetTask","params":{"id":"x"}}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"GetTask","params":{"id":"x"}}"#,
        r#"{"jsonrpc":2.0,"id":1,"method":"GetTask","params":{"id":"x"}}"#,
        "{}",
        r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":7}"#,
        "\"GetTask\"",
        "7",
        "null",
    ] {
        error(&rpc(&mut connection, body).await, -32600);
    }
}

#[tokio::test]
async fn batch_is_refused_whole_and_runs_nothing() {
    let (_server, mut connection) = server().await;
    let one = request_text("SendMessage", &say("echo"));
    let answer = rpc(&mut connection, format!("[{one},{one}]")).await;
    assert_eq!(error(&answer, -32600)["id"], Value::Null);
    assert_eq!(count(&mut connection).await, 0);
}

#[tokio::test]
async fn id_of_a_wrong_type_is_refused_and_not_echoed() {
    let (_server, mut connection) = server().await;
    for id in ["{}", "true", "false", "1.5", "[]", "[1]", r#"{"a":1}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"GetTask","params":{{"id":"x"}}}}"#);
        let envelope = error(&rpc(&mut connection, body).await, -32600);
        assert_eq!(envelope["id"], Value::Null, "{id}");
    }
}

#[tokio::test]
async fn id_is_echoed_as_it_was_written() {
    let (_server, mut connection) = server().await;
    let task = send(&mut connection, "echo").await;
    for id in [
        r#""x""#,
        r#""""#,
        "7",
        "0",
        "-7",
        "null",
        "9007199254740993",
        "18446744073709551615",
        r#""quote \" backslash \\ ü""#,
    ] {
        for (task_id, member) in [(task["id"].as_str().unwrap(), "result"), ("x", "error")] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"GetTask","params":{{"id":"{task_id}"}}}}"#);
            let answer = rpc(&mut connection, body).await;
            let envelope = answer.json();
            assert!(envelope.get(member).is_some(), "{envelope}");
            let expected: Value = serde_json::from_str(id).unwrap();
            assert_eq!(envelope["id"], expected, "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn notification_gets_204_and_runs_nothing() {
    let (_server, mut connection) = server().await;
    for method in ["SendMessage", "SendStreamingMessage", "CancelTask", "Nope"] {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": say("echo")});
        let answer = rpc(&mut connection, body.to_string()).await;
        assert_eq!(answer.status, 204, "{method}");
        assert!(answer.body.is_empty());
        assert_eq!(answer.header("a2a-version"), Some("1.0"));
    }
    assert_eq!(count(&mut connection).await, 0);
}

#[tokio::test]
async fn unknown_method_is_not_found() {
    let (_server, mut connection) = server().await;
    for method in ["Nope", "", "gettask", "message/send", "rpc.discover"] {
        let answer = rpc(&mut connection, request_text(method, &json!({}))).await;
        assert_eq!(error(&answer, -32601)["id"], 7);
    }
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_invalid() {
    let (_server, mut connection) = server().await;
    for params in [
        json!([]),
        json!(["x"]),
        json!({}),
        json!({"id": 7}),
        json!({"id": {"a": 1}}),
        json!({"id": "x", "historyLength": "many"}),
        json!({"id": "x", "historyLength": 1.5}),
    ] {
        let answer = rpc(&mut connection, request_text("GetTask", &params)).await;
        assert_eq!(error(&answer, -32602)["id"], 7, "{params}");
    }
}

#[tokio::test]
async fn parameters_may_be_left_out_where_none_is_required() {
    let (_server, mut connection) = server().await;
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}"#,
        r#"{"id":1,"params":{"unknown":[{}]},"method":"ListTasks","jsonrpc":"2.0","extra":{"a":[1]}}"#,
    ] {
        let envelope = rpc(&mut connection, body).await.json();
        assert_eq!(envelope["result"]["totalSize"], 0, "{body}: {envelope}");
    }
}

#[tokio::test]
async fn fields_that_are_wrong_are_named_in_the_data() {
    let (_server, mut connection) = server().await;
    let params = json!({"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"raw": "!"}]}});
    let answer = rpc(&mut connection, request_text("SendMessage", &params)).await;
    let envelope = error(&answer, -32602);
    let data = envelope["error"]["data"].as_array().unwrap();
    let bad = data.iter().find(|it| it["@type"] == "type.googleapis.com/google.rpc.BadRequest");
    assert_eq!(bad.unwrap()["fieldViolations"][0]["field"], "message.parts[0].raw");
}

#[tokio::test]
async fn endpoint_takes_posts_of_json_alone() {
    let (_server, mut connection) = server().await;
    let body = request_text("ListTasks", &json!({}));
    for content_type in [Some("application/json; charset=utf-8"), Some("application/a2a+json"), None] {
        let mut request = Request::new("POST", "/").v1().body(body.clone());
        if let Some(content_type) = content_type {
            request = request.with("Content-Type", content_type);
        }
        let answer = exchange(&mut connection, &request).await;
        assert_eq!(answer.json()["result"]["totalSize"], 0, "{content_type:?}");
    }
    for method in ["GET", "PUT", "DELETE"] {
        let answer = exchange(&mut connection, &Request::new(method, "/").v1()).await;
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.header("allow").is_some_and(|allow| allow.contains("POST")), "{answer:?}");
    }
}

#[tokio::test]
async fn version_in_the_query_counts() {
    let (_server, mut connection) = server().await;
    let body = request_text("ListTasks", &json!({}));
    let ask = |target: &str| {
        let request = Request::new("POST", target);
        request.with("Content-Type", "application/json").body(body.clone())
    };
    let answer = exchange(&mut connection, &ask("/?A2A-Version=1.0")).await;
    assert_eq!(answer.json()["result"]["totalSize"], 0, "{}", answer.text());
    for target in ["/", "/?A2A-Version=", "/?A2A-Version=9.9", "/?A2A-Version=0.3"] {
        error(&exchange(&mut connection, &ask(target)).await, -32009);
    }
}
