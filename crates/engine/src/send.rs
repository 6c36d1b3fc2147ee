//! SendMessage and SendStreamingMessage (A2A §3.1.1, §3.1.2).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use longhaul_lifecycle::{Command, Rejection, TaskHead, Writer};
use longhaul_protocol::{ContextId, Message, TaskId, json, rules, wire};
use longhaul_store::{
    Commit, Dedup, Expect, HistoryLimit, NewMessage, NewTask, PushConfig, Scope, StoreError, TurnRequest, created_event,
};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;

use crate::clock::{later, within};
use crate::drive::{TurnStart, View, drive};
use crate::engine::{Inner, Worker, contended, known_form, new_messages, status_time};
use crate::hub::{Heard, Subscription};
use crate::push::{NewPush, too_many_pushes};
use crate::running::Begins;
use crate::schedule::decide_all;
use crate::stream::EventStream;
use crate::turn::agent_message;
use crate::{Accept, DedupMode, Engine, EngineError, IDEMPOTENT_SEND, Incoming};

/// A message that a caller sends (A2A §3.2.1), already checked by the field rules.
#[derive(Clone, Debug)]
pub struct SendRequest {
    /// Whose request it is.
    pub scope: Scope,
    /// The message.
    pub message: Message,
    /// What the agent's turn needs besides.
    pub request: TurnRequest,
    /// How much history the answer comes with.
    pub history: HistoryLimit,
    /// Whether to answer after the first commit instead of waiting for the task to rest.
    pub return_immediately: bool,
    /// Where the task's events are to be pushed to as well, from this message's on.
    pub push: Option<wire::TaskPushNotificationConfig>,
    /// The version of the protocol that the caller speaks: what is pushed there is written in it.
    pub version: &'static str,
}

/// The answer to a send.
#[derive(Clone, Debug, PartialEq)]
pub enum SendReply {
    /// The task that the message made or continued.
    Task(wire::Task),
    /// A direct answer; there is no task.
    Message(wire::Message),
}

/// Where the push config of a send stands in its request.
const PUSH_FIELD: &str = "configuration.taskPushNotificationConfig.";

/// What a send began.
enum Begun {
    Message(Box<wire::Message>),
    Task(Box<BegunTask>),
}

struct BegunTask {
    head: TaskHead,
    /// Registered before the commit, so that nothing is missed. Absent when nobody will wait.
    subscription: Option<Subscription>,
    /// The turn to run, if a worker was free.
    turn: Option<Box<TurnStart>>,
    /// Set for a task that this send created: its first message.
    created: Option<Message>,
}

/// How the caller is going to wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Waits {
    ForAnswer,
    OnStream,
    Not,
}

impl Engine {
    /// Sends a message (A2A §3.1.1). Answers when the task rests (§3.2.2), or after the first commit if
    /// `return_immediately` is set.
    ///
    /// # Errors
    ///
    /// [`EngineError::TaskNotFound`], [`EngineError::UnsupportedOperation`] for a task that has ended,
    /// [`EngineError::Invalid`], [`EngineError::ContentTypeNotSupported`], [`EngineError::Exhausted`],
    /// [`EngineError::Unavailable`].
    ///
    /// # Cancel safety
    ///
    /// A caller that leaves changes nothing: what was begun goes on.
    pub async fn send_message(&self, send: SendRequest) -> Result<SendReply, EngineError> {
        let (scope, history) = (send.scope.clone(), send.history);
        let waits = if send.return_immediately { Waits::Not } else { Waits::ForAnswer };
        let begun = match self.inner.begun(send, waits).await? {
            Begun::Message(message) => return Ok(SendReply::Message(*message)),
            Begun::Task(begun) => begun,
        };
        if waits == Waits::Not {
            self.inner.run_beside(begun.turn);
            let task = self.inner.snapshot(&scope, &begun.head.id, Some(begun.head.last_sequence), history).await?.task;
            return Ok(SendReply::Task(task));
        }
        let task_id = begun.head.id.clone();
        if let Some(turn) = begun.turn {
            // The turn runs in this very task as long as the caller stays: its commits wake nobody but us.
            // Tracked from the beginning, so that a shutdown waits for it wherever it runs.
            let turn = self.inner.tracker.track_future(drive(Arc::clone(&self.inner), *turn));
            let end = Detached::new(Arc::clone(&self.inner), turn).await;
            if let Some(head) = end.head.filter(TaskHead::rests) {
                let task = match end.view {
                    Some(task) => with_history(task, history),
                    None => self.inner.snapshot(&scope, &task_id, Some(head.last_sequence), history).await?.task,
                };
                return Ok(SendReply::Task(task));
            }
        }
        let subscription = begun.subscription.unwrap_or_else(|| self.inner.hub.subscribe(&task_id));
        // The task as it rested: it may have gone on by itself, or by another caller's message.
        let rested = self.inner.wait_until_it_rests(&scope, &task_id, &subscription).await?;
        Ok(SendReply::Task(self.inner.snapshot(&scope, &task_id, Some(rested), history).await?.task))
    }

