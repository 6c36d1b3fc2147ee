//! Which binding answers a request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use longhaul_protocol::{A2aError, ErrorCode};

use crate::body::{Body, read_json};
use crate::card::Card;
use crate::config::Metrics;
use crate::grpc::Grpc;
use crate::operation::{Operations, Stream};
use crate::parameters::{Parameters, VERSION_HEADER};
use crate::query::Query;
use crate::requests::{Requests, Spoken, Transport};
use crate::sse::{Envelope, SseBody};
use crate::version::{Version, Versions};
use crate::{http_json, json_rpc, path};

pub(crate) const JSON: &str = "application/json";
pub(crate) const A2A_JSON: &str = "application/a2a+json";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where v0.3 has its HTTP+JSON binding, below the prefix.
const V0_3_PATH: &str = "/v1";

/// What answers requests.
#[derive(Debug)]
pub(crate) struct App {
    pub operations: Arc<Operations>,
    pub versions: Versions,
    pub card: Card,
    pub grpc: Grpc,
    pub prefix: String,
    /// Where drafts before 0.3 are served, below the prefix.
    pub drafts_path: Option<String>,
    pub body_bytes_max: usize,
    pub keep_alive: Duration,
    pub requests: Arc<Requests>,
    /// Whether the counters may be read.
    pub metrics: Metrics,
}

impl App {
    /// Answers one request.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let is_grpc = request
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        let mut answer = match is_grpc {
            true => self.grpc.answer(request).await,
            false => self.answer_http(request).await,
        };
        let newest = HeaderValue::from_static(Version::V1_0.name());
        answer.headers_mut().entry(VERSION_HEADER).or_insert(newest);
        answer
    }

    async fn answer_http(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let full_path = head.uri.path();
        if let Some(answer) = self.answer_beside(&head).await {
            return answer;
        }
        let Some(below) = below(full_path, &self.prefix) else { return no_route(full_path) };
        let mut parameters = Parameters::from_headers(&head.headers);
        let query = Query::parse(head.uri.query());
        if parameters.asked.is_empty()
            && let Some(version) = query.text("A2A-Version")
        {
            parameters.asked = version.trim().to_owned();
        }
        let is_of_drafts = self.drafts_path.as_deref().is_some_and(|path| below.trim_end_matches('/') == path);
        if is_of_drafts || below.bytes().all(|byte| byte == b'/') {
            if head.method != Method::POST {
                return wrong_method(&head.method, &[Method::POST]);
            }
            let body = read_json(&head.headers, body, self.body_bytes_max).await;
            return match is_of_drafts {
                true => json_rpc::drafts::answer(self, parameters, body).await,
                false => json_rpc::answer(self, parameters, body).await,
            };
        }
        let version = self.versions.choose(parameters.asked());
        if version == Ok(Version::V0_3)
            && let Some(path) = self::below(below, V0_3_PATH)
        {
            return self.answer_v0_3((&head, body), path, parameters, query).await;
        }
        let Some((resource, tenant)) = path::resource(below) else { return no_route(full_path) };
        let methods = http_json::methods(&resource);
        if !methods.contains(&head.method) {
            return wrong_method(&head.method, methods);
        }
        let operation = http_json::operation(&head.method, &resource);
        // Read even for a request that is refused, so that the connection can carry the next one.
        let body = read_json(&head.headers, body, self.body_bytes_max).await;
        if let Err(error) = self.versions.require_v1_0(parameters.asked(), "this path, while 0.3 is below /v1") {
            self.requests.count(Spoken::Refused, Transport::HttpJson, operation);
            return status_answer(&error);
        }
        self.requests.count(Spoken::V1_0, Transport::HttpJson, operation);
        parameters.tenant = tenant;
        http_json::answer(self, &parameters, (&head.method, resource), query, body).await
    }

    /// Answers what is no operation: the card, health and the counters.
    async fn answer_beside(&self, head: &Parts) -> Option<Response<Body>> {
        let path = head.uri.path();
        match path {
            "/.well-known/agent-card.json" | "/.well-known/agent.json" | "/healthz" | "/readyz" => {}
            "/metrics" if self.metrics == Metrics::Served => {}
            _ => return None,
        }
        let reads = [Method::GET, Method::HEAD];
        if !reads.contains(&head.method) {
            return Some(wrong_method(&head.method, &reads));
        }
        Some(match path {
            "/healthz" => plain(StatusCode::OK, "ok\n"),
            "/readyz" => self.ready().await,
            "/metrics" => json_answer(StatusCode::OK, METRICS, self.requests.to_text()),
            _ => self.card.answer(&head.method, &head.headers),
        })
    }

    async fn answer_v0_3(
        &self,
        (head, body): (&Parts, Incoming),
        path: &str,
        parameters: Parameters,
        query: Query,
    ) -> Response<Body> {
        let refused = |error| http_json::v0_3::status_answer(&error);
        let Some(resource) = path::resource_v0_3(path) else { return refused(nothing_at(head.uri.path())) };
        let methods = http_json::methods(&resource);
        if !methods.contains(&head.method) {
            return allowing(methods, refused(not_allowed(&head.method, methods)));
        }
        let operation = http_json::operation(&head.method, &resource);
        self.requests.count(Spoken::V0_3, Transport::HttpJson, operation);
        let body = read_json(&head.headers, body, self.body_bytes_max).await;
        let parameters = parameters.spoken(Version::V0_3);
        http_json::v0_3::answer(self, &parameters, (&head.method, resource), query, body).await
    }

    /// Whether requests can be served: the store works, and the server is not going down.
    async fn ready(&self) -> Response<Body> {
        let engine = self.operations.engine();
        if engine.is_closing() {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "going down\n");
        }
        match engine.check().await {
            Ok(()) => plain(StatusCode::OK, "ready\n"),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "not ready");
                plain(StatusCode::SERVICE_UNAVAILABLE, "the store cannot be used; the log says why\n")
            }
        }
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    json_answer(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

/// What of a path is below another one.
fn below<'a>(path: &'a str, above: &str) -> Option<&'a str> {
    path.strip_prefix(above).filter(|below| below.is_empty() || below.starts_with('/'))
}

