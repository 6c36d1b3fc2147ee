use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use longhaul_protocol::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer::{Failure, explain};

/// More headers than any receiver has.
const HEADERS_MAX: usize = 100;
/// What the library asks for at least.
const HEAD_BYTES_MIN: usize = 8192;

/// A connection's bytes, plain or secured.
pub(super) trait Bidirectional: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bidirectional for T {}
pub(super) type Stream = Box<dyn Bidirectional>;

/// One connection. Nothing drives it but who waits for something on it, so it needs no task of its own.
pub(super) struct Link {
    requests: SendRequest<Full<Bytes>>,
    /// `None` once it has ended.
    connection: Option<Connection<TokioIo<Stream>, Full<Bytes>>>,
    pub(super) made_at: Timestamp,
}

/// The head of an answer, and the body that follows.
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<String>,
    pub(super) body: Incoming,
}

impl Link {
    pub(super) async fn new(stream: Stream, head_bytes_max: usize, now: Timestamp) -> Result<Self, Failure> {
        let mut builder = Builder::new();
        builder.max_headers(HEADERS_MAX).max_buf_size(head_bytes_max.max(HEAD_BYTES_MIN));
        let (requests, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| Failure::Exchange(explain(&error)))?;
        Ok(Self { requests, connection: Some(connection), made_at: now })
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Head, Failure> {
        let Self { requests, connection, .. } = self;
        let answer = async {
            requests.ready().await?;
            requests.send_request(request).await
        };
        let (head, body) =
            drive(connection, answer).await.map_err(|error| Failure::Exchange(explain(&error)))?.into_parts();
        let retry_after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Head { status: head.status, retry_after, body })
    }

    /// Reads a body and throws it away. Answers whether the connection can be used again: not if the body is longer than
    /// `bytes_max`, was cut, or if the receiver closes it.
    pub(super) async fn drain(&mut self, mut body: Incoming, bytes_max: usize) -> bool {
        let Self { requests, connection, .. } = self;
        let is_whole = drive(connection, async {
            let mut left = bytes_max;
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else { return false };
                match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                    Some(rest) => left = rest,
                    None => return false,
                }
            }
            true
        });
        is_whole.await && drive(connection, requests.ready()).await.is_ok() && connection.is_some()
    }

    /// Looks whether the other side has closed it, or sent what nobody asked for.
    pub(super) async fn is_open(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        poll_fn(|context| Poll::Ready(Pin::new(&mut *connection).poll(context).is_pending())).await
    }
}

/// Waits for `future` and moves the connection meanwhile.
async fn drive<F: Future>(connection: &mut Option<Connection<TokioIo<Stream>, Full<Bytes>>>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(output);
        }
        // What it ended with is told to whoever waits for an answer, so the future ends as well.
        if connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(context).is_ready()) {
            *connection = None;
            return future.as_mut().poll(context);
        }
        Poll::Pending
    })
    .await
}
