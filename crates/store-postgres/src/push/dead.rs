//! Deliveries that were given up.

use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::columns::{count, int};
use longhaul_store::{DeadDelivery, DeadKey};
use tokio_postgres::Row;

use super::{row, statements};
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reader::row::get;
use crate::session::Param;
use crate::shards;

/// How many dead deliveries one transaction makes due again.
const WAKE_MAX: usize = 500;

pub(super) async fn page(pool: &Pool, after: Option<&DeadKey>, limit: usize) -> Result<Vec<DeadDelivery>, Fault> {
    let (task, config, sequence) =
        after.map_or(("", "", 0), |key| (key.task_id.as_str(), key.config_id.as_str(), int(key.sequence)));
    let rows = pool.query(statements::DEAD, &[&task, &config, &sequence, &int(limit as u64)]).await?;
    Ok(rows.iter().map(row::dead).collect::<Result<_, _>>()?)
}

/// Names a row; rows are taken in this order.
#[derive(Clone, Debug)]
struct Key {
    shard: i16,
    task: String,
    config: String,
    sequence: i64,
}

impl Key {
    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self { shard: get(row, 0)?, task: get(row, 1)?, config: get(row, 2)?, sequence: get(row, 3)? })
    }
}

/// Makes dead deliveries due again, page by page. Answers how many there were.
pub(super) async fn wake(
    pool: &Pool,
    task_id: Option<&TaskId>,
    config_id: Option<&PushConfigId>,
    now: Timestamp,
) -> Result<u64, Fault> {
    let first = task_id.map_or((-1, ""), |task_id| (shards::of_task(task_id), task_id.as_str()));
    let mut after = Key { shard: first.0, task: first.1.to_owned(), config: String::new(), sequence: 0 };
    let sql = if task_id.is_some() { statements::DEAD_KEYS_OF } else { statements::DEAD_KEYS };
    let (limit, mut woken) = (int(WAKE_MAX as u64), 0);
    loop {
        let range: [Param<'_>; 5] = [&after.shard, &after.task, &after.config, &after.sequence, &limit];
        let rows = pool.query(sql, &range).await?;
        let mut keys = rows.iter().map(Key::read).collect::<Result<Vec<_>, _>>()?;
        let last = keys.last().filter(|_| keys.len() == WAKE_MAX).cloned();
        keys.retain(|key| config_id.is_none_or(|id| id.as_str() == key.config));
        woken += wake_all(pool, &keys, now).await?;
        match last {
            Some(last) => after = last,
            None => return Ok(woken),
        }
    }
}

async fn wake_all(pool: &Pool, keys: &[Key], now: Timestamp) -> Result<u64, Fault> {
    if keys.is_empty() {
        return Ok(0);
    }
    let shards: Vec<i16> = keys.iter().map(|key| key.shard).collect();
    let tasks: Vec<&str> = keys.iter().map(|key| key.task.as_str()).collect();
    let configs: Vec<&str> = keys.iter().map(|key| key.config.as_str()).collect();
    let sequences: Vec<i64> = keys.iter().map(|key| key.sequence).collect();
    let now = now.unix_millis();
    let taken: [Param<'_>; 4] = [&shards, &tasks, &configs, &sequences];
    let woken: [Param<'_>; 5] = [&shards, &tasks, &configs, &sequences, &now];
    let rows = pool.transact(&[(statements::TAKE_DEAD, &taken), (statements::WAKE, &woken)]).await?;
    let woken = rows.first().map_or(Ok(0), |row| get(row, 0))?;
    Ok(count(woken, "a count of dead deliveries")?)
}
