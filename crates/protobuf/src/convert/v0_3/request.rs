//! Requests, and push configs.

use longhaul_protocol::v0_3::proto;

use crate::a2a_v0_3;
use crate::convert::mirror;

mirror! {
    a2a_v0_3::SendMessageRequest, proto::SendMessageRequest { request, configuration, metadata }
    a2a_v0_3::SendMessageConfiguration, proto::SendMessageConfiguration {
        accepted_output_modes,
        push_notification,
        history_length,
        blocking,
    }
    a2a_v0_3::PushNotificationConfig, proto::PushNotificationConfig { id, url, token, authentication }
    a2a_v0_3::AuthenticationInfo, proto::AuthenticationInfo { schemes, credentials }
    a2a_v0_3::TaskPushNotificationConfig, proto::TaskPushNotificationConfig { name, push_notification_config }
    a2a_v0_3::GetTaskRequest, proto::GetTaskRequest { name, history_length }
    a2a_v0_3::CancelTaskRequest, proto::CancelTaskRequest { name }
    a2a_v0_3::TaskSubscriptionRequest, proto::TaskSubscriptionRequest { name }
    a2a_v0_3::GetTaskPushNotificationConfigRequest, proto::GetTaskPushNotificationConfigRequest { name }
    a2a_v0_3::DeleteTaskPushNotificationConfigRequest, proto::DeleteTaskPushNotificationConfigRequest { name }
    a2a_v0_3::CreateTaskPushNotificationConfigRequest, proto::CreateTaskPushNotificationConfigRequest {
        parent,
        config_id,
        config,
    }
    a2a_v0_3::ListTaskPushNotificationConfigRequest, proto::ListTaskPushNotificationConfigRequest {
        parent,
        page_size,
        page_token,
    }
    a2a_v0_3::ListTaskPushNotificationConfigResponse, proto::ListTaskPushNotificationConfigResponse {
        configs,
        next_page_token,
    }
}
