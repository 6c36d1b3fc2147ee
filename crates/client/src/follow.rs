//! Streams that heal: the events of one task, each once and in order, whatever happens to the connections that bring them.
//!
//! An [`EventStream`] reads a stream of the agent's. When that is cut, it is opened again: after the last event where the
//! agent numbers them (`urn:longhaul:ext:stream-resume:v1`), otherwise with the snapshot that each subscription begins with
//! (§3.1.6), of which only what is new is handed on. An agent that does not stream, or refuses a subscription, is asked by
//! `GetTask` instead, and what changed becomes events.

pub mod fold;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use longhaul_protocol::{ErrorCode, TaskState, wire};
use tokio::time::{Instant, sleep};

use crate::binding::stream::{RawItem, RawStream};
use crate::client::{Client, STREAM_RESUME, give_id};
use crate::error::ClientError;
use crate::operation::Opening;
use fold::Fold;
use wire::StreamResponsePayload as Payload;

/// How a task is followed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FollowOptions {
    /// Where the events end. Default [`Until::Waiting`].
    pub until: Until,
    /// How long an agent that can't be reached is tried again. Default 5 min.
    pub patience: Duration,
    /// The first wait between two questions to an agent that does not stream. Default 1 s.
    pub poll_interval: Duration,
    /// The longest of these waits, to which they grow. Default 15 s.
    pub poll_interval_max: Duration,
    /// The id of the last event that the caller has: the events begin with the task as it stood then, where the agent numbers
    /// them. Default none.
    pub last_event_id: Option<String>,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            until: Until::Waiting,
            patience: Duration::from_secs(5 * 60),
            poll_interval: Duration::from_secs(1),
            poll_interval_max: Duration::from_secs(15),
            last_event_id: None,
        }
    }
}

/// Where the events of a task end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// When the task has ended, or waits for its caller: INPUT_REQUIRED and AUTH_REQUIRED.
    Waiting,
    /// When the task has ended. While it waits the stream stays open, so that whoever answers elsewhere is seen.
    Terminal,
}

/// One event of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where it is in the agent's log, to be resumed after; none where the agent does not say, and for what was found by
    /// comparing.
    pub id: Option<Arc<str>>,
    /// What happened. The first one is the task as it stood, or the agent's message if it made no task.
    pub payload: wire::StreamResponse,
}

/// The events of one task. It ends after a terminal state, after the agent's direct answer, or, by [`Until::Waiting`], when the
/// task waits for its caller; never because a connection did.
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    options: FollowOptions,
    fold: Fold,
    link: Link,
    queue: VecDeque<Event>,
    last_event_id: Option<Arc<str>>,
    /// The send that begins it all, until the agent named a task.
    first: Option<Opening>,
    /// Whether the message continues a task: then the first snapshot may be from before it.
    continues: bool,
    /// How often in a row a connection came to nothing.
    rounds: u32,
    heard_at: Instant,
}

#[derive(Debug)]
enum Link {
    Closed,
    Open {
        raw: Box<RawStream>,
        /// Nothing came yet.
        is_fresh: bool,
    },
    /// By `GetTask`; why there is no stream.
    Polling(NoStream),
    Ended,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NoStream {
    /// The agent has none.
    Never,
    /// It refused one while the task stood like this.
    While(Option<wire::TaskState>),
}

impl Client {
    /// `SendStreamingMessage` (§3.1.2), and whatever it takes to follow the task to where the options say. Nothing is sent
    /// before the first [`next`](EventStream::next). Towards an agent without streams, `SendMessage` and `GetTask` do the same.
    ///
    /// # Errors
    ///
    /// [`ClientError::Invalid`] when there is no message.
    pub fn send_streaming_message(
        &self,
        mut request: wire::SendMessageRequest,
        options: FollowOptions,
    ) -> Result<EventStream, ClientError> {
        give_id(&mut request)?;
        let message = request.message.as_ref();
        let continues = message.is_some_and(|message| !message.task_id.is_empty());
        let mut stream = EventStream::new(self, options, Fold::new());
        if let Some(message) = message {
            stream.fold.saw_message(&message.message_id);
        }
        stream.first = Some(Opening::Send(Box::new(request)));
        stream.continues = continues;
        Ok(stream)
    }

