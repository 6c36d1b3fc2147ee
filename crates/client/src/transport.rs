//! Connections: names to addresses, TCP, proxies, TLS, HTTP/1.1 and HTTP/2, the same for all bindings.

mod connector;
mod lanes;
mod proxied;
mod resolver;
mod tls;

use std::error::Error as _;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use longhaul_protocol::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::clock::{between, http_date, now};
use crate::error::{Cause, ClientError};
use connector::Connector;
pub(crate) use lanes::Lane;
use lanes::Lanes;

/// How connections are made, and what they may cost.
///
/// The defaults trust the system's authorities, take a proxy from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`,
/// `NO_PROXY`), and give a connection ten seconds to come about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransportConfig {
    /// The time for name, TCP and TLS together. Default 10 s.
    pub connect_timeout: Duration,
    /// A PEM file of authorities that are trusted beside the system's. Default none.
    pub extra_roots: Option<PathBuf>,
    /// A certificate of the client and its key, for mutual TLS. Default none.
    pub identity: Option<Identity>,
    /// Whether the peer's certificate is verified. Default [`Verification::Full`].
    pub verification: Verification,
    /// Which proxy is used. Default [`Proxy::Environment`].
    pub proxy: Proxy,
    /// The most bytes of an answer's body. Default 64 MiB.
    pub answer_bytes_max: usize,
    /// The most bytes of one event of a stream. Default 64 MiB.
    pub event_bytes_max: usize,
    /// A stream that has been silent for this long counts as cut, and is opened again: over HTTP when not even a comment came;
    /// over gRPC, where nothing but items can come, when no item did, except before the answer to a message. There it is only
    /// what pings of the connection don't tell, as of a server behind a proxy, and costs a subscription each time. Default 90 s.
    pub stream_silence_max: Duration,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            extra_roots: None,
            identity: None,
            verification: Verification::Full,
            proxy: Proxy::Environment,
            answer_bytes_max: 64 * 1024 * 1024,
            event_bytes_max: 64 * 1024 * 1024,
            stream_silence_max: Duration::from_secs(90),
        }
    }
}

/// A client certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate, and those between it and the authority.
    pub certificates: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Whether a peer's certificate is verified.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verification {
    /// Name, validity and chain.
    Full,
    /// Nothing: whoever is on the path can read and change everything. For development.
    Off,
}

/// Which proxy is used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Proxy {
    /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say: proxies of `http://`, others are refused. With a proxy it
    /// is the proxy that looks names up, so an address policy sees only addresses that a URL names itself.
    Environment,
    /// None.
    Direct,
}

/// Says which addresses may be connected to.
pub(crate) trait AddressPolicy: fmt::Debug + Send + Sync {
    /// Why not, if not.
    fn check(&self, host: &str, address: IpAddr) -> Result<(), String>;
}

/// Lets everything pass: for what the user named.
#[derive(Debug)]
pub(crate) struct AnyAddress;

impl AddressPolicy for AnyAddress {
    fn check(&self, _: &str, _: IpAddr) -> Result<(), String> {
        Ok(())
    }
}

/// The most bytes of an answer's headers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of HTTP/1.1 that are buffered, in which the headers have to be.
const HTTP1_BUFFER_BYTES_MAX: usize = HEAD_BYTES_MAX * 8;
const HEADERS_MAX: usize = 200;
/// How much of a stream of HTTP/2 may wait to be read.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The same for a connection. h2 ends one whose unread frames, most of them smaller than 256 bytes, waste more than half of
/// this together; events are that small. So it is more than twice of what the streams of one connection can leave unread.
const CONNECTION_WINDOW_BYTES: u32 = 32 * 1024 * 1024;
const IDLE_CONNECTION_MAX: Duration = Duration::from_secs(60);
/// How often a connection that carries gRPC is asked whether it is alive.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How much of a body is shown where it is no answer.
const EXCERPT_BYTES_MAX: usize = 200;

type Https = HttpsConnector<Connector>;
/// What carries gRPC.
pub(crate) type GrpcHttp = legacy::Client<Https, tonic::body::Body>;

