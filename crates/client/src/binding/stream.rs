//! One stream of events as it comes over one connection, with nothing mended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use longhaul_protocol::wire;
use tokio::time::timeout_at;

use super::exchange::{Exchange, Target};
use super::grpc::GrpcItems;
use super::json_rpc;
use super::said::{HttpError, Read, RpcError};
use crate::client::event_id_header;
use crate::error::ClientError;
use crate::interceptor::{WireEvent, WireLog};
use crate::operation::Reply as _;
use crate::sse::{SseError, SseEvent, SseLimits, SseParser};
use crate::transport::{Deadline, Lane};

/// The media type of a stream.
const EVENT_STREAM: &str = "text/event-stream";

/// One item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RawItem {
    /// Where it is in the log of the task, for a server that says so.
    pub id: Option<Arc<str>>,
    pub payload: wire::StreamResponse,
}

/// How the items of a stream over HTTP are read.
#[derive(Debug)]
pub(crate) struct Reading {
    pub item: Read<wire::StreamResponse>,
    pub framing: Framing,
}

/// What items are in, and errors instead of them.
#[derive(Debug)]
pub(crate) enum Framing {
    /// That of JSON-RPC, with the id of the request.
    JsonRpc { id: String, error: RpcError },
    /// Nothing: an error is told by its members.
    None { error: HttpError },
}

/// A stream over one connection.
#[derive(Debug)]
pub(crate) struct RawStream {
    source: Source,
    about: About,
    history: History,
}

/// What of a task's history is handed on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum History {
    /// What came.
    AsItCame,
    /// Nothing.
    None,
}

#[derive(Debug)]
enum Source {
    Sse(Box<Sse>),
    /// A server that does not stream answered with one item.
    Single(Option<Box<RawItem>>),
    Grpc(Box<GrpcItems>),
}

/// What errors and the log name.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub operation: &'static str,
    pub whom: String,
    pub log: Option<Arc<dyn WireLog>>,
    /// The stream's place on its connection, as long as it lives.
    _lane: Option<Lane>,
}

impl About {
    pub fn of(exchange: &Exchange<'_>) -> Self {
        Self {
            operation: exchange.operation,
            whom: exchange.interface.to_owned(),
            log: exchange.log.clone(),
            _lane: exchange.transport.lane.clone(),
        }
    }

    pub fn item(&self, id: Option<&str>, body: &[u8]) {
        if let Some(log) = &self.log {
            log.record(&WireEvent::Item { operation: self.operation, id, body });
        }
    }

    pub fn invalid(&self, what: String) -> ClientError {
        ClientError::InvalidAnswer { whom: self.whom.clone(), what }
    }
}

#[derive(Debug)]
struct Sse {
    body: Incoming,
    parser: SseParser,
    reading: Reading,
    silence_max: Duration,
    /// When the first event has to be there, if that is later than the silence allows; none once it is.
    first_by: Option<Deadline>,
    /// Why nothing more can be read, once the events before it are handed on.
    failed: Option<SseError>,
}

impl RawStream {
    pub(super) fn of_grpc(items: GrpcItems, about: About) -> Self {
        Self::new(Source::Grpc(Box::new(items)), about)
    }

    fn new(source: Source, about: About) -> Self {
        Self { source, about, history: History::AsItCame }
    }

    /// The same stream, with tasks that have no history.
    #[must_use]
    pub fn without_history(self) -> Self {
        Self { history: History::None, ..self }
    }

