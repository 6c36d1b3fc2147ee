//! The client: every operation of §3.1 towards one agent.

mod builder;
mod discover;
mod verify;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use longhaul_protocol::wire;
use tokio::time::{sleep, timeout};

use crate::binding::exchange::Exchange;
use crate::binding::stream::RawStream;
use crate::binding::{self, Spoken};
use crate::card::{Binding, CardDocument, Chosen, Credentials};
use crate::credentials::{self, CredentialSource};
use crate::error::ClientError;
use crate::interceptor::{Call, Interceptor, WireEvent, WireLog};
use crate::operation::{Nothing, Opening, Operation, Repetition};
use crate::retry::{Resend, RetryPolicy};
use crate::transport::{Deadline, Transport};

pub use builder::ClientBuilder;
pub use discover::FoundCard;
pub use wait::WaitOptions;

/// The extension by which an agent says that it tells a repeated send by its message id.
pub const IDEMPOTENT_SEND: &str = "urn:longhaul:ext:idempotent-send:v1";
/// The extension by which an agent says that its streams can be resumed after any event.
pub const STREAM_RESUME: &str = "urn:longhaul:ext:stream-resume:v1";

const LAST_EVENT_ID_HEADER: HeaderName = HeaderName::from_static("last-event-id");
/// The longest id of an event that is sent back, in bytes: servers refuse requests whose headers are large.
pub(crate) const EVENT_ID_BYTES_MAX: usize = 2048;

/// A client of one agent, by one of the interfaces that its card names. Clones share connections.
///
/// Each operation is one method; requests are those of [`wire`], whose tenant becomes the one that the card says, or none. All
/// methods end by an answer or by a [`ClientError`]: within [`ClientBuilder::timeout`] for each attempt, and within
/// [`ClientBuilder::blocking_timeout`] for a send that waits for the task.
///
/// Dropping a future abandons the call. What the agent had got of it by then, it may act on.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    document: Arc<CardDocument>,
    chosen: Chosen,
    /// What each call says in its headers about itself: the version, and the extensions that it asks for.
    own_headers: HeaderMap,
    transport: Transport,
    options: Options,
}

/// What a builder gathers for all calls.
#[derive(Clone, Debug)]
struct Options {
    timeout: Duration,
    blocking_timeout: Duration,
    retry: RetryPolicy,
    /// Headers of each call, all of which are taken to hold secrets.
    headers: HeaderMap,
    credentials: Option<Arc<dyn CredentialSource>>,
    interceptors: Vec<Arc<dyn Interceptor>>,
    log: Option<Arc<dyn WireLog>>,
}

impl Client {
    /// A builder, for all that has a default.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Reads the card that the reference names (a host, a URL, a file), and picks an interface. The defaults of
    /// [`ClientBuilder`] hold.
    ///
    /// # Errors
    ///
    /// [`ClientError::Card`] when there is no card, or none that can be used, and whatever fetching it can end by.
    pub async fn connect(reference: &str) -> Result<Self, ClientError> {
        Self::builder().connect(reference).await
    }

    /// The agent's card.
    #[must_use]
    pub fn card(&self) -> &wire::AgentCard {
        self.inner.document.card()
    }

    /// The card as it was received, which signatures are over.
    #[must_use]
    pub fn document(&self) -> &CardDocument {
        &self.inner.document
    }

    /// The interface that calls go to.
    #[must_use]
    pub fn interface(&self) -> &Chosen {
        &self.inner.chosen
    }

