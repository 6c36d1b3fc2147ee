//! Asking, and asking again: what is done when a stream is not opened, breaks or ends.

use std::time::Duration;

use longhaul_protocol::{ErrorCode, wire};
use tokio::time::{Instant, sleep_until, timeout};

use super::link::{Ask, Link, Next, NoStream, Open, Pending};
use super::take::state_in;
use super::{Event, EventStream, REOPENED_AFTER_MAX};
use crate::binding::stream::RawStream;
use crate::error::ClientError;
use crate::operation::{Opening, Repetition};

/// A stream that was open for so long says that the agent could be reached, even if nothing came over it.
const REACHED_AFTER: Duration = Duration::from_secs(10);
/// For which part of the patience only streams are tried, where the agent would go on with the very next event.
const NUMBERS_KEPT: u32 = 10;
/// How long an event of a stream is held back, until the task was compared with what the stream brought.
const COMPARISON_MAX: Duration = Duration::from_secs(10);
/// How much longer each wait is than the one before, while there is nothing new.
const POLL_GROWTH: f64 = 1.5;
/// After so many waits they grow no more, whatever the longest is.
const POLL_GROWTHS_MAX: i32 = 30;

impl EventStream {
    /// Waits for whatever comes next, and acts on it. Between the waiting and the end nothing is awaited, so a dropped future
    /// leaves everything as it was.
    pub(super) async fn step(&mut self) -> Result<(), ClientError> {
        let judged_again = self.judged_again();
        match &mut self.link {
            Link::Ended => Ok(()),
            Link::Due { ask, at } => {
                let ask = *ask;
                // A timer counts whole milliseconds: what is due at once would wait for one.
                if *at > Instant::now() {
                    sleep_until(*at).await;
                }
                self.ask(ask)
            }
            Link::Opening(opening) => {
                let opened = opening.await;
                self.opened(opened)
            }
            Link::Asking(asking, why) => {
                let why = *why;
                let task = asking.await;
                self.looked(task, why)
            }
            Link::Sending(sending) => {
                let answer = sending.await;
                self.sent(answer?)
            }
            Link::Checking(checking) => {
                let task = (&mut checking.asking).await;
                self.checked(task)
            }
            Link::Open(open) => {
                let next = open.next(judged_again).await;
                if let Some(wait) = open.raw.retry() {
                    self.reopened_after = wait.min(REOPENED_AFTER_MAX);
                }
                self.came(next)
            }
        }
    }

    fn came(&mut self, next: Next) -> Result<(), ClientError> {
        match next {
            Next::Item { item, is_first } => self.take(item, is_first),
            Next::Broken { error, items, since } => self.broke(error, items, since),
            Next::Closed { items } => self.closed_by_agent(items),
            Next::Silent => {
                self.judge();
                Ok(())
            }
        }
    }

    fn ask(&mut self, ask: Ask) -> Result<(), ClientError> {
        let client = self.client.clone();
        let ask = match ask {
            Ask::Stream if self.first.is_none() && !client.subscribes() => Ask::Task(NoStream::Never),
            ask => ask,
        };
        self.link = match (ask, self.first.clone()) {
            (Ask::Task(_), Some(Opening::Send(request))) => {
                let mut request = *request;
                // An answer at once to a message that continues a task may show the task as it stood before it.
                request.configuration.get_or_insert_default().return_immediately = !self.continues;
                Link::Sending(Pending::new(async move { client.send_message(request).await }))
            }
            (Ask::Task(why @ NoStream::Compared), _) => Link::Asking(self.compare()?, why),
            (Ask::Task(why), _) => {
                let request = self.known_task()?;
                Link::Asking(Pending::new(async move { client.get_task(request).await }), why)
            }
            (Ask::Stream, first) => {
                let opening = match first {
                    Some(first) => first,
                    None => {
                        Opening::Subscribe(wire::SubscribeToTaskRequest { tenant: String::new(), id: self.known_id()? })
                    }
                };
                let (after, failures) = (self.last_event_id.clone(), self.failures);
                Link::Opening(Pending::new(async move { client.open(opening, after.as_deref(), failures).await }))
            }
        };
        Ok(())
    }

    /// Asks for the task, to compare it with what the stream brought.
    pub(super) fn compare(&self) -> Result<Pending<wire::Task>, ClientError> {
        let (client, request) = (self.client.clone(), self.known_task()?);
        Ok(Pending::new(async move {
            let whom = client.interface().url.clone();
            let passed = |_| Err(ClientError::Timeout { whom, after: COMPARISON_MAX });
            timeout(COMPARISON_MAX, client.get_task(request)).await.unwrap_or_else(passed)
        }))
    }

    fn known_task(&self) -> Result<wire::GetTaskRequest, ClientError> {
        Ok(wire::GetTaskRequest { id: self.known_id()?, ..wire::GetTaskRequest::default() })
    }

    fn known_id(&self) -> Result<String, ClientError> {
        self.fold.task_id().map(str::to_owned).ok_or_else(lost_track)
    }

