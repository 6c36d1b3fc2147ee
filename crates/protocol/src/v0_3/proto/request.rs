//! Requests, and push configs.

use crate::error::FieldViolation;
use crate::json::{JsonError, JsonObject, wire_message};
use crate::v0_3::content::{authentication, history_length, schemes};
use crate::v0_3::fault::{Names, renamed};
use crate::v0_3::form::{Form, all, each, optional};
use crate::wire;

use super::data::Message;
use super::name::{push_config_ids, push_config_name, task_id, task_name};

wire_message! {
    /// The request of `SendMessage` and `SendStreamingMessage`.
    SendMessageRequest {
        /// The message.
        request "message": Option<Message>,
        /// How to answer.
        configuration "configuration": Option<SendMessageConfiguration>,
        /// More, in no form of the protocol.
        metadata "metadata": Option<JsonObject>,
    }
}

wire_message! {
    /// How a send is to be answered.
    SendMessageConfiguration {
        /// The media types that the caller takes; any when empty.
        accepted_output_modes "acceptedOutputModes": Vec<String>,
        /// Where the events of the task are to be pushed to.
        push_notification "pushNotification": Option<PushNotificationConfig>,
        /// How many of the newest messages of the history are wanted; all when 0.
        history_length "historyLength": i32,
        /// Whether to answer when the task rests. A configuration that does not say so answers before.
        blocking "blocking": bool,
    }
}

wire_message! {
    /// Where events are pushed to.
    PushNotificationConfig {
        /// The id.
        id "id": String,
        /// The URL.
        url "url": String,
        /// A token that is sent along.
        token "token": String,
        /// How the receiver authenticates us.
        authentication "authentication": Option<AuthenticationInfo>,
    }
}

wire_message! {
    /// How a push notification is authenticated.
    AuthenticationInfo {
        /// The HTTP authentication schemes that the receiver takes; the first is used.
        schemes "schemes": Vec<String>,
        /// The credentials; their form depends on the scheme.
        credentials "credentials": String,
    }
}

wire_message! {
    /// The push config of a task.
    TaskPushNotificationConfig {
        /// `tasks/{id}/pushNotificationConfigs/{id}`.
        name "name": String,
        /// The config.
        push_notification_config "pushNotificationConfig": Option<PushNotificationConfig>,
    }
}

wire_message! {
    /// The request of `GetTask`.
    GetTaskRequest {
        /// `tasks/{id}`.
        name "name": String,
        /// How many of the newest messages of the history are wanted; all when 0.
        history_length "historyLength": i32,
    }
}

wire_message! {
    /// The request of `CancelTask`.
    CancelTaskRequest {
        /// `tasks/{id}`.
        name "name": String,
    }
}

wire_message! {
    /// The request of `TaskSubscription`.
    TaskSubscriptionRequest {
        /// `tasks/{id}`.
        name "name": String,
    }
}

wire_message! {
    /// The request of `GetTaskPushNotificationConfig`.
    GetTaskPushNotificationConfigRequest {
        /// `tasks/{id}/pushNotificationConfigs/{id}`.
        name "name": String,
    }
}

wire_message! {
    /// The request of `DeleteTaskPushNotificationConfig`.
    DeleteTaskPushNotificationConfigRequest {
        /// `tasks/{id}/pushNotificationConfigs/{id}`.
        name "name": String,
    }
}

wire_message! {
    /// The request of `CreateTaskPushNotificationConfig`.
    CreateTaskPushNotificationConfigRequest {
        /// `tasks/{id}`.
        parent "parent": String,
        /// The id that the config is to have.
        config_id "configId": String,
        /// The config.
        config "config": Option<TaskPushNotificationConfig>,
    }
}

wire_message! {
    /// The body of HTTP+JSON's `POST /v1/tasks/{id}/pushNotificationConfigs`. Clients disagree on what it is: the members
    /// of the whole request, or those of the config alone.
    PushConfigBody {
        /// `tasks/{id}`.
        parent "parent": String,
        /// The id that the config is to have.
        config_id "configId": String,
        /// The config.
        config "config": Option<TaskPushNotificationConfig>,
        /// `tasks/{id}/pushNotificationConfigs/{id}`.
        name "name": String,
        /// The config without its name.
        push_notification_config "pushNotificationConfig": Option<PushNotificationConfig>,
    }
}

wire_message! {
    /// The request of `ListTaskPushNotificationConfig`.
    ListTaskPushNotificationConfigRequest {
        /// `tasks/{id}`.
        parent "parent": String,
        /// The most items of a page.
        page_size "pageSize": i32,
        /// Where the page starts; empty for the first.
        page_token "pageToken": String,
    }
}

wire_message! {
    /// One page of push configs.
    ListTaskPushNotificationConfigResponse {
        /// The push configs.
        configs "configs": Vec<TaskPushNotificationConfig>,
        /// Where the next page starts; empty when there is none.
        next_page_token "nextPageToken": String,
    }
}

/// Tells the path of a breach in the names of v0.3.
fn tell(breach: FieldViolation, names: Names) -> FieldViolation {
    FieldViolation { field: renamed(&breach.field, names, IN_PARTS), description: breach.description }
}