/// Pools of connections, by what they carry.
#[derive(Clone, Debug)]
struct Pools {
    http: legacy::Client<Https, Full<Bytes>>,
    grpc: GrpcHttp,
}

impl Pools {
    fn new(http: Https, grpc: Https) -> Self {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .pool_idle_timeout(IDLE_CONNECTION_MAX)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .http1_max_buf_size(HTTP1_BUFFER_BYTES_MAX)
            .http1_max_headers(HEADERS_MAX)
            .http2_max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
            .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let http = builder.build(http);
        builder.http2_only(true).http2_keep_alive_interval(PING_INTERVAL).http2_keep_alive_timeout(PING_TIMEOUT);
        Self { http, grpc: builder.build(grpc) }
    }
}

/// Makes connections and sends requests over them. Clones share the connections.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    pools: Pools,
    /// Those for streams.
    lanes: Arc<Lanes>,
    /// Held while a stream uses its lane.
    pub lane: Option<Lane>,
    policy: Arc<dyn AddressPolicy>,
    pub config: TransportConfig,
}

impl Transport {
    /// # Errors
    ///
    /// [`ClientError::Setup`] when a file of certificates can't be used.
    pub fn new(config: &TransportConfig, policy: Arc<dyn AddressPolicy>) -> Result<Self, ClientError> {
        let tls = tls::client_config(config)?;
        let connector = Connector::new(config, policy.clone());
        let https = || HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        let http = https().enable_all_versions().wrap_connector(connector.clone());
        let grpc = https().enable_http2().wrap_connector(connector);
        let lanes = Arc::new(Lanes::new(http, grpc));
        Ok(Self { pools: lanes.pools(), lanes, lane: None, policy, config: config.clone() })
    }

    /// The same, for one stream: over a connection that has room for it.
    ///
    /// A server lets only so many requests share an HTTP/2 connection, often a hundred, and makes the next one wait. A stream
    /// may never end, so what waits behind streams would wait for ever.
    pub fn for_stream(&self) -> Self {
        let (pools, lane) = self.lanes.take();
        Self { pools, lane: Some(lane), ..self.clone() }
    }

    /// What gRPC calls go through.
    pub fn grpc(&self) -> GrpcHttp {
        self.pools.grpc.clone()
    }

    /// Whether an address that a URL names itself may be connected to; names are checked once they are looked up.
    pub fn check(&self, uri: &Uri) -> Result<(), ClientError> {
        let host = uri.host().unwrap_or_default();
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => {
                self.policy.check(host, address.to_canonical()).map_err(|what| ClientError::Forbidden { what })
            }
            Err(_) => Ok(()),
        }
    }

    /// Sends a request, and answers with the head of the answer. No redirect is followed.
    ///
    /// # Errors
    ///
    /// [`ClientError::Connect`], [`Broken`](ClientError::Broken), [`Timeout`](ClientError::Timeout) or
    /// [`Forbidden`](ClientError::Forbidden).
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        deadline: Deadline,
    ) -> Result<Response<Incoming>, ClientError> {
        let whom = shown(request.uri());
        self.check(request.uri())?;
        match timeout_at(deadline.at, self.pools.http.request(request)).await {
            Err(_) => Err(deadline.passed(whom)),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failed(error, whom)),
        }
    }

    /// Reads a body whole.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), and [`ClientError::TooLarge`].
    pub async fn read(
        &self,
        body: Incoming,
        bytes_max: usize,
        whom: &str,
        deadline: Deadline,
    ) -> Result<Bytes, ClientError> {
        let reading = collect(body, bytes_max, whom);
        timeout_at(deadline.at, reading).await.unwrap_or_else(|_| Err(deadline.passed(whom.to_owned())))
    }
}

async fn collect(mut body: Incoming, bytes_max: usize, whom: &str) -> Result<Bytes, ClientError> {
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ClientError::Broken { whom: whom.to_owned(), source: error.into() })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > bytes_max {
            return Err(ClientError::TooLarge { whom: whom.to_owned(), what: "an answer", bytes_max });
        }
        // Most answers come in one piece, which is not copied.
        match (first.is_empty(), all.is_empty()) {
            (true, true) => first = data,
            (false, _) => {
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&data);
            }
            (true, false) => all.extend_from_slice(&data),
        }
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

