//! What holds whatever an agent asks for, or leaves out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_client::card::Binding;
use longhaul_client::{TransportConfig, WireEvent, WireLog};

use longhaul_tests::hostile::{Script, Step, item, rpc_error};
use longhaul_tests::{Server, Store};
use serde_json::json;

use crate::scripted::{HTTP, Scripted, Streams, chunk, snapshot, status, stream, told, words};
use crate::stories::{collect, hasty, options, tell};
use crate::support::say;

#[tokio::test]
async fn agent_that_ends_a_stream_with_an_error_is_not_left_alone_for_a_day() {
    let agent = Scripted::start(Streams::Plain, |asked, operation, _| match operation {
        "SendStreamingMessage" => {
            let mut error = rpc_error(asked, -32603, "come again tomorrow");
            error["error"]["data"] =
                json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "86400s"}]);
            stream(asked, &[json!({"task": snapshot("WORKING", &[])}), chunk("a")]).event(&error).end()
        }
        _ => stream(asked, &[json!({"task": snapshot("WORKING", &["a", "b"])}), status("COMPLETED")]).end(),
    })
    .await;
    let mut options = options();
    options.patience = Duration::from_millis(500);
    let client = agent.client(Binding::JsonRpc).await;
    let told = told(client.send_streaming_message(say("x"), options).unwrap()).await.unwrap();
    assert_eq!(told, ["task WORKING", "a", "b", "COMPLETED"]);
    let waited = agent.times("SubscribeToTask")[0] - agent.times("SendStreamingMessage")[0];
    assert!(waited >= Duration::from_millis(500), "{waited:?}");
}

#[tokio::test]
async fn id_that_no_header_can_hold_is_none() {
    for binding in HTTP {
        for id in ["a\u{1}b".to_owned(), "x".repeat(3000)] {
            let odd = id.clone();
            let agent = Scripted::start(Streams::Plain, move |asked, operation, _| match operation {
                "SendStreamingMessage" => {
                    let first = item(asked, &json!({"task": snapshot("WORKING", &[])}));
                    Script::events().chunk(format!("id: {odd}\ndata: {first}\n\n")).then(Step::Close)
                }
                _ => {
                    assert_eq!(asked.header("last-event-id"), None);
                    stream(asked, &[json!({"task": snapshot("COMPLETED", &[])})]).end()
                }
            })
            .await;
            let client = agent.client(binding).await;
            let events = client.send_streaming_message(say("x"), options()).unwrap();
            let story = collect(events).await.unwrap();
            assert_eq!(words(&story.events), ["task WORKING", "COMPLETED"], "{binding}");
            assert!(story.events.iter().all(|event| event.id.is_none()), "{binding}: {:?}", story.events);
            // Nor is one that the caller brings.
            let mut options = options();
            options.last_event_id = Some(id.clone());
            assert_eq!(client.follow("t", options).last_event_id(), None, "{binding}");
        }
    }
}

/// The names of the operations that were asked for.
#[derive(Debug, Default)]
struct Requests(Mutex<Vec<&'static str>>);

impl WireLog for Requests {
    fn record(&self, event: &WireEvent<'_>) {
        if let WireEvent::Request { operation, .. } = event {
            self.0.lock().unwrap().push(operation);
        }
    }
}

#[tokio::test]
async fn stream_over_grpc_that_brings_nothing_for_long_is_opened_again() {
    let server = Server::start(Store::Memory).await;
    let requests = Arc::new(Requests::default());
    let mut config = TransportConfig::default();
    config.stream_silence_max = Duration::from_millis(300);
    let builder = hasty(Binding::Grpc).transport(config).wire_log(requests.clone());
    let client = builder.connect(&format!("http://{}", server.addr())).await.unwrap();
    let story = tell(&client, say("slow 2")).await;
    let asked = requests.0.lock().unwrap().clone();
    let opened = asked.iter().filter(|operation| **operation == "SubscribeToTask").count();
    // Each silence is one subscription, and none is made in haste.
    assert!((2..=8).contains(&opened), "{asked:?}");
    let told = words(&story.events);
    let count = |state: &str| told.iter().filter(|word| *word == state).count();
    assert_eq!((count("WORKING"), count("COMPLETED")), (1, 1), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("COMPLETED"), "{told:?}");
}
