//! Merges the logs of tasks that have ended.

use std::ops::RangeInclusive;
use std::pin::pin;

use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use longhaul_protocol::Timestamp;
use longhaul_store::columns::{self, int};
use longhaul_store::{Compaction, CompactionFold, EventKind, StoreError};

use super::statements;
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reader::row;
use crate::session::{Database, Param, Session, within};

/// What the column `compaction` holds of a log with nothing to merge, or too much.
const WHOLE: i16 = 0;
/// What it holds of one that was merged.
const MERGED: i16 = 2;

/// Merges the logs of tasks that ended before `before`, the oldest first and at most `limit`, and answers how many tasks were dealt
/// with. Those that another instance deals with at this moment are left to it.
pub(crate) async fn compact(database: &Database, pool: &Pool, before: Timestamp, limit: usize) -> Result<u64, Fault> {
    let before = columns::ceil_millis(before);
    if limit == 0 || pool.query_opt(statements::HAS_LOG, &[&before]).await?.is_none() {
        return Ok(0);
    }
    // Dropped when something fails, which undoes what was begun.
    let session = database.connect().await?;
    let step_max = database.config.statement_timeout;
    let (mut done, mut from) = (0, i64::MIN);
    while done < limit {
        let Some(task) = within(step_max, claim(&session, before, from)).await? else { break };
        let fold = within(step_max, read(&session, &task)).await?;
        let changes = finish(fold).await?;
        within(step_max, write(&session, &task, changes)).await?;
        (done, from) = (done + 1, task.ended);
    }
    Ok(done as u64)
}

/// A task whose log is being merged.
#[derive(Debug)]
struct Claimed {
    shard: i16,
    id: String,
    ended: i64,
}

/// Begins a transaction that has the next task; `None` when there is none, and no transaction.
async fn claim(session: &Session, before: i64, from: i64) -> Result<Option<Claimed>, Fault> {
    session.client().batch_execute("BEGIN").await?;
    let rows = session.query(statements::NEXT_LOG, &[&before, &from]).await?;
    let Some(row) = rows.first() else {
        session.client().batch_execute("ROLLBACK").await?;
        return Ok(None);
    };
    Ok(Some(Claimed { shard: row.try_get(0)?, id: row.try_get(1)?, ended: row.try_get(2)? }))
}

/// Merges a log in memory, event by event as they come. `None` when it can't be read.
async fn read(session: &Session, task: &Claimed) -> Result<Option<CompactionFold>, Fault> {
    let kind = i16::try_from(EventKind::Artifact.code()).unwrap_or(i16::MAX);
    let statement = session.prepare(statements::READ_LOG).await?;
    let wanted: [Param<'_>; 3] = [&task.shard, &task.id, &kind];
    let mut rows = pin!(session.client().query_raw(&statement, wanted).await?);
    let mut fold = CompactionFold::default();
    while let Some(row) = rows.try_next().await? {
        match row::event(&row, 0).and_then(|event| fold.apply(&event)) {
            Ok(()) => {}
            // Left as it is, or no other would ever get its turn.
            Err(error) => {
                tracing::warn!(task_id = task.id, error = &error as &dyn std::error::Error, "cannot merge a log");
                return Ok(None);
            }
        }
        if fold.is_too_large() {
            break;
        }
    }
    Ok(Some(fold))
}

async fn finish(fold: Option<CompactionFold>) -> Result<Option<Compaction>, Fault> {
    let Some(fold) = fold else { return Ok(None) };
    // Megabytes may have to be written out.
    let merged = tokio::task::spawn_blocking(move || fold.finish()).await;
    Ok(merged.map_err(|error| StoreError::unavailable("merge a log", error))?)
}

/// Writes what merging makes of a log, and ends the transaction.
async fn write(session: &Session, task: &Claimed, changes: Option<Compaction>) -> Result<(), Fault> {
    let mark = if changes.is_some() { MERGED } else { WHOLE };
    let Compaction { removed, rewritten } = changes.unwrap_or_default();
    let bounds = |bound: fn(&RangeInclusive<u64>) -> &u64| -> Vec<i64> {
        removed.iter().map(|range| int(*bound(range))).collect()
    };
    let (first, last) = (bounds(RangeInclusive::start), bounds(RangeInclusive::end));
    session.execute(statements::REMOVE_RANGES, &[&task.shard, &task.id, &first, &last]).await?;
    let rewrite = session.prepare(statements::REWRITE_EVENT).await?;
    // One after the other in the database, without waiting for an answer in between.
    let rewrites = rewritten.iter().map(|event| {
        let rewrite = &rewrite;
        async move {
            let (sequence, payload) = (int(event.sequence), &*event.payload);
            session.client().execute(rewrite, &[&task.shard, &task.id, &sequence, &payload]).await
        }
    });
    try_join_all(rewrites).await?;
    session.execute(statements::END_COMPACTION, &[&task.shard, &task.id, &mark]).await?;
    session.client().batch_execute("COMMIT").await?;
    Ok(())
}

#[cfg(test)]
mod tests;
