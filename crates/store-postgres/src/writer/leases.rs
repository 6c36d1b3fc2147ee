//! Leases: one step for all that are held here.

use std::collections::BTreeSet;

use longhaul_protocol::{TaskId, Timestamp};
use longhaul_store::HeldLease;
use longhaul_store::columns::int;

use super::known::Key;
use super::statements::{CHECK, EXPIRE_FRESH, EXPIRE_RENEWED, LOCK_LEASES, MOVE_LEASES, RENEW_LEASES, TAKE_TASKS};
use crate::LeaseClock;
use crate::fault::Fault;
use crate::pool::Pool;
use crate::session::Param;

/// Moves the ends of leases as far as they are alive, and answers the tasks whose lease is over. To do it again changes nothing.
pub(crate) async fn renew(
    pool: &Pool,
    clock: LeaseClock,
    leases: &[HeldLease],
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<TaskId>, Fault> {
    let mut held: Vec<&HeldLease> = leases.iter().collect();
    held.sort_unstable_by_key(|lease| Key::of(&lease.task_id));
    let duration = until.unix_millis() - now.unix_millis();
    let now = (clock == LeaseClock::Caller).then_some(now.unix_millis());
    // Most have a row of their own; those that were taken since the last time get one.
    for (take, renew) in [(LOCK_LEASES, RENEW_LEASES), (TAKE_TASKS, MOVE_LEASES)] {
        if held.is_empty() {
            break;
        }
        let keys: Vec<Key<'_>> = held.iter().map(|lease| Key::of(&lease.task_id)).collect();
        let (shards, ids): (Vec<i16>, Vec<&str>) = keys.iter().map(|key| (key.shard, key.id)).unzip();
        let epochs: Vec<i64> = held.iter().map(|lease| int(lease.epoch)).collect();
        let taken: [Param<'_>; 2] = [&shards, &ids];
        let renewed: [Param<'_>; 5] = [&shards, &ids, &epochs, &now, &duration];
        let rows = pool.transact(&[(take, &taken), (renew, &renewed)]).await?;
        let mut renewed = vec![false; held.len()];
        for row in &rows {
            let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
            if let Some(renewed) = renewed.get_mut(place) {
                *renewed = true;
            }
        }
        let mut over = renewed.into_iter();
        held.retain(|_| over.next() == Some(false));
    }
    // Told in the order in which they were asked for.
    let named = |lease: &'_ HeldLease| (lease.task_id.clone(), lease.epoch);
    let over: BTreeSet<(TaskId, u64)> = held.into_iter().map(named).collect();
    let lost = leases.iter().filter(|lease| over.contains(&named(lease)));
    Ok(lost.map(|lease| lease.task_id.clone()).collect())
}

/// Writes something, to see whether the database takes it.
pub(crate) async fn check(pool: &Pool) -> Result<(), Fault> {
    pool.query(CHECK, &[]).await.map(drop)
}

/// Lets all leases run out that are alive, and answers how many there were.
pub(crate) async fn expire(pool: &Pool, now: Timestamp) -> Result<u64, Fault> {
    let now = now.unix_millis();
    let mut expired = 0;
    for sql in [EXPIRE_RENEWED, EXPIRE_FRESH] {
        expired += pool.query(sql, &[&now]).await?.len() as u64;
    }
    Ok(expired)
}
