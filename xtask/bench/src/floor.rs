//! The floor: what any Rust server must at least do for a `SendMessage`.
//!
//! A bare axum handler parses the request into types of its own and answers ready bytes, the same
//! ones that the server answers. It keeps nothing.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Flags of `longhaul-bench floor`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:4199")]
    listen: SocketAddr,
    /// File with the body of every answer; without one, an answer of the usual size.
    #[arg(long)]
    answer: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    jsonrpc: String,
    #[serde(default)]
    id: Value,
    method: String,
    params: Params,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    #[serde(default)]
    tenant: String,
    message: Message,
    #[serde(default)]
    configuration: Option<Configuration>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Configuration {
    accepted_output_modes: Vec<String>,
    history_length: Option<i32>,
    return_immediately: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: String,
    #[serde(default)]
    context_id: String,
    #[serde(default)]
    task_id: String,
    role: Role,
    parts: Vec<Part>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    extensions: Vec<String>,
    #[serde(default)]
    reference_task_ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
enum Role {
    #[serde(rename = "ROLE_USER")]
    User,
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Part {
    text: Option<String>,
    raw: Option<String>,
    url: Option<String>,
    data: Option<Value>,
    filename: String,
    media_type: String,
    metadata: Option<Map<String, Value>>,
}

/// Serves until the process is ended.
pub async fn serve(args: Args) -> Result<()> {
    let answer = match &args.answer {
        Some(path) => std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => usual_answer(),
    };
    let app = Router::new()
        .route("/", post(send_message))
        .route("/readyz", get(|| async { "" }))
        .with_state(Bytes::from(answer));
    let listener =
        tokio::net::TcpListener::bind(args.listen).await.with_context(|| format!("cannot bind {}", args.listen))?;
    let listener = listener.tap_io(|stream| {
        // A socket that refuses the option is one whose peer has gone.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await.context("cannot serve")
}

async fn send_message(State(answer): State<Bytes>, body: Bytes) -> Response {
    match serde_json::from_slice::<Request>(&body) {
        Ok(request) if request.is_sound() => (
            [(header::CONTENT_TYPE, "application/json"), (header::HeaderName::from_static("a2a-version"), "1.0")],
            answer,
        )
            .into_response(),
        Ok(_) => StatusCode::BAD_REQUEST.into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

impl Request {
    /// Looks at every member, so that no parsing can be left out.
    fn is_sound(&self) -> bool {
        let Self { jsonrpc, id, method, params } = self;
        jsonrpc == "2.0" && !id.is_object() && method == "SendMessage" && params.is_sound()
    }
}

impl Params {
    fn is_sound(&self) -> bool {
        let Self { tenant, message, configuration, metadata } = self;
        let configured = configuration.as_ref().is_none_or(|configuration| {
            let Configuration { accepted_output_modes, history_length, return_immediately } = configuration;
            accepted_output_modes.len() < 100 && history_length.is_none_or(|length| length >= 0) && !return_immediately
        });
        configured && tenant.len() < 100 && metadata.as_ref().is_none_or(|map| map.len() < 100) && message.is_sound()
    }
}

impl Message {
    fn is_sound(&self) -> bool {
        let Self { message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids } = self;
        matches!(role, Role::User)
            && !message_id.is_empty()
            && context_id.len() + task_id.len() < 1000
            && extensions.len() + reference_task_ids.len() < 100
            && metadata.as_ref().is_none_or(|map| map.len() < 100)
            && !parts.is_empty()
            && parts.iter().all(Part::is_sound)
    }
}

impl Part {
    fn is_sound(&self) -> bool {
        let Self { text, raw, url, data, filename, media_type, metadata } = self;
        let contents = [text.is_some(), raw.is_some(), url.is_some(), data.is_some()];
        contents.into_iter().filter(|present| *present).count() == 1
            && filename.len() + media_type.len() < 1000
            && metadata.as_ref().is_none_or(|map| map.len() < 100)
    }
}

fn usual_answer() -> Vec<u8> {
    serde_json::json!({
        "jsonrpc": "2.0",
        "id": 1,
        "result": { "task": {
            "id": "019d2f5a-7c11-7b3e-9d0a-3f6d2b8c1e01",
            "contextId": "019d2f5a-7c11-7b3e-9d0a-3f6d2b8c1e02",
            "status": { "state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-30T12:00:00.000Z" },
            "artifacts": [{ "artifactId": "echo", "parts": [{ "text": "echo hello" }] }],
            "history": [{
                "messageId": "bench-0000000000000001",
                "contextId": "019d2f5a-7c11-7b3e-9d0a-3f6d2b8c1e02",
                "taskId": "019d2f5a-7c11-7b3e-9d0a-3f6d2b8c1e01",
                "role": "ROLE_USER",
                "parts": [{ "text": "echo hello" }],
            }],
        } },
    })
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_of_the_generator_is_sound() {
        let mut request = crate::request::MessageRequest::send("echo hello").unwrap();
        let text = String::from_utf8(request.next().unwrap().to_vec()).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(serde_json::from_str::<Request>(body).unwrap().is_sound());
    }

    #[test]
    fn a_part_with_two_contents_is_not_sound() {
        let part: Part = serde_json::from_str(r#"{"text":"a","url":"b"}"#).unwrap();
        assert!(!part.is_sound());
    }
}
