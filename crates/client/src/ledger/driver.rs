//! One entry on its way to its rest: what is asked of the agent, and what of it is written down.

mod search;
mod send;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::{ErrorCode, wire};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{Claim, Decision, Entry, Finding, Ledger, LedgerError, News, NotAllowed, State};
use crate::clock::{between, now};
use crate::error::explain;
use crate::follow::{Event as StreamEvent, EventStream, FollowOptions};
use crate::{Client, ClientError, Outcome};

/// How a delegation is followed up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FollowUp {
    /// How its task is followed. `until` and `last_event_id` are the ledger's own affair. `patience` is also how long an agent
    /// is tried again that can't be reached.
    pub follow: FollowOptions,
    /// How long after it was written down a message may be sent again, where that is safe because the agent remembers message
    /// ids: it forgets them some day. Default 12 h, half of what a Longhaul server remembers by default.
    pub resend_within: Duration,
    /// How long a task may stand in a state that nobody knows, until a person is alarmed. Default 5 min.
    pub unknown_max: Duration,
}

impl Default for FollowUp {
    fn default() -> Self {
        Self {
            follow: FollowOptions::default(),
            resend_within: Duration::from_secs(12 * 60 * 60),
            unknown_max: Duration::from_secs(5 * 60),
        }
    }
}

/// What is told to who follows a delegation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Update {
    /// An event of the task.
    Event(StreamEvent),
    /// An alarm was raised, of this entry or of another one of the ledger.
    Alarm(Entry),
    /// A call failed, and will be tried again.
    Trouble(Arc<ClientError>),
}

/// Whom a driver tells what happens on the way.
#[derive(Clone, Debug)]
pub(super) enum Tell {
    Updates(mpsc::Sender<Update>),
    Findings(mpsc::Sender<Result<Finding, LedgerError>>),
}

impl Tell {
    // In both, who should hear it may have gone.
    async fn event(&self, event: StreamEvent) {
        if let Self::Updates(updates) = self {
            let _ = updates.send(Update::Event(event)).await;
        }
    }

    pub(super) async fn alarm(&self, entry: Entry) {
        match self {
            Self::Updates(updates) => {
                let _ = updates.send(Update::Alarm(entry)).await;
            }
            Self::Findings(findings) => {
                let _ = findings.send(Ok(Finding::Alarm(entry))).await;
            }
        }
    }
}

/// What becomes of a message that certainly was not sent, and would be refused again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unsent {
    /// The caller is told at once: the entry is settled.
    Settles,
    /// It is tried again: credentials may be better then.
    Waits,
}

/// How far it came.
pub(super) enum Pass {
    /// It is settled, or waits for a person.
    Rest(Entry),
    /// The request was refused just now.
    Refused(Entry, ClientError),
    /// The task runs: to be followed.
    Running,
    /// The agent could not be asked: to be tried again.
    Later(ClientError),
}

/// Why a step ended early.
enum Stop {
    Ledger(LedgerError),
    Agent(ClientError),
}

impl From<LedgerError> for Stop {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Agent(error)
    }
}

/// What a driver is made of.
pub(super) struct Setup {
    pub(super) ledger: Ledger,
    pub(super) client: Client,
    pub(super) follow_up: FollowUp,
    pub(super) unsent: Unsent,
    pub(super) tell: Tell,
}

/// Drives one claimed entry.
pub(super) struct Driver {
    setup: Setup,
    claim: Claim,
    /// As it was written last.
    entry: Entry,
    /// The stream that the send began.
    stream: Option<EventStream>,
    /// What a stream told last of the task.
    status: Option<wire::TaskStatus>,
    heard_at: Option<Instant>,
}

