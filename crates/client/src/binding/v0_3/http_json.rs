//! HTTP+JSON of v0.3: routes below `/v1`, bodies of its protobuf.

use bytes::Bytes;
use http::Method;
use longhaul_protocol::v0_3::{from_json, proto, to_json};
use longhaul_protocol::wire;

use crate::binding::details::v0_3::from_http_json;
use crate::binding::exchange::Kind;
use crate::binding::http_json::Route;
use crate::binding::said::HttpCall;
use crate::operation::Opening;
use crate::operation::v0_3::Forms;

pub(super) fn call<Q, R>(request: Q, forms: Forms<Q, R>) -> HttpCall<R> {
    let route = (forms.route)(&request);
    let body = if route.has_body() { (forms.body)(request) } else { Bytes::new() };
    HttpCall { route, tenant: String::new(), body, kind: Kind::Json, answer: forms.answer, error: from_http_json }
}

pub(super) fn stream(opening: Opening) -> HttpCall<wire::StreamResponse> {
    let (route, body) = match opening {
        Opening::Send(request) => (
            Route::new(Method::POST, &["v1", "message:stream"]),
            to_json::<proto::SendMessageRequest, wire::SendMessageRequest>(*request),
        ),
        Opening::Subscribe(request) => {
            (Route::verb(Method::GET, &["v1", "tasks"], &request.id, "subscribe"), Bytes::new())
        }
    };
    let answer = from_json::<proto::StreamResponse, _>;
    HttpCall { route, tenant: String::new(), body, kind: Kind::JsonEventStream, answer, error: from_http_json }
}
