//! `task get`, `task cancel`, and `task subscribe` (§10.3, §10.4, §9.4).

use std::time::Duration;

use longhaul_protocol::wire::{StreamResponse, Task};
use longhaul_tests::hostile::{Script, TASK_ID, item, operation, status_update, task};
use longhaul_tests::{Binding, Client, Hostile, Operation, Server, Store, steps};
use serde_json::json;

use crate::agents::{names, operations, params, stream, with_task};
use crate::cli::{Cli, demo, message};

#[tokio::test]
async fn a2acli_task_get_001_is_the_task_as_the_agent_has_it() {
    let (server, cli) = demo().await;
    for binding in ["jsonrpc", "http+json", "grpc"] {
        let id = cli.run(&["send", "chunks 3"]).await.exits(0).text().field("Task").to_owned();
        let args = ["task", "get", &id, "--transport", binding];
        let (task, context, state) = cli.run(&args).await.exits(0).text().standing();
        let done = cli.run(&[&args[..], &["--history", "10", "-o", "json"]].concat()).await;
        let _: Task = done.exits(0).message();
        let mut client = Client::new(Binding::JsonRpc, server.addr());
        let known = client.ask(Operation::GetTask, json!({"id": id, "historyLength": 10})).await;
        assert_eq!(done.json(), known, "{binding}");
        assert_eq!((&json!(task), &json!(context)), (&known["id"], &known["contextId"]));
        assert_eq!(
            (state.as_str(), known["history"].as_array().map(Vec::is_empty)),
            ("TASK_STATE_COMPLETED", Some(false))
        );
    }
}

#[tokio::test]
async fn a2acli_task_get_001_history_is_the_protocols_length() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_WORKING"))).await;
    let cli = Cli::of(&agent.url());
    cli.run(&["task", "get", TASK_ID, "--history", "7"]).await.exits(0);
    cli.run(&["task", "get", TASK_ID, "--history", "7", "--transport", "http+json"]).await.exits(0);
    let asked = operations(&agent);
    assert_eq!(params(&asked[0]), json!({"id": TASK_ID, "historyLength": 7}));
    assert_eq!(asked[1].target, format!("/rest/tasks/{TASK_ID}?historyLength=7"));
    assert_eq!(names(&agent), ["GetTask", "GetTask"]);
}

#[tokio::test]
async fn a2acli_task_get_001_asks_once_without_wait() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_WORKING"))).await;
    let done = Cli::of(&agent.url()).run(&["task", "get", TASK_ID]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_WORKING");
    assert_eq!(names(&agent), ["GetTask"]);
}

#[tokio::test]
async fn a2acli_task_cancel_001_reports_the_state_that_came_of_it() {
    let (server, cli) = demo().await;
    for binding in ["jsonrpc", "http+json", "grpc"] {
        let id = cli.run(&["send", "slow 60", "--async"]).await.exits(0).text().field("Task").to_owned();
        let args = ["task", "cancel", &id, "--transport", binding];
        let done = cli.run(&args).await;
        let (task, context, state) = done.exits(0).text().standing();
        let known = steps::task(&mut steps::client(server.addr()), &id).await;
        assert_eq!(
            (&json!(task), &json!(context), &json!(state)),
            (&known["id"], &known["contextId"], &known["status"]["state"])
        );
        steps::reaches(&mut steps::client(server.addr()), &id, "CANCELED", Duration::from_secs(20)).await;
        // Again: the same state, or the protocol's word that there is nothing to cancel.
        let again = cli.run(&[&args[..], &["-o", "json"]].concat()).await;
        match again.code {
            0 => assert_eq!(again.message::<Task>().id, id),
            _ => {
                again.fails(1, "TaskNotCancelableError");
            }
        }
    }
    let done = cli.run(&["task", "cancel", "no-such-task", "-o", "json"]).await;
    done.fails(1, "TaskNotFoundError");
}

#[tokio::test]
async fn a2acli_task_subscribe_001_follows_a_task_to_its_end() {
    let (_server, cli) = demo().await;
    for binding in ["jsonrpc", "http+json", "grpc"] {
        let id = cli.run(&["send", "slow 1 chunks 3", "--async"]).await.exits(0).text().field("Task").to_owned();
        let done = cli.run(&["task", "subscribe", &id, "--stream", "-o", "json", "--transport", binding]).await;
        let lines = done.exits(0).json_lines();
        lines.iter().for_each(|line| {
            message::<StreamResponse>(line);
        });
        assert_eq!(lines[0]["task"]["id"], id, "the first event is the task");
        let last = lines.last().unwrap();
        let state = if last.get("task").is_some() {
            &last["task"]["status"]["state"]
        } else {
            &last["statusUpdate"]["status"]["state"]
        };
        assert_eq!(state, "TASK_STATE_COMPLETED");
        assert_eq!(lines.iter().filter(|line| line.get("artifactUpdate").is_some()).count(), 3, "{}", done.told());
    }
}

