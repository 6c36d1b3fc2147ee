use std::pin::Pin;

use longhaul_engine::{EngineError, EventStream, StreamItem};

/// The wait for a stream's next items, which gives the stream back: for those who poll.
pub(crate) type Next =
    Pin<Box<dyn Future<Output = (EventStream, Option<Result<Vec<StreamItem>, EngineError>>)> + Send>>;

pub(crate) fn next(mut stream: EventStream) -> Next {
    Box::pin(async move {
        let items = stream.next().await;
        (stream, items)
    })
}
