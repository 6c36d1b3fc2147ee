//! gRPC (§10), over the same connections as the others.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use http::{HeaderMap, Uri};
use hyper_util::client::legacy;
use longhaul_protobuf::ConvertError;
use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_protobuf::artifact::artifact_service_client::ArtifactServiceClient;
use longhaul_protocol::{to_json, wire};
use tokio::time::timeout_at;
use tonic::metadata::MetadataMap;
use tonic::{Code, Extensions, Request, Status};

use super::exchange::Exchange;
use super::said::{Dialect, GrpcError, GrpcStream};
use super::stream::{About, RawItem, RawStream};
use crate::error::{Cause, ClientError};
use crate::interceptor::{WireEvent, redacted};
use crate::operation::{GrpcClients, Opening, Operation, Reply as _, v0_3};
use crate::transport::{Deadline, connecting_failed};

/// The metadata in which a server says where its first item is in the task's log.
const LAST_EVENT_ID: &str = "last-event-id";
/// The binding's name, where HTTP has a method.
const METHOD: &str = "gRPC";

/// Calls an operation.
pub(crate) async fn call<D: Dialect, O: Operation>(
    exchange: &Exchange<'_>,
    request: O,
    deadline: Deadline,
) -> Result<O::Reply, ClientError> {
    let clients = clients(exchange, exchange.transport.config.answer_bytes_max)?;
    if exchange.log.is_some() {
        log_request(exchange, &to_json(&request));
    }
    let said = D::grpc(clients, with_metadata(request, &exchange.headers, deadline))?;
    let answer =
        timeout_at(deadline.at, said.answer).await.map_err(|_| deadline.passed(exchange.interface.to_owned()))?;
    match answer {
        Ok(answer) => {
            exchange.log(&WireEvent::Answer { operation: exchange.operation, status: 0, body: b"" });
            answer.into_inner().map_err(|error| exchange.invalid(error.to_string()))
        }
        Err(status) => {
            let code = i64::from(i32::from(status.code()));
            exchange.log(&WireEvent::Answer {
                operation: exchange.operation,
                status: code,
                body: status.message().as_bytes(),
            });
            let limits = Limits { bytes_max: exchange.transport.config.answer_bytes_max, deadline };
            Err(refused(status, exchange.interface, limits, said.error))
        }
    }
}

fn log_request(exchange: &Exchange<'_>, body: &[u8]) {
    exchange.log(&WireEvent::Request {
        operation: exchange.operation,
        method: METHOD,
        url: exchange.interface,
        headers: &redacted(&exchange.headers, &exchange.secret),
        body,
    });
}

fn clients(exchange: &Exchange<'_>, bytes_max: usize) -> Result<GrpcClients, ClientError> {
    // The path of a method goes behind the URL's own.
    let origin: Uri = exchange.interface.trim_end_matches('/').parse().map_err(|error| ClientError::Invalid {
        field: "the interface's URL".to_owned(),
        problem: format!("{:?} is none for gRPC: {error}", exchange.interface),
    })?;
    exchange.transport.check(&origin)?;
    let http = exchange.transport.grpc();
    let a2a = A2aServiceClient::with_origin(http.clone(), origin.clone()).max_decoding_message_size(bytes_max);
    let a2a_v0_3 = v0_3::Client::with_origin(http.clone(), origin.clone()).max_decoding_message_size(bytes_max);
    let artifact = ArtifactServiceClient::with_origin(http, origin).max_decoding_message_size(bytes_max);
    Ok(GrpcClients { a2a, a2a_v0_3, artifact })
}

/// The request with its metadata, and the time that is left as the server's own deadline where `deadline` is for all of it.
fn with_metadata<T>(message: T, headers: &HeaderMap, deadline: Deadline) -> Request<T> {
    let mut request = Request::from_parts(MetadataMap::from_headers(headers.clone()), Extensions::new(), message);
    request.set_timeout(deadline.after);
    request
}

/// What an answer had to keep to.
#[derive(Clone, Copy, Debug)]
struct Limits {
    bytes_max: usize,
    deadline: Deadline,
}

/// The kind of error that a status is.
fn refused(status: Status, whom: &str, limits: Limits, read: GrpcError) -> ClientError {
    let Limits { bytes_max, deadline } = limits;
    let whom = whom.to_owned();
    let local = status.source().is_some();
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => {
            ClientError::Unauthorized { whom, message: status.message().to_owned(), challenge: None }
        }
        Code::DeadlineExceeded | Code::Cancelled if !local && status.details().is_empty() => deadline.passed(whom),
        Code::OutOfRange if status.message().contains("decoded message length too large") => {
            ClientError::TooLarge { whom, what: "an answer", bytes_max }
        }
        _ if local => of_transport(status, whom),
        _ if status.details().is_empty() && is_framing(&status) => {
            ClientError::InvalidAnswer { whom, what: status.message().to_owned() }
        }
        _ => ClientError::Agent(read(&status)),
    }
}

