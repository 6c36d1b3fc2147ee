//! What comes twice around a snapshot is told once, and what only looks like it is told.

use std::time::Duration;

use longhaul_client::card::Binding;
use longhaul_client::follow::EventStream;
use longhaul_tests::asked::Asked;
use longhaul_tests::hostile::{CONTEXT_ID, Script, Step, TASK_ID, item};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::scripted::{HTTP, Scripted, Streams, chunk, found, refusal, snapshot, status, stream, told, words};
use crate::stories::options;

fn whole(state: &str, chunks: &[&str]) -> Value {
    json!({"task": snapshot(state, chunks)})
}

/// A status with a message, as it was at this second.
fn said(state: &str, text: &str, second: u32) -> Value {
    let message = json!({"messageId": text, "role": "ROLE_AGENT", "parts": [{"text": text}]});
    let time = format!("2026-01-01T00:00:{second:02}Z");
    json!({"state": format!("TASK_STATE_{state}"), "message": message, "timestamp": time})
}

fn status_update(status: &Value) -> Value {
    json!({"statusUpdate": {"taskId": TASK_ID, "contextId": CONTEXT_ID, "status": status}})
}

/// The whole artifact, in place of what was there.
fn replaced(chunks: &[&str]) -> Value {
    let parts: Vec<Value> = chunks.iter().map(|text| json!({"text": text})).collect();
    json!({"artifactUpdate": {"taskId": TASK_ID, "contextId": CONTEXT_ID, "append": false,
        "artifact": {"artifactId": "a", "parts": parts}}})
}

async fn follow(agent: &Scripted, binding: Binding) -> EventStream {
    agent.client(binding).await.follow(TASK_ID, options())
}

/// An agent with one subscription, and the tasks that it shows one after the other.
async fn agent(items: Vec<Value>, shown: Vec<Value>) -> Scripted {
    Scripted::start(Streams::Plain, move |asked, operation, nth| match operation {
        "SubscribeToTask" => stream(asked, &items).then(Step::Stall),
        _ => found(asked, &shown[nth.min(shown.len() - 1)]),
    })
    .await
}

/// What is told of a task that is followed from its subscription on, and how often the agent was asked for it.
async fn followed(binding: Binding, items: &[Value], shown: &[Value]) -> (Vec<String>, usize) {
    let agent = agent(items.to_vec(), shown.to_vec()).await;
    let told = told(follow(&agent, binding).await).await.unwrap();
    (told, agent.times("GetTask").len())
}

#[tokio::test]
async fn pieces_that_a_snapshot_ends_with_are_told_once() {
    for binding in HTTP {
        let end = [chunk("d"), status("COMPLETED")];
        for repeated in [&["c"][..], &["b", "c"]] {
            let items = [vec![whole("WORKING", &["a", "b", "c"])], repeated.iter().map(|text| chunk(text)).collect()];
            let known = snapshot("WORKING", &["a", "b", "c"]);
            let more = snapshot("WORKING", &["a", "b", "c", "d"]);
            let done = snapshot("COMPLETED", &["a", "b", "c", "d"]);
            // The task may have gone on meanwhile.
            for shown in [known, more] {
                let shown = [vec![shown; repeated.len()], vec![done.clone()]].concat();
                let (told, asked) = followed(binding, &[&items.concat()[..], &end].concat(), &shown).await;
                assert_eq!(told, ["task WORKING", "a", "b", "c", "d", "COMPLETED"], "{binding} {repeated:?}");
                assert_eq!(asked, repeated.len() + 1, "{binding} {repeated:?}");
            }
        }
    }
}

#[tokio::test]
async fn piece_that_is_like_the_last_one_is_told() {
    for binding in HTTP {
        let items = [whole("WORKING", &["a", "a"]), chunk("a"), chunk("a"), status("COMPLETED")];
        let shown = [snapshot("WORKING", &["a", "a", "a"]), snapshot("COMPLETED", &["a", "a", "a", "a"])];
        let (told, asked) = followed(binding, &items, &shown).await;
        assert_eq!(told, ["task WORKING", "a", "a", "a", "a", "COMPLETED"], "{binding}");
        // Behind the first that is new, nothing is asked any more but at the end.
        assert_eq!(asked, 2, "{binding}");
    }
}

#[tokio::test]
async fn piece_of_which_nobody_says_whether_it_is_new_is_told_and_put_right() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, nth| match (operation, nth) {
            ("SubscribeToTask", _) => {
                stream(asked, &[whole("WORKING", &["a"]), chunk("a"), chunk("b"), status("COMPLETED")])
                    .then(Step::Stall)
            }
            (_, 0) => refusal(asked, "UNSUPPORTED_OPERATION", -32004, 400),
            _ => found(asked, &snapshot("COMPLETED", &["a", "b"])),
        })
        .await;
        let told = told(follow(&agent, binding).await).await.unwrap();
        assert_eq!(told, ["task WORKING", "a", "a", "b", "a", "b", "COMPLETED"], "{binding}");
    }
}

#[tokio::test]
async fn statuses_and_whole_artifacts_that_a_snapshot_holds_are_told_once() {
    for binding in HTTP {
        let (one, two, three) = (said("WORKING", "1", 1), said("WORKING", "2", 2), said("WORKING", "3", 3));
        let mut task = snapshot("WORKING", &["a", "b"]);
        task["status"] = two.clone();
        task["history"] = json!([one["message"]]);
        let mut done = snapshot("COMPLETED", &["c"]);
        done["status"] = said("COMPLETED", "4", 4);
        let items = [
            json!({ "task": task }),
            status_update(&one),
            replaced(&["a", "b"]),
            status_update(&two),
            status_update(&three),
            replaced(&["c"]),
            status_update(&done["status"]),
        ];
        let (told, asked) = followed(binding, &items, &[done]).await;
        assert_eq!(told, ["task WORKING", "a", "b", "WORKING", "c", "COMPLETED"], "{binding}");
        assert_eq!(asked, 1, "{binding}: only the comparison at the end");
    }
}

