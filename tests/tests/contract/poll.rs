//! Waiting for a task by asking again (§9.1, §9.3).

use std::time::Duration;

use longhaul_protocol::wire::Task;
use longhaul_tests::Hostile;
use longhaul_tests::hostile::{Script, Step, TASK_ID, item, operation, reply, status_update, task};
use serde_json::{Value, json};

use crate::agents::{names, with_card, with_task};
use crate::cli::{Cli, demo};

/// An agent that answers each send with a task that works, and each GetTask with the next of these states; the last for ever.
async fn asked_for(states: &'static [&'static str]) -> Hostile {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let unstreamed = |card: &mut Value, _: &str| card["capabilities"]["streaming"] = json!(false);
    Hostile::agent_with(unstreamed, move |asked| match operation(asked).as_str() {
        "GetTask" => {
            let nth = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed).min(states.len() - 1);
            with_task(asked, &task(states[nth]))
        }
        "SendMessage" => with_task(asked, &task("TASK_STATE_WORKING")),
        _ => Script::whole(500, &[], ""),
    })
    .await
}

fn gets(agent: &Hostile) -> usize {
    names(agent).iter().filter(|name| *name == "GetTask").count()
}

#[tokio::test]
async fn a2acli_task_poll_001_get_asks_once_and_wait_asks_until_the_end() {
    let (_server, cli) = demo().await;
    for binding in ["jsonrpc", "http+json", "grpc"] {
        let id = cli.run(&["send", "slow 1", "--async"]).await.exits(0).text().field("Task").to_owned();
        let args = ["task", "get", &id, "--transport", binding];
        assert_ne!(cli.run(&args).await.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
        let done = cli.run(&[&args[..], &["--wait", "--poll-interval", "200ms", "-o", "json"]].concat()).await;
        let _: Task = done.exits(0).message();
        assert_eq!(done.json()["status"]["state"], "TASK_STATE_COMPLETED");
    }
}

#[tokio::test]
async fn a2acli_task_poll_001_wait_ends_at_each_state_that_is_an_end_or_waits() {
    for state in ["COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED", "AUTH_REQUIRED"] {
        let state: &'static str = format!("TASK_STATE_{state}").leak();
        let agent = asked_for(vec!["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", state].leak()).await;
        let done = Cli::of(&agent.url()).run(&["task", "get", TASK_ID, "--wait", "--poll-interval", "100ms"]).await;
        assert_eq!(done.exits(0).text().field("State"), state);
        // It may look once more, at the whole.
        assert!((3..=4).contains(&gets(&agent)), "{}", gets(&agent));
    }
}

#[tokio::test]
async fn a2acli_task_poll_002_interval_and_timeout_hold_and_there_is_no_busy_loop() {
    let agent = asked_for(&["TASK_STATE_WORKING"]).await;
    let cli = Cli::of(&agent.url());
    let limits = ["--poll-interval", "300ms", "--timeout", "2s", "-o", "json"];
    for args in [&["task", "get", TASK_ID, "--wait"][..], &["send", "hello"]] {
        let (before, started) = (gets(&agent), tokio::time::Instant::now());
        let done = cli.run(&[args, &limits].concat()).await;
        let error = done.fails(5, "A2ACLI_ERR_TIMEOUT");
        let elapsed = started.elapsed();
        assert!((Duration::from_secs(2)..Duration::from_secs(12)).contains(&elapsed), "{elapsed:?}");
        let asked = gets(&agent) - before;
        assert!((2..=8).contains(&asked), "{asked} times in 2 s at an interval of 300 ms");
        assert!(error.to_string().contains(TASK_ID), "the task is not lost: {error}");
    }
}

#[tokio::test]
async fn a2acli_task_poll_002_timeout_is_an_error_in_text_too_and_says_how_to_go_on() {
    let agent = asked_for(&["TASK_STATE_WORKING"]).await;
    let done = Cli::of(&agent.url()).run(&["send", "hello", "--timeout", "1s"]).await;
    assert!(done.exits(5).stderr.contains("A2ACLI_ERR_TIMEOUT"), "{}", done.told());
    assert!(done.all().contains(TASK_ID), "{}", done.told());
    assert!(done.stderr.contains(&format!("task get {TASK_ID}")), "{}", done.told());
}

#[tokio::test]
async fn a2acli_task_poll_002_interrupting_does_not_lose_the_task() {
    let (server, cli) = demo().await;
    for extra in [&[][..], &["--stream"], &["-o", "json", "--stream"]] {
        let mut running = cli.start(&[&["send", "slow 60"], extra].concat());
        // From now on there is a task to lose.
        match extra.is_empty() {
            true => running.until_told("task ").await,
            false => _ = running.until("TASK_STATE_").await,
        }
        let mut client = longhaul_tests::steps::client(server.addr());
        let page = client.ask(longhaul_tests::Operation::ListTasks, json!({"pageSize": 1})).await;
        let id = page["tasks"][0]["id"].as_str().unwrap().to_owned();
        running.interrupt();
        let done = running.end().await;
        assert_ne!(done.code, 0, "{}", done.told());
        assert!(done.all().contains(&id), "{}", done.told());
    }
}

#[tokio::test]
async fn a2acli_task_poll_003_stops_at_once_where_the_caller_has_to_act() {
    let (_server, cli) = demo().await;
    for (words, state) in [("input", "TASK_STATE_INPUT_REQUIRED"), ("auth", "TASK_STATE_AUTH_REQUIRED")] {
        for extra in [&[][..], &["--stream"]] {
            let started = tokio::time::Instant::now();
            let done = cli.run(&[&["send", words, "--poll-interval", "1h"], extra].concat()).await;
            assert_eq!(done.exits(0).text().field("State"), state, "{}", done.told());
            assert!(started.elapsed() < Duration::from_secs(20));
        }
    }
}

#[tokio::test]
async fn a2acli_task_poll_003_an_unspecified_state_is_neither_an_end_nor_a_question() {
    let agent = asked_for(&["TASK_STATE_UNSPECIFIED", "TASK_STATE_UNSPECIFIED", "TASK_STATE_COMPLETED"]).await;
    let cli = Cli::of(&agent.url());
    let done = cli.run(&["task", "get", TASK_ID, "--wait", "--poll-interval", "100ms"]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");

    let agent = asked_for(&["TASK_STATE_UNSPECIFIED"]).await;
    let cli = Cli::of(&agent.url());
    for args in [&["task", "get", TASK_ID, "--wait"][..], &["send", "hello"]] {
        let done = cli.run(&[args, &["--poll-interval", "200ms", "--timeout", "2s", "-o", "json"]].concat()).await;
        done.fails(5, "A2ACLI_ERR_TIMEOUT");
    }
    assert!(gets(&agent) > 4);
    let done = cli.run(&["task", "get", TASK_ID]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_UNSPECIFIED", "as it was received");
}

#[tokio::test]
async fn a2acli_task_poll_004_a_wait_falls_back_to_polling_when_the_stream_fails() {
    for broken in [0, 1, 2] {
        let gets = std::sync::atomic::AtomicUsize::new(0);
        let agent = Hostile::agent(move |asked| match operation(asked).as_str() {
            "SendStreamingMessage" => {
                let begin = item(asked, &json!({"task": task("TASK_STATE_SUBMITTED")}));
                let script = Script::events().event(&begin).event(&item(asked, &status_update("TASK_STATE_WORKING")));
                script.then(if broken == 0 { Step::Close } else { Step::Reset })
            }
            // There is no way back into the stream.
            "SubscribeToTask" if broken == 2 => Script::whole(503, &[], ""),
            "SubscribeToTask" => Script::new().then(Step::Close),
            "GetTask" => match gets.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0 | 1 => with_task(asked, &task("TASK_STATE_WORKING")),
                _ => with_task(asked, &task("TASK_STATE_COMPLETED")),
            },
            _ => reply(asked, &json!({"task": task("TASK_STATE_WORKING")})),
        })
        .await;
        let args = ["send", "hello", "--poll-interval", "100ms", "--timeout", "40s"];
        for extra in [&[][..], &["--stream"]] {
            let done = Cli::of(&agent.url()).run(&[&args[..], extra].concat()).await;
            assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED", "{broken} {}", done.told());
        }
        let names = names(&agent);
        assert!(names.contains(&"GetTask".to_owned()), "{names:?}");
        assert_eq!(names.iter().filter(|name| name.starts_with("Send")).count(), 2, "no send is repeated: {names:?}");
    }
}

#[tokio::test]
async fn a2acli_task_poll_004_agent_without_streams_is_polled() {
    let agent = with_card(|card, _| card["capabilities"]["streaming"] = json!(false)).await;
    let done = Cli::of(&agent.url()).run(&["send", "hello"]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
    assert!(names(&agent).iter().all(|name| name != "SendStreamingMessage" && name != "SubscribeToTask"));
}
