//! The three bindings: how a call becomes bytes, and bytes an answer.

pub(crate) mod details;
pub(crate) mod exchange;
pub(crate) mod grpc;
pub(crate) mod http_json;
pub(crate) mod json_rpc;
pub(crate) mod said;
pub(crate) mod stream;
mod v0_3;
mod v1_0;

use http::HeaderName;

use crate::card::{Binding, Chosen, ProtocolVersion};
use crate::error::ClientError;
use crate::operation::{Opening, Operation, Reply as _};
use crate::transport::Deadline;
use exchange::Exchange;
use said::Dialect;
use stream::RawStream;
use v0_3::V0_3;
use v1_0::V1_0;

/// The version of the protocol that is spoken. What differs between them is in [`Dialect`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Spoken {
    /// From 1.0 on.
    Current,
    /// 0.3.
    Old,
}

impl Spoken {
    /// The one that an interface was chosen for.
    pub fn of(chosen: &Chosen) -> Self {
        if chosen.version < ProtocolVersion::V1_0 { Self::Old } else { Self::Current }
    }

    /// The header that names the extensions which a call asks for.
    pub fn extensions_header(self) -> HeaderName {
        HeaderName::from_static(match self {
            Self::Current => "a2a-extensions",
            Self::Old => "x-a2a-extensions",
        })
    }
}

/// Calls an operation once.
pub(crate) async fn call<O: Operation>(
    chosen: &Chosen,
    exchange: &Exchange<'_>,
    request: &O,
    tenant: &str,
    deadline: Deadline,
) -> Result<O::Reply, ClientError> {
    let reply = match Spoken::of(chosen) {
        Spoken::Current => call_in::<V1_0, O>(chosen.binding, exchange, request, tenant, deadline).await?,
        Spoken::Old => call_in::<V0_3, O>(chosen.binding, exchange, request, tenant, deadline).await?,
    };
    request.check(&reply).map_err(|what| exchange.invalid(what))?;
    Ok(reply)
}

async fn call_in<D: Dialect, O: Operation>(
    binding: Binding,
    exchange: &Exchange<'_>,
    request: &O,
    tenant: &str,
    deadline: Deadline,
) -> Result<O::Reply, ClientError> {
    let mut reply = match binding {
        Binding::JsonRpc => json_rpc::call(exchange, D::json_rpc(request)?, deadline).await?,
        Binding::HttpJson => http_json::call(exchange, D::http_json(request, tenant)?, deadline).await?,
        Binding::Grpc => grpc::call::<D, O>(exchange, request.clone(), deadline).await?,
    };
    reply.normalize();
    D::settle(request, &mut reply);
    Ok(reply)
}

/// Opens a stream once. The deadline is for its opening only.
pub(crate) async fn open(
    chosen: &Chosen,
    exchange: Exchange<'_>,
    opening: Opening,
    tenant: &str,
    deadline: Deadline,
) -> Result<RawStream, ClientError> {
    match Spoken::of(chosen) {
        Spoken::Current => open_in::<V1_0>(chosen.binding, exchange, opening, tenant, deadline).await,
        Spoken::Old => {
            let wants_no_history = opening.wants_no_history();
            let stream = open_in::<V0_3>(chosen.binding, exchange, opening, tenant, deadline).await?;
            Ok(if wants_no_history { stream.without_history() } else { stream })
        }
    }
}

async fn open_in<D: Dialect>(
    binding: Binding,
    exchange: Exchange<'_>,
    opening: Opening,
    tenant: &str,
    deadline: Deadline,
) -> Result<RawStream, ClientError> {
    match binding {
        Binding::JsonRpc => json_rpc::open_stream(exchange, D::json_rpc_stream(opening), deadline).await,
        Binding::HttpJson => http_json::open_stream(exchange, D::http_json_stream(opening, tenant), deadline).await,
        Binding::Grpc => grpc::open_stream::<D>(exchange, opening, deadline).await,
    }
}
