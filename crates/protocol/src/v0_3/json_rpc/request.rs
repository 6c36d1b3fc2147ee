//! Requests, and push configs.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::error::FieldViolation;
use crate::json::{JsonError, JsonObject, Member, MemberRef, ProtoJson, wire_message};
use crate::v0_3::content::{authentication, history_length, schemes};
use crate::v0_3::fault::{Names, renamed};
use crate::v0_3::form::{Form, all, each, optional};
use crate::wire;

use super::data::Message;

wire_message! {
    /// The request of `message/send` and `message/stream`.
    MessageSendParams {
        /// The message.
        message "message": Option<Message> [required],
        /// How to answer.
        configuration "configuration": Option<MessageSendConfiguration>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// How a send is to be answered.
    MessageSendConfiguration {
        /// The media types that the caller takes; any when empty.
        accepted_output_modes "acceptedOutputModes": Vec<String>,
        /// How many of the newest messages of the history are wanted; all when absent or 0.
        history_length "historyLength": Option<i32>,
        /// Where the events of the task are to be pushed to.
        push_notification_config "pushNotificationConfig": Option<PushNotificationConfig>,
        /// Whether to answer when the task rests; so it is when absent.
        blocking "blocking": Option<bool>,
    }
}

wire_message! {
    /// The request of `tasks/get`.
    TaskQueryParams {
        /// The id.
        id "id": String [required],
        /// How many of the newest messages of the history are wanted; all when absent or 0.
        history_length "historyLength": Option<i32>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// The request of `tasks/cancel`, `tasks/resubscribe` and `tasks/pushNotificationConfig/list`.
    TaskIdParams {
        /// The id.
        id "id": String [required],
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// The request of `tasks/pushNotificationConfig/get` and `delete`.
    PushNotificationConfigParams {
        /// The id of the task.
        id "id": String [required],
        /// The id of the push config. A get without it asks for any of the task's.
        push_notification_config_id "pushNotificationConfigId": String,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// The push config of a task: the request and the answer of `tasks/pushNotificationConfig/set`.
    TaskPushNotificationConfig {
        /// The task.
        task_id "taskId": String [required],
        /// The config.
        push_notification_config "pushNotificationConfig": Option<PushNotificationConfig> [required],
    }
}

wire_message! {
    /// Where events are pushed to.
    PushNotificationConfig {
        /// The id.
        id "id": String,
        /// The URL.
        url "url": String [required],
        /// A token that is sent along.
        token "token": String,
        /// How the receiver authenticates us.
        authentication "authentication": Option<PushNotificationAuthenticationInfo>,
    }
}

wire_message! {
    /// How a push notification is authenticated.
    PushNotificationAuthenticationInfo {
        /// The HTTP authentication schemes that the receiver takes; the first is used.
        schemes "schemes": Vec<String> [required],
        /// The credentials; their form depends on the scheme.
        credentials "credentials": String,
    }
}

/// The answer of `tasks/pushNotificationConfig/list`: an array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskPushNotificationConfigs(pub Vec<TaskPushNotificationConfig>);

impl<'de> Deserialize<'de> for TaskPushNotificationConfigs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::read_member(deserializer).map(Self)
    }
}

impl Serialize for TaskPushNotificationConfigs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        MemberRef(&self.0).serialize(serializer)
    }
}

impl ProtoJson for TaskPushNotificationConfigs {}

/// Tells the path of a breach in the names of v0.3.
fn tell(breach: FieldViolation, names: Names) -> FieldViolation {
    FieldViolation { field: renamed(&breach.field, names, IN_PARTS), description: breach.description }
}

const IN_PARTS: Names =
    &[("raw", "file.bytes"), ("url", "file.uri"), ("filename", "file.name"), ("mediaType", "file.mimeType")];

impl Form<wire::SendMessageRequest> for MessageSendParams {
    fn from_v1(request: wire::SendMessageRequest) -> Self {
        let wire::SendMessageRequest { tenant: _, message, configuration, metadata } = request;
        Self { message: message.map(Form::from_v1), configuration: configuration.map(Form::from_v1), metadata }
    }

    fn into_v1(self) -> Result<wire::SendMessageRequest, JsonError> {
        let Self { message, configuration, metadata } = self;
        Ok(wire::SendMessageRequest {
            tenant: String::new(),
            message: optional(message, "message")?,
            configuration: optional(configuration, "configuration")?,
            metadata,
        })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        const CONFIG: Names = &[
            (
                "configuration.taskPushNotificationConfig.authentication.scheme",
                "configuration.pushNotificationConfig.authentication.schemes[0]",
            ),
            ("configuration.taskPushNotificationConfig", "configuration.pushNotificationConfig"),
        ];
        let mut breach = tell(breach, CONFIG);
        breach.description = breach.description.replace("ROLE_USER", "user").replace("ROLE_AGENT", "agent");
        breach
    }
}

impl Form<wire::SendMessageConfiguration> for MessageSendConfiguration {
    fn from_v1(configuration: wire::SendMessageConfiguration) -> Self {
        let wire::SendMessageConfiguration {
            accepted_output_modes,
            task_push_notification_config,
            history_length,
            return_immediately,
        } = configuration;
        Self {
            accepted_output_modes,
            history_length,
            push_notification_config: task_push_notification_config.map(Form::from_v1),
            blocking: Some(!return_immediately),
        }
    }