fn no_route(path: &str) -> Response<Body> {
    status_answer(&nothing_at(path))
}

fn nothing_at(path: &str) -> A2aError {
    A2aError::new(ErrorCode::RouteNotFound, format!("there is nothing at {path}"))
}

fn wrong_method(method: &Method, methods: &[Method]) -> Response<Body> {
    allowing(methods, status_answer(&not_allowed(method, methods)))
}

fn list(methods: &[Method]) -> String {
    let names: Vec<_> = methods.iter().map(Method::as_str).collect();
    names.join(", ")
}

fn not_allowed(method: &Method, methods: &[Method]) -> A2aError {
    A2aError::new(ErrorCode::MethodNotAllowed, format!("{method} is not answered here; {} is", list(methods)))
}

fn allowing(methods: &[Method], mut answer: Response<Body>) -> Response<Body> {
    if let Ok(allowed) = HeaderValue::from_str(&list(methods)) {
        answer.headers_mut().insert(header::ALLOW, allowed);
    }
    answer
}

/// An answer that was made in this version.
pub(crate) fn in_version(version: Version, mut answer: Response<Body>) -> Response<Body> {
    answer.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(version.name()));
    answer
}

/// An answer with a body of one piece.
pub(crate) fn json_answer(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// An error as `google.rpc.Status` (A2A §11.6).
pub(crate) fn status_answer(error: &A2aError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code.row().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_retry_after(json_answer(status, A2A_JSON, error.to_status_json()), error)
}

pub(crate) fn with_retry_after(mut answer: Response<Body>, error: &A2aError) -> Response<Body> {
    if let Some(delay) = error.retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(delay.as_secs().max(1)));
    }
    answer
}

/// A stream of server-sent events.
pub(crate) fn event_stream(app: &App, stream: Stream, envelope: Box<dyn Envelope>) -> Response<Body> {
    let sse = SseBody::new(stream.events, envelope, app.keep_alive, stream.permit);
    event_answer(Body::Sse(Box::new(sse)))
}

/// Events as an answer.
pub(crate) fn event_answer(events: Body) -> Response<Body> {
    let mut answer = Response::new(events);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Proxies that gather answers would hold back events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}
