//! HTTP+JSON (§11): routes, bodies, errors.

use http::Method;
use longhaul_protocol::wire;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::exchange::{Exchange, Target};
use super::said::HttpCall;
use super::stream::{Framing, RawStream, Reading};
use crate::error::ClientError;
use crate::transport::Deadline;

/// What a path segment or a query value holds as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Method, path and query of a request.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub method: Method,
    path: String,
    query: String,
}

impl Route {
    /// A route of these segments, of which each is one, whatever it holds.
    pub fn new(method: Method, segments: &[&str]) -> Self {
        let mut path = String::new();
        for segment in segments {
            path.push('/');
            // The first ones are the binding's own words, in which a colon stands for itself.
            match *segment {
                "message:send" | "message:stream" => path.push_str(segment),
                "." | ".." => path.push_str(&segment.replace('.', "%2E")),
                _ => path.extend(utf8_percent_encode(segment, UNRESERVED)),
            }
        }
        Self { method, path, query: String::new() }
    }

    /// A route that ends in an id and a verb: `/tasks/{id}:cancel`.
    pub fn verb(method: Method, before: &[&str], id: &str, verb: &str) -> Self {
        let mut segments = before.to_vec();
        segments.push(id);
        let mut route = Self::new(method, &segments);
        route.path.push(':');
        route.path.push_str(verb);
        route
    }

    /// With this parameter, unless it is empty.
    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.query.push(if self.query.is_empty() { '?' } else { '&' });
            self.query.push_str(name);
            self.query.push('=');
            self.query.extend(utf8_percent_encode(value, UNRESERVED));
        }
        self
    }

    /// With this parameter, if there is one.
    #[must_use]
    pub fn number(self, name: &str, value: Option<i32>) -> Self {
        match value {
            Some(value) => self.text(name, &value.to_string()),
            None => self,
        }
    }

    /// The URL below that of the interface, after the tenant if there is one (§8.3.2, §11.3).
    pub fn url(&self, interface: &str, tenant: &str) -> String {
        let base = interface.trim_end_matches('/');
        match tenant {
            "" => format!("{base}{}{}", self.path, self.query),
            _ => format!("{base}/{}{}{}", utf8_percent_encode(tenant, UNRESERVED), self.path, self.query),
        }
    }

    /// Whether the request has a body.
    pub fn has_body(&self) -> bool {
        self.method == Method::POST
    }
}

/// Calls an operation.
pub(crate) async fn call<R>(exchange: &Exchange<'_>, said: HttpCall<R>, deadline: Deadline) -> Result<R, ClientError> {
    let url = said.route.url(exchange.interface, &said.tenant);
    let target = Target { method: said.route.method, url, kind: said.kind };
    let answer = exchange.whole(target, said.body, deadline).await?;
    if !answer.status.is_success() {
        return Err(answer.refused(exchange.interface, (said.error)(&answer.body, answer.status)));
    }
    (said.answer)(&answer.body).map_err(|error| exchange.invalid(error.to_string()))
}

/// Opens a stream.
pub(crate) async fn open_stream(
    exchange: Exchange<'_>,
    said: HttpCall<wire::StreamResponse>,
    deadline: Deadline,
) -> Result<RawStream, ClientError> {
    let url = said.route.url(exchange.interface, &said.tenant);
    let target = Target { url, method: said.route.method, kind: said.kind };
    let reading = Reading { item: said.answer, framing: Framing::None { error: said.error } };
    RawStream::open(exchange, target, said.body, reading, deadline).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_an_id_holds_it_is_one_segment() {
        let url = |id: &str| Route::new(Method::GET, &["tasks", id]).url("http://h/p/", "");
        assert_eq!(url("a/b?c#d"), "http://h/p/tasks/a%2Fb%3Fc%23d");
        assert_eq!(url(".."), "http://h/p/tasks/%2E%2E");
        assert_eq!(url("a:cancel"), "http://h/p/tasks/a%3Acancel");
        assert_eq!(url("ü \0"), "http://h/p/tasks/%C3%BC%20%00");
    }

    #[test]
    fn the_tenant_comes_between_the_interface_and_the_route() {
        let route = Route::verb(Method::POST, &["tasks"], "t:1", "cancel");
        assert_eq!(route.url("http://h/p", "a b"), "http://h/p/a%20b/tasks/t%3A1:cancel");
        assert_eq!(Route::new(Method::POST, &["message:send"]).url("http://h", "t"), "http://h/t/message:send");
    }

    #[test]
    fn a_query_holds_what_was_given() {
        let route =
            Route::new(Method::GET, &["tasks"]).text("contextId", "a&b=c").text("pageToken", "").number("n", Some(3));
        assert_eq!(route.url("http://h", ""), "http://h/tasks?contextId=a%26b%3Dc&n=3");
    }
}
