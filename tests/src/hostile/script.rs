//! What is written to a client, and when.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

/// One step of an answer.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes these bytes at once.
    Write(Vec<u8>),
    /// Writes these bytes, each alone.
    Drip(Vec<u8>),
    /// Writes the same bytes again and again. Nothing is held in memory but one piece.
    Flood {
        /// What is written.
        piece: Vec<u8>,
        /// How often.
        times: u64,
    },
    /// Waits so long.
    Pause(Duration),
    /// Waits until the test lets it go on.
    Wait(Gate),
    /// Says nothing more, until the client goes.
    Stall,
    /// Closes the connection.
    Close,
    /// Closes it with a reset instead of an orderly end.
    Reset,
}

/// A place where a script waits for the test. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets everybody pass, from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open.
    pub async fn passed(&self) {
        // The sender is this gate's own, so it is still there.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// The steps of one answer.
#[derive(Clone, Debug, Default)]
pub struct Script(Vec<Step>);

impl Script {
    /// Nothing: the client waits, and may ask again.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Status line and headers, as they are given: no framing is added.
    #[must_use]
    pub fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", phrase(status));
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Self::new().write(head)
    }

    /// A whole answer with its right length.
    #[must_use]
    pub fn whole(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = body.len().to_string();
        let headers = [headers, &[("Content-Length", length.as_str())]].concat();
        Self::head(status, &headers).write(body)
    }

    /// A whole answer in JSON.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::whole(status, &[("Content-Type", "application/json")], body.to_string())
    }

    /// The head of a stream of events, in chunks.
    #[must_use]
    pub fn events() -> Self {
        let headers = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")];
        Self::head(200, &headers)
    }

    /// A stream of events with these bytes, each piece a chunk, and its orderly end.
    #[must_use]
    pub fn stream<Piece: Into<Vec<u8>>>(pieces: impl IntoIterator<Item = Piece>) -> Self {
        pieces.into_iter().fold(Self::events(), |script, piece| script.chunk(piece)).end()
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// Adds the steps of another.
    #[must_use]
    pub fn followed_by(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Adds bytes.
    #[must_use]
    pub fn write(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Write(bytes.into()))
    }

    /// Adds one chunk of a chunked body.
    #[must_use]
    pub fn chunk(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.write(chunk(&bytes.into()))
    }

    /// Adds an event in a chunk of its own.
    #[must_use]
    pub fn event(self, data: &Value) -> Self {
        self.chunk(format!("data: {data}\n\n"))
    }

    /// Adds the end of a chunked body.
    #[must_use]
    pub fn end(self) -> Self {
        self.write("0\r\n\r\n")
    }

    /// Writes so many bytes of it, and closes the connection. Floods are left out.
    #[must_use]
    pub fn cut_after(self, bytes: usize) -> Self {
        let (mut left, mut steps) = (bytes, Vec::new());
        for mut step in self.0 {
            match &mut step {
                Step::Write(written) | Step::Drip(written) => {
                    written.truncate(left);
                    left -= written.len();
                }
                Step::Flood { .. } => continue,
                Step::Pause(_) | Step::Wait(_) => {}
                Step::Stall | Step::Close | Step::Reset => break,
            }
            steps.push(step);
            if left == 0 {
                break;
            }
        }
        steps.push(Step::Close);
        Self(steps)
    }

    /// Writes each byte of it alone.
    #[must_use]
    pub fn dripping(self) -> Self {
        let drip = |step| match step {
            Step::Write(bytes) => Step::Drip(bytes),
            other => other,
        };
        Self(self.0.into_iter().map(drip).collect())
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.0
    }
}

/// One chunk of a chunked body; an empty one would be its end, and is nothing here.
pub(super) fn chunk(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

fn phrase(status: u16) -> &'static str {
    let status = http::StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("Status")
}
