use bytes::Bytes;
use longhaul_lifecycle::{TaskHead, WorkerId};
use longhaul_protocol::{ContextId, InvalidId, Owner, PushConfigId, TaskId, Tenant, Timestamp};
use longhaul_store::{
    Claim, DeadDelivery, DeadKey, EventKind, HostState, PushConfig, Scope, StoreError, StoredEvent, StoredMessage,
};
use rusqlite::Row;
use rusqlite::types::ValueRef;

use crate::fault::Fault;
use crate::layout;

/// A task's number and head, from the columns of `head!`.
pub(super) fn head(row: &Row<'_>) -> Result<(i64, TaskHead), Fault> {
    let status = match row.get_ref(16)? {
        ValueRef::Null => None,
        value => Some(layout::read_message(value.as_blob().map_err(|error| damaged("a status message", &error))?)?),
    };
    let attempt: i64 = row.get(8)?;
    let head = TaskHead {
        id: id(row, 1, |text| TaskId::new(text))?,
        context_id: id(row, 2, |text| ContextId::new(text))?,
        state: layout::state(row.get(3)?)?,
        status_message: status,
        status_timestamp: Timestamp::from_unix_millis(row.get(4)?),
        version: layout::count(row.get(5)?, "the version of a task")?,
        last_sequence: layout::count(row.get(6)?, "the last sequence of a task")?,
        epoch: layout::count(row.get(7)?, "the epoch of a task")?,
        attempt: u32::try_from(attempt)
            .map_err(|_| StoreError::corrupt(format!("the attempt of a task is {attempt}")))?,
        leased: row.get(9)?,
        worker: WorkerId::new(
            row.get_ref(17)?.as_str_or_null().map_err(|error| damaged("a worker", &error))?.unwrap_or_default(),
        ),
        due_at: row.get::<_, Option<i64>>(10)?.map(Timestamp::from_unix_millis),
        cancel_requested: row.get(11)?,
        messages: layout::count(row.get(12)?, "the message count of a task")?,
        turn_message: layout::count(row.get(13)?, "the turn's message of a task")?,
        waiting: layout::read_waiting(
            row.get_ref(14)?.as_str_or_null().map_err(|error| damaged("waiting messages", &error))?,
        )?,
        failures: layout::read_failures(
            row.get_ref(15)?.as_str_or_null().map_err(|error| damaged("the attempts of a task", &error))?,
        )?,
    };
    Ok((row.get(0)?, head))
}

/// A task that a worker may take, with its scope from the two columns behind those of `head!`.
pub(super) fn claim(row: &Row<'_>) -> Result<Claim, Fault> {
    Ok(Claim { scope: scope(row, 18)?, head: head(row)?.1 })
}

/// A scope, from two columns.
pub(crate) fn scope(row: &Row<'_>, first: usize) -> Result<Scope, Fault> {
    let (tenant, owner) = (id(row, first, |text| Tenant::new(text))?, id(row, first + 1, |text| Owner::new(text))?);
    Ok(Scope { tenant, owner })
}

/// A context's id, from the first column.
pub(super) fn context(row: &Row<'_>) -> Result<ContextId, Fault> {
    id(row, 0, |text| ContextId::new(text))
}

pub(super) fn event(row: &Row<'_>) -> Result<StoredEvent, Fault> {
    Ok(StoredEvent {
        sequence: layout::place(row.get(0)?),
        kind: EventKind::from_code(row.get(1)?)?,
        timestamp: Timestamp::from_unix_millis(row.get(2)?),
        payload: Bytes::from(row.get::<_, Vec<u8>>(3)?),
    })
}

pub(super) fn message(row: &Row<'_>) -> Result<StoredMessage, Fault> {
    let payload = row.get_ref(2)?.as_blob().map_err(|error| damaged("a message", &error))?;
    let request = row.get_ref(3)?.as_blob_or_null().map_err(|error| damaged("what a message came with", &error))?;
    Ok(StoredMessage {
        ordinal: layout::place(row.get(0)?),
        sequence: layout::count(row.get(1)?, "the sequence of a message")?,
        message: layout::read_message(payload)?,
        request: layout::read_request(request)?,
    })
}

pub(crate) fn accepted(row: &Row<'_>) -> Result<(TaskId, [u8; 32]), Fault> {
    Ok((task_id(row, 0)?, row.get(1)?))
}

/// A task's id and one of its push configs, from the first eight columns.
pub(crate) fn push_config(row: &Row<'_>) -> Result<(TaskId, PushConfig), Fault> {
    let config = PushConfig {
        id: config_id(row, 1)?,
        url: row.get(2)?,
        host: row.get(3)?,
        scheme: row.get(4)?,
        secrets: row.get::<_, Option<Vec<u8>>>(5)?.map(Bytes::from),
        version: row.get(6)?,
        created_at: Timestamp::from_unix_millis(row.get(7)?),
    };
    Ok((task_id(row, 0)?, config))
}

/// How a host has answered, from the first two columns.
pub(crate) fn push_host(row: &Row<'_>) -> Result<HostState, Fault> {
    let open_until = row.get::<_, Option<i64>>(1)?.map(Timestamp::from_unix_millis);
    Ok(HostState { failures: row.get(0)?, open_until })
}

/// A delivery that was given up, in the columns of the statement `dead`.
pub(crate) fn dead(row: &Row<'_>) -> Result<DeadDelivery, Fault> {
    Ok(DeadDelivery {
        scope: scope(row, 0)?,
        task_id: task_id(row, 2)?,
        config_id: config_id(row, 3)?,
        url: row.get(4)?,
        sequence: layout::count(row.get(5)?, "the sequence of a dead delivery")?,
        attempts: row.get(6)?,
        died_at: Timestamp::from_unix_millis(row.get(7)?),
        error: row.get(8)?,
    })
}

/// The key of a dead delivery, from three columns.
pub(crate) fn dead_key(row: &Row<'_>, first: usize) -> Result<DeadKey, Fault> {
    Ok(DeadKey {
        task_id: task_id(row, first)?,
        config_id: config_id(row, first + 1)?,
        sequence: layout::count(row.get(first + 2)?, "the sequence of a dead delivery")?,
    })
}

pub(super) fn task_id(row: &Row<'_>, column: usize) -> Result<TaskId, Fault> {
    id(row, column, |text| TaskId::new(text))
}

pub(super) fn config_id(row: &Row<'_>, column: usize) -> Result<PushConfigId, Fault> {
    id(row, column, |text| PushConfigId::new(text))
}

fn id<T>(row: &Row<'_>, column: usize, read: impl FnOnce(&str) -> Result<T, InvalidId>) -> Result<T, Fault> {
    let text = row.get_ref(column)?.as_str().map_err(|error| damaged("an id", &error))?;
    read(text).map_err(|error| StoreError::corrupt(format!("an id: {error}")).into())
}

fn damaged(what: &'static str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::corrupt(format!("{what}: {error}"))
}
