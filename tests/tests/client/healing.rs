//! What a follower makes of agents that end, refuse, repeat and leave out.

use std::time::Duration;

use longhaul_client::card::Binding;
use longhaul_client::follow::{FollowOptions, Until};
use longhaul_client::{Client, ClientError, TransportConfig};
use longhaul_protocol::ErrorCode;
use longhaul_tests::hostile::{Script, Step, TASK_ID, rpc_error};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::scripted::{
    HTTP, Scripted, Streams, chunk, found, numbered, refusal, snapshot, status, stream, told, words,
};
use crate::stories::{hasty, options};
use crate::support::{say, say_in};

fn first(state: &str) -> Value {
    json!({"task": snapshot(state, &[])})
}

fn whole(state: &str, chunks: &[&str]) -> Value {
    json!({"task": snapshot(state, chunks)})
}

async fn sent(client: &Client) -> Result<Vec<String>, ClientError> {
    told(client.send_streaming_message(say("x"), options()).unwrap()).await
}

#[tokio::test]
async fn stream_that_ends_in_order_while_the_task_works_is_opened_again() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, nth| match (operation, nth) {
            ("SendStreamingMessage", _) => stream(asked, &[first("SUBMITTED"), status("WORKING"), chunk("a")]).end(),
            ("SubscribeToTask", 0) => stream(asked, &[whole("WORKING", &["a", "b"]), chunk("c")]).end(),
            ("SubscribeToTask", _) => refusal(asked, "UNSUPPORTED_OPERATION", -32004, 400),
            _ => found(asked, &snapshot("COMPLETED", &["a", "b", "c", "d"])),
        })
        .await;
        let told = sent(&agent.client(binding).await).await.unwrap();
        assert_eq!(told, ["task SUBMITTED", "WORKING", "a", "b", "c", "d", "COMPLETED"], "{binding}");
        assert_eq!(agent.asked(), ["SendStreamingMessage", "SubscribeToTask", "SubscribeToTask", "GetTask"]);
    }
}

async fn ends_subscriptions_at_once(binding: Binding, has_snapshot: bool) {
    const INTERVAL: Duration = Duration::from_millis(200);
    let agent = Scripted::start(Streams::Plain, move |asked, operation, nth| {
        // Each snapshot differs, so that something is new each time.
        let task = snapshot(if nth < 4 { "WORKING" } else { "COMPLETED" }, &["a", "b", "c", "d", "e"][..=nth.min(4)]);
        match operation {
            "SendStreamingMessage" => stream(asked, &[first("WORKING")]).end(),
            "SubscribeToTask" if has_snapshot => stream(asked, &[json!({"task": task})]).end(),
            "SubscribeToTask" => Script::events().end(),
            _ => found(asked, &task),
        }
    })
    .await;
    let mut options = options();
    (options.poll_interval, options.poll_interval_max) = (INTERVAL, INTERVAL * 2);
    let client = agent.client(binding).await;
    let told = told(client.send_streaming_message(say("x"), options).unwrap()).await.unwrap();
    assert_eq!(told, ["task WORKING", "a", "b", "c", "d", "e", "COMPLETED"], "{binding} {has_snapshot}");
    let times = agent.times("SubscribeToTask");
    assert_eq!(times.len(), 5);
    let waits: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.iter().all(|wait| *wait >= INTERVAL), "{binding} {has_snapshot}: {waits:?}");
}

#[tokio::test]
async fn agent_that_ends_subscriptions_at_once_is_not_asked_in_haste() {
    let [one, other] = HTTP;
    tokio::join!(
        ends_subscriptions_at_once(one, true),
        ends_subscriptions_at_once(other, true),
        ends_subscriptions_at_once(one, false),
        ends_subscriptions_at_once(other, false),
    );
}

#[tokio::test]
async fn subscription_to_a_task_that_is_not_found_is_decided_by_the_task() {
    for binding in HTTP {
        for is_gone in [false, true] {
            let agent = Scripted::start(Streams::Plain, move |asked, operation, nth| match operation {
                "SendStreamingMessage" => stream(asked, &[first("WORKING")]).then(Step::Close),
                "GetTask" if !is_gone => found(asked, &snapshot(["WORKING", "COMPLETED"][nth.min(1)], &["a"])),
                _ => refusal(asked, "TASK_NOT_FOUND", -32001, 404),
            })
            .await;
            let told = sent(&agent.client(binding).await).await;
            match is_gone {
                false => assert_eq!(told.unwrap(), ["task WORKING", "a", "COMPLETED"], "{binding}"),
                true => assert_eq!(told.unwrap_err().code(), Some(ErrorCode::TaskNotFound), "{binding}"),
            }
        }
    }
}

