//! The hosts that are sent to, and what waits for them.

use longhaul_protocol::Timestamp;
use longhaul_store::{HostState, PushBacklog, StoreError};

use super::{row, statements};
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reader::row::{counter, get};

pub(super) async fn state(pool: &Pool, host: &str) -> Result<HostState, Fault> {
    let read = pool.query_opt(statements::HOST, &[&host]).await?;
    Ok(read.map(|read| row::host(&read)).transpose()?.unwrap_or_default())
}

pub(super) async fn set(pool: &Pool, host: &str, state: &HostState) -> Result<(), Fault> {
    if *state == HostState::default() {
        return pool.query(statements::REMOVE_HOST, &[&host]).await.map(drop);
    }
    let (failures, open_until) = (i64::from(state.failures), state.open_until.map(Timestamp::unix_millis));
    pool.query(statements::PUT_HOST, &[&host, &failures, &open_until]).await.map(drop)
}

pub(super) async fn next_delivery(pool: &Pool) -> Result<Option<Timestamp>, Fault> {
    let next = pool.query_opt(statements::NEXT, &[]).await?;
    let next: Option<i64> = next.map(|row| get(&row, 0)).transpose()?.flatten();
    Ok(next.map(Timestamp::from_unix_millis))
}

pub(super) async fn backlog(pool: &Pool) -> Result<PushBacklog, Fault> {
    let counted = pool.query_opt(statements::BACKLOG, &[]).await?;
    let counted = counted.ok_or_else(|| StoreError::corrupt("a count without an answer"))?;
    Ok(PushBacklog {
        configs: counter(&counted, 0, "a count of push configs")?,
        dead: counter(&counted, 1, "a count of dead deliveries")?,
    })
}
