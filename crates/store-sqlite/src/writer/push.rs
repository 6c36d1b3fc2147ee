//! What a batch does with push configs and deliveries.

use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::{
    Commit, DeadKey, DueDelivery, Expect, HostState, Next, PushConfig, Scope, Settlement, StoreError,
};
use rusqlite::{OptionalExtension, Row, params};

use super::batch::Batch;
use super::transaction::Known;
use crate::fault::Fault;
use crate::layout::{self, int};
use crate::reader::row;

/// How many dead deliveries one job makes due again.
const WAKE_MAX: i64 = 500;

/// Which deliveries are wanted.
#[derive(Debug)]
pub(crate) struct Claims {
    pub(crate) now: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) limit: usize,
    pub(crate) after: String,
    pub(crate) busy: Vec<String>,
}

/// A host that may be sent to.
struct Host {
    name: String,
    failures: u32,
}

/// Which dead deliveries are meant.
#[derive(Clone, Debug)]
pub(crate) struct Meant {
    pub(crate) task_id: Option<TaskId>,
    pub(crate) config_id: Option<PushConfigId>,
}

impl Batch<'_, '_, '_> {
    /// Adds the configs that come with a commit: what it appends is the first that they are given.
    pub(super) fn add_pushes(&mut self, commit: &Commit, before: &Known, after: &mut Known) -> Result<(), Fault> {
        for config in &commit.pushes {
            if !self.replace_config(&commit.task_id, config, commit.now)? {
                self.insert_config(&commit.task_id, config, before.scope, before.last_sequence)?;
            }
        }
        if !commit.pushes.is_empty() && !before.pushes {
            after.pushes = true;
            // The row of a new task is written with it.
            if !matches!(commit.expect, Expect::New(_)) {
                self.writer.statements.set_pushes.execute(params![after.number, true])?;
            }
        }
        Ok(())
    }

    pub(crate) fn put_config(
        &mut self,
        scope: &Scope,
        task_id: &TaskId,
        config: &PushConfig,
        configs_max: usize,
        now: Timestamp,
    ) -> Result<Option<bool>, Fault> {
        let Some(known) = self.known_in(scope, task_id)? else { return Ok(None) };
        if self.replace_config(task_id, config, now)? {
            return Ok(Some(true));
        }
        if self.count_configs(task_id)? >= int(configs_max as u64) {
            return Ok(Some(false));
        }
        self.insert_config(task_id, config, known.scope, known.last_sequence)?;
        if !known.pushes {
            self.set_pushes(task_id, &known, true)?;
        }
        Ok(Some(true))
    }

    /// Answers whether the scope has such a task.
    pub(crate) fn remove_config(&mut self, scope: &Scope, task_id: &TaskId, id: &PushConfigId) -> Result<bool, Fault> {
        let is_there = self.known_in(scope, task_id)?.is_some();
        if is_there {
            self.drop_config(task_id, id)?;
        }
        Ok(is_there)
    }

    pub(crate) fn reseal_config(
        &mut self,
        task_id: &TaskId,
        id: &PushConfigId,
        before: &[u8],
        secrets: &[u8],
    ) -> Result<bool, Fault> {
        let row = params![task_id.as_str(), id.as_str(), before, secrets];
        Ok(self.writer.statements.reseal_push_config.execute(row)? > 0)
    }

    /// The task, if the scope has it.
    fn known_in(&mut self, scope: &Scope, task_id: &TaskId) -> Result<Option<Known>, Fault> {
        let scope = self.writer.known_scope(scope)?;
        Ok(self.writer.known(task_id)?.filter(|known| Some(known.scope) == scope))
    }

    fn count_configs(&mut self, task_id: &TaskId) -> Result<i64, Fault> {
        Ok(self.writer.statements.count_push_configs.query_row([task_id.as_str()], |row| row.get(0))?)
    }

    fn insert_config(
        &mut self,
        task_id: &TaskId,
        config: &PushConfig,
        scope: i64,
        last_sequence: u64,
    ) -> Result<(), Fault> {
        self.writer.statements.insert_push_config.execute(params![
            task_id.as_str(),
            config.id.as_str(),
            config.url,
            config.host,
            config.scheme,
            config.secrets.as_deref(),
            config.version,
            config.created_at.unix_millis(),
            scope,
            int(last_sequence),
        ])?;
        Ok(())
    }

    /// Answers whether there was one to replace.
    fn replace_config(&mut self, task_id: &TaskId, config: &PushConfig, now: Timestamp) -> Result<bool, Fault> {
        let (task, id, now) = (task_id.as_str(), config.id.as_str(), now.unix_millis());
        let replaced = self.writer.statements.replace_push_config.execute(params![
            task,
            id,
            config.url,
            config.host,
            config.scheme,
            config.secrets.as_deref(),
            config.version,
            config.created_at.unix_millis(),
            now,
        ])?;
        if replaced > 0 {
            self.writer.statements.move_dead.execute(params![task, id, config.host, now])?;
        }
        Ok(replaced > 0)
    }

    fn drop_config(&mut self, task_id: &TaskId, id: &PushConfigId) -> Result<(), Fault> {
        let key = [task_id.as_str(), id.as_str()];
        if self.writer.statements.remove_push_config.execute(key)? == 0 {
            return Ok(());
        }
        self.writer.statements.remove_dead_of_config.execute(key)?;
        if self.count_configs(task_id)? == 0
            && let Some(known) = self.writer.known(task_id)?
        {
            self.set_pushes(task_id, &known, false)?;
        }
        Ok(())
    }

    pub(crate) fn claim(&mut self, claims: &Claims) -> Result<Vec<DueDelivery>, Fault> {
        let mut hosts = self.hosts_due(claims)?;
        let mut claimed = Vec::new();
        // One of each host, again and again. What is claimed is not due any more, so that the next one is the first.
        while claimed.len() < claims.limit && !hosts.is_empty() {
            let mut left = Vec::with_capacity(hosts.len());
            for host in hosts {
                if claimed.len() == claims.limit {
                    break;
                }
                if let Some(delivery) = self.claim_of(&host, claims)? {
                    claimed.push(delivery);
                    left.push(host);
                }
            }
            hosts = left;
        }
        Ok(claimed)
    }

    /// The hosts that have a delivery that is due, and may be sent to: from behind `after` on, and then those before. No more
    /// of them than deliveries are wanted.
    fn hosts_due(&mut self, claims: &Claims) -> Result<Vec<Host>, Fault> {
        let mut hosts = Vec::new();
        for (mut behind, last) in [(claims.after.clone(), None), (String::new(), Some(&claims.after))] {
            while hosts.len() < claims.limit {
                let next = self.host_behind(&behind)?;
                let Some((name, due_at)) = next.filter(|(name, _)| last.is_none_or(|last| name <= last)) else { break };
                if due_at <= claims.now.unix_millis() && !claims.busy.contains(&name) {
                    hosts.extend(self.host_unless_open(&name, claims.now)?);
                }
                behind = name;
            }
        }
        Ok(hosts)
    }

    /// The next host that has deliveries, and when the first of them is due.
    fn host_behind(&mut self, behind: &str) -> Result<Option<(String, i64)>, Fault> {
        let statements = &mut self.writer.statements;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let config = statements.next_push_host.query_row([behind], read).optional()?;
        let dead = statements.next_dead_host.query_row([behind], read).optional()?;
        Ok(config.into_iter().chain(dead).min())
    }

    fn host_unless_open(&mut self, name: &str, now: Timestamp) -> Result<Option<Host>, Fault> {
        let mut rows = self.writer.statements.push_host.query([name])?;
        let HostState { failures, open_until } = rows.next()?.map(row::push_host).transpose()?.unwrap_or_default();
        let is_open = open_until.is_some_and(|until| until > now);
        Ok((!is_open).then(|| Host { name: name.to_owned(), failures }))
    }

    /// Claims what is due longest to a host.
    fn claim_of(&mut self, host: &Host, claims: &Claims) -> Result<Option<DueDelivery>, Fault> {
        let statements = &mut self.writer.statements;
        let due = params![host.name, claims.now.unix_millis()];
        let config = statements
            .first_push
            .query_row(due, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        let mut rows = statements.first_dead.query(due)?;
        let dead =
            rows.next()?.map(|row| Ok::<_, Fault>((row.get::<_, i64>(0)?, row::dead_key(row, 1)?))).transpose()?;
        drop(rows);
        match (config, dead) {
            (Some((due, number)), dead) if dead.as_ref().is_none_or(|(dead_due, _)| due <= *dead_due) => {
                self.claim_config(number, claims.until, host.failures).map(Some)
            }
            (_, Some((_, key))) => self.claim_dead(&key, claims.until, host.failures).map(Some),
            (_, None) => Ok(None),
        }
    }

    fn claim_config(&mut self, number: i64, until: Timestamp, host_failures: u32) -> Result<DueDelivery, Fault> {
        let mut rows = self.writer.statements.claim_push.query([number, until.unix_millis()])?;
        let claimed = rows.next()?.ok_or_else(|| StoreError::corrupt("the line of push configs"))?;
        let (task_id, config) = row::push_config(claimed)?;
        let scope: i64 = claimed.get(8)?;
        let delivery = DueDelivery {
            scope: Scope::default(),
            task_id,
            config,
            last_sequence: layout::count(claimed.get(9)?, "the last sequence of a push config")?,
            sequence: layout::count(claimed.get(10)?, "the cursor of a push config")?,
            epoch: layout::count(claimed.get(11)?, "the epoch of a push config")?,
            attempts: claimed.get(12)?,
            first_attempt_at: claimed.get::<_, Option<i64>>(13)?.map(Timestamp::from_unix_millis),
            host_failures,
            is_dead: false,
        };
        // Runs the statement to its end.
        while rows.next()?.is_some() {}
        drop(rows);
        Ok(DueDelivery { scope: self.scope_name(scope)?, ..delivery })
    }

    fn claim_dead(&mut self, key: &DeadKey, until: Timestamp, host_failures: u32) -> Result<DueDelivery, Fault> {
        let statements = &mut self.writer.statements;
        let (task, id, sequence) = (key.task_id.as_str(), key.config_id.as_str(), int(key.sequence));
        let claim = params![task, id, sequence, until.unix_millis()];
        let (epoch, attempts) = statements.claim_dead.query_row(claim, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut rows = statements.config_of_dead.query([task, id])?;
        let found = rows.next()?.ok_or_else(|| StoreError::corrupt("a dead delivery without its config"))?;
        let (task_id, config) = row::push_config(found)?;
        let scope: i64 = found.get(8)?;
        let last_sequence = layout::count(found.get(9)?, "the last sequence of a push config")?;
        drop(rows);
        Ok(DueDelivery {
            scope: self.scope_name(scope)?,
            task_id,
            config,
            sequence: key.sequence,
            last_sequence,
            epoch: layout::count(epoch, "the epoch of a dead delivery")?,
            attempts,
            first_attempt_at: None,
            host_failures,
            is_dead: true,
        })
    }

    fn scope_name(&mut self, number: i64) -> Result<Scope, Fault> {
        let mut rows = self.writer.statements.find_scope_name.query([number])?;
        let found = rows.next()?.ok_or_else(|| StoreError::corrupt("a push config without its scope"))?;
        row::scope(found, 0)
    }

    pub(crate) fn settle(
        &mut self,
        delivery: &DueDelivery,
        settlement: &Settlement,
        hold: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Next, Fault> {
        if delivery.is_dead {
            return self.settle_dead(delivery, settlement);
        }
        // A sequence is at least 1.
        let (epoch, cursor) = (int(delivery.epoch), int(delivery.sequence) - 1);
        let (task, id) = (delivery.task_id.as_str(), delivery.config.id.as_str());
        let statements = &mut self.writer.statements;
        match settlement {
            Settlement::Delivered => self.advance(delivery, hold, now),
            Settlement::Dead { error } => {
                let next = self.advance(delivery, hold, now)?;
                if next != Next::Lost {
                    self.bury(delivery, error, now)?;
                }
                Ok(next)
            }
            Settlement::Retry { at, counts, .. } => {
                let at = at.unix_millis();
                let changed = if *counts {
                    let row = params![task, id, epoch, cursor, at, now.unix_millis()];
                    statements.retry_push_that_failed.execute(row)?
                } else {
                    statements.retry_push.execute(params![task, id, epoch, cursor, at])?
                };
                Ok(released_if(changed > 0))
            }
            Settlement::Gone => {
                let is_held = statements.holds_push.exists(params![task, id, epoch, cursor])?;
                if is_held {
                    self.drop_config(&delivery.task_id, &delivery.config.id)?;
                }
                Ok(released_if(is_held))
            }
        }
    }

    /// The event is done with; the next one is due, if there is one.
    fn advance(&mut self, delivery: &DueDelivery, hold: Option<Timestamp>, now: Timestamp) -> Result<Next, Fault> {
        let row = params![
            delivery.task_id.as_str(),
            delivery.config.id.as_str(),
            int(delivery.epoch),
            int(delivery.sequence) - 1,
            hold.unwrap_or(now).unix_millis()
        ];
        let has_more: Option<bool> = self.writer.statements.advance_push.query_row(row, |row| row.get(0)).optional()?;
        Ok(match (has_more, hold) {
            (None, _) => Next::Lost,
            (Some(true), Some(_)) => Next::Held { sequence: delivery.sequence + 1 },
            (Some(_), _) => Next::Released,
        })
    }

    fn bury(&mut self, delivery: &DueDelivery, error: &str, now: Timestamp) -> Result<(), Fault> {
        self.writer.statements.insert_dead.execute(params![
            delivery.task_id.as_str(),
            delivery.config.id.as_str(),
            int(delivery.sequence),
            delivery.config.host,
            delivery.attempts + 1,
            now.unix_millis(),
            error,
        ])?;
        Ok(())
    }

    fn settle_dead(&mut self, delivery: &DueDelivery, settlement: &Settlement) -> Result<Next, Fault> {
        let (task, id) = (delivery.task_id.as_str(), delivery.config.id.as_str());
        let (sequence, epoch) = (int(delivery.sequence), int(delivery.epoch));
        let statements = &mut self.writer.statements;
        let is_ours = match settlement {
            Settlement::Delivered => statements.remove_dead.execute(params![task, id, sequence, epoch])? > 0,
            Settlement::Retry { at, counts: false, .. } => {
                let row = params![task, id, sequence, epoch, at.unix_millis()];
                statements.retry_claimed_dead.execute(row)? > 0
            }
            Settlement::Retry { error, .. } | Settlement::Dead { error } => {
                statements.fail_dead.execute(params![task, id, sequence, epoch, error])? > 0
            }
            Settlement::Gone => {
                let is_held = statements.holds_dead.exists(params![task, id, sequence, epoch])?;
                if is_held {
                    self.drop_config(&delivery.task_id, &delivery.config.id)?;
                }
                is_held
            }
        };
        Ok(released_if(is_ours))
    }

    /// Makes dead deliveries behind `after` due again, as many as one job may. Answers how many, and behind which it goes on,
    /// if it does.
    pub(crate) fn wake_dead(
        &mut self,
        meant: &Meant,
        after: Option<&DeadKey>,
        now: Timestamp,
    ) -> Result<(u64, Option<DeadKey>), Fault> {
        let first_task = meant.task_id.as_ref().map_or("", TaskId::as_str);
        let first_config =
            meant.config_id.as_ref().filter(|_| meant.task_id.is_some()).map_or("", PushConfigId::as_str);
        let start = after.map_or((first_task, first_config, 0), |key| {
            (key.task_id.as_str(), key.config_id.as_str(), int(key.sequence))
        });
        let statements = &mut self.writer.statements;
        let range = params![start.0, start.1, start.2, WAKE_MAX];
        let found = statements.dead_behind.query_and_then(range, |row| row::dead_key(row, 0))?;
        let found = found.collect::<Result<Vec<_>, Fault>>()?;
        let is_full = int(found.len() as u64) == WAKE_MAX;
        let mut woken = 0;
        for key in &found {
            if meant.task_id.as_ref().is_some_and(|task_id| *task_id != key.task_id) {
                return Ok((woken, None));
            }
            if meant.config_id.as_ref().is_none_or(|id| *id == key.config_id) {
                let row = params![key.task_id.as_str(), key.config_id.as_str(), int(key.sequence), now.unix_millis()];
                statements.wake_dead.execute(row)?;
                woken += 1;
            }
        }
        Ok((woken, found.into_iter().next_back().filter(|_| is_full)))
    }

    pub(crate) fn set_host(&mut self, host: &str, state: &HostState) -> Result<(), Fault> {
        let statements = &mut self.writer.statements;
        if *state == HostState::default() {
            statements.remove_push_host.execute([host])?;
        } else {
            let open_until = state.open_until.map(Timestamp::unix_millis);
            statements.put_push_host.execute(params![host, state.failures, open_until])?;
        }
        Ok(())
    }

    /// The value of the key check, which is made `value` if there is none.
    pub(crate) fn key_check(&mut self, value: &[u8]) -> Result<Bytes, Fault> {
        let known = self.writer.statements.push_key_check.query_row([], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        match known {
            Some(known) => Ok(Bytes::from(known)),
            None => self.set_key_check(value).map(|()| Bytes::copy_from_slice(value)),
        }
    }

    pub(crate) fn set_key_check(&mut self, value: &[u8]) -> Result<(), Fault> {
        self.writer.statements.set_push_key_check.execute([value])?;
        Ok(())
    }
}

fn released_if(is_ours: bool) -> Next {
    if is_ours { Next::Released } else { Next::Lost }
}
