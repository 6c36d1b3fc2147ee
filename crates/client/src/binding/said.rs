//! A call in the words of one version of the protocol, for the bindings to send.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::future::BoxFuture;
use http::StatusCode;
use longhaul_protobuf::ConvertError;
use longhaul_protocol::json::JsonError;
use longhaul_protocol::wire;
use serde_json::Value;
use tonic::{Request, Response, Status};

use super::exchange::Kind;
use super::http_json::Route;
use crate::error::{AgentError, ClientError};
use crate::operation::{GrpcClients, Opening, Operation};

/// Reads an answer, or an item of a stream.
pub(crate) type Read<R> = fn(&[u8]) -> Result<R, JsonError>;
/// Reads the error object of JSON-RPC; none if it has no code.
pub(crate) type RpcError = fn(&Value) -> Option<AgentError>;
/// Reads the body of an HTTP+JSON error; none if it is something else.
pub(crate) type HttpError = fn(&[u8], StatusCode) -> Option<AgentError>;
/// Reads the status that ended a gRPC call.
pub(crate) type GrpcError = fn(&Status) -> AgentError;

/// A call over JSON-RPC.
#[derive(Debug)]
pub(crate) struct RpcCall<R> {
    pub method: &'static str,
    pub params: Bytes,
    pub result: Read<R>,
    pub error: RpcError,
}

/// A call over HTTP+JSON.
#[derive(Debug)]
pub(crate) struct HttpCall<R> {
    pub route: Route,
    /// Which comes before the route's path; empty for none.
    pub tenant: String,
    /// Empty where the route has none.
    pub body: Bytes,
    pub kind: Kind,
    pub answer: Read<R>,
    pub error: HttpError,
}

/// What gRPC answers.
pub(crate) type GrpcAnswer<R> = BoxFuture<'static, Result<Response<R>, Status>>;
/// The items of a stream over gRPC, each as it was read.
pub(crate) type GrpcStream =
    Pin<Box<dyn Stream<Item = Result<Result<wire::StreamResponse, ConvertError>, Status>> + Send + Sync>>;

/// A call over gRPC, which goes out when the answer is polled.
pub(crate) struct GrpcCall<R> {
    pub answer: GrpcAnswer<R>,
    pub error: GrpcError,
}

impl<R> fmt::Debug for GrpcCall<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcCall").finish_non_exhaustive()
    }
}

/// One version of the protocol: how it says each operation over each binding.
pub(crate) trait Dialect {
    /// # Errors
    ///
    /// [`ClientError::NotOffered`] where the version does not have the operation.
    fn json_rpc<O: Operation>(request: &O) -> Result<RpcCall<O::Reply>, ClientError>;

    /// # Errors
    ///
    /// As [`json_rpc`](Self::json_rpc).
    fn http_json<O: Operation>(request: &O, tenant: &str) -> Result<HttpCall<O::Reply>, ClientError>;

    /// # Errors
    ///
    /// As [`json_rpc`](Self::json_rpc).
    fn grpc<O: Operation>(
        clients: GrpcClients,
        request: Request<O>,
    ) -> Result<GrpcCall<Result<O::Reply, ConvertError>>, ClientError>;

    /// What the version's servers leave for the client to do about an answer.
    fn settle<O: Operation>(request: &O, reply: &mut O::Reply);

    fn json_rpc_stream(opening: Opening) -> RpcCall<wire::StreamResponse>;

    fn http_json_stream(opening: Opening, tenant: &str) -> HttpCall<wire::StreamResponse>;

    fn grpc_stream(clients: GrpcClients, opening: Request<Opening>) -> GrpcCall<GrpcStream>;
}
