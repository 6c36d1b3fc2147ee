//! Agents whose stream and whose task do not say the same: a replica that lags behind, and servers, the Python SDK's among
//! them, that work on a task which has ended when another message waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_client::card::Binding;
use longhaul_client::{Client, Outcome, WaitOptions};
use longhaul_tests::hostile::{Script, TASK_ID, reply, task};
use longhaul_tests::{Hostile, PATIENCE, within};
use serde_json::json;

use crate::client_support::{answer, builder, each, say};

/// An agent over HTTP+JSON whose streams say that the task has ended, and which shows it in work for so many times.
async fn lagging(times: usize) -> (Hostile, Client) {
    let asked_for = Arc::new(AtomicUsize::new(0));
    let agent = Hostile::agent(move |asked| {
        if asked.path().ends_with("message:stream") || asked.path().ends_with(":subscribe") {
            return Script::events().event(&json!({"task": task("TASK_STATE_COMPLETED")})).end();
        }
        let lags = asked_for.fetch_add(1, Ordering::AcqRel) < times;
        reply(asked, &task(if lags { "TASK_STATE_WORKING" } else { "TASK_STATE_COMPLETED" }))
    })
    .await;
    let client = builder(Binding::HttpJson).connect(&agent.card_url()).await.unwrap();
    (agent, client)
}

#[tokio::test]
async fn end_that_is_not_seen_everywhere_yet_is_waited_for() {
    for times in [0, 1, 3] {
        let (_agent, client) = lagging(times).await;
        let delegated = within(PATIENCE, "a rest", client.delegate(say("x"), WaitOptions::default())).await.unwrap();
        assert!(matches!(delegated, Outcome::Completed(_)), "{times}: {delegated:?}");
        let (_agent, client) = lagging(times).await;
        let waited = within(PATIENCE, "a rest", client.wait(TASK_ID, WaitOptions::default())).await.unwrap();
        assert!(matches!(waited, Outcome::Completed(_)), "{times}: {waited:?}");
    }
}

#[tokio::test]
async fn contradiction_that_stays_is_told_as_the_task_says() {
    let (agent, client) = lagging(usize::MAX).await;
    let outcome = within(PATIENCE, "an outcome", client.delegate(say("x"), WaitOptions::default())).await.unwrap();
    assert!(matches!(outcome, Outcome::Running(_)), "{outcome:?}");
    assert!(agent.count() < 30, "it is asked {} times", agent.count());
}

#[tokio::test]
async fn message_to_a_task_in_work_is_waited_for_until_it_rests() {
    each(async |case| {
        let task = case.begin("slow 0.5 chunks 2").await;
        let outcome = case.delegate(answer(&task, "echo x")).await;
        // One server works on both at once, one on the message when the task has ended, which it takes up again.
        let Outcome::Completed(ended) = outcome else { panic!("{}: {outcome:?}", case.name()) };
        assert_eq!(ended.id, task.id, "{}", case.name());
    })
    .await;
}