#[tokio::test]
async fn error_as_the_only_event_of_a_subscription_is_a_refusal() {
    let agent = Scripted::start(Streams::Plain, |asked, operation, _| match operation {
        "SendStreamingMessage" => stream(asked, &[first("WORKING")]).then(Step::Close),
        "SubscribeToTask" => Script::events().event(&rpc_error(asked, -32004, "it has ended")).end(),
        _ => found(asked, &snapshot("FAILED", &[])),
    })
    .await;
    assert_eq!(sent(&agent.client(HTTP[0]).await).await.unwrap(), ["task WORKING", "FAILED"]);
    assert_eq!(agent.asked().len(), 3);
}

#[tokio::test]
async fn error_as_the_only_event_of_a_send_is_the_error() {
    let agent = Scripted::start(Streams::Plain, |asked, _, _| {
        Script::events().event(&rpc_error(asked, -32001, "no such task")).end()
    })
    .await;
    let error = sent(&agent.client(HTTP[0]).await).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::TaskNotFound));
    assert_eq!(agent.asked().len(), 1);
}

#[tokio::test]
async fn error_within_a_stream_is_no_end_of_the_task() {
    let agent = Scripted::start(Streams::Plain, |asked, operation, _| match operation {
        "SendStreamingMessage" => {
            stream(asked, &[first("WORKING"), chunk("a")]).event(&rpc_error(asked, -32603, "the reader is slow")).end()
        }
        _ => stream(asked, &[whole("WORKING", &["a", "b"]), status("COMPLETED")]).end(),
    })
    .await;
    assert_eq!(sent(&agent.client(HTTP[0]).await).await.unwrap(), ["task WORKING", "a", "b", "COMPLETED"]);
}

#[tokio::test]
async fn state_that_nobody_knows_is_no_end_and_a_misspelt_one_is() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, nth| match (operation, nth) {
            ("SendStreamingMessage", _) => stream(asked, &[first("WORKING"), status("PAUSED_BY_OPERATOR")]).end(),
            ("GetTask", _) => found(asked, &snapshot("CANCELLED", &["a"])),
            (_, 0) => stream(asked, &[whole("ALMOST_COMPLETED", &["a"])]).then(Step::Close),
            _ => stream(asked, &[whole("WORKING", &["a"]), status("CANCELLED"), chunk("after the end")]),
        })
        .await;
        let told = sent(&agent.client(binding).await).await.unwrap();
        assert_eq!(told, ["task WORKING", "", "a", "WORKING", "CANCELED"], "{binding}");
    }
}

#[tokio::test]
async fn question_that_was_just_answered_is_no_new_one() {
    for binding in HTTP {
        for is_cut in [false, true] {
            let agent = Scripted::start(Streams::Plain, move |asked, operation, _| match (operation, is_cut) {
                ("SendStreamingMessage", true) => stream(asked, &[first("INPUT_REQUIRED")]).then(Step::Close),
                _ => stream(asked, &[first("INPUT_REQUIRED"), status("WORKING"), status("COMPLETED")]).end(),
            })
            .await;
            let client = agent.client(binding).await;
            let events = client.send_streaming_message(say_in("an answer", "", TASK_ID), options()).unwrap();
            assert_eq!(told(events).await.unwrap(), ["task INPUT_REQUIRED", "WORKING", "COMPLETED"], "{binding}");
        }
    }
}

#[tokio::test]
async fn question_that_was_just_answered_is_no_new_one_because_its_stream_ends() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, nth| match (operation, nth) {
            ("SendStreamingMessage", _) => stream(asked, &[first("INPUT_REQUIRED")]).then(Step::Close),
            (_, 0 | 1) => stream(asked, &[first("INPUT_REQUIRED")]).end(),
            _ => stream(asked, &[first("COMPLETED")]).end(),
        })
        .await;
        let client = agent.client(binding).await;
        let events = client.send_streaming_message(say_in("an answer", "", TASK_ID), options()).unwrap();
        assert_eq!(told(events).await.unwrap(), ["task INPUT_REQUIRED", "COMPLETED"], "{binding}");
    }
}

