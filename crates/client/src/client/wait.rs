//! Waiting until a task rests.

use std::time::Duration;

use longhaul_protocol::wire;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Client;
use crate::error::ClientError;
use crate::follow::{EventStream, FollowOptions, Until};
use crate::outcome::Outcome;

/// How long a task is waited for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaitOptions {
    /// The time after which the outcome is whatever it is then. Default none: for as long as it takes.
    pub timeout: Option<Duration>,
    /// How long a task may stand in states that nobody knows, as far as the agent tells: then it is asked once more, and if it
    /// is still so the outcome is [`Unknown`](Outcome::Unknown). Default 5 min.
    pub unknown_max: Duration,
    /// How the task is followed meanwhile; [`Until::Waiting`] whatever it says.
    pub follow: FollowOptions,
}

impl Default for WaitOptions {
    fn default() -> Self {
        Self { timeout: None, unknown_max: Duration::from_secs(5 * 60), follow: FollowOptions::default() }
    }
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
        let (limits, follow) = limits_of(&options);
        let mut events = self.send_streaming_message(request, follow.clone())?;
        let (rest, answer) = read(&mut events, limits).await?;
        if let Some(message) = answer {
            return Ok(Outcome::Answered(Box::new(message)));
        }
        match events.task_id() {
            Some(id) => self.at_rest(id, rest, follow, limits).await,
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
        let (limits, follow) = limits_of(&options);
        let mut events = self.follow(task_id, follow.clone());
        let (rest, _) = read(&mut events, limits).await?;
        self.at_rest(task_id, rest, follow, limits).await
    }

    /// How a task stands whose events have come to their end. Where it does not stand still although the events said so, it is
    /// followed again: an agent may be asked by `GetTask` at a replica that lags behind, and some work on after an end.
    async fn at_rest(
        &self,
        task_id: &str,
        mut rest: Rest,
        follow: FollowOptions,
        limits: Limits,
    ) -> Result<Outcome, ClientError> {
        let follow = FollowOptions { last_event_id: None, ..follow };
        for attempt in 1..=CONTRADICTIONS_MAX {
            let outcome = self.outcome(task_id).await?;
            let is_over = match outcome {
                Outcome::Running(_) => rest == Rest::TimeIsUp,
                Outcome::Unknown(_) => rest != Rest::Told,
                _ => true,
            };
            if is_over {
                return Ok(outcome);
            }
            let wait = Instant::now() + self.retry().backoff(attempt);
            sleep_until(limits.until.map_or(wait, |until| until.min(wait))).await;
            (rest, _) = read(&mut self.follow(task_id, follow.clone()), limits).await?;
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
    /// The state was one that nobody knows for too long.
    Unknown,
}

/// How long events are read.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// When the time is over; none if it never is.
    until: Option<Instant>,
    unknown_max: Duration,
}

fn limits_of(options: &WaitOptions) -> (Limits, FollowOptions) {
    let until = options.timeout.and_then(|limit| Instant::now().checked_add(limit));
    let follow = FollowOptions { until: Until::Waiting, ..options.follow.clone() };
    (Limits { until, unknown_max: options.unknown_max }, follow)
}

/// Reads events to their end, or as long as there is time. An answer without a task is given back.
async fn read(events: &mut EventStream, limits: Limits) -> Result<(Rest, Option<wire::Message>), ClientError> {
    let (mut answer, mut unknown_since) = (None, None);
    loop {
        let unknown_until = unknown_since.and_then(|since: Instant| since.checked_add(limits.unknown_max));
        let next = match [limits.until, unknown_until].into_iter().flatten().min() {
            None => Ok(events.next().await),
            Some(end) => timeout_at(end, events.next()).await,
        };
        match next {
            Err(_) if limits.until.is_some_and(|until| until <= Instant::now()) => return Ok((Rest::TimeIsUp, answer)),
            Err(_) => return Ok((Rest::Unknown, answer)),
            Ok(None) => return Ok((Rest::Told, answer)),
            Ok(Some(event)) => {
                if let Some(wire::StreamResponsePayload::Message(message)) = event?.payload.payload {
                    answer = Some(message);
                }
            }
        }
        unknown_since = match events.is_unknown() {
            true => unknown_since.or_else(|| Some(Instant::now())),
            false => None,
        };
    }
}
