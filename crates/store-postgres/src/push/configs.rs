//! Push configs of tasks, and what seals their secrets.

use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::columns::int;
use longhaul_store::{DueDelivery, Next, PushConfig, Scope, StoreError};

use super::{row, statements};
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reader::row::{get, task_id as read_task_id};
use crate::session::Param;
use crate::shards;

/// Adds a config or replaces one, while the task is taken.
pub(super) async fn put(
    pool: &Pool,
    scope: &Scope,
    task_id: &TaskId,
    config: &PushConfig,
    configs_max: usize,
    now: Timestamp,
) -> Result<Option<bool>, Fault> {
    let shard = shards::of_task(task_id);
    let (task, tenant, owner) = (task_id.as_str(), scope.tenant.as_str(), scope.owner.as_str());
    let (id, secrets) = (config.id.as_str(), config.secrets.as_deref());
    let (created_at, now, max) = (config.created_at.unix_millis(), now.unix_millis(), int(configs_max as u64));
    let (url, host, scheme, version) = (&config.url, &config.host, &config.scheme, &config.version);
    let taken: [Param<'_>; 2] = [&shard, &task];
    let named: [Param<'_>; 5] = [&shard, &task, &tenant, &owner, &id];
    let replaced: [Param<'_>; 12] =
        [&shard, &task, &tenant, &owner, &id, url, host, scheme, &secrets, version, &created_at, &now];
    let moved: [Param<'_>; 7] = [&shard, &task, &tenant, &owner, &id, host, &now];
    let inserted: [Param<'_>; 12] =
        [&shard, &task, &tenant, &owner, &id, url, host, scheme, &secrets, version, &created_at, &max];
    let steps: [(&'static str, &[Param<'_>]); 5] = [
        (statements::TAKE_TASK, &taken),
        (statements::REPLACE, &replaced),
        (statements::MOVE_DEAD, &moved),
        (statements::INSERT, &inserted),
        (statements::MARK_TASK, &named),
    ];
    let rows = pool.transact(&steps).await?;
    Ok(rows.first().map(|row| get(row, 0)).transpose()?)
}

/// Removes a config, while the task is taken. Answers whether the scope has such a task.
pub(super) async fn remove(pool: &Pool, scope: &Scope, task_id: &TaskId, id: &PushConfigId) -> Result<bool, Fault> {
    let condition: [Param<'_>; 2] = [&scope.tenant.as_str(), &scope.owner.as_str()];
    remove_if(pool, task_id, id, statements::REMOVE, condition).await
}

/// Removes the config of a delivery whose receiver wants no more.
pub(super) async fn gone(pool: &Pool, delivery: &DueDelivery) -> Result<Next, Fault> {
    let sql = if delivery.is_dead { statements::GONE_BY_DEAD } else { statements::GONE };
    let condition: [Param<'_>; 2] = [&int(delivery.epoch), &int(delivery.sequence)];
    let removed = remove_if(pool, &delivery.task_id, &delivery.config.id, sql, condition).await?;
    Ok(if removed { Next::Released } else { Next::Lost })
}

async fn remove_if(
    pool: &Pool,
    task_id: &TaskId,
    id: &PushConfigId,
    sql: &'static str,
    condition: [Param<'_>; 2],
) -> Result<bool, Fault> {
    let (shard, task, id) = (shards::of_task(task_id), task_id.as_str(), id.as_str());
    let [first, second] = condition;
    let task_key: [Param<'_>; 2] = [&shard, &task];
    let config_key: [Param<'_>; 3] = [&shard, &task, &id];
    let removed: [Param<'_>; 5] = [&shard, &task, &id, first, second];
    let steps: [(&'static str, &[Param<'_>]); 3] =
        [(statements::TAKE_TASK, &task_key), (statements::TAKE_CONFIG, &config_key), (sql, &removed)];
    Ok(!pool.transact(&steps).await?.is_empty())
}

pub(super) async fn page(
    pool: &Pool,
    scope: &Scope,
    task_id: &TaskId,
    after: Option<&PushConfigId>,
    limit: usize,
) -> Result<Option<Vec<PushConfig>>, Fault> {
    let (tenant, owner) = (scope.tenant.as_str(), scope.owner.as_str());
    let (after, limit) = (after.map_or("", PushConfigId::as_str), int(limit as u64));
    let wanted: [Param<'_>; 6] = [&shards::of_task(task_id), &task_id.as_str(), &tenant, &owner, &after, &limit];
    let rows = pool.query(statements::CONFIGS, &wanted).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut configs = Vec::with_capacity(rows.len());
    for read in &rows {
        // A task without configs is a row of nothing.
        if get::<Option<&str>>(read, 0)?.is_some() {
            configs.push(row::config(read, 0)?);
        }
    }
    Ok(Some(configs))
}

pub(super) async fn one(
    pool: &Pool,
    scope: &Scope,
    task_id: &TaskId,
    id: &PushConfigId,
) -> Result<Option<PushConfig>, Fault> {
    let (tenant, owner) = (scope.tenant.as_str(), scope.owner.as_str());
    let wanted: [Param<'_>; 5] = [&shards::of_task(task_id), &task_id.as_str(), &tenant, &owner, &id.as_str()];
    let read = pool.query_opt(statements::CONFIG, &wanted).await?;
    Ok(read.map(|read| row::config(&read, 0)).transpose()?)
}

/// The value of the key check, which is made `value` if there is none.
pub(super) async fn key_check(pool: &Pool, value: &[u8]) -> Result<Bytes, Fault> {
    let offered: [Param<'_>; 1] = [&value];
    let rows = pool.transact(&[(statements::OFFER_KEY, &offered), (statements::KEY, &[])]).await?;
    let known = rows.first().ok_or_else(|| StoreError::corrupt("the key check was not kept"))?;
    Ok(Bytes::copy_from_slice(get(known, 0)?))
}

pub(super) async fn set_key_check(pool: &Pool, value: &[u8]) -> Result<(), Fault> {
    pool.query(statements::SET_KEY, &[&value]).await.map(drop)
}

pub(super) async fn sealed(
    pool: &Pool,
    after: Option<(&TaskId, &PushConfigId)>,
    limit: usize,
) -> Result<Vec<(TaskId, PushConfigId, Bytes)>, Fault> {
    let (shard, task, id) =
        after.map_or((-1, "", ""), |(task, id)| (shards::of_task(task), task.as_str(), id.as_str()));
    let rows = pool.query(statements::SEALED, &[&shard, &task, &id, &int(limit as u64)]).await?;
    let sealed = rows
        .iter()
        .map(|read| Ok((read_task_id(read, 0)?, row::config_id(read, 1)?, Bytes::copy_from_slice(get(read, 2)?))));
    sealed.collect()
}

pub(super) async fn reseal(
    pool: &Pool,
    task_id: &TaskId,
    id: &PushConfigId,
    before: &[u8],
    secrets: &[u8],
) -> Result<bool, Fault> {
    let (shard, task, id) = (shards::of_task(task_id), task_id.as_str(), id.as_str());
    Ok(!pool.query(statements::RESEAL, &[&shard, &task, &id, &before, &secrets]).await?.is_empty())
}