    fn opened(&mut self, opened: Result<RawStream, ClientError>) -> Result<(), ClientError> {
        match opened {
            Ok(raw) => {
                self.link = Link::Open(Box::new(Open { raw, items: 0, since: Instant::now() }));
                Ok(())
            }
            Err(error) if self.first.is_some() => self.unsent(error),
            Err(error) => self.refused(error),
        }
    }

    /// The message was not taken, or nobody knows.
    fn unsent(&mut self, error: ClientError) -> Result<(), ClientError> {
        match error.code() {
            // The card says that there are streams, and nothing answers there.
            Some(ErrorCode::MethodNotFound | ErrorCode::RouteNotFound) => {
                self.link = Link::due(Ask::Task(NoStream::Never));
                Ok(())
            }
            _ => self.cut(error, Ask::Stream),
        }
    }

    /// A subscription was refused: the task has ended, or the agent takes none now. The task itself says which.
    fn refused(&mut self, error: ClientError) -> Result<(), ClientError> {
        let is_refusal = matches!(error, ClientError::Agent(_) | ClientError::Http { .. }) && !error.is_transient();
        if is_refusal {
            self.link = Link::due(Ask::Task(NoStream::While(self.fold.state())));
            return Ok(());
        }
        self.unreachable(error)
    }

    /// There was no stream, or nothing came over it. Where something answers at all, it may be only streams that do not pass:
    /// so the task is looked at before the next attempt.
    fn unreachable(&mut self, error: ClientError) -> Result<(), ClientError> {
        let now = Instant::now();
        let is_about_streams = !matches!(error, ClientError::Connect { .. } | ClientError::Http { status: 429, .. });
        let since = *self.unopened_since.get_or_insert(now);
        let has_number = self.number(&self.last_event_id).is_some();
        let is_late = now.duration_since(since) >= self.options.patience / NUMBERS_KEPT;
        let loses_nothing = !has_number || is_late;
        let again = if is_about_streams && loses_nothing { Ask::Task(NoStream::Unreachable) } else { Ask::Stream };
        self.cut(error, again)
    }

    /// An open stream broke.
    fn broke(&mut self, error: ClientError, items: u64, since: Instant) -> Result<(), ClientError> {
        self.lose_stream();
        if since.elapsed() >= REACHED_AFTER {
            self.failing_since = None;
        }
        if self.first.is_some() {
            return self.unsent(error);
        }
        match error {
            ClientError::Agent(_) if items == 0 => self.refused(error),
            // An error that ends a stream says nothing about the task, which has a state of its own.
            ClientError::Agent(_) => {
                self.come_again(items, error.retry_after().unwrap_or_default());
                Ok(())
            }
            _ if items == 0 => self.unreachable(error),
            // That a task has no news for long is no failure, and the next news is not to wait.
            ClientError::Timeout { .. } => {
                self.link = Link::after(self.client.retry().backoff(1), Ask::Stream);
                Ok(())
            }
            _ => self.cut(error, Ask::Stream),
        }
    }

    /// The agent ended the stream in order. That is no end of the task unless its state says so.
    fn closed_by_agent(&mut self, items: u64) -> Result<(), ClientError> {
        if self.first.is_some() {
            let whom = self.client.interface().url.clone();
            let source = "the stream ended before its first event".into();
            return self.cut(ClientError::Broken { whom, source }, Ask::Stream);
        }
        // The end of the message's own stream says that the question in it is the one to answer.
        if items > 0 && self.is_end(self.state()) && !self.is_older_still() {
            self.link = Link::Ended;
        } else if items == 0 {
            self.link = Link::due(Ask::Task(NoStream::Silent));
        } else {
            self.come_again(items, Duration::ZERO);
        }
        Ok(())
    }

    /// Opens the stream again that the agent has ended, without haste.
    pub(super) fn come_again(&mut self, items: u64, after: Duration) {
        self.lose_stream();
        self.failures = self.failures.saturating_add(1);
        // The task may go on meanwhile, whatever the agent asks for.
        let asked = after.min(self.options.patience).max(self.reopened_after);
        let mut wait = self.client.retry().backoff(self.failures).max(asked);
        if items <= 1 {
            // A subscription of which nothing came but the snapshot is worth a `GetTask`, and costs no less.
            wait = wait.max(self.poll_wait());
            self.quiet = self.quiet.saturating_add(1);
        }
        self.link = Link::after(wait, Ask::Stream);
    }

    /// Something failed: it is asked again after a while, unless it must not be or was for too long.
    fn cut(&mut self, error: ClientError, again: Ask) -> Result<(), ClientError> {
        self.may_have_arrived |= self.first.is_some() && !error.is_before_acting();
        let Some(wait) = self.wait_after(&error) else { return Err(error) };
        self.failures = self.failures.saturating_add(1);
        self.link = Link::after(wait, again);
        Ok(())
    }