#[tokio::test]
async fn a2acli_task_subscribe_001_without_stream_it_is_one_task_at_its_end() {
    let (_server, cli) = demo().await;
    let id = cli.run(&["send", "slow 1 chunks 3", "--async"]).await.exits(0).text().field("Task").to_owned();
    let done = cli.run(&["task", "subscribe", &id, "-o", "json"]).await;
    let _: Task = done.exits(0).message();
    assert_eq!(done.json()["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done.json()["artifacts"][0]["parts"].as_array().map(Vec::len), Some(3), "{}", done.told());
    let id = cli.run(&["send", "slow 1", "--async"]).await.exits(0).text().field("Task").to_owned();
    let text = cli.run(&["task", "subscribe", &id]).await.exits(0).text();
    assert_eq!((text.field("Task"), text.field("State")), (id.as_str(), "TASK_STATE_COMPLETED"));
}

#[tokio::test]
async fn a2acli_task_subscribe_001_text_restates_how_the_task_stands_at_the_end() {
    let agent = Hostile::agent(|asked| {
        let artifact = json!({"artifactId": "a", "parts": [{"text": "x"}]});
        let ids = json!({"taskId": TASK_ID, "contextId": "c", "artifact": artifact});
        let end =
            json!({"statusUpdate": {"taskId": TASK_ID, "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
        let begin = json!({"id": TASK_ID, "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
        stream(asked, &[json!({"task": begin}), json!({"artifactUpdate": ids}), end])
    })
    .await;
    let text = Cli::of(&agent.url()).run(&["task", "subscribe", TASK_ID, "--stream"]).await.exits(0).text();
    let tail: Vec<_> = text.labels().into_iter().rev().take(6).collect();
    assert!(["Task", "Context", "State"].iter().all(|label| tail.contains(label)), "{text:#?}");
    assert_eq!(text.standing(), (TASK_ID.to_owned(), "c".to_owned(), "TASK_STATE_COMPLETED".to_owned()));
}

#[tokio::test]
async fn a2acli_task_subscribe_002_a_stream_that_is_cut_is_taken_up_again() {
    let agent = Hostile::agent(|asked| match (operation(asked).as_str(), asked.nth) {
        ("SendStreamingMessage", _) => {
            let items = [json!({"task": task("TASK_STATE_SUBMITTED")}), status_update("TASK_STATE_WORKING")];
            let script = items.iter().fold(Script::events(), |script, each| script.event(&item(asked, each)));
            script.then(longhaul_tests::hostile::Step::Close)
        }
        ("SubscribeToTask", _) => {
            stream(asked, &[json!({"task": task("TASK_STATE_WORKING")}), status_update("TASK_STATE_COMPLETED")])
        }
        _ => with_task(asked, &task("TASK_STATE_WORKING")),
    })
    .await;
    let done = Cli::of(&agent.url()).run(&["send", "hello", "--stream", "-o", "json", "--timeout", "30s"]).await;
    let lines = done.exits(0).json_lines();
    assert_eq!(lines.last(), Some(&status_update("TASK_STATE_COMPLETED")), "{}", done.told());
    let names = names(&agent);
    assert!(names.contains(&"SubscribeToTask".to_owned()), "{names:?}");
    assert_eq!(
        names[..2],
        ["SendStreamingMessage", "SubscribeToTask"],
        "the first event says how it stands: {names:?}"
    );
    assert_eq!(
        names.iter().filter(|name| *name == "SendStreamingMessage").count(),
        1,
        "a send is not repeated: {names:?}"
    );
}

#[tokio::test]
async fn a2acli_task_subscribe_002_what_came_before_the_cut_is_not_lost_nor_doubled() {
    let server = Server::start(Store::Sqlite).await;
    let cli = Cli::of(&format!("http://{}", server.addr()));
    let id = cli.run(&["send", "slow 2 chunks 5", "--async"]).await.exits(0).text().field("Task").to_owned();
    let subscribe = ["task", "subscribe", id.as_str(), "--stream", "-o", "json"];
    let mut first = cli.start(&subscribe);
    assert!(first.line().await.unwrap().contains(&id));
    first.interrupt();
    first.end().await;
    let lines = cli.run(&subscribe).await.exits(0).json_lines();
    assert_eq!(lines[0]["task"]["id"], id);
    assert_eq!(lines.iter().filter(|line| line.get("artifactUpdate").is_some()).count(), 5);
}
