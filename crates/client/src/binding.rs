//! The three bindings: how a call becomes bytes, and bytes an answer.

pub(crate) mod details;
pub(crate) mod exchange;
pub(crate) mod grpc;
pub(crate) mod http_json;
pub(crate) mod json_rpc;
pub(crate) mod stream;

use crate::card::Binding;
use crate::error::ClientError;
use crate::operation::{Opening, Operation};
use crate::transport::Deadline;
use exchange::Exchange;
use stream::RawStream;

/// Calls an operation once.
pub(crate) async fn call<O: Operation>(
    binding: Binding,
    exchange: &Exchange<'_>,
    request: &O,
    tenant: &str,
    deadline: Deadline,
) -> Result<O::Reply, ClientError> {
    let reply = match binding {
        Binding::JsonRpc => json_rpc::call(exchange, request, deadline).await?,
        Binding::HttpJson => http_json::call(exchange, request, tenant, deadline).await?,
        Binding::Grpc => grpc::call(exchange, request.clone(), deadline).await?,
    };
    request.check(&reply).map_err(|what| exchange.invalid(what))?;
    Ok(reply)
}

/// Opens a stream once. The deadline is for its opening only.
pub(crate) async fn open(
    binding: Binding,
    exchange: Exchange<'_>,
    opening: &Opening,
    tenant: &str,
    deadline: Deadline,
) -> Result<RawStream, ClientError> {
    match binding {
        Binding::JsonRpc => {
            let (target, body, id) = json_rpc::opening(exchange.interface, opening);
            RawStream::open(exchange, target, body, Some(id), deadline).await
        }
        Binding::HttpJson => {
            let (target, body) = http_json::opening(exchange.interface, tenant, opening);
            RawStream::open(exchange, target, body, None, deadline).await
        }
        Binding::Grpc => grpc::open(exchange, opening.clone(), deadline).await,
    }
}
