//! `send` (§10.2): how a message starts work, waits for it, and follows it.

use longhaul_protocol::wire::{SendMessageResponse, StreamResponse};
use longhaul_tests::hostile::{TASK_ID, operation, reply, status_update, task};
use longhaul_tests::{Hostile, PATIENCE, steps};
use serde_json::json;

use crate::agents::{names, operations, params, stream, with_card, with_task};
use crate::cli::{Cli, demo, message};

#[tokio::test]
async fn a2acli_send_001_starts_an_interaction() {
    let (_server, cli) = demo().await;
    for args in [&["send", "hello there"][..], &["send", "--text", "hello there"]] {
        let done = cli.run(args).await;
        assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
        assert!(done.text().blocks().contains(&"hello there".to_owned()), "{}", done.told());
        let done = cli.run(&[args, &["-o", "json"]].concat()).await;
        let _: SendMessageResponse = done.exits(0).message();
        assert_eq!(done.json()["task"]["artifacts"][0]["parts"][0]["text"], "hello there");
    }
    cli.run(&["send"]).await.exits(2);
}

#[tokio::test]
async fn a2acli_send_001_is_a_users_message_with_an_id_of_its_own() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await;
    let cli = Cli::of(&agent.url());
    let metadata = r#"{"k": [1, {"deep": null}]}"#;
    for _ in 0..2 {
        cli.run(&["send", "hello", "--metadata", metadata]).await.exits(0);
    }
    let sends = operations(&agent).into_iter().filter(|asked| operation(asked).starts_with("Send"));
    let sent: Vec<_> = sends.map(|asked| params(&asked)).collect();
    for params in &sent {
        assert_eq!(params["message"]["role"], "ROLE_USER");
        assert_eq!(params["message"]["parts"], json!([{"text": "hello"}]));
        let found = [&params["metadata"], &params["message"]["metadata"]];
        assert!(found.contains(&&json!({"k": [1, {"deep": null}]})), "{params}");
    }
    assert!(sent[0]["message"]["messageId"].as_str().is_some_and(|id| !id.is_empty()));
    assert_ne!(sent[0]["message"]["messageId"], sent[1]["message"]["messageId"]);
    let done = cli.run(&["send", "hello", "--metadata", "[1]", "-o", "json"]).await;
    done.fails(2, "A2ACLI_ERR_USAGE");
}

#[tokio::test]
async fn a2acli_send_002_waits_by_default_and_async_returns_identifiers() {
    let (server, cli) = demo().await;
    let done = cli.run(&["send", "slow 1"]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
    let mut client = steps::client(server.addr());
    for flag in ["--async", "--return-immediately", "--no-wait"] {
        let done = cli.run(&["send", "slow 60", flag]).await;
        let (task, context, state) = done.exits(0).text().standing();
        assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state.as_str()), "{state}");
        let now = steps::task(&mut client, &task).await;
        assert_eq!((&now["contextId"], now["status"]["state"] == "TASK_STATE_COMPLETED"), (&json!(context), false));
    }
}

#[tokio::test]
async fn a2acli_send_002_waits_although_the_agent_answers_at_once() {
    // Whatever is asked, the first three answers are of a task that works, and none stays open.
    let agent = Hostile::agent(|asked| {
        let state = if asked.nth < 4 { "TASK_STATE_WORKING" } else { "TASK_STATE_COMPLETED" };
        with_task(asked, &task(state))
    })
    .await;
    let done = Cli::of(&agent.url()).run(&["send", "hello", "--poll-interval", "100ms"]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a2acli_send_002_wait_takes_a_configured_async_back() {
    let (_server, cli) = demo().await;
    let cli = cli.with("A2ACLI_ASYNC", "true");
    let done = cli.run(&["send", "slow 1"]).await;
    assert_ne!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
    let done = cli.run(&["send", "slow 1", "--wait"]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a2acli_send_003_stream_consumes_events() {
    let agent = Hostile::agent(|asked| {
        let items = [json!({"task": task("TASK_STATE_SUBMITTED")}), status_update("TASK_STATE_COMPLETED")];
        stream(asked, &items)
    })
    .await;
    for binding in ["jsonrpc", "http+json"] {
        let done =
            Cli::of(&agent.url()).run(&["send", "hello", "--stream", "-o", "json", "--transport", binding]).await;
        let lines = done.exits(0).json_lines();
        assert_eq!(lines, [json!({"task": task("TASK_STATE_SUBMITTED")}), status_update("TASK_STATE_COMPLETED")]);
        lines.iter().for_each(|line| {
            message::<StreamResponse>(line);
        });
    }
    assert!(names(&agent).iter().filter(|name| *name == "SendStreamingMessage").count() == 2, "{:?}", names(&agent));
}

#[tokio::test]
async fn a2acli_send_003_stream_does_not_hang_where_there_is_none() {
    let agent = with_card(|card, _| card["capabilities"]["streaming"] = json!(false)).await;
    let cli = Cli::of(&agent.url());
    let done = cli.run(&["send", "hello", "--stream", "-o", "json", "--timeout", "20s"]).await;
    match done.code {
        // It may fall back, and then it writes JSON lines all the same.
        0 => {
            let last = done.json_lines().pop().unwrap();
            message::<StreamResponse>(&last);
            assert_eq!(last["task"]["id"], TASK_ID);
        }
        _ => {
            done.fails(1, "UnsupportedOperationError");
        }
    }
    assert!(!names(&agent).contains(&"SendStreamingMessage".to_owned()), "{:?}", names(&agent));
    assert_eq!(cli.run(&["send", "hello", "--stream", "--timeout", "20s"]).await.code, done.code);
}

#[tokio::test]
async fn a2acli_send_003_message_without_a_task_ends_cleanly() {
    let (_server, cli) = demo().await;
    for extra in [&[][..], &["--stream"]] {
        let done = cli.run(&[&["send", "msg"], extra].concat()).await;
        assert!(done.exits(0).text().blocks().contains(&"a direct answer".to_owned()), "{}", done.told());
        let done = cli.run(&[&["send", "msg", "-o", "json"], extra].concat()).await;
        let lines = done.exits(0).json_lines();
        assert_eq!((lines.len(), &lines[0]["message"]["parts"][0]["text"]), (1, &json!("a direct answer")));
    }
}

#[tokio::test]
async fn a2acli_send_003_stream_that_is_answered_with_one_object_does_not_hang() {
    let agent = Hostile::agent(|asked| match operation(asked).as_str() {
        "SendStreamingMessage" => reply(asked, &json!({"task": task("TASK_STATE_COMPLETED")})),
        _ => with_task(asked, &task("TASK_STATE_COMPLETED")),
    })
    .await;
    let cli = Cli::of(&agent.url());
    let started = tokio::time::Instant::now();
    let done = cli.run(&["send", "hello", "--stream", "-o", "json", "--timeout", "20s"]).await;
    assert!(started.elapsed() < PATIENCE / 2 && done.code != 5, "{}", done.told());
    assert_eq!(done.json_lines().len(), 1, "{}", done.told());
}
