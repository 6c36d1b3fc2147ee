//! What operators do while the server is at work.

use std::time::Duration;

use longhaul_tests::server::binary;
use longhaul_tests::steps::{client, count, reaches, reason_of, send, task, whole_log};
use longhaul_tests::task::{say, state_of};
use longhaul_tests::{Binding, Client, Launch, Operation, Server, until};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(40);

/// How long one short send may take while tasks are removed.
const HOLD_UP_MAX: Duration = Duration::from_secs(2);

/// Runs an operator's command on the folder of the server, and answers what it says.
async fn operate(server: &Server, words: &[&str]) -> Value {
    let mut command = Command::new(binary());
    command.current_dir(server.folder()).args(words).arg("--data").arg(server.data()).args(["--output", "json"]);
    let output = command.output().await.expect("the binary can be started");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {told}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: no JSON ({error}): {told}"))
}

#[tokio::test]
async fn reclaim_takes_no_turn_from_its_worker_and_a_dry_run_changes_nothing() {
    let server = Server::launch(Launch::sqlite("[agent]\nlease_duration = \"1s\"\n")).await;
    let mut reader = client(server.addr());
    let mut working = Vec::new();
    for _ in 0..8 {
        working.push(send(&mut reader, "slow 5 chunks 3").await);
    }
    let asks = send(&mut reader, "input").await;
    let asked = reaches(&mut reader, &asks, "INPUT_REQUIRED", PATIENCE).await;
    let ended = reader.ask(Operation::SendMessage, say("echo")).await["task"].clone();
    until(PATIENCE, "all are at work", async || (count(&mut reader, "WORKING").await == 8).then_some(())).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let dry = operate(&server, &["reclaim", "--older-than", "1s", "--dry-run"]).await;
    assert!(dry.to_string().contains(&asks) && !working.iter().any(|id| dry.to_string().contains(id)), "{dry}");
    assert_eq!(task(&mut reader, &asks).await, asked);
    for _ in 0..5 {
        operate(&server, &["reclaim", "--older-than", "1s"]).await;
    }
    let failed = reaches(&mut reader, &asks, "FAILED", PATIENCE).await;
    assert!(reason_of(&failed).contains("stale"), "{failed}");
    whole_log(&mut reader, &failed).await;
    for id in working {
        let done = reaches(&mut reader, &id, "COMPLETED", PATIENCE).await;
        whole_log(&mut reader, &done).await;
    }
    assert_eq!(task(&mut reader, ended["id"].as_str().unwrap()).await, ended);
    assert!(!server.log().contains("attempt=2"), "a turn was taken from its worker");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn purge_of_many_tasks_holds_up_nobody() {
    let server =
        Server::launch(Launch { args: vec!["--log".to_owned(), "warn".to_owned()], ..Launch::sqlite("") }).await;
    let addr = server.addr();
    let mut makers = JoinSet::new();
    for _ in 0..8 {
        makers.spawn(async move {
            let mut maker = Client::new(Binding::JsonRpc, addr);
            for _ in 0..40 {
                let answer = maker.ask(Operation::SendMessage, say("chunks 300")).await;
                assert_eq!(state_of(&answer), "COMPLETED");
            }
        });
    }
    makers.join_all().await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let calling = async {
        let (mut caller, mut longest) = (client(addr), Duration::ZERO);
        let mut kept = Vec::new();
        for _ in 0..200 {
            let begun = Instant::now();
            kept.push(caller.ask(Operation::SendMessage, say("echo")).await["task"].clone());
            longest = longest.max(begun.elapsed());
        }
        (kept, longest)
    };
    let purge = ["purge", "--older-than", "1s"];
    let ((kept, longest), _) = tokio::join!(calling, operate(&server, &purge));
    println!("longest send while tasks were removed: {longest:?}");
    assert!(longest < HOLD_UP_MAX, "a send was held up for {longest:?}");
    let mut reader = client(addr);
    let page = reader.ask(Operation::ListTasks, json!({"pageSize": 1})).await;
    assert_eq!(page["totalSize"], kept.len(), "all old tasks are gone, and none of the new");
    for one in kept.iter().step_by(9) {
        assert_eq!(task(&mut reader, one["id"].as_str().unwrap()).await, *one);
    }
}
