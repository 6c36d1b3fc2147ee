//! One request over HTTP and its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;

use crate::error::{AgentError, ClientError};
use crate::interceptor::{REDACTED, WireEvent, WireLog, redacted};
use crate::transport::{Deadline, Transport, http_error};

/// All that an attempt of a call needs, whatever its binding.
#[derive(Clone, Debug)]
pub(crate) struct Exchange<'a> {
    pub operation: &'static str,
    pub transport: &'a Transport,
    /// The URL of the interface.
    pub interface: &'a str,
    /// The headers of the call, or its metadata.
    pub headers: HeaderMap,
    /// Those of them that hold what nobody may see.
    pub secret: Vec<HeaderName>,
    /// Parameters that a credential adds to the URL, encoded.
    pub query: String,
    pub log: Option<Arc<dyn WireLog>>,
}

/// Where a request goes, and in which form.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub method: Method,
    pub url: String,
    pub kind: Kind,
}

/// What is sent and asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// JSON-RPC, and HTTP+JSON before v1.0.
    Json,
    /// HTTP+JSON.
    A2aJson,
    /// A stream over HTTP+JSON.
    EventStream,
    /// A stream over JSON-RPC, and over HTTP+JSON before v1.0.
    JsonEventStream,
}

impl Kind {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json | Self::JsonEventStream => "application/json",
            Self::A2aJson | Self::EventStream => "application/a2a+json",
        }
    }

    fn accept(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::A2aJson => "application/a2a+json, application/json",
            Self::EventStream | Self::JsonEventStream => {
                "text/event-stream, application/a2a+json;q=0.9, application/json;q=0.9"
            }
        }
    }
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Whole {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Whole {
    /// The error that an answer is which has no status of success, with what the agent said in it if it did.
    pub fn refused(&self, whom: &str, said: Option<AgentError>) -> ClientError {
        match said {
            Some(error) if !matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                ClientError::Agent(error)
            }
            Some(_) | None => http_error(whom, self.status, &self.headers, &self.body),
        }
    }
}

impl Exchange<'_> {
    /// Sends a request, and reads the answer whole.
    pub async fn whole(&self, target: Target, body: Bytes, deadline: Deadline) -> Result<Whole, ClientError> {
        let answer = self.head(target, body, deadline).await?;
        self.rest(answer, deadline).await
    }

    /// Reads the body of an answer whose head is there.
    pub async fn rest(&self, answer: Response<Incoming>, deadline: Deadline) -> Result<Whole, ClientError> {
        let (head, body) = answer.into_parts();
        let bytes_max = self.transport.config.answer_bytes_max;
        let body = self.transport.read(body, bytes_max, self.interface, deadline).await?;
        self.log(&WireEvent::Answer {
            operation: self.operation,
            status: i64::from(head.status.as_u16()),
            body: &body,
        });
        Ok(Whole { status: head.status, headers: head.headers, body })
    }

    /// Sends a request, and answers when the head of the answer is there.
    pub async fn head(
        &self,
        target: Target,
        body: Bytes,
        deadline: Deadline,
    ) -> Result<Response<Incoming>, ClientError> {
        let url = self.with_query(&target.url, &self.query);
        let mut request = Request::builder().method(target.method).uri(&url);
        if let Some(headers) = request.headers_mut() {
            headers.clone_from(&self.headers);
            headers.insert(header::ACCEPT, HeaderValue::from_static(target.kind.accept()));
            if !body.is_empty() {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(target.kind.content_type()));
            }
        }
        let request = request.body(Full::new(body.clone())).map_err(|error| ClientError::Invalid {
            field: "the interface's URL".to_owned(),
            problem: format!("{:?} is none: {error}", self.interface),
        })?;
        if self.log.is_some() {
            let shown = if self.query.is_empty() { target.url } else { self.with_query(&target.url, REDACTED) };
            self.log(&WireEvent::Request {
                operation: self.operation,
                method: request.method().as_str(),
                url: &shown,
                headers: &redacted(request.headers(), &self.secret),
                body: &body,
            });
        }
        self.transport.send(request, deadline).await
    }

    fn with_query(&self, url: &str, query: &str) -> String {
        match (query, url.contains('?')) {
            ("", _) => url.to_owned(),
            (_, true) => format!("{url}&{query}"),
            (_, false) => format!("{url}?{query}"),
        }
    }

    /// An answer that is none.
    pub fn invalid(&self, what: String) -> ClientError {
        ClientError::InvalidAnswer { whom: self.interface.to_owned(), what }
    }

    pub fn log(&self, event: &WireEvent<'_>) {
        if let Some(log) = &self.log {
            log.record(event);
        }
    }
}
