//! A connection of HTTP/1.1 that hides nothing: exact request bytes, status, headers, framing.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A request as it goes out. Only `Host` and `Content-Length` are added.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The request target, sent as it is.
    pub target: String,
    /// Headers in this order.
    pub headers: Vec<(String, String)>,
    /// The body; `None`: neither body nor `Content-Length`.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: None }
    }

    /// A `GET` without headers.
    #[must_use]
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds `A2A-Version: 1.0`.
    #[must_use]
    pub fn v1(self) -> Self {
        self.with("A2A-Version", "1.0")
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets a JSON body, with its content type.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.with("Content-Type", "application/json").body(body.to_string())
    }

    /// The bytes on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: test\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}

/// Status line and headers of an answer.
#[derive(Clone, Debug)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// The headers, in their order.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The value of a header; its name is compared without case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The content type without its parameters.
    #[must_use]
    pub fn media_type(&self) -> &str {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim()
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Status line and headers.
    pub head: Head,
    /// The body, without its framing.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {} {}", self.status, self.text()))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }
}

/// How much of the body is still to come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rest {
    None,
    Bytes(usize),
    Chunks,
    UntilClosed,
}

/// One connection; requests follow each other on it.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    rest: Rest,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When nobody listens.
    pub async fn open(addr: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }

    /// Uses this socket.
    #[must_use]
    pub fn over(stream: TcpStream) -> Self {
        Self { stream: BufReader::new(stream), rest: Rest::None }
    }

    /// The socket, for bytes that make no whole request.
    pub fn socket(&mut self) -> &mut TcpStream {
        self.stream.get_mut()
    }

    /// Sends a request and reads its whole answer.
    ///
    /// # Errors
    ///
    /// When the connection is cut before the answer is whole.
    pub async fn exchange(&mut self, request: &Request) -> Result<Answer> {
        let head = self.send(request).await?;
        self.answer(head).await
    }

    /// Sends a request and reads the head of its answer.
    ///
    /// # Errors
    ///
    /// When the connection is cut.
    pub async fn send(&mut self, request: &Request) -> Result<Head> {
        self.stream.get_mut().write_all(&request.to_bytes()).await?;
        self.head(&request.method).await
    }

    /// Reads the rest of an answer whose head was read.
    ///
    /// # Errors
    ///
    /// When the connection is cut before the answer is whole.
    pub async fn answer(&mut self, head: Head) -> Result<Answer> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status: head.status, head, body })
    }

    /// Reads the head of an answer to a request of this method.
    ///
    /// # Errors
    ///
    /// When the connection is cut, or this is no HTTP.
    pub async fn head(&mut self, method: &str) -> Result<Head> {
        let first = self.line().await?;
        let status = first
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(|| broken(format!("no status line: {first:?}")))?;
        let mut head = Head { status, headers: Vec::new() };
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| broken(format!("no header: {line:?}")))?;
            head.headers.push((name.to_owned(), value.trim().to_owned()));
        }
        self.rest = framing(&head, method)?;
        Ok(head)
    }

    /// The next piece of the body, as it comes; `None` at its end.
    ///
    /// # Errors
    ///
    /// When the connection is cut before the body has ended.
    pub async fn piece(&mut self) -> Result<Option<Vec<u8>>> {
        match self.rest {
            Rest::None | Rest::Bytes(0) => {
                self.rest = Rest::None;
                Ok(None)
            }
            Rest::Bytes(left) => {
                let mut piece = vec![0; left.min(64 * 1024)];
                let read = self.stream.read(&mut piece).await?;
                if read == 0 {
                    return Err(cut());
                }
                piece.truncate(read);
                self.rest = Rest::Bytes(left - read);
                Ok(Some(piece))
            }
            Rest::Chunks => self.chunk().await,
            Rest::UntilClosed => {
                let mut piece = vec![0; 64 * 1024];
                let read = self.stream.read(&mut piece).await?;
                piece.truncate(read);
                Ok((read > 0).then_some(piece))
            }
        }
    }

    async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let line = self.line().await?;
        let digits = line.split(';').next().unwrap_or_default();
        let length =
            usize::from_str_radix(digits, 16).map_err(|error| broken(format!("no chunk ({error}): {line:?}")))?;
        let mut piece = vec![0; length];
        self.stream.read_exact(&mut piece).await?;
        let end = self.line().await?;
        if !end.is_empty() {
            return Err(broken(format!("a chunk is longer than it said: {end:?}")));
        }
        if length == 0 {
            self.rest = Rest::None;
            return Ok(None);
        }
        Ok(Some(piece))
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        let end = line.strip_suffix("\r\n").ok_or_else(cut)?;
        Ok(end.to_owned())
    }
}

fn framing(head: &Head, method: &str) -> Result<Rest> {
    if method == "HEAD" || matches!(head.status, 100..=199 | 204 | 304) {
        return Ok(Rest::None);
    }
    if let Some(coding) = head.header("transfer-encoding") {
        return match coding {
            "chunked" => Ok(Rest::Chunks),
            other => Err(broken(format!("transfer coding {other:?}"))),
        };
    }
    match head.header("content-length") {
        Some(length) => match length.parse() {
            Ok(length) => Ok(Rest::Bytes(length)),
            Err(_) => Err(broken(format!("content length {length:?}"))),
        },
        None => Ok(Rest::UntilClosed),
    }
}

fn cut() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the connection was cut")
}

fn broken(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
