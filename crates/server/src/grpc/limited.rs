use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use longhaul_protocol::A2aError;
use tonic::Status;

/// The length of what precedes each message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// The body of a gRPC request, which has one message. One that is too large is refused with the details that A2A asks
/// for, as soon as it says how long it is.
#[derive(Debug)]
pub(crate) struct LimitedBody {
    body: Incoming,
    bytes_max: usize,
    /// How the service tells errors.
    error: fn(&A2aError) -> Status,
    prefix: Vec<u8>,
    bytes: usize,
}

impl LimitedBody {
    pub fn new(body: Incoming, bytes_max: usize, error: fn(&A2aError) -> Status) -> Self {
        Self { body, bytes_max, error, prefix: Vec::with_capacity(PREFIX_BYTES), bytes: 0 }
    }

    fn check(&mut self, data: &Bytes) -> Result<(), Status> {
        self.bytes += data.len();
        let missing = PREFIX_BYTES - self.prefix.len();
        self.prefix.extend(data.iter().take(missing));
        let said = match *self.prefix.as_slice() {
            [_, a, b, c, d] => usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX),
            _ => 0,
        };
        if said.max(self.bytes.saturating_sub(PREFIX_BYTES)) > self.bytes_max {
            return Err((self.error)(&crate::body::too_large(self.bytes_max)));
        }
        Ok(())
    }
}

impl Body for LimitedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(|error| Status::from_error(Box::new(error)))?;
            if let Some(data) = frame.data_ref() {
                self.check(data)?;
            }
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
