//! The outbox of push notifications: the log itself, and for each push config how far it was delivered.
//!
//! A commit that appends events to a task makes the task's push configs due, in the same step; nothing is copied. So a config is
//! given its task's events in order, each at least once, and what is still to be delivered costs a row for each config, however
//! long the log.

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};

use crate::{Scope, StoreError};

/// Where the events of a task are pushed to (A2A §4.3.1), as it is stored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PushConfig {
    /// Identifies it within its task.
    pub id: PushConfigId,
    /// The URL.
    pub url: String,
    /// Host and port of the URL: who is told apart by fair turns, limits and the breaker.
    pub host: String,
    /// The HTTP authentication scheme.
    pub scheme: Option<String>,
    /// Credentials and token, sealed: the store can't read them.
    pub secrets: Option<Bytes>,
    /// The version of the protocol in which it was made, and is delivered.
    pub version: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// One event that is to be delivered to one config, by whoever claimed it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DueDelivery {
    /// Whose task it is.
    pub scope: Scope,
    /// The task.
    pub task_id: TaskId,
    /// The config.
    pub config: PushConfig,
    /// The sequence of the event: the next one behind those that were delivered or given up; or a dead one that is tried again.
    pub sequence: u64,
    /// The sequence of the newest event in the task's log.
    pub last_sequence: u64,
    /// The fencing token of this claim.
    pub epoch: u64,
    /// How often this event was tried before.
    pub attempts: u32,
    /// When it was tried first; `None` before the first attempt.
    pub first_attempt_at: Option<Timestamp>,
    /// How many attempts at the host have failed in a row, of whatever config.
    pub host_failures: u32,
    /// Whether it is a dead delivery that an operator wants to be tried again.
    pub is_dead: bool,
}

/// What became of a delivery that was claimed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Settlement {
    /// The receiver has it.
    Delivered,
    /// It is to be tried again.
    Retry {
        /// When.
        at: Timestamp,
        /// Why it failed, for people.
        error: String,
        /// Whether this was an attempt: one that was not begun, for the sake of its host, is not counted.
        counts: bool,
    },
    /// It was given up. It is kept among the dead ones, and the next one is due.
    Dead {
        /// Why, for people.
        error: String,
    },
    /// The receiver wants no more: the config is removed.
    Gone,
}

/// What comes after a settlement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// The claim goes on with the event of this sequence, until the time that was asked for.
    Held {
        /// The sequence of the next event.
        sequence: u64,
    },
    /// The claim is over.
    Released,
    /// It was over before: nothing was changed.
    Lost,
}

/// A delivery that was given up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeadDelivery {
    /// Whose task it is.
    pub scope: Scope,
    /// The task.
    pub task_id: TaskId,
    /// The config.
    pub config_id: PushConfigId,
    /// The URL of the config as it is now: that is where it goes when it is tried again.
    pub url: String,
    /// The sequence of the event.
    pub sequence: u64,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was given up.
    pub died_at: Timestamp,
    /// Why, for people.
    pub error: String,
}

/// Names a dead delivery; they are listed in this order.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct DeadKey {
    /// The task.
    pub task_id: TaskId,
    /// The config.
    pub config_id: PushConfigId,
    /// The sequence of the event.
    pub sequence: u64,
}

/// How a host has answered lately: what a circuit breaker knows of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostState {
    /// How many attempts have failed since the last one that did not.
    pub failures: u32,
    /// Until when nothing is sent to it; `None`: it is sent to.
    pub open_until: Option<Timestamp>,
}

/// How many deliveries are waiting.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PushBacklog {
    /// Configs that have an event to be delivered, now or later.
    pub configs: u64,
    /// Deliveries that were given up and are kept.
    pub dead: u64,
}

