//! Who has one task does not wait for who has thousands, and a line that is too long takes nobody in.

use longhaul_tests::http::{Connection, Request};
use longhaul_tests::steps::client;
use longhaul_tests::task::{say, say_and_leave, state_of};
use longhaul_tests::{Binding, Call, Client, Launch, Operation, Server};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many tasks the greedy caller has.
const MANY: usize = 2000;

fn of_tenant(mut params: Value, tenant: &str) -> Value {
    params["tenant"] = tenant.into();
    params
}

fn in_context(mut params: Value, context: &str) -> Value {
    params["message"]["contextId"] = context.into();
    params
}

/// Puts many tasks in line.
async fn put_in_line(server: &Server, params: impl Fn() -> Value) {
    let mut callers = JoinSet::new();
    for number in 0..8 {
        let addr = server.addr();
        let all: Vec<Value> = (0..MANY / 8).map(|_| params()).collect();
        callers.spawn(async move {
            let mut client = Client::new(Binding::ALL[number % 3], addr);
            for params in all {
                client.ask(Operation::SendMessage, params).await;
            }
        });
    }
    callers.join_all().await;
}

async fn done_of(client: &mut Client, whose: Value) -> u64 {
    let mut params = json!({"status": "TASK_STATE_COMPLETED", "pageSize": 1});
    params.as_object_mut().unwrap().extend(whose.as_object().unwrap().clone());
    client.ask(Operation::ListTasks, params).await["totalSize"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caller_with_one_task_waits_for_a_few_turns_of_a_caller_with_thousands() {
    let server = Server::launch(Launch::sqlite("[agent]\nworkers_max = 2\n")).await;
    put_in_line(&server, || of_tenant(say_and_leave("slow 0.1"), "greedy")).await;
    let mut modest = Client::new(Binding::JsonRpc, server.addr());
    for _ in 0..5 {
        let before = done_of(&mut modest, json!({"tenant": "greedy"})).await;
        let begun = Instant::now();
        let answer = modest.ask(Operation::SendMessage, of_tenant(say("slow 0.1"), "modest")).await;
        assert_eq!(state_of(&answer), "COMPLETED");
        let between = done_of(&mut modest, json!({"tenant": "greedy"})).await - before;
        // Two turns that run, one of the greedy caller's that is its turn, and what runs beside its own.
        assert!(between <= 8, "{between} turns of the other came first, {:?}", begun.elapsed());
    }
    assert!(done_of(&mut modest, json!({"tenant": "greedy"})).await < MANY as u64 / 2, "there was no line to wait in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn context_with_one_task_waits_for_a_few_turns_of_a_context_with_thousands() {
    let server = Server::launch(Launch::sqlite("[agent]\nworkers_max = 2\n")).await;
    put_in_line(&server, || in_context(say_and_leave("slow 0.1"), "greedy")).await;
    let mut modest = client(server.addr());
    for _ in 0..5 {
        let before = done_of(&mut modest, json!({"contextId": "greedy"})).await;
        let answer = modest.ask(Operation::SendMessage, in_context(say("slow 0.1"), "modest")).await;
        assert_eq!(state_of(&answer), "COMPLETED");
        let between = done_of(&mut modest, json!({"contextId": "greedy"})).await - before;
        assert!(between <= 9, "{between} turns of the other context came first");
    }
}

#[tokio::test]
async fn full_line_refuses_new_tasks_through_each_binding_and_says_when_to_come_back() {
    let server = Server::launch(Launch::sqlite("[agent]\nworkers_max = 1\nbacklog_max = 5\n")).await;
    let mut caller = client(server.addr());
    for _ in 0..6 {
        caller.ask(Operation::SendMessage, say_and_leave("slow 60")).await;
    }
    for binding in Binding::ALL {
        let call = Call::new(Operation::SendMessage, say_and_leave("slow 60"));
        let refusal = Client::new(binding, server.addr()).refused(&call, "RESOURCE_EXHAUSTED").await;
        assert!(refusal.message.contains("try again"), "{refusal:?}");
        let kinds: Vec<&str> = refusal.details.iter().filter_map(|detail| detail["@type"].as_str()).collect();
        assert!(kinds.iter().any(|kind| kind.ends_with("RetryInfo")), "{refusal:?}");
        let call = Call::new(Operation::SendStreamingMessage, say("slow 60"));
        let refused = Client::new(binding, server.addr()).open(&call).await.expect_err("it is refused");
        refused.refusal().assert(binding, "RESOURCE_EXHAUSTED");
    }
    let mut connection = Connection::open(server.addr()).await.unwrap();
    let request = Request::new("POST", "/message:send").v1().json(&say_and_leave("slow 60"));
    let answer = connection.exchange(&request).await.unwrap();
    assert_eq!(answer.status, 429);
    let after: u64 = answer.header("retry-after").and_then(|value| value.parse().ok()).expect("it says when");
    assert!(after >= 1);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": say_and_leave("slow 60")});
    let answer = connection.exchange(&Request::new("POST", "/").v1().json(&body)).await.unwrap();
    assert_eq!((answer.status, answer.header("retry-after").is_some()), (429, true));
    // What is in line already can be canceled, and makes room.
    let page = caller.ask(Operation::ListTasks, json!({"status": "TASK_STATE_SUBMITTED", "pageSize": 10})).await;
    assert_eq!(page["totalSize"], 5);
    caller.ask(Operation::CancelTask, json!({"id": page["tasks"][0]["id"]})).await;
    caller.ask(Operation::SendMessage, say_and_leave("slow 60")).await;
}
