//! Streams that heal: the events of one task, each once and in order, whatever happens to the connections that bring them.
//!
//! An [`EventStream`] reads a stream of the agent's. When that is cut, it is opened again: after the last event where the
//! agent numbers them (`urn:longhaul:ext:stream-resume:v1`), otherwise with the snapshot that each subscription begins with
//! (§3.1.6), of which only what is new is handed on. An agent that does not stream, refuses a subscription, or ends it without
//! a word is asked by `GetTask` instead, and what changed becomes events. So is one that speaks v0.3 and numbers nothing: only
//! the stream of a message is opened there, since a second stream of a task harms it at some servers.
//!
//! Where nothing is numbered, an agent may repeat or leave out, behind the snapshot of a subscription, what happened while it
//! made it. What it repeats is passed over; where that can't be told from new events, the task is asked for at once. And before a stream that was opened again ends, the task is asked for once and compared: an artifact that came out
//! wrong is told whole, with `append: false`, before the last status.
//!
//! Nothing is asked in haste. A connection that fails is made again after a wait that grows with each failure in a row
//! ([`RetryPolicy`](crate::RetryPolicy)), and never before the agent's `Retry-After`, or the `retry` of its stream up to
//! [`REOPENED_AFTER_MAX`]. An agent that ends each subscription at once is asked no more often than one that has none. Where no
//! stream comes about, as behind a proxy that lets none pass, the task is asked for in between.

mod fold;

mod heal;
mod link;
mod overlap;
mod take;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use longhaul_protocol::{TaskState, wire};
use tokio::time::Instant;

use crate::client::{Client, event_id_header, give_id};
use crate::error::ClientError;
use crate::operation::Opening;
use fold::Fold;
use link::{Ask, Link, NoStream};
use overlap::Overlap;
use take::Interruption;

/// The longest wait that an agent can ask for, before its stream is opened again, by the `retry` of server-sent events.
pub const REOPENED_AFTER_MAX: Duration = Duration::from_secs(30);

/// How a task is followed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FollowOptions {
    /// Where the events end. Default [`Until::Waiting`].
    pub until: Until,
    /// How long an agent that can't be reached is tried again, from the first failure on. Default 5 min. It is also the longest
    /// that an agent which ends a stream with an error is left alone for, whatever it asks. Where only its streams
    /// can't be opened, the task is asked for in between: at once, but after a tenth of this where the agent numbers its events,
    /// as what is found so has no numbers and may leave out what passed meanwhile.
    pub patience: Duration,
    /// The first wait between two questions to an agent that does not stream. It grows by half with each answer that shows
    /// nothing new. Default 1 s.
    pub poll_interval: Duration,
    /// The longest of these waits, to which they grow. Default 15 s.
    pub poll_interval_max: Duration,
    /// The id of the last event that the caller has: the events begin with the task as it stood then, where the agent numbers
    /// them. One that no header can hold, or of more than 2048 bytes, is none. Default none.
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
    /// Where it is in the agent's log, to be resumed after; none where the agent does not say so in a way that a header can
    /// hold, and for what was found by comparing.
    pub id: Option<Arc<str>>,
    /// What happened. The first one is the task as it stood, or the agent's message if it made no task; unless the agent breaks
    /// the rule that a stream begins so.
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
    /// Whether an attempt to send failed of which nobody knows whether the agent has it.
    may_have_arrived: bool,
    /// Whether the message continues a task: then the first snapshot may be from before it.
    continues: bool,
    /// What an interruption that is shown means.
    interruption: Interruption,
    /// Whether a stream was opened again without numbers by which gaps and repetitions would be seen.
    is_patched: bool,
    /// What may come again behind the last snapshot.
    overlap: Overlap,
    /// What the agent asked for last as the wait before a stream is opened again.
    reopened_after: Duration,
    /// The event that ends it, until the task was compared.
    held: Option<Event>,
    /// How often in a row something failed.
    failures: u32,
    /// Since when nothing came but failures.
    failing_since: Option<Instant>,
    /// Since when nothing came over any stream that was to be opened.
    unopened_since: Option<Instant>,
    /// How often in a row the agent was asked and showed nothing new, or ended a subscription after its snapshot.
    quiet: u32,
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
        let sent_back = options.last_event_id.as_deref().filter(|id| event_id_header(id).is_some());
        let last_event_id = sent_back.map(Arc::from);
        let ask = if client.streams() { Ask::Stream } else { Ask::Task(NoStream::Never) };
        Self {
            client: client.clone(),
            options,
            fold,
            link: Link::Due { ask, at: Instant::now() },
            queue: VecDeque::new(),
            last_event_id,
            first: None,
            may_have_arrived: false,
            continues: false,
            interruption: Interruption::IsNew,
            is_patched: false,
            overlap: Overlap::default(),
            reopened_after: Duration::ZERO,
            held: None,
            failures: 0,
            failing_since: None,
            unopened_since: None,
            quiet: 0,
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

    /// Whether one of the attempts to send may have reached the agent, although a later one did not.
    pub(crate) fn may_have_arrived(&self) -> bool {
        self.may_have_arrived
    }

    /// The state that was told last.
    #[must_use]
    pub fn state(&self) -> Option<TaskState> {
        self.fold.state().and_then(wire::TaskState::known)
    }

    /// Whether the state that was told last is one that nobody knows.
    pub(crate) fn is_unknown(&self) -> bool {
        self.fold.state().is_some_and(|state| state.known().is_none())
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
    /// A dropped future loses nothing, and nothing begins anew: what was being asked, and any wait, goes on with the next call.
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
}
