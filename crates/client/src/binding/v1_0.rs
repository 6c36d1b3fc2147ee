//! Version 1.0: the data model as it is.

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use longhaul_protobuf::{ConvertError, a2a};
use longhaul_protocol::{to_json, wire};
use tonic::Request;

use super::details;
use super::exchange::Kind;
use super::said::{Dialect, GrpcCall, GrpcStream, HttpCall, RpcCall};
use crate::error::ClientError;
use crate::operation::{GrpcClients, Opening, Operation, Reply};

/// Version 1.0, and what later minors have in common with it.
#[derive(Debug)]
pub(crate) struct V1_0;

impl Dialect for V1_0 {
    fn json_rpc<O: Operation>(request: &O) -> Result<RpcCall<O::Reply>, ClientError> {
        Ok(RpcCall {
            method: O::NAME,
            params: to_json(request),
            result: O::Reply::from_json,
            error: details::from_json_rpc,
        })
    }

    fn http_json<O: Operation>(request: &O, tenant: &str) -> Result<HttpCall<O::Reply>, ClientError> {
        let route = request.route();
        let body = if route.has_body() { to_json(request) } else { Bytes::new() };
        let (answer, error) = (O::Reply::from_json, details::from_status_json);
        Ok(HttpCall { route, tenant: tenant.to_owned(), body, kind: Kind::A2aJson, answer, error })
    }

    fn grpc<O: Operation>(
        mut clients: GrpcClients,
        request: Request<O>,
    ) -> Result<GrpcCall<Result<O::Reply, ConvertError>>, ClientError> {
        let request = request.map(O::Proto::from);
        let answer = async move { Ok(O::call(&mut clients, request).await?.map(O::Reply::from_proto)) };
        Ok(GrpcCall { answer: answer.boxed(), error: details::from_grpc })
    }

    fn settle<O: Operation>(_: &O, _: &mut O::Reply) {}

    fn json_rpc_stream(opening: Opening) -> RpcCall<wire::StreamResponse> {
        RpcCall {
            method: opening.name(),
            params: opening.json(),
            result: wire::StreamResponse::from_json,
            error: details::from_json_rpc,
        }
    }

    fn http_json_stream(opening: Opening, tenant: &str) -> HttpCall<wire::StreamResponse> {
        let route = opening.route();
        let body = if route.has_body() { opening.json() } else { Bytes::new() };
        let (answer, error) = (wire::StreamResponse::from_json, details::from_status_json);
        HttpCall { route, tenant: tenant.to_owned(), body, kind: Kind::EventStream, answer, error }
    }

    fn grpc_stream(clients: GrpcClients, opening: Request<Opening>) -> GrpcCall<GrpcStream> {
        let mut client = clients.a2a;
        let (metadata, extensions, opening) = opening.into_parts();
        let answer = async move {
            let opened = match opening {
                Opening::Send(request) => {
                    let request = a2a::SendMessageRequest::from(*request);
                    client.send_streaming_message(Request::from_parts(metadata, extensions, request)).await?
                }
                Opening::Subscribe(request) => {
                    let request = a2a::SubscribeToTaskRequest::from(request);
                    client.subscribe_to_task(Request::from_parts(metadata, extensions, request)).await?
                }
            };
            Ok(opened.map(|items| Box::pin(items.map(|item| item.map(wire::StreamResponse::from_proto))) as _))
        };
        GrpcCall { answer: answer.boxed(), error: details::from_grpc }
    }
}
