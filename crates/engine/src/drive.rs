//! Runs one turn: polls the agent, commits what it writes in groups, and commits its outcome.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use longhaul_lifecycle::{ArtifactLedger, AttemptOutcome, Command, TaskHead, Writer, decide};
use longhaul_protocol::{ArtifactId, Message, TaskState, Timestamp, wire};
use longhaul_store::{
    ArtifactFold, Commit, EventKind, Expect, NewEvent, NewMessage, Scope, StoreError, TurnRequest, artifact_update,
};

use crate::engine::{Inner, Worker, new_messages, status_events, status_time};
use crate::running::{Begins, Stop};
use crate::turn::{MessageIds, Progress, TurnParts, TurnShared, TurnState, Write};
use crate::unwind::CatchUnwind;
use crate::{AgentError, Outcome, Turn, text_part};

/// A turn that has its lease and is ready to run.
#[derive(Debug)]
pub(crate) struct TurnStart {
    pub scope: Scope,
    /// The head with the lease taken.
    pub head: TaskHead,
    pub message: Message,
    pub request: TurnRequest,
    /// The task as its caller will see it, for a task that begins with this turn.
    pub view: Option<View>,
    pub worker: Worker,
    /// The sequence at which the message was stored, for a turn that did not begin with its message.
    pub message_sequence: Option<u64>,
    /// From before the lease was taken.
    pub begins: Begins,
}

/// How a turn ended: with the head that its last commit left, and the task as a fold of its own writes if nobody else
/// wrote meanwhile.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    pub head: Option<TaskHead>,
    pub view: Option<wire::Task>,
}

/// How large a view may grow before the store has to be asked instead, in bytes of events.
const VIEW_BYTES_MAX: usize = 256 * 1024;
const RETRY_DELAY_MIN: Duration = Duration::from_millis(10);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(1);

/// The task as a fold of what this process wrote: it spares the read of what was just written.
#[derive(Debug)]
pub(crate) struct View {
    task: wire::Task,
    fold: ArtifactFold,
    sequence: u64,
    bytes: usize,
}

impl View {
    /// A view of a task that was created just now.
    pub fn new(
        head: &TaskHead,
        metadata: Option<longhaul_protocol::JsonObject>,
        message: &Message,
        sequence: u64,
    ) -> Self {
        let task = wire::Task {
            id: head.id.as_str().to_owned(),
            context_id: head.context_id.as_str().to_owned(),
            history: vec![message.as_wire().clone()],
            metadata,
            ..wire::Task::default()
        };
        Self { task, fold: ArtifactFold::default(), sequence, bytes: 0 }
    }

    /// Takes in a commit; `None` when somebody else wrote in between, or when it grows too large.
    fn grown(mut self, group: &Group, writes: VecDeque<Write>, head: &TaskHead) -> Option<Self> {
        self.sequence += group.events.len() as u64;
        self.bytes += group.events.iter().map(|event| event.payload.len()).sum::<usize>();
        if self.sequence != head.last_sequence || self.bytes > VIEW_BYTES_MAX {
            return None;
        }
        for write in writes {
            let Write::Artifact(_, update) = write else { continue };
            match update?.payload {
                Some(wire::StreamResponsePayload::ArtifactUpdate(update)) => self.fold.apply(update),
                _ => return None,
            }
        }
        self.task.history.extend(group.messages.iter().map(|joins| joins.message.as_wire().clone()));
        // A message of a caller that joined meanwhile brings no event, but it counts.
        (!group.decides || self.task.history.len() as u64 == head.messages).then_some(self)
    }

    fn into_task(self, head: &TaskHead) -> wire::Task {
        let status = wire::TaskStatus {
            state: head.state.into(),
            message: head.status_message.as_ref().map(|message| message.as_wire().clone()),
            timestamp: Some(head.status_timestamp),
        };
        wire::Task { status: Some(status), artifacts: self.fold.into_artifacts(), ..self.task }
    }
}

/// The lease is over: whatever the agent does counts no more.
struct Lost;

type Stored = Result<(TaskHead, Group, VecDeque<Write>), Lost>;

