//! The operations of A2A (§3.1), once for all bindings: capabilities, field rules, then the engine.

use std::sync::Arc;

use longhaul_engine::{
    Engine, EngineError, EventStream, HistoryLimit, PushConfigPage, PushConfigsQuery, Scope, SendReply, SendRequest,
    SubscribeRequest, TasksQuery, TurnRequest, VersionsQuery,
};
use longhaul_protocol::rules::{FieldRules, PAGE_SIZE_DEFAULT};
use longhaul_protocol::{A2aError, ContextId, ErrorCode, FieldViolation, Message, Owner, Tenant, wire};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::parameters::Parameters;

/// Carries out operations.
#[derive(Debug)]
pub(crate) struct Operations {
    engine: Engine,
    streaming: bool,
    /// Extensions that a caller has to know.
    required_extensions: Vec<String>,
    streams: Arc<Semaphore>,
}

/// A stream, with its place among those that may be open.
#[derive(Debug)]
pub(crate) struct Stream {
    pub events: EventStream,
    pub permit: OwnedSemaphorePermit,
}

/// Turns an engine's error into what a peer is told; its causes are logged here and nowhere sent.
pub(crate) fn told(error: EngineError) -> A2aError {
    if let EngineError::Internal { .. }
    | EngineError::Unavailable { source: Some(_), .. }
    | EngineError::InvalidAgentResponse(_) = &error
    {
        tracing::error!(error = &error as &dyn std::error::Error, "an operation failed");
    }
    error.into()
}

