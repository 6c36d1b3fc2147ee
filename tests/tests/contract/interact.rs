//! How an interaction goes on without the caller's tool remembering anything (§8).

use longhaul_tests::hostile::{CONTEXT_ID, TASK_ID, task};
use longhaul_tests::{Binding, Client, Hostile, Operation, Server, Store};
use serde_json::{Value, json};

use crate::agents::{sent, with_task};
use crate::cli::{Cli, demo};

async fn tasks(server: &Server) -> u64 {
    let page = Client::new(Binding::JsonRpc, server.addr()).ask(Operation::ListTasks, json!({})).await;
    page["totalSize"].as_u64().unwrap()
}

#[tokio::test]
async fn a2acli_interact_001_context_id_groups_a_new_task_with_those_before() {
    let (_server, cli) = demo().await;
    let (first, context, _) = cli.run(&["send", "one"]).await.exits(0).text().standing();
    let (second, again, state) = cli.run(&["send", "two", "--context-id", &context]).await.exits(0).text().standing();
    assert_eq!((&again, state.as_str()), (&context, "TASK_STATE_COMPLETED"));
    assert_ne!(first, second);
}

#[tokio::test]
async fn a2acli_interact_002_task_id_goes_on_with_or_without_its_context() {
    let (server, cli) = demo().await;
    for with_context in [false, true] {
        let (task, context, state) = cli.run(&["send", "input"]).await.exits(0).text().standing();
        assert_eq!(state, "TASK_STATE_INPUT_REQUIRED");
        let before = tasks(&server).await;
        let mut args = vec!["send", "--task-id", &task, "the answer"];
        if with_context {
            args.extend(["--context-id", &context]);
        }
        let standing = cli.run(&args).await.exits(0).text().standing();
        assert_eq!(standing, (task.clone(), context.clone(), "TASK_STATE_COMPLETED".to_owned()));
        assert_eq!(tasks(&server).await, before);
    }
}

#[tokio::test]
async fn a2acli_interact_002_an_identifier_that_is_rejected_makes_no_task() {
    let (server, cli) = demo().await;
    let (ended, context, _) = cli.run(&["send", "one"]).await.exits(0).text().standing();
    let (waiting, ..) = cli.run(&["send", "input"]).await.exits(0).text().standing();
    let before = tasks(&server).await;
    for binding in ["jsonrpc", "http+json", "grpc"] {
        for (args, code) in [
            (&["--task-id", "3f2c0000-0000-4000-8000-00000000dead"][..], "TaskNotFoundError"),
            (&["--task-id", &ended], "UnsupportedOperationError"),
            (&["--task-id", &waiting, "--context-id", &context], ""),
        ] {
            let all = [&["send", "hello", "--transport", binding], args].concat();
            let error = cli.run(&[&all[..], &["-o", "json"]].concat()).await.exits(1).error();
            let name = error["code"].as_str().unwrap();
            assert!(code.is_empty() || name == code, "{binding} {args:?}: {error}");
            assert!(!name.starts_with("A2ACLI_"), "the protocol's own error: {error}");
            let done = cli.run(&all).await;
            assert!(done.exits(1).stderr.contains("--debug") && done.stdout.is_empty(), "{}", done.told());
            assert!(done.stderr.contains(name), "{}", done.told());
        }
    }
    assert_eq!(tasks(&server).await, before);
}

#[tokio::test]
async fn a2acli_interact_003_no_identifier_of_the_server_is_invented() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await;
    let cli = Cli::of(&agent.url());
    for args in [
        &["send", "hello"][..],
        &["send", "hello", "--stream"],
        &["send", "hello", "--async"],
        &["send", "hello", "--task-id", TASK_ID],
        &["send", "hello", "--context-id", CONTEXT_ID],
    ] {
        cli.run(args).await.exits(0);
        let message = sent(&agent).pop().unwrap();
        let given = |flag: &str, id: &str| if args.contains(&flag) { json!(id) } else { Value::Null };
        assert_eq!(message["taskId"], given("--task-id", TASK_ID), "{args:?}");
        assert_eq!(message["contextId"], given("--context-id", CONTEXT_ID), "{args:?}");
    }
}