    fn into_v1(self) -> Result<wire::SendMessageConfiguration, JsonError> {
        let Self { accepted_output_modes, history_length: length, push_notification_config, blocking } = self;
        Ok(wire::SendMessageConfiguration {
            accepted_output_modes,
            task_push_notification_config: optional(push_notification_config, "pushNotificationConfig")?,
            history_length: history_length(length),
            return_immediately: blocking == Some(false),
        })
    }
}

impl Form<wire::GetTaskRequest> for TaskQueryParams {
    fn from_v1(request: wire::GetTaskRequest) -> Self {
        let wire::GetTaskRequest { tenant: _, id, history_length } = request;
        Self { id, history_length, metadata: None }
    }

    fn into_v1(self) -> Result<wire::GetTaskRequest, JsonError> {
        let Self { id, history_length: length, metadata: _ } = self;
        Ok(wire::GetTaskRequest { tenant: String::new(), id, history_length: history_length(length) })
    }
}

impl Form<wire::CancelTaskRequest> for TaskIdParams {
    fn from_v1(request: wire::CancelTaskRequest) -> Self {
        let wire::CancelTaskRequest { tenant: _, id, metadata } = request;
        Self { id, metadata }
    }

    fn into_v1(self) -> Result<wire::CancelTaskRequest, JsonError> {
        let Self { id, metadata } = self;
        Ok(wire::CancelTaskRequest { tenant: String::new(), id, metadata })
    }
}

impl Form<wire::SubscribeToTaskRequest> for TaskIdParams {
    fn from_v1(request: wire::SubscribeToTaskRequest) -> Self {
        let wire::SubscribeToTaskRequest { tenant: _, id } = request;
        Self { id, metadata: None }
    }

    fn into_v1(self) -> Result<wire::SubscribeToTaskRequest, JsonError> {
        Ok(wire::SubscribeToTaskRequest { tenant: String::new(), id: self.id })
    }
}

impl Form<wire::ListTaskPushNotificationConfigsRequest> for TaskIdParams {
    fn from_v1(request: wire::ListTaskPushNotificationConfigsRequest) -> Self {
        let wire::ListTaskPushNotificationConfigsRequest { tenant: _, task_id, page_size: _, page_token: _ } = request;
        Self { id: task_id, metadata: None }
    }

    fn into_v1(self) -> Result<wire::ListTaskPushNotificationConfigsRequest, JsonError> {
        Ok(wire::ListTaskPushNotificationConfigsRequest { task_id: self.id, ..Default::default() })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        tell(breach, &[("taskId", "id")])
    }
}

/// Both requests that name one push config have the same members.
macro_rules! push_config_request {
    ($($request:ident)+) => {$(
        impl Form<wire::$request> for PushNotificationConfigParams {
            fn from_v1(request: wire::$request) -> Self {
                let wire::$request { tenant: _, task_id, id } = request;
                Self { id: task_id, push_notification_config_id: id, metadata: None }
            }

            fn into_v1(self) -> Result<wire::$request, JsonError> {
                let Self { id, push_notification_config_id, metadata: _ } = self;
                Ok(wire::$request { tenant: String::new(), task_id: id, id: push_notification_config_id })
            }

            fn violation(breach: FieldViolation) -> FieldViolation {
                tell(breach, &[("taskId", "id"), ("id", "pushNotificationConfigId")])
            }
        }
    )+};
}

push_config_request! { GetTaskPushNotificationConfigRequest DeleteTaskPushNotificationConfigRequest }

impl Form<wire::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn from_v1(config: wire::TaskPushNotificationConfig) -> Self {
        Self { task_id: config.task_id.clone(), push_notification_config: Some(Form::from_v1(config)) }
    }

    fn into_v1(self) -> Result<wire::TaskPushNotificationConfig, JsonError> {
        let Self { task_id, push_notification_config } = self;
        let config = optional(push_notification_config, "pushNotificationConfig")?.unwrap_or_default();
        Ok(wire::TaskPushNotificationConfig { task_id, ..config })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        const INSIDE: Names = &[
            ("authentication.scheme", "pushNotificationConfig.authentication.schemes[0]"),
            ("authentication", "pushNotificationConfig.authentication"),
            ("id", "pushNotificationConfig.id"),
            ("url", "pushNotificationConfig.url"),
            ("token", "pushNotificationConfig.token"),
        ];
        tell(breach, INSIDE)
    }
}

impl Form<wire::TaskPushNotificationConfig> for PushNotificationConfig {
    fn from_v1(config: wire::TaskPushNotificationConfig) -> Self {
        let wire::TaskPushNotificationConfig { tenant: _, id, task_id: _, url, token, authentication } = config;
        let authentication = authentication.map(|wire::AuthenticationInfo { scheme, credentials }| {
            PushNotificationAuthenticationInfo { schemes: schemes(scheme), credentials }
        });
        Self { id, url, token, authentication }
    }

    fn into_v1(self) -> Result<wire::TaskPushNotificationConfig, JsonError> {
        let Self { id, url, token, authentication: info } = self;
        let authentication = info.and_then(|info| authentication(info.schemes, info.credentials));
        Ok(wire::TaskPushNotificationConfig { id, url, token, authentication, ..Default::default() })
    }
}

impl Form<wire::ListTaskPushNotificationConfigsResponse> for TaskPushNotificationConfigs {
    fn from_v1(page: wire::ListTaskPushNotificationConfigsResponse) -> Self {
        Self(all(page.configs))
    }

    fn into_v1(self) -> Result<wire::ListTaskPushNotificationConfigsResponse, JsonError> {
        Ok(wire::ListTaskPushNotificationConfigsResponse { configs: each(self.0, "")?, ..Default::default() })
    }
}