/// What tonic itself says of answers that are no gRPC.
fn is_framing(status: &Status) -> bool {
    let message = status.message();
    message.starts_with("failed to decode Protobuf message")
        || message.starts_with("protocol error:")
        || message.contains("grpc-status header missing")
        || message.starts_with("the message is not of the type that the method takes")
        || message == "Missing response message."
}

/// A failure below gRPC: no connection, or one that broke.
fn of_transport(status: Status, whom: String) -> ClientError {
    let mut cause = status.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<legacy::Error>() {
            let is_connect = error.is_connect();
            let source: Cause = Box::new(status);
            return match is_connect {
                true => connecting_failed(source, whom),
                false => ClientError::Broken { whom, source },
            };
        }
        cause = error.source();
    }
    ClientError::Broken { whom, source: Box::new(status) }
}

/// Opens a stream.
pub(crate) async fn open_stream<D: Dialect>(
    exchange: Exchange<'_>,
    opening: Opening,
    deadline: Deadline,
) -> Result<RawStream, ClientError> {
    let bytes_max = exchange.transport.config.event_bytes_max;
    let clients = clients(&exchange, bytes_max)?;
    if exchange.log.is_some() {
        log_request(&exchange, &opening.json());
    }
    // A stream outlives the deadline of its opening, so the server is not told of it.
    let metadata = MetadataMap::from_headers(exchange.headers.clone());
    let is_subscription = matches!(opening, Opening::Subscribe(_));
    let said = D::grpc_stream(clients, Request::from_parts(metadata, Extensions::new(), opening));
    let opened =
        timeout_at(deadline.at, said.answer).await.map_err(|_| deadline.passed(exchange.interface.to_owned()))?;
    let limits = Limits { bytes_max, deadline };
    let answer = opened.map_err(|status| refused(status, exchange.interface, limits, said.error))?;
    let sequence = answer.metadata().get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let about = About::of(&exchange);
    let silence_max = exchange.transport.config.stream_silence_max;
    let silent_until = is_subscription.then(|| Deadline::after(silence_max));
    let stream = answer.into_inner();
    let items = GrpcItems { stream, sequence, limits, error: said.error, silence_max, silent_until };
    Ok(RawStream::of_grpc(items, about))
}

/// The items of a stream over gRPC.
pub(super) struct GrpcItems {
    stream: GrpcStream,
    /// Where the next item is in the task's log: gRPC has no place for an id beside an item, but sequences have no gaps.
    sequence: Option<u64>,
    limits: Limits,
    error: GrpcError,
    silence_max: Duration,
    /// When the next item has to be there; none while an agent may still be thinking about its answer to a message.
    silent_until: Option<Deadline>,
}

impl fmt::Debug for GrpcItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcItems").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl GrpcItems {
    pub async fn next(&mut self, about: &About) -> Option<Result<RawItem, ClientError>> {
        let next = match self.silent_until {
            None => self.stream.next().await,
            Some(until) => match timeout_at(until.at, self.stream.next()).await {
                Ok(next) => next,
                Err(_) => return Some(Err(until.passed(about.whom.clone()))),
            },
        };
        self.silent_until = Some(Deadline::after(self.silence_max));
        let payload = match next? {
            Err(status) => return Some(Err(refused(status, &about.whom, self.limits, self.error))),
            Ok(payload) => payload,
        };
        let id = self.sequence.map(|sequence| Arc::from(sequence.to_string()));
        self.sequence = self.sequence.map(|sequence| sequence.saturating_add(1));
        Some(read(payload, id, about))
    }
}

fn read(
    payload: Result<wire::StreamResponse, ConvertError>,
    id: Option<Arc<str>>,
    about: &About,
) -> Result<RawItem, ClientError> {
    let mut payload = payload.map_err(|error| about.invalid(error.to_string()))?;
    if about.log.is_some() {
        about.item(id.as_deref(), &to_json(&payload));
    }
    if payload.payload.is_none() {
        return Err(about.invalid("an item of the stream holds no task, message or update".to_owned()));
    }
    payload.normalize();
    Ok(RawItem { id, payload })
}