impl Operations {
    pub fn new(engine: Engine, card: &wire::AgentCard, streams_max: usize) -> Self {
        let capabilities = card.capabilities.clone().unwrap_or_default();
        let required = capabilities.extensions.iter().filter(|extension| extension.required);
        Self {
            engine,
            streaming: capabilities.streaming == Some(true),
            required_extensions: required.map(|extension| extension.uri.clone()).collect(),
            streams: Arc::new(Semaphore::new(streams_max.min(Semaphore::MAX_PERMITS))),
        }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What holds for every operation: the extensions that the agent requires (A2A §3.3.4).
    pub fn admit(&self, parameters: &Parameters) -> Result<(), A2aError> {
        match self.required_extensions.iter().find(|uri| !parameters.extensions.contains(uri)) {
            None => Ok(()),
            Some(uri) => {
                let message = format!("extension {uri} is required; name it in A2A-Extensions");
                Err(A2aError::new(ErrorCode::ExtensionSupportRequired, message).with_metadata("extension", uri.clone()))
            }
        }
    }

    /// Refuses what the card says that the agent can't do.
    fn require_streaming(&self) -> Result<(), A2aError> {
        match self.streaming {
            true => Ok(()),
            false => Err(A2aError::new(
                ErrorCode::UnsupportedOperation,
                "streaming is not supported; send without it, and read the task",
            )),
        }
    }

    fn stream(&self, events: EventStream) -> Result<Stream, A2aError> {
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        let permit = permit
            .map_err(|_| told(EngineError::Exhausted("too many streams are open; close one first".to_owned())))?;
        Ok(Stream { events, permit })
    }

    pub async fn send_message(
        &self,
        parameters: &Parameters,
        request: wire::SendMessageRequest,
    ) -> Result<wire::SendMessageResponse, A2aError> {
        let send = self.send_request(parameters, request)?;
        let payload = match self.engine.send_message(send).await.map_err(told)? {
            SendReply::Task(task) => wire::SendMessageResponsePayload::Task(task),
            SendReply::Message(message) => wire::SendMessageResponsePayload::Message(message),
        };
        Ok(wire::SendMessageResponse { payload: Some(payload) })
    }

    pub async fn send_streaming_message(
        &self,
        parameters: &Parameters,
        request: wire::SendMessageRequest,
    ) -> Result<Stream, A2aError> {
        self.require_streaming()?;
        let send = self.send_request(parameters, request)?;
        if self.streams.available_permits() == 0 {
            return Err(told(EngineError::Exhausted("too many streams are open; close one first".to_owned())));
        }
        self.stream(self.engine.send_streaming_message(send).await.map_err(told)?)
    }

    pub async fn get_task(
        &self,
        parameters: &Parameters,
        request: wire::GetTaskRequest,
    ) -> Result<wire::Task, A2aError> {
        let scope = scope(parameters, &request.tenant, &request)?;
        self.engine.get_task(&scope, &request.id, history(request.history_length)).await.map_err(told)
    }

    pub async fn list_tasks(
        &self,
        parameters: &Parameters,
        request: wire::ListTasksRequest,
    ) -> Result<wire::ListTasksResponse, A2aError> {
        let scope = scope(parameters, &request.tenant, &request)?;
        let page_size = request.page_size.unwrap_or(PAGE_SIZE_DEFAULT);
        let context_id = match request.context_id.as_str() {
            "" => None,
            given => Some(ContextId::new(given).map_err(|error| invalid("contextId", error.to_string()))?),
        };
        let query = TasksQuery {
            scope,
            context_id,
            state: request.status.known(),
            status_timestamp_after: request.status_timestamp_after,
            page_size: usize::try_from(page_size).unwrap_or(0),
            page_token: request.page_token,
            history: history(request.history_length),
            artifacts: request.include_artifacts == Some(true),
        };
        let page = self.engine.list_tasks(query).await.map_err(told)?;
        Ok(wire::ListTasksResponse {
            tasks: page.tasks,
            next_page_token: page.next_page_token,
            page_size,
            total_size: i32::try_from(page.total_size).unwrap_or(i32::MAX),
        })
    }

    pub async fn cancel_task(
        &self,
        parameters: &Parameters,
        request: wire::CancelTaskRequest,
    ) -> Result<wire::Task, A2aError> {
        let scope = scope(parameters, &request.tenant, &request)?;
        self.engine.cancel_task(&scope, &request.id).await.map_err(told)
    }

    pub async fn subscribe_to_task(
        &self,
        parameters: &Parameters,
        request: wire::SubscribeToTaskRequest,
    ) -> Result<Stream, A2aError> {
        self.require_streaming()?;
        let scope = scope(parameters, &request.tenant, &request)?;
        let after = parameters.last_event_id.map(crate::parameters::LastEventId::sequence);
        let request = SubscribeRequest { scope, task_id: request.id, after };
        self.stream(self.engine.subscribe_to_task(request).await.map_err(told)?)
    }

    /// Refuses the operations on push configs when the agent does not offer them (A2A §3.3.4), whatever else is wrong.
    fn require_pushes(&self) -> Result<(), A2aError> {
        if self.engine.pushes() { Ok(()) } else { Err(told(EngineError::PushNotSupported)) }
    }

    pub async fn create_push_config(
        &self,
        parameters: &Parameters,
        config: wire::TaskPushNotificationConfig,
    ) -> Result<wire::TaskPushNotificationConfig, A2aError> {
        self.require_pushes()?;
        let scope = scope(parameters, &config.tenant, &config)?;
        self.engine.create_push_config(&scope, config, parameters.version.name()).await.map_err(told)
    }

    pub async fn get_push_config(
        &self,
        parameters: &Parameters,
        request: wire::GetTaskPushNotificationConfigRequest,
    ) -> Result<wire::TaskPushNotificationConfig, A2aError> {
        self.require_pushes()?;
        let scope = scope(parameters, &request.tenant, &request)?;
        self.engine.push_config(&scope, &request.task_id, &request.id).await.map_err(told)
    }

    pub async fn list_push_configs(
        &self,
        parameters: &Parameters,
        request: wire::ListTaskPushNotificationConfigsRequest,
    ) -> Result<wire::ListTaskPushNotificationConfigsResponse, A2aError> {
        self.require_pushes()?;
        let scope = scope(parameters, &request.tenant, &request)?;
        let page_size = match request.page_size {
            0 => PAGE_SIZE_DEFAULT,
            given => given,
        };
        let page_size = usize::try_from(page_size).unwrap_or(0);
        let query = PushConfigsQuery { scope, task_id: request.task_id, page_size, page_token: request.page_token };
        let page = self.engine.push_configs(query).await.map_err(told)?;
        let PushConfigPage { configs, next_page_token } = page;
        Ok(wire::ListTaskPushNotificationConfigsResponse { configs, next_page_token })
    }

    pub async fn delete_push_config(
        &self,
        parameters: &Parameters,
        request: wire::DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), A2aError> {
        self.require_pushes()?;
        let scope = scope(parameters, &request.tenant, &request)?;
        self.engine.delete_push_config(&scope, &request.task_id, &request.id).await.map_err(told)
    }

    /// GetExtendedAgentCard: the agent has none (A2A §3.3.4).
    pub fn extended_card_not_supported(&self) -> A2aError {
        A2aError::new(
            ErrorCode::UnsupportedOperation,
            "there is no extended agent card; the public one is all there is",
        )
    }

    pub async fn list_artifact_versions(
        &self,
        parameters: &Parameters,
        request: wire::ListArtifactVersionsRequest,
    ) -> Result<wire::ListArtifactVersionsResponse, A2aError> {
        let scope = scope(parameters, &request.tenant, &request)?;
        let query = VersionsQuery {
            scope,
            task_id: request.task_id,
            artifact_id: request.artifact_id,
            page_size: usize::try_from(request.page_size.unwrap_or(PAGE_SIZE_DEFAULT)).unwrap_or(0),
            page_token: request.page_token,
        };
        let page = self.engine.list_artifact_versions(query).await.map_err(told)?;
        let versions = page.versions.into_iter().map(|known| wire::ArtifactVersion {
            version: signed(known.version),
            sequence: signed(known.sequence),
            timestamp: Some(known.timestamp),
            last_chunk: known.last_chunk,
        });
        Ok(wire::ListArtifactVersionsResponse { versions: versions.collect(), next_page_token: page.next_page_token })
    }

    pub async fn get_artifact(
        &self,
        parameters: &Parameters,
        request: wire::GetArtifactRequest,
    ) -> Result<wire::GetArtifactResponse, A2aError> {
        let scope = scope(parameters, &request.tenant, &request)?;
        let version = request.version.map(|version| u64::try_from(version).unwrap_or(0));
        let found = self.engine.artifact(&scope, &request.task_id, &request.artifact_id, version).await;
        let (version, artifact) = found.map_err(told)?;
        Ok(wire::GetArtifactResponse { version: signed(version), artifact: Some(artifact) })
    }

    fn send_request(
        &self,
        parameters: &Parameters,
        request: wire::SendMessageRequest,
    ) -> Result<SendRequest, A2aError> {
        let wants_push =
            |configuration: &wire::SendMessageConfiguration| configuration.task_push_notification_config.is_some();
        if request.configuration.as_ref().is_some_and(wants_push) {
            self.require_pushes()?;
        }
        let scope = scope(parameters, &request.tenant, &request)?;
        let configuration = request.configuration.unwrap_or_default();
        let message = request.message.ok_or_else(|| invalid("message", "is required"))?;
        let message = Message::new(message).map_err(A2aError::invalid_argument)?;
        Ok(SendRequest {
            scope,
            message,
            request: TurnRequest {
                accepted_output_modes: configuration.accepted_output_modes,
                metadata: request.metadata,
                extensions: parameters.extensions.clone(),
            },
            history: history(configuration.history_length),
            return_immediately: configuration.return_immediately,
            push: configuration.task_push_notification_config,
            version: parameters.version.name(),
        })
    }
}

/// Checks a request by its field rules, and finds out whose it is.
fn scope(parameters: &Parameters, tenant: &str, request: &impl FieldRules) -> Result<Scope, A2aError> {
    let violations = request.violations();
    if !violations.is_empty() {
        return Err(A2aError::invalid_argument(violations));
    }
    let tenant = match (parameters.tenant.as_str(), tenant) {
        ("", given) | (given, "") => given,
        (path, given) if path == given => given,
        (path, _) => {
            return Err(invalid("tenant", format!("is not the tenant of the path, {path:?}; leave one of them out")));
        }
    };
    let tenant = Tenant::new(tenant).map_err(|error| invalid("tenant", error.to_string()))?;
    Ok(Scope { tenant, owner: Owner::default() })
}

/// One field that breaks a rule.
pub(crate) fn invalid(field: &str, description: impl Into<String>) -> A2aError {
    A2aError::invalid_argument(vec![FieldViolation { field: field.to_owned(), description: description.into() }])
}

/// How much history is wanted (A2A §3.2.4). The field rules have refused what is negative.
fn history(length: Option<i32>) -> HistoryLimit {
    length.map_or(HistoryLimit::All, |length| HistoryLimit::Latest(usize::try_from(length).unwrap_or(0)))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
