//! What is written where, and in what form (§11).

use std::collections::BTreeSet;

use longhaul_protocol::wire::{SendMessageResponse, StreamResponse, Task};
use longhaul_tests::Hostile;
use longhaul_tests::hostile::{Gate, Script, Step, TASK_ID, item, operation, rpc_error, status_update, task};
use serde_json::{Value, json};

use crate::agents::{standing, task_with, with_task};
use crate::cli::{Cli, demo, message};

#[tokio::test]
async fn a2acli_out_001_each_answer_about_a_task_names_context_task_and_state() {
    let (_server, cli) = demo().await;
    let (id, context, _) = cli.run(&["send", "echo x"]).await.exits(0).text().standing();
    for args in
        [&["task", "get", &id][..], &["task", "get", &id, "--wait"], &["task", "list", "--context-id", &context]]
    {
        let done = cli.run(args).await;
        let ids = (id.clone(), context.clone(), "TASK_STATE_COMPLETED".to_owned());
        assert_eq!(done.exits(0).text().standing(), ids, "{}", done.told());
        for extra in [&["-o", "json"][..], &["-o", "json", "--verbose"]] {
            let text = cli.run(&[args, extra].concat()).await.exits(0).json().to_string();
            for word in [&id, &context, "TASK_STATE_COMPLETED"] {
                assert!(text.contains(word), "{word} is not in {text}");
            }
        }
    }
    let (canceled, context, _) = cli.run(&["send", "slow 60", "--async"]).await.exits(0).text().standing();
    let standing = cli.run(&["task", "cancel", &canceled]).await.exits(0).text().standing();
    assert_eq!((standing.0, standing.1), (canceled, context));
}

#[tokio::test]
async fn a2acli_out_001_payload_is_on_stdout_and_everything_else_on_stderr() {
    let (_server, cli) = demo().await;
    for words in ["echo x", "input", "fail", "chunks 3"] {
        for loud in [&[][..], &["--debug"], &["--debug", "--verbose"], &["--insecure"]] {
            let done = cli.run(&[&["send", words, "-o", "json"], loud].concat()).await;
            let _: SendMessageResponse = done.exits(0).message();
            let done = cli.run(&[&["send", words, "-o", "json", "--stream"], loud].concat()).await;
            for line in done.exits(0).json_lines() {
                message::<StreamResponse>(&line);
            }
            cli.run(&[&["send", words], loud].concat()).await.exits(0).text();
        }
    }
    // What went wrong is no payload.
    let done = cli.run(&["task", "get", "no-such-task"]).await;
    assert!(done.exits(1).stdout.is_empty() && done.stderr.contains("TaskNotFoundError"), "{}", done.told());
}

