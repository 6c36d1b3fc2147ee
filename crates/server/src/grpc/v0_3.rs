//! The service of v0.3's package `a2a.v1` (§3.5.6 of v0.3).

use std::sync::Arc;

use longhaul_engine::StreamItem;
use longhaul_protobuf::a2a_v0_3 as old;
use longhaul_protobuf::convert::v0_3::{Older, card_from_v1};
use longhaul_protobuf::{a2a_v0_3::a2a_service_server::A2aService, status};
use longhaul_protocol::v0_3::{Form, in_names_of, proto};
use longhaul_protocol::{A2aError, wire};
use tonic::{Request, Response, Status};

use super::stream::{self, GrpcStream, Tells};
use crate::operation::Operations;
use crate::parameters::Parameters;
use crate::sse::Then;
use crate::v0_3::{no_extended_card, proto_event, push_config};
use crate::version::Version;

type EventStream = GrpcStream<old::StreamResponse>;

#[derive(Clone, Debug)]
pub(super) struct Binding {
    operations: Arc<Operations>,
    /// The card; `None` when it can't be told in v0.3.
    card: Option<Arc<old::AgentCard>>,
}

impl Binding {
    pub fn new(operations: &Arc<Operations>, card: &wire::AgentCard) -> Self {
        let told = card_from_v1(card).unwrap_or_else(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot tell the card in v0.3");
            None
        });
        Self { operations: Arc::clone(operations), card: told.map(Arc::new) }
    }

    /// What comes beside the message, and the message as one of v1.0.
    fn admit<T: Older<W>, W>(&self, request: Request<T>) -> Result<(Parameters, W), Status> {
        let (metadata, _, message) = request.into_parts();
        let parameters = Parameters::from_headers(&metadata.into_headers()).spoken(Version::V0_3);
        self.operations.admit(&parameters).map_err(|error| status::encode_v0_3(&error))?;
        let request = message.into_v1().map_err(|error| status::encode_v0_3(&A2aError::from(error)))?;
        Ok((parameters, request))
    }
}

/// A result, or its error in the names of the request `F`.
fn answer<F: Form<Q>, Q, W, T: Older<W>>(result: Result<W, A2aError>) -> Result<Response<T>, Status> {
    match result {
        Ok(answer) => Ok(Response::new(T::from_v1(answer))),
        Err(error) => Err(refused::<F, Q>(error)),
    }
}

fn refused<F: Form<Q>, Q>(error: A2aError) -> Status {
    status::encode_v0_3(&in_names_of::<F, Q>(error))
}

async fn stream_answer<F: Form<Q>, Q>(
    stream: Result<crate::operation::Stream, A2aError>,
) -> Result<Response<EventStream>, Status> {
    stream::answer(stream.map_err(in_names_of::<F, Q>), TELLS).await
}

const TELLS: Tells<old::StreamResponse> = Tells { item: message, error: status::encode_v0_3 };

fn message(item: &StreamItem) -> Result<(old::StreamResponse, Then), Status> {
    let (event, then) = proto_event(item).map_err(|error| status::encode_v0_3(&error))?;
    Ok((event.into(), then))
}

#[tonic::async_trait]
impl A2aService for Binding {
    type SendStreamingMessageStream = EventStream;
    type TaskSubscriptionStream = EventStream;

    async fn send_message(
        &self,
        request: Request<old::SendMessageRequest>,
    ) -> Result<Response<old::SendMessageResponse>, Status> {
        let (parameters, request) = self.admit(request)?;
        let sent = self.operations.send_message(&parameters, request).await;
        answer::<proto::SendMessageRequest, wire::SendMessageRequest, _, _>(sent)
    }

    async fn send_streaming_message(
        &self,
        request: Request<old::SendMessageRequest>,
    ) -> Result<Response<EventStream>, Status> {
        let (parameters, request) = self.admit(request)?;
        let sent = self.operations.send_streaming_message(&parameters, request).await;
        stream_answer::<proto::SendMessageRequest, wire::SendMessageRequest>(sent).await
    }

    async fn get_task(&self, request: Request<old::GetTaskRequest>) -> Result<Response<old::Task>, Status> {
        let (parameters, request) = self.admit(request)?;
        let read = self.operations.get_task(&parameters, request).await;
        answer::<proto::GetTaskRequest, wire::GetTaskRequest, _, _>(read)
    }

    async fn cancel_task(&self, request: Request<old::CancelTaskRequest>) -> Result<Response<old::Task>, Status> {
        let (parameters, request) = self.admit(request)?;
        let canceled = self.operations.cancel_task(&parameters, request).await;
        answer::<proto::CancelTaskRequest, wire::CancelTaskRequest, _, _>(canceled)
    }

    async fn task_subscription(
        &self,
        request: Request<old::TaskSubscriptionRequest>,
    ) -> Result<Response<EventStream>, Status> {
        let (parameters, request) = self.admit(request)?;
        let stream = self.operations.subscribe_to_task(&parameters, request).await;
        stream_answer::<proto::TaskSubscriptionRequest, wire::SubscribeToTaskRequest>(stream).await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<old::CreateTaskPushNotificationConfigRequest>,
    ) -> Result<Response<old::TaskPushNotificationConfig>, Status> {
        let (parameters, config) = self.admit(request)?;
        let made = self.operations.create_push_config(&parameters, config).await;
        answer::<proto::CreateTaskPushNotificationConfigRequest, wire::TaskPushNotificationConfig, _, _>(made)
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<old::GetTaskPushNotificationConfigRequest>,
    ) -> Result<Response<old::TaskPushNotificationConfig>, Status> {
        let (parameters, request) = self.admit(request)?;
        let read = push_config(&self.operations, &parameters, request).await;
        type Of = proto::GetTaskPushNotificationConfigRequest;
        answer::<Of, wire::GetTaskPushNotificationConfigRequest, _, _>(read)
    }

    async fn list_task_push_notification_config(
        &self,
        request: Request<old::ListTaskPushNotificationConfigRequest>,
    ) -> Result<Response<old::ListTaskPushNotificationConfigResponse>, Status> {
        let (parameters, request) = self.admit(request)?;
        let page = self.operations.list_push_configs(&parameters, request).await;
        type Of = proto::ListTaskPushNotificationConfigRequest;
        answer::<Of, wire::ListTaskPushNotificationConfigsRequest, _, _>(page)
    }

    async fn get_agent_card(
        &self,
        _request: Request<old::GetAgentCardRequest>,
    ) -> Result<Response<old::AgentCard>, Status> {
        match &self.card {
            Some(card) => Ok(Response::new(old::AgentCard::clone(card))),
            None => Err(status::encode_v0_3(&no_extended_card())),
        }
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<old::DeleteTaskPushNotificationConfigRequest>,
    ) -> Result<Response<()>, Status> {
        let (parameters, request) = self.admit(request)?;
        let deleted = self.operations.delete_push_config(&parameters, request).await;
        type Of = proto::DeleteTaskPushNotificationConfigRequest;
        deleted.map(Response::new).map_err(refused::<Of, wire::DeleteTaskPushNotificationConfigRequest>)
    }
}
