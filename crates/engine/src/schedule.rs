//! Workers: tasks that are due are begun as soon as a worker is free.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use longhaul_lifecycle::{AttemptOutcome, Command, Joins, TaskHead, Transition, Writer, decide};
use longhaul_protocol::{TaskState, Timestamp};
use longhaul_store::{Claim, Commit, Expect, Rotation, StoreError, StoredMessage};

use crate::clock::{CLOCKS_DIFFER, until};
use crate::drive::{TurnStart, drive};
use crate::engine::{Inner, Worker, new_messages, status_events, status_time};

/// How many due tasks are read at once.
const CLAIMS_MAX: usize = 64;
/// How long to wait before asking a store again that can't answer.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// Begins due tasks until the engine goes down.
pub(crate) async fn schedule(inner: Arc<Inner>) {
    let mut rotation = Rotation::default();
    while !inner.closing.is_cancelled() {
        let wait = match run_due(&inner, &mut rotation).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot read which tasks are due");
                Some(STORE_RETRY)
            }
        };
        let timer = async {
            match wait {
                Some(wait) => inner.clock.sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = inner.closing.cancelled() => {}
            () = inner.scheduler.notified() => {}
            () = timer => {}
        }
    }
}

/// Begins what is due and answers how long it is until something else will be; `None`: until somebody rings.
async fn run_due(inner: &Arc<Inner>, rotation: &mut Rotation) -> Result<Option<Duration>, StoreError> {
    loop {
        let free = inner.free_workers().min(CLAIMS_MAX);
        if free == 0 {
            inner.line.occupied();
            // A worker may have become free before the flag was up, and then nobody rings.
            if inner.free_workers() == 0 {
                return Ok(None);
            }
            continue;
        }
        inner.line.asked();
        let now = inner.clock.now();
        let due = inner.store.due(now, free, std::mem::take(rotation)).await?;
        *rotation = due.rotation;
        if due.claims.is_empty() {
            inner.line.found_empty();
            let next = inner.store.next_due().await?.map_or(Duration::MAX, |next| until(now, next));
            // What should be due by now and is not will be by the store's clock.
            let next = if next.is_zero() { CLOCKS_DIFFER } else { next };
            return Ok(Some(next.min(patience(inner))));
        }
        // All at once: their starts become one write, and one that can't be begun does not keep the others from it.
        let begun = due.claims.into_iter().map_while(|claim| {
            let worker = inner.free_worker()?;
            Some(begin_or_say(inner, claim, worker.silent()))
        });
        let moved = join_all(begun).await.into_iter().any(|moved| moved);
        if !moved && inner.free_workers() > 0 {
            return Ok(Some(STORE_RETRY));
        }
    }
}

/// How long to wait for a ring before the store is asked again: a lease that is taken from now on rings nobody when it runs
/// out, nor can others be relied on to.
fn patience(inner: &Inner) -> Duration {
    match inner.store.is_shared() {
        true => inner.config.sweep_interval.min(inner.config.lease_duration),
        false => inner.config.lease_duration,
    }
}

/// Takes one due task. Answers whether it is another's, or begun, now.
async fn begin_or_say(inner: &Arc<Inner>, claim: Claim, worker: Worker) -> bool {
    let task_id = claim.head.id.clone();
    match begin(inner, claim, worker).await {
        Ok(begun) => matches!(begun, Begun::Moved),
        Err(error) => {
            tracing::error!(
                task_id = task_id.as_str(),
                error = &error as &dyn std::error::Error,
                "cannot begin a task that is due"
            );
            false
        }
    }
}

/// What became of a task that was due.
enum Begun {
    /// It runs, or ended, or somebody else took it.
    Moved,
    /// It is due as before.
    Stuck,
}