const IN_PARTS: Names = &[
    ("raw", "file.fileWithBytes"),
    ("url", "file.fileWithUri"),
    ("filename", "file.name"),
    ("mediaType", "file.mimeType"),
    ("data", "data.data"),
];

impl Form<wire::SendMessageRequest> for SendMessageRequest {
    /// A request without a configuration waits in v1.0, but not at each server of v0.3: so there is always one.
    fn from_v1(request: wire::SendMessageRequest) -> Self {
        let wire::SendMessageRequest { tenant: _, message, configuration, metadata } = request;
        Self {
            request: message.map(Form::from_v1),
            configuration: Some(Form::from_v1(configuration.unwrap_or_default())),
            metadata,
        }
    }

    fn into_v1(self) -> Result<wire::SendMessageRequest, JsonError> {
        let Self { request, configuration, metadata } = self;
        Ok(wire::SendMessageRequest {
            tenant: String::new(),
            message: optional(request, "message")?,
            configuration: optional(configuration, "configuration")?,
            metadata,
        })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        const NAMES: Names = &[
            ("message.parts", "message.content"),
            (
                "configuration.taskPushNotificationConfig.authentication.scheme",
                "configuration.pushNotification.authentication.schemes[0]",
            ),
            ("configuration.taskPushNotificationConfig", "configuration.pushNotification"),
        ];
        tell(breach, NAMES)
    }
}

impl Form<wire::SendMessageConfiguration> for SendMessageConfiguration {
    fn from_v1(configuration: wire::SendMessageConfiguration) -> Self {
        let wire::SendMessageConfiguration {
            accepted_output_modes,
            task_push_notification_config,
            history_length,
            return_immediately,
        } = configuration;
        Self {
            accepted_output_modes,
            push_notification: task_push_notification_config.map(Form::from_v1),
            history_length: history_length.unwrap_or_default(),
            blocking: !return_immediately,
        }
    }

    fn into_v1(self) -> Result<wire::SendMessageConfiguration, JsonError> {
        let Self { accepted_output_modes, push_notification, history_length: length, blocking } = self;
        Ok(wire::SendMessageConfiguration {
            accepted_output_modes,
            task_push_notification_config: optional(push_notification, "pushNotification")?,
            history_length: history_length(Some(length)),
            return_immediately: !blocking,
        })
    }
}

impl Form<wire::TaskPushNotificationConfig> for PushNotificationConfig {
    fn from_v1(config: wire::TaskPushNotificationConfig) -> Self {
        let wire::TaskPushNotificationConfig { tenant: _, id, task_id: _, url, token, authentication } = config;
        let authentication = authentication.map(|wire::AuthenticationInfo { scheme, credentials }| {
            AuthenticationInfo { schemes: schemes(scheme), credentials }
        });
        Self { id, url, token, authentication }
    }

    fn into_v1(self) -> Result<wire::TaskPushNotificationConfig, JsonError> {
        let Self { id, url, token, authentication: info } = self;
        let authentication = info.and_then(|info| authentication(info.schemes, info.credentials));
        Ok(wire::TaskPushNotificationConfig { id, url, token, authentication, ..Default::default() })
    }
}

impl Form<wire::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn from_v1(config: wire::TaskPushNotificationConfig) -> Self {
        let name = push_config_name(&config.task_id, &config.id);
        Self { name, push_notification_config: Some(Form::from_v1(config)) }
    }

    fn into_v1(self) -> Result<wire::TaskPushNotificationConfig, JsonError> {
        let Self { name, push_notification_config } = self;
        let (task_id, id_of_name) = push_config_ids(&name, "name")?;
        let mut config = optional(push_notification_config, "pushNotificationConfig")?.unwrap_or_default();
        if config.id.is_empty() {
            config.id = id_of_name;
        }
        Ok(wire::TaskPushNotificationConfig { task_id, ..config })
    }
}

impl Form<wire::TaskPushNotificationConfig> for CreateTaskPushNotificationConfigRequest {
    fn from_v1(config: wire::TaskPushNotificationConfig) -> Self {
        Self { parent: task_name(&config.task_id), config_id: config.id.clone(), config: Some(Form::from_v1(config)) }
    }

    fn into_v1(self) -> Result<wire::TaskPushNotificationConfig, JsonError> {
        let Self { parent, config_id, config } = self;
        let config = config.unwrap_or_default();
        // The config's own name is not looked at: an SDK ends it with `None` when the config has no id.
        let config = optional(config.push_notification_config, "config.pushNotificationConfig")?;
        let mut config = config.unwrap_or_default();
        if config.id.is_empty() {
            config.id = config_id;
        }
        Ok(wire::TaskPushNotificationConfig { task_id: task_id(&parent, "parent")?, ..config })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        const NAMES: Names = &[
            ("taskId", "parent"),
            ("authentication.scheme", "config.pushNotificationConfig.authentication.schemes[0]"),
            ("authentication", "config.pushNotificationConfig.authentication"),
            ("id", "config.pushNotificationConfig.id"),
            ("url", "config.pushNotificationConfig.url"),
            ("token", "config.pushNotificationConfig.token"),
        ];
        tell(breach, NAMES)
    }
}