/// What one commit writes.
#[derive(Debug, Default)]
struct Group {
    events: Vec<NewEvent>,
    messages: Vec<NewMessage>,
    checkpoint: Option<Bytes>,
    /// Whether anything but artifacts is written.
    decides: bool,
}

/// Runs a turn to its end.
pub(crate) async fn drive(inner: Arc<Inner>, start: TurnStart) -> TurnEnd {
    let TurnStart { scope, head, message, request, mut view, worker, message_sequence, mut begins } = start;
    let mut end = TurnEnd { head: None, view: None };
    let Some((ledger, resumed)) = at_last(&inner, &head, || past(&inner, &head, message_sequence)).await else {
        return end;
    };
    // Nobody has renewed the lease while that was read.
    if head.lease_is_over(inner.clock.now()) {
        return end;
    }
    let shared = Arc::new(shared(&inner, &scope, &head, ledger, view.is_some()));
    let registered = inner.running.register(Arc::clone(&shared));
    begins.over();
    let mut head = head;
    if begins.has_missed() {
        match at_last(&inner, &head, || inner.store.load(&scope, &head.id)).await {
            Some(Some(newer)) if newer.leased && newer.epoch == head.epoch => head = newer,
            _ => return end,
        }
    }
    shared.knows(&head);
    let (history, messages) = (head.turn_message, head.messages);
    let mut turn = Turn {
        message,
        request,
        history,
        messages,
        resumed,
        writer: crate::TurnWriter { shared: Arc::clone(&shared) },
    };
    let agent = Arc::clone(&inner.agent);
    let mut running = Some(CatchUnwind(Box::pin(async move { agent.run(&mut turn).await })));
    let mut outcome = None;
    let mut commit: Option<Pin<Box<dyn Future<Output = Stored> + Send>>> = None;
    loop {
        tokio::select! {
            biased;
            stop = registered.stopper.stopped() => {
                // Whatever it was about to do, the agent does no more.
                running = None;
                match stop {
                    Stop::Lost => break,
                    Stop::HandBack | Stop::Attempt(_) if outcome.is_some() => {}
                    Stop::HandBack => outcome = Some(Some(handed_back(&inner, &head))),
                    Stop::Attempt(how) => outcome = Some(Some(inner.after_failure(&head, how, inner.clock.now()))),
                }
            }
            result = async { match running.as_mut() { Some(running) => running.await, None => std::future::pending().await } },
                if outcome.is_none() =>
            {
                let result = result.unwrap_or_else(|panic| Err(AgentError::new(panic)));
                outcome = Some(Some(command_of(&inner, &head, &shared, result)));
            }
            stored = async { match commit.as_mut() { Some(commit) => commit.await, None => std::future::pending().await } } => {
                commit = None;
                let Ok((new_head, group, writes)) = stored else { break };
                view = view.take().and_then(|view| view.grown(&group, writes, &new_head));
                // Another instance may have been first, and then this is how the turn comes to know: what is told of that
                // change later says nothing new.
                shared.knows(&new_head);
                head = new_head;
                if !head.leased {
                    end.view = view.take().map(|view| view.into_task(&head));
                    end.head = Some(head);
                    break;
                }
            }
            () = shared.written.notified(), if commit.is_none() && outcome.is_none() => {}
        }
        if commit.is_none() {
            let last = outcome.as_mut().and_then(Option::take);
            let writes = if last.is_some() { shared.take_last_written() } else { shared.take_written() };
            if !writes.is_empty() || last.is_some() {
                commit = Some(Box::pin(store(
                    Arc::clone(&inner),
                    scope.clone(),
                    head.clone(),
                    Arc::clone(&shared),
                    writes,
                    last,
                )));
            }
        }
    }
    shared.end();
    drop(registered);
    // Of a turn that was stopped nobody here knows what became of its task.
    if end.head.as_ref().is_none_or(TaskHead::waits_for_a_worker) {
        inner.due();
    }
    drop(worker);
    end
}