#[tokio::test]
async fn a2acli_interact_004_reports_ids_and_state_to_be_copied() {
    let (server, cli) = demo().await;
    for (words, state) in [
        ("one", "TASK_STATE_COMPLETED"),
        ("fail", "TASK_STATE_FAILED"),
        ("input", "TASK_STATE_INPUT_REQUIRED"),
        ("auth", "TASK_STATE_AUTH_REQUIRED"),
    ] {
        for extra in [&[][..], &["--stream"]] {
            let done = cli.run(&[&["send", words], extra].concat()).await;
            let (task, context, shown) = done.exits(0).text().standing();
            assert_eq!(shown, state, "{}", done.told());
            let known = Client::new(Binding::JsonRpc, server.addr()).ask(Operation::GetTask, json!({"id": task})).await;
            assert_eq!(known["contextId"], context);
        }
        let document = cli.run(&["send", words, "-o", "json"]).await.exits(0).json();
        assert_eq!(document["task"]["status"]["state"], state);
        assert!(document["task"]["id"].is_string() && document["task"]["contextId"].is_string(), "{document}");
    }
}

#[tokio::test]
async fn a2acli_interact_004_the_command_to_resume_works_when_it_is_run() {
    let server = Server::start(Store::Memory).await;
    let url = format!("http://{}", server.addr());
    // What only this command line said is part of the command; what a variable says holds for the next one too.
    let (by_flag, by_variable) = (Cli::new(), Cli::of(&url));
    let flag = ["send", "input", "-a", url.as_str(), "--transport", "grpc"];
    for (cli, args) in
        [(&by_flag, &flag[..]), (&by_variable, &["send", "input"]), (&by_variable, &["send", "input", "--stream"])]
    {
        let done = cli.run(args).await;
        let (task, context, _) = done.exits(0).text().standing();
        let command = done.resume_command();
        assert!(command.contains(&task) && command.contains("<reply>"), "{command}");
        let resumed = cli.shell(&command.replace("<reply>", "it is blue")).await;
        assert_eq!(resumed.exits(0).text().standing(), (task, context, "TASK_STATE_COMPLETED".to_owned()));
        assert!(resumed.stdout.contains("it is blue"), "{}", resumed.told());
    }
}

#[tokio::test]
async fn a2acli_interact_004_an_id_from_the_agent_is_no_command_of_a_shell() {
    let agent = Hostile::agent(|asked| {
        let mut task = task("TASK_STATE_INPUT_REQUIRED");
        task["id"] = "x; touch was-run; $(touch was-run) '".into();
        with_task(asked, &task)
    })
    .await;
    let cli = Cli::of(&agent.url());
    let command = cli.run(&["send", "hello"]).await.exits(0).resume_command();
    cli.shell(&command).await.exits(0);
    assert!(cli.files().is_empty());
    assert_eq!(sent(&agent).pop().unwrap()["taskId"], "x; touch was-run; $(touch was-run) '");
}

#[tokio::test]
async fn a2acli_interact_005_nothing_is_remembered_from_one_command_to_the_next() {
    let (server, cli) = demo().await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (task, context, _) = cli.run(&["send", "input"]).await.exits(0).text().standing();
        assert!(!seen.contains(&task) && !seen.contains(&context), "each send starts anew");
        seen.extend([task, context]);
    }
    cli.run(&["task", "get", &seen[0]]).await.exits(0);
    for path in cli.files() {
        let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!seen.iter().any(|id| content.contains(id)), "{} holds an id of the last interaction", path.display());
    }
    for word in ["--continue", "--resume", "--last"] {
        cli.run(&["send", "hello", word, "-o", "json"]).await.fails(2, "A2ACLI_ERR_USAGE");
    }
    // Somebody else, with nothing but what was printed, goes on.
    let other = Cli::of(&format!("http://{}", server.addr()));
    let done = other.run(&["send", "--task-id", &seen[2], "the answer"]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a2acli_interact_005_no_variable_makes_it_remember() {
    let (_server, cli) = demo().await;
    let cli = ["LEDGER", "SAVE", "INTERACTIVE", "CONTINUE"]
        .iter()
        .fold(cli, |cli, name| cli.with(&format!("A2ACLI_{name}"), "true"));
    cli.run(&["send", "input"]).await.exits(0);
    cli.run(&["send", "chunks 2", "--stream"]).await.exits(0);
    assert!(cli.files().is_empty(), "{:?}", cli.files());
}

#[tokio::test]
async fn a2acli_interact_003_a_context_that_the_server_does_not_know_is_not_replaced() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await;
    let done = Cli::of(&agent.url()).run(&["send", "hello", "--context-id", "mine"]).await;
    assert_eq!(sent(&agent)[0]["contextId"], "mine");
    assert_eq!(done.exits(0).text().field("Context"), CONTEXT_ID, "what is shown is what the agent said");
}