/// When an attempt has to be over, and how long it had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub at: Instant,
    pub after: Duration,
}

impl Deadline {
    /// The longest time that is waited for anything; more would not fit a clock.
    const LONGEST: Duration = Duration::from_secs(60 * 60 * 24 * 365);

    pub fn after(duration: Duration) -> Self {
        let after = duration.min(Self::LONGEST);
        Self { at: Instant::now() + after, after }
    }

    pub fn passed(self, whom: String) -> ClientError {
        ClientError::Timeout { whom, after: self.after }
    }
}

/// The kind of error that a failed request is.
pub(crate) fn failed(error: legacy::Error, whom: String) -> ClientError {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>());
    if cause.is_some_and(hyper::Error::is_parse_too_large) {
        return ClientError::TooLarge { whom, what: "headers", bytes_max: HTTP1_BUFFER_BYTES_MAX };
    }
    match error.is_connect() {
        true => connecting_failed(error.into(), whom),
        false => ClientError::Broken { whom, source: error.into() },
    }
}

/// A refusal by policy comes out of the connector as the deepest cause.
pub(crate) fn connecting_failed(error: Cause, whom: String) -> ClientError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(refused) = inner.and_then(|inner| inner.downcast_ref::<resolver::Refused>()) {
            return ClientError::Forbidden { what: refused.to_string() };
        }
        if let Some(refused) = error.downcast_ref::<resolver::Refused>() {
            return ClientError::Forbidden { what: refused.to_string() };
        }
        cause = error.source();
    }
    ClientError::Connect { whom, source: error }
}

/// A URL without its query, which may hold a credential.
pub(crate) fn shown(uri: &Uri) -> String {
    match (uri.scheme_str(), uri.authority()) {
        (Some(scheme), Some(authority)) => format!("{scheme}://{authority}{}", uri.path()),
        _ => uri.path().to_owned(),
    }
}

/// The error that an HTTP answer is which holds no error of A2A.
pub(crate) fn http_error(whom: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ClientError {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return ClientError::Unauthorized {
            whom: whom.to_owned(),
            message: format!("HTTP status {}", status.as_u16()),
            challenge: text(http::header::WWW_AUTHENTICATE).map(printable),
        };
    }
    ClientError::Http {
        whom: whom.to_owned(),
        status: status.as_u16(),
        excerpt: excerpt(body),
        retry_after: text(http::header::RETRY_AFTER).and_then(|value| retry_after(value, now())),
    }
}

/// How long `Retry-After` asks to be left alone, in seconds or until a date (RFC 9110 §10.2.3). No time after a date that is
/// past.
fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let seconds = || text.parse().ok().map(Duration::from_secs);
    seconds().or_else(|| Some(between(now, http_date(text)?)))
}

/// The beginning of a body, on one line.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let start = body.get(..EXCERPT_BYTES_MAX).unwrap_or(body);
    printable(&String::from_utf8_lossy(start))
}

fn printable(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_says_in_seconds_or_by_a_date_when_to_come_again() {
        // Sun, 06 Nov 1994 08:49:07 GMT
        let now = Timestamp::from_unix_millis(784_111_747_000);
        let asked = |text| retry_after(text, now);
        assert_eq!(asked(" 120 "), Some(Duration::from_secs(120)));
        for date in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(asked(date), Some(Duration::from_secs(30)), "{date}");
        }
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO));
        for nothing in ["", "soon", "-1", "1.5", "06 Nov 1994"] {
            assert_eq!(asked(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_date_in_an_answer_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("Fri, 31 Dec 9999 23:59:59 GMT"));
        let error = http_error("http://h", StatusCode::SERVICE_UNAVAILABLE, &headers, b"");
        assert!(error.retry_after().is_some_and(|asked| asked > Duration::from_secs(60 * 60)), "{error:?}");
    }
}
