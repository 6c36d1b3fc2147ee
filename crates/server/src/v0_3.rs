//! What the bindings of v0.3 share: how streams are told, and what v0.3 asks for in another way.

use longhaul_engine::{EngineError, StreamItem};
use longhaul_protocol::rules::PAGE_SIZE_MAX;
use longhaul_protocol::v0_3::{Form, json_rpc, proto};
use longhaul_protocol::{A2aError, ErrorCode, from_json, wire};

use crate::operation::{Operations, told};
use crate::parameters::Parameters;
use crate::sse::Then;

/// An item of a stream, as JSON-RPC tells it. A stream ends with what is final (§7.2 of v0.3).
pub(crate) fn rpc_event(item: &StreamItem) -> Result<(json_rpc::Event, Then), A2aError> {
    let mut event = json_rpc::Event::from_v1(read(item)?);
    if let Some(json_rpc::EventPayload::StatusUpdate(update)) = &mut event.payload {
        // A question that a message has answered already is not the end of anything.
        update.r#final &= item.rests;
    }
    let then = if event.is_final() { Then::End } else { Then::More };
    Ok((event, then))
}

/// An item of a stream, as HTTP+JSON and gRPC tell it.
pub(crate) fn proto_event(item: &StreamItem) -> Result<(proto::StreamResponse, Then), A2aError> {
    let mut event = proto::StreamResponse::from_v1(read(item)?);
    if let Some(proto::StreamResponsePayload::StatusUpdate(update)) = &mut event.payload {
        update.r#final &= item.rests;
    }
    let then = if event.is_final() { Then::End } else { Then::More };
    Ok((event, then))
}

/// The item as v1.0 has it.
pub(crate) fn read(item: &StreamItem) -> Result<wire::StreamResponse, A2aError> {
    from_json(&item.payload)
        .map_err(|error| told(EngineError::Internal { action: "read an event", source: Box::new(error) }))
}

/// What an SDK of v0.3 puts into paths and names where its caller gave no id.
const NO_ID: &str = "None";

/// The push config that is asked for. Without an id it is any of the task's: the first.
pub(crate) async fn push_config(
    operations: &Operations,
    parameters: &Parameters,
    request: wire::GetTaskPushNotificationConfigRequest,
) -> Result<wire::TaskPushNotificationConfig, A2aError> {
    if !request.id.is_empty() {
        match operations.get_push_config(parameters, request.clone()).await {
            Err(error) if error.code == ErrorCode::TaskNotFound && request.id == NO_ID => {}
            answered => return answered,
        }
    }
    let task_id = request.task_id.clone();
    let one = wire::ListTaskPushNotificationConfigsRequest {
        tenant: request.tenant,
        task_id: request.task_id,
        page_size: 1,
        page_token: String::new(),
    };
    let page = operations.list_push_configs(parameters, one).await?;
    page.configs.into_iter().next().ok_or_else(|| {
        let message = format!("task {task_id} has no push config");
        A2aError::new(ErrorCode::TaskNotFound, message).with_metadata("taskId", task_id)
    })
}

/// All push configs of a task: the answer of JSON-RPC has no pages.
pub(crate) async fn push_configs(
    operations: &Operations,
    parameters: &Parameters,
    request: wire::ListTaskPushNotificationConfigsRequest,
) -> Result<wire::ListTaskPushNotificationConfigsResponse, A2aError> {
    let mut all = wire::ListTaskPushNotificationConfigsResponse::default();
    let mut request = wire::ListTaskPushNotificationConfigsRequest { page_size: PAGE_SIZE_MAX, ..request };
    // A task has only so many configs, and each page but the last holds some of them.
    loop {
        let page = operations.list_push_configs(parameters, request.clone()).await?;
        all.configs.extend(page.configs);
        if page.next_page_token.is_empty() {
            return Ok(all);
        }
        request.page_token = page.next_page_token;
    }
}

/// The extended card: there is none, for which v0.3 has an error of its own.
pub(crate) fn no_extended_card() -> A2aError {
    A2aError::new(
        ErrorCode::ExtendedAgentCardNotConfigured,
        "there is no authenticated extended card; the public one is all there is",
    )
}
