use http::StatusCode;
use longhaul_protocol::json::JsonError;
use longhaul_push::sign::SignatureRefused;
use thiserror::Error;

/// Why a request is not taken. Shows nothing of what was expected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is larger than is allowed.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// It is not JSON by its header.
    #[error("the content type is neither application/a2a+json nor application/json")]
    ContentType,
    /// It is of a version of the protocol that is not known here.
    #[error("the version of the protocol is not 1.0")]
    Version,
    /// The notification token is missing or another one.
    #[error("the notification token is missing or wrong")]
    Token,
    /// The authorization is missing or another one.
    #[error("the authorization is missing or wrong")]
    Authorization,
    /// The signature is missing.
    #[error("the signature, its id or its timestamp is missing")]
    Unsigned,
    /// The signature does not fit, or is too old.
    #[error("the signature is refused")]
    Signature(#[source] SignatureRefused),
    /// The body is no `StreamResponse`.
    #[error("the body is no stream response at {:?}: {}", .0.path, .0.message)]
    Body(JsonError),
    /// The body is a `StreamResponse` that says nothing.
    #[error("the stream response is empty")]
    Empty,
    /// Nobody waits for news of its task.
    #[error("its task is not expected")]
    UnknownTask,
    /// An earlier delivery of the same config is being handled.
    #[error("an earlier delivery is being handled")]
    Busy,
}

impl Refused {
    /// What to answer. After 503 a sender tries again; after the others it gives this event up.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Token | Self::Authorization | Self::Unsigned | Self::Signature(_) => StatusCode::UNAUTHORIZED,
            Self::Version | Self::Body(_) | Self::Empty => StatusCode::BAD_REQUEST,
            Self::UnknownTask => StatusCode::NOT_FOUND,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
