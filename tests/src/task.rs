//! Messages to send, and what a stream's items add up to.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::Event;

/// Parameters of a send: a message with this text, and an id that no other has.
#[must_use]
pub fn say(text: &str) -> Value {
    json!({"message": message(json!([{"text": text}]))})
}

/// The same, answered at once.
#[must_use]
pub fn say_and_leave(text: &str) -> Value {
    let mut params = say(text);
    params["configuration"] = json!({"returnImmediately": true});
    params
}

/// The same, to a task.
#[must_use]
pub fn say_to(task_id: &str, text: &str) -> Value {
    let mut params = say(text);
    params["message"]["taskId"] = task_id.into();
    params
}

/// A message of these parts, with an id that no other of this process has.
#[must_use]
pub fn message(parts: Value) -> Value {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // In the form of a UUID, so that it is replaced like one.
    let id = format!("{:08x}-0000-4000-8000-{count:012x}", std::process::id());
    json!({"messageId": id, "role": "ROLE_USER", "parts": parts})
}

/// The id of a task, given as the answer of a send or as itself.
///
/// # Panics
///
/// When it is no task.
#[must_use]
pub fn id_of(task: &Value) -> String {
    let task = task.get("task").unwrap_or(task);
    let id = task["id"].as_str();
    id.unwrap_or_else(|| panic!("no task: {task}")).to_owned()
}

/// The state of a task, of the answer of a send, or of a stream's item, without its prefix.
#[must_use]
pub fn state_of(value: &Value) -> &str {
    let inner = value.get("task").or_else(|| value.get("statusUpdate"));
    let state = inner.unwrap_or(value)["status"]["state"].as_str();
    state.unwrap_or_default().trim_start_matches("TASK_STATE_")
}

/// Whether a state is one of the four final ones.
#[must_use]
pub fn is_terminal(state: &str) -> bool {
    matches!(state, "COMPLETED" | "FAILED" | "CANCELED" | "REJECTED")
}

/// The text of all artifacts of a task, each part behind the one before.
#[must_use]
pub fn text_of(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    let parts = artifacts.flat_map(|artifact| artifact["parts"].as_array().into_iter().flatten());
    parts.map(|part| part["text"].as_str().unwrap_or_default()).collect()
}

/// What the items of a stream, of which the first is the task, add up to. Messages of callers are in
/// no event: the history is right as long as none came.
///
/// # Panics
///
/// When the first item is no task, or a later one is no update.
#[must_use]
pub fn fold(events: &[Event]) -> Value {
    let mut task = events[0].data["task"].clone();
    assert!(task.is_object(), "the first item is the task: {:?}", events[0]);
    for event in &events[1..] {
        if let Some(update) = event.data.get("statusUpdate") {
            fold_status(&mut task, &update["status"]);
        } else if let Some(update) = event.data.get("artifactUpdate") {
            fold_artifact(&mut task, update);
        } else {
            panic!("a later item is an update: {event:?}");
        }
    }
    task
}

/// A status message becomes history once the next status replaces it.
fn fold_status(task: &mut Value, status: &Value) {
    if let Some(replaced) = task["status"].get("message").cloned() {
        if !task["history"].is_array() {
            task["history"] = json!([]);
        }
        let history = task["history"].as_array_mut().expect("it is a list");
        history.push(replaced);
    }
    task["status"] = status.clone();
}

fn fold_artifact(task: &mut Value, update: &Value) {
    let artifact = &update["artifact"];
    if !task["artifacts"].is_array() {
        task["artifacts"] = json!([]);
    }
    let artifacts = task["artifacts"].as_array_mut().expect("it is a list");
    let known = artifacts.iter_mut().find(|known| known["artifactId"] == artifact["artifactId"]);
    match (known, update["append"] == true) {
        (Some(known), true) => {
            let more = artifact["parts"].as_array().cloned().unwrap_or_default();
            let parts = known["parts"].as_array_mut().expect("an artifact has parts");
            parts.extend(more);
        }
        (Some(known), false) => *known = artifact.clone(),
        (None, false) => artifacts.push(artifact.clone()),
        (None, true) => panic!("a chunk of an artifact that never began: {update}"),
    }
}

/// Checks that the numbers of a stream's items go up by one, from `first`.
///
/// # Panics
///
/// When they don't.
pub fn assert_numbered(events: &[Event], first: u64) {
    let numbers: Vec<u64> = events.iter().filter_map(|event| event.sequence).collect();
    let expected: Vec<u64> = (first..).take(events.len()).collect();
    assert_eq!(numbers, expected, "a stream has gaps or doubles");
}
