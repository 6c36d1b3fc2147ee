//! gRPC statuses, their details and metadata (§10).

use http::uri::PathAndQuery;
use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_protobuf::{a2a, rpc};
use longhaul_tests::{Channel, Server};
use tonic::{Code, Request, Status};
use tonic_prost::prost::Message as _;

use crate::server;

async fn client(server: &Server) -> A2aServiceClient<Channel> {
    let channel = Channel::open(server.addr()).await.unwrap();
    let origin = channel.origin.clone();
    A2aServiceClient::with_origin(channel, origin)
}

fn v1<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("a2a-version", "1.0".parse().unwrap());
    request
}

/// The details of a status: kind and content of each.
fn details(status: &Status) -> Vec<(String, Vec<u8>)> {
    let status = rpc::Status::decode(status.details()).unwrap();
    status.details.into_iter().map(|any| (any.type_url, any.value)).collect()
}

fn echo() -> a2a::SendMessageRequest {
    let part = a2a::Part { content: Some(a2a::part::Content::Text("echo".to_owned())), ..Default::default() };
    let message = a2a::Message { message_id: "m".to_owned(), role: 1, parts: vec![part], ..Default::default() };
    a2a::SendMessageRequest { message: Some(message), ..Default::default() }
}

#[tokio::test]
async fn refusal_carries_its_reason_in_the_details() {
    let (server, _) = server().await;
    let mut client = client(&server).await;
    let request = a2a::GetTaskRequest { id: "unknown".to_owned(), ..Default::default() };
    let status = client.get_task(v1(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let inner = rpc::Status::decode(status.details()).unwrap();
    assert_eq!((inner.code, inner.message.as_str()), (5, status.message()));
    let details = details(&status);
    assert_eq!(details[0].0, "type.googleapis.com/google.rpc.ErrorInfo");
    let info = rpc::ErrorInfo::decode(details[0].1.as_slice()).unwrap();
    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("TASK_NOT_FOUND", "a2a-protocol.org"));
    assert_eq!(info.metadata["taskId"], "unknown");
}

#[tokio::test]
async fn fields_that_are_wrong_are_named_in_the_details() {
    let (server, _) = server().await;
    let mut client = client(&server).await;
    let request = a2a::SendMessageRequest::default();
    let status = client.send_message(v1(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = details(&status);
    let bad = details.iter().find(|(kind, _)| kind == "type.googleapis.com/google.rpc.BadRequest");
    let bad = rpc::BadRequest::decode(bad.unwrap().1.as_slice()).unwrap();
    assert_eq!(bad.field_violations[0].field, "message");
}

#[tokio::test]
async fn time_that_is_out_of_range_is_named() {
    let (server, _) = server().await;
    let mut client = client(&server).await;
    let mut request = a2a::ListTasksRequest::default();
    let filter = request.status_timestamp_after.get_or_insert_default();
    filter.seconds = i64::MAX;
    let status = client.list_tasks(v1(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let bad = rpc::BadRequest::decode(details(&status)[1].1.as_slice()).unwrap();
    assert_eq!(bad.field_violations[0].field, "statusTimestampAfter");
}

#[tokio::test]
async fn answers_carry_the_version() {
    let (server, _) = server().await;
    let mut client = client(&server).await;
    let reply = client.list_tasks(v1(a2a::ListTasksRequest::default())).await.unwrap();
    assert_eq!(reply.metadata().get("a2a-version").unwrap(), "1.0");
    let reply = client.send_streaming_message(v1(echo())).await.unwrap();
    assert_eq!(reply.metadata().get("a2a-version").unwrap(), "1.0");
    assert_eq!(reply.metadata().get("last-event-id").unwrap(), "1");
    for request in [
        v1(a2a::GetTaskRequest { id: "unknown".to_owned(), ..Default::default() }),
        Request::new(a2a::GetTaskRequest { id: "unknown".to_owned(), ..Default::default() }),
    ] {
        let status = client.get_task(request).await.unwrap_err();
        assert_eq!(status.metadata().get("a2a-version").unwrap(), "1.0", "{status:?}");
    }
}

#[tokio::test]
async fn unknown_method_or_service_is_unimplemented() {
    let (server, _) = server().await;
    for path in ["/lf.a2a.v1.A2AService/Nope", "/nope.Service/GetTask", "/nope"] {
        let channel = Channel::open(server.addr()).await.unwrap();
        let origin = channel.origin.clone();
        let mut grpc = tonic::client::Grpc::with_origin(channel, origin);
        grpc.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<a2a::GetTaskRequest, a2a::Task>::default();
        let request = v1(a2a::GetTaskRequest::default());
        let status = grpc.unary(request, PathAndQuery::from_static(path), codec).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented, "{path}: {status:?}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_message_are_refused() {
    let (server, _) = server().await;
    let channel = Channel::open(server.addr()).await.unwrap();
    let origin = channel.origin.clone();
    let mut grpc = tonic::client::Grpc::with_origin(channel, origin);
    grpc.ready().await.unwrap();
    // A message whose field 1 is a string that is no UTF-8, encoded as bytes by another message.
    let codec = tonic_prost::ProstCodec::<longhaul_protobuf::a2a::Part, a2a::Task>::default();
    let raw = a2a::Part { content: Some(a2a::part::Content::Raw(vec![0xff, 0xfe].into())), ..Default::default() };
    let path = PathAndQuery::from_static("/lf.a2a.v1.A2AService/GetTask");
    let status = grpc.unary(v1(raw), path, codec).await.unwrap_err();
    assert!(matches!(status.code(), Code::InvalidArgument | Code::Internal), "{status:?}");
}
