//! What operators ask for about push notifications.

use longhaul_engine::{Engine, EngineError, Rotated};
use longhaul_protocol::{PushConfigId, TaskId};
use longhaul_store::{DeadDelivery, DeadKey};

use super::refused;
use crate::admin::protocol::{Answer, DEAD_MAX, DeadRow};

/// How many dead deliveries are read in one step.
const STEP: usize = 500;

/// Lists deliveries that were given up, of all tasks or of one.
pub async fn dead(engine: &Engine, task_id: Option<&str>) -> Answer {
    let only = match task_id.map(TaskId::new).transpose() {
        Ok(only) => only,
        // What is no id has none.
        Err(_) => return Answer::PushDead { deliveries: Vec::new(), more: false },
    };
    let (mut rows, mut after) = (Vec::new(), only.as_ref().and_then(before_all));
    loop {
        let step = match engine.dead_deliveries(after.as_ref(), STEP).await {
            Ok(step) => step,
            Err(error) => return refused(&error, None),
        };
        let read = step.len();
        after = step.last().map(key);
        let passed = |found: &DeadDelivery| only.as_ref().is_some_and(|only| found.task_id != *only);
        let ours = step.into_iter().take_while(|found| !passed(found));
        rows.extend(ours.map(row));
        let ended =
            read < STEP || after.as_ref().is_none_or(|last| only.as_ref().is_some_and(|id| last.task_id != *id));
        if ended || rows.len() > DEAD_MAX {
            let more = rows.len() > DEAD_MAX;
            rows.truncate(DEAD_MAX);
            return Answer::PushDead { deliveries: rows, more };
        }
    }
}

/// A key that no delivery has, before all those of the task: a space is the least that an id may be, and sequences begin at 1.
fn before_all(task_id: &TaskId) -> Option<DeadKey> {
    let config_id = PushConfigId::new(" ").ok()?;
    Some(DeadKey { task_id: task_id.clone(), config_id, sequence: 0 })
}

fn key(found: &DeadDelivery) -> DeadKey {
    DeadKey { task_id: found.task_id.clone(), config_id: found.config_id.clone(), sequence: found.sequence }
}

fn row(found: DeadDelivery) -> DeadRow {
    DeadRow {
        tenant: found.scope.tenant.as_str().to_owned(),
        task_id: found.task_id.as_str().to_owned(),
        config_id: found.config_id.as_str().to_owned(),
        sequence: found.sequence,
        url: found.url,
        attempts: found.attempts,
        died_at: found.died_at,
        why: found.error,
    }
}

/// Has deliveries sent again that were given up.
pub async fn retry(engine: &Engine, task_id: Option<&str>, config_id: Option<&str>) -> Answer {
    match engine.retry_dead(task_id, config_id).await {
        Ok(retried) => Answer::PushRetried { retried },
        Err(error) => refused(&error, Some("longhaul push dead lists what was given up")),
    }
}

/// Counts what waits to be delivered.
pub async fn backlog(engine: &Engine) -> Answer {
    match engine.push_backlog().await {
        Ok(backlog) => Answer::PushBacklog { configs: backlog.configs, dead: backlog.dead },
        Err(error) => refused(&error, None),
    }
}

/// Seals the secrets of push configs anew.
pub async fn rotate_key(engine: &Engine) -> Answer {
    match engine.rotate_push_key().await {
        Ok(Rotated { resealed, unreadable: 0 }) => Answer::PushRotated { resealed },
        Ok(Rotated { resealed, unreadable }) => {
            let message = format!(
                "the secrets of {unreadable} push configs were sealed with a key that is not at hand, and are as they were; \
                 those of {resealed} are sealed anew"
            );
            let hint = "list that key behind the new one, start the server again, and run the command again";
            Answer::Refused { message, hint: Some(hint.to_owned()) }
        }
        Err(error) => {
            let hint = match &error {
                EngineError::PushNotSupported => "the server sends no push notifications; its log says why",
                _ => "what was sealed anew stays so; run the command again for the rest",
            };
            refused(&error, Some(hint))
        }
    }
}
