//! Callers who want something of a task while its worker is gone, or its store cannot be written.

use std::time::Duration;

use longhaul_tests::steps::{client, count, lines, reaches, send, task, whole_log};
use longhaul_tests::task::{is_terminal, say_to, state_of, text_of};
use longhaul_tests::{Binding, Call, CallError, Client, Launch, Operation, Server, TestAgent, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::disk::{limit_files, small_disk};

const PATIENCE: Duration = Duration::from_secs(30);

fn cancel(id: &str) -> Call {
    Call::new(Operation::CancelTask, json!({"id": id}))
}

fn more(id: &str) -> Call {
    let mut params = say_to(id, "more");
    params["configuration"] = json!({"returnImmediately": true});
    Call::new(Operation::SendMessage, params)
}

/// How often a message is in the history.
fn times_in_history(task: &Value, message: &str) -> usize {
    let history = task["history"].as_array().into_iter().flatten();
    history.filter(|it| it["messageId"] == message).count()
}

#[tokio::test]
async fn task_that_waits_for_its_next_attempt_takes_messages_and_is_canceled_at_once() {
    let command = "echo \"$LONGHAUL_ATTEMPT\" >> attempts; exit 75";
    let config = "[agent]\nbackoff_min = \"1h\"\nbackoff_max = \"1h\"\n";
    let launch = Launch::sqlite(config).agent(TestAgent::Exec(command.to_owned()));
    let mut server = Server::launch(launch).await;
    let mut caller = client(server.addr());
    let (one, other) = (send(&mut caller, "go").await, send(&mut caller, "go").await);
    let attempts = server.folder().join("attempts");
    until(PATIENCE, "both wait for the third attempt", async || (lines(&attempts).len() == 4).then_some(())).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let call = more(&one);
    let answer = caller.call(&call).await.unwrap();
    assert_eq!(state_of(&answer), "WORKING", "{answer}");
    let canceled = caller.call(&cancel(&one)).await.unwrap();
    assert_eq!(state_of(&canceled), "CANCELED");
    server.kill().await;
    server.run().await;
    let mut caller = client(server.addr());
    let read = task(&mut caller, &one).await;
    assert_eq!(read["status"], canceled["status"]);
    assert_eq!(times_in_history(&read, call.params["message"]["messageId"].as_str().unwrap()), 1);
    whole_log(&mut caller, &read).await;
    let canceled = caller.call(&cancel(&other)).await.unwrap();
    assert_eq!(state_of(&canceled), "CANCELED");
    assert_eq!(lines(&attempts).len(), 4);
}

#[tokio::test]
async fn cancel_of_tasks_whose_server_slept_agrees_with_what_everybody_sees() {
    let server = Server::launch(Launch::sqlite("[agent]\nlease_duration = \"1s\"\n")).await;
    let mut reader = client(server.addr());
    let mut ids = Vec::new();
    for number in 0..24 {
        // Some end while the server sleeps.
        let text = format!("slow {} chunks 20", 1.0 + 0.1 * f64::from(number));
        ids.push(send(&mut reader, &text).await);
    }
    until(PATIENCE, "all are at work", async || (count(&mut reader, "WORKING").await == 24).then_some(())).await;
    server.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_millis(2300)).await;
    // Cancels lie in the sockets when it wakes: some find the old attempt, some the new one, some the end.
    let mut cancels = JoinSet::new();
    for (number, id) in ids.iter().cloned().enumerate() {
        let addr = server.addr();
        cancels.spawn(async move {
            tokio::time::sleep(Duration::from_millis(20 * number as u64)).await;
            let outcome = Client::new(Binding::ALL[number % 3], addr).call(&cancel(&id)).await;
            (id, outcome)
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.signal(Signal::CONT);
    let mut canceled = 0;
    for (id, outcome) in cancels.join_all().await {
        let read = task(&mut reader, &id).await;
        assert!(is_terminal(state_of(&read)), "{read}");
        match outcome {
            Ok(task) => {
                assert_eq!(task["status"], read["status"], "the answer and the task disagree");
                canceled += usize::from(state_of(&read) == "CANCELED");
            }
            Err(CallError::Refused(refusal)) => assert_eq!(refusal.reason, "TASK_NOT_CANCELABLE"),
            Err(CallError::Cut(why)) => panic!("{why}"),
        }
        let log = whole_log(&mut reader, &read).await;
        assert_eq!(log.last().expect("a log has events").data["statusUpdate"]["status"], read["status"]);
    }
    println!("{canceled} of {} were canceled", ids.len());
}

#[tokio::test]
async fn cancel_and_message_on_a_full_disk_are_refused_and_leave_no_trace() {
    let server = Server::launch(Launch { args: vec!["--log".into(), "warn".into()], ..small_disk(None) }).await;
    let mut caller = client(server.addr());
    let (asks, works) = (send(&mut caller, "input").await, send(&mut caller, "slow 4 chunks 5").await);
    let asked = reaches(&mut caller, &asks, "INPUT_REQUIRED", PATIENCE).await;
    reaches(&mut caller, &works, "WORKING", PATIENCE).await;
    limit_files(&server, Some(0));
    let mut lost = Vec::new();
    for binding in Binding::ALL {
        let mut client = Client::new(binding, server.addr());
        for (id, call) in [(&asks, more(&asks)), (&works, more(&works))] {
            let refusal = client.refused(&call, "UNAVAILABLE").await;
            assert!(refusal.message.contains("cannot accept the message"), "{refusal:?}");
            lost.push((id.clone(), call.params["message"]["messageId"].as_str().unwrap().to_owned()));
        }
        client.refused(&cancel(&asks), "UNAVAILABLE").await;
    }
    assert_eq!(task(&mut caller, &asks).await, asked);
    limit_files(&server, None);
    let done = reaches(&mut caller, &works, "COMPLETED", PATIENCE).await;
    whole_log(&mut caller, &done).await;
    assert_eq!(task(&mut caller, &asks).await, asked, "what was refused had no effect");
    for (id, message) in lost {
        assert_eq!(times_in_history(&task(&mut caller, &id).await, &message), 0, "a refused message is there");
    }
    let answered = caller.ask(Operation::SendMessage, say_to(&asks, "more")).await;
    assert_eq!(state_of(&answered), "COMPLETED");
    assert_eq!(text_of(&answered["task"]), "more");
}
