use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use longhaul_protocol::{A2aError, ErrorCode};

use crate::sse::SseBody;

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// All of it; `None` once it was sent.
    Full(Option<Bytes>),
    /// A stream of events.
    Sse(Box<SseBody>),
    /// What tonic made.
    Grpc(tonic::body::Body),
}

impl Body {
    pub fn empty() -> Self {
        Self::Full(None)
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Full((!bytes.is_empty()).then_some(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Sse(sse) => sse.poll(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            Self::Grpc(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_none(),
            Self::Sse(_) => false,
            Self::Grpc(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Sse(_) => SizeHint::default(),
            Self::Grpc(body) => body.size_hint(),
        }
    }
}

/// Reads the JSON of a request. A body that says nothing of its type is taken for JSON.
///
/// # Errors
///
/// `ContentTypeNotSupportedError` when it says that it is something else; see [`read`] for the others.
pub(crate) async fn read_json(
    headers: &HeaderMap,
    body: hyper::body::Incoming,
    bytes_max: usize,
) -> Result<Bytes, A2aError> {
    // It is read either way, so that the connection can carry the next request.
    let bytes = read(body, bytes_max).await?;
    match headers.get(header::CONTENT_TYPE) {
        Some(kind) if !bytes.is_empty() && !is_json(kind) => {
            let message = "the body of a request is JSON; send it with Content-Type: application/json";
            Err(A2aError::new(ErrorCode::ContentTypeNotSupported, message))
        }
        Some(_) | None => Ok(bytes),
    }
}

pub(crate) fn too_large(bytes_max: usize) -> A2aError {
    A2aError::new(ErrorCode::TooLarge, format!("the body of a request may have {bytes_max} bytes at the most"))
}

/// Whether a content type is `application/json`, or a kind of JSON such as `application/a2a+json`.
fn is_json(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let Some((top, subtype)) = kind.split_once('/') else { return false };
    let suffix = subtype.rsplit_once('+').map_or(subtype, |(_, suffix)| suffix);
    top.eq_ignore_ascii_case("application") && suffix.eq_ignore_ascii_case("json")
}

/// Reads the body of a request, as long as it is no longer than `bytes_max`. One that comes in one piece is not copied.
///
/// # Errors
///
/// `TooLarge`; or invalid argument when the peer breaks off.
async fn read(mut body: hyper::body::Incoming, bytes_max: usize) -> Result<Bytes, A2aError> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let broken =
            |error| A2aError::new(ErrorCode::InvalidArgument, format!("the body of the request broke off: {error}"));
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if first.len() + all.len() + data.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_json_are_taken_and_nothing_else() {
        for kind in ["application/json", "application/a2a+json", "application/json; charset=utf-8", "Application/JSON"]
        {
            assert!(is_json(&HeaderValue::from_static(kind)), "{kind}");
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonl", "text/json", ""] {
            assert!(!is_json(&HeaderValue::from_static(kind)), "{kind}");
        }
    }
}