    fn wait_after(&mut self, error: &ClientError) -> Option<Duration> {
        let now = Instant::now();
        let attempts = self.failures.saturating_add(1);
        let wait = if self.first.is_some() {
            let repetition = if self.client.may_resend() { Repetition::Safe } else { Repetition::Asks };
            self.client.retry().wait(error, attempts, repetition)?
        } else if may_pass(error) {
            let asked = error.retry_after().unwrap_or_default().max(self.reopened_after);
            self.client.retry().backoff(attempts).max(asked)
        } else {
            return None;
        };
        let since = *self.failing_since.get_or_insert(now);
        (now.duration_since(since).saturating_add(wait) <= self.options.patience).then_some(wait)
    }

    /// The agent said how the task stands.
    fn looked(&mut self, task: Result<wire::Task, ClientError>, why: NoStream) -> Result<(), ClientError> {
        if let Some(held) = self.held.take() {
            return self.compared(task, held);
        }
        let task = match task {
            Ok(task) => task,
            Err(error) if why == NoStream::Unreachable => return self.cut(error, Ask::Stream),
            Err(error) => return self.cut(error, Ask::Task(why)),
        };
        self.heard();
        self.failures = 0;
        let is_news = self.catch_up(task, None)?;
        let wait = self.poll_wait();
        self.quiet = if is_news { 0 } else { self.quiet.saturating_add(1) };
        let (ask, wait) = match why {
            NoStream::While(state) if state != self.fold.state() => (Ask::Stream, Duration::ZERO),
            NoStream::Silent | NoStream::Unreachable => (Ask::Stream, wait),
            NoStream::Never | NoStream::While(_) | NoStream::Compared => (Ask::Task(why), wait),
        };
        self.link = Link::after(wait, ask);
        self.judge();
        Ok(())
    }

    /// The task was asked for before the last event is handed on. What can't be had, or is from before it, changes nothing.
    fn compared(&mut self, task: Result<wire::Task, ClientError>, held: Event) -> Result<(), ClientError> {
        match task {
            Ok(task) if task.status.as_ref().map(|status| status.state) == state_in(&held.payload) => {
                self.heard();
                self.catch_up(task, None)?;
            }
            Ok(_) | Err(_) => self.hand_on(held.id, held.payload)?,
        }
        self.come_again(2, Duration::ZERO);
        self.judge();
        Ok(())
    }

    /// An agent that does not stream has answered the message.
    fn sent(&mut self, answer: wire::SendMessageResponse) -> Result<(), ClientError> {
        let payload = match answer.payload {
            Some(wire::SendMessageResponsePayload::Task(task)) => wire::StreamResponsePayload::Task(task),
            Some(wire::SendMessageResponsePayload::Message(message)) => wire::StreamResponsePayload::Message(message),
            None => return Err(lost_track()),
        };
        self.link = Link::after(self.poll_wait(), Ask::Task(NoStream::Never));
        self.continues = false;
        self.begin(None, wire::StreamResponse { payload: Some(payload) })
    }

    /// How long an agent is left alone that shows nothing new.
    fn poll_wait(&self) -> Duration {
        grown(self.options.poll_interval, self.options.poll_interval_max, self.quiet)
    }

    /// Something came that is no failure.
    pub(super) fn heard(&mut self) {
        self.failing_since = None;
    }
}

/// Whether the task may still be followed after this error. That an agent fails within says nothing about the task.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Agent(agent) => agent.code == Some(ErrorCode::Internal) || error.is_transient(),
        ClientError::Http { status, .. } => *status >= 500 || error.is_transient(),
        _ => error.is_transient(),
    }
}

/// A wait after so many that brought nothing, up to the longest.
fn grown(first: Duration, longest: Duration, quiet: u32) -> Duration {
    let growths = i32::try_from(quiet).unwrap_or(POLL_GROWTHS_MAX).min(POLL_GROWTHS_MAX);
    let seconds = first.min(longest).as_secs_f64() * POLL_GROWTH.powi(growths);
    // What no duration holds is longer than any.
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).min(longest)
}

fn lost_track() -> ClientError {
    ClientError::Invalid { field: "task id".to_owned(), problem: "is not known, so nothing can be followed".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_however_long_that_is() {
        let second = Duration::from_secs(1);
        assert_eq!(grown(second, second * 15, 0), second);
        assert_eq!(grown(second, second * 15, 1), second.mul_f64(1.5));
        assert_eq!(grown(second, second * 15, u32::MAX), second * 15);
        assert_eq!(grown(second * 20, second * 15, 0), second * 15);
        assert_eq!(grown(Duration::MAX, Duration::MAX, 0), Duration::MAX);
        assert_eq!(grown(Duration::MAX, Duration::MAX, 7), Duration::MAX);
    }

    #[tokio::test]
    async fn a_wait_that_no_clock_holds_can_be_waited_for() {
        let Link::Due { at, .. } = Link::after(Duration::MAX, Ask::Stream) else { panic!("nothing is due") };
        assert!(at > Instant::now() + Duration::from_secs(24 * 60 * 60));
    }
}
