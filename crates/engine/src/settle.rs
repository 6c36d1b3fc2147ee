//! A start of which the store did not say whether it is stored.

use std::sync::Arc;
use std::time::Duration;

use longhaul_lifecycle::TaskHead;
use longhaul_store::StoreError;

use crate::drive::{TurnStart, drive};
use crate::engine::Inner;

/// How long to wait before the store is asked what became of it.
const SETTLE_DELAY: Duration = Duration::from_secs(1);

impl Inner {
    /// Sees to a start whose commit failed. The commit may have been made all the same, and then the task has a lease and
    /// nobody who works for it.
    pub fn settle(self: &Arc<Self>, error: &StoreError, start: Option<TurnStart>) {
        if let (StoreError::Unavailable { .. }, Some(start)) = (error, start) {
            self.tracker.spawn(settle(Arc::clone(self), start));
        }
    }
}

async fn settle(inner: Arc<Inner>, mut start: TurnStart) {
    start.begins.over();
    loop {
        tokio::select! {
            biased;
            // What is leased then is handed back with the others.
            () = inner.closing.cancelled() => return,
            () = inner.clock.sleep(SETTLE_DELAY) => {}
        }
        let missed = inner.running.missed();
        match inner.store.load(&start.scope, &start.head.id).await {
            Ok(Some(head)) if is_ours(&head, &start.head) && !inner.running.runs(&head.id) => {
                // Another start of the same task may have taken the same epoch, and is about to run its turn.
                let Some(begins) = inner.running.begins_alone(&head.id, missed) else { continue };
                start.begins = begins;
                tracing::warn!(
                    task_id = head.id.as_str(),
                    epoch = head.epoch,
                    "a start was stored although the store failed"
                );
                start.head = head;
                drive(inner, start).await;
                return;
            }
            Ok(_) => return,
            Err(error) => {
                let task_id = start.head.id.as_str();
                tracing::warn!(task_id, error = &error as &dyn std::error::Error, "cannot ask what became of a start");
            }
        }
    }
}

/// Whether the lease that the task has is the one that was to be taken: another instance may have taken the same epoch.
fn is_ours(stored: &TaskHead, taken: &TaskHead) -> bool {
    stored.leased && stored.epoch == taken.epoch && stored.worker == taken.worker
}
