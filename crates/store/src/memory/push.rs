//! Push configs in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};

use super::MemoryStore;
use crate::{
    DeadDelivery, DeadKey, DueDelivery, HostState, Next, PushBacklog, PushConfig, PushStore, Scope, Settlement,
    StoreError,
};

type Key = (TaskId, PushConfigId);

/// What stands in a host's line, by when it is due: a config, or one of its dead deliveries.
type Place = (Timestamp, TaskId, PushConfigId, Option<u64>);

#[derive(Debug, Default)]
pub(super) struct Pushes {
    configs: BTreeMap<Key, Kept>,
    dead: BTreeMap<DeadKey, Dead>,
    lines: BTreeMap<String, BTreeSet<Place>>,
    hosts: BTreeMap<String, HostState>,
    key_check: Option<Bytes>,
}

#[derive(Debug)]
struct Kept {
    scope: Scope,
    config: PushConfig,
    /// The sequence of the last event that was delivered or given up.
    cursor: u64,
    /// That of the newest event of the task.
    last_sequence: u64,
    attempts: u32,
    first_attempt_at: Option<Timestamp>,
    /// While it is claimed, the end of the claim.
    due_at: Option<Timestamp>,
    epoch: u64,
}

#[derive(Debug)]
struct Dead {
    delivery: DeadDelivery,
    host: String,
    due_at: Option<Timestamp>,
    epoch: u64,
}

