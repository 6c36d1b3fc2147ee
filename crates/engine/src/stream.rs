//! Streams of a task's events: the snapshot first, then the log from there (A2A §3.1.2, §3.1.6, §3.5.2).

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use longhaul_protocol::{TaskState, json, wire};
use longhaul_store::{EventKind, HistoryLimit, Scope, Snapshot, SnapshotQuery};

use crate::engine::{Inner, known_form};
use crate::hub::{Event, Heard, Subscription};
use crate::{Engine, EngineError};

/// How many events are read from the log at once.
const READ_MAX: usize = 256;

/// A subscription to a task (A2A §3.1.6).
#[derive(Clone, Debug)]
pub struct SubscribeRequest {
    /// Whose request it is.
    pub scope: Scope,
    /// The task.
    pub task_id: String,
    /// The sequence of the last event that the caller has (`Last-Event-ID`): the stream goes on behind it.
    pub after: Option<u64>,
}

/// One item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamItem {
    /// Its number in the task's log; `None` for a direct message, which has no log.
    pub sequence: Option<u64>,
    /// The `StreamResponse` as JSON.
    pub payload: Bytes,
    /// Whether the task rests with this event: it has ended, or waits for somebody. `false` for what is no event: the task
    /// and the message with which a stream begins.
    pub rests: bool,
}

/// The events of a task in order, from a snapshot on. Dropping it ends the subscription and nothing else.
#[derive(Debug)]
pub struct EventStream {
    inner: Arc<Inner>,
    subscription: Option<Subscription>,
    first: Option<StreamItem>,
    /// The sequence of the newest item.
    after: u64,
    /// Whether the stream ends when the task waits for an answer of its caller.
    ends_at_question: bool,
    ended: bool,
}

impl Engine {
    /// Follows a task (A2A §3.1.6). The first item is the task; the stream ends when the task has ended.
    ///
    /// # Errors
    ///
    /// [`EngineError::TaskNotFound`]; [`EngineError::UnsupportedOperation`] for a task that has ended, unless the caller
    /// names the last event that it has.
    pub async fn subscribe_to_task(&self, request: SubscribeRequest) -> Result<EventStream, EngineError> {
        let task_id = known_form(&request.task_id)?;
        self.inner.refuse_when_closing()?;
        let subscription = self.inner.hub.subscribe(&task_id);
        if let Some(after) = request.after {
            let query = SnapshotQuery { at: Some(after), history: HistoryLimit::All, artifacts: true };
            let known = self.inner.store.snapshot(&request.scope, &task_id, query).await;
            if let Some(snapshot) = known.map_err(|error| EngineError::store("read the task", error))? {
                return Ok(EventStream::of_snapshot(Arc::clone(&self.inner), subscription, snapshot, false));
            }
        }
        let snapshot = self.inner.snapshot(&request.scope, &task_id, None, HistoryLimit::All).await?;
        if request.after.is_none() && snapshot.head.state.is_terminal() {
            let state = snapshot.head.state.wire_name();
            return Err(EngineError::UnsupportedOperation(format!(
                "task {task_id} has ended in state {state} and has no more events; read it with GetTask"
            )));
        }
        Ok(EventStream::of_snapshot(Arc::clone(&self.inner), subscription, snapshot, false))
    }
}

impl EventStream {
    /// A stream of one direct message.
    pub(crate) fn of_message(inner: Arc<Inner>, message: wire::Message) -> Self {
        let payload = wire::StreamResponse { payload: Some(wire::StreamResponsePayload::Message(message)) };
        let first = Some(StreamItem { sequence: None, payload: json::to_json(&payload), rests: false });
        Self { inner, subscription: None, first, after: 0, ends_at_question: true, ended: true }
    }

    /// The stream of a task that was created just now: from its first event on.
    pub(crate) fn of_new_task(inner: Arc<Inner>, subscription: Subscription, task: wire::Task) -> Self {
        let first = Some(StreamItem { sequence: Some(1), payload: task_payload(task), rests: false });
        Self { inner, subscription: Some(subscription), first, after: 1, ends_at_question: true, ended: false }
    }

    /// A stream from a snapshot on.
    pub(crate) fn of_snapshot(
        inner: Arc<Inner>,
        subscription: Subscription,
        snapshot: Snapshot,
        ends_at_question: bool,
    ) -> Self {
        let sequence = snapshot.sequence;
        // What the snapshot is older than is in the log, and what is committed from now on rings.
        subscription.seen(snapshot.head.last_sequence);
        let nothing_follows = sequence == snapshot.head.last_sequence
            && (snapshot.head.state.is_terminal()
                || (ends_at_question && snapshot.head.state == TaskState::InputRequired));
        let first = Some(StreamItem { sequence: Some(sequence), payload: task_payload(snapshot.task), rests: false });
        Self {
            inner,
            subscription: Some(subscription),
            first,
            after: sequence,
            ends_at_question,
            ended: nothing_follows,
        }
    }

    /// The next items, at least one; `None` when the stream has ended, or the server goes down: a caller that wants to
    /// go on subscribes again with the last sequence that it has.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unavailable`] when the log can't be read. The stream has then ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing: the items come with the next call.
    pub async fn next(&mut self) -> Option<Result<Vec<StreamItem>, EngineError>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(vec![first]));
        }
        if self.ended {
            return None;
        }
        let events = match self.wait_for_events().await {
            Ok(events) if !events.is_empty() => events,
            Ok(_) => {
                self.ended = true;
                return None;
            }
            Err(error) => {
                self.ended = true;
                return Some(Err(error));
            }
        };
        let mut items = Vec::with_capacity(events.len());
        for event in events {
            self.after = event.sequence;
            self.ended = self.ends_with(event.kind);
            let rests = rests_with(event.kind);
            items.push(StreamItem { sequence: Some(event.sequence), payload: event.payload, rests });
            if self.ended {
                break;
            }
        }
        Some(Ok(items))
    }

    /// Waits for events behind the newest item; none when the server goes down or the task was removed.
    async fn wait_for_events(&self) -> Result<VecDeque<Event>, EngineError> {
        let Some(subscription) = &self.subscription else { return Ok(VecDeque::new()) };
        loop {
            match subscription.heard(self.after) {
                Heard::Events(events) => return Ok(events.into()),
                Heard::ReadTheLog => {
                    let read = self.inner.store.events_after(subscription.task_id(), self.after, READ_MAX).await;
                    let read = read.map_err(|error| EngineError::store("read the task's log", error))?;
                    let event = |event: longhaul_store::StoredEvent| Event {
                        sequence: event.sequence,
                        kind: event.kind,
                        payload: event.payload,
                    };
                    return Ok(read.into_iter().map(event).collect());
                }
                Heard::Nothing => tokio::select! {
                    biased;
                    () = subscription.wait(self.after) => {}
                    () = self.inner.closing.cancelled() => return Ok(VecDeque::new()),
                },
            }
        }
    }

    fn ends_with(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::Status { state, rests } => {
                state.is_terminal() || (self.ends_at_question && rests && state == TaskState::InputRequired)
            }
            EventKind::Created | EventKind::Artifact => false,
        }
    }
}

fn rests_with(kind: EventKind) -> bool {
    match kind {
        EventKind::Status { state, rests } => rests || state.is_terminal(),
        EventKind::Created | EventKind::Artifact => false,
    }
}

pub(crate) fn task_payload(task: wire::Task) -> Bytes {
    json::to_json(&wire::StreamResponse { payload: Some(wire::StreamResponsePayload::Task(task)) })
}
