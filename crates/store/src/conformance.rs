//! The one suite that every store has to pass, on the real thing: see [`conformance_tests`](crate::conformance_tests).
//!
//! A store crate's test names how a fresh store is opened, and each behaviour becomes a test of its own:
//!
//! ```ignore
//! use longhaul_store::conformance::TestStore;
//!
//! async fn open() -> TestStore {
//!     TestStore::new(Arc::new(MemoryStore::new()))
//! }
//!
//! longhaul_store::conformance_tests!(open);
//! ```
//!
//! Behaviours speak through the trait alone and make their commits with `longhaul_lifecycle`, as the engine does.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a suite of tests: what breaks a promise has to fail, loudly and there"
)]

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::Store;

mod commits;
mod compaction;
mod concurrent;
mod dedup;
mod deliveries;
mod leases;
mod life;
mod lists;
mod model;
mod push;
mod random;
mod sweeps;
mod turns;
mod views;

pub use commits::*;
pub use compaction::*;
pub use concurrent::*;
pub use dedup::*;
pub use deliveries::*;
pub use leases::*;
pub use lists::*;
pub use push::*;
pub use random::*;
pub use sweeps::*;
pub use turns::*;
pub use views::*;

type Opening = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send>>;

/// A store on trial, with what it stands on.
pub struct TestStore {
    store: Arc<dyn Store>,
    reopen: Option<Box<dyn Fn() -> Opening + Send + Sync>>,
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl TestStore {
    /// A fresh store, which holds nothing.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, reopen: None, kept: Vec::new() }
    }

    /// Says how the same store is opened again after it was closed; for stores that outlive their process.
    #[must_use]
    pub fn reopened_by<F, O>(mut self, open: F) -> Self
    where
        F: Fn() -> O + Send + Sync + 'static,
        O: Future<Output = Arc<dyn Store>> + Send + 'static,
    {
        self.reopen = Some(Box::new(move || Box::pin(open())));
        self
    }

    /// Keeps something alive as long as the store, such as its folder.
    #[must_use]
    pub fn keeping(mut self, kept: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(kept));
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Closes the store and opens it again; `None` when it can't be.
    async fn reopened(&self) -> Option<Arc<dyn Store>> {
        let open = self.reopen.as_ref()?;
        self.store.close().await.expect("an open store closes");
        Some(open().await)
    }
}

impl fmt::Debug for TestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestStore").field("store", &self.store).field("kept", &self.kept.len()).finish_non_exhaustive()
    }
}

/// Writes the list of behaviours twice: as one function that runs them all, and as a macro that makes each a test.
macro_rules! behaviours {
    ($d:tt $($name:ident)*) => {
        /// Runs every behaviour, each on a store of its own, and panics at the first that is broken.
        pub async fn run_all(open: impl AsyncFn() -> TestStore) {
            $($name(&open).await;)*
        }

        /// Makes a `#[tokio::test]` of every behaviour, on stores from an `async fn() -> TestStore`.
        ///
        /// The calling crate needs `tokio` with a multi-threaded runtime.
        #[macro_export]
        macro_rules! conformance_tests {
            ($d open:expr) => {
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $name() {
                        $crate::conformance::$name(&$d open).await;
                    }
                )*
            };
        }
    };
}

behaviours! { $
    a_new_task_begins_its_log
    a_task_that_exists_is_not_made_again
    a_commit_to_an_unknown_task_is_refused
    a_commit_on_an_older_version_is_a_conflict
    sequences_have_no_gaps_over_any_commits
    the_sequence_in_a_head_is_not_taken_over
    a_failed_commit_leaves_nothing
    artifact_commits_move_only_the_sequence
    chunks_that_are_committed_twice_are_there_once
    events_are_read_in_pages
    messages_keep_order_sequence_and_request
    marks_leave_out_unknown_tasks
    a_checkpoint_is_kept_until_the_next
    attempts_that_came_to_nothing_are_kept
    a_closed_store_refuses
    a_store_opened_again_holds_what_was_committed
    of_writers_on_one_version_one_wins
    writers_that_decide_again_all_get_through
    chunks_of_many_writers_have_no_gap
    tasks_made_at_once_are_all_there
    a_writer_of_another_epoch_is_refused
    a_writer_without_a_lease_is_refused
    of_two_claims_the_second_is_a_conflict
    a_writer_whose_lease_ran_out_is_refused
    renewed_leases_go_on
    leases_that_are_over_are_not_renewed
    a_renewed_lease_is_not_taken_over
    expired_leases_are_due_and_over
    the_worker_of_a_lease_is_kept
    a_turn_that_is_handed_back_is_due_at_once
    only_what_is_due_comes
    of_a_context_the_longest_due_comes_first
    leases_and_waits_that_are_over_come_first
    scopes_are_served_in_turns
    contexts_of_a_scope_are_served_in_turns
    a_rotation_goes_on_where_it_ended
    a_retry_waits_for_its_time
    next_due_is_the_earliest
    the_backlog_is_counted
    stale_tasks_are_found_by_age
    purged_tasks_are_gone
    a_long_log_is_removed
    a_merged_task_shows_what_it_showed
    moments_of_a_merged_task_are_gone
    only_long_logs_of_tasks_that_ended_long_ago_are_merged
    logs_are_merged_once_the_oldest_first
    a_log_without_anything_to_merge_stays_whole
    a_long_log_is_merged
    merged_tasks_are_purged
    messages_of_purged_tasks_are_forgotten
    each_moment_of_a_life_shows_the_task_as_it_stood
    history_is_limited_to_the_latest
    a_moment_that_never_was_shows_nothing
    artifact_versions_are_kept
    scopes_see_only_their_own
    texts_and_ids_of_any_kind_are_kept
    a_long_log_is_kept_whole
    lists_are_newest_first_then_by_id
    filters_of_lists_hold_alone_and_together
    status_timestamp_after_is_inclusive
    walks_see_unchanged_tasks_once
    totals_are_exact_after_many_transitions
    lists_bring_what_is_asked_for
    a_repeated_message_is_recognized
    a_message_is_forgotten_after_its_time
    messages_are_remembered_by_scope
    a_failed_commit_does_not_remember_its_message
    a_config_of_a_send_is_given_all_events
    a_config_that_is_made_later_is_given_what_comes_then
    a_replaced_config_goes_on_where_it_was
    a_message_replaces_a_config_that_waits
    configs_of_a_task_are_limited
    configs_are_read_in_pages_by_id
    configs_are_their_scopes_alone
    configs_are_kept_as_they_are
    a_removed_config_is_given_nothing
    secrets_are_sealed_again
    the_first_key_check_holds
    a_key_check_is_set_at_once
    events_are_due_in_order_one_by_one
    a_retry_keeps_its_place
    a_claim_is_exclusive_until_it_runs_out
    a_late_settlement_counts_if_nobody_was_first
    a_claim_is_settled_once
    a_held_claim_goes_on_to_the_end
    a_commit_during_a_claim_is_not_forgotten
    hosts_are_served_in_turns
    of_a_host_the_longest_due_comes_first
    dead_deliveries_wait_in_line
    open_hosts_are_left_out
    the_next_delivery_is_the_earliest
    a_dead_delivery_is_kept_and_the_next_follows
    a_dead_delivery_is_tried_again
    dead_deliveries_stand_apart
    gone_removes_the_config
    dead_deliveries_are_listed_in_pages
    dead_deliveries_follow_their_config
    a_task_stays_until_its_end_is_delivered
    the_push_backlog_is_counted
    pushes_outlive_the_store
    many_senders_deliver_each_event_in_order
    random_commands_get_the_answers_of_the_memory_store
}
