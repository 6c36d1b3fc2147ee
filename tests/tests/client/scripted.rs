//! Agents that answer each operation by script.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use longhaul_client::card::Binding;
use longhaul_client::follow::{Event, EventStream};
use longhaul_client::{Client, ClientError};
use longhaul_tests::asked::Asked;
use longhaul_tests::hostile::{
    CONTEXT_ID, Hostile, Script, TASK_ID, item, operation, reply, rpc_error, status_update, task,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stories::{collect, hasty, shown};

/// The bindings that a scripted agent has.
pub const HTTP: [Binding; 2] = [Binding::JsonRpc, Binding::HttpJson];

/// An agent, and when it was asked what.
pub struct Scripted {
    pub hostile: Hostile,
    times: Arc<Mutex<Vec<(String, Instant)>>>,
}

/// What its card says about streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Streams {
    None,
    Plain,
    Numbered,
}

impl Scripted {
    /// `answer` is given the request, its operation, and how many of that operation came before.
    pub async fn start(
        streams: Streams,
        answer: impl Fn(&Asked, &str, usize) -> Script + Send + Sync + 'static,
    ) -> Self {
        let times: Arc<Mutex<Vec<(String, Instant)>>> = Arc::default();
        let counts: Mutex<HashMap<String, usize>> = Mutex::default();
        let seen = times.clone();
        let change = move |card: &mut Value, _: &str| {
            card["capabilities"]["streaming"] = (streams != Streams::None).into();
            if streams == Streams::Numbered {
                card["capabilities"]["extensions"] = json!([{"uri": longhaul_client::STREAM_RESUME}]);
            }
        };
        let hostile = Hostile::agent_with(change, move |asked| {
            let operation = operation(asked);
            seen.lock().unwrap().push((operation.clone(), Instant::now()));
            let nth = {
                let mut counts = counts.lock().unwrap();
                let count = counts.entry(operation.clone()).or_default();
                *count += 1;
                *count - 1
            };
            answer(asked, &operation, nth)
        })
        .await;
        Self { hostile, times }
    }

    /// A client that is quick to try again.
    pub async fn client(&self, binding: Binding) -> Client {
        hasty(binding).connect(&self.hostile.url()).await.unwrap()
    }

    /// When an operation was asked for.
    pub fn times(&self, operation: &str) -> Vec<Instant> {
        let times = self.times.lock().unwrap();
        times.iter().filter(|(asked, _)| asked == operation).map(|(_, time)| *time).collect()
    }

    /// All that was asked, in order.
    pub fn asked(&self) -> Vec<String> {
        self.times.lock().unwrap().iter().map(|(operation, _)| operation.clone()).collect()
    }
}

/// A status update.
pub fn status(state: &str) -> Value {
    status_update(&format!("TASK_STATE_{state}"))
}

/// A chunk of the one artifact.
pub fn chunk(text: &str) -> Value {
    json!({"artifactUpdate": {"taskId": TASK_ID, "contextId": CONTEXT_ID, "append": true,
        "artifact": {"artifactId": "a", "parts": [{"text": text}]}}})
}

/// The task with these chunks.
pub fn snapshot(state: &str, chunks: &[&str]) -> Value {
    let mut task = task(&format!("TASK_STATE_{state}"));
    if !chunks.is_empty() {
        let parts: Vec<Value> = chunks.iter().map(|text| json!({"text": text})).collect();
        task["artifacts"] = json!([{"artifactId": "a", "parts": parts}]);
    }
    task
}

/// A stream that begins so, and is not ended.
pub fn stream(asked: &Asked, items: &[Value]) -> Script {
    items.iter().fold(Script::events(), |script, each| script.event(&item(asked, each)))
}

/// The same with ids.
pub fn numbered(asked: &Asked, items: &[(u64, Value)]) -> Script {
    let event =
        |script: Script, (id, each): &(u64, Value)| script.chunk(format!("id: {id}\ndata: {}\n\n", item(asked, each)));
    items.iter().fold(Script::events(), event)
}

/// An error of the protocol, as a call's answer in either binding.
pub fn refusal(asked: &Asked, reason: &str, rpc: i64, http: u16) -> Script {
    let info =
        json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}]);
    if longhaul_tests::hostile::is_rpc(asked) {
        return Script::json(200, &rpc_error(asked, rpc, reason));
    }
    Script::json(http, &json!({"error": {"code": http, "message": reason, "details": info}}))
}

/// The task as an answer to `GetTask`.
pub fn found(asked: &Asked, task: &Value) -> Script {
    reply(asked, task)
}

/// What the events of a stream say, in short: states, and texts of chunks.
pub fn words(events: &[Event]) -> Vec<String> {
    events.iter().flat_map(|event| words_of(&shown(event))).collect()
}

fn words_of(item: &Value) -> Vec<String> {
    let texts = |artifact: &Value| -> Vec<String> {
        let parts = artifact["parts"].as_array().into_iter().flatten();
        parts.map(|part| part["text"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let state = |of: &Value| of["status"]["state"].as_str().unwrap_or_default().replace("TASK_STATE_", "");
    if let Some(task) = item.get("task") {
        let artifacts = task["artifacts"].as_array().into_iter().flatten();
        return [format!("task {}", state(task))].into_iter().chain(artifacts.flat_map(texts)).collect();
    }
    match (item.get("statusUpdate"), item.get("artifactUpdate")) {
        (Some(update), _) => vec![state(update)],
        (_, Some(update)) => texts(&update["artifact"]),
        _ => vec!["message".to_owned()],
    }
}

/// What a whole stream says.
pub async fn told(events: EventStream) -> Result<Vec<String>, ClientError> {
    let told = longhaul_tests::within(longhaul_tests::PATIENCE, "the end of a stream", collect(events)).await;
    told.map(|story| words(&story.events)).map_err(|(error, _)| error)
}
