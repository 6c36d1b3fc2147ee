//! What comes, made into events that come once and in order.

use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::{TaskState, wire};
use tokio::time::Instant;

use super::fold::FoldError;
use super::link::{Ask, Link, NoStream};
use super::{Event, EventStream, Until};
use crate::binding::stream::RawItem;
use crate::client::STREAM_RESUME;
use crate::error::ClientError;
use wire::StreamResponsePayload as Payload;

/// How long after the stream of a message was cut an unchanged interruption is taken for the one that the message answers. After
/// that, it is taken for a question again.
const OLDER_MAX: Duration = Duration::from_secs(10);

/// The number of the first event of each task.
const FIRST: u64 = 1;

/// Whether an interruption that is shown may be the one that the message just sent has answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Interruption {
    /// It is not.
    IsNew,
    /// It may be, as long as the stream of the message is open.
    MayBeOlder,
    /// It may be until then: that stream is lost.
    MayBeOlderUntil(Instant),
}

/// Where an item is, as its number says, among those that were handed on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// It was handed on already.
    Known,
    /// It is the next one.
    Next,
    /// Some are missing before it.
    BehindGap,
    /// It has no number, or none that counts.
    Unknown,
}

impl EventStream {
    /// Takes an item of the stream that is open.
    pub(super) fn take(&mut self, item: RawItem, is_first: bool) -> Result<(), ClientError> {
        self.heard();
        self.unopened_since = None;
        if !is_first {
            self.quiet = 0;
        }
        if !self.fold.has_begun() {
            return self.begin(item.id, item.payload);
        }
        let place = self.place(&item);
        let item = match place {
            Place::Unknown if !is_first => match self.without_overlap(item)? {
                Some(item) => item,
                None => return Ok(()),
            },
            _ => item,
        };
        match (place, item.payload.payload) {
            (Place::Known, Some(Payload::Task(_))) if is_first => {
                // The task as it stood at the last event: nothing was missed.
                self.judge();
                Ok(())
            }
            (_, Some(Payload::Task(task))) if is_first => {
                self.began_again(&item.id);
                self.catch_up(task, item.id)?;
                self.judge();
                Ok(())
            }
            (Place::Known, _) => Ok(()),
            (Place::BehindGap, _) => {
                self.start_over();
                Ok(())
            }
            (Place::Unknown, _) if is_first => {
                self.without_snapshot();
                Ok(())
            }
            (Place::Unknown, payload @ Some(Payload::StatusUpdate(_))) if self.is_patched => {
                let payload = wire::StreamResponse { payload };
                if self.is_end(state_in(&payload).and_then(wire::TaskState::known)) {
                    self.held = Some(Event { id: item.id, payload });
                    self.link = Link::due(Ask::Task(NoStream::Compared));
                    return Ok(());
                }
                self.hand_on(item.id, payload)
            }
            (Place::Next | Place::Unknown, payload) => {
                self.hand_on(item.id, wire::StreamResponse { payload })?;
                self.judge();
                Ok(())
            }
        }
    }

    /// Takes the very first item, or the answer to a send.
    pub(super) fn begin(&mut self, id: Option<Arc<str>>, payload: wire::StreamResponse) -> Result<(), ClientError> {
        let is_of_send = self.first.take().is_some();
        let continues = std::mem::take(&mut self.continues);
        if is_of_send && matches!(payload.payload, Some(Payload::Message(_))) {
            self.queue.push_back(Event { id, payload });
            self.link = Link::Ended;
            return Ok(());
        }
        if is_of_send
            && !continues
            && let Some(Payload::Task(task)) = &payload.payload
            && self.number(&id).is_some_and(|number| number > FIRST)
        {
            // The message was sent again, and an attempt before it had begun the task: what happened since is in its log.
            self.fold.follow(&task.id);
            self.last_event_id = Some(FIRST.to_string().into());
            self.link = Link::due(Ask::Stream);
            return Ok(());
        }
        let is_snapshot = matches!(payload.payload, Some(Payload::Task(_)));
        if is_snapshot && !is_of_send {
            self.began_again(&id);
        }
        self.hand_on(id, payload)?;
        if is_snapshot && continues {
            self.interruption = Interruption::MayBeOlder;
        }
        self.judge();
        Ok(())
    }

