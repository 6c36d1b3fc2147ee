//! CancelTask (A2A §3.1.5), and the going on of a task that waits for an authorization.

use std::sync::Arc;

use longhaul_lifecycle::{Command, Rejection, Writer};
use longhaul_protocol::{TaskId, wire};
use longhaul_store::{Commit, Expect, HistoryLimit, Scope, StoreError};

use crate::clock::{CLOCKS_DIFFER, within};
use crate::engine::{Inner, contended, known_form, new_messages, status_time};
use crate::running::Stop;
use crate::schedule::decide_all;
use crate::{Engine, EngineError};

/// What became of one command.
enum Done {
    /// It is stored; whether the agent has to be told, and its turn ended.
    Stored {
        tell_agent: bool,
        /// The epoch of the turn that is meant.
        epoch: u64,
    },
    /// The task had ended before.
    Ended,
}

impl Engine {
    /// Cancels a task (A2A §3.1.5). A running turn is told, and has `cancel_grace` to end by itself; the answer is the
    /// task as it then is: canceled, or as the agent ended it in time.
    ///
    /// # Errors
    ///
    /// [`EngineError::TaskNotFound`], [`EngineError::TaskNotCancelable`], [`EngineError::Unavailable`].
    ///
    /// # Cancel safety
    ///
    /// The wish is stored before the agent is told, and the cancel is brought to its end without its caller.
    pub async fn cancel_task(&self, scope: &Scope, task_id: &str) -> Result<wire::Task, EngineError> {
        let task_id = known_form(task_id)?;
        let (inner, scope) = (Arc::clone(&self.inner), scope.clone());
        // On its own, so that a caller who leaves does not leave a turn behind that was told to stop and is waited for.
        let canceling = self.inner.tracker.spawn(async move { inner.cancel(&scope, &task_id).await });
        match canceling.await {
            Ok(result) => result,
            Err(error) => Err(EngineError::Internal { action: "cancel the task", source: Box::new(error) }),
        }
    }

    /// Lets a task go on that waits for an authorization, which came another way than by a message (A2A §7.6).
    ///
    /// # Errors
    ///
    /// [`EngineError::TaskNotFound`]; [`EngineError::UnsupportedOperation`] for a task that does not wait for one;
    /// [`EngineError::Unavailable`].
    pub async fn resume_task(&self, scope: &Scope, task_id: &str) -> Result<(), EngineError> {
        let task_id = known_form(task_id)?;
        match self.inner.command(scope, &task_id, Command::Resume, Writer::Engine).await? {
            Done::Ended => Err(EngineError::UnsupportedOperation(format!("task {task_id} has ended"))),
            Done::Stored { .. } => {
                self.inner.due();
                Ok(())
            }
        }
    }
}

impl Inner {
    async fn cancel(self: &Arc<Self>, scope: &Scope, task_id: &TaskId) -> Result<wire::Task, EngineError> {
        let subscription = self.hub.subscribe(task_id);
        match self.command(scope, task_id, Command::Cancel, Writer::Caller).await? {
            Done::Ended => return Err(EngineError::TaskNotCancelable(task_id.clone())),
            // A turn may be left whose lease ran out.
            Done::Stored { tell_agent: false, epoch } => self.running.stop(task_id, epoch, Stop::Lost),
            Done::Stored { tell_agent: true, epoch } => {
                self.running.cancel(task_id);
                let rests = self.wait_until_it_rests(scope, task_id, &subscription);
                let in_time = within(&*self.clock, self.config.cancel_grace, rests).await;
                let ended = in_time.is_some() && self.load(scope, task_id).await?.state.is_terminal();
                if !ended {
                    self.command(scope, task_id, Command::FinishCancel { message: None }, Writer::Engine).await?;
                    self.running.stop(task_id, epoch, Stop::Lost);
                }
            }
        }
        Ok(self.snapshot(scope, task_id, None, HistoryLimit::All).await?.task)
    }

    /// Decides one command and commits it, again when another writer was first.
    async fn command(
        self: &Arc<Self>,
        scope: &Scope,
        task_id: &TaskId,
        command: Command,
        writer: Writer,
    ) -> Result<Done, EngineError> {
        let mut refused = None;
        for _ in 0..self.config.conflicts_max {
            let head = self.load(scope, task_id).await?;
            let now = status_time(&head, self.clock.now());
            let (transition, events) = match decide_all(&head, vec![command.clone()], writer, now) {
                Ok(decided) => decided,
                Err(Rejection::Ended(_)) => return Ok(Done::Ended),
                Err(rejection) => {
                    return Err(EngineError::UnsupportedOperation(format!("task {task_id}: {rejection}")));
                }
            };
            let tell_agent = transition.tell_agent;
            if transition.is_empty(&head) {
                return Ok(Done::Stored { tell_agent, epoch: head.epoch });
            }
            // Ended because its worker was not heard of: unless it is heard of meanwhile.
            let expect = match head.lease_is_over(now) {
                true => Expect::Unheld(head.version),
                false => Expect::Version(head.version),
            };
            let commit = Commit {
                task_id: task_id.clone(),
                expect,
                head: Some(transition.head),
                events,
                messages: new_messages(transition.history, 0),
                checkpoint: None,
                dedup: None,
                pushes: Vec::new(),
                now,
            };
            match self.commit(commit).await {
                Ok(_) => return Ok(Done::Stored { tell_agent, epoch: head.epoch }),
                // Nothing has changed, so it is the clocks that differ: the lease is over by ours, and not yet by the store's.
                Err(StoreError::Conflict { .. }) if refused == Some((head.version, head.due_at)) => {
                    self.clock.sleep(CLOCKS_DIFFER).await;
                }
                Err(StoreError::Conflict { .. }) => refused = Some((head.version, head.due_at)),
                Err(error) => return Err(EngineError::store("change the task", error)),
            }
        }
        Err(contended(task_id))
    }
}
