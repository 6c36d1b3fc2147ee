//! Event streams as bytes (§9.4, §11.7).

use longhaul_tests::http::{Connection, Request};
use longhaul_tests::sse::{Item, Items};
use longhaul_tests::task::{id_of, say};
use longhaul_tests::{PATIENCE, within};
use serde_json::{Value, json};

use crate::{exchange, request_text, rpc, send, server};

fn json_rpc(text: &str) -> Request {
    Request::new("POST", "/")
        .v1()
        .with("Content-Type", "application/json")
        .body(request_text("SendStreamingMessage", &say(text)))
}

fn http_json(text: &str) -> Request {
    Request::new("POST", "/message:stream").v1().json(&say(text))
}

#[tokio::test]
async fn stream_is_blocks_of_an_id_and_one_line_of_data() {
    let (server, _) = server().await;
    for request in [json_rpc("chunks 5 \u{1F30D}\u{2028}"), http_json("chunks 5")] {
        let mut connection = Connection::open(server.addr()).await.unwrap();
        let head = connection.send(&request).await.unwrap();
        assert_eq!((head.status, head.media_type()), (200, "text/event-stream"), "{head:?}");
        assert_eq!(head.header("a2a-version"), Some("1.0"));
        let cache = head.header("cache-control").unwrap_or_default();
        assert!(cache.contains("no-cache") || cache.contains("no-store"), "{head:?}");
        let body = connection.answer(head).await.unwrap().text();
        assert!(body.ends_with("\n\n"), "{body:?}");
        let blocks: Vec<&str> = body.trim_end().split("\n\n").collect();
        for (index, block) in blocks.iter().enumerate() {
            let (id, data) = block.split_once('\n').unwrap();
            assert_eq!(id, format!("id: {}", index + 1));
            let data = data.strip_prefix("data: ").unwrap();
            let _: Value = serde_json::from_str(data).unwrap();
        }
        assert!(blocks.len() >= 7, "the task, five chunks and the end: {body}");
    }
}

#[tokio::test]
async fn items_of_json_rpc_carry_the_id_of_the_request() {
    let (server, mut connection) = server().await;
    for id in [json!("text"), json!(0), json!(9_007_199_254_740_993_u64)] {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "SendStreamingMessage", "params": say("echo")});
        let answer = rpc(&mut connection, body.to_string()).await;
        assert_eq!(answer.head.media_type(), "text/event-stream");
        for line in answer.text().lines().filter_map(|line| line.strip_prefix("data: ")) {
            let envelope: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&envelope["jsonrpc"], &envelope["id"]), (&json!("2.0"), &id));
            assert_eq!(envelope["result"].as_object().map(serde_json::Map::len), Some(1));
        }
    }
    drop(server);
}

#[tokio::test]
async fn refusal_before_the_first_item_is_a_plain_answer() {
    let (_server, mut connection) = server().await;
    let mut params = say("more");
    params["message"]["taskId"] = "unknown".into();
    for (method, params) in [("SendStreamingMessage", params.clone()), ("SubscribeToTask", json!({"id": "unknown"}))] {
        let request = Request::new("POST", "/")
            .v1()
            .with("Accept", "text/event-stream")
            .with("Content-Type", "application/json")
            .body(request_text(method, &params));
        let answer = exchange(&mut connection, &request).await;
        assert_eq!((answer.status, answer.head.media_type()), (200, "application/json"));
        assert_eq!(answer.json()["error"]["code"], -32001);
        assert_eq!(answer.json()["id"], 7);
    }
    for request in [
        Request::new("POST", "/message:stream").json(&params),
        Request::get("/tasks/unknown:subscribe"),
        Request::new("POST", "/tasks/unknown:subscribe"),
    ] {
        let request = request.v1().with("Accept", "text/event-stream");
        let answer = exchange(&mut connection, &request).await;
        crate::status(&answer, 404, "NOT_FOUND", "TASK_NOT_FOUND");
    }
}

#[tokio::test]
async fn get_and_post_subscribe_alike() {
    let (server, mut connection) = server().await;
    let id = id_of(&send(&mut connection, "input").await);
    let mut streams = Vec::new();
    for method in ["GET", "POST"] {
        let mut connection = Connection::open(server.addr()).await.unwrap();
        let request = Request::new(method, &format!("/tasks/{id}:subscribe")).v1();
        let head = connection.send(&request).await.unwrap();
        assert_eq!((head.status, head.media_type()), (200, "text/event-stream"), "{method}");
        let mut items = Items::new(connection);
        let first = items.next().await.unwrap();
        streams.push((items, vec![first.unwrap()]));
    }
    let mut params = say("more");
    params["message"]["taskId"] = id.into();
    exchange(&mut connection, &Request::new("POST", "/message:send").v1().json(&params)).await;
    let mut seen = Vec::new();
    for (mut items, mut all) in streams {
        while let Some(item) = items.next().await.unwrap() {
            all.push(item);
        }
        all.retain(|item| !matches!(item, Item::Comment(_)));
        assert!(all.len() >= 3, "{all:?}");
        seen.push(all);
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn idle_stream_sends_comments() {
    let (server, mut connection) = server().await;
    let id = id_of(&send(&mut connection, "input").await);
    let mut connection = Connection::open(server.addr()).await.unwrap();
    let request = Request::get(&format!("/tasks/{id}:subscribe")).v1();
    connection.send(&request).await.unwrap();
    let mut items = Items::new(connection);
    assert!(matches!(items.next().await.unwrap(), Some(Item::Event { .. })));
    let begun = tokio::time::Instant::now();
    let item = within(PATIENCE, "a comment", items.next()).await.unwrap();
    assert!(matches!(item, Some(Item::Comment(_))), "{item:?}");
    assert!(begun.elapsed().as_secs_f64() <= 16.0, "{:?}", begun.elapsed());
}