/// Takes one due task: resumes, cancels, gives up or starts it.
async fn begin(inner: &Arc<Inner>, claim: Claim, worker: Worker) -> Result<Begun, StoreError> {
    let Claim { scope, head } = claim;
    let now = status_time(&head, inner.clock.now());
    let Some((transition, events)) = decide_claim(inner, &head, now) else { return Ok(Begun::Stuck) };
    // Read before the lease is taken: once it is, the turn must run.
    let messages = inner.store.messages(&head.id, &[head.turn_message]).await?;
    let Some(StoredMessage { message, request, sequence, .. }) = messages.into_iter().next() else {
        return Err(StoreError::corrupt(format!("task {} has no message {}", head.id, head.turn_message)));
    };
    let begins = inner.running.begins(&head.id);
    let commit = Commit {
        task_id: head.id.clone(),
        expect: Expect::Unheld(head.version),
        head: Some(transition.head.clone()),
        events,
        messages: new_messages(transition.history, 0),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now,
    };
    let committed = match inner.commit(commit).await {
        Ok(committed) => committed,
        // Somebody else took it, or changed it: whoever did saw to it.
        Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => return Ok(Begun::Moved),
        Err(error) => {
            let head = transition.head;
            let start = head.leased.then(|| TurnStart {
                scope,
                head,
                message,
                request,
                view: None,
                worker: worker.used(),
                message_sequence: Some(sequence),
                begins,
            });
            inner.settle(&error, start);
            return Err(error);
        }
    };
    let head = TaskHead { last_sequence: committed.last_sequence, ..transition.head };
    if head.leased {
        let worker = worker.used();
        let start =
            TurnStart { scope, head, message, request, view: None, worker, message_sequence: Some(sequence), begins };
        inner.tracker.spawn(drive(Arc::clone(inner), start));
    }
    Ok(Begun::Moved)
}

fn decide_claim(inner: &Inner, head: &TaskHead, now: Timestamp) -> Option<(Transition, Vec<longhaul_store::NewEvent>)> {
    let mut commands = Vec::new();
    if head.state == TaskState::AuthRequired {
        commands.push(Command::Resume);
    }
    commands.push(take(inner, head, now));
    let decided = decide_all(head, commands, Writer::Engine, now);
    if let Err(rejection) = &decided {
        tracing::error!(task_id = head.id.as_str(), %rejection, "a task is due that cannot be started");
    }
    decided.ok()
}

/// What a worker does with a task that it may take.
fn take(inner: &Inner, head: &TaskHead, now: Timestamp) -> Command {
    if head.cancel_requested {
        return Command::FinishCancel { message: None };
    }
    let start = inner.start_command(now);
    if !head.lease_is_over(now) {
        return start;
    }
    match inner.after_failure(head, AttemptOutcome::LeaseExpired, now) {
        // The next attempt comes at once: the start takes the lease over.
        Command::Retry { at, .. } if at <= now => start,
        later => later,
    }
}

/// Decides one command after the other, as one transition.
pub(crate) fn decide_all(
    head: &TaskHead,
    commands: Vec<Command>,
    writer: Writer,
    now: Timestamp,
) -> Result<(Transition, Vec<longhaul_store::NewEvent>), longhaul_lifecycle::Rejection> {
    let mut all: Option<Transition> = None;
    let mut events = Vec::new();
    for command in commands {
        let next = decide(all.as_ref().map_or(head, |all| &all.head), command, writer, now)?;
        events.extend(status_events(&next, &head.id, &head.context_id));
        all = Some(match all {
            None => next,
            Some(before) => after(before, next),
        });
    }
    let all = all.unwrap_or_else(|| Transition {
        head: head.clone(),
        updates: Vec::new(),
        history: Vec::new(),
        lease: longhaul_lifecycle::Lease::Keep,
        tell_agent: false,
    });
    Ok((all, events))
}

/// Two transitions, one after the other, as one.
fn after(before: Transition, next: Transition) -> Transition {
    let told = before.updates.len();
    let joins = |joins: Joins| Joins { updates: joins.updates + told, ..joins };
    Transition {
        head: next.head,
        updates: before.updates.into_iter().chain(next.updates).collect(),
        history: before.history.into_iter().chain(next.history.into_iter().map(joins)).collect(),
        lease: next.lease,
        tell_agent: before.tell_agent || next.tell_agent,
    }
}
