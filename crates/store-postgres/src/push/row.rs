use bytes::Bytes;
use longhaul_protocol::{PushConfigId, Timestamp};
use longhaul_store::{DeadDelivery, DueDelivery, HostState, PushConfig, StoreError};
use tokio_postgres::Row;

use crate::reader::row::{counter, get, id, scope, task_id, time};

/// How many columns `columns!` has.
const CONFIG_COLUMNS: usize = 7;

/// A config, from the columns of `columns!`.
pub(super) fn config(row: &Row, first: usize) -> Result<PushConfig, StoreError> {
    let secrets: Option<&[u8]> = get(row, first + 4)?;
    Ok(PushConfig {
        id: config_id(row, first)?,
        url: get(row, first + 1)?,
        host: get(row, first + 2)?,
        scheme: get(row, first + 3)?,
        secrets: secrets.map(Bytes::copy_from_slice),
        version: get(row, first + 5)?,
        created_at: time(row, first + 6)?,
    })
}

pub(super) fn config_id(row: &Row, column: usize) -> Result<PushConfigId, StoreError> {
    id(row, column, |text| PushConfigId::new(text))
}

fn small(row: &Row, column: usize, what: &'static str) -> Result<u32, StoreError> {
    let count: i64 = get(row, column)?;
    u32::try_from(count).map_err(|_| StoreError::corrupt(format!("{what} is {count}")))
}

fn some_time(row: &Row, column: usize) -> Result<Option<Timestamp>, StoreError> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_unix_millis))
}

/// A delivery that was claimed, from what stands behind the turn and the place in it.
pub(super) fn claimed(row: &Row, host_failures: u32) -> Result<DueDelivery, StoreError> {
    const CONFIG: usize = 3;
    const OTHER: usize = CONFIG + CONFIG_COLUMNS;
    Ok(DueDelivery {
        is_dead: get(row, 2)?,
        config: config(row, CONFIG)?,
        scope: scope(row, OTHER)?,
        task_id: task_id(row, OTHER + 2)?,
        last_sequence: counter(row, OTHER + 3, "the last sequence of a push config")?,
        sequence: counter(row, OTHER + 4, "the sequence of a delivery")?,
        epoch: counter(row, OTHER + 5, "the epoch of a delivery")?,
        attempts: small(row, OTHER + 6, "the number of attempts")?,
        first_attempt_at: some_time(row, OTHER + 7)?,
        host_failures,
    })
}

pub(super) fn dead(row: &Row) -> Result<DeadDelivery, StoreError> {
    Ok(DeadDelivery {
        scope: scope(row, 0)?,
        task_id: task_id(row, 2)?,
        config_id: config_id(row, 3)?,
        url: get(row, 4)?,
        sequence: counter(row, 5, "the sequence of a dead delivery")?,
        attempts: small(row, 6, "the number of attempts")?,
        died_at: time(row, 7)?,
        error: get(row, 8)?,
    })
}

pub(super) fn host(row: &Row) -> Result<HostState, StoreError> {
    Ok(HostState { failures: small(row, 0, "the number of failures")?, open_until: some_time(row, 1)? })
}

/// A host that may be sent to, and how many attempts at it have failed.
pub(super) fn host_due(row: &Row) -> Result<(String, u32), StoreError> {
    Ok((get(row, 0)?, small(row, 1, "the number of failures")?))
}