/// Where push configs are kept, and what is to be delivered to them. A part of every [`crate::Store`].
#[async_trait]
pub trait PushStore {
    /// Adds a config to a task, or replaces the one of the same id. A new one is given the events that are appended from now on;
    /// one that is replaced goes on where it was, at once, and so do its dead deliveries that were to be tried again; claims of
    /// what was there before are over. `None` when the scope has no such task; `Some(false)` when it has
    /// `configs_max` others already, and then nothing is changed.
    async fn put_push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        config: PushConfig,
        configs_max: usize,
        now: Timestamp,
    ) -> Result<Option<bool>, StoreError>;

    /// Reads at most `limit` configs of a task, in the order of their ids, behind `after`. `None` when the scope has no such task.
    async fn push_configs(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        after: Option<&PushConfigId>,
        limit: usize,
    ) -> Result<Option<Vec<PushConfig>>, StoreError>;

    /// Reads one config; `None` when there is none, or no such task.
    async fn push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<Option<PushConfig>, StoreError>;

    /// Removes a config, with its dead deliveries. Answers whether the scope has such a task: a config that is gone already is as
    /// good as removed.
    async fn remove_push_config(&self, scope: &Scope, task_id: &TaskId, id: &PushConfigId) -> Result<bool, StoreError>;

    /// Takes deliveries that are due at `now`, at most `limit`, until `until`, which is later: nobody else gets them before.
    /// At most one of each config, besides the dead ones of it that are to be tried again. In fair turns between hosts, beginning behind host `after`; hosts whose breaker is open at `now`, and those in
    /// `busy`, are left out. A claim that ran out is due again.
    async fn claim_deliveries(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
        after: Option<&str>,
        busy: &[String],
    ) -> Result<Vec<DueDelivery>, StoreError>;

    /// Says what became of a delivery, once. A claim that ran out can still be settled until another takes it. A dead delivery
    /// that fails again stays dead, and is never held. `hold`: until when the next event of the config is wanted at once, if there is one.
    async fn settle_delivery(
        &self,
        delivery: &DueDelivery,
        settlement: Settlement,
        hold: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Next, StoreError>;

    /// When the next delivery becomes due, if any will: whatever host it is for.
    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError>;

    /// How a host has answered lately.
    async fn push_host(&self, host: &str) -> Result<HostState, StoreError>;

    /// Takes note of how a host answers. The state of a host that answers well is not kept.
    async fn set_push_host(&self, host: &str, state: HostState) -> Result<(), StoreError>;

    /// Reads at most `limit` dead deliveries of all scopes, behind `after`.
    async fn dead_deliveries(&self, after: Option<&DeadKey>, limit: usize) -> Result<Vec<DeadDelivery>, StoreError>;

    /// Makes dead deliveries due again: those of a task, or of one of its configs, or all. Answers how many there were.
    async fn retry_dead(
        &self,
        task_id: Option<&TaskId>,
        config_id: Option<&PushConfigId>,
        now: Timestamp,
    ) -> Result<u64, StoreError>;

    /// How many deliveries are waiting.
    async fn push_backlog(&self) -> Result<PushBacklog, StoreError>;

    /// Reads a value by which instances make sure that they share a key, and sets it to `value` if there is none. Answers what holds.
    async fn push_key_check(&self, value: &[u8]) -> Result<Bytes, StoreError>;

    /// Replaces the value of [`PushStore::push_key_check`], after a rotation.
    async fn set_push_key_check(&self, value: &[u8]) -> Result<(), StoreError>;

    /// Reads at most `limit` configs of all tasks that have secrets, behind this task and config: for the rotation of a key.
    async fn sealed_configs(
        &self,
        after: Option<(&TaskId, &PushConfigId)>,
        limit: usize,
    ) -> Result<Vec<(TaskId, PushConfigId, Bytes)>, StoreError>;

    /// Replaces the secrets of a config that still has `before`. Answers whether it had.
    async fn reseal_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
        before: &[u8],
        secrets: Bytes,
    ) -> Result<bool, StoreError>;
}
