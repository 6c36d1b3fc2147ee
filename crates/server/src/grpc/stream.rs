use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream as FuturesStream;
use longhaul_engine::StreamItem;
use longhaul_protocol::A2aError;
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Response, Status};

use crate::follow::{Next, next};
use crate::operation::{Stream, told};
use crate::sse::Then;

const LAST_EVENT_ID: &str = "last-event-id";

/// How a version of the protocol tells streams.
#[derive(Clone, Copy)]
pub(super) struct Tells<T> {
    /// An item, and what comes then.
    pub item: fn(&StreamItem) -> Result<(T, Then), Status>,
    /// An error.
    pub error: fn(&A2aError) -> Status,
}

/// The items of a stream as protobuf messages.
pub(crate) struct GrpcStream<T> {
    next: Option<Next>,
    ready: std::vec::IntoIter<StreamItem>,
    tells: Tells<T>,
    _permit: OwnedSemaphorePermit,
}

impl<T> GrpcStream<T> {
    fn end(&mut self) {
        self.next = None;
        self.ready = Vec::new().into_iter();
    }
}

impl<T> FuturesStream for GrpcStream<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.next() {
                let (item, then) = (self.tells.item)(&item)
                    .map_or_else(|status| (Err(status), Then::End), |(item, then)| (Ok(item), then));
                if then == Then::End {
                    self.end();
                }
                return Poll::Ready(Some(item));
            }
            let Some(waiting) = self.next.as_mut() else { return Poll::Ready(None) };
            let (stream, items) = std::task::ready!(waiting.as_mut().poll(context));
            self.next = None;
            match items {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err((self.tells.error)(&told(error))))),
                Some(Ok(items)) => {
                    self.ready = items.into_iter();
                    self.next = Some(next(stream));
                }
            }
        }
    }
}

/// Answers with a stream. gRPC has no place for an id beside an item, so the first one's is told in the metadata.
pub(super) async fn answer<T>(
    stream: Result<Stream, A2aError>,
    tells: Tells<T>,
) -> Result<Response<GrpcStream<T>>, Status> {
    let Stream { mut events, permit } = stream.map_err(|error| (tells.error)(&error))?;
    let first = events.next().await.transpose().map_err(|error| (tells.error)(&told(error)))?.unwrap_or_default();
    let first_sequence = first.first().and_then(|item| item.sequence);
    let (next, ready) = (Some(next(events)), first.into_iter());
    let mut answer = Response::new(GrpcStream { next, ready, tells, _permit: permit });
    if let Some(id) = first_sequence.and_then(|sequence| sequence.to_string().parse().ok()) {
        answer.metadata_mut().insert(LAST_EVENT_ID, id);
    }
    Ok(answer)
}
