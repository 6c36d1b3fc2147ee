//! What sees each call before it leaves and after it came back.

use std::fmt;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::error::ClientError;

/// One attempt of a call, before it is sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The operation, as §3.1 names it: `SendMessage`, `GetTask`.
    pub operation: &'static str,
    /// The URL of the interface.
    pub interface: &'a str,
    /// How many attempts there were before this one.
    pub attempts_before: u32,
    /// The headers, or for gRPC the metadata. What is added here is sent, and its value is never logged.
    pub headers: &'a mut HeaderMap,
}

/// Sees each attempt of each call: to add headers, to refuse, to count.
#[async_trait]
pub trait Interceptor: fmt::Debug + Send + Sync {
    /// Before an attempt is sent.
    ///
    /// # Errors
    ///
    /// The call ends with this error, and nothing is sent.
    async fn before(&self, call: &mut Call<'_>) -> Result<(), ClientError> {
        let _ = call;
        Ok(())
    }

    /// After an attempt. For a stream, after it was opened.
    async fn after(&self, operation: &'static str, failed: Option<&ClientError>) {
        let _ = (operation, failed);
    }
}

/// Sees what goes over the wire, with every credential taken out.
pub trait WireLog: fmt::Debug + Send + Sync {
    /// Something was sent, or came.
    fn record(&self, event: &WireEvent<'_>);
}

/// What goes over the wire. Headers and URLs hold no credential any more: values that are one read `[redacted]`.
#[derive(Debug)]
#[non_exhaustive]
pub enum WireEvent<'a> {
    /// A request. For gRPC the body is the JSON form of the message.
    Request {
        /// The operation.
        operation: &'static str,
        /// The method of HTTP; for gRPC the name of the binding.
        method: &'a str,
        /// The URL.
        url: &'a str,
        /// Headers or metadata.
        headers: &'a HeaderMap,
        /// The body.
        body: &'a [u8],
    },
    /// An answer, whole.
    Answer {
        /// The operation.
        operation: &'static str,
        /// HTTP's status, or gRPC's.
        status: i64,
        /// The body; for gRPC the JSON form of the message, or what its error says.
        body: &'a [u8],
    },
    /// One item of a stream.
    Item {
        /// The operation that opened the stream.
        operation: &'static str,
        /// Its id, if it has one.
        id: Option<&'a str>,
        /// What it holds.
        body: &'a [u8],
    },
    /// A stream ended: on the server's wish, or not.
    StreamEnd {
        /// The operation that opened the stream.
        operation: &'static str,
        /// What cut it.
        error: Option<&'a ClientError>,
    },
    /// The call failed, and is tried again after a while.
    Retry {
        /// The operation.
        operation: &'static str,
        /// Why it failed.
        error: &'a ClientError,
        /// How long is waited.
        after: std::time::Duration,
    },
}

/// What stands for a credential wherever something is shown.
pub const REDACTED: &str = "[redacted]";

/// The headers without credentials: those that are known to hold one, those that HTTP calls sensitive, and `secret` ones.
pub(crate) fn redacted(headers: &HeaderMap, secret: &[HeaderName]) -> HeaderMap {
    const KNOWN: [HeaderName; 4] =
        [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE, header::SET_COOKIE];
    let mut shown = headers.clone();
    for (name, value) in &mut shown {
        if value.is_sensitive() || KNOWN.contains(name) || secret.contains(name) {
            *value = HeaderValue::from_static(REDACTED);
        }
    }
    shown
}
