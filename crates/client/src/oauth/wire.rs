//! One request to an authorization server, and its answer.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use longhaul_push::Secret;
use serde::Deserialize;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::endpoint::Endpoint;
use super::error::{OAuthError, RefusedCode};
use crate::transport::{Deadline, Transport, TransportConfig, excerpt, shown};

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A way to one endpoint.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    transport: Transport,
    uri: Uri,
    pub whom: String,
    timeout: Duration,
}

/// The parameters of a request.
pub(super) type Form<'a> = Vec<(&'static str, &'a str)>;

/// A status that is a success, and its body.
pub(super) struct Answer {
    pub body: Bytes,
    pub whom: String,
}

impl Wire {
    pub fn to(endpoint: &Endpoint, config: &TransportConfig, timeout: Duration) -> Result<Self, OAuthError> {
        let unreachable =
            |whom: &str, source| OAuthError::Unreachable { whom: whom.to_owned(), source: Box::new(source) };
        let uri: Uri = endpoint.url.parse().map_err(|_| OAuthError::Endpoint {
            what: "URL",
            url: excerpt(endpoint.url.as_bytes()),
            problem: "no request can name it".to_owned(),
        })?;
        let whom = shown(&uri);
        // The certificate is for agents.
        let config = TransportConfig { identity: None, ..config.clone() };
        let transport = Transport::new(&config, Arc::new(endpoint.reach)).map_err(|error| unreachable(&whom, error))?;
        Ok(Self { transport, uri, whom, timeout })
    }

    pub async fn get(&self) -> Result<Answer, OAuthError> {
        self.send(Request::builder().method(Method::GET), Bytes::new()).await
    }

    pub async fn post(&self, form: &Form<'_>, authorization: Option<HeaderValue>) -> Result<Answer, OAuthError> {
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let mut request = Request::builder()
            .method(Method::POST)
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        self.send(request, body.into()).await
    }

    async fn send(&self, request: http::request::Builder, body: Bytes) -> Result<Answer, OAuthError> {
        let request = request
            .uri(self.uri.clone())
            .header(header::ACCEPT, HeaderValue::from_static("application/json"))
            .body(Full::new(body))
            .map_err(|_| self.invalid("no request can be made of it"))?;
        let deadline = Deadline::after(self.timeout);
        let unreachable = |source| OAuthError::Unreachable { whom: self.whom.clone(), source: Box::new(source) };
        let (head, body) = self.transport.send(request, deadline).await.map_err(unreachable)?.into_parts();
        let body = self.transport.read(body, ANSWER_BYTES_MAX, &self.whom, deadline).await.map_err(unreachable)?;
        match head.status.is_success() {
            true => Ok(Answer { body, whom: self.whom.clone() }),
            false => Err(self.refusal(head.status, &body)),
        }
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> OAuthError {
        #[derive(Deserialize)]
        struct Refusal {
            error: String,
            error_description: Option<String>,
        }
        match serde_json::from_slice(body) {
            Ok(Refusal { error, error_description }) if status.is_client_error() || status.is_server_error() => {
                OAuthError::Refused {
                    whom: self.whom.clone(),
                    code: RefusedCode::read(&error),
                    description: error_description.map(|text| excerpt(text.as_bytes())).filter(|text| !text.is_empty()),
                }
            }
            _ => OAuthError::Status { whom: self.whom.clone(), status: status.as_u16() },
        }
    }

    fn invalid(&self, what: &str) -> OAuthError {
        OAuthError::InvalidAnswer { whom: self.whom.clone(), what: what.to_owned() }
    }
}

impl Answer {
    /// Reads it. What is wrong is told by its place: a message of the parser could repeat a token.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, OAuthError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            self.invalid(&format!("not the JSON that it has to be, at line {} column {}", error.line(), error.column()))
        })
    }

    pub fn invalid(&self, what: &str) -> OAuthError {
        OAuthError::InvalidAnswer { whom: self.whom.clone(), what: what.to_owned() }
    }
}

/// The header by which a client says who it is (RFC 6749 §2.3.1): both parts encoded as in a form.
pub(super) fn basic(id: &str, secret: &Secret) -> Result<HeaderValue, OAuthError> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret.reveal()));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
        .map_err(|_| OAuthError::Invalid { what: "client secret", problem: "can't be sent" })?;
    value.set_sensitive(true);
    Ok(value)
}
