use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use longhaul_engine::{Accept, Agent, AgentError, ArtifactPiece, Incoming, Outcome, Turn, text_part};
use longhaul_protocol::{TaskId, wire};
use tokio::sync::watch;

use crate::Gate;

/// What a turn of a scripted agent is while it runs.
pub type RunFuture<'a> = Pin<Box<dyn Future<Output = Result<Outcome, AgentError>> + Send + 'a>>;
type AcceptFuture = Pin<Box<dyn Future<Output = Result<Accept, AgentError>> + Send>>;
type Behaviour = Box<dyn for<'a> Fn(&'a mut Turn) -> RunFuture<'a> + Send + Sync>;
type Accepting = Box<dyn Fn(&Incoming<'_>) -> AcceptFuture + Send + Sync>;

/// One thing that a scripted agent does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Says how it is getting on.
    Progress(&'static str),
    /// Writes a piece of an artifact: id, text, whether it is appended.
    Artifact(&'static str, &'static str, bool),
    /// Waits until the gate is open.
    Wait(Gate),
    /// Lets others run.
    Yield,
    /// Waits until it is told that it is canceled.
    Canceled,
    /// Ends the turn.
    End(Outcome),
    /// Stores this for the next attempt or turn.
    Checkpoint(&'static str),
    /// Fails, with this cause.
    Fail(&'static str),
    /// Fails, with this reason that callers may know, in a way that is worth another attempt.
    FailForNow(&'static str),
    /// Panics.
    Panic(&'static str),
}

/// A turn that was begun.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Run {
    /// The task.
    pub task_id: TaskId,
    /// The text of the turn's message.
    pub text: String,
    /// Which attempt it was.
    pub attempt: u32,
    /// The fencing token of its lease.
    pub epoch: u64,
    /// Whether it was the task's first turn.
    pub is_first: bool,
}

/// An agent whose behaviour a test writes down, and that remembers what it was asked.
pub struct ScriptedAgent {
    behaviour: Behaviour,
    accepting: Option<Accepting>,
    attempts_max: Option<u32>,
    runs: watch::Sender<Vec<Run>>,
    accepted: watch::Sender<Vec<String>>,
}

impl ScriptedAgent {
    /// An agent that does what the closure says: `ScriptedAgent::new(|turn| Box::pin(async move { … }))`.
    #[must_use]
    pub fn new(behaviour: impl for<'a> Fn(&'a mut Turn) -> RunFuture<'a> + Send + Sync + 'static) -> Self {
        let (runs, accepted) = (watch::Sender::default(), watch::Sender::default());
        Self { behaviour: Box::new(behaviour), accepting: None, attempts_max: None, runs, accepted }
    }

    /// An agent that works off one list of steps a turn; each attempt counts, and the last list is used from then on.
    /// A list without an end completes.
    #[must_use]
    pub fn steps(turns: Vec<Vec<Step>>) -> Self {
        let next = Mutex::new(turns.into_iter());
        let last = Mutex::new(Vec::new());
        Self::new(move |turn| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(steps) = next.lock().unwrap_or_else(PoisonError::into_inner).next() {
                *last = steps;
            }
            Box::pin(work_off(turn, last.clone()))
        })
    }

    /// The same agent, which says at once what becomes of a new message.
    #[must_use]
    pub fn accepting(self, accept: Accept) -> Self {
        self.accepting_with(move |_| {
            let accept = accept.clone();
            Box::pin(async move { Ok(accept) })
        })
    }

    /// The same agent, which asks the closure what becomes of a new message.
    #[must_use]
    pub fn accepting_with(mut self, accepting: impl Fn(&Incoming<'_>) -> AcceptFuture + Send + Sync + 'static) -> Self {
        self.accepting = Some(Box::new(accepting));
        self
    }

    /// The same agent, of which a turn may be begun so often.
    #[must_use]
    pub fn with_attempts_max(self, attempts_max: u32) -> Self {
        Self { attempts_max: Some(attempts_max), ..self }
    }

    /// The turns that were begun so far, in order.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        self.runs.borrow().clone()
    }

    /// The texts of the messages that it was asked about, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.accepted.borrow().clone()
    }

    /// Waits until this many turns were begun.
    pub async fn ran(&self, times: usize) {
        self.runs.subscribe().wait_for(|runs| runs.len() >= times).await.expect("an agent holds its own sender");
    }
}

impl fmt::Debug for ScriptedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedAgent").field("runs", &self.runs.borrow().len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Agent for ScriptedAgent {
    fn attempts_max(&self) -> Option<u32> {
        self.attempts_max
    }

    async fn accept(&self, incoming: &Incoming<'_>) -> Result<Accept, AgentError> {
        self.accepted.send_modify(|accepted| accepted.push(incoming.message.text()));
        match &self.accepting {
            Some(accepting) => accepting(incoming).await,
            None => Ok(Accept::Task),
        }
    }

    async fn run(&self, turn: &mut Turn) -> Result<Outcome, AgentError> {
        let run = Run {
            task_id: turn.task_id().clone(),
            text: turn.message().text(),
            attempt: turn.attempt(),
            epoch: turn.epoch(),
            is_first: turn.is_first(),
        };
        self.runs.send_modify(|runs| runs.push(run));
        (self.behaviour)(turn).await
    }
}

#[expect(clippy::panic, reason = "a script may say so")]
async fn work_off(turn: &mut Turn, steps: Vec<Step>) -> Result<Outcome, AgentError> {
    for step in steps {
        match step {
            Step::Progress(text) => turn.progress(vec![text_part(text)]).await?,
            Step::Artifact(id, text, append) => turn.artifact(piece(id, text, append)).await?,
            Step::Wait(gate) => gate.pass().await,
            Step::Yield => tokio::task::yield_now().await,
            Step::Canceled => turn.canceled().await,
            Step::End(outcome) => return Ok(outcome),
            Step::Checkpoint(data) => turn.checkpoint(data).await?,
            Step::FailForNow(reason) => return Err(AgentError::transient(reason).with_reason(reason)),
            Step::Fail(cause) => return Err(AgentError::new(cause)),
            Step::Panic(what) => panic!("{what}"),
        }
    }
    Ok(Outcome::Complete(None))
}

/// One text part of an artifact.
#[must_use]
pub fn piece(id: &str, text: impl Into<String>, append: bool) -> ArtifactPiece {
    let artifact =
        wire::Artifact { artifact_id: id.to_owned(), parts: vec![text_part(text)], ..wire::Artifact::default() };
    ArtifactPiece { artifact, append, ..ArtifactPiece::default() }
}

/// The outcome that the first word of a text asks for: `input`, `auth`, `fail`, `reject`; anything else completes.
#[must_use]
pub fn end_of(text: &str) -> Outcome {
    let parts = vec![text_part(text)];
    match text.split(' ').next().unwrap_or_default() {
        "input" => Outcome::RequireInput(parts),
        "auth" => Outcome::RequireAuth { parts, resume_after: None },
        "fail" => Outcome::Fail(Some(parts)),
        "reject" => Outcome::Reject(Some(parts)),
        _ => Outcome::Complete(Some(parts)),
    }
}