impl Pushes {
    /// The configs of a task, in the order of their ids.
    fn of<'a>(&'a self, task_id: &'a TaskId) -> impl Iterator<Item = (&'a Key, &'a Kept)> {
        self.configs.range(first_key(task_id)).take_while(move |((id, _), _)| id == task_id)
    }

    /// Whether an event of the task has yet to be delivered or given up.
    pub(super) fn is_pending(&self, task_id: &TaskId) -> bool {
        self.of(task_id).any(|(_, kept)| kept.cursor < kept.last_sequence)
    }

    /// Whether an event of the task may still be sent.
    pub(super) fn needs_log(&self, task_id: &TaskId) -> bool {
        self.is_pending(task_id) || self.dead.keys().any(|key| key.task_id == *task_id)
    }

    /// A commit has appended to the log of a task.
    pub(super) fn appended(&mut self, task_id: &TaskId, last_sequence: u64, now: Timestamp) {
        let keys: Vec<Key> = self.of(task_id).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.change(&key, |kept| {
                let has_more = kept.last_sequence < last_sequence;
                kept.last_sequence = last_sequence;
                if has_more {
                    kept.due_at.get_or_insert(now);
                }
            });
        }
    }

    /// Whether the task has configs.
    pub(super) fn has_configs(&self, task_id: &TaskId) -> bool {
        self.of(task_id).next().is_some()
    }

    /// A config takes the place of one that goes on where it was, at once. Answers whether there was one.
    fn replace(&mut self, key: &Key, config: &PushConfig, now: Timestamp) -> bool {
        let replaced = self.change(key, |kept| {
            kept.config = config.clone();
            kept.epoch += 1;
            (kept.attempts, kept.first_attempt_at) = (0, None);
            kept.due_at = (kept.cursor < kept.last_sequence).then_some(now);
        });
        for dead in self.dead_of(key) {
            self.change_dead(&dead, |dead| {
                dead.host = config.host.clone();
                dead.delivery.url = config.url.clone();
                dead.epoch += 1;
                dead.due_at = dead.due_at.map(|_| now);
            });
        }
        replaced.is_some()
    }

    /// A commit adds a config, which is given the events behind `cursor`, unless it takes the place of another.
    pub(super) fn add(&mut self, scope: &Scope, task_id: &TaskId, config: PushConfig, cursor: u64, now: Timestamp) {
        let key = (task_id.clone(), config.id.clone());
        if self.replace(&key, &config, now) {
            return;
        }
        let kept = Kept {
            scope: scope.clone(),
            config,
            cursor,
            last_sequence: cursor,
            attempts: 0,
            first_attempt_at: None,
            due_at: None,
            epoch: 0,
        };
        self.configs.insert(key, kept);
    }

    /// A task is gone.
    pub(super) fn forget(&mut self, task_id: &TaskId) {
        let keys: Vec<Key> = self.of(task_id).map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: &Key) {
        self.change(key, |kept| kept.due_at = None);
        self.configs.remove(key);
        for dead in self.dead_of(key) {
            self.change_dead(&dead, |dead| dead.due_at = None);
            self.dead.remove(&dead);
        }
    }

    /// The dead deliveries of a config.
    fn dead_of(&self, (task_id, config_id): &Key) -> Vec<DeadKey> {
        let first = DeadKey { task_id: task_id.clone(), config_id: config_id.clone(), sequence: 0 };
        let behind = self.dead.range(first..).map(|(key, _)| key);
        behind.take_while(|key| (&key.task_id, &key.config_id) == (task_id, config_id)).cloned().collect()
    }

    /// Changes a config, and its place in line.
    fn change<T>(&mut self, key: &Key, change: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        let kept = self.configs.get_mut(key)?;
        let (before, host) = (kept.due_at, kept.config.host.clone());
        let changed = change(kept);
        let (after, host_after) = (kept.due_at, kept.config.host.clone());
        let place = |due_at: Timestamp| (due_at, key.0.clone(), key.1.clone(), None);
        self.leave(&host, before.map(place));
        self.join(&host_after, after.map(place));
        Some(changed)
    }

    fn change_dead<T>(&mut self, key: &DeadKey, change: impl FnOnce(&mut Dead) -> T) -> Option<T> {
        let dead = self.dead.get_mut(key)?;
        let (before, host) = (dead.due_at, dead.host.clone());
        let changed = change(dead);
        let (after, host_after) = (dead.due_at, dead.host.clone());
        let place = |due_at: Timestamp| (due_at, key.task_id.clone(), key.config_id.clone(), Some(key.sequence));
        self.leave(&host, before.map(place));
        self.join(&host_after, after.map(place));
        Some(changed)
    }

    fn leave(&mut self, host: &str, place: Option<Place>) {
        if let (Some(line), Some(place)) = (self.lines.get_mut(host), place) {
            line.remove(&place);
            if line.is_empty() {
                self.lines.remove(host);
            }
        }
    }

    fn join(&mut self, host: &str, place: Option<Place>) {
        if let Some(place) = place {
            self.lines.entry(host.to_owned()).or_default().insert(place);
        }
    }

    /// What is due, in fair turns between the hosts that may be sent to.
    fn due(&self, now: Timestamp, limit: usize, after: Option<&str>, busy: &[String]) -> Vec<Place> {
        let is_open = |host: &str| {
            let state = self.hosts.get(host);
            state.is_some_and(|state| state.open_until.is_some_and(|until| until > now))
        };
        let after = after.unwrap_or_default();
        let behind = self.lines.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let before = self.lines.range::<str, _>((Bound::Unbounded, Bound::Included(after)));
        let hosts = behind.chain(before).filter(|(host, _)| !busy.contains(host) && !is_open(host));
        let mut lines: Vec<_> = hosts.map(|(_, line)| line.iter().take_while(|place| place.0 <= now)).collect();
        let mut due = Vec::new();
        while due.len() < limit && !lines.is_empty() {
            lines.retain_mut(|line| match line.next() {
                Some(place) if due.len() < limit => {
                    due.push(place.clone());
                    true
                }
                Some(_) | None => false,
            });
        }
        due
    }

    fn failures(&self, host: &str) -> u32 {
        self.hosts.get(host).map_or(0, |state| state.failures)
    }

    fn claim(&mut self, place: Place, until: Timestamp) -> Option<DueDelivery> {
        let (_, task_id, config_id, dead) = place;
        let key = (task_id.clone(), config_id.clone());
        if let Some(sequence) = dead {
            let dead_key = DeadKey { task_id: task_id.clone(), config_id, sequence };
            let (epoch, attempts) = self.change_dead(&dead_key, |dead| {
                dead.due_at = Some(until);
                dead.epoch += 1;
                (dead.epoch, dead.delivery.attempts)
            })?;
            let kept = self.configs.get(&key)?;
            let host_failures = self.failures(&kept.config.host);
            return Some(DueDelivery {
                scope: kept.scope.clone(),
                task_id,
                config: kept.config.clone(),
                sequence,
                last_sequence: kept.last_sequence,
                epoch,
                attempts,
                first_attempt_at: None,
                host_failures,
                is_dead: true,
            });
        }
        let host_failures = self.configs.get(&key).map_or(0, |kept| self.failures(&kept.config.host));
        self.change(&key, |kept| {
            kept.due_at = Some(until);
            kept.epoch += 1;
            DueDelivery {
                scope: kept.scope.clone(),
                task_id,
                config: kept.config.clone(),
                sequence: kept.cursor + 1,
                last_sequence: kept.last_sequence,
                epoch: kept.epoch,
                attempts: kept.attempts,
                first_attempt_at: kept.first_attempt_at,
                host_failures,
                is_dead: false,
            }
        })
    }

    fn settle(
        &mut self,
        delivery: &DueDelivery,
        settlement: Settlement,
        hold: Option<Timestamp>,
        now: Timestamp,
    ) -> Next {
        let key = (delivery.task_id.clone(), delivery.config.id.clone());
        if delivery.is_dead {
            return self.settle_dead(&key, delivery, settlement);
        }
        let is_ours = |kept: &Kept| kept.epoch == delivery.epoch && kept.cursor + 1 == delivery.sequence;
        if !self.configs.get(&key).is_some_and(is_ours) {
            return Next::Lost;
        }
        match settlement {
            Settlement::Gone => {
                self.remove(&key);
                Next::Released
            }
            Settlement::Retry { at, counts, .. } => {
                self.change(&key, |kept| {
                    kept.due_at = Some(at);
                    // The claim is over: whoever settles it once more is told.
                    kept.epoch += 1;
                    if counts {
                        kept.attempts += 1;
                        kept.first_attempt_at.get_or_insert(now);
                    }
                });
                Next::Released
            }
            Settlement::Delivered => self.advance(&key, hold, now),
            Settlement::Dead { error } => {
                let host = delivery.config.host.clone();
                let dead = DeadDelivery {
                    scope: delivery.scope.clone(),
                    task_id: delivery.task_id.clone(),
                    config_id: delivery.config.id.clone(),
                    url: delivery.config.url.clone(),
                    sequence: delivery.sequence,
                    attempts: delivery.attempts + 1,
                    died_at: now,
                    error,
                };
                let dead_key =
                    DeadKey { task_id: key.0.clone(), config_id: key.1.clone(), sequence: delivery.sequence };
                self.dead.insert(dead_key, Dead { delivery: dead, host, due_at: None, epoch: 0 });
                self.advance(&key, hold, now)
            }
        }
    }

    /// The event is done with; the next one is due, if there is one.
    fn advance(&mut self, key: &Key, hold: Option<Timestamp>, now: Timestamp) -> Next {
        let next = self.change(key, |kept| {
            kept.cursor += 1;
            (kept.attempts, kept.first_attempt_at) = (0, None);
            let has_more = kept.cursor < kept.last_sequence;
            kept.due_at = has_more.then(|| hold.unwrap_or(now));
            match hold {
                Some(_) if has_more => Next::Held { sequence: kept.cursor + 1 },
                Some(_) | None => Next::Released,
            }
        });
        next.unwrap_or(Next::Lost)
    }

    fn settle_dead(&mut self, key: &Key, delivery: &DueDelivery, settlement: Settlement) -> Next {
        let dead_key = DeadKey { task_id: key.0.clone(), config_id: key.1.clone(), sequence: delivery.sequence };
        if self.dead.get(&dead_key).is_none_or(|dead| dead.epoch != delivery.epoch) {
            return Next::Lost;
        }
        match settlement {
            Settlement::Gone => self.remove(key),
            Settlement::Delivered => {
                self.change_dead(&dead_key, |dead| dead.due_at = None);
                self.dead.remove(&dead_key);
            }
            Settlement::Retry { at, counts: false, .. } => {
                self.change_dead(&dead_key, |dead| {
                    dead.due_at = Some(at);
                    dead.epoch += 1;
                });
            }
            Settlement::Retry { error, .. } | Settlement::Dead { error } => {
                self.change_dead(&dead_key, |dead| {
                    dead.due_at = None;
                    dead.epoch += 1;
                    dead.delivery.attempts += 1;
                    dead.delivery.error = error;
                });
            }
        }
        Next::Released
    }
}

