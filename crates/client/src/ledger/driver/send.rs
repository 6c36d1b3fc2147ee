//! Sending the message of an entry, and what follows when there is no answer.

use longhaul_protocol::{ErrorCode, wire};
use wire::StreamResponsePayload as Payload;

use super::{Driver, Pass, Stop, Unsent, running, sketch};
use crate::ClientError;
use crate::Outcome;
use crate::client::IDEMPOTENT_SEND;
use crate::clock::{between, now};
use crate::error::explain;
use crate::follow::{Event as StreamEvent, EventStream, FollowOptions, Until};
use crate::ledger::News;

impl Driver {
    /// Whether the message can be sent without a risk: it certainly never was, or the agent would tell the repetition.
    pub(super) fn may_send(&self) -> bool {
        self.entry.attempts == 0 || self.may_resend()
    }

    fn may_resend(&self) -> bool {
        let client = &self.setup.client;
        if !client.may_resend() {
            return false;
        }
        // Without the extension it is the caller who said that every send may be repeated.
        let age = between(self.entry.since, now());
        !client.declares(IDEMPOTENT_SEND) || age.as_millis() < self.setup.follow_up.resend_within.as_millis()
    }

    /// How a task is followed for the ledger.
    pub(super) fn follow_options(&self, last_event_id: Option<String>) -> FollowOptions {
        FollowOptions { until: Until::Waiting, last_event_id, ..self.setup.follow_up.follow.clone() }
    }

    /// Sends the message, which is written down as being sent before, and what the answer names right after.
    pub(super) async fn send(&mut self) -> Result<Pass, Stop> {
        let request = self.setup.ledger.request(self.entry.id).await?;
        let attempts_before = self.entry.attempts;
        self.record(News::Sending).await?;
        let mut stream = self.setup.client.send_streaming_message(request, self.follow_options(None))?;
        match stream.next().await {
            Some(Ok(event)) => self.begun(stream, event).await,
            Some(Err(error)) => self.not_answered(&stream, error, attempts_before).await,
            None => Err(self.invalid("the stream ended before its first event".to_owned()).into()),
        }
    }

    async fn begun(&mut self, stream: EventStream, event: StreamEvent) -> Result<Pass, Stop> {
        let id = event.id.as_deref();
        let (task_id, context_id) = match &event.payload.payload {
            Some(Payload::Message(message)) => {
                self.told(Outcome::Answered(Box::new(message.clone())), id).await?;
                self.setup.tell.event(event).await;
                return Ok(self.pass());
            }
            Some(Payload::Task(task)) => (&task.id, &task.context_id),
            Some(Payload::StatusUpdate(update)) => (&update.task_id, &update.context_id),
            Some(Payload::ArtifactUpdate(update)) => (&update.task_id, &update.context_id),
            None => return Err(self.invalid("an event without a payload".to_owned()).into()),
        };
        self.take_status(&event);
        // The id is written before anything else is asked: by it the task is found again. Ends and questions are written when
        // the whole task was read.
        let outcome = match Outcome::of_task(sketch(task_id, context_id, self.status.clone())) {
            unknown @ Outcome::Unknown(_) if self.status.is_some() => unknown,
            _ => running(task_id, context_id),
        };
        self.told(outcome, id).await?;
        self.setup.tell.event(event).await;
        self.stream = Some(stream);
        Ok(self.pass())
    }

    /// There was an error instead of an answer.
    async fn not_answered(
        &mut self,
        stream: &EventStream,
        error: ClientError,
        attempts_before: u32,
    ) -> Result<Pass, Stop> {
        let is_reply = self.entry.state.task_id().is_some();
        if is_reply && error.code() == Some(ErrorCode::TaskNotFound) {
            self.record(News::NotFound { error: explain(&error) }).await?;
            return Ok(self.pass());
        }
        if !error.is_before_acting() {
            return Err(error.into());
        }
        let is_first = attempts_before == 0 && !self.may_have_arrived(stream);
        let is_refusal = error.agent().is_some() || is_first && self.setup.unsent == Unsent::Settles;
        if error.is_transient() || !is_refusal {
            if !self.may_have_arrived(stream) {
                self.record(News::NotSent { error: explain(&error) }).await?;
            }
            return Err(error.into());
        }
        if is_first {
            self.record(News::Refused { error: explain(&error) }).await?;
            return Ok(Pass::Refused(self.entry.clone(), error));
        }
        // An earlier attempt may have been taken, and a refusal of this one does not undo it.
        match self.entry.state.task_id().map(str::to_owned) {
            None => self.search().await,
            Some(task_id) => self.look_for_reply(&task_id).await,
        }
    }

    /// Whether one of the client's own repetitions may have been taken by the agent, although the last was not.
    fn may_have_arrived(&self, stream: &EventStream) -> bool {
        let client = &self.setup.client;
        client.may_resend() && (!client.streams() || stream.may_have_arrived())
    }
}
