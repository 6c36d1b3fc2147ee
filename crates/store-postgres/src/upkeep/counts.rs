//! Adds what commits have left in `task_count_delta` to the counts.

use super::statements;
use crate::fault::Fault;
use crate::pool::Pool;

/// How many deltas one statement adds.
const PAGE: i64 = 2000;

/// Where a delta stands among all.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
struct Place {
    shard: i16,
    tenant: String,
    owner: String,
    context_id: String,
    batch: i64,
}

impl Place {
    /// Before all others.
    fn first() -> Self {
        Self { shard: -1, ..Self::default() }
    }
}

/// Names of counts, column by column.
#[derive(Debug, Default)]
struct Names {
    shards: Vec<i16>,
    tenants: Vec<String>,
    owners: Vec<String>,
    context_ids: Vec<String>,
}

/// Adds all deltas that are there now and that nobody else is adding, page by page. Each page goes on behind the last one: those
/// that were added are still in the way of whoever looks from the beginning.
pub(super) async fn fold(pool: &Pool) -> Result<(), Fault> {
    let mut after = Some(Place::first());
    while let Some(place) = after {
        after = fold_page(pool, &place, PAGE).await?;
    }
    Ok(())
}

/// Answers where the page ended; `None` when it was not full.
async fn fold_page(pool: &Pool, after: &Place, page: i64) -> Result<Option<Place>, Fault> {
    let Place { shard, tenant, owner, context_id, batch } = after;
    let rows = pool.query(statements::FOLD_COUNTS, &[shard, tenant, owner, context_id, batch, &page]).await?;
    let (mut last, mut nothing) = (None, Names::default());
    for row in &rows {
        let (shard, tenant, owner, context_id) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        match row.try_get::<_, Option<i64>>(0)? {
            Some(folded) if folded < page => {}
            Some(_) => last = Some(Place { shard, tenant, owner, context_id, batch: row.try_get(5)? }),
            None => {
                nothing.shards.push(shard);
                nothing.tenants.push(tenant);
                nothing.owners.push(owner);
                nothing.context_ids.push(context_id);
            }
        }
    }
    if !nothing.shards.is_empty() {
        let Names { shards, tenants, owners, context_ids } = &nothing;
        pool.query(statements::REMOVE_COUNTS, &[shards, tenants, owners, context_ids]).await?;
    }
    Ok(last)
}

#[cfg(test)]
mod tests;
