//! Errors are for programs, the same over each binding, and agree with the exit code (§11.4, §11.6).

use longhaul_tests::Hostile;
use longhaul_tests::hostile::{CallFault, Script, TASK_ID, rpc_error, task};
use serde_json::{Value, json};

use crate::agents::{bearer, require_scheme, with_card, with_task};
use crate::cli::{Cli, LOCAL_CODES, demo};

#[tokio::test]
async fn a2acli_out_004_an_error_of_the_protocol_has_its_name_over_each_binding() {
    let (_server, cli) = demo().await;
    let id = cli.run(&["send", "echo x"]).await.exits(0).text().field("Task").to_owned();
    for (args, code) in [
        (&["task", "get", "no-such-task"][..], "TaskNotFoundError"),
        (&["task", "get", "no-such-task", "--wait"], "TaskNotFoundError"),
        (&["task", "cancel", &id], "TaskNotCancelableError"),
        (&["send", "more", "--task-id", &id], "UnsupportedOperationError"),
        (&["send", "--file", "x.mp4", "--media-type", "video/mp4"], "ContentTypeNotSupportedError"),
    ] {
        cli.file("x.mp4", "x");
        let mut told: Vec<(Value, Value)> = Vec::new();
        for binding in ["jsonrpc", "http+json", "grpc"] {
            let done = cli.run(&[args, &["-o", "json", "--transport", binding]].concat()).await;
            let error = done.fails(1, code);
            assert!(error["hint"].is_string(), "{error}");
            assert!(!error["a2aCode"].is_null(), "there is a code on the wire: {error}");
            told.push((error["code"].clone(), error["message"].clone()));
        }
        assert!(told.iter().all(|other| other.0 == told[0].0), "{told:?}");
    }
}

#[tokio::test]
async fn a2acli_out_004_each_error_of_the_protocol_keeps_its_name() {
    for (code, name) in [
        (-32001, "TaskNotFoundError"),
        (-32002, "TaskNotCancelableError"),
        (-32003, "PushNotificationNotSupportedError"),
        (-32004, "UnsupportedOperationError"),
        (-32005, "ContentTypeNotSupportedError"),
        (-32006, "InvalidAgentResponseError"),
        (-32007, "ExtendedAgentCardNotConfiguredError"),
        (-32008, "ExtensionSupportRequiredError"),
        (-32009, "VersionNotSupportedError"),
    ] {
        let agent = Hostile::agent(move |asked| Script::json(200, &rpc_error(asked, code, "as it was asked"))).await;
        let done = Cli::of(&agent.url()).run(&["task", "get", TASK_ID, "-o", "json"]).await;
        let error = done.fails(1, name);
        assert_eq!((&error["message"], &error["a2aCode"]), (&json!("as it was asked"), &json!(code)));
        let done = Cli::of(&agent.url()).run(&["task", "get", TASK_ID]).await;
        assert!(done.exits(1).stderr.contains(name) && done.stderr.contains("as it was asked"), "{}", done.told());
    }
}

#[tokio::test]
async fn a2acli_out_004_no_answer_that_breaks_the_protocol_is_a_result() {
    for fault in CallFault::ALL.iter().copied() {
        let agent = Hostile::agent(move |asked| fault.script(asked)).await;
        let done = Cli::of(&agent.url()).run(&["task", "get", TASK_ID, "-o", "json", "--timeout", "4s"]).await;
        assert_ne!(done.code, 0, "{fault:?}\n{}", done.told());
        let error = done.error();
        let wanted = match fault {
            CallFault::Unauthorized => "A2ACLI_ERR_CREDENTIALS_MISSING",
            fault if fault.hangs() => "A2ACLI_ERR_TIMEOUT",
            _ => continue,
        };
        assert_eq!(error["code"], wanted, "{fault:?}");
    }
}

/// One command for each code of appendix D that can be brought about.
#[tokio::test]
async fn a2acli_exit_001_exit_codes_agree_with_the_error() {
    let locked = with_card(|card, _| require_scheme(card, "tokens", bearer())).await;
    let locked_url = locked.url();
    let closed = Hostile::agent_with(
        |card, _| require_scheme(card, "tokens", bearer()),
        |_| Script::whole(401, &[("WWW-Authenticate", "Bearer")], ""),
    )
    .await;
    let slow = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_WORKING"))).await;
    let nothing = Hostile::start(|_| Script::whole(404, &[], "")).await;
    let html = Hostile::start(|_| Script::whole(200, &[], "<html>")).await;
    let nobody = format!("http://{}", longhaul_tests::server::free_addr());
    let (closed_url, slow_url, nothing_url, html_url) = (closed.url(), slow.url(), nothing.url(), html.url());
    let cli = Cli::new();
    for (args, code) in [
        (&["send", "hello"][..], "A2ACLI_ERR_USAGE"),
        (&["send", "hello", "--no-such-flag"], "A2ACLI_ERR_USAGE"),
        (&["task", "get"], "A2ACLI_ERR_USAGE"),
        (&["task", "get", "x", "-a", &slow_url, "--timeout", "soon"], "A2ACLI_ERR_USAGE"),
        (&["send", "hello", "-a", &slow_url, "--transport", "smoke"], "A2ACLI_ERR_USAGE"),
        (&["no-such-command"], "A2ACLI_ERR_USAGE"),
        (&["card", "get", "-a", &nothing_url], "A2ACLI_ERR_CARD_NOT_FOUND"),
        (&["card", "get", "-a", &html_url], "A2ACLI_ERR_CARD_INVALID"),
        (&["card", "get", "-a", &nobody], "A2ACLI_ERR_UNREACHABLE"),
        (&["send", "hello", "-a", &closed_url], "A2ACLI_ERR_CREDENTIALS_MISSING"),
        (&["send", "hello", "-a", &closed_url, "--bearer", "x"], "A2ACLI_ERR_AUTH_FAILED"),
        (&["send", "hello", "-a", &slow_url, "--timeout", "1s"], "A2ACLI_ERR_TIMEOUT"),
    ] {
        let exit = LOCAL_CODES.iter().find(|(known, _)| *known == code).unwrap().1;
        let done = cli.run(&[args, &["-o", "json"]].concat()).await;
        let error = done.fails(exit, code);
        assert!(error["hint"].is_string(), "{error}");
        let done = cli.run(args).await;
        assert!(done.exits(exit).stderr.contains(code) || code == "A2ACLI_ERR_USAGE", "{}", done.told());
        assert!(done.stdout.is_empty() && !done.stderr.is_empty(), "{}", done.told());
    }
    cli.run(&["send", "hello", "-a", &locked_url, "--bearer", "x"]).await.exits(0);
}

#[tokio::test]
async fn a2acli_exit_001_required_codes_are_0_1_and_2() {
    let (_server, cli) = demo().await;
    cli.run(&["send", "hello"]).await.exits(0);
    cli.run(&["task", "get", "no-such-task"]).await.exits(1);
    cli.run(&["send", "hello", "--async", "--stream"]).await.exits(2);
    cli.run(&["task", "list", "--page-size", "many"]).await.exits(2);
}

#[tokio::test]
async fn a2acli_exit_001_what_can_not_be_written_is_a_failure_of_the_tool() {
    let (_server, cli) = demo().await;
    for line in ["longhaul card get > /dev/full", "longhaul send hello > /dev/full"] {
        let done = cli.shell(line).await;
        assert!(done.exits(1).stderr.contains("A2ACLI_ERR_INTERNAL"), "{}", done.told());
    }
    // Whoever has read enough is no failure.
    cli.shell("longhaul send 'chunks 500' --stream | head -1").await.exits(0);
}