    /// Sends a message and follows its task (A2A §3.1.2). The stream begins with the task, and ends when the task has
    /// ended or waits for an answer of its caller.
    ///
    /// # Errors
    ///
    /// As [`Engine::send_message`].
    pub async fn send_streaming_message(&self, send: SendRequest) -> Result<EventStream, EngineError> {
        let (scope, history) = (send.scope.clone(), send.history);
        let metadata = None;
        let mut begun = match self.inner.begun(send, Waits::OnStream).await? {
            Begun::Message(message) => return Ok(EventStream::of_message(Arc::clone(&self.inner), *message)),
            Begun::Task(begun) => begun,
        };
        let subscription = begun.subscription.unwrap_or_else(|| self.inner.hub.subscribe(&begun.head.id));
        let stream = match &begun.created {
            Some(message) => EventStream::of_new_task(
                Arc::clone(&self.inner),
                subscription,
                created_task(&begun.head, message, metadata, history),
            ),
            None => {
                // Begun before anything is awaited: the caller may leave meanwhile.
                self.inner.run_beside(begun.turn.take());
                let snapshot =
                    self.inner.snapshot(&scope, &begun.head.id, Some(begun.head.last_sequence), history).await;
                snapshot
                    .map(|snapshot| EventStream::of_snapshot(Arc::clone(&self.inner), subscription, snapshot, true))?
            }
        };
        self.inner.run_beside(begun.turn);
        Ok(stream)
    }
}

/// A task as it was created, for the first item of its own stream.
fn created_task(
    head: &TaskHead,
    message: &Message,
    metadata: Option<longhaul_protocol::JsonObject>,
    history: HistoryLimit,
) -> wire::Task {
    let status = wire::TaskStatus {
        state: longhaul_protocol::TaskState::Submitted.into(),
        message: None,
        timestamp: Some(head.status_timestamp),
    };
    let task = wire::Task {
        id: head.id.as_str().to_owned(),
        context_id: head.context_id.as_str().to_owned(),
        status: Some(status),
        history: vec![message.as_wire().clone()],
        metadata,
        ..wire::Task::default()
    };
    with_history(task, history)
}

fn with_history(mut task: wire::Task, history: HistoryLimit) -> wire::Task {
    if let HistoryLimit::Latest(limit) = history {
        let surplus = task.history.len().saturating_sub(limit);
        task.history.drain(..surplus);
    }
    task
}

impl Inner {
    /// Begins a send, to its end even when the caller leaves: what is stored with its lease taken must run.
    async fn begun(self: &Arc<Self>, send: SendRequest, waits: Waits) -> Result<Begun, EngineError> {
        let (inner, abandoned) = (Arc::clone(self), Arc::new(AtomicBool::new(false)));
        let left = Arc::clone(&abandoned);
        let begin = self.tracker.track_future(async move {
            let mut begun = inner.begin(send, waits).await;
            if left.load(Ordering::Acquire)
                && let Ok(Begun::Task(begun)) = &mut begun
            {
                inner.run_beside(begun.turn.take());
            }
            begun
        });
        Detached::new(Arc::clone(self), begin).telling(abandoned).await
    }

    fn run_beside(self: &Arc<Self>, turn: Option<Box<TurnStart>>) {
        if let Some(turn) = turn {
            self.tracker.spawn(drive(Arc::clone(self), *turn));
        }
    }

    async fn begin(self: &Arc<Self>, send: SendRequest, waits: Waits) -> Result<Begun, EngineError> {
        self.refuse_when_closing()?;
        self.check_media_types(&send.message)?;
        let push = send.push.as_ref().map(|config| self.new_push(config, send.version, PUSH_FIELD)).transpose()?;
        let push = push.as_ref();
        let dedup = self.dedup(&send);
        if let Some(dedup) = &dedup {
            let accepted = self.store.accepted(&dedup.scope, &dedup.message_id, self.clock.now()).await;
            if let Some((task, digest)) = accepted.map_err(|error| EngineError::store("look for the message", error))? {
                return self.repeated(&send, dedup, &task, digest).await;
            }
        }
        let task_id = send.message.as_wire().task_id.clone();
        let begun = match task_id.is_empty() {
            true => self.begin_new(&send, push, dedup.clone(), waits).await,
            false => self.begin_further(&send, push, &known_form(&task_id)?, dedup.clone(), waits).await,
        };
        let (Err(error), Some(dedup)) = (&begun, &dedup) else { return begun };
        // The same message may have been first meanwhile, and may even have ended the task.
        match self.store.accepted(&dedup.scope, &dedup.message_id, self.clock.now()).await {
            Ok(Some((task, digest))) => self.repeated(&send, dedup, &task, digest).await,
            Ok(None) => begun,
            Err(_) => {
                tracing::debug!(%error, "cannot look whether the message was accepted");
                begun
            }
        }
    }