#[tokio::test]
async fn question_that_stays_is_one_in_the_end() {
    let stays = async |binding| {
        let agent = Scripted::start(Streams::Plain, |asked, operation, _| match operation {
            "SendStreamingMessage" => stream(asked, &[first("INPUT_REQUIRED")]).then(Step::Close),
            _ => stream(asked, &[first("INPUT_REQUIRED")]).then(Step::Stall),
        })
        .await;
        let client = agent.client(binding).await;
        let events = client.send_streaming_message(say_in("an answer", "", TASK_ID), options()).unwrap();
        assert_eq!(told(events).await.unwrap(), ["task INPUT_REQUIRED"], "{binding}");
    };
    tokio::join!(stays(HTTP[0]), stays(HTTP[1]));
}

#[tokio::test]
async fn agent_that_asks_again_at_once_is_heard() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, _, _| {
            stream(asked, &[first("INPUT_REQUIRED"), status("WORKING"), status("INPUT_REQUIRED")]).then(Step::Stall)
        })
        .await;
        let client = agent.client(binding).await;
        let events = client.send_streaming_message(say_in("an answer", "", TASK_ID), options()).unwrap();
        assert_eq!(told(events).await.unwrap(), ["task INPUT_REQUIRED", "WORKING", "INPUT_REQUIRED"], "{binding}");
    }
}

#[tokio::test]
async fn agent_without_streams_is_asked_for_the_task() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::None, |asked, operation, nth| match (operation, nth) {
            ("SendMessage", _) => found(asked, &first("SUBMITTED")),
            (_, 0 | 1) => found(asked, &snapshot("WORKING", &["a"])),
            // That it fails within says nothing about the task.
            (_, 2) => refusal(asked, "INTERNAL", -32603, 500),
            (_, 3) => found(asked, &snapshot("INPUT_REQUIRED", &["a", "b"])),
            _ => found(asked, &snapshot("COMPLETED", &["a", "b"])),
        })
        .await;
        let client = agent.client(binding).await;
        let mut until_end = options();
        until_end.until = Until::Terminal;
        let events = client.send_streaming_message(say("x"), until_end).unwrap();
        let expected = ["task SUBMITTED", "a", "WORKING", "b", "INPUT_REQUIRED", "COMPLETED"];
        assert_eq!(told(events).await.unwrap(), expected, "{binding}");
        let sends = agent
            .hostile
            .asked()
            .into_iter()
            .filter(|asked| longhaul_tests::hostile::operation(asked) == "SendMessage");
        let sends: Vec<_> = sends.map(|asked| String::from_utf8(asked.body).unwrap()).collect();
        assert!(sends.len() == 1 && sends[0].contains("\"returnImmediately\":true"), "{sends:?}");
    }
}

#[tokio::test]
async fn stream_that_nobody_answers_is_replaced_by_a_send() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, _| match operation {
            "SendMessage" => found(asked, &first("WORKING")),
            "GetTask" => found(asked, &snapshot("COMPLETED", &[])),
            _ => refusal(asked, "METHOD_NOT_FOUND", -32601, 404),
        })
        .await;
        assert_eq!(sent(&agent.client(binding).await).await.unwrap(), ["task WORKING", "COMPLETED"], "{binding}");
    }
}

#[tokio::test]
async fn dropped_futures_lose_nothing_and_ask_for_nothing_twice() {
    for binding in HTTP {
        for streams in [Streams::Plain, Streams::None] {
            let late = |script: Script| Script::new().then(Step::Pause(Duration::from_millis(60))).followed_by(script);
            let agent = Scripted::start(streams, move |asked, operation, nth| match (operation, nth) {
                ("SendStreamingMessage", _) => late(stream(asked, &[first("WORKING"), chunk("a")]).then(Step::Close)),
                ("SubscribeToTask", _) => {
                    let stream = stream(asked, &[whole("WORKING", &["a", "b"])]);
                    late(stream.then(Step::Pause(Duration::from_millis(60))).followed_by(end(asked)))
                }
                ("SendMessage", _) => late(found(asked, &first("WORKING"))),
                (_, 0) => late(found(asked, &snapshot("WORKING", &["a", "b"]))),
                _ => late(found(asked, &snapshot("COMPLETED", &["a", "b"]))),
            })
            .await;
            let client = agent.client(binding).await;
            let mut events = client.send_streaming_message(say("x"), options()).unwrap();
            let mut came = Vec::new();
            let begun = Instant::now();
            loop {
                assert!(begun.elapsed() < Duration::from_secs(20), "{binding} {streams:?}: {:?}", agent.asked());
                match timeout(Duration::from_millis(3), events.next()).await {
                    Err(_) => {}
                    Ok(Some(event)) => came.push(event.unwrap()),
                    Ok(None) => break,
                }
            }
            assert_eq!(words(&came), ["task WORKING", "a", "b", "COMPLETED"], "{binding} {streams:?}");
            let (streamed, asked_for) = (agent.times("SendStreamingMessage").len(), agent.times("SendMessage").len());
            assert_eq!(streamed + asked_for, 1, "{binding} {streams:?}");
            // One subscription and one comparison, or two questions.
            assert_eq!(agent.asked().len(), 3, "{binding} {streams:?}: {:?}", agent.asked());
        }
    }
}

