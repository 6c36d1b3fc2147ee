//! Limits of time: turns that hang, tasks that nobody cares for any more, and tasks that were kept for long enough.

use std::path::PathBuf;
use std::time::Duration;

use longhaul_tests::steps::{client, is_alive, lines, reaches, reason_of, send, task, whole_log};
use longhaul_tests::task::{say, say_to, state_of, text_of};
use longhaul_tests::{Call, Launch, Operation, Server, TestAgent, until};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(40);

#[tokio::test]
async fn turn_that_takes_too_long_is_tried_again_and_then_has_failed() {
    let config = "[agent]\nturn_duration_max = \"1s\"\nattempts_max = 2\nbackoff_min = \"100ms\"\n";
    let command = "echo \"$LONGHAUL_ATTEMPT $$\" >> attempts; while :; do echo tick; sleep 0.1; done";
    let server = Server::launch(Launch::sqlite(config).agent(TestAgent::Exec(command.to_owned()))).await;
    let mut reader = client(server.addr());
    let id = send(&mut reader, "go").await;
    let failed = reaches(&mut reader, &id, "FAILED", PATIENCE).await;
    let reason = reason_of(&failed);
    assert!(reason.contains("attempt 1") && reason.contains("attempt 2") && reason.contains("longer"), "{reason}");
    whole_log(&mut reader, &failed).await;
    let begun = lines(&server.folder().join("attempts"));
    assert_eq!(begun.len(), 2, "{begun:?}");
    for line in begun {
        let pid = line.split(' ').nth(1).expect("a line has a process id");
        until(PATIENCE, "the command is gone", async || (!is_alive(pid)).then_some(())).await;
    }
}

#[tokio::test]
async fn turn_that_writes_nothing_has_failed_and_one_that_writes_goes_on() {
    let config = "[agent]\ninactivity_max = \"1s\"\nattempts_max = 1\n";
    let command = "read -r text; [ \"$text\" = mute ] && sleep 60; for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done";
    let server = Server::launch(Launch::sqlite(config).agent(TestAgent::Exec(command.to_owned()))).await;
    let mut reader = client(server.addr());
    let (mute, chatty) = (send(&mut reader, "mute").await, send(&mut reader, "chatty").await);
    let failed = reaches(&mut reader, &mute, "FAILED", PATIENCE).await;
    assert!(reason_of(&failed).contains("wrote nothing"), "{failed}");
    let done = reaches(&mut reader, &chatty, "COMPLETED", PATIENCE).await;
    assert_eq!(text_of(&done), "1\n2\n3\n4\n5\n6\n");
}

#[tokio::test]
async fn tasks_without_an_update_for_too_long_have_failed_but_not_those_at_work() {
    let config = "[retention]\nstale_after = \"2s\"\nhousekeeping_interval = \"1s\"\n";
    let server = Server::launch(Launch::sqlite(config)).await;
    let mut reader = client(server.addr());
    let (asks, works, ended) =
        (send(&mut reader, "input").await, send(&mut reader, "slow 6").await, send(&mut reader, "echo").await);
    let ended = reaches(&mut reader, &ended, "COMPLETED", PATIENCE).await;
    let failed = reaches(&mut reader, &asks, "FAILED", PATIENCE).await;
    assert!(reason_of(&failed).contains("stale"), "{failed}");
    whole_log(&mut reader, &failed).await;
    let call = Call::new(Operation::SendMessage, say_to(&asks, "too late"));
    reader.refused(&call, "UNSUPPORTED_OPERATION").await;
    reaches(&mut reader, &works, "COMPLETED", PATIENCE).await;
    assert_eq!(task(&mut reader, ended["id"].as_str().unwrap()).await, ended);
}

fn database(server: &Server) -> PathBuf {
    let files = std::fs::read_dir(server.data()).expect("there is a data folder").filter_map(Result::ok);
    let mut found = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|it| it == "db"));
    found.next().expect("there is a database")
}