impl Driver {
    pub(super) fn new(setup: Setup, held: super::Held) -> Self {
        let super::Held { entry, claim } = held;
        Self { setup, claim, entry, stream: None, status: None, heard_at: None }
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    pub(super) fn claim(&self) -> &Claim {
        &self.claim
    }

    pub(super) fn patience(&self) -> Duration {
        self.setup.follow_up.follow.patience
    }

    /// How long to wait before calls that fail are tried once more.
    pub(super) fn backoff(&self, rounds: u32) -> Duration {
        self.setup.client.retry().backoff(rounds)
    }

    /// Finds out how the entry stands, and sends its message where that is due.
    pub(super) async fn check(&mut self) -> Result<Pass, LedgerError> {
        (self.stream, self.status) = (None, None);
        let pass = match self.entry.state.clone() {
            State::Settled { .. } => Ok(self.pass()),
            State::Prepared { .. } if self.may_send() => self.send().await,
            State::Prepared { task_id: None } | State::Uncertain { task_id: None, .. } => self.search().await,
            State::Prepared { task_id: Some(id) } | State::Uncertain { task_id: Some(id), .. } => {
                self.look_for_reply(&id).await
            }
            State::Accepted { task_id }
            | State::Question { task_id, .. }
            | State::Authorization { task_id, .. }
            | State::Unknown { task_id }
            | State::Lost { task_id, .. } => self.look(&task_id).await,
        };
        Self::settle(pass)
    }

    /// Follows the task to its rest.
    pub(super) async fn follow(&mut self) -> Result<Pass, LedgerError> {
        let pass = self.follow_task().await;
        Self::settle(pass)
    }

    fn settle(pass: Result<Pass, Stop>) -> Result<Pass, LedgerError> {
        match pass {
            Ok(pass) => Ok(pass),
            Err(Stop::Agent(error)) => Ok(Pass::Later(error)),
            Err(Stop::Ledger(error)) => Err(error),
        }
    }

    /// How the entry stands, as a pass.
    fn pass(&self) -> Pass {
        if self.entry.state.is_settled() || self.entry.state.waits_for_person() {
            Pass::Rest(self.entry.clone())
        } else {
            Pass::Running
        }
    }

    async fn record(&mut self, news: News) -> Result<(), LedgerError> {
        self.entry = self.setup.ledger.record(&self.claim, news, now()).await?;
        Ok(())
    }

    /// Writes down how the agent says that the task stands.
    async fn told(&mut self, outcome: Outcome, last_event_id: Option<&str>) -> Result<(), Stop> {
        let last_event_id = last_event_id.map(str::to_owned);
        let news = News::Told { outcome: Box::new(outcome), last_event_id };
        match self.record(news).await {
            Ok(()) => Ok(()),
            Err(LedgerError::NotAllowed { source: source @ NotAllowed::OtherTask { .. }, .. })
                if matches!(self.entry.state, State::Prepared { .. }) =>
            {
                // It took the message for another task. Which one goes on is not for us to say.
                Ok(self.record(News::Unresolved { why: format!("the agent's answer: {source}") }).await?)
            }
            Err(LedgerError::Invalid { field, problem }) => Err(self.invalid(format!("{field} {problem}")).into()),
            Err(LedgerError::NotAllowed { source: source @ NotAllowed::OtherTask { .. }, .. }) => {
                Err(self.invalid(source.to_string()).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn invalid(&self, what: String) -> ClientError {
        ClientError::InvalidAnswer { whom: self.setup.client.interface().url.clone(), what }
    }

    /// Asks the agent for the task.
    async fn look(&mut self, task_id: &str) -> Result<Pass, Stop> {
        match self.setup.client.outcome(task_id).await {
            Ok(outcome) => self.told(outcome, None).await?,
            Err(error) if error.code() == Some(ErrorCode::TaskNotFound) => {
                self.record(News::NotFound { error: explain(&error) }).await?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.pass())
    }

    /// Asks for a task in a state that nobody knows until that is over, and alarms a person when it takes too long.
    async fn ask_again(&mut self) -> Result<(), Stop> {
        let FollowOptions { poll_interval, poll_interval_max, .. } = self.setup.follow_up.follow;
        let mut wait = poll_interval;
        while let State::Unknown { task_id } = self.entry.state.clone() {
            let since = between(self.entry.since, now());
            if since >= self.setup.follow_up.unknown_max && self.entry.alarmed_at.is_none() {
                self.alarm(format!("the task is in a state that nobody here knows, for {} s", since.as_secs())).await?;
            }
            sleep(wait).await;
            wait = wait.mul_f64(1.5).min(poll_interval_max);
            // How it passes is read from the entry.
            let _ = self.look(&task_id).await?;
        }
        Ok(())
    }

    async fn alarm(&mut self, why: String) -> Result<(), LedgerError> {
        let Entry { id, version, .. } = self.entry;
        match self.setup.ledger.decide(id, version, Decision::Alarm { why }, now()).await {
            Ok(entry) => {
                self.entry = entry;
                self.setup.tell.alarm(self.entry.clone()).await;
                Ok(())
            }
            // A person was quicker: the next round sees it.
            Err(LedgerError::Conflict { .. }) => {
                self.entry = self.setup.ledger.get(id).await?;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// As little of a task as a stream or a list has to tell before it can be asked for.
fn sketch(task_id: &str, context_id: &str, status: Option<wire::TaskStatus>) -> wire::Task {
    wire::Task { id: task_id.to_owned(), context_id: context_id.to_owned(), status, ..wire::Task::default() }
}

/// A task that the agent has, however it stands.
fn running(task_id: &str, context_id: &str) -> Outcome {
    Outcome::Running(Box::new(sketch(task_id, context_id, None)))
}
