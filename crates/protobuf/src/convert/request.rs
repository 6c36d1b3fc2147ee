//! Requests, and the pages that answer them.

use longhaul_protocol::wire;

use crate::a2a;
use crate::convert::{mirror, try_mirror};

mirror! {
    a2a::SendMessageConfiguration, wire::SendMessageConfiguration {
        accepted_output_modes,
        task_push_notification_config,
        history_length,
        return_immediately,
    }
    a2a::SendMessageRequest, wire::SendMessageRequest {
        tenant,
        message,
        configuration,
        metadata,
    }
    a2a::GetTaskRequest, wire::GetTaskRequest { tenant, id, history_length }
    a2a::CancelTaskRequest, wire::CancelTaskRequest { tenant, id, metadata }
    a2a::SubscribeToTaskRequest, wire::SubscribeToTaskRequest { tenant, id }
    a2a::GetExtendedAgentCardRequest, wire::GetExtendedAgentCardRequest { tenant }
    a2a::AuthenticationInfo, wire::AuthenticationInfo { scheme, credentials }
    a2a::TaskPushNotificationConfig, wire::TaskPushNotificationConfig {
        tenant,
        id,
        task_id,
        url,
        token,
        authentication,
    }
    a2a::GetTaskPushNotificationConfigRequest, wire::GetTaskPushNotificationConfigRequest {
        tenant,
        task_id,
        id,
    }
    a2a::DeleteTaskPushNotificationConfigRequest, wire::DeleteTaskPushNotificationConfigRequest {
        tenant,
        task_id,
        id,
    }
    a2a::ListTaskPushNotificationConfigsRequest, wire::ListTaskPushNotificationConfigsRequest {
        tenant,
        task_id,
        page_size,
        page_token,
    }
    a2a::ListTaskPushNotificationConfigsResponse, wire::ListTaskPushNotificationConfigsResponse {
        configs,
        next_page_token,
    }
}

try_mirror! {
    a2a::ListTasksRequest, wire::ListTasksRequest {
        tenant,
        context_id,
        status,
        page_size,
        page_token,
        history_length,
        include_artifacts;
        try status_timestamp_after: "statusTimestampAfter"
    }
    a2a::ListTasksResponse, wire::ListTasksResponse {
        next_page_token,
        page_size,
        total_size;
        try tasks: "tasks"
    }
}
