use longhaul_engine::SendReply;
use longhaul_protocol::wire::Task;
use serde_json::json;

use super::*;
use crate::agents::testing::{Bench, said, state, texts};

async fn bench() -> Bench {
    Bench::new(DemoAgent::new()).await
}

async fn run(text: &str) -> Task {
    bench().await.say(text).await
}

#[tokio::test]
async fn all_kinds_of_parts_are_echoed_as_they_came() {
    let parts = vec![
        Part { filename: "x".to_owned(), media_type: "text/plain".to_owned(), ..Part::text("words") },
        Part::raw(vec![0, 255]),
        Part::data(json!({"a": null, "b": 1})),
        Part::new(wire::PartContent::Url("https://example.com/a%20b".to_owned())),
    ];
    let task = bench().await.parts(parts.clone()).await;
    assert_eq!((state(&task), task.artifacts[0].artifact_id.as_str()), ("COMPLETED", "echo"));
    assert_eq!(task.artifacts[0].parts, parts);
}

#[tokio::test]
async fn each_word_ends_as_it_says() {
    #[rustfmt::skip]
    let cases = [
        ("echo x", "COMPLETED"), ("slow 0.01", "COMPLETED"), ("chunks 3", "COMPLETED"), ("burst 3", "COMPLETED"),
        ("input", "INPUT_REQUIRED"), ("auth", "AUTH_REQUIRED"), ("reject", "REJECTED"), ("fail", "FAILED"),
        ("fail late", "FAILED"), ("late", "COMPLETED"),
    ];
    for (text, wanted) in cases {
        assert_eq!(state(&run(text).await), wanted, "{text}");
    }
}

#[tokio::test]
async fn a_direct_message_makes_no_task() {
    let bench = bench().await;
    let reply = bench.reply(bench.request("", vec![Part::text("msg")])).await;
    assert!(matches!(reply, SendReply::Message(_)), "{reply:?}");
}

#[tokio::test]
async fn chunks_and_bursts_come_in_full() {
    let chunks = run("chunks 200").await;
    assert_eq!(
        texts(&chunks.artifacts[0].parts),
        (1..=200).map(|number| format!("chunk {number}\n")).collect::<Vec<_>>()
    );
    let burst = run("burst 20").await;
    assert_eq!(burst.history.len(), 21);
}

#[tokio::test]
async fn the_answer_to_a_question_is_echoed() {
    let bench = bench().await;
    let asked = bench.say("input").await;
    let done = bench.answer(&asked.id, "here it is").await;
    assert_eq!((state(&done), texts(&done.artifacts[0].parts)), ("COMPLETED", vec!["here it is".to_owned()]));
    let asked = bench.say("input").await;
    assert_eq!(state(&bench.answer(&asked.id, "input").await), "INPUT_REQUIRED");
    assert_eq!(state(&bench.answer(&asked.id, "reject").await), "REJECTED");
}

#[tokio::test]
async fn authorization_comes_by_itself() {
    let bench = bench().await;
    let asked = bench.say("auth").await;
    bench.until(&asked.id, |task| state(task) == "COMPLETED").await;
    let later = bench.say("input").await;
    assert_eq!(state(&bench.answer(&later.id, "auth").await), "AUTH_REQUIRED");
    bench.until(&later.id, |task| state(task) == "COMPLETED").await;
}

#[tokio::test]
async fn slow_heeds_a_cancel_and_stubborn_does_not_change_it() {
    let bench = bench().await;
    for text in ["slow 60", "stubborn slow 4"] {
        let task = bench.begin(text).await;
        bench.until(&task.id, |task| state(task) == "WORKING").await;
        assert_eq!(state(&bench.cancel(&task.id).await), "CANCELED", "{text}");
    }
}

#[tokio::test]
async fn what_is_written_late_or_raised_reaches_nobody() {
    let agent = DemoAgent::new();
    let late = agent.late.clone();
    let bench = Bench::new(agent).await;
    let task = bench.say("late").await;
    late.close();
    late.wait().await;
    assert_eq!(bench.get(&task.id).await, task);
    let failed = bench.say("fail late hunter2").await;
    assert_eq!(said(&failed), "the agent failed");
    assert_eq!(failed.history.iter().filter(|message| texts(&message.parts).concat().contains("hunter2")).count(), 1);
}