fn shared(
    inner: &Arc<Inner>,
    scope: &Scope,
    head: &TaskHead,
    ledger: ArtifactLedger,
    keeps_updates: bool,
) -> TurnShared {
    let (ids, clock) = (Arc::clone(&inner.ids), Arc::clone(&inner.clock));
    let message_ids = MessageIds(Arc::new(move || ids.message_id(clock.now())));
    let state = TurnState { ledger, turn_message: head.turn_message, ..TurnState::default() };
    let (task_id, context_id) = (head.id.clone(), head.context_id.clone());
    let event_bytes_max = inner.config.event_bytes_max;
    let lease_until = head.due_at.unwrap_or_else(|| inner.lease_until(inner.clock.now()));
    TurnShared::new(TurnParts {
        scope: scope.clone(),
        task_id,
        context_id,
        attempt: head.attempt,
        epoch: head.epoch,
        version: head.version,
        lease_until,
        event_bytes_max,
        checkpoint_bytes_max: inner.config.checkpoint_bytes_max,
        keeps_updates,
        store: Arc::clone(&inner.store),
        clock: Arc::clone(&inner.clock),
        new_message_id: message_ids,
        state,
    })
}

/// What becomes of a turn that the engine must let go of: another process takes it up, unless it must not run twice.
fn handed_back(inner: &Inner, head: &TaskHead) -> Command {
    match inner.attempts_max() {
        1 => Command::Fail { message: inner.say(head, "interrupted by shutdown", inner.clock.now()) },
        _ => Command::HandBack,
    }
}

