//! What others did: another instance's commits are heard of, and looked for, because what is heard may be lost.

use std::sync::Arc;

use longhaul_protocol::TaskId;
use longhaul_store::{Heard, StoreError, TaskMark};

use crate::engine::Inner;
use crate::running::Stop;
use crate::turn::TurnShared;

/// How many tasks are asked for in one question.
const MARKS_MAX: usize = 500;

/// Listens to other instances until the engine goes down.
pub(crate) async fn listen(inner: Arc<Inner>) {
    loop {
        let heard = tokio::select! {
            biased;
            () = inner.closing.cancelled() => return,
            heard = inner.store.heard() => heard,
        };
        match heard {
            Heard::Tasks { marks, due } => {
                for mark in &marks {
                    inner.told_of(mark).await;
                }
                if due {
                    inner.due();
                }
            }
            Heard::Anything => {
                inner.look().await;
                inner.due();
            }
        }
    }
}

/// Looks for wake-ups that were missed: one question for all tasks that somebody waits for.
pub(crate) async fn sweep(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            biased;
            () = inner.closing.cancelled() => return,
            () = inner.clock.sleep(inner.config.sweep_interval) => {}
        }
        inner.look().await;
    }
}

impl Inner {
    /// Asks how far the tasks have come that somebody here waits for, or works on while others may change them.
    async fn look(&self) {
        let mut task_ids = self.hub.waited_for();
        // The turns as they are before the store is asked: the task of one that comes later may have been made meanwhile.
        let turns = if self.store.is_shared() { self.running.turns_now() } else { Vec::new() };
        if !turns.is_empty() {
            task_ids.extend(turns.iter().map(|turn| turn.task_id.clone()));
            task_ids.sort_unstable();
            task_ids.dedup();
        }
        for task_ids in task_ids.chunks(MARKS_MAX) {
            match self.store.marks(task_ids).await {
                Ok(marks) => {
                    for mark in &marks {
                        self.told_of(mark).await;
                    }
                    self.stop_removed(&turns, task_ids, &marks);
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "cannot look for missed wake-ups");
                }
            }
        }
    }

    /// A turn whose task is gone has nothing to write to.
    fn stop_removed(&self, turns: &[Arc<TurnShared>], asked: &[TaskId], marks: &[TaskMark]) {
        if marks.len() == asked.len() {
            return;
        }
        for turn in turns {
            if asked.contains(&turn.task_id) && marks.iter().all(|mark| mark.task_id != turn.task_id) {
                self.running.stop(&turn.task_id, turn.epoch, Stop::Lost);
            }
        }
    }

    /// Rings for a task, and lets its turn know if it runs here and somebody else changed the task.
    async fn told_of(&self, mark: &TaskMark) {
        self.hub.ring(&mark.task_id, mark.last_sequence);
        if !self.store.is_shared() {
            return;
        }
        let Some(turn) = self.running.turn(&mark.task_id).filter(|turn| turn.version() < mark.version) else { return };
        if let Err(error) = self.tell_turn(&turn).await {
            let task_id = turn.task_id.as_str();
            tracing::warn!(task_id, error = &error as &dyn std::error::Error, "cannot read what a turn is to be told");
        }
    }

    /// Tells a turn what its task says: that it is canceled, that messages wait, or that the turn is another's now.
    async fn tell_turn(&self, turn: &TurnShared) -> Result<(), StoreError> {
        let head = self.store.load(&turn.scope, &turn.task_id).await?;
        let Some(head) = head.filter(|head| head.leased && head.epoch == turn.epoch) else {
            self.running.stop(&turn.task_id, turn.epoch, Stop::Lost);
            return Ok(());
        };
        turn.knows(&head);
        Ok(())
    }
}
