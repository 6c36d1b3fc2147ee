//! Server-sent events: each item with its sequence as `id`, and comments that keep an idle connection alive.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use longhaul_engine::{EngineError, EventStream, StreamItem};
use longhaul_protocol::A2aError;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use crate::follow::{Next, next};

/// Puts the payload of one event into the binding's form.
pub(crate) trait Envelope: Send + Sync + 'static {
    /// Appends an item's data to `out`, and says what comes then.
    ///
    /// # Errors
    ///
    /// When the item can't be told: the stream ends with the error.
    fn item(&mut self, item: &StreamItem, out: &mut BytesMut) -> Result<Then, A2aError>;
    /// Appends an error's data to `out`: the stream's last item.
    fn error(&self, error: &A2aError, out: &mut BytesMut);
}

/// What stands between two events that one item becomes.
pub(crate) const NEXT_EVENT: &[u8] = b"\n\ndata: ";

/// What comes after an item.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Then {
    /// The next one.
    More,
    /// Nothing: it is the last.
    End,
}

/// The body of an event stream. It is read only when its client takes more, so a slow one costs no memory.
pub(crate) struct SseBody {
    next: Option<Next>,
    envelope: Box<dyn Envelope>,
    keep_alive: Duration,
    idle: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl fmt::Debug for SseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseBody").field("keep_alive", &self.keep_alive).finish_non_exhaustive()
    }
}

impl SseBody {
    pub fn new(
        stream: EventStream,
        envelope: Box<dyn Envelope>,
        keep_alive: Duration,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let idle = Box::pin(tokio::time::sleep(keep_alive));
        Self { next: Some(next(stream)), envelope, keep_alive, idle, _permit: permit }
    }

    /// The next bytes to send; `None` when the stream has ended.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(waiting) = self.next.as_mut() else { return Poll::Ready(None) };
        if let Poll::Ready((stream, items)) = waiting.as_mut().poll(context) {
            self.next = None;
            self.idle.as_mut().reset(tokio::time::Instant::now() + self.keep_alive);
            return Poll::Ready(items.map(|items| self.encode(stream, items)));
        }
        if self.idle.as_mut().poll(context).is_ready() {
            self.idle.as_mut().reset(tokio::time::Instant::now() + self.keep_alive);
            // Polled once more, so that the new deadline wakes this task.
            let _ = self.idle.as_mut().poll(context);
            return Poll::Ready(Some(Bytes::from_static(b": keep-alive\n\n")));
        }
        Poll::Pending
    }

    fn encode(&mut self, stream: EventStream, items: Result<Vec<StreamItem>, EngineError>) -> Bytes {
        let mut out = BytesMut::new();
        match items.map_err(crate::operation::told).and_then(|items| self.put_items(&items, &mut out)) {
            Ok(Then::More) => self.next = Some(next(stream)),
            Ok(Then::End) => {}
            Err(error) => {
                out.put_slice(b"event: error\ndata: ");
                self.envelope.error(&error, &mut out);
                out.put_slice(b"\n\n");
            }
        }
        out.freeze()
    }

    fn put_items(&mut self, items: &[StreamItem], out: &mut BytesMut) -> Result<Then, A2aError> {
        out.reserve(items.iter().map(|item| item.payload.len() + 96).sum());
        for item in items {
            let begin = out.len();
            if let Some(sequence) = item.sequence {
                out.put_slice(format!("id: {sequence}\n").as_bytes());
            }
            out.put_slice(b"data: ");
            match self.envelope.item(item, out) {
                Ok(then) => {
                    out.put_slice(b"\n\n");
                    if then == Then::End {
                        return Ok(then);
                    }
                }
                Err(error) => {
                    out.truncate(begin);
                    return Err(error);
                }
            }
        }
        Ok(Then::More)
    }
}
