//! What is too large, too deep or too long.

use longhaul_protobuf::a2a;
use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_tests::http::{Answer, Connection, Request};
use longhaul_tests::task::say;
use longhaul_tests::{Channel, PATIENCE, Server, within};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::{count, exchange, request_text, rpc, server, status};

/// More than any limit that a server should have, in MiB.
const BODY_MIB_MAX: usize = 256;

fn nested(depth: usize) -> String {
    let message = say("echo").to_string();
    let data = format!("{{\"data\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    message.replace("{\"text\":\"echo\"}", &data)
}

#[tokio::test]
async fn deep_data_is_refused_and_not_followed() {
    let (_server, mut connection) = server().await;
    let send = |depth| Request::new("POST", "/message:send").v1().body(nested(depth));
    let answer = exchange(&mut connection, &send(100)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    for depth in [10_000, 200_000] {
        let answer = exchange(&mut connection, &send(depth)).await;
        let error = status(&answer, 400, "INVALID_ARGUMENT", "INVALID_PARAMS");
        assert!(
            error["details"][1]["fieldViolations"][0]["field"].as_str().unwrap().starts_with("message.parts[0]"),
            "{error}"
        );
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{}}}"#, nested(depth));
        let envelope = rpc(&mut connection, body).await.json();
        assert_eq!((&envelope["error"]["code"], &envelope["id"]), (&json!(-32602), &json!(7)));
        // Deep in a member that nobody knows: ignored or refused, but answered.
        let body = format!(r#"{{"unknown":{}{},"message":7}}"#, "[".repeat(depth), "]".repeat(depth));
        let answer = exchange(&mut connection, &Request::new("POST", "/message:send").v1().body(body)).await;
        assert_eq!(answer.status, 400);
    }
    assert_eq!(count(&mut connection).await, 1);
}

/// Sends chunk after chunk until there is an answer.
async fn flood(server: &Server, head: &str) -> Answer {
    let stream = TcpStream::connect(server.addr()).await.unwrap();
    let (reader, mut writer) = stream
        .into_std()
        .map(|stream| (stream.try_clone().unwrap(), stream))
        .map(|(one, two)| (TcpStream::from_std(one).unwrap(), TcpStream::from_std(two).unwrap()))
        .unwrap();
    let mut chunk = b"100000\r\n".to_vec();
    chunk.resize(chunk.len() + 0x10_0000, b' ');
    chunk.extend_from_slice(b"\r\n");
    let write = async {
        writer.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..BODY_MIB_MAX {
            // The server stops reading when it has had enough.
            if writer.write_all(&chunk).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let mut connection = Connection::over(reader);
    let read = async {
        let head = connection.head("POST").await.unwrap();
        connection.answer(head).await.unwrap()
    };
    let either = async {
        tokio::select! {
            answer = read => answer,
            () = write => unreachable!("writing never ends"),
        }
    };
    within(PATIENCE, "a body without end is refused", either).await
}

#[tokio::test]
async fn body_without_end_is_cut_at_the_limit() {
    let (server, _) = server().await;
    let before = server.resident_bytes();
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
    };
    let answer = flood(&server, &head("/message:send")).await;
    status(&answer, 413, "RESOURCE_EXHAUSTED", "TOO_LARGE");
    let answer = flood(&server, &head("/")).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    assert_eq!(answer.json()["error"]["code"], -32602);
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 128 * 1024 * 1024, "{grown} bytes were kept");
}

#[tokio::test]
async fn body_that_says_that_it_is_too_long_is_refused() {
    let (server, mut connection) = server().await;
    for (path, code) in [("/message:send", "error"), ("/", "error")] {
        let mut connection = Connection::open(server.addr()).await.unwrap();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: test\r\nA2A-Version: 1.0\r\nContent-Length: 10000000000\r\n\r\n{{");
        connection.socket().write_all(head.as_bytes()).await.unwrap();
        let head = within(PATIENCE, "a refusal", connection.head("POST")).await.unwrap();
        let answer = connection.answer(head).await.unwrap();
        assert_eq!(answer.status, 413, "{answer:?}");
        assert!(answer.json().get(code).is_some());
    }
    assert_eq!(count(&mut connection).await, 0);
}

#[tokio::test]
async fn grpc_message_that_is_too_large_is_refused() {
    let (server, mut connection) = server().await;
    let channel = Channel::open(server.addr()).await.unwrap();
    let origin = channel.origin.clone();
    let mut client = A2aServiceClient::with_origin(channel, origin);
    let part =
        a2a::Part { content: Some(a2a::part::Content::Raw(vec![0; 64 * 1024 * 1024].into())), ..Default::default() };
    let message = a2a::Message { message_id: "m".to_owned(), role: 1, parts: vec![part], ..Default::default() };
    let request = a2a::SendMessageRequest { message: Some(message), ..Default::default() };
    let mut request = tonic::Request::new(request);
    request.metadata_mut().insert("a2a-version", "1.0".parse().unwrap());
    let status = within(PATIENCE, "a refusal", client.send_message(request)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status:?}");
    assert_eq!(count(&mut connection).await, 0);
}

#[tokio::test]
async fn head_that_is_too_long_is_refused() {
    let (server, mut other) = server().await;
    let mut connection = Connection::open(server.addr()).await.unwrap();
    let request = Request::get(&format!("/tasks/{}", "x".repeat(1024 * 1024))).v1();
    // Either a status of the 400s or a closed connection, but no fall.
    if let Ok(answer) = within(PATIENCE, "an end", connection.exchange(&request)).await {
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    let answer = rpc(&mut other, request_text("ListTasks", &json!({}))).await;
    assert_eq!(answer.json()["result"]["totalSize"], 0);
}