#[tokio::test]
async fn status_that_is_said_again_is_told() {
    for binding in HTTP {
        let again = |second| status_update(&said("WORKING", "the same", second));
        let mut task = snapshot("WORKING", &[]);
        task["status"] = said("WORKING", "the same", 1);
        let items = [json!({ "task": task }), again(1), again(2), again(2), status("COMPLETED")];
        let (told, _) = followed(binding, &items, &[snapshot("COMPLETED", &[])]).await;
        assert_eq!(told, ["task WORKING", "WORKING", "WORKING", "COMPLETED"], "{binding}");
    }
}

#[tokio::test]
async fn dropped_futures_ask_once_whether_a_piece_is_new() {
    for binding in HTTP {
        let late = |script: Script| Script::new().then(Step::Pause(Duration::from_millis(60))).followed_by(script);
        let agent = Scripted::start(Streams::Plain, move |asked, operation, nth| match (operation, nth) {
            ("SubscribeToTask", _) => {
                stream(asked, &[whole("WORKING", &["a"]), chunk("a"), chunk("b"), status("COMPLETED")])
                    .then(Step::Stall)
            }
            (_, 0) => late(found(asked, &snapshot("WORKING", &["a"]))),
            _ => late(found(asked, &snapshot("COMPLETED", &["a", "b"]))),
        })
        .await;
        let (mut events, mut came) = (follow(&agent, binding).await, Vec::new());
        longhaul_tests::within(Duration::from_secs(20), "the end", async {
            loop {
                match timeout(Duration::from_millis(3), events.next()).await {
                    Err(_) => {}
                    Ok(Some(event)) => came.push(event.unwrap()),
                    Ok(None) => break,
                }
            }
        })
        .await;
        assert_eq!(words(&came), ["task WORKING", "a", "b", "COMPLETED"], "{binding}");
        assert_eq!(agent.asked(), ["SubscribeToTask", "GetTask", "GetTask"], "{binding}");
    }
}

/// How a subscription ends behind something that lets no stream pass.
fn no_stream(asked: &Asked, how: usize) -> Script {
    match how {
        0 => Script::new().then(Step::Close),
        1 => Script::new().then(Step::Reset),
        2 => Script::whole(502, &[], ""),
        3 => Script::whole(503, &[], ""),
        4 => Script::events().then(Step::Close),
        _ => {
            // Half an event.
            let event = item(asked, &whole("WORKING", &["a"]));
            Script::events().chunk(format!("data: {}", &event.to_string()[..20])).then(Step::Close)
        }
    }
}

async fn is_polled(binding: Binding, streams: Streams, how: usize) {
    let agent = Scripted::start(streams, move |asked, operation, nth| match operation {
        "SendStreamingMessage" => {
            let begin = longhaul_tests::hostile::item(asked, &whole("WORKING", &[]));
            Script::events().chunk(format!("id: 1\ndata: {begin}\n\n")).then(Step::Close)
        }
        "SubscribeToTask" => no_stream(asked, how),
        _ => {
            let chunks = &["a", "b", "c"][..=nth.min(2)];
            found(asked, &snapshot(if nth < 3 { "WORKING" } else { "COMPLETED" }, chunks))
        }
    })
    .await;
    let client = agent.client(binding).await;
    let mut options = options();
    options.patience = Duration::from_secs(4);
    let told = told(client.send_streaming_message(crate::support::say("x"), options).unwrap()).await.unwrap();
    assert_eq!(told, ["task WORKING", "a", "b", "c", "COMPLETED"], "{binding} {streams:?} {how}");
    let (subscribed, asked) = (agent.times("SubscribeToTask").len(), agent.times("GetTask").len());
    assert_eq!(asked, 4, "{binding} {streams:?} {how}");
    // Where the agent goes on after a number, that is tried more often before the numbers are given up.
    let expected = if streams == Streams::Plain { 4..5 } else { 6..100 };
    assert!(expected.contains(&subscribed), "{binding} {streams:?} {how}: {:?}", agent.asked());
}

#[tokio::test]
async fn task_is_asked_for_where_no_stream_passes() {
    for how in 0..6 {
        let [one, other] = HTTP;
        tokio::join!(
            is_polled(one, Streams::Plain, how),
            is_polled(other, Streams::Plain, how),
            is_polled(one, Streams::Numbered, how),
            is_polled(other, Streams::Numbered, how),
        );
    }
}

#[tokio::test]
async fn agent_says_when_its_stream_is_opened_again() {
    const WAIT: Duration = Duration::from_millis(700);
    for binding in HTTP {
        let agent = Scripted::start(Streams::Plain, |asked, operation, _| match operation {
            "SubscribeToTask" => stream(asked, &[whole("COMPLETED", &[])]).end(),
            _ => {
                let begin = item(asked, &whole("WORKING", &[]));
                Script::events().chunk(format!("retry: 700\ndata: {begin}\n\n")).then(Step::Close)
            }
        })
        .await;
        let client = agent.client(binding).await;
        let told = told(client.send_streaming_message(crate::support::say("x"), options()).unwrap()).await.unwrap();
        assert_eq!(told, ["task WORKING", "COMPLETED"], "{binding}");
        let waited = agent.times("SubscribeToTask")[0] - agent.times("SendStreamingMessage")[0];
        assert!(waited >= WAIT, "{binding}: {waited:?}");
    }
}
