//! JSON-RPC 2.0 (§9).

use bytes::{BufMut as _, Bytes, BytesMut};
use http::Method;
use longhaul_protocol::wire;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::exchange::{Exchange, Kind, Target};
use super::said::{RpcCall, RpcError};
use super::stream::{Framing, RawStream, Reading};
use crate::error::{AgentError, ClientError};
use crate::transport::Deadline;

/// The id of a request. Each has a connection, or a stream of one, to itself, so they need not differ much; but an answer that
/// was meant for another request is noticed.
fn new_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}

fn body(method: &str, params: &[u8], id: &str) -> Bytes {
    let mut body = BytesMut::with_capacity(params.len() + method.len() + id.len() + 64);
    body.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":\"");
    body.put_slice(id.as_bytes());
    body.put_slice(b"\",\"method\":\"");
    body.put_slice(method.as_bytes());
    body.put_slice(b"\",\"params\":");
    body.put_slice(params);
    body.put_slice(b"}");
    body.freeze()
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

/// What an answer's envelope holds.
#[derive(Debug)]
pub(crate) enum Held<'a> {
    Result(&'a [u8]),
    Error(AgentError),
}

impl Held<'_> {
    /// The error, if it is one.
    pub fn error(self) -> Option<AgentError> {
        match self {
            Self::Result(_) => None,
            Self::Error(error) => Some(error),
        }
    }
}

/// Opens an answer's envelope, and looks whether it answers this request.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn open<'a>(json: &'a [u8], id: &str, read: RpcError) -> Result<Held<'a>, String> {
    let envelope: Envelope<'a> =
        serde_json::from_slice(json).map_err(|error| format!("it is no JSON-RPC response: {error}"))?;
    let error = envelope.error.filter(|error| !error.is_null());
    let answered = envelope.id.unwrap_or(Value::Null);
    // Whoever could not read the request does not know its id.
    if answered != id && !(error.is_some() && answered.is_null()) {
        return Err(format!("it answers request {answered}, not {id:?}"));
    }
    match (error, envelope.result) {
        (Some(error), _) => match read(&error) {
            Some(error) => Ok(Held::Error(error)),
            None => Err("its error has no code".to_owned()),
        },
        (None, Some(result)) => Ok(Held::Result(result.get().as_bytes())),
        // `null` is a result too, for what answers nothing.
        (None, None) => Ok(Held::Result(b"null")),
    }
}

/// Calls an operation.
pub(crate) async fn call<R>(exchange: &Exchange<'_>, said: RpcCall<R>, deadline: Deadline) -> Result<R, ClientError> {
    let id = new_id();
    let target = Target { method: Method::POST, url: exchange.interface.to_owned(), kind: Kind::Json };
    let answer = exchange.whole(target, body(said.method, &said.params, &id), deadline).await?;
    let held = open(&answer.body, &id, said.error);
    if !answer.status.is_success() {
        return Err(answer.refused(exchange.interface, held.ok().and_then(Held::error)));
    }
    match held.map_err(|what| exchange.invalid(what))? {
        Held::Error(error) => Err(ClientError::Agent(error)),
        Held::Result(result) => (said.result)(result).map_err(|error| exchange.invalid(error.to_string())),
    }
}

/// Opens a stream.
pub(crate) async fn open_stream(
    exchange: Exchange<'_>,
    said: RpcCall<wire::StreamResponse>,
    deadline: Deadline,
) -> Result<RawStream, ClientError> {
    let id = new_id();
    let target = Target { method: Method::POST, url: exchange.interface.to_owned(), kind: Kind::JsonEventStream };
    let body = body(said.method, &said.params, &id);
    let reading = Reading { item: said.result, framing: Framing::JsonRpc { id, error: said.error } };
    RawStream::open(exchange, target, body, reading, deadline).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::details::from_json_rpc;

    fn open<'a>(json: &'a [u8], id: &str) -> Result<Held<'a>, String> {
        super::open(json, id, from_json_rpc)
    }

    #[test]
    fn an_answer_to_another_request_is_none() {
        assert!(matches!(open(br#"{"jsonrpc":"2.0","id":"a","result":{}}"#, "a"), Ok(Held::Result(b"{}"))));
        assert!(open(br#"{"jsonrpc":"2.0","id":"b","result":{}}"#, "a").is_err());
        assert!(open(br#"{"jsonrpc":"2.0","result":{}}"#, "a").is_err());
        assert!(open(br#"{"jsonrpc":"2.0","id":"b","error":{"code":-32001,"message":"x"}}"#, "a").is_err());
    }

    #[test]
    fn an_error_may_lack_the_id_and_a_result_may_be_null() {
        let error = open(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#, "a");
        assert!(matches!(error, Ok(Held::Error(error)) if error.wire_code == -32700));
        assert!(matches!(open(br#"{"jsonrpc":"2.0","id":"a","result":null}"#, "a"), Ok(Held::Result(b"null"))));
        assert!(open(br#"{"jsonrpc":"2.0","id":"a","error":{}}"#, "a").is_err());
        assert!(open(b"<html>", "a").is_err());
    }
}
