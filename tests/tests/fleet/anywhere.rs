//! Cancel, continue, subscribe and repeat at another instance than the one that runs the task.

use std::collections::BTreeSet;
use std::time::Duration;

use longhaul_tests::steps::{client, is_alive, send, task, whole_log};
use longhaul_tests::task::{fold, id_of, say, say_to, state_of, text_of};
use longhaul_tests::{Binding, Call, CallError, Client, Fleet, Launch, Operation, TestAgent, until};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{PATIENCE, SHORT_LEASES, runs};

/// The setting under which instances don't ring each other.
const NO_BELLS: &str = "[store.postgres]\nnotify = false\n";

#[tokio::test]
async fn cancel_at_another_instance_stops_the_agent_within_a_second() {
    let slowest = cancel_elsewhere("", 9).await;
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

#[tokio::test]
async fn cancel_at_another_instance_stops_the_agent_soon_without_notifications() {
    let slowest = cancel_elsewhere(NO_BELLS, 4).await;
    assert!(slowest < Duration::from_millis(2500), "{slowest:?}");
}

/// Answers how long an agent ran on at the most.
async fn cancel_elsewhere(config: &str, rounds: usize) -> Duration {
    let command = "echo \"$LONGHAUL_TASK_ID $$\" >> attempts; exec sleep 1000";
    let fleet = Fleet::start(Launch::postgres(config).agent(TestAgent::Exec(command.to_owned()))).await;
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let id = send(&mut client(fleet[round % 3].addr()), "go").await;
        let (runner, line) = runs(fleet.servers(), &id).await;
        let pid = line.split(' ').nth(1).expect("a line has a process id");
        let other = (runner + 1 + round % 2) % 3;
        let mut canceler = Client::new(Binding::ALL[round % 3], fleet[other].addr());
        let begun = Instant::now();
        let stopped = async {
            until(PATIENCE, "the agent is gone", async || (!is_alive(pid)).then_some(())).await;
            begun.elapsed()
        };
        let (canceled, stopped) = tokio::join!(canceler.ask(Operation::CancelTask, json!({"id": id})), stopped);
        assert_eq!(state_of(&canceled), "CANCELED", "{canceled}");
        slowest = slowest.max(stopped);
        for server in fleet.servers() {
            assert_eq!(task(&mut client(server.addr()), &id).await["status"], canceled["status"]);
        }
    }
    println!("the agent was gone {slowest:?} after the cancel, or sooner");
    slowest
}

#[tokio::test]
async fn question_is_answered_at_another_instance_and_seen_at_the_third() {
    answer_elsewhere("").await;
}

#[tokio::test]
async fn question_is_answered_at_another_instance_without_notifications() {
    answer_elsewhere(NO_BELLS).await;
}

async fn answer_elsewhere(config: &str) {
    let fleet = Fleet::start(Launch::postgres(config)).await;
    for (round, binding) in [Binding::ALL, Binding::ALL].concat().into_iter().enumerate() {
        let at = |place: usize| Client::new(binding, fleet[(round + place) % 3].addr());
        let asked = at(0).ask(Operation::SendMessage, say("input")).await;
        assert_eq!(state_of(&asked), "INPUT_REQUIRED", "{asked}");
        let id = id_of(&asked);
        let mut stream = at(2).follow(&Call::new(Operation::SubscribeToTask, json!({"id": id}))).await;
        let mut seen = vec![stream.event().await];
        assert_eq!(seen[0].data["task"], asked["task"], "what one has told, another has not");
        let done = at(1).ask(Operation::SendMessage, say_to(&id, "more")).await;
        assert_eq!((state_of(&done), text_of(&done["task"])), ("COMPLETED", "more".to_owned()));
        seen.extend(stream.rest().await);
        assert_eq!(fold(&seen)["status"], done["task"]["status"]);
        for server in fleet.servers() {
            let read = task(&mut Client::new(binding, server.addr()), &id).await;
            assert_eq!(read, done["task"], "instances disagree");
        }
    }
}

#[tokio::test]
async fn blocking_send_that_died_with_its_instance_is_repeated_at_another_and_runs_once() {
    let command = "echo \"$LONGHAUL_TASK_ID $LONGHAUL_ATTEMPT\" >> attempts; \
                   [ \"$LONGHAUL_ATTEMPT\" = 1 ] && sleep 6; echo done";
    let agent = TestAgent::Exec(command.to_owned());
    let mut fleet = Fleet::start(Launch::postgres(SHORT_LEASES).agent(agent)).await;
    let call = Call::new(Operation::SendMessage, say("go"));
    let call = call.header("a2a-extensions", "urn:longhaul:ext:idempotent-send:v1");
    let blocked = tokio::task::JoinSet::from_iter([{
        let (call, mut caller) = (call.clone(), client(fleet[0].addr()));
        async move { caller.call(&call).await }
    }]);
    let (runner, line) = runs(fleet.servers(), "1").await;
    let id = line.split(' ').next().expect("a line has a task").to_owned();
    // It may have been taken by another than the one that the caller talks to.
    for number in BTreeSet::from([0, runner]) {
        fleet[number].kill().await;
    }
    let outcomes = blocked.join_all().await;
    assert!(matches!(outcomes[..], [Err(CallError::Cut(_))]), "{outcomes:?}");
    let alive = if runner == 1 { 2 } else { 1 };
    let begun = Instant::now();
    let mut caller = client(fleet[alive].addr());
    let done = caller.call(&call).await.expect("it is answered");
    println!("taken over and done after {:?}", begun.elapsed());
    assert_eq!((id_of(&done), state_of(&done)), (id, "COMPLETED"));
    assert_eq!(text_of(&done["task"]), "done\n");
    let page = caller.ask(Operation::ListTasks, json!({})).await;
    assert_eq!(page["totalSize"], 1, "{page}");
    whole_log(&mut caller, &done["task"]).await;
}
