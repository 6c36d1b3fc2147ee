//! Version 0.3, of which [`longhaul_protocol::v0_3`] and [`longhaul_protobuf::convert::v0_3`] know how everything is said.
//!
//! What its operations are called, and which it does not have, is in the tables of [`operation::v0_3`](crate::operation::v0_3).

mod grpc;
mod http_json;
mod json_rpc;

use longhaul_protobuf::ConvertError;
use longhaul_protocol::wire;
use tonic::Request;

use super::said::{Dialect, GrpcCall, GrpcStream, HttpCall, RpcCall};
use crate::error::ClientError;
use crate::operation::v0_3::Forms;
use crate::operation::{GrpcClients, Opening, Operation};

/// Version 0.3.
#[derive(Debug)]
pub(crate) struct V0_3;

/// What v0.3 has for an operation.
fn forms<O: Operation>() -> Result<Forms<O, O::Reply>, ClientError> {
    O::V0_3.map_err(|what| ClientError::NotOffered { what })
}

impl Dialect for V0_3 {
    fn json_rpc<O: Operation>(request: &O) -> Result<RpcCall<O::Reply>, ClientError> {
        Ok(json_rpc::call(request.clone(), forms::<O>()?))
    }

    /// There are no tenants in v0.3.
    fn http_json<O: Operation>(request: &O, _: &str) -> Result<HttpCall<O::Reply>, ClientError> {
        Ok(http_json::call(request.clone(), forms::<O>()?))
    }

    fn grpc<O: Operation>(
        clients: GrpcClients,
        request: Request<O>,
    ) -> Result<GrpcCall<Result<O::Reply, ConvertError>>, ClientError> {
        Ok(grpc::call(clients, request, forms::<O>()?))
    }

    fn settle<O: Operation>(request: &O, reply: &mut O::Reply) {
        if let Ok(forms) = O::V0_3 {
            (forms.settle)(request, reply);
        }
    }

    fn json_rpc_stream(opening: Opening) -> RpcCall<wire::StreamResponse> {
        json_rpc::stream(opening)
    }

    fn http_json_stream(opening: Opening, _: &str) -> HttpCall<wire::StreamResponse> {
        http_json::stream(opening)
    }

    fn grpc_stream(clients: GrpcClients, opening: Request<Opening>) -> GrpcCall<GrpcStream> {
        grpc::stream(clients, opening)
    }
}
