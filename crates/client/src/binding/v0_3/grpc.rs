//! gRPC of v0.3: package `a2a.v1`.

use futures_util::{FutureExt as _, StreamExt as _};
use longhaul_protobuf::convert::v0_3::Older as _;
use longhaul_protobuf::{ConvertError, a2a_v0_3};
use tonic::Request;

use crate::binding::details::v0_3::from_grpc;
use crate::binding::said::{GrpcCall, GrpcStream};
use crate::operation::v0_3::Forms;
use crate::operation::{GrpcClients, Opening};

pub(super) fn call<Q, R>(
    clients: GrpcClients,
    request: Request<Q>,
    forms: Forms<Q, R>,
) -> GrpcCall<Result<R, ConvertError>> {
    GrpcCall { answer: (forms.grpc)(clients.a2a_v0_3, request), error: from_grpc }
}

pub(super) fn stream(clients: GrpcClients, opening: Request<Opening>) -> GrpcCall<GrpcStream> {
    let mut client = clients.a2a_v0_3;
    let (metadata, extensions, opening) = opening.into_parts();
    let answer = async move {
        let opened = match opening {
            Opening::Send(request) => {
                let request = a2a_v0_3::SendMessageRequest::from_v1(*request);
                client.send_streaming_message(Request::from_parts(metadata, extensions, request)).await?
            }
            Opening::Subscribe(request) => {
                let request = a2a_v0_3::TaskSubscriptionRequest::from_v1(request);
                client.task_subscription(Request::from_parts(metadata, extensions, request)).await?
            }
        };
        Ok(opened.map(|items| Box::pin(items.map(|item| item.map(a2a_v0_3::StreamResponse::into_v1))) as _))
    };
    GrpcCall { answer: answer.boxed(), error: from_grpc }
}