    /// Which binding calls go over.
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.inner.chosen.binding
    }

    /// Whether the card declares this extension.
    #[must_use]
    pub fn declares(&self, extension: &str) -> bool {
        let capabilities = self.card().capabilities.as_ref();
        capabilities.is_some_and(|declared| declared.extensions.iter().any(|known| known.uri == extension))
    }

    /// Whether a send may be repeated when it is not known what became of it.
    #[must_use]
    pub fn may_resend(&self) -> bool {
        self.declares(IDEMPOTENT_SEND) || self.inner.options.retry.resend == Resend::Always
    }

    /// Whether the card offers streams.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.card().capabilities.as_ref().and_then(|capabilities| capabilities.streaming).unwrap_or(false)
    }

    fn pushes(&self) -> bool {
        self.card().capabilities.as_ref().and_then(|capabilities| capabilities.push_notifications).unwrap_or(false)
    }

    /// `SendMessage` (§3.1.1). A message without an id is given one; it is repeated with the same one.
    ///
    /// # Errors
    ///
    /// [`ClientError`]. After [`Broken`](ClientError::Broken) and [`Timeout`](ClientError::Timeout) it is not known whether the
    /// agent has the message.
    pub async fn send_message(
        &self,
        mut request: wire::SendMessageRequest,
    ) -> Result<wire::SendMessageResponse, ClientError> {
        give_id(&mut request)?;
        let waits = !request.configuration.as_ref().is_some_and(|configuration| configuration.return_immediately);
        let timeout = if waits { self.inner.options.blocking_timeout } else { self.inner.options.timeout };
        self.call(request, timeout).await
    }

    /// `GetTask` (§3.1.3).
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn get_task(&self, request: wire::GetTaskRequest) -> Result<wire::Task, ClientError> {
        self.call(request, self.inner.options.timeout).await
    }

    /// `ListTasks` (§3.1.4): one page.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn list_tasks(&self, request: wire::ListTasksRequest) -> Result<wire::ListTasksResponse, ClientError> {
        self.call(request, self.inner.options.timeout).await
    }

    /// `CancelTask` (§3.1.5). When the first answer was lost and the second attempt finds the task canceled, that is a success.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn cancel_task(&self, request: wire::CancelTaskRequest) -> Result<wire::Task, ClientError> {
        let id = request.id.clone();
        let mut attempts = 0;
        let answer = self.call_counted(request, self.inner.options.timeout, &mut attempts).await;
        let is_refused = |error: &ClientError| error.code() == Some(longhaul_protocol::ErrorCode::TaskNotCancelable);
        match answer {
            Err(error) if attempts > 1 && is_refused(&error) => {
                let task = self.get_task(wire::GetTaskRequest { id, ..wire::GetTaskRequest::default() }).await?;
                let state = task.status.as_ref().and_then(|status| status.state.known());
                if state == Some(longhaul_protocol::TaskState::Canceled) { Ok(task) } else { Err(error) }
            }
            answer => answer,
        }
    }

    /// `CreateTaskPushNotificationConfig` (§3.1.7).
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`NotOffered`](ClientError::NotOffered) when the card offers no push notifications.
    pub async fn create_push_config(
        &self,
        config: wire::TaskPushNotificationConfig,
    ) -> Result<wire::TaskPushNotificationConfig, ClientError> {
        self.need_push()?;
        self.call(config, self.inner.options.timeout).await
    }

    /// `GetTaskPushNotificationConfig` (§3.1.8).
    ///
    /// # Errors
    ///
    /// As [`create_push_config`](Self::create_push_config).
    pub async fn get_push_config(
        &self,
        request: wire::GetTaskPushNotificationConfigRequest,
    ) -> Result<wire::TaskPushNotificationConfig, ClientError> {
        self.need_push()?;
        self.call(request, self.inner.options.timeout).await
    }

    /// `ListTaskPushNotificationConfigs` (§3.1.9): one page.
    ///
    /// # Errors
    ///
    /// As [`create_push_config`](Self::create_push_config).
    pub async fn list_push_configs(
        &self,
        request: wire::ListTaskPushNotificationConfigsRequest,
    ) -> Result<wire::ListTaskPushNotificationConfigsResponse, ClientError> {
        self.need_push()?;
        self.call(request, self.inner.options.timeout).await
    }

    /// `DeleteTaskPushNotificationConfig` (§3.1.10).
    ///
    /// # Errors
    ///
    /// As [`create_push_config`](Self::create_push_config).
    pub async fn delete_push_config(
        &self,
        request: wire::DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), ClientError> {
        self.need_push()?;
        let Nothing = self.call(request, self.inner.options.timeout).await?;
        Ok(())
    }

    /// `GetExtendedAgentCard` (§3.1.11).
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`NotOffered`](ClientError::NotOffered) when the card offers none.
    pub async fn get_extended_agent_card(&self) -> Result<wire::AgentCard, ClientError> {
        let offered = self.card().capabilities.as_ref().and_then(|capabilities| capabilities.extended_agent_card);
        if offered != Some(true) {
            return Err(ClientError::NotOffered { what: "an extended agent card" });
        }
        self.call(wire::GetExtendedAgentCardRequest::default(), self.inner.options.timeout).await
    }

    /// `ListArtifactVersions`, of extension `urn:longhaul:ext:artifact-versions:v1`.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn list_artifact_versions(
        &self,
        request: wire::ListArtifactVersionsRequest,
    ) -> Result<wire::ListArtifactVersionsResponse, ClientError> {
        self.call(request, self.inner.options.timeout).await
    }

    /// `GetArtifact`, of extension `urn:longhaul:ext:artifact-versions:v1`.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn get_artifact(
        &self,
        request: wire::GetArtifactRequest,
    ) -> Result<wire::GetArtifactResponse, ClientError> {
        self.call(request, self.inner.options.timeout).await
    }

    fn need_push(&self) -> Result<(), ClientError> {
        if self.pushes() { Ok(()) } else { Err(ClientError::NotOffered { what: "push notifications" }) }
    }

    /// Calls an operation until it succeeds, or must not be tried again.
    async fn call<O: Operation>(&self, request: O, timeout: Duration) -> Result<O::Reply, ClientError> {
        self.call_counted(request, timeout, &mut 0).await
    }

    /// How an operation may be repeated at this agent.
    fn repetition(&self, declared: Repetition) -> Repetition {
        match declared {
            Repetition::ByMessageId if self.may_resend() => Repetition::Safe,
            declared => declared,
        }
    }

    async fn call_counted<O: Operation>(
        &self,
        mut request: O,
        timeout: Duration,
        attempts: &mut u32,
    ) -> Result<O::Reply, ClientError> {
        let tenant = self.set_tenant(request.tenant_mut());
        let repetition = self.repetition(O::REPETITION);
        loop {
            let result = self.attempt(&request, &tenant, timeout, *attempts).await;
            *attempts += 1;
            self.after(O::NAME, result.as_ref().err()).await;
            let error = match result {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            self.pause(O::NAME, error, *attempts, repetition).await?;
        }
    }

    /// The tenant of the interface goes into each request, exactly: where the card names none, there is none (§8.3.2).
    fn set_tenant(&self, tenant: &mut String) -> String {
        tenant.clone_from(&self.inner.chosen.tenant);
        tenant.clone()
    }

    async fn attempt<O: Operation>(
        &self,
        request: &O,
        tenant: &str,
        timeout: Duration,
        attempts_before: u32,
    ) -> Result<O::Reply, ClientError> {
        let exchange = self.exchange(&self.inner.transport, O::NAME, attempts_before, None).await?;
        binding::call(&self.inner.chosen, &exchange, request, tenant, Deadline::after(timeout)).await
    }

    /// Waits until the call may be tried again.
    ///
    /// # Errors
    ///
    /// The very error, if it must not be.
    async fn pause(
        &self,
        operation: &'static str,
        error: ClientError,
        attempts: u32,
        repetition: Repetition,
    ) -> Result<(), ClientError> {
        let Some(after) = self.inner.options.retry.wait(&error, attempts, repetition) else { return Err(error) };
        if let Some(log) = &self.inner.options.log {
            log.record(&WireEvent::Retry { operation, error: &error, after });
        }
        sleep(after).await;
        Ok(())
    }

    /// Opens a stream once.
    pub(crate) async fn open(
        &self,
        mut opening: Opening,
        last_event_id: Option<&str>,
        attempts_before: u32,
    ) -> Result<RawStream, ClientError> {
        let tenant = self.set_tenant(opening.tenant_mut());
        let operation = opening.name();
        let opened = async {
            let transport = self.inner.transport.for_stream();
            let exchange = self.exchange(&transport, operation, attempts_before, last_event_id).await?;
            let deadline = Deadline::after(self.opening_timeout(&opening));
            binding::open(&self.inner.chosen, exchange, opening, &tenant, deadline).await
        };
        let opened = opened.await;
        self.after(operation, opened.as_ref().err()).await;
        opened
    }

    /// Whether a task is subscribed to. In v0.3 a subscription need not begin with the task as it stands, so nobody knows what
    /// was missed; and it is not safe: the Python SDK, on which most agents of v0.3 stand, lets a second stream of a task
    /// write the task as well, which doubles parts of artifacts and may lose the end. There the task is asked for by
    /// `GetTask`, except of agents that number events.
    pub(crate) fn subscribes(&self) -> bool {
        Spoken::of(&self.inner.chosen) == Spoken::Current || self.declares(STREAM_RESUME)
    }

    /// How long the first sign of a stream may take. Some servers begin it with the agent's first word only, which may be the
    /// whole answer, and is lost with the stream. What may be sent again is not waited for so long.
    fn opening_timeout(&self, opening: &Opening) -> Duration {
        let Options { timeout, blocking_timeout, .. } = self.inner.options;
        match opening {
            Opening::Send(_) if !self.may_resend() => blocking_timeout.max(timeout),
            Opening::Send(_) | Opening::Subscribe(_) => timeout,
        }
    }

    pub(crate) fn retry(&self) -> &RetryPolicy {
        &self.inner.options.retry
    }

    async fn after(&self, operation: &'static str, failed: Option<&ClientError>) {
        for interceptor in &self.inner.options.interceptors {
            interceptor.after(operation, failed).await;
        }
    }

    /// All that goes beside the request.
    async fn exchange<'a>(
        &'a self,
        transport: &'a Transport,
        operation: &'static str,
        attempts_before: u32,
        last_event_id: Option<&str>,
    ) -> Result<Exchange<'a>, ClientError> {
        let Inner { document, chosen, own_headers, options, .. } = &*self.inner;
        let attached = match &options.credentials {
            Some(source) if chosen.credentials == Credentials::Sent => {
                let attaching = credentials::attach(document.card(), source.as_ref());
                timeout(options.timeout, attaching).await.unwrap_or_else(|_| Err(credentials::late(options.timeout)))?
            }
            Some(_) | None => credentials::Attached::default(),
        };
        if !attached.query.is_empty() && chosen.binding == Binding::Grpc {
            return Err(credentials::no_query());
        }
        // They are taken to hold secrets, so they go where credentials go.
        let mut headers = match chosen.credentials {
            Credentials::Sent => options.headers.clone(),
            Credentials::Withheld => HeaderMap::new(),
        };
        headers.extend(attached.headers);
        for (name, value) in own_headers {
            headers.insert(name.clone(), value.clone());
        }
        if let Some(id) = last_event_id.and_then(event_id_header) {
            headers.insert(LAST_EVENT_ID_HEADER, id);
        }
        for interceptor in &options.interceptors {
            let mut call = Call { operation, interface: &chosen.url, attempts_before, headers: &mut headers };
            interceptor.before(&mut call).await?;
        }
        // Whatever is not the client's own may be a credential, whoever put it there.
        let is_own = |name: &&HeaderName| own_headers.contains_key(*name) || **name == LAST_EVENT_ID_HEADER;
        let secret = headers.keys().filter(|name| !is_own(name)).cloned().collect();
        Ok(Exchange {
            operation,
            transport,
            interface: &chosen.url,
            headers,
            secret,
            query: attached.query,
            log: options.log.clone(),
        })
    }
}

/// The id of an event as the header that resumes a stream after it; none if no header can hold it.
pub(crate) fn event_id_header(id: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(id).ok().filter(|value| value.len() <= EVENT_ID_BYTES_MAX)
}

/// A message without an id can't be told from its repetition.
pub(crate) fn give_id(request: &mut wire::SendMessageRequest) -> Result<(), ClientError> {
    let Some(message) = &mut request.message else {
        return Err(ClientError::Invalid { field: "message".to_owned(), problem: "is missing".to_owned() });
    };
    if message.message_id.is_empty() {
        message.message_id = new_id();
    }
    Ok(())
}

/// An id that nobody else has: a random UUID.
#[must_use]
pub fn new_id() -> String {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string()
}

#[cfg(test)]
mod tests;