/// The end of a task, as one more event.
fn end(asked: &longhaul_tests::asked::Asked) -> Script {
    Script::new().event(&longhaul_tests::hostile::item(asked, &status("COMPLETED"))).end()
}

#[tokio::test]
async fn agent_that_asks_to_be_left_alone_is() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, nth| match (operation, nth) {
            (_, 0) => Script::whole(429, &[("Retry-After", "1")], ""),
            ("SendStreamingMessage", _) => stream(asked, &[first("WORKING")]).then(Step::Close),
            _ => stream(asked, &[whole("COMPLETED", &[])]),
        })
        .await;
        let mut policy = longhaul_client::RetryPolicy::default();
        policy.backoff_min = Duration::from_millis(1);
        let client = crate::support::builder(binding).retry(policy).connect(&agent.hostile.url()).await.unwrap();
        assert_eq!(sent(&client).await.unwrap(), ["task WORKING", "COMPLETED"], "{binding}");
        for operation in ["SendStreamingMessage", "SubscribeToTask"] {
            let times = agent.times(operation);
            assert!(times.len() == 2 && times[1] - times[0] >= Duration::from_secs(1), "{binding} {operation}");
        }
    }
}

#[tokio::test]
async fn message_of_which_nobody_knows_is_not_sent_twice() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |_, _, _| Script::new().then(Step::Close)).await;
        let error = sent(&agent.client(binding).await).await.unwrap_err();
        assert!(matches!(error, ClientError::Broken { .. }), "{binding}: {error:?}");
        assert_eq!(agent.asked().len(), 1, "{binding}");
    }
}

#[tokio::test]
async fn numbers_show_what_is_missing_and_what_is_there_twice() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Numbered, |asked, operation, nth| match (operation, nth) {
            ("SendStreamingMessage", _) => {
                let items = [(1, first("SUBMITTED")), (2, chunk("a")), (2, chunk("a")), (3, chunk("b"))];
                numbered(asked, &items).then(Step::Close)
            }
            // It goes on behind 3, as such servers do, and leaves out 5.
            ("SubscribeToTask", 0) => {
                assert_eq!(asked.header("last-event-id"), Some("3"));
                let items = [(3, whole("SUBMITTED", &["a", "b"])), (4, chunk("c")), (6, chunk("e"))];
                numbered(asked, &items).then(Step::Stall)
            }
            // Without a snapshot, but right behind.
            ("SubscribeToTask", 2) => {
                assert_eq!(asked.header("last-event-id"), Some("6"));
                numbered(asked, &[(7, chunk("f")), (8, status("COMPLETED"))]).end()
            }
            ("SubscribeToTask", _) => {
                assert_eq!(asked.header("last-event-id"), None);
                numbered(asked, &[(6, whole("SUBMITTED", &["a", "b", "c", "d", "e"]))]).then(Step::Close)
            }
            other => panic!("{other:?}"),
        })
        .await;
        let client = agent.client(binding).await;
        let mut events = client.send_streaming_message(say("x"), options()).unwrap();
        let mut came = Vec::new();
        while let Some(event) = events.next().await {
            came.push(event.unwrap());
        }
        assert_eq!(words(&came), ["task SUBMITTED", "a", "b", "c", "d", "e", "f", "COMPLETED"], "{binding}");
        let ids: Vec<_> = came.iter().map(|event| event.id.as_deref().unwrap_or("-")).collect();
        assert_eq!(ids, ["1", "2", "3", "4", "6", "7", "8"], "{binding}");
        assert_eq!(events.last_event_id(), Some("8"));
    }
}

