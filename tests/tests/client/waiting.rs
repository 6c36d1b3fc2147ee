//! How long a task is waited for.

use std::time::Duration;

use longhaul_client::{Outcome, WaitOptions};
use longhaul_protocol::TaskState;
use longhaul_tests::hostile::{Step, TASK_ID};
use longhaul_tests::{PATIENCE, within};
use serde_json::json;

use crate::scripted::{HTTP, Scripted, Streams, found, snapshot, status, stream};
use crate::stories::options;
use crate::support::say;

fn wait_options() -> WaitOptions {
    let mut wait = WaitOptions::default();
    wait.unknown_max = Duration::from_millis(600);
    wait.follow = options();
    wait
}

#[tokio::test]
async fn state_that_nobody_knows_for_too_long_is_the_outcome() {
    for streams in [Streams::None, Streams::Plain] {
        let [one, other] = HTTP.map(async |binding| {
            let agent = Scripted::start(streams, |asked, operation, _| match operation {
                "SendStreamingMessage" | "SubscribeToTask" => {
                    stream(asked, &[json!({"task": snapshot("WORKING", &[])}), status("PONDERING")]).then(Step::Stall)
                }
                "SendMessage" => found(asked, &json!({"task": snapshot("PONDERING", &[])})),
                _ => found(asked, &snapshot("PONDERING", &[])),
            })
            .await;
            let client = agent.client(binding).await;
            let began = tokio::time::Instant::now();
            let delegated = within(PATIENCE, "an outcome", client.delegate(say("x"), wait_options())).await.unwrap();
            assert!(matches!(delegated, Outcome::Unknown(_)), "{binding} {streams:?}: {delegated:?}");
            let waited = within(PATIENCE, "an outcome", client.wait(TASK_ID, wait_options())).await.unwrap();
            assert!(matches!(waited, Outcome::Unknown(_)), "{binding} {streams:?}: {waited:?}");
            assert!(began.elapsed() >= Duration::from_millis(1200), "{binding} {streams:?}");
            assert_eq!(agent.asked().last().unwrap(), "GetTask", "{binding} {streams:?}: it was not asked again");
        });
        tokio::join!(one, other);
    }
}

#[tokio::test]
async fn state_that_nobody_knows_for_a_while_is_waited_out() {
    for binding in HTTP {
        let agent = Scripted::start(Streams::None, |asked, operation, nth| match (operation, nth) {
            ("SendMessage", _) => found(asked, &json!({"task": snapshot("PONDERING", &[])})),
            (_, 0..2) => found(asked, &snapshot("PONDERING", &[])),
            (_, 2..12) => found(asked, &snapshot("WORKING", &[])),
            _ => found(asked, &snapshot("COMPLETED", &[])),
        })
        .await;
        let client = agent.client(binding).await;
        let outcome = within(PATIENCE, "an outcome", client.delegate(say("x"), wait_options())).await.unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Completed), "{binding}: {outcome:?}");
    }
}
