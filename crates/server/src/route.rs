//! Which binding answers a request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use longhaul_protocol::{A2aError, ErrorCode};

use crate::body::{Body, read_json};
use crate::card::Card;
use crate::grpc::Grpc;
use crate::operation::{Operations, Stream};
use crate::parameters::{Parameters, VERSION, VERSION_HEADER};
use crate::query::Query;
use crate::sse::{Envelope, SseBody};
use crate::{http_json, json_rpc, path};

pub(crate) const JSON: &str = "application/json";
pub(crate) const A2A_JSON: &str = "application/a2a+json";

/// What answers requests.
#[derive(Debug)]
pub(crate) struct App {
    pub operations: Arc<Operations>,
    pub card: Card,
    pub grpc: Grpc,
    pub prefix: String,
    pub body_bytes_max: usize,
    pub keep_alive: Duration,
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
        answer.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
        answer
    }

    async fn answer_http(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let full_path = head.uri.path();
        let reads = [Method::GET, Method::HEAD];
        match full_path {
            "/.well-known/agent-card.json" | "/.well-known/agent.json" | "/healthz" | "/readyz"
                if !reads.contains(&head.method) =>
            {
                return wrong_method(&head.method, &reads);
            }
            "/.well-known/agent-card.json" | "/.well-known/agent.json" => {
                return self.card.answer(&head.method, &head.headers);
            }
            "/healthz" => return plain(StatusCode::OK, "ok\n"),
            "/readyz" => return self.ready().await,
            _ => {}
        }
        let Some(below) =
            full_path.strip_prefix(self.prefix.as_str()).filter(|below| below.is_empty() || below.starts_with('/'))
        else {
            return no_route(full_path);
        };
        let mut parameters = Parameters::from_headers(&head.headers);
        let query = Query::parse(head.uri.query());
        if parameters.version.is_empty()
            && let Some(version) = query.text("A2A-Version")
        {
            parameters.version = version.trim().to_owned();
        }
        if below.bytes().all(|byte| byte == b'/') {
            return match head.method == Method::POST {
                true => {
                    json_rpc::answer(self, &parameters, read_json(&head.headers, body, self.body_bytes_max).await).await
                }
                false => wrong_method(&head.method, &[Method::POST]),
            };
        }
        let Some((resource, tenant)) = path::resource(below) else { return no_route(full_path) };
        let methods = http_json::methods(&resource);
        if !methods.contains(&head.method) {
            return wrong_method(&head.method, methods);
        }
        parameters.tenant = tenant;
        let body = read_json(&head.headers, body, self.body_bytes_max).await;
        http_json::answer(self, &parameters, (&head.method, resource), query, body).await
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

fn no_route(path: &str) -> Response<Body> {
    status_answer(&A2aError::new(ErrorCode::RouteNotFound, format!("there is nothing at {path}")))
}

fn wrong_method(method: &Method, methods: &[Method]) -> Response<Body> {
    let names: Vec<_> = methods.iter().map(Method::as_str).collect();
    let allowed = names.join(", ");
    let mut answer = status_answer(&A2aError::new(
        ErrorCode::MethodNotAllowed,
        format!("{method} is not answered here; {allowed} is"),
    ));
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        answer.headers_mut().insert(header::ALLOW, allowed);
    }
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
    let mut answer = Response::new(Body::Sse(Box::new(sse)));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Proxies that gather answers would hold back events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}
