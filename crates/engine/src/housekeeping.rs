//! What nobody waits for: stale tasks fail, logs of tasks that have ended are merged, and the tasks are removed when they
//! were kept for long enough.

use std::sync::Arc;
use std::time::Duration;

use longhaul_lifecycle::{Command, Writer};
use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp};
use longhaul_store::{Claim, Commit, Expect, StoreError};

use crate::clock::earlier;
use crate::engine::{Inner, new_messages, status_time};
use crate::schedule::decide_all;
use crate::{Engine, EngineError};

/// How many tasks are removed in one step, so that writers do not wait for it.
const PURGE_TASKS_MAX: usize = 50;
/// The logs of how many tasks are merged in one step.
const COMPACT_TASKS_MAX: usize = 50;
/// How many bytes are given back to the disk in one step.
const GIVE_BACK_BYTES: u64 = 1024 * 1024;
/// How long others may write between two steps.
const BREATH: Duration = Duration::from_millis(5);
/// How many stale tasks are read at once.
const STALE_MAX: usize = 100;
/// How many a dry run tells of at the most.
const DRY_RUN_MAX: usize = 1_000_000;

/// Which tasks are given up as stale.
#[derive(Clone, Debug)]
pub struct Reclaim {
    /// Only tasks whose status is older than this.
    pub older_than: Duration,
    /// Only tasks in these states; empty: in any state but the terminal ones.
    pub states: Vec<TaskState>,
    /// Only says what would be done.
    pub dry_run: bool,
}

/// A task that was given up as stale, or would be.
#[derive(Clone, Debug, PartialEq)]
pub struct Reclaimed {
    /// The task.
    pub task_id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// The state that it was in.
    pub state: TaskState,
    /// Since when.
    pub since: Timestamp,
    /// Why it is given up.
    pub why: String,
}

impl Engine {
    /// Gives tasks up that nobody works on and that have had no update for long: they have failed, and say why. A task whose
    /// lease is alive, or that has ended, is left alone.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unavailable`] when the store can't be used; what was given up until then stays so.
    pub async fn reclaim(&self, reclaim: Reclaim) -> Result<Vec<Reclaimed>, EngineError> {
        self.inner.reclaim(&reclaim).await.map_err(|error| EngineError::store("give up stale tasks", error))
    }

    /// Removes tasks that ended in this state longer than `older_than` ago, in small steps, and gives their space back.
    /// Answers how many there were.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unavailable`] when the store can't be used; what was removed until then is gone.
    pub async fn purge(&self, state: TaskState, older_than: Duration) -> Result<u64, EngineError> {
        let failed = |error| EngineError::store("remove tasks", error);
        let removed = self.inner.purge(state, older_than).await.map_err(failed)?;
        if removed > 0 {
            self.inner.give_back().await.map_err(failed)?;
        }
        Ok(removed)
    }
}

/// Looks after the store until the engine goes down.
pub(crate) async fn housekeeping(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            biased;
            () = inner.closing.cancelled() => return,
            () = inner.clock.sleep(inner.config.housekeeping_interval) => {}
        }
        tokio::select! {
            biased;
            () = inner.closing.cancelled() => return,
            done = inner.tidy() => if let Err(error) = done {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot look after the store");
            }
        }
    }
}

impl Inner {
    async fn tidy(&self) -> Result<(), StoreError> {
        if let Some(older_than) = self.config.stale_after {
            self.reclaim(&Reclaim { older_than, states: Vec::new(), dry_run: false }).await?;
        }
        let mut removed = 0;
        for (state, kept_for) in self.config.retention.by_state() {
            if let Some(kept_for) = kept_for {
                removed += self.purge(state, kept_for).await?;
            }
        }
        if removed > 0 {
            tracing::info!(tasks = removed, "tasks that were kept for long enough are removed");
            self.give_back().await?;
        }
        // After the removal, so that nothing is merged only to go; and what it frees is left to the tasks that come.
        if let Some(older_than) = self.config.compact_after {
            let merged = self.compact(older_than).await?;
            if merged > 0 {
                tracing::info!(tasks = merged, "logs of tasks that have ended are merged");
            }
        }
        Ok(())
    }

