//! Carries out what operators ask for.

mod push;

use std::error::Error;
use std::time::Duration;

use longhaul_engine::{Engine, EngineError, Reclaim, Reclaimed};
use longhaul_protocol::TaskState;

use super::protocol::{Answer, Operation, PurgedState, ReclaimedTask, StateName, TASKS_MAX};

/// Carries out an operation on tasks of all tenants and owners.
pub async fn perform(engine: &Engine, operation: Operation) -> Answer {
    match operation {
        Operation::Hello => Answer::Hello { pid: std::process::id() },
        Operation::Resume { task_id } => resume(engine, &task_id).await,
        Operation::Reclaim { older_than_ms, states, dry_run } => {
            let states = match only(states, |state| !state.is_terminal()) {
                Ok(states) => states,
                Err(refused) => return refused,
            };
            let reclaim = Reclaim { older_than: Duration::from_millis(older_than_ms), states, dry_run };
            engine.reclaim(reclaim).await.map_or_else(|error| refused(&error, None), reclaimed)
        }
        Operation::Purge { older_than_ms, states } => match only(states, TaskState::is_terminal) {
            Ok(states) => purge(engine, states, Duration::from_millis(older_than_ms)).await,
            Err(refused) => refused,
        },
        Operation::PushDead { task_id } => push::dead(engine, task_id.as_deref()).await,
        Operation::PushRetry { task_id, config_id } => {
            push::retry(engine, task_id.as_deref(), config_id.as_deref()).await
        }
        Operation::PushBacklog => push::backlog(engine).await,
        Operation::PushRotateKey => push::rotate_key(engine).await,
    }
}

/// The states, or a refusal if one of them has no business there.
fn only(states: Vec<StateName>, may: impl Fn(TaskState) -> bool) -> Result<Vec<TaskState>, Answer> {
    match states.iter().find(|state| !may(state.0)) {
        None => Ok(states.into_iter().map(|StateName(state)| state).collect()),
        Some(state) => {
            let name = state.short();
            let message = match state.0.is_terminal() {
                true => format!("{name} is terminal: such tasks are never given up, but can be purged"),
                false => format!("{name} is not terminal: such tasks are never purged, but can be reclaimed"),
            };
            Err(Answer::Refused { message, hint: Some("leave the state out".to_owned()) })
        }
    }
}

async fn resume(engine: &Engine, task_id: &str) -> Answer {
    match engine.resume_task_of_anyone(task_id).await {
        Ok(()) => Answer::Resumed,
        Err(error) => {
            let hint = match &error {
                EngineError::TaskNotFound(_) => Some("check the id; tasks that were kept for long enough are removed"),
                EngineError::UnsupportedOperation(_) => {
                    Some("only a task in AUTH_REQUIRED can be resumed; one in INPUT_REQUIRED waits for a message")
                }
                _ => None,
            };
            refused(&error, hint)
        }
    }
}

fn reclaimed(all: Vec<Reclaimed>) -> Answer {
    let left_out = all.len().saturating_sub(TASKS_MAX) as u64;
    let row = |Reclaimed { task_id, context_id, state, since, why }: Reclaimed| ReclaimedTask {
        task_id: task_id.as_str().to_owned(),
        context_id: context_id.as_str().to_owned(),
        state: StateName(state),
        since,
        why,
    };
    Answer::Reclaimed { tasks: all.into_iter().take(TASKS_MAX).map(row).collect(), left_out }
}

async fn purge(engine: &Engine, mut states: Vec<TaskState>, older_than: Duration) -> Answer {
    if states.is_empty() {
        states = TaskState::ALL.into_iter().filter(|state| state.is_terminal()).collect();
    }
    let mut purged = Vec::new();
    for state in states {
        match engine.purge(state, older_than).await {
            Ok(removed) => purged.push(PurgedState { state: StateName(state), removed }),
            Err(error) => {
                return refused(&error, Some("what was removed until then is gone; run it again for the rest"));
            }
        }
    }
    Answer::Purged { states: purged }
}

/// An error with its causes: it goes to the operator, who may know them.
pub(super) fn refused(error: &EngineError, hint: Option<&str>) -> Answer {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        message.push_str(&format!(": {next}"));
        cause = next.source();
    }
    Answer::Refused { message, hint: hint.map(str::to_owned) }
}
