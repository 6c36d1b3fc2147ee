//! Errors as gRPC statuses, through the generated client and server as peers use them.

use std::pin::Pin;
use std::time::Duration;

use longhaul_protobuf::a2a::a2a_service_client::A2aServiceClient;
use longhaul_protobuf::a2a::a2a_service_server::{A2aService, A2aServiceServer};
use longhaul_protobuf::status::{MESSAGE_BYTES_MAX, VIOLATIONS_BYTES_MAX};
use longhaul_protobuf::{a2a, rpc, status};
use longhaul_protocol::{A2aError, ErrorCode, FieldViolation, v0_3};
use prost::Message;
use tonic::{Code, Request, Response, Status};

#[test]
fn every_error_comes_back_from_its_status() {
    for code in ErrorCode::ALL {
        let error = full(*code);
        let status = status::encode(&error);
        assert_eq!(i32::from(status.code()), code.row().grpc.number());
        assert_eq!(status::decode(&status), Some(error));
    }
}

#[test]
fn every_error_comes_back_from_its_status_of_v0_3() {
    for code in ErrorCode::ALL {
        let error = full(*code);
        let status = status::encode_v0_3(&error);
        assert_eq!(i32::from(status.code()), v0_3::error::row(*code).grpc.number());
        assert_eq!(status.message(), format!("{}: {}", v0_3::error::name(*code), error.message));
        assert_eq!(status::decode_v0_3(&status), Some(error));
    }
}

#[test]
fn an_error_of_another_server_of_v0_3_is_known_by_its_message() {
    let told = status::decode_v0_3(&Status::unimplemented("TaskNotCancelableError: it has ended")).unwrap();
    assert_eq!((told.code, told.message.as_str()), (ErrorCode::TaskNotCancelable, "it has ended"));
    assert_eq!(status::decode_v0_3(&Status::not_found("Task not found: t1")), None);
}

#[test]
fn the_details_are_those_of_google_rpc() {
    let details = status::encode_details(&full(ErrorCode::InvalidArgument));
    let types: Vec<&str> = details.details.iter().map(|any| any.type_url.as_str()).collect();
    assert_eq!(
        types,
        [
            "type.googleapis.com/google.rpc.ErrorInfo",
            "type.googleapis.com/google.rpc.BadRequest",
            "type.googleapis.com/google.rpc.RetryInfo",
        ]
    );
    let info = rpc::ErrorInfo::decode(details.details[0].value.as_slice()).unwrap();
    assert_eq!(info.reason, "INVALID_PARAMS");
    assert_eq!(info.domain, "a2a-protocol.org");
    assert_eq!(info.metadata["taskId"], "t1");
}

#[test]
fn an_error_without_more_to_say_has_only_its_reason() {
    let details = status::encode_details(&ErrorCode::TaskNotFound.into());
    assert_eq!(details.details.len(), 1);
}

#[test]
fn a_status_stays_small_however_much_is_wrong() {
    let violation = FieldViolation { field: "message.parts[0]".repeat(100), description: "é".repeat(5000) };
    let mut error = A2aError::invalid_argument(vec![violation; 200]);
    error.message = "é".repeat(5000);
    let status = status::encode(&error);
    assert!(status.details().len() < MESSAGE_BYTES_MAX + VIOLATIONS_BYTES_MAX + 512);
    let told = status::decode(&status).unwrap();
    assert!(!told.violations.is_empty());
    assert!(told.message.len() <= MESSAGE_BYTES_MAX);
}

#[test]
fn the_status_of_another_kind_of_server_is_no_a2a_error() {
    assert_eq!(status::decode(&Status::internal("x")), None);
    let mut details = status::encode_details(&ErrorCode::TaskNotFound.into());
    let mut info = rpc::ErrorInfo::decode(details.details[0].value.as_slice()).unwrap();
    info.domain = "example.com".to_owned();
    details.details[0].value = info.encode_to_vec();
    let foreign = Status::with_details(Code::NotFound, "x", details.encode_to_vec().into());
    assert_eq!(status::decode(&foreign), None);
    let garbled = Status::with_details(Code::NotFound, "x", vec![0xff; 9].into());
    assert_eq!(status::decode(&garbled), None);
}

#[tokio::test]
async fn an_error_passes_from_the_generated_server_to_the_generated_client() {
    let mut client = A2aServiceClient::new(A2aServiceServer::new(Refusing));
    let request = a2a::GetTaskRequest { id: "t1".to_owned(), ..Default::default() };
    let status = client.get_task(request).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status::decode(&status), Some(A2aError::task_not_found("t1")));
}

fn full(code: ErrorCode) -> A2aError {
    let mut error = A2aError::new(code, "what went wrong: é")
        .with_metadata("taskId", "t1")
        .with_retry_after(Duration::from_millis(1500));
    error
        .violations
        .push(FieldViolation { field: "message.parts[0]".to_owned(), description: "must not be empty".to_owned() });
    error
}

/// Knows no task and does nothing.
struct Refusing;

type Streamed = Pin<Box<dyn tonic::codegen::tokio_stream::Stream<Item = Result<a2a::StreamResponse, Status>> + Send>>;

/// Answers the methods that this test does not call.
macro_rules! unsupported {
    ($($method:ident: $request:ident => $response:ty;)*) => {
        #[tonic::async_trait]
        impl A2aService for Refusing {
            type SendStreamingMessageStream = Streamed;
            type SubscribeToTaskStream = Streamed;

            async fn get_task(
                &self,
                request: Request<a2a::GetTaskRequest>,
            ) -> Result<Response<a2a::Task>, Status> {
                Err(status::encode(&A2aError::task_not_found(&request.get_ref().id)))
            }

            $(async fn $method(
                &self,
                _: Request<a2a::$request>,
            ) -> Result<Response<$response>, Status> {
                Err(status::encode(&ErrorCode::UnsupportedOperation.into()))
            })*
        }
    };
}

unsupported! {
    send_message: SendMessageRequest => a2a::SendMessageResponse;
    send_streaming_message: SendMessageRequest => Streamed;
    list_tasks: ListTasksRequest => a2a::ListTasksResponse;
    cancel_task: CancelTaskRequest => a2a::Task;
    subscribe_to_task: SubscribeToTaskRequest => Streamed;
    create_task_push_notification_config: TaskPushNotificationConfig
        => a2a::TaskPushNotificationConfig;
    get_task_push_notification_config: GetTaskPushNotificationConfigRequest
        => a2a::TaskPushNotificationConfig;
    list_task_push_notification_configs: ListTaskPushNotificationConfigsRequest
        => a2a::ListTaskPushNotificationConfigsResponse;
    get_extended_agent_card: GetExtendedAgentCardRequest => a2a::AgentCard;
    delete_task_push_notification_config: DeleteTaskPushNotificationConfigRequest => ();
}
