//! What tests ask again and again.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Answer, Connection, Request};
use crate::task::{assert_numbered, fold, id_of, is_terminal, say_and_leave, state_of};
use crate::{Binding, Call, Client, Event, Instances, Operation, until};

/// A client that reads the stored bytes.
#[must_use]
pub fn client(instances: impl Into<Instances>) -> Client {
    Client::new(Binding::HttpJson, instances)
}

/// Sends without waiting, and answers the task's id.
pub async fn send(client: &mut Client, text: &str) -> String {
    id_of(&client.ask(Operation::SendMessage, say_and_leave(text)).await)
}

/// The task as it is now.
pub async fn task(client: &mut Client, id: &str) -> Value {
    client.ask(Operation::GetTask, json!({"id": id})).await
}

/// Waits until the task is in this state.
///
/// # Panics
///
/// When it ends in another one, or not in time.
pub async fn reaches(client: &mut Client, id: &str, state: &str, limit: Duration) -> Value {
    let what = format!("task {id} becomes {state}");
    until(limit, &what, async || {
        let task = task(client, id).await;
        let now = state_of(&task);
        assert!(now == state || !is_terminal(now), "{what}, and not: {task}");
        (now == state).then_some(task)
    })
    .await
}

/// How many tasks there are in this state.
pub async fn count(client: &mut Client, state: &str) -> u64 {
    let params = json!({"status": format!("TASK_STATE_{state}"), "pageSize": 1});
    let page = client.ask(Operation::ListTasks, params).await;
    page["totalSize"].as_u64().expect("a page says how many there are")
}

/// The whole log of a task that has ended: without gap, with one end, and the task is its fold.
///
/// # Panics
///
/// When it is not.
pub async fn whole_log(client: &mut Client, task: &Value) -> Vec<Event> {
    let call = Call::new(Operation::SubscribeToTask, json!({"id": task["id"]})).after(1);
    let log = client.follow(&call).await.rest().await;
    assert_numbered(&log, 1);
    let ends = log.iter().filter(|event| is_terminal(state_of(&event.data))).count();
    assert_eq!(ends, 1, "a task ends once: {log:?}");
    let folded = fold(&log);
    assert_eq!(folded["status"], task["status"]);
    assert_eq!(folded.get("artifacts"), task.get("artifacts"), "{task}");
    log
}

/// The words of the status message.
#[must_use]
pub fn reason_of(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

/// Reads a path without any header.
pub async fn get(addr: SocketAddr, path: &str) -> Answer {
    let mut connection = Connection::open(addr).await.expect("the server listens");
    connection.exchange(&Request::get(path)).await.expect("the server answers")
}

/// The lines that agents wrote to a file.
#[must_use]
pub fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether a process is there and has not ended.
#[must_use]
pub fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