    /// A message that was accepted before: its task, whatever became of it.
    async fn repeated(
        self: &Arc<Self>,
        send: &SendRequest,
        dedup: &Dedup,
        task: &TaskId,
        digest: [u8; 32],
    ) -> Result<Begun, EngineError> {
        if digest != dedup.digest {
            let why = format!("was used before, for task {task}, with other content; send new content under a new id");
            return Err(EngineError::invalid("message.messageId", why));
        }
        let subscription = Some(self.hub.subscribe(task));
        let head = self.load(&send.scope, task).await?;
        Ok(Begun::Task(Box::new(BegunTask { head, subscription, turn: None, created: None })))
    }

    async fn begin_new(
        self: &Arc<Self>,
        send: &SendRequest,
        push: Option<&NewPush>,
        dedup: Option<Dedup>,
        waits: Waits,
    ) -> Result<Begun, EngineError> {
        let now = self.clock.now();
        let given = send.message.as_wire().context_id.clone();
        let context_id = match given.is_empty() {
            true => self.ids.context_id(now),
            false => {
                ContextId::new(given).map_err(|error| EngineError::invalid("message.contextId", error.to_string()))?
            }
        };
        let accept = self.ask_the_agent(send).await?;
        let task_id = self.ids.task_id(&send.scope.tenant, &context_id, now);
        let message = send.message.clone().with_task(&context_id, Some(&task_id));
        let submitted = TaskHead::submitted(task_id.clone(), context_id.clone(), now);
        let say = |parts: Vec<wire::Part>, task_id: Option<&TaskId>| {
            agent_message(self.ids.message_id(now), &context_id, task_id, parts)
                .map_err(|error| EngineError::InvalidAgentResponse(error.to_string()))
        };
        let begins = self.running.begins(&task_id);
        let mut worker = None;
        let commands = match accept {
            Accept::Message(parts) => return Ok(Begun::Message(Box::new(say(parts, None)?.into_wire()))),
            Accept::Task => {
                worker = self.worker_out_of_line();
                match &worker {
                    Some(_) => vec![self.start_command(now)],
                    None => {
                        self.admit_to_the_line().await?;
                        Vec::new()
                    }
                }
            }
            Accept::RequireAuth { parts, resume_after } => {
                vec![Command::RequireAuth { message: say(parts, Some(&task_id))?, resume_after }]
            }
            Accept::Reject { parts } => vec![Command::Reject { message: Some(say(parts, Some(&task_id))?) }],
        };
        let subscription = (waits == Waits::OnStream || (waits == Waits::ForAnswer && worker.is_none()))
            .then(|| self.hub.subscribe(&task_id));
        let (transition, more) = decide_all(&submitted, commands, Writer::Engine, now)
            .map_err(|rejection| EngineError::Internal { action: "create the task", source: Box::new(rejection) })?;
        let events: Vec<_> = std::iter::once(created_event(&submitted, None)).chain(more).collect();
        let commit = Commit {
            task_id: task_id.clone(),
            expect: Expect::New(NewTask { scope: send.scope.clone(), metadata: None }),
            head: Some(transition.head.clone()),
            events,
            messages: vec![NewMessage { message: message.clone(), request: send.request.clone(), events: 1 }],
            checkpoint: None,
            dedup,
            pushes: self.pushes(push, &task_id)?,
            now,
        };
        let committed = match self.commit(commit).await {
            Ok(committed) => committed,
            Err(error) => {
                let head = transition.head;
                self.settle(&error, worker.map(|worker| turn_start(send, head, message, worker, None, begins)));
                return Err(EngineError::store("accept the task", error));
            }
        };
        let head = TaskHead { last_sequence: committed.last_sequence, ..transition.head };
        if head.waits_for_a_worker() {
            self.due();
        }
        let turn = worker.map(|worker| {
            let view = (waits == Waits::ForAnswer).then(|| View::new(&head, None, &message, head.last_sequence));
            Box::new(turn_start(send, head.clone(), message.clone(), worker, view, begins))
        });
        Ok(Begun::Task(Box::new(BegunTask { head, subscription, turn, created: Some(message) })))
    }