    async fn purge(&self, state: TaskState, older_than: Duration) -> Result<u64, StoreError> {
        let before = earlier(self.clock.now(), older_than);
        self.in_steps(PURGE_TASKS_MAX, || self.store.purge(state, before, PURGE_TASKS_MAX)).await
    }

    async fn compact(&self, older_than: Duration) -> Result<u64, StoreError> {
        let before = earlier(self.clock.now(), older_than);
        self.in_steps(COMPACT_TASKS_MAX, || self.store.compact(before, COMPACT_TASKS_MAX)).await
    }

    /// Does steps until one is not full, and lets others write in between. Answers how many tasks there were.
    async fn in_steps<F>(&self, tasks_max: usize, step: impl Fn() -> F) -> Result<u64, StoreError>
    where
        F: Future<Output = Result<u64, StoreError>>,
    {
        let mut all = 0;
        loop {
            let tasks = step().await?;
            all += tasks;
            if tasks < tasks_max as u64 {
                return Ok(all);
            }
            self.clock.sleep(BREATH).await;
        }
    }

    async fn give_back(&self) -> Result<(), StoreError> {
        while self.store.give_back(GIVE_BACK_BYTES).await? > 0 {
            self.clock.sleep(BREATH).await;
        }
        Ok(())
    }

    async fn reclaim(&self, reclaim: &Reclaim) -> Result<Vec<Reclaimed>, StoreError> {
        let states: Vec<_> = match reclaim.states.is_empty() {
            true => TaskState::ALL.into_iter().filter(|state| !state.is_terminal()).collect(),
            false => reclaim.states.iter().copied().filter(|state| !state.is_terminal()).collect(),
        };
        let now = self.clock.now();
        let before = earlier(now, reclaim.older_than);
        let limit = if reclaim.dry_run { DRY_RUN_MAX } else { STALE_MAX };
        let mut all = Vec::new();
        loop {
            let stale = self.store.stale(&states, before, now, limit).await?;
            let (found, reclaimed_before) = (stale.len(), all.len());
            for claim in stale {
                let reclaimed = reclaimed(&claim, reclaim.older_than);
                if reclaim.dry_run || self.give_up(claim, &reclaimed.why).await? {
                    all.push(reclaimed);
                }
            }
            // A page on which nothing could be given up would come again and again.
            if reclaim.dry_run || found < limit || all.len() == reclaimed_before {
                return Ok(all);
            }
        }
    }

    /// Writes FAILED, unless the task was changed since it was read.
    async fn give_up(&self, claim: Claim, why: &str) -> Result<bool, StoreError> {
        let head = claim.head;
        let now = status_time(&head, self.clock.now());
        let fail = Command::Fail { message: self.say(&head, why, now) };
        let Ok((transition, events)) = decide_all(&head, vec![fail], Writer::Engine, now) else { return Ok(false) };
        let commit = Commit {
            task_id: head.id.clone(),
            expect: Expect::Unheld(head.version),
            head: Some(transition.head),
            events,
            messages: new_messages(transition.history, 0),
            checkpoint: None,
            dedup: None,
            pushes: Vec::new(),
            now,
        };
        match self.commit(commit).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn reclaimed(claim: &Claim, older_than: Duration) -> Reclaimed {
    let head = &claim.head;
    let what = match head.state {
        TaskState::InputRequired => "no input came",
        TaskState::AuthRequired => "no authorization came",
        TaskState::Submitted => "no worker took it",
        TaskState::Working => "no worker was heard of",
        TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected => "it has ended",
    };
    Reclaimed {
        task_id: head.id.clone(),
        context_id: head.context_id.clone(),
        state: head.state,
        since: head.status_timestamp,
        why: format!("given up as stale: {what} for more than {} s", older_than.as_secs()),
    }
}
