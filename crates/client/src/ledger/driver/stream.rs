//! Following a task, and what is written down of it meanwhile.

use std::time::Duration;

use longhaul_protocol::{ErrorCode, wire};
use tokio::time::{Instant, sleep};
use wire::StreamResponsePayload as Payload;

use super::{Driver, Pass, Stop, sketch};
use crate::Outcome;
use crate::error::explain;
use crate::follow::{Event as StreamEvent, EventStream};
use crate::ledger::{News, State};

/// How often it is written down at the most that the agent was heard, when nothing else changes.
const HEARD_INTERVAL: Duration = Duration::from_secs(1);

impl Driver {
    /// Follows the task until it has ended or waits for somebody.
    pub(super) async fn follow_task(&mut self) -> Result<Pass, Stop> {
        loop {
            self.ask_again().await?;
            let Pass::Running = self.pass() else { return Ok(self.pass()) };
            let Some(task_id) = self.entry.state.task_id().map(str::to_owned) else {
                return Err(self.invalid("it names no task".to_owned()).into());
            };
            let mut stream = match self.stream.take() {
                Some(stream) => stream,
                None => {
                    let options = self.follow_options(self.entry.last_event_id.clone());
                    self.setup.client.follow(&task_id, options)
                }
            };
            if self.read(&mut stream).await? == Read::Unknown {
                continue;
            }
            match self.ended(&task_id).await? {
                // Somebody else answered the question meanwhile.
                Pass::Running => sleep(self.setup.follow_up.follow.poll_interval).await,
                rest => return Ok(rest),
            }
        }
    }

    /// Reads the stream to its end.
    async fn read(&mut self, stream: &mut EventStream) -> Result<Read, Stop> {
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => self.heard(event).await?,
                Err(error) if error.code() == Some(ErrorCode::TaskNotFound) => return Ok(Read::End),
                Err(error) => return Err(error.into()),
            }
            if matches!(self.entry.state, State::Unknown { .. }) {
                return Ok(Read::Unknown);
            }
        }
        Ok(Read::End)
    }

    /// Keeps what an event says of the task's state. Returns whether it says something.
    pub(super) fn take_status(&mut self, event: &StreamEvent) -> bool {
        let status = match &event.payload.payload {
            Some(Payload::Task(task)) => task.status.as_ref(),
            Some(Payload::StatusUpdate(update)) => update.status.as_ref(),
            Some(Payload::ArtifactUpdate(_) | Payload::Message(_)) | None => None,
        };
        if let Some(status) = status {
            self.status = Some(status.clone());
        }
        status.is_some()
    }

    /// Writes down what an event changes, and hands it on.
    async fn heard(&mut self, event: StreamEvent) -> Result<(), Stop> {
        let last_event_id = event.id.as_deref();
        let outcome = if self.take_status(&event) { self.sketch() } else { None };
        let is_unknown = matches!(self.entry.state, State::Unknown { .. });
        match outcome {
            Some(outcome @ Outcome::Unknown(_)) if !is_unknown => self.told(outcome, last_event_id).await?,
            // Ends and questions are written when the whole task was read.
            _ if self.heard_at.is_none_or(|at| at.elapsed() >= HEARD_INTERVAL) => {
                self.heard_at = Some(Instant::now());
                self.record(News::Heard { last_event_id: last_event_id.map(str::to_owned) }).await?;
            }
            _ => {}
        }
        self.setup.tell.event(event).await;
        Ok(())
    }

    /// The task as far as the stream told it.
    fn sketch(&self) -> Option<Outcome> {
        let task_id = self.entry.state.task_id()?;
        let status = self.status.clone()?;
        let context_id = self.entry.context_id.as_deref().unwrap_or_default();
        Some(Outcome::of_task(sketch(task_id, context_id, Some(status))))
    }

    /// The stream is at its end: the task is read whole.
    async fn ended(&mut self, task_id: &str) -> Result<Pass, Stop> {
        match self.setup.client.outcome(task_id).await {
            Ok(outcome) => self.told(outcome, None).await?,
            Err(error) => match self.sketch() {
                // An agent that forgets what has ended: what it said is all that there is.
                Some(
                    outcome
                    @ (Outcome::Completed(_) | Outcome::Failed(_) | Outcome::Canceled(_) | Outcome::Rejected(_)),
                ) if error.agent().is_some() && !error.is_transient() => self.told(outcome, None).await?,
                _ if error.code() == Some(ErrorCode::TaskNotFound) => {
                    self.record(News::NotFound { error: explain(&error) }).await?;
                }
                _ => return Err(error.into()),
            },
        }
        Ok(self.pass())
    }
}

/// Why there is no more to read.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Read {
    End,
    /// The task is in a state that nobody knows, about which a stream says nothing until it changes.
    Unknown,
}