    /// `SubscribeToTask` (§3.1.6), as often as it takes. Nothing is asked before the first [`next`](EventStream::next). A task
    /// that has ended gives one event, the task.
    pub fn follow(&self, task_id: &str, options: FollowOptions) -> EventStream {
        EventStream::new(self, options, Fold::of_task(task_id))
    }
}

impl EventStream {
    fn new(client: &Client, options: FollowOptions, fold: Fold) -> Self {
        let last_event_id = options.last_event_id.as_deref().map(Arc::from);
        let link = if client.streams() { Link::Closed } else { Link::Polling(NoStream::Never) };
        Self {
            client: client.clone(),
            options,
            fold,
            link,
            queue: VecDeque::new(),
            last_event_id,
            first: None,
            continues: false,
            rounds: 0,
            heard_at: Instant::now(),
        }
    }

    /// The task's id, once the agent has named it.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        self.fold.task_id()
    }

    /// The id of the last event, by which another process can go on.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// The state that was told last.
    #[must_use]
    pub fn state(&self) -> Option<TaskState> {
        self.fold.state().and_then(wire::TaskState::known)
    }

    /// The next event; none when the task has ended, or waits and was to be followed no further.
    ///
    /// # Errors
    ///
    /// [`ClientError`], after which there is nothing more: the agent does not know the task, refuses the caller, says what is
    /// not A2A, or could not be reached for [`FollowOptions::patience`]. A send of which it is not known whether the agent has
    /// it ends by [`Broken`](ClientError::Broken) or [`Timeout`](ClientError::Timeout), unless it may be repeated.
    ///
    /// # Cancel safety
    ///
    /// Once there was an event, a dropped future loses none. One that is dropped while the message is being sent is repeated by
    /// the next call, with the same message id.
    pub async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(Ok(event));
            }
            if matches!(self.link, Link::Ended) {
                return None;
            }
            if let Err(error) = self.step().await {
                self.link = Link::Ended;
                return Some(Err(error));
            }
        }
    }

    /// The same as a [`Stream`].
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, ClientError>> + Send {
        futures_util::stream::unfold(self, |mut stream| async move { stream.next().await.map(|event| (event, stream)) })
    }

    async fn step(&mut self) -> Result<(), ClientError> {
        match &mut self.link {
            Link::Ended => Ok(()),
            Link::Closed => self.reopen().await,
            Link::Polling(why) => {
                let why = *why;
                self.poll(why).await
            }
            Link::Open { raw, is_fresh } => {
                let was_fresh = *is_fresh;
                match raw.next().await {
                    Some(Ok(item)) => {
                        if let Link::Open { is_fresh, .. } = &mut self.link {
                            *is_fresh = false;
                        }
                        self.take(item, was_fresh)
                    }
                    Some(Err(error)) => self.cut(error),
                    None => self.closed_by_agent(),
                }
            }
        }
    }

    async fn reopen(&mut self) -> Result<(), ClientError> {
        if self.rounds > 0 {
            sleep(self.client.retry().backoff(self.rounds)).await;
        }
        let opening = match (self.fold.task_id(), &self.first) {
            (Some(id), None) => {
                Opening::Subscribe(wire::SubscribeToTaskRequest { tenant: String::new(), id: id.to_owned() })
            }
            (_, Some(first)) => first.clone(),
            (None, None) => return Err(lost_track()),
        };
        match self.client.open(opening, self.last_event_id.as_deref(), self.rounds).await {
            Ok(raw) => {
                self.heard_at = Instant::now();
                self.link = Link::Open { raw: Box::new(raw), is_fresh: true };
                Ok(())
            }
            Err(error) => self.refused(error).await,
        }
    }

    /// A stream was not opened.
    async fn refused(&mut self, error: ClientError) -> Result<(), ClientError> {
        let is_subscription = self.first.is_none();
        match error.code() {
            Some(ErrorCode::UnsupportedOperation | ErrorCode::MethodNotFound | ErrorCode::RouteNotFound)
                if is_subscription =>
            {
                // It has ended, or the agent takes no subscription now.
                self.link = Link::Polling(NoStream::While(self.fold.state()));
                self.look().await
            }
            _ => self.cut(error),
        }
    }

    /// A connection broke, or did not come about.
    fn cut(&mut self, error: ClientError) -> Result<(), ClientError> {
        let is_first = self.first.is_some();
        let may_repeat = !is_first || error.is_before_acting() || self.client.may_resend();
        // An error that ends a stream says nothing about the task, which has a state of its own.
        let is_of_stream = matches!(&self.link, Link::Open { .. })
            && error.agent().is_some_and(|agent| agent.code != Some(ErrorCode::TaskNotFound));
        let is_patient = self.heard_at.elapsed() < self.options.patience;
        if !may_repeat || !is_patient || !(error.is_transient() || is_of_stream && !is_first) {
            return Err(error);
        }
        if is_first && self.rounds.saturating_add(1) >= self.client.retry().attempts_max {
            return Err(error);
        }
        self.rounds = self.rounds.saturating_add(1);
        if !matches!(self.link, Link::Polling(_)) {
            self.link = Link::Closed;
        }
        Ok(())
    }

    /// The agent ended the stream in order. That is no end of the task unless its state says so.
    fn closed_by_agent(&mut self) -> Result<(), ClientError> {
        if self.first.is_some() {
            let whom = self.client.interface().url.clone();
            return self.cut(ClientError::Broken { whom, source: "the stream ended before its first event".into() });
        }
        self.rounds = self.rounds.saturating_add(1);
        self.link = match self.state() {
            Some(state) if state.is_terminal() => Link::Ended,
            Some(state) if state.is_interrupted() && self.options.until == Until::Waiting => Link::Ended,
            _ => Link::Closed,
        };
        Ok(())
    }

    /// Takes an item of the stream that is open.
    fn take(&mut self, item: RawItem, is_first: bool) -> Result<(), ClientError> {
        self.heard_at = Instant::now();
        if let Some(Payload::Message(_)) = &item.payload.payload {
            self.queue.push_back(Event { id: item.id, payload: item.payload });
            self.link = Link::Ended;
            return Ok(());
        }
        let is_known = self.fold.state().is_some();
        if is_known && is_first {
            return self.go_on(item);
        }
        if is_known && let Some(gap) = self.gap(&item) {
            return gap.map_or(Ok(()), |()| self.start_over());
        }
        self.first = None;
        let is_snapshot = matches!(item.payload.payload, Some(Payload::Task(_)));
        self.hand_on(item.id, item.payload)?;
        let is_older = is_snapshot && is_first && self.continues;
        self.judge(if is_older { Interruption::MayBeOlder } else { Interruption::IsNew });
        Ok(())
    }

    /// The first item of a stream that was opened again.
    fn go_on(&mut self, item: RawItem) -> Result<(), ClientError> {
        let Some(Payload::Task(task)) = item.payload.payload else {
            // Without a snapshot nobody knows what was missed; asking for the task shows it.
            self.link = Link::Polling(NoStream::Never);
            return Ok(());
        };
        let is_where_we_were = item.id.is_some() && item.id == self.last_event_id && self.is_numbered();
        if !is_where_we_were {
            self.catch_up(task, item.id)?;
        }
        self.judge(Interruption::IsNew);
        Ok(())
    }

    /// What numbers say: `Some(None)` for an item that was handed on already, `Some(Some(()))` when some are missing.
    fn gap(&self, item: &RawItem) -> Option<Option<()>> {
        if !self.is_numbered() {
            return None;
        }
        let number = |id: &Option<Arc<str>>| id.as_deref().and_then(|id| id.parse::<u64>().ok());
        let (known, came) = (number(&self.last_event_id)?, number(&item.id)?);
        match came {
            came if came <= known => Some(None),
            came if came == known.saturating_add(1) => None,
            _ => Some(Some(())),
        }
    }

    fn is_numbered(&self) -> bool {
        self.client.declares(STREAM_RESUME)
    }

    /// Opens the stream again with the snapshot of now, in which nothing is missing.
    fn start_over(&mut self) -> Result<(), ClientError> {
        self.last_event_id = None;
        self.rounds = self.rounds.saturating_add(1);
        self.link = Link::Closed;
        Ok(())
    }

    /// Asks for the task, and hands on what is new in it.
    async fn look(&mut self) -> Result<(), ClientError> {
        let Some(id) = self.fold.task_id().map(str::to_owned) else { return Err(lost_track()) };
        match self.client.get_task(wire::GetTaskRequest { id, ..wire::GetTaskRequest::default() }).await {
            Ok(task) => {
                self.heard_at = Instant::now();
                self.catch_up(task, None)?;
                self.judge(Interruption::IsNew);
                Ok(())
            }
            Err(error) => self.cut(error),
        }
    }

    async fn poll(&mut self, why: NoStream) -> Result<(), ClientError> {
        if let Some(Opening::Send(request)) = self.first.clone() {
            return self.send(*request).await;
        }
        if self.fold.state().is_some() {
            let step =
                self.options.poll_interval.mul_f64(1.5_f64.powi(i32::try_from(self.rounds.min(30)).unwrap_or(30)));
            sleep(step.min(self.options.poll_interval_max)).await;
        }
        self.rounds = self.rounds.saturating_add(1);
        self.look().await?;
        if let (Link::Polling(_), NoStream::While(state)) = (&self.link, why)
            && self.fold.state() != state
        {
            self.link = Link::Closed;
        }
        Ok(())
    }

    /// Begins a task at an agent that does not stream.
    async fn send(&mut self, mut request: wire::SendMessageRequest) -> Result<(), ClientError> {
        // An answer at once to a message that continues a task may show the task as it stood before it.
        request.configuration.get_or_insert_default().return_immediately = !self.continues;
        let answer = self.client.send_message(request).await?;
        self.first = None;
        self.heard_at = Instant::now();
        match answer.payload {
            Some(wire::SendMessageResponsePayload::Task(task)) => {
                self.hand_on(None, wire::StreamResponse { payload: Some(Payload::Task(task)) })?;
                self.judge(Interruption::IsNew);
            }
            Some(wire::SendMessageResponsePayload::Message(message)) => {
                let payload = wire::StreamResponse { payload: Some(Payload::Message(message)) };
                self.queue.push_back(Event { id: None, payload });
                self.link = Link::Ended;
            }
            None => return Err(lost_track()),
        }
        Ok(())
    }

    /// Hands on what a snapshot holds that was not seen.
    fn catch_up(&mut self, task: wire::Task, id: Option<Arc<str>>) -> Result<(), ClientError> {
        if self.fold.state().is_none() {
            return self.hand_on(id, wire::StreamResponse { payload: Some(Payload::Task(task)) });
        }
        let missed = self.fold.missed(task).map_err(|error| self.invalid(&error))?;
        let last = missed.len();
        for (index, payload) in missed.into_iter().enumerate() {
            // Only with the last of them is all of the snapshot handed on.
            let id = id.clone().filter(|_| index + 1 == last);
            self.hand_on(id, payload)?;
        }
        if id.is_some() {
            self.last_event_id = id;
        }
        Ok(())
    }

    fn hand_on(&mut self, id: Option<Arc<str>>, payload: wire::StreamResponse) -> Result<(), ClientError> {
        self.fold.apply(&payload).map_err(|error| self.invalid(&error))?;
        if id.is_some() {
            self.last_event_id.clone_from(&id);
        }
        self.rounds = 0;
        self.queue.push_back(Event { id, payload });
        Ok(())
    }

    /// Ends it where the state says so.
    fn judge(&mut self, interruption: Interruption) {
        let is_over = match self.state() {
            Some(state) if state.is_terminal() => true,
            Some(state) if state.is_interrupted() => {
                self.options.until == Until::Waiting && interruption == Interruption::IsNew
            }
            _ => false,
        };
        if is_over {
            self.link = Link::Ended;
        }
    }

    fn invalid(&self, error: &fold::FoldError) -> ClientError {
        ClientError::InvalidAnswer { whom: self.client.interface().url.clone(), what: error.to_string() }
    }
}

/// Whether the interruption that a snapshot shows may be the one that the message just sent has answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Interruption {
    IsNew,
    MayBeOlder,
}

fn lost_track() -> ClientError {
    ClientError::Invalid { field: "task id".to_owned(), problem: "is not known, so nothing can be followed".to_owned() }
}