#[tokio::test]
async fn subscription_that_does_not_begin_with_the_task_is_not_trusted() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, nth| match (operation, nth) {
            ("SendStreamingMessage", _) => stream(asked, &[first("WORKING"), chunk("a")]).then(Step::Close),
            ("SubscribeToTask", _) => stream(asked, &[chunk("c"), status("COMPLETED")]).end(),
            _ => found(asked, &snapshot("COMPLETED", &["a", "b", "c"])),
        })
        .await;
        assert_eq!(sent(&agent.client(binding).await).await.unwrap(), ["task WORKING", "a", "b", "c", "COMPLETED"]);
    }
}

#[tokio::test]
async fn what_an_agent_forgets_behind_a_snapshot_is_put_right() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, _| match operation {
            "SendStreamingMessage" => stream(asked, &[first("WORKING"), chunk("a")]).then(Step::Close),
            "SubscribeToTask" => stream(asked, &[whole("WORKING", &["a", "b"]), chunk("d"), status("COMPLETED")]).end(),
            _ => found(asked, &snapshot("COMPLETED", &["a", "b", "c", "d"])),
        })
        .await;
        let told = sent(&agent.client(binding).await).await.unwrap();
        assert_eq!(told, ["task WORKING", "a", "b", "d", "a", "b", "c", "d", "COMPLETED"], "{binding}");
    }
}

#[tokio::test]
async fn patience_begins_with_the_first_failure_and_ends() {
    let [one, other] = HTTP.map(async |binding| {
        // It is silent for longer than the patience, which is no failure; then it is gone.
        let agent = Scripted::start(Streams::Plain, |asked, operation, nth| match (operation, nth) {
            ("SendStreamingMessage", _) => {
                stream(asked, &[first("WORKING")]).then(Step::Pause(Duration::from_millis(600))).then(Step::Close)
            }
            ("SubscribeToTask", 0) => stream(asked, &[whole("WORKING", &["a"])]).then(Step::Close),
            _ => Script::new().then(Step::Close),
        })
        .await;
        let mut options: FollowOptions = options();
        options.patience = Duration::from_millis(400);
        let client = agent.client(binding).await;
        let mut events = client.send_streaming_message(say("x"), options).unwrap();
        let mut came = Vec::new();
        let error = loop {
            match events.next().await.unwrap() {
                Ok(event) => came.push(event),
                Err(error) => break error,
            }
        };
        assert_eq!(words(&came), ["task WORKING", "a"], "{binding}");
        assert!(matches!(error, ClientError::Broken { .. }), "{binding}: {error:?}");
        assert!(events.next().await.is_none());
        let tries = agent.asked().len();
        assert!((3..200).contains(&tries), "{binding}: {tries}");
    });
    tokio::join!(one, other);
}

#[tokio::test]
async fn events_before_a_flood_in_the_same_bytes_are_handed_on() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, _, _| {
            let event = |each| format!("data: {}\n\n", longhaul_tests::hostile::item(asked, &each));
            let flood = format!("data: {}", "x".repeat(4000));
            Script::stream([[event(first("WORKING")), event(chunk("a")), flood].concat()])
        })
        .await;
        let mut config = TransportConfig::default();
        config.event_bytes_max = 2000;
        let client = hasty(binding).transport(config).connect(&agent.hostile.url()).await.unwrap();
        let mut events = client.send_streaming_message(say("x"), options()).unwrap();
        let came = [events.next().await.unwrap().unwrap(), events.next().await.unwrap().unwrap()];
        assert_eq!(words(&came), ["task WORKING", "a"], "{binding}");
        let error = events.next().await.unwrap().unwrap_err();
        assert!(matches!(error, ClientError::TooLarge { bytes_max: 2000, .. }), "{binding}: {error:?}");
    }
}

#[tokio::test]
async fn message_on_the_way_is_no_end_and_an_answer_is_one() {
    for binding in HTTP {
        let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hm"}]}});
        let answer = message.clone();
        let agent = Scripted::start(Streams::Plain, move |asked, _, nth| match nth {
            0 => stream(asked, &[first("WORKING"), message.clone(), status("COMPLETED")]).end(),
            _ => stream(asked, std::slice::from_ref(&answer)).then(Step::Stall),
        })
        .await;
        let client = agent.client(binding).await;
        assert_eq!(sent(&client).await.unwrap(), ["task WORKING", "message", "COMPLETED"], "{binding}");
        assert_eq!(sent(&client).await.unwrap(), ["message"], "{binding}");
    }
}