    async fn begin_further(
        self: &Arc<Self>,
        send: &SendRequest,
        push: Option<&NewPush>,
        task_id: &TaskId,
        dedup: Option<Dedup>,
        waits: Waits,
    ) -> Result<Begun, EngineError> {
        let subscription = (waits != Waits::Not).then(|| self.hub.subscribe(task_id));
        for _ in 0..self.config.conflicts_max {
            let head = self.load(&send.scope, task_id).await?;
            let given = &send.message.as_wire().context_id;
            if !given.is_empty() && given != head.context_id.as_str() {
                let why = format!("is not the context of task {task_id}; leave it out, or send what the task says");
                return Err(EngineError::invalid("message.contextId", why));
            }
            if head.waiting.len() >= self.config.waiting_max {
                return Err(EngineError::Exhausted(format!(
                    "task {task_id} has {} messages waiting already",
                    head.waiting.len()
                )));
            }
            self.refuse_too_many_pushes(&send.scope, push, task_id).await?;
            let message = send.message.clone().with_task(&head.context_id, Some(task_id));
            let begins = self.running.begins(task_id);
            let now = status_time(&head, self.clock.now());
            let worker = if head.state.is_interrupted() { self.worker_out_of_line() } else { None };
            let mut commands = vec![Command::Message { message: message.clone() }];
            commands.extend(worker.is_some().then(|| self.start_command(now)));
            let decided = decide_all(&head, commands, Writer::Caller, now);
            let (transition, events) = decided.map_err(|rejection| refused(task_id, &rejection))?;
            let commit = Commit {
                task_id: task_id.clone(),
                expect: Expect::Version(head.version),
                head: Some(transition.head.clone()),
                events,
                messages: with_request(new_messages(transition.history, 0), &message, &send.request),
                checkpoint: None,
                dedup: dedup.clone(),
                pushes: self.pushes(push, task_id)?,
                now,
            };
            let committed = match self.commit(commit).await {
                Ok(committed) => committed,
                Err(StoreError::Conflict { .. }) => continue,
                Err(error) => {
                    let head = transition.head;
                    self.settle(&error, worker.map(|worker| turn_start(send, head, message, worker, None, begins)));
                    return Err(EngineError::store("accept the message", error));
                }
            };
            let head = TaskHead { last_sequence: committed.last_sequence, ..transition.head };
            match head.waiting.last() {
                Some(ordinal) => self.running.deliver(task_id, *ordinal),
                None if head.waits_for_a_worker() => self.due(),
                None => {}
            }
            let turn = worker.map(|worker| Box::new(turn_start(send, head.clone(), message, worker, None, begins)));
            return Ok(Begun::Task(Box::new(BegunTask { head, subscription, turn, created: None })));
        }
        Err(contended(task_id))
    }

    /// The push config that comes with a send, as it is stored with its task.
    fn pushes(&self, push: Option<&NewPush>, task_id: &TaskId) -> Result<Vec<PushConfig>, EngineError> {
        push.map(|push| push.clone().seal(self.push_parts()?, task_id)).into_iter().collect()
    }

    /// Refuses a push config of a send when its task has as many as it may.
    async fn refuse_too_many_pushes(
        &self,
        scope: &Scope,
        push: Option<&NewPush>,
        task_id: &TaskId,
    ) -> Result<(), EngineError> {
        let Some(push) = push else { return Ok(()) };
        let configs_max = self.config.push_configs_max;
        let configs = self.store.push_configs(scope, task_id, None, configs_max).await;
        let configs = configs.map_err(|error| EngineError::store("count the push configs", error))?.unwrap_or_default();
        match configs.len() < configs_max || configs.iter().any(|known| known.id == *push.id()) {
            true => Ok(()),
            false => Err(too_many_pushes(task_id, configs_max)),
        }
    }

    /// Asks the agent what becomes of a new message. An agent that takes too long has accepted it.
    async fn ask_the_agent(&self, send: &SendRequest) -> Result<Accept, EngineError> {
        let incoming = Incoming { scope: &send.scope, message: &send.message, request: &send.request };
        let asked = crate::unwind::CatchUnwind(self.agent.accept(&incoming));
        match within(&*self.clock, self.config.accept_timeout, asked).await {
            Some(Ok(Ok(accept))) => Ok(accept),
            Some(Ok(Err(error))) => {
                Err(EngineError::Internal { action: "accept the message", source: Box::new(error) })
            }
            Some(Err(panic)) => Err(EngineError::Internal { action: "accept the message", source: Box::new(panic) }),
            None => Ok(Accept::Task),
        }
    }