/// Before every config of a task.
fn first_key(task_id: &TaskId) -> (Bound<Key>, Bound<Key>) {
    // Ids are not empty, and a blank is before all that are not control characters.
    let first = PushConfigId::new(" ").map(|id| (task_id.clone(), id));
    (first.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded)
}

#[async_trait]
impl PushStore for MemoryStore {
    async fn put_push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        config: PushConfig,
        configs_max: usize,
        now: Timestamp,
    ) -> Result<Option<bool>, StoreError> {
        let mut inner = self.lock()?;
        let Some(last_sequence) = inner.entry(scope, task_id).map(|entry| entry.head.last_sequence) else {
            return Ok(None);
        };
        let pushes = &mut inner.pushes;
        let key = (task_id.clone(), config.id.clone());
        if !pushes.replace(&key, &config, now) {
            if pushes.of(task_id).count() >= configs_max {
                return Ok(Some(false));
            }
            pushes.add(scope, task_id, config, last_sequence, now);
        }
        Ok(Some(true))
    }

    async fn push_configs(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        after: Option<&PushConfigId>,
        limit: usize,
    ) -> Result<Option<Vec<PushConfig>>, StoreError> {
        let inner = self.lock()?;
        if inner.entry(scope, task_id).is_none() {
            return Ok(None);
        }
        let behind = inner.pushes.of(task_id).filter(|((_, id), _)| after.is_none_or(|after| id > after));
        Ok(Some(behind.take(limit).map(|(_, kept)| kept.config.clone()).collect()))
    }

    async fn push_config(
        &self,
        scope: &Scope,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<Option<PushConfig>, StoreError> {
        let inner = self.lock()?;
        let kept = inner.entry(scope, task_id).and_then(|_| inner.pushes.configs.get(&(task_id.clone(), id.clone())));
        Ok(kept.map(|kept| kept.config.clone()))
    }

    async fn remove_push_config(&self, scope: &Scope, task_id: &TaskId, id: &PushConfigId) -> Result<bool, StoreError> {
        let mut inner = self.lock()?;
        let is_there = inner.entry(scope, task_id).is_some();
        if is_there {
            inner.pushes.remove(&(task_id.clone(), id.clone()));
        }
        Ok(is_there)
    }

    async fn claim_deliveries(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
        after: Option<&str>,
        busy: &[String],
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let pushes = &mut self.lock()?.pushes;
        let due = pushes.due(now, limit, after, busy);
        Ok(due.into_iter().filter_map(|place| pushes.claim(place, until)).collect())
    }

    async fn settle_delivery(
        &self,
        delivery: &DueDelivery,
        settlement: Settlement,
        hold: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Next, StoreError> {
        Ok(self.lock()?.pushes.settle(delivery, settlement, hold, now))
    }

    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        let inner = self.lock()?;
        Ok(inner.pushes.lines.values().filter_map(|line| line.first()).map(|place| place.0).min())
    }

    async fn push_host(&self, host: &str) -> Result<HostState, StoreError> {
        Ok(self.lock()?.pushes.hosts.get(host).cloned().unwrap_or_default())
    }

    async fn set_push_host(&self, host: &str, state: HostState) -> Result<(), StoreError> {
        let hosts = &mut self.lock()?.pushes.hosts;
        match state == HostState::default() {
            true => drop(hosts.remove(host)),
            false => drop(hosts.insert(host.to_owned(), state)),
        }
        Ok(())
    }

    async fn dead_deliveries(&self, after: Option<&DeadKey>, limit: usize) -> Result<Vec<DeadDelivery>, StoreError> {
        let inner = self.lock()?;
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let dead = inner.pushes.dead.range::<DeadKey, _>((start, Bound::Unbounded));
        Ok(dead.take(limit).map(|(_, dead)| dead.delivery.clone()).collect())
    }

    async fn retry_dead(
        &self,
        task_id: Option<&TaskId>,
        config_id: Option<&PushConfigId>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let pushes = &mut self.lock()?.pushes;
        let is_meant = |key: &DeadKey| {
            task_id.is_none_or(|task_id| key.task_id == *task_id) && config_id.is_none_or(|id| key.config_id == *id)
        };
        let meant: Vec<DeadKey> = pushes.dead.keys().filter(|key| is_meant(key)).cloned().collect();
        for key in &meant {
            pushes.change_dead(key, |dead| dead.due_at.get_or_insert(now).to_owned());
        }
        Ok(meant.len() as u64)
    }

    async fn push_backlog(&self) -> Result<PushBacklog, StoreError> {
        let pushes = &self.lock()?.pushes;
        let pending = pushes.configs.values().filter(|kept| kept.due_at.is_some());
        Ok(PushBacklog { configs: pending.count() as u64, dead: pushes.dead.len() as u64 })
    }

    async fn push_key_check(&self, value: &[u8]) -> Result<Bytes, StoreError> {
        let known = &mut self.lock()?.pushes.key_check;
        Ok(known.get_or_insert_with(|| Bytes::copy_from_slice(value)).clone())
    }

    async fn set_push_key_check(&self, value: &[u8]) -> Result<(), StoreError> {
        self.lock()?.pushes.key_check = Some(Bytes::copy_from_slice(value));
        Ok(())
    }

    async fn sealed_configs(
        &self,
        after: Option<(&TaskId, &PushConfigId)>,
        limit: usize,
    ) -> Result<Vec<(TaskId, PushConfigId, Bytes)>, StoreError> {
        let inner = self.lock()?;
        let start = after.map(|(task_id, id)| (task_id.clone(), id.clone()));
        let configs = inner.pushes.configs.range((start.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded));
        let sealed = configs.filter_map(|((task_id, id), kept)| {
            kept.config.secrets.clone().map(|secrets| (task_id.clone(), id.clone(), secrets))
        });
        Ok(sealed.take(limit).collect())
    }

    async fn reseal_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
        before: &[u8],
        secrets: Bytes,
    ) -> Result<bool, StoreError> {
        let mut inner = self.lock()?;
        let kept = inner.pushes.configs.get_mut(&(task_id.clone(), id.clone()));
        let kept = kept.filter(|kept| kept.config.secrets.as_deref() == Some(before));
        Ok(kept.map(|kept| kept.config.secrets = Some(secrets)).is_some())
    }
}