/// Reads what a turn needs before it can run, again while the store can't: its lease is taken. `None` when the engine goes
/// down first; the task is then handed back with the others.
async fn at_last<T, F: Future<Output = Result<T, StoreError>>>(
    inner: &Inner,
    head: &TaskHead,
    read: impl Fn() -> F,
) -> Option<T> {
    let mut delay = RETRY_DELAY_MIN;
    loop {
        let error = match read().await {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        tracing::error!(
            task_id = head.id.as_str(),
            error = &error as &dyn std::error::Error,
            "cannot read a task that is to run"
        );
        tokio::select! {
            biased;
            () = inner.closing.cancelled() => return None,
            () = inner.clock.sleep(delay) => {}
        }
        delay = (delay * 2).min(RETRY_DELAY_MAX);
    }
}

/// What is known of the task's artifacts when the turn begins, and whether the turn goes on after an authorization for
/// which it had asked on this very message.
async fn past(
    inner: &Inner,
    head: &TaskHead,
    message_sequence: Option<u64>,
) -> Result<(ArtifactLedger, bool), StoreError> {
    let (mut ledger, mut resumed) = (ArtifactLedger::default(), false);
    // A task's first event is its creation, and the second mostly its start: then there is nothing to read.
    let mut after = if head.last_sequence > 2 { 1 } else { 2 };
    let asked = EventKind::Status { state: TaskState::AuthRequired, rests: true };
    while after < head.last_sequence {
        let events = inner.store.events_after(&head.id, after, 256).await?;
        let Some(last) = events.last() else { break };
        after = last.sequence;
        for event in &events {
            resumed |= event.kind == asked && message_sequence.is_some_and(|stored| event.sequence >= stored);
            let Some(update) = artifact_update(event.kind, event.sequence, &event.payload)? else { continue };
            let known = update.artifact.and_then(|artifact| ArtifactId::new(artifact.artifact_id).ok());
            let known =
                known.ok_or_else(|| StoreError::corrupt(format!("event {} names no artifact", event.sequence)))?;
            ledger
                .apply(&known, update.append, update.last_chunk)
                .map_err(|error| StoreError::corrupt(error.to_string()))?;
        }
    }
    Ok((ledger, resumed))
}

/// The command that an agent's end of a turn amounts to.
fn command_of(inner: &Inner, head: &TaskHead, shared: &TurnShared, result: Result<Outcome, AgentError>) -> Command {
    let canceled = shared.cancel.is_cancelled();
    if let Err(error) = &result
        && error.is_transient()
        && !canceled
    {
        let (task_id, attempt) = (shared.task_id.as_str(), shared.attempt);
        tracing::warn!(
            task_id,
            attempt,
            error = error as &dyn std::error::Error,
            "the agent failed, and may be tried again"
        );
        let how = AttemptOutcome::Failed { reason: error.reason().to_owned() };
        return inner.after_failure(head, how, inner.clock.now());
    }
    let command = result.map_err(|error| Box::new(error) as Box<dyn std::error::Error>).and_then(|outcome| {
        let message = |parts: Option<Vec<wire::Part>>| parts.map(|parts| shared.message(parts)).transpose();
        Ok(match outcome {
            Outcome::Complete(parts) => Command::Complete { message: message(parts)? },
            Outcome::Fail(parts) => Command::Fail { message: message(parts)? },
            Outcome::Reject(parts) => Command::Reject { message: message(parts)? },
            Outcome::Canceled(parts) if canceled => Command::FinishCancel { message: message(parts)? },
            Outcome::Canceled(_) => return Err("the agent says that it was canceled, but nobody asked for that".into()),
            Outcome::RequireInput(parts) => Command::RequireInput { message: shared.message(parts)? },
            Outcome::RequireAuth { parts, resume_after } => {
                Command::RequireAuth { message: shared.message(parts)?, resume_after }
            }
        })
    });
    command.unwrap_or_else(|error| {
        if canceled {
            return Command::FinishCancel { message: None };
        }
        let task_id = shared.task_id.as_str();
        tracing::warn!(task_id, attempt = shared.attempt, error = error.as_ref(), "the agent failed");
        Command::Fail { message: shared.message(vec![text_part("the agent failed")]).ok() }
    })
}

/// Commits what the agent wrote, and its outcome if there is one, until it is stored or the lease turns out to be over.
async fn store(
    inner: Arc<Inner>,
    scope: Scope,
    mut head: TaskHead,
    shared: Arc<TurnShared>,
    writes: VecDeque<Write>,
    last: Option<Command>,
) -> Stored {
    let mut delay = RETRY_DELAY_MIN;
    // Whether a commit was sent of which nobody knows what became of it: it may still be made.
    let mut unsure = false;
    // When it was decided: decided again on the same head it must be the same to the last bit, or one that was made in the
    // meantime would not be known again.
    let mut decided = inner.clock.now();
    loop {
        // A renewal changes no version, so the head does not know of it.
        if head.leased && head.epoch == shared.epoch {
            head.due_at = head.due_at.max(Some(shared.lease_until()));
        }
        if head.lease_is_over(inner.clock.now()) {
            decided = inner.clock.now();
        }
        let Ok((group, next)) = group(&inner, &head, &shared, &writes, last.as_ref(), decided) else {
            return Err(Lost);
        };
        let expect = match group.decides {
            true => Expect::LeaseAndVersion { epoch: shared.epoch, version: head.version },
            false => Expect::Lease { epoch: shared.epoch, last_sequence: head.last_sequence },
        };
        let commit = Commit {
            task_id: head.id.clone(),
            expect,
            head: group.decides.then(|| next.clone()),
            events: group.events.clone(),
            messages: group.messages.clone(),
            checkpoint: group.checkpoint.clone(),
            dedup: None,
            pushes: Vec::new(),
            now: inner.clock.now(),
        };
        match inner.commit(commit).await {
            Ok(committed) => {
                let next = TaskHead { last_sequence: committed.last_sequence, ..next };
                return Ok((next, group, writes));
            }
            Err(StoreError::Conflict { .. }) if unsure && was_made(&inner, &head, &group, &mut delay).await => {
                return after_all(&inner, &scope, &head, shared.epoch, group, writes, &mut delay).await;
            }
            Err(StoreError::Conflict { .. }) => match inner.store.load(&scope, &head.id).await {
                Ok(Some(newer)) => (head, decided) = (newer, inner.clock.now()),
                Ok(None) => return Err(Lost),
                Err(error) => again(&inner, &head, &error, &mut delay).await,
            },
            Err(StoreError::LeaseLost { .. } | StoreError::NotFound { .. }) => {
                inner.refused_writes.fetch_add(1, Ordering::Relaxed);
                tracing::info!(
                    task_id = head.id.as_str(),
                    epoch = shared.epoch,
                    "a write without its lease was refused"
                );
                return Err(Lost);
            }
            Err(error @ (StoreError::Unavailable { .. } | StoreError::Duplicate { .. })) => {
                unsure = true;
                again(&inner, &head, &error, &mut delay).await;
                if was_made(&inner, &head, &group, &mut delay).await {
                    return after_all(&inner, &scope, &head, shared.epoch, group, writes, &mut delay).await;
                }
            }
            Err(error @ (StoreError::LogFull { .. } | StoreError::Corrupt { .. })) => {
                tracing::error!(
                    task_id = head.id.as_str(),
                    error = &error as &dyn std::error::Error,
                    "cannot store what the agent wrote"
                );
                return Err(Lost);
            }
        }
    }
}

/// Whether a commit was made although the store failed: its events then stand where they were to be put. To repeat it
/// would double them.
async fn was_made(inner: &Inner, head: &TaskHead, group: &Group, delay: &mut Duration) -> bool {
    if group.events.is_empty() {
        return false;
    }
    loop {
        match inner.store.events_after(&head.id, head.last_sequence, group.events.len()).await {
            Ok(stored) => {
                let stored = stored.iter().map(|event| (event.kind, &event.payload));
                return stored.eq(group.events.iter().map(|event| (event.kind, &event.payload)));
            }
            Err(error) => again(inner, head, &error, delay).await,
        }
    }
}

/// Goes on behind a commit that was made although the store failed.
async fn after_all(
    inner: &Inner,
    scope: &Scope,
    head: &TaskHead,
    epoch: u64,
    group: Group,
    writes: VecDeque<Write>,
    delay: &mut Duration,
) -> Stored {
    let told = head.last_sequence + group.events.len() as u64;
    inner.told(&head.id, told, &group.events);
    loop {
        match inner.store.load(scope, &head.id).await {
            Ok(Some(newer)) if newer.epoch == epoch => return Ok((newer, group, writes)),
            Ok(_) => return Err(Lost),
            Err(error) => again(inner, head, &error, delay).await,
        }
    }
}

/// A store that can't work now is asked again, ever more seldom: what the agent wrote must not be lost.
async fn again(inner: &Inner, head: &TaskHead, error: &StoreError, delay: &mut Duration) {
    tracing::warn!(
        task_id = head.id.as_str(),
        error = error as &dyn std::error::Error,
        "cannot store what the agent wrote, trying again"
    );
    inner.clock.sleep(*delay).await;
    *delay = (*delay * 2).min(RETRY_DELAY_MAX);
}

/// Decides all writes on one head.
fn group(
    inner: &Inner,
    head: &TaskHead,
    shared: &TurnShared,
    writes: &VecDeque<Write>,
    last: Option<&Command>,
    decided: Timestamp,
) -> Result<(Group, TaskHead), Lost> {
    let writer = Writer::Agent { epoch: shared.epoch };
    let now = status_time(head, decided);
    let mut group = Group::default();
    let mut next = head.clone();
    let step = |group: &mut Group, next: &mut TaskHead, command: Command| {
        let transition = decide(next, command, writer, now).map_err(|rejection| {
            inner.refused_writes.fetch_add(1, Ordering::Relaxed);
            tracing::info!(task_id = head.id.as_str(), epoch = shared.epoch, %rejection, "a write of the agent was refused");
            Lost
        })?;
        group.decides = true;
        let events_before = group.events.len();
        group.events.extend(status_events(&transition, &head.id, &head.context_id));
        group.messages.extend(new_messages(transition.history, events_before));
        *next = transition.head;
        Ok(())
    };
    for write in writes {
        match write {
            Write::Artifact(event, _) => group.events.push(event.clone()),
            Write::Checkpoint(data) => group.checkpoint = Some(data.clone()),
            Write::Progress(progress) => {
                let Progress { message, metadata } = Progress::clone(progress);
                step(&mut group, &mut next, Command::Progress { message, metadata })?;
            }
        }
    }
    if let Some(last) = last {
        let consumed = shared.state().consumed.clone();
        next.waiting.retain(|ordinal| !consumed.contains(ordinal));
        step(&mut group, &mut next, last.clone())?;
    }
    Ok((group, next))
}