    /// Refuses a message of which a part has a media type that the agent does not take (A2A §3.1.1).
    fn check_media_types(&self, message: &Message) -> Result<(), EngineError> {
        if self.config.input_modes.is_empty() {
            return Ok(());
        }
        for (place, part) in message.as_wire().parts.iter().enumerate() {
            let implied = match (&part.content, part.media_type.as_str()) {
                (Some(wire::PartContent::Text(_)), "") => "text/plain",
                (Some(wire::PartContent::Data(_)), "") => "application/json",
                (_, "") => continue,
                (_, given) => given,
            };
            if !self.config.input_modes.iter().any(|mode| rules::media_type_matches(mode, implied)) {
                let (field, media_type) = (format!("message.parts[{place}].mediaType"), implied.to_owned());
                return Err(EngineError::ContentTypeNotSupported { field, media_type });
            }
        }
        Ok(())
    }

    fn dedup(&self, send: &SendRequest) -> Option<Dedup> {
        let asked = send.request.extensions.iter().any(|extension| extension == IDEMPOTENT_SEND);
        if self.config.dedup == DedupMode::Requested && !asked {
            return None;
        }
        let digest = Sha256::digest(json::to_json(send.message.as_wire()));
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
        Some(Dedup {
            scope: send.scope.clone(),
            message_id: send.message.id().clone(),
            digest: bytes,
            expires_at: later(self.clock.now(), self.config.dedup_window),
        })
    }

    /// Waits until a task rests: terminal, or interrupted with a question that nothing waiting answers. Answers the
    /// sequence at which it did.
    pub(crate) async fn wait_until_it_rests(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        subscription: &Subscription,
    ) -> Result<u64, EngineError> {
        loop {
            let head = self.load(scope, task_id).await?;
            if head.rests() {
                return Ok(head.last_sequence);
            }
            subscription.seen(head.last_sequence);
            let mut after = head.last_sequence;
            loop {
                match subscription.heard(after) {
                    Heard::ReadTheLog => break,
                    Heard::Events(events) => {
                        let rested = |kind| matches!(kind, longhaul_store::EventKind::Status { rests: true, .. });
                        if let Some(event) = events.iter().find(|event| rested(event.kind)) {
                            return Ok(event.sequence);
                        }
                        after = events.last().map_or(after, |event| event.sequence);
                    }
                    Heard::Nothing => tokio::select! {
                        biased;
                        () = subscription.wait(after) => {}
                        () = self.closing.cancelled() => {
                            return Err(EngineError::Unavailable { action: "wait for the task: the server is going down", source: None });
                        }
                    },
                }
            }
        }
    }
}

/// The caller's message joins with what it came with; a question that it answers joins before it, with nothing.
fn with_request(mut messages: Vec<NewMessage>, message: &Message, request: &TurnRequest) -> Vec<NewMessage> {
    for joins in messages.iter_mut().filter(|joins| joins.message.id() == message.id()) {
        joins.request = request.clone();
    }
    messages
}

/// The turn that begins with the message of this send.
fn turn_start(
    send: &SendRequest,
    head: TaskHead,
    message: Message,
    worker: Worker,
    view: Option<View>,
    begins: Begins,
) -> TurnStart {
    let (scope, request) = (send.scope.clone(), send.request.clone());
    TurnStart { scope, head, message, request, view, worker, message_sequence: None, begins }
}

fn refused(task_id: &TaskId, rejection: &Rejection) -> EngineError {
    EngineError::message_refused(task_id, rejection)
}

/// Work that is done where it is awaited, and goes on by itself when nobody awaits it any more.
struct Detached<T: Send + 'static> {
    inner: Arc<Inner>,
    runtime: Option<Handle>,
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    /// Set when the work goes on by itself.
    abandoned: Option<Arc<AtomicBool>>,
}

impl<T: Send + 'static> Detached<T> {
    fn new(inner: Arc<Inner>, work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { inner, runtime: Handle::try_current().ok(), work: Some(Box::pin(work)), abandoned: None }
    }

    fn telling(mut self, abandoned: Arc<AtomicBool>) -> Self {
        self.abandoned = Some(abandoned);
        self
    }
}

impl<T: Send + 'static> Future for Detached<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = self.work.as_mut() else { return Poll::Pending };
        let output = std::task::ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Detached<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take()
            && let Some(runtime) = &self.runtime
        {
            if let Some(abandoned) = &self.abandoned {
                abandoned.store(true, Ordering::Release);
            }
            self.inner.tracker.spawn_on(work, runtime);
        }
    }
}