impl Form<wire::TaskPushNotificationConfig> for PushConfigBody {
    fn from_v1(config: wire::TaskPushNotificationConfig) -> Self {
        let CreateTaskPushNotificationConfigRequest { parent, config_id, config } = Form::from_v1(config);
        Self { parent, config_id, config, ..Self::default() }
    }

    /// The task's id is empty when the body does not name it; the path does.
    fn into_v1(self) -> Result<wire::TaskPushNotificationConfig, JsonError> {
        let Self { parent, config_id, config, name, push_notification_config } = self;
        let config = config.or(Some(TaskPushNotificationConfig { name, push_notification_config }));
        CreateTaskPushNotificationConfigRequest { parent, config_id, config }.into_v1()
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        CreateTaskPushNotificationConfigRequest::violation(breach)
    }
}

impl Form<wire::GetTaskRequest> for GetTaskRequest {
    fn from_v1(request: wire::GetTaskRequest) -> Self {
        let wire::GetTaskRequest { tenant: _, id, history_length } = request;
        Self { name: task_name(&id), history_length: history_length.unwrap_or_default() }
    }

    fn into_v1(self) -> Result<wire::GetTaskRequest, JsonError> {
        let Self { name, history_length: length } = self;
        let id = task_id(&name, "name")?;
        Ok(wire::GetTaskRequest { tenant: String::new(), id, history_length: history_length(Some(length)) })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        tell(breach, &[("id", "name")])
    }
}

impl Form<wire::CancelTaskRequest> for CancelTaskRequest {
    fn from_v1(request: wire::CancelTaskRequest) -> Self {
        let wire::CancelTaskRequest { tenant: _, id, metadata: _ } = request;
        Self { name: task_name(&id) }
    }

    fn into_v1(self) -> Result<wire::CancelTaskRequest, JsonError> {
        Ok(wire::CancelTaskRequest { id: task_id(&self.name, "name")?, ..Default::default() })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        tell(breach, &[("id", "name")])
    }
}

impl Form<wire::SubscribeToTaskRequest> for TaskSubscriptionRequest {
    fn from_v1(request: wire::SubscribeToTaskRequest) -> Self {
        let wire::SubscribeToTaskRequest { tenant: _, id } = request;
        Self { name: task_name(&id) }
    }

    fn into_v1(self) -> Result<wire::SubscribeToTaskRequest, JsonError> {
        Ok(wire::SubscribeToTaskRequest { id: task_id(&self.name, "name")?, ..Default::default() })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        tell(breach, &[("id", "name")])
    }
}

/// Both requests that name one push config have the same member.
macro_rules! push_config_request {
    ($($request:ident)+) => {$(
        impl Form<wire::$request> for $request {
            fn from_v1(request: wire::$request) -> Self {
                let wire::$request { tenant: _, task_id, id } = request;
                Self { name: push_config_name(&task_id, &id) }
            }

            fn into_v1(self) -> Result<wire::$request, JsonError> {
                let (task_id, id) = push_config_ids(&self.name, "name")?;
                Ok(wire::$request { tenant: String::new(), task_id, id })
            }

            fn violation(breach: FieldViolation) -> FieldViolation {
                tell(breach, &[("taskId", "name"), ("id", "name")])
            }
        }
    )+};
}

push_config_request! { GetTaskPushNotificationConfigRequest DeleteTaskPushNotificationConfigRequest }

impl Form<wire::ListTaskPushNotificationConfigsRequest> for ListTaskPushNotificationConfigRequest {
    fn from_v1(request: wire::ListTaskPushNotificationConfigsRequest) -> Self {
        let wire::ListTaskPushNotificationConfigsRequest { tenant: _, task_id, page_size, page_token } = request;
        Self { parent: task_name(&task_id), page_size, page_token }
    }

    fn into_v1(self) -> Result<wire::ListTaskPushNotificationConfigsRequest, JsonError> {
        let Self { parent, page_size, page_token } = self;
        let task_id = task_id(&parent, "parent")?;
        Ok(wire::ListTaskPushNotificationConfigsRequest { tenant: String::new(), task_id, page_size, page_token })
    }

    fn violation(breach: FieldViolation) -> FieldViolation {
        tell(breach, &[("taskId", "parent")])
    }
}

impl Form<wire::ListTaskPushNotificationConfigsResponse> for ListTaskPushNotificationConfigResponse {
    fn from_v1(page: wire::ListTaskPushNotificationConfigsResponse) -> Self {
        let wire::ListTaskPushNotificationConfigsResponse { configs, next_page_token } = page;
        Self { configs: all(configs), next_page_token }
    }

    fn into_v1(self) -> Result<wire::ListTaskPushNotificationConfigsResponse, JsonError> {
        let Self { configs, next_page_token } = self;
        Ok(wire::ListTaskPushNotificationConfigsResponse { configs: each(configs, "configs")?, next_page_token })
    }
}