fn bytes_of(server: &Server) -> u64 {
    let files = std::fs::read_dir(server.data()).expect("there is a data folder").filter_map(Result::ok);
    files.map(|file| file.metadata().map_or(0, |it| it.len())).sum()
}

#[tokio::test]
async fn tasks_that_were_kept_for_long_enough_are_gone_and_their_space_with_them() {
    let config = "[retention]\ncompleted = \"3s\"\nhousekeeping_interval = \"1s\"\n";
    let mut server = Server::launch(Launch::sqlite(config)).await;
    let mut caller = client(server.addr());
    let mut ids = Vec::new();
    for _ in 0..120 {
        ids.push(send(&mut caller, "chunks 400").await);
    }
    let rejected = caller.ask(Operation::SendMessage, say("reject")).await["task"].clone();
    let asks = send(&mut caller, "input").await;
    let asks = reaches(&mut caller, &asks, "INPUT_REQUIRED", PATIENCE).await;
    let mut largest = 0;
    until(PATIENCE, "what was completed is gone", async || {
        largest = largest.max(bytes_of(&server));
        let page = caller.ask(Operation::ListTasks, json!({"pageSize": 1})).await;
        (page["totalSize"] == 2).then_some(())
    })
    .await;
    for id in ids.iter().step_by(7) {
        caller.refused(&Call::new(Operation::GetTask, json!({"id": id})), "TASK_NOT_FOUND").await;
        let follow = Call::new(Operation::SubscribeToTask, json!({"id": id})).after(1);
        let refused = caller.open(&follow).await.expect_err("a task that was removed has no stream");
        assert_eq!(refused.refusal().reason, "TASK_NOT_FOUND");
    }
    assert_eq!(task(&mut caller, rejected["id"].as_str().unwrap()).await, rejected);
    assert_eq!(task(&mut caller, asks["id"].as_str().unwrap()).await, asks);
    // The file shrinks by itself; what is still in the log goes when the server ends.
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.signal(rustix::process::Signal::TERM);
    server.wait(Duration::from_secs(15)).await;
    let left = std::fs::metadata(database(&server)).unwrap().len();
    assert!(left * 4 < largest, "of {largest} bytes {left} are left");
    let rows = rows(&database(&server));
    println!("{largest} bytes at the most, {left} in the end; {rows:?}");
    for (table, count) in rows {
        assert!(count <= 20, "{count} rows are left in {table}");
    }
    server.run().await;
    let mut caller = client(server.addr());
    let done = caller.ask(Operation::SendMessage, say_to(asks["id"].as_str().unwrap(), "more")).await;
    assert_eq!(state_of(&done), "COMPLETED");
}

/// How many rows each table has.
fn rows(path: &std::path::Path) -> Vec<(String, i64)> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = rusqlite::Connection::open_with_flags(path, flags).expect("the database can be read");
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut statement = database.prepare(names).unwrap();
    let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let count = |name: &String| database.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0));
    names.iter().map(|name| (name.clone(), count(name).unwrap())).collect()
}

#[tokio::test]
async fn message_id_of_a_task_that_was_removed_makes_a_new_one() {
    let config = "[agent]\ndedup = \"always\"\n[retention]\ncompleted = \"1s\"\nhousekeeping_interval = \"1s\"\n";
    let server = Server::launch(Launch::sqlite(config)).await;
    let mut caller = client(server.addr());
    let params = say("chunks 5000");
    let first = caller.ask(Operation::SendMessage, params.clone()).await;
    let again = caller.ask(Operation::SendMessage, params.clone()).await;
    assert_eq!(again["task"]["id"], first["task"]["id"]);
    until(PATIENCE, "it is removed", async || {
        let call = Call::new(Operation::GetTask, json!({"id": first["task"]["id"]}));
        caller.call(&call).await.is_err().then_some(())
    })
    .await;
    let new = caller.ask(Operation::SendMessage, params).await;
    assert_ne!(new["task"]["id"], first["task"]["id"]);
    assert_eq!(state_of(&new), "COMPLETED");
}
