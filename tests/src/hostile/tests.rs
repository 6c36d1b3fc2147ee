use serde_json::{Value, json};

use super::*;
use crate::http::{Answer, Connection, Request};
use crate::{PATIENCE, within};

async fn ask(hostile: &Hostile, request: &Request) -> std::io::Result<Answer> {
    let answer = async { Connection::open(hostile.addr()).await?.exchange(request).await };
    within(PATIENCE, "an answer", answer).await
}

fn get_task() -> Request {
    let params = json!({"id": TASK_ID});
    Request::new("POST", RPC_PATH).json(&json!({"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": params}))
}

#[tokio::test]
async fn good_answer_is_good_and_the_card_names_the_server() {
    let hostile = Hostile::agent(|asked| named_state(asked, "TASK_STATE_WORKING")).await;
    let card = ask(&hostile, &Request::get(CARD_PATH).with("Host", &hostile.addr().to_string())).await.unwrap();
    assert_eq!(card.json()["skills"][0]["id"], "script");
    let answer = ask(&hostile, &get_task()).await.unwrap().json();
    assert_eq!((&answer["id"], &answer["result"]["id"]), (&json!(7), &json!(TASK_ID)));
    let answer = ask(&hostile, &Request::get("/rest/tasks/x")).await.unwrap();
    assert_eq!(answer.json()["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!((hostile.count(), hostile.connections(), hostile.asked()[1].rpc_method()), (3, 3, "GetTask".to_owned()));
}

#[tokio::test]
async fn no_fault_of_a_call_gives_the_result() {
    for fault in CallFault::ALL.iter().copied() {
        let huge = matches!(fault, CallFault::HugeBody | CallFault::HugeChunkedBody | CallFault::HugeHead);
        if fault.hangs() || huge {
            continue;
        }
        let hostile = Hostile::agent(move |asked| fault.script(asked)).await;
        let answer = ask(&hostile, &get_task()).await;
        let body: Value = answer.ok().and_then(|answer| serde_json::from_slice(&answer.body).ok()).unwrap_or_default();
        let id = (body["id"] == 7 && body.get("error").is_none()).then(|| body["result"]["id"].as_str()).flatten();
        assert_ne!(id, Some(TASK_ID), "{fault:?}: {body}");
    }
}

#[tokio::test]
async fn what_hangs_says_nothing_more_and_ends_with_the_client() {
    for fault in CallFault::ALL.iter().copied().filter(|fault| fault.hangs()) {
        let hostile = Hostile::agent(move |asked| fault.script(asked)).await;
        let mut connection = Connection::open(hostile.addr()).await.unwrap();
        let request = get_task();
        let exchange = connection.exchange(&request);
        assert!(tokio::time::timeout(std::time::Duration::from_millis(100), exchange).await.is_err(), "{fault:?}");
        assert_eq!(hostile.count(), 1);
    }
}

#[tokio::test]
async fn flood_stops_when_the_client_does() {
    for fault in [CallFault::HugeBody, CallFault::HugeChunkedBody, CallFault::HugeHead] {
        let hostile = Hostile::agent(move |asked| fault.script(asked)).await;
        let mut connection = Connection::open(hostile.addr()).await.unwrap();
        connection.socket().write_all(&get_task().to_bytes()).await.unwrap();
        let mut taken = vec![0; 1 << 20];
        within(PATIENCE, "a megabyte", connection.socket().read_exact(&mut taken)).await.unwrap();
        drop(connection);
        assert!((1 << 20..100 << 20).contains(&hostile.written()), "{fault:?}: {}", hostile.written());
    }
}

#[tokio::test]
async fn each_oddity_carries_the_same_items() {
    for oddity in Oddity::ALL.iter().copied().filter(|oddity| !matches!(oddity, Oddity::StaysOpen)) {
        let hostile = Hostile::agent(move |asked| oddity.script(asked)).await;
        let answer = ask(&hostile, &Request::new("POST", "/rest/message:stream").body("{}")).await.unwrap();
        assert_eq!(lenient_items(&answer.text()), items(), "{oddity:?}: {}", answer.text());
    }
}

/// The data of a stream, read line by line from the whole of it.
fn lenient_items(text: &str) -> Vec<Value> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let events = text.split("\n\n").map(data).filter(|data| !data.is_empty());
    events
        .map(|data| without_more(serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}"))))
        .collect()
}

fn without_more(mut item: Value) -> Value {
    let members = item.as_object_mut().unwrap();
    members.shift_remove("x-trace");
    for inner in members.values_mut() {
        inner.as_object_mut().unwrap().shift_remove("futureMember");
    }
    item
}

#[tokio::test]
async fn fault_of_a_stream_comes_after_its_first_event_and_never_ends_the_task() {
    for fault in StreamFault::ALL.iter().copied() {
        let hostile = Hostile::agent(move |asked| fault.script(asked)).await;
        let mut connection = Connection::open(hostile.addr()).await.unwrap();
        let request = Request::new("POST", "/rest/message:stream").body("{}");
        let head = connection.send(&request).await.unwrap();
        let first = within(PATIENCE, "the first event", connection.piece()).await.unwrap().unwrap();
        assert_eq!(head.media_type(), "text/event-stream");
        assert!(String::from_utf8(first).unwrap().contains("TASK_STATE_SUBMITTED"), "{fault:?}");
        let next = tokio::time::timeout(std::time::Duration::from_millis(50), connection.piece()).await;
        let next = next.ok().and_then(|piece| piece.ok().flatten()).unwrap_or_default();
        let next = String::from_utf8_lossy(&next).into_owned();
        assert!(!(next.contains("COMPLETED") && next.contains(TASK_ID)), "{fault:?}: {next}");
    }
}

#[tokio::test]
async fn script_waits_at_its_gate() {
    let gate = Gate::new();
    let held = gate.clone();
    let hostile = Hostile::start(move |_| Script::new().then(Step::Wait(held.clone())).then(Step::Close)).await;
    let mut connection = Connection::open(hostile.addr()).await.unwrap();
    let request = Request::get("/");
    let mut exchange = Box::pin(connection.exchange(&request));
    assert!(tokio::time::timeout(std::time::Duration::from_millis(50), &mut exchange).await.is_err());
    gate.open();
    assert!(within(PATIENCE, "the end", exchange).await.is_err());
}

#[tokio::test]
async fn cut_and_drip_change_when_and_how_much() {
    let whole = || Script::whole(200, &[], "0123456789");
    let hostile = Hostile::start(move |asked| match asked.path() {
        "/whole" => whole().dripping(),
        _ => whole().cut_after(45),
    })
    .await;
    assert_eq!(ask(&hostile, &Request::get("/whole")).await.unwrap().text(), "0123456789");
    let before = hostile.written();
    assert!(ask(&hostile, &Request::get("/cut")).await.is_err());
    assert_eq!(hostile.written() - before, 45);
}

#[tokio::test]
async fn no_faulty_card_is_the_good_one() {
    for fault in CardFault::ALL.iter().copied() {
        if matches!(fault, CardFault::Huge | CardFault::HugeChunked | CardFault::NeverComes) {
            continue;
        }
        let hostile = Hostile::start(move |asked| fault.script(asked)).await;
        let answer = ask(&hostile, &Request::get(CARD_PATH)).await.unwrap();
        // What reads this JSON has a limit of its own for how deep it may be.
        let card: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        assert_ne!((answer.status, &card), (200, &self::card("http://test")), "{fault:?}");
    }
}

#[tokio::test]
async fn card_at_has_one_interface_there() {
    let hostile = Hostile::agent_with(|card, _| *card = card_at(INSIDE[0]), |_| Script::head(204, &[])).await;
    let card = ask(&hostile, &Request::get(CARD_PATH)).await.unwrap().json();
    assert_eq!(card["supportedInterfaces"].as_array().unwrap().len(), 1);
    assert_eq!(card["supportedInterfaces"][0]["url"], "http://169.254.169.254/latest/meta-data/");
    assert_eq!(ask(&hostile, &Request::get("/")).await.unwrap().status, 204);
}

#[test]
fn operations_are_told_apart() {
    let asked = |target: &str| {
        let (method, target) = ("GET".to_owned(), target.to_owned());
        operation(&Asked { method, target, ..Asked::default() })
    };
    assert_eq!(asked("/rest/message:stream"), "SendStreamingMessage");
    assert_eq!(asked("/rest/tasks/a:subscribe"), "SubscribeToTask");
    assert_eq!(asked("/rest/tasks/a"), "GetTask");
}
