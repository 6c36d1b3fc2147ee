use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_engine::{HistoryLimit, IDEMPOTENT_SEND, Scope, SendRequest, TurnRequest, text_part};
use longhaul_protocol::{Message, Role, wire};

use crate::VERSION;

/// Builds a send of one text, under a message id of its own.
#[must_use]
pub fn send(text: impl Into<String>) -> SendBuilder {
    static SENT: AtomicU64 = AtomicU64::new(1);
    let message = wire::Message {
        message_id: format!("message-{}", SENT.fetch_add(1, Ordering::Relaxed)),
        role: Role::User.into(),
        parts: vec![text_part(text)],
        ..wire::Message::default()
    };
    SendBuilder {
        scope: Scope::default(),
        message,
        request: TurnRequest::default(),
        history: HistoryLimit::All,
        return_immediately: false,
        push: None,
        version: VERSION,
    }
}

/// A send that is being built.
#[derive(Clone, Debug)]
pub struct SendBuilder {
    scope: Scope,
    message: wire::Message,
    request: TurnRequest,
    history: HistoryLimit,
    return_immediately: bool,
    push: Option<wire::TaskPushNotificationConfig>,
    version: &'static str,
}

impl SendBuilder {
    /// Continues a task.
    #[must_use]
    pub fn to(mut self, task_id: impl Into<String>) -> Self {
        self.message.task_id = task_id.into();
        self
    }

    /// Names a context.
    #[must_use]
    pub fn in_context(mut self, context_id: impl Into<String>) -> Self {
        self.message.context_id = context_id.into();
        self
    }

    /// Gives the message this id.
    #[must_use]
    pub fn with_id(mut self, message_id: impl Into<String>) -> Self {
        self.message.message_id = message_id.into();
        self
    }

    /// Sends these parts instead of the text.
    #[must_use]
    pub fn with_parts(mut self, parts: Vec<wire::Part>) -> Self {
        self.message.parts = parts;
        self
    }

    /// Sends in this scope.
    #[must_use]
    pub fn in_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Asks that a repetition is recognized.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.request.extensions.push(IDEMPOTENT_SEND.to_owned());
        self
    }

    /// Wants at most this much history in the answer.
    #[must_use]
    pub fn with_history(mut self, limit: usize) -> Self {
        self.history = HistoryLimit::Latest(limit);
        self
    }

    /// Wants the answer after the first commit.
    #[must_use]
    pub fn immediately(mut self) -> Self {
        self.return_immediately = true;
        self
    }

    /// Wants the task's events to be pushed.
    #[must_use]
    pub fn pushing(mut self, config: wire::TaskPushNotificationConfig) -> Self {
        self.push = Some(config);
        self
    }

    /// Speaks this version of the protocol.
    #[must_use]
    pub fn speaking(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// The send, checked.
    #[must_use]
    pub fn build(self) -> SendRequest {
        let Self { scope, message, request, history, return_immediately, push, version } = self;
        let message = Message::new(message).expect("a test sends a valid message");
        SendRequest { scope, message, request, history, return_immediately, push, version }
    }
}