    /// Opens a stream over HTTP.
    pub async fn open(
        exchange: Exchange<'_>,
        target: Target,
        body: Bytes,
        reading: Reading,
        deadline: Deadline,
    ) -> Result<Self, ClientError> {
        let about = About::of(&exchange);
        let answer = exchange.head(target, body, deadline).await?;
        let is_stream =
            answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(|kind| {
                kind.trim_start().get(..EVENT_STREAM.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM))
            });
        let config = &exchange.transport.config;
        if answer.status().is_success() && is_stream {
            let limits = SseLimits { event_bytes_max: config.event_bytes_max, line_bytes_max: config.event_bytes_max };
            let sse = Sse {
                body: answer.into_body(),
                parser: SseParser::new(limits),
                reading,
                silence_max: config.stream_silence_max,
                first_by: Some(deadline),
                failed: None,
            };
            return Ok(Self::new(Source::Sse(Box::new(sse)), about));
        }
        let answer = exchange.rest(answer, deadline).await?;
        if answer.status.is_success() {
            let payload = about.payload(&answer.body, &reading)?;
            return Ok(Self::new(Source::Single(Some(Box::new(RawItem { id: None, payload }))), about));
        }
        let said = match reading.framing {
            Framing::JsonRpc { id, error } => {
                json_rpc::open(&answer.body, &id, error).ok().and_then(json_rpc::Held::error)
            }
            Framing::None { error } => error(&answer.body, answer.status),
        };
        Err(answer.refused(exchange.interface, said))
    }

    /// The wait before a reconnect that the server asked for last. Any length.
    pub fn retry(&self) -> Option<Duration> {
        match &self.source {
            Source::Sse(sse) => sse.parser.retry(),
            Source::Single(_) | Source::Grpc(_) => None,
        }
    }

    /// The next item; none when the server has ended the stream in order.
    ///
    /// # Errors
    ///
    /// Whatever cut it. After an error there is nothing more.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses nothing.
    pub async fn next(&mut self) -> Option<Result<RawItem, ClientError>> {
        let mut next = self.come().await;
        if self.history == History::None
            && let Some(Ok(RawItem { payload, .. })) = &mut next
            && let Some(wire::StreamResponsePayload::Task(task)) = &mut payload.payload
        {
            task.history.clear();
        }
        next
    }

    async fn come(&mut self) -> Option<Result<RawItem, ClientError>> {
        let next = match &mut self.source {
            Source::Single(item) => item.take().map(|item| Ok(*item)),
            Source::Sse(sse) => sse.next(&self.about).await,
            Source::Grpc(items) => items.next(&self.about).await,
        };
        let error = match &next {
            Some(Ok(_)) => return next,
            Some(Err(error)) => Some(error),
            None => None,
        };
        if let Some(log) = &self.about.log {
            log.record(&WireEvent::StreamEnd { operation: self.about.operation, error });
        }
        next
    }
}

impl Sse {
    /// How long nothing may come from now on.
    fn silence(&self) -> Deadline {
        let silence = Deadline::after(self.silence_max);
        self.first_by.filter(|first| first.at > silence.at).unwrap_or(silence)
    }

    async fn next(&mut self, about: &About) -> Option<Result<RawItem, ClientError>> {
        loop {
            for event in self.parser.by_ref() {
                if !event.data.is_empty() {
                    self.first_by = None;
                    return Some(about.read(&event, &self.reading));
                }
            }
            if let Some(error) = self.failed {
                return Some(Err(about.too_large(error)));
            }
            let silence = self.silence();
            match timeout_at(silence.at, self.body.frame()).await {
                Err(_) => return Some(Err(silence.passed(about.whom.clone()))),
                Ok(None) if self.parser.is_in_event() => {
                    return Some(Err(about.broken("an event was cut in two".into())));
                }
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some(Err(about.broken(error.into()))),
                Ok(Some(Ok(frame))) => {
                    // The events that the same bytes completed come before the error.
                    self.failed = frame.data_ref().and_then(|data| self.parser.feed(data).err());
                }
            }
        }
    }
}

impl About {
    fn read(&self, event: &SseEvent, reading: &Reading) -> Result<RawItem, ClientError> {
        self.item(event.id.as_deref(), &event.data);
        let payload = self.payload(&event.data, reading)?;
        // A stream can't be resumed after an id that can't be sent back: it is as good as none.
        let id = event.id.clone().filter(|id| event_id_header(id).is_some());
        Ok(RawItem { id, payload })
    }

    /// Takes an item out of its envelope.
    fn payload(&self, json: &[u8], reading: &Reading) -> Result<wire::StreamResponse, ClientError> {
        let read = match &reading.framing {
            Framing::JsonRpc { id, error } => {
                match json_rpc::open(json, id, *error).map_err(|what| self.invalid(what))? {
                    json_rpc::Held::Result(result) => (reading.item)(result),
                    json_rpc::Held::Error(error) => return Err(ClientError::Agent(error)),
                }
            }
            Framing::None { .. } => (reading.item)(json),
        };
        let problem = match read {
            Ok(mut item) if item.payload.is_some() => {
                item.normalize();
                return Ok(item);
            }
            Ok(_) => "an item of the stream holds no task, message or update".to_owned(),
            Err(error) => format!("an item of the stream: {error}"),
        };
        // Over HTTP+JSON an error has no envelope that tells it from an item.
        let told = match &reading.framing {
            Framing::JsonRpc { .. } => None,
            Framing::None { error } => error(json, http::StatusCode::OK),
        };
        Err(told.map_or_else(|| self.invalid(problem), ClientError::Agent))
    }

    pub fn broken(&self, source: crate::error::Cause) -> ClientError {
        ClientError::Broken { whom: self.whom.clone(), source }
    }

    fn too_large(&self, error: SseError) -> ClientError {
        let (what, bytes_max) = match error {
            SseError::LineTooLong { bytes_max } => ("a line of a stream", bytes_max),
            SseError::EventTooLarge { bytes_max } => ("an event of a stream", bytes_max),
        };
        ClientError::TooLarge { whom: self.whom.clone(), what, bytes_max }
    }
}
