//! Removes tasks that have ended.

use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp};
use longhaul_store::{StoreError, columns};
use tokio_postgres::Row;

use super::statements;
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reader::{Reader, row};
use crate::session::Param;
use crate::shards;

/// How many tasks one transaction removes at the most, how many events and messages, and how many bytes, a single task apart: so it
/// takes some milliseconds.
const TASKS_MAX: usize = 100;
const ROWS_MAX: i64 = 500;
const BYTES_MAX: i64 = 1 << 20;

/// Removes tasks in a terminal state whose status is older than `before`, the oldest first, and answers how many there were. Those
/// that another instance is removing at this moment are left to it.
pub(crate) async fn purge(
    pool: &Pool,
    reader: &Reader,
    state: TaskState,
    before: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    if !state.is_terminal() || limit == 0 {
        return Ok(0);
    }
    let found = reader.ended(state, before, limit).await?;
    let mut removed = 0;
    for task_ids in found.chunks(TASKS_MAX) {
        let sized = sizes(pool, task_ids).await?;
        for step in steps(&sized) {
            removed += remove(pool, step, state, before).await?;
        }
    }
    // Also what another left that came to its end in between.
    while sweep(pool).await? {}
    Ok(removed)
}

/// A task to remove, and what that takes.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Sized {
    shard: i16,
    id: String,
    scope_shard: i16,
    context_shard: i16,
    /// Events and messages; after a merge there may be fewer.
    rows: i64,
    /// The bytes of those, if they were measured.
    log_bytes: Option<i64>,
    other_bytes: i64,
    /// Whether it has, or had, push configs.
    pushes: bool,
}

impl Sized {
    fn read(row: &Row, task_ids: &[TaskId]) -> Result<Self, Fault> {
        let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).ok();
        let id = place.and_then(|place| task_ids.get(place));
        let id = id.ok_or_else(|| StoreError::corrupt("a row stands at a place that was not asked for"))?;
        let (scope, context) = (row::scope(row, 1)?, row::id(row, 3, |text| ContextId::new(text))?);
        Ok(Self {
            shard: shards::of_task(id),
            id: id.as_str().to_owned(),
            scope_shard: shards::of_counts(&scope, None),
            context_shard: shards::of_counts(&scope, Some(&context)),
            rows: row.try_get(4)?,
            log_bytes: row.try_get(5)?,
            other_bytes: row.try_get(6)?,
            pushes: row.try_get(7)?,
        })
    }

    /// Whether its log goes with it; a longer one is removed afterwards, in slices.
    fn is_whole(&self) -> bool {
        self.rows <= ROWS_MAX && self.log_bytes.is_some_and(|bytes| bytes <= BYTES_MAX)
    }

    /// How many rows and bytes go with it.
    fn cost(&self) -> (i64, i64) {
        match self.log_bytes.filter(|_| self.is_whole()) {
            Some(bytes) => (self.rows, self.other_bytes + bytes),
            None => (0, self.other_bytes),
        }
    }
}

async fn sizes(pool: &Pool, task_ids: &[TaskId]) -> Result<Vec<Sized>, Fault> {
    let shards: Vec<i16> = task_ids.iter().map(shards::of_task).collect();
    let ids: Vec<&str> = task_ids.iter().map(TaskId::as_str).collect();
    let rows = pool.query(statements::SIZES, &[&shards, &ids, &ROWS_MAX]).await?;
    rows.iter().map(|row| Sized::read(row, task_ids)).collect()
}

/// Tasks, in their order, as the transactions that remove them.
fn steps(mut tasks: &[Sized]) -> Vec<&[Sized]> {
    let mut steps = Vec::new();
    while !tasks.is_empty() {
        let (step, rest) = tasks.split_at(step_len(tasks));
        steps.push(step);
        tasks = rest;
    }
    steps
}

/// How many tasks, from the first on, one transaction removes.
fn step_len(tasks: &[Sized]) -> usize {
    let (mut rows, mut bytes) = (0, 0);
    let beyond = tasks.iter().position(|task| {
        let cost = task.cost();
        (rows, bytes) = (rows + cost.0, bytes + cost.1);
        rows > ROWS_MAX || bytes > BYTES_MAX
    });
    // The first goes alone if it must.
    beyond.map_or(tasks.len(), |beyond| beyond.max(1))
}

async fn remove(pool: &Pool, tasks: &[Sized], state: TaskState, before: Timestamp) -> Result<u64, Fault> {
    let shards: Vec<i16> = tasks.iter().map(|task| task.shard).collect();
    let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let scope_shards: Vec<i16> = tasks.iter().map(|task| task.scope_shard).collect();
    let context_shards: Vec<i16> = tasks.iter().map(|task| task.context_shard).collect();
    let whole: Vec<bool> = tasks.iter().map(Sized::is_whole).collect();
    let (state, before) = (i16::try_from(state.number()).unwrap_or_default(), columns::ceil_millis(before));
    let batch: i64 = rand::random();
    let pushes: Vec<bool> = tasks.iter().map(|task| task.pushes).collect();
    let wanted: &[Param<'_>] =
        &[&shards, &ids, &scope_shards, &context_shards, &whole, &state, &before, &batch, &pushes];
    // Configs before dead deliveries, and each in their order.
    let mut pushing: Vec<&Sized> = tasks.iter().filter(|task| task.pushes).collect();
    pushing.sort_unstable_by(|one, other| (one.shard, &one.id).cmp(&(other.shard, &other.id)));
    let keys: Vec<[Param<'_>; 2]> = pushing.iter().map(|task| [&task.shard as Param<'_>, &task.id]).collect();
    let of_all = |sql: &'static str| keys.iter().map(move |key| (sql, key.as_slice()));
    let mut steps = vec![(statements::REMOVE_TASKS, wanted)];
    steps.extend(of_all(statements::REMOVE_PUSHES).chain(of_all(statements::REMOVE_DEAD)));
    let rows = pool.transact_all(&steps).await?;
    let removed = rows.first().and_then(|rows| rows.first()).map_or(Ok(0), |row| row.try_get(0))?;
    Ok(columns::count(removed, "the number of removed tasks")?)
}

/// Removes a slice of what removed tasks have left. Answers whether there was something.
async fn sweep(pool: &Pool) -> Result<bool, Fault> {
    Ok(pool.query_opt(statements::SWEEP, &[&ROWS_MAX, &BYTES_MAX]).await?.is_some())
}

#[cfg(test)]
mod tests;