    fn place(&self, item: &RawItem) -> Place {
        match (self.number(&self.last_event_id), self.number(&item.id)) {
            (Some(known), Some(came)) if came <= known => Place::Known,
            (Some(known), Some(came)) if came == known.saturating_add(1) => Place::Next,
            (Some(_), Some(_)) => Place::BehindGap,
            (None, _) | (_, None) => Place::Unknown,
        }
    }

    /// Which number an id is, of an agent that declares what its numbers mean.
    pub(super) fn number(&self, id: &Option<Arc<str>>) -> Option<u64> {
        id.as_deref().filter(|_| self.client.declares(STREAM_RESUME)).and_then(|id| id.parse().ok())
    }

    /// Opens the stream again with the snapshot of now, in which nothing is missing.
    fn start_over(&mut self) {
        self.last_event_id = None;
        self.come_again(2, Duration::ZERO);
    }

    /// A stream that was opened again does not begin with the task, so nobody knows what was missed. It may be that the agent
    /// goes on after an event id in a way of its own; else only asking for the task helps.
    fn without_snapshot(&mut self) {
        match self.last_event_id {
            Some(_) => self.start_over(),
            None => self.link = Link::due(Ask::Task(NoStream::Never)),
        }
    }

    /// Hands on what a snapshot holds that was not seen, and says whether that is anything.
    pub(super) fn catch_up(&mut self, task: wire::Task, id: Option<Arc<str>>) -> Result<bool, ClientError> {
        let missed = self.fold.missed(task).map_err(|error| self.invalid(&error))?;
        let last = missed.len();
        for (index, payload) in missed.into_iter().enumerate() {
            // Only with the last of them is all of the snapshot handed on.
            let id = id.clone().filter(|_| index + 1 == last);
            self.hand_on(id, payload)?;
        }
        if id.is_some() || last > 0 && self.number(&self.last_event_id).is_some() {
            // What was seen without a number has none to go on after.
            self.last_event_id = id;
        }
        Ok(last > 0)
    }

    pub(super) fn hand_on(&mut self, id: Option<Arc<str>>, payload: wire::StreamResponse) -> Result<(), ClientError> {
        self.fold.apply(&payload).map_err(|error| self.invalid(&error))?;
        if id.is_some() {
            self.last_event_id.clone_from(&id);
        }
        if matches!(payload.payload, Some(Payload::Task(_) | Payload::StatusUpdate(_))) {
            self.interruption = Interruption::IsNew;
        }
        self.failures = 0;
        self.queue.push_back(Event { id, payload });
        Ok(())
    }

    /// Ends it where the state says so.
    pub(super) fn judge(&mut self) {
        let may_be_older = self.interruption == Interruption::MayBeOlder || self.is_older_still();
        let state = self.state();
        if self.is_end(state) && (state.is_some_and(TaskState::is_terminal) || !may_be_older) {
            self.link = Link::Ended;
        }
    }

    /// Whether the stream of the message is lost, and it is too early to take an unchanged question for a new one.
    pub(super) fn is_older_still(&self) -> bool {
        matches!(self.interruption, Interruption::MayBeOlderUntil(until) if Instant::now() < until)
    }

    /// When it has to be judged again although nothing came.
    pub(super) fn judged_again(&self) -> Option<Instant> {
        match self.interruption {
            Interruption::MayBeOlderUntil(until) if self.is_end(self.state()) => Some(until),
            _ => None,
        }
    }

    /// The stream is lost.
    pub(super) fn lose_stream(&mut self) {
        if self.interruption == Interruption::MayBeOlder {
            self.interruption = Interruption::MayBeOlderUntil(Instant::now() + OLDER_MAX);
        }
    }

    /// Whether the events end with this state.
    pub(super) fn is_end(&self, state: Option<TaskState>) -> bool {
        let waits_here = self.options.until == Until::Waiting;
        state.is_some_and(|state| state.is_terminal() || state.is_interrupted() && waits_here)
    }

    fn invalid(&self, error: &FoldError) -> ClientError {
        ClientError::InvalidAnswer { whom: self.client.interface().url.clone(), what: error.to_string() }
    }
}

/// The state that an item tells, if it tells one.
pub(super) fn state_in(item: &wire::StreamResponse) -> Option<wire::TaskState> {
    let status = match &item.payload {
        Some(Payload::Task(task)) => &task.status,
        Some(Payload::StatusUpdate(update)) => &update.status,
        Some(Payload::Message(_) | Payload::ArtifactUpdate(_)) | None => return None,
    };
    status.as_ref().map(|status| status.state)
}
