//! JSON-RPC and HTTP+JSON over a connection of [`crate::http`].

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::http::{Connection, Head, Request};
use crate::sse::{Item, Items};
use crate::{Binding, Call, CallError, Event, Refusal};

/// A client with one kept connection for calls; each stream has one of its own.
#[derive(Debug)]
pub struct HttpClient {
    binding: Binding,
    addr: SocketAddr,
    kept: Option<Connection>,
    spare: Option<Connection>,
    id: u64,
}

impl HttpClient {
    /// A client of one of the two.
    #[must_use]
    pub fn new(binding: Binding, addr: SocketAddr) -> Self {
        Self { binding, addr, kept: None, spare: None, id: 0 }
    }

    pub(crate) async fn call(&mut self, call: &Call) -> Result<Value, CallError> {
        let mut connection = match self.kept.take() {
            Some(connection) => connection,
            None => Connection::open(self.addr).await?,
        };
        let answer = connection.exchange(&self.request(call)).await?;
        self.kept = Some(connection);
        let expected = match self.binding {
            Binding::JsonRpc | Binding::Grpc => "application/json",
            Binding::HttpJson => "application/a2a+json",
        };
        assert_eq!(answer.head.media_type(), expected, "{call:?}: {answer:?}");
        assert_eq!(answer.header("a2a-version"), Some("1.0"), "{answer:?}");
        read(self.binding, self.id, &answer.head, answer.json())
    }

    /// Connects for the next stream.
    ///
    /// # Errors
    ///
    /// When nobody listens.
    pub async fn prepare(&mut self) -> Result<(), CallError> {
        self.spare = Some(Connection::open(self.addr).await?);
        Ok(())
    }

    /// Asks for a stream: see [`crate::Client::open`].
    ///
    /// # Errors
    ///
    /// When the server refuses, or is gone.
    pub async fn open(&mut self, call: &Call) -> Result<HttpStream, CallError> {
        let mut connection = match self.spare.take() {
            Some(connection) => connection,
            None => Connection::open(self.addr).await?,
        };
        let request = self.request(call).with("Accept", "text/event-stream");
        let head = connection.send(&request).await?;
        assert_eq!(head.header("a2a-version"), Some("1.0"), "{head:?}");
        if head.media_type() != "text/event-stream" {
            let answer = connection.answer(head).await?;
            let result = read(self.binding, self.id, &answer.head, answer.json())?;
            panic!("a stream was answered with one result: {result}");
        }
        assert_eq!(head.status, 200, "{head:?}");
        Ok(HttpStream { binding: self.binding, id: self.id, items: Items::new(connection) })
    }

    fn request(&mut self, call: &Call) -> Request {
        self.id += 1;
        let request = match self.binding {
            Binding::JsonRpc | Binding::Grpc => Request::new("POST", "/").json(&json!({
                "jsonrpc": "2.0",
                "id": self.id,
                "method": call.operation.name(),
                "params": call.params,
            })),
            Binding::HttpJson => http_json(call),
        };
        let headers = call.headers.iter();
        headers.fold(request, |request, (name, value)| request.with(name, value))
    }
}

/// The request of HTTP+JSON (§11.3): ids in the path, the rest in the query or the body.
fn http_json(call: &Call) -> Request {
    let (method, route) = call.operation.route();
    let mut rest = call.params.as_object().cloned().unwrap_or_default();
    let mut path = String::new();
    if let Some(tenant) = rest.shift_remove("tenant") {
        path.push('/');
        path.push_str(&escape(tenant.as_str().unwrap_or_default()));
    }
    path.push_str(route);
    for name in ["id", "taskId", "artifactId"] {
        let hole = format!("{{{name}}}");
        if path.contains(&hole) {
            let id = rest.shift_remove(name).unwrap_or_default();
            path = path.replace(&hole, &escape(id.as_str().unwrap_or_default()));
        }
    }
    if call.operation == crate::Operation::GetArtifact
        && let Some(version) = rest.shift_remove("version")
    {
        path.push_str(&format!("/versions/{version}"));
    }
    if method == "POST" {
        return Request::new(method, &path)
            .with("Content-Type", "application/a2a+json")
            .body(Value::Object(rest).to_string());
    }
    for (index, (name, value)) in rest.iter().enumerate() {
        let value = value.as_str().map_or(value.to_string(), str::to_owned);
        path.push(if index == 0 { '?' } else { '&' });
        path.push_str(&format!("{name}={}", escape(&value)));
    }
    Request::new(method, &path)
}

/// Escapes everything that is not unreserved, and dots that stand alone.
#[must_use]
pub fn escape(text: &str) -> String {
    let dots = matches!(text, "." | "..");
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'.' if dots => escaped.push_str("%2E"),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

/// Takes the result, or the error, out of an answer.
fn read(binding: Binding, id: u64, head: &Head, body: Value) -> Result<Value, CallError> {
    match binding {
        Binding::JsonRpc | Binding::Grpc => {
            assert_eq!(body["jsonrpc"], "2.0", "{body}");
            assert_eq!(body["id"], id, "{body}");
            let members = body.as_object().map_or(0, serde_json::Map::len);
            assert_eq!(members, 3, "either a result or an error: {body}");
            match body.get("error") {
                Some(error) => Err(CallError::Refused(Refusal::of_json_rpc(head.status, error))),
                None => Ok(body["result"].clone()),
            }
        }
        Binding::HttpJson if head.status == 200 => Ok(body),
        Binding::HttpJson => Err(CallError::Refused(Refusal::of_http(head.status, &body))),
    }
}

/// A stream of server-sent events.
#[derive(Debug)]
pub struct HttpStream {
    binding: Binding,
    id: u64,
    items: Items,
}

impl HttpStream {
    /// The next item: see [`crate::Stream::next`].
    ///
    /// # Errors
    ///
    /// When the stream ended with an error, or was cut.
    pub async fn next(&mut self) -> Result<Option<Event>, CallError> {
        loop {
            match self.items.next().await? {
                None => return Ok(None),
                Some(Item::Comment(_)) => {}
                Some(Item::Event { id, data }) => return self.event(id, data).map(Some),
            }
        }
    }

    fn event(&self, id: Option<String>, text: String) -> Result<Event, CallError> {
        let body: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("an event holds no JSON ({error}): {text}"));
        let head = Head { status: 200, headers: Vec::new() };
        // An error within an HTTP+JSON stream is its last item, in the form of an answer (§11.7).
        let data = match (self.binding, body.get("error")) {
            (Binding::HttpJson, Some(error)) => {
                let status = error["code"].as_u64().and_then(|code| code.try_into().ok());
                let refusal = Refusal::of_http(status.unwrap_or_default(), &body);
                return Err(CallError::Refused(refusal));
            }
            _ => read(self.binding, self.id, &head, body)?,
        };
        let sequence = id.map(|id| id.parse().expect("an event id is a number"));
        Ok(Event { sequence, data, text })
    }
}
