//! SIGTERM: streams end in order, nobody is left without an answer, and a restart goes on.

use std::time::Duration;

use longhaul_tests::http::{Connection, Request};
use longhaul_tests::server::free_addr;
use longhaul_tests::task::{id_of, is_terminal, say, say_and_leave, say_to, state_of};
use longhaul_tests::{Binding, Call, CallError, Client, Operation, Server, Store, until, within};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The longest that a server may take to stop, whatever it has to finish: its drain timeout of 10 s,
/// the time for last answers, and some for a busy machine.
const DRAIN_MAX: Duration = Duration::from_secs(16);

fn subscribe(id: &str) -> Call {
    Call::new(Operation::SubscribeToTask, json!({"id": id}))
}

#[tokio::test]
async fn idle_server_stops_at_once() {
    for store in [Store::Memory, Store::Sqlite] {
        let mut server = Server::start(store).await;
        // A kept connection without a request does not hold it up.
        let mut idle = Connection::open(server.addr()).await.unwrap();
        idle.exchange(&Request::get("/healthz")).await.unwrap();
        let begun = Instant::now();
        server.signal(Signal::TERM);
        let status = server.wait(DRAIN_MAX).await;
        assert_eq!(status.code(), Some(0), "{}", server.log_tail());
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn streams_end_in_order() {
    let mut server = Server::start(Store::Sqlite).await;
    let mut streams = Vec::new();
    let mut tasks = Vec::new();
    for binding in Binding::ALL {
        let mut client = Client::new(binding, server.addr());
        let waiting = client.ask(Operation::SendMessage, say("input")).await["task"].clone();
        let mut stream = client.follow(&subscribe(&id_of(&waiting))).await;
        stream.event().await;
        let mut working = client.follow(&Call::new(Operation::SendStreamingMessage, say("slow 60"))).await;
        let first = working.event().await;
        tasks.push(waiting);
        streams.push((binding, client, [stream, working], id_of(&first.data)));
    }
    server.signal(Signal::TERM);
    for (binding, _client, open, _) in &mut streams {
        for stream in open {
            // What was stored before the end still comes; then the stream ends and is not cut.
            loop {
                match stream.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(CallError::Refused(refusal)) => {
                        refusal.assert(*binding, "UNAVAILABLE");
                        break;
                    }
                    Err(CallError::Cut(why)) => panic!("{binding:?}: a stream was cut: {why}"),
                }
            }
        }
    }
    let status = server.wait(DRAIN_MAX).await;
    assert_eq!(status.code(), Some(0), "{}", server.log_tail());

    server.run().await;
    let mut client = Client::new(Binding::HttpJson, server.addr());
    for task in tasks {
        let read = client.ask(Operation::GetTask, json!({"id": task["id"]})).await;
        assert_eq!(read, task, "a waiting task is as it was");
        let done = client.ask(Operation::SendMessage, say_to(&id_of(&task), "more")).await;
        assert_eq!(state_of(&done), "COMPLETED");
    }
    for (_, _, _, id) in streams {
        let task = client.ask(Operation::GetTask, json!({"id": id})).await;
        assert!(matches!(state_of(&task), "SUBMITTED" | "WORKING"), "it goes on: {task}");
        let canceled = client.ask(Operation::CancelTask, json!({"id": id})).await;
        assert_eq!(state_of(&canceled), "CANCELED");
    }
}

#[tokio::test]
async fn blocking_sends_are_answered_or_told_to_come_back() {
    let mut server = Server::start(Store::Sqlite).await;
    let addr = server.addr();
    let mut sends = JoinSet::new();
    for binding in Binding::ALL {
        for text in ["slow 1", "slow 4"] {
            sends.spawn(async move {
                let mut client = Client::new(binding, addr);
                let outcome = client.call(&Call::new(Operation::SendMessage, say(text))).await;
                (binding, text, outcome)
            });
        }
    }
    let mut client = Client::new(Binding::HttpJson, addr);
    let mut watch = Client::new(Binding::HttpJson, addr);
    let left = client.ask(Operation::SendMessage, say_and_leave("slow 3")).await;
    until(Duration::from_secs(20), "all are at work", async || {
        let params = json!({"status": "TASK_STATE_WORKING"});
        let page = watch.ask(Operation::ListTasks, params).await;
        (page["totalSize"] == 7).then_some(())
    })
    .await;

    server.signal(Signal::TERM);
    for (binding, text, outcome) in sends.join_all().await {
        match outcome {
            Ok(answer) => assert_eq!(state_of(&answer), "COMPLETED", "{text}"),
            Err(CallError::Refused(refusal)) => {
                refusal.assert(binding, "UNAVAILABLE");
                let details = refusal.details.iter();
                let kinds: Vec<&Value> = details.map(|detail| &detail["@type"]).collect();
                assert!(kinds.iter().any(|kind| kind.as_str().unwrap().ends_with("RetryInfo")), "{refusal:?}");
            }
            Err(CallError::Cut(why)) => panic!("{binding:?} {text}: no answer: {why}"),
        }
    }
    let status = server.wait(DRAIN_MAX).await;
    assert_eq!(status.code(), Some(0), "{}", server.log_tail());

    server.run().await;
    let mut client = Client::new(Binding::JsonRpc, addr);
    until(Duration::from_secs(40), "the rest is done after the restart", async || {
        let page = client.ask(Operation::ListTasks, json!({})).await;
        assert_eq!(page["totalSize"], 7);
        let tasks = page["tasks"].as_array().unwrap();
        tasks.iter().all(|task| is_terminal(state_of(task))).then(|| {
            for task in tasks {
                assert_eq!(state_of(task), "COMPLETED", "a drain costs no attempt: {task}");
            }
        })
    })
    .await;
    let task = client.ask(Operation::GetTask, json!({"id": id_of(&left)})).await;
    assert_eq!(state_of(&task), "COMPLETED");
}

#[tokio::test]
async fn nothing_that_was_acknowledged_before_the_stop_is_lost() {
    let mut server = Server::start(Store::Sqlite).await;
    let addr = server.addr();
    let mut senders = JoinSet::new();
    for number in 0..8 {
        senders.spawn(async move {
            let mut client = Client::new(Binding::ALL[number % 3], addr);
            let mut known = Vec::new();
            while let Ok(answer) = client.call(&Call::new(Operation::SendMessage, say("echo"))).await {
                known.push(answer["task"].clone());
            }
            known
        });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.signal(Signal::TERM);
    let known = senders.join_all().await.concat();
    let status = server.wait(DRAIN_MAX).await;
    assert_eq!(status.code(), Some(0), "{}", server.log_tail());
    assert!(known.len() >= 8, "{}", known.len());
    server.run().await;
    let mut client = Client::new(Binding::HttpJson, addr);
    for task in known {
        let read = client.ask(Operation::GetTask, json!({"id": task["id"]})).await;
        assert_eq!(read, task);
    }
}

#[tokio::test]
async fn second_instance_on_the_same_folder_is_refused_with_the_pid() {
    let mut server = Server::start(Store::Sqlite).await;
    let mut second = server.command(free_addr());
    let output = within(DRAIN_MAX, "the second instance ends", second.output()).await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code().is_some_and(|code| code != 0), "{:?}: {told}", output.status);
    assert!(told.contains(&server.pid().to_string()), "it names the process: {told}");
    assert!(told.contains(&server.data().display().to_string()), "it names the folder: {told}");
    assert!(!told.contains("panicked"), "{told}");
    // The first has taken no harm, and its end frees the folder.
    let mut client = Client::new(Binding::HttpJson, server.addr());
    let answer = client.ask(Operation::SendMessage, say("echo")).await;
    server.kill().await;
    server.run().await;
    let mut client = Client::new(Binding::HttpJson, server.addr());
    let read = client.ask(Operation::GetTask, json!({"id": id_of(&answer)})).await;
    assert_eq!(read, answer["task"]);
}
