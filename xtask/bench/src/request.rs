//! Requests as ready bytes, in which only the message's id changes.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};

/// Numbers the messages of a run: no two of them have the same id.
static NEXT_MESSAGE: AtomicU64 = AtomicU64::new(1);

/// Digits that the number of a message takes.
const ID_DIGITS: usize = 16;

/// A JSON-RPC request that carries a message.
#[derive(Clone, Debug)]
pub struct MessageRequest {
    bytes: Vec<u8>,
    id: Range<usize>,
}

impl MessageRequest {
    /// A `SendMessage` with one text part.
    pub fn send(text: &str) -> Result<Self> {
        Self::new("SendMessage", text, None)
    }

    /// A `SendMessage` with one text part that is answered at once.
    pub fn leave(text: &str) -> Result<Self> {
        Self::new("SendMessage", text, Some(serde_json::json!({ "returnImmediately": true })))
    }

    /// A `SendMessage` with one text part, of whose task each event is pushed to `url`.
    pub fn pushing(text: &str, url: &str) -> Result<Self> {
        let push = serde_json::json!({ "taskPushNotificationConfig": { "id": "bench", "url": url } });
        Self::new("SendMessage", text, Some(push))
    }

    /// A `SendStreamingMessage` with one text part.
    pub fn stream(text: &str) -> Result<Self> {
        Self::new("SendStreamingMessage", text, None)
    }

    fn new(method: &str, text: &str, configuration: Option<serde_json::Value>) -> Result<Self> {
        let digits = "0".repeat(ID_DIGITS);
        let mut params = serde_json::json!({
            "message": {
                "messageId": format!("bench-{digits}"),
                "role": "ROLE_USER",
                "parts": [{ "text": text }],
            }
        });
        if let (Some(configuration), Some(members)) = (configuration, params.as_object_mut()) {
            members.insert("configuration".to_owned(), configuration);
        }
        let bytes = json_rpc(method, &params);
        let start = bytes
            .windows(ID_DIGITS)
            .position(|window| window == digits.as_bytes())
            .context("the request holds the message's id")?;
        Ok(Self { bytes, id: start..start + ID_DIGITS })
    }

    /// The bytes of one more request.
    pub fn next(&mut self) -> Result<&[u8]> {
        let mut number = NEXT_MESSAGE.fetch_add(1, Ordering::Relaxed);
        let id = self.bytes.get_mut(self.id.clone()).context("the id lies in the request")?;
        for digit in id.iter_mut().rev() {
            *digit = b"0123456789abcdef".get((number & 0xf) as usize).copied().unwrap_or(b'0');
            number >>= 4;
        }
        Ok(&self.bytes)
    }
}

/// The bytes of a `ListTasks` request; an empty token asks for the first page.
pub fn list_tasks(page_token: &str) -> Vec<u8> {
    json_rpc("ListTasks", &serde_json::json!({ "pageSize": 50, "pageToken": page_token }))
}

/// The bytes of a request that is about one task: `GetTask`, `SubscribeToTask`, `CancelTask`.
pub fn of_task(method: &str, task_id: &str) -> Vec<u8> {
    json_rpc(method, &serde_json::json!({ "id": task_id }))
}

/// The bytes of `GET path`.
pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

fn json_rpc(method: &str, params: &serde_json::Value) -> Vec<u8> {
    let body = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let length = body.len();
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\na2a-version: 1.0\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_its_own_message_id() {
        let mut request = MessageRequest::send("echo hello").unwrap();
        let first = request.next().unwrap().to_vec();
        let second = request.next().unwrap().to_vec();
        assert_eq!(first.len(), second.len());
        assert_ne!(first, second);
    }

    #[test]
    fn the_content_length_is_the_length_of_the_body() {
        let text = String::from_utf8(list_tasks("abc")).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
    }
}
