//! Waiting until a task rests.

use std::time::Duration;

use longhaul_protocol::wire;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Client;
use crate::error::ClientError;
use crate::follow::{EventStream, FollowOptions, Until};
use crate::outcome::Outcome;

/// How long a task is waited for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WaitOptions {
    /// The time after which the outcome is whatever it is then. Default none: for as long as it takes.
    pub timeout: Option<Duration>,
    /// How the task is followed meanwhile; [`Until::Waiting`] whatever it says.
    pub follow: FollowOptions,
}

impl Client {
    /// Sends a message, and waits until the task has ended or waits for its caller, however long that takes and whatever
    /// happens to the connection meanwhile.
    ///
    /// # Errors
    ///
    /// [`ClientError`]. After [`Broken`](ClientError::Broken) and [`Timeout`](ClientError::Timeout) it is not known whether the
    /// agent has the message; a [`Ledger`](crate::ledger::Ledger) finds out.
    pub async fn delegate(
        &self,
        request: wire::SendMessageRequest,
        options: WaitOptions,
    ) -> Result<Outcome, ClientError> {
        let until = end_of(options.timeout);
        let follow = FollowOptions { until: Until::Waiting, ..options.follow };
        let mut events = self.send_streaming_message(request, follow.clone())?;
        let (rest, answer) = read(&mut events, until).await?;
        if let Some(message) = answer {
            return Ok(Outcome::Answered(Box::new(message)));
        }
        match events.task_id() {
            Some(id) => self.at_rest(id, rest, follow, until).await,
            None => Err(ClientError::Timeout {
                whom: self.interface().url.clone(),
                after: options.timeout.unwrap_or_default(),
            }),
        }
    }

    /// How a task stands now.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn outcome(&self, task_id: &str) -> Result<Outcome, ClientError> {
        let request = wire::GetTaskRequest { id: task_id.to_owned(), ..wire::GetTaskRequest::default() };
        self.get_task(request).await.map(Outcome::of_task)
    }

    /// Waits until a task has ended or waits for its caller, and answers how it stands. When the time is over the outcome may
    /// be [`Running`](Outcome::Running).
    ///
    /// # Errors
    ///
    /// [`ClientError`], as [`EventStream::next`](crate::follow::EventStream::next).
    pub async fn wait(&self, task_id: &str, options: WaitOptions) -> Result<Outcome, ClientError> {
        let until = end_of(options.timeout);
        let follow = FollowOptions { until: Until::Waiting, ..options.follow };
        let mut events = self.follow(task_id, follow.clone());
        let (rest, _) = read(&mut events, until).await?;
        self.at_rest(task_id, rest, follow, until).await
    }

    /// How a task stands whose events have come to their end. Where it does not stand still although the events said so, it is
    /// followed again: an agent may be asked by `GetTask` at a replica that lags behind, and some work on after an end.
    async fn at_rest(
        &self,
        task_id: &str,
        mut rest: Rest,
        follow: FollowOptions,
        until: Option<Instant>,
    ) -> Result<Outcome, ClientError> {
        let follow = FollowOptions { last_event_id: None, ..follow };
        for attempt in 1..=CONTRADICTIONS_MAX {
            let outcome = self.outcome(task_id).await?;
            let moves = matches!(outcome, Outcome::Running(_) | Outcome::Unknown(_));
            if !moves || rest == Rest::TimeIsUp {
                return Ok(outcome);
            }
            let wait = Instant::now() + self.retry().backoff(attempt);
            sleep_until(until.map_or(wait, |until| until.min(wait))).await;
            (rest, _) = read(&mut self.follow(task_id, follow.clone()), until).await?;
        }
        self.outcome(task_id).await
    }
}

/// How often a task is followed again whose events said that it rests, and that does not.
const CONTRADICTIONS_MAX: u32 = 10;

/// Why no more events are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rest {
    /// They have come to their end.
    Told,
    /// There is no more time.
    TimeIsUp,
}

/// When the time is over; none if it never is.
fn end_of(limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// Reads events to their end, or as long as there is time. An answer without a task is given back.
async fn read(events: &mut EventStream, until: Option<Instant>) -> Result<(Rest, Option<wire::Message>), ClientError> {
    let mut answer = None;
    let to_their_end = async {
        while let Some(event) = events.next().await {
            if let Some(wire::StreamResponsePayload::Message(message)) = event?.payload.payload {
                answer = Some(message);
            }
        }
        Ok::<(), ClientError>(())
    };
    let rest = match until {
        None => to_their_end.await.map(|()| Rest::Told)?,
        Some(until) => match timeout_at(until, to_their_end).await {
            Ok(read) => read.map(|()| Rest::Told)?,
            Err(_) => Rest::TimeIsUp,
        },
    };
    Ok((rest, answer))
}