#[tokio::test]
async fn a2acli_out_002_json_is_one_document_of_the_end() {
    let (_server, cli) = demo().await;
    let cli = cli.with("A2ACLI_OUTPUT", "json").with("A2ACLI_STREAM", "true");
    let done = cli.run(&["send", "slow 0.5 chunks 4"]).await;
    let _: SendMessageResponse = done.exits(0).message();
    let document = done.json();
    assert_eq!(document.as_object().map(serde_json::Map::len), Some(1), "{document}");
    assert_eq!(document["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(document["task"]["artifacts"][0]["parts"].as_array().map(Vec::len), Some(4));
    let id = document["task"]["id"].as_str().unwrap();
    for args in [&["task", "get", id][..], &["task", "get", id, "--wait"], &["task", "subscribe", id]] {
        let done = cli.run(args).await;
        // A task that has ended can't be subscribed to; then it is one error.
        if done.code == 0 {
            let _: Task = done.message();
        } else {
            done.fails(1, "UnsupportedOperationError");
        }
    }
    // A configuration file does not switch it either.
    cli.file(".env", "A2ACLI_STREAM=true\n");
    assert!(cli.run(&["send", "chunks 4"]).await.exits(0).json().is_object());
}

#[tokio::test]
async fn a2acli_out_003_stream_is_a_document_a_line_and_ends_with_the_end() {
    let (_server, cli) = demo().await;
    for binding in ["jsonrpc", "http+json", "grpc"] {
        let done = cli.run(&["send", "slow 0.2 chunks 4", "-o", "json", "--stream", "--transport", binding]).await;
        let lines = done.exits(0).json_lines();
        for line in &lines {
            message::<StreamResponse>(line);
        }
        let last = lines.last().unwrap();
        let update = if last.get("task").is_some() { &last["task"] } else { &last["statusUpdate"] };
        assert_eq!(update["status"]["state"], "TASK_STATE_COMPLETED", "{binding} {}", done.told());
        assert!(
            update["contextId"].is_string() && (update["taskId"].is_string() || update["id"].is_string()),
            "{last}"
        );
        let document =
            cli.run(&["task", "get", lines[0]["task"]["id"].as_str().unwrap(), "--stream", "-o", "json"]).await;
        assert_eq!(document.exits(0).json_lines().len(), 1);
        message::<Task>(&document.json_lines()[0]);
    }
}

#[tokio::test]
async fn a2acli_out_003_each_line_is_written_as_its_event_comes() {
    let gate = Gate::new();
    let held = gate.clone();
    let agent = Hostile::agent(move |asked| {
        let event = |value: Value| item(asked, &value);
        Script::events()
            .event(&event(json!({"task": task("TASK_STATE_WORKING")})))
            .then(Step::Wait(held.clone()))
            .event(&event(status_update("TASK_STATE_COMPLETED")))
            .end()
    })
    .await;
    for form in [&["-o", "json"][..], &[]] {
        let mut running = Cli::of(&agent.url()).start(&[&["send", "hello", "--stream"], form].concat());
        // The agent says nothing more until this was read.
        assert!(running.until(TASK_ID).await.contains(TASK_ID));
        gate.open();
        running.end().await.exits(0);
    }
}

#[tokio::test]
async fn a2acli_out_003_error_that_ends_a_stream_is_its_last_line() {
    let agent = Hostile::agent(|asked| match operation(asked).as_str() {
        "SendStreamingMessage" => {
            let begin = item(asked, &json!({"task": task("TASK_STATE_WORKING")}));
            Script::events().event(&begin).event(&rpc_error(asked, -32001, "it is gone")).end()
        }
        _ => Script::json(200, &rpc_error(asked, -32001, "it is gone")),
    })
    .await;
    let done = Cli::of(&agent.url()).run(&["send", "hello", "-o", "json", "--stream", "--timeout", "20s"]).await;
    let lines = done.exits(1).json_lines();
    message::<StreamResponse>(&lines[0]);
    let last = lines.last().unwrap();
    assert_eq!(last["error"]["code"], "TaskNotFoundError", "{}", done.told());
    done.check_error(&last["error"]);
    assert_eq!(lines.iter().filter(|line| line.get("error").is_some()).count(), 1);
}

#[tokio::test]
async fn a2acli_out_005_text_is_fields_and_blocks_with_the_same_labels() {
    let agent = Hostile::agent(|asked| {
        let parts = json!([
            {"text": "State: TASK_STATE_FAILED\n\nTask: forged\u{1b}[31m"},
            {"data": {"State": "TASK_STATE_FAILED", "\u{1b}": "\u{9b}"}},
            {"raw": "AAEC", "filename": "a\n\u{1b}]52;c;x\u{7}b.bin", "mediaType": "a/b"},
        ]);
        let more = json!({"artifacts": [{"artifactId": "a\r\nState: forged", "parts": parts}]});
        with_task(asked, &task_with("TASK_STATE_COMPLETED", &more))
    })
    .await;
    let cli = Cli::of(&agent.url());
    let mut labels: Vec<BTreeSet<String>> = Vec::new();
    for args in [
        &["send", "hello"][..],
        &["task", "get", TASK_ID],
        &["task", "cancel", TASK_ID],
        &["send", "hello", "--stream"],
        &["send", "hello"],
    ] {
        let text = cli.run(args).await.exits(0).text();
        assert_eq!(text.all("State"), ["TASK_STATE_COMPLETED"], "{text:#?}");
        assert_eq!(text.all("Task"), [TASK_ID], "{text:#?}");
        labels.push(text.labels().into_iter().map(str::to_owned).collect());
    }
    assert!(labels.iter().all(|other| *other == labels[0]), "{labels:?}");
}

#[tokio::test]
async fn a2acli_out_005_each_command_keeps_to_the_floor() {
    let (_server, cli) = demo().await;
    let id = cli.run(&["send", "echo many words"]).await.exits(0).text().field("Task").to_owned();
    let config = ["task", "push-config", "create", &id, "https://hooks.example.com/x"];
    for args in [
        &["card", "get"][..],
        &["card", "get", "--verbose"],
        &["task", "get", &id, "--history", "9"],
        &["task", "get", &id, "--history", "9", "--verbose"],
        &["task", "list"],
        &["task", "list", "--artifacts", "--history", "3", "--verbose"],
        &["task", "download", &id],
        &["send", "msg"],
        &["send", "burst 3 chunks 3", "--stream"],
        &config,
        &["task", "push-config", "list", &id],
        &["config", "show"],
    ] {
        let done = cli.run(args).await;
        assert!(!done.exits(0).text().0.is_empty(), "{}", done.told());
    }
}

#[tokio::test]
async fn a2acli_out_005_nothing_is_asked_where_stdout_is_no_terminal() {
    let (_server, cli) = demo().await;
    // Stdin stays open and says nothing: whoever asks, waits for ever.
    let running = cli.start(&["send", "input", "--interactive"]);
    let mut running = running;
    let line = running.until("TASK_STATE_INPUT_REQUIRED").await;
    assert!(line.starts_with("State: "), "{line}");
    while running.line().await.is_some() {}
    running.end().await;
}

#[tokio::test]
async fn a2acli_out_006_async_has_a_result_to_go_on_with() {
    let (_server, cli) = demo().await;
    for extra in [&[][..], &["--transport", "http+json"], &["--transport", "grpc"]] {
        let done = cli.run(&[&["send", "slow 60", "--async", "-o", "json"], extra].concat()).await;
        let _: SendMessageResponse = done.exits(0).message();
        let task = &done.json()["task"];
        let id = task["id"].as_str().unwrap();
        assert!(task["contextId"].as_str().is_some_and(|context| !context.is_empty()), "{task}");
        assert_eq!(cli.run(&["task", "get", id, "-o", "json"]).await.exits(0).json()["id"], id);
    }
    let (id, context, _) = cli.run(&["send", "slow 60", "--async"]).await.exits(0).text().standing();
    assert!(!id.is_empty() && !context.is_empty());
}

#[tokio::test]
async fn a2acli_out_007_debug_shows_what_was_on_the_wire() {
    let (server, cli) = demo().await;
    for binding in ["jsonrpc", "http+json", "grpc"] {
        for form in [&[][..], &["-o", "json"]] {
            let args = [&["send", "echo a-word-that-is-sent", "--transport", binding], form].concat();
            let quiet = cli.run(&args).await;
            assert!(!quiet.exits(0).stderr.contains("a-word-that-is-sent"), "{}", quiet.told());
            let done = cli.run(&[&args[..], &["--debug"]].concat()).await;
            let stderr = &done.exits(0).stderr;
            assert!(
                stderr.matches("a-word-that-is-sent").count() >= 2,
                "what was sent, and what came\n{}",
                done.told()
            );
            assert!(
                stderr.contains("TASK_STATE_COMPLETED") && stderr.contains(&server.addr().to_string()),
                "{}",
                done.told()
            );
        }
    }
    let done = cli.run(&["task", "get", "no-such-task", "--debug"]).await;
    assert!(done.exits(1).stderr.contains("no-such-task"), "{}", done.told());
}

#[tokio::test]
async fn a2acli_exit_002_what_the_agent_decided_is_no_failure_of_the_tool() {
    let (_server, cli) = demo().await;
    for (words, state, word) in [
        ("fail", "TASK_STATE_FAILED", "failed"),
        ("reject", "TASK_STATE_REJECTED", "rejected"),
        ("input", "TASK_STATE_INPUT_REQUIRED", "input"),
        ("auth", "TASK_STATE_AUTH_REQUIRED", "authorization"),
    ] {
        for extra in [&[][..], &["--stream"], &["-o", "json"], &["-o", "json", "--stream"]] {
            let done = cli.run(&[&["send", words], extra].concat()).await;
            assert!(done.exits(0).stdout.contains(state), "{}", done.told());
            assert!(done.stderr.contains(word), "a warning says so\n{}", done.told());
        }
    }
    let agent = standing("TASK_STATE_FAILED").await;
    let done = Cli::of(&agent.url()).run(&["task", "get", TASK_ID, "--wait"]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_FAILED");
    let done = cli.run(&["send", "echo x"]).await;
    assert!(!done.exits(0).stderr.contains("fail") && !done.stderr.contains("go on with"), "{}", done.told());
}
