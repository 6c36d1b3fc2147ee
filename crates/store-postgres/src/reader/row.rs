use bytes::Bytes;
use longhaul_lifecycle::{TaskHead, WorkerId};
use longhaul_protocol::{ContextId, InvalidId, Owner, TaskId, Tenant, Timestamp, wire};
use longhaul_store::columns::{self, count};
use longhaul_store::{ArtifactFold, EventKind, Scope, StoreError, StoredEvent, StoredMessage, artifact_update};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::fault::Fault;

/// How many columns `head!` has.
pub(super) const HEAD_COLUMNS: usize = 17;
/// How many columns `view!` has.
pub(super) const VIEW_COLUMNS: usize = 4;

/// A value of a column; what is of another kind, or absent, was written by something else.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| {
        let name = row.columns().get(column).map_or("", |column| column.name());
        StoreError::corrupt(format!("column {column} ({name}): {error}"))
    })
}

/// A counter.
pub(crate) fn counter(row: &Row, column: usize, what: &'static str) -> Result<u64, StoreError> {
    count(get(row, column)?, what)
}

/// A task's head, from the columns of `head!`.
pub(super) fn head(row: &Row, first: usize) -> Result<TaskHead, Fault> {
    let attempt: i64 = get(row, first + 7)?;
    let worker: Option<&str> = get(row, first + 15)?;
    let status: Option<&[u8]> = get(row, first + 16)?;
    Ok(TaskHead {
        id: task_id(row, first)?,
        context_id: id(row, first + 1, |text| ContextId::new(text))?,
        state: columns::state(get::<i16>(row, first + 2)?.into())?,
        status_message: status.map(columns::read_message).transpose()?,
        status_timestamp: time(row, first + 3)?,
        version: counter(row, first + 4, "the version of a task")?,
        last_sequence: counter(row, first + 5, "the last sequence of a task")?,
        epoch: counter(row, first + 6, "the epoch of a task")?,
        attempt: u32::try_from(attempt)
            .map_err(|_| StoreError::corrupt(format!("the attempt of a task is {attempt}")))?,
        leased: get(row, first + 8)?,
        worker: WorkerId::new(worker.unwrap_or_default()),
        due_at: get::<Option<i64>>(row, first + 9)?.map(Timestamp::from_unix_millis),
        cancel_requested: get(row, first + 10)?,
        messages: counter(row, first + 11, "the message count of a task")?,
        turn_message: counter(row, first + 12, "the turn's message of a task")?,
        waiting: columns::read_waiting(get(row, first + 13)?)?,
        failures: columns::read_failures(get(row, first + 14)?)?,
    })
}

/// What belongs to a task's view besides its head.
pub(super) struct View {
    pub(super) metadata: Option<longhaul_protocol::JsonObject>,
    pub(super) history: Vec<wire::Message>,
    pub(super) artifacts: Vec<wire::Artifact>,
}

/// From the columns of `view!`.
pub(super) fn view(row: &Row, first: usize) -> Result<View, Fault> {
    let metadata: Option<&[u8]> = get(row, first)?;
    let latest: Vec<&[u8]> = get(row, first + 1)?;
    let sequences: Option<Vec<i64>> = get(row, first + 2)?;
    let payloads: Option<Vec<&[u8]>> = get(row, first + 3)?;
    let mut fold = ArtifactFold::default();
    for (sequence, payload) in sequences.into_iter().flatten().zip(payloads.into_iter().flatten()) {
        let sequence = count(sequence, "the sequence of an event")?;
        if let Some(update) = artifact_update(EventKind::Artifact, sequence, payload)? {
            fold.apply(update);
        }
    }
    Ok(View {
        metadata: metadata.map(columns::read_metadata).transpose()?,
        history: latest.into_iter().rev().map(columns::read_wire_message).collect::<Result<_, _>>()?,
        artifacts: fold.into_artifacts(),
    })
}

/// A scope, from two columns.
pub(crate) fn scope(row: &Row, first: usize) -> Result<Scope, StoreError> {
    let (tenant, owner) = (id(row, first, |text| Tenant::new(text))?, id(row, first + 1, |text| Owner::new(text))?);
    Ok(Scope { tenant, owner })
}

pub(crate) fn task_id(row: &Row, column: usize) -> Result<TaskId, StoreError> {
    id(row, column, |text| TaskId::new(text))
}

/// An event, from the columns sequence, kind, time and payload.
pub(crate) fn event(row: &Row, first: usize) -> Result<StoredEvent, StoreError> {
    Ok(StoredEvent {
        sequence: counter(row, first, "the sequence of an event")?,
        kind: EventKind::from_code(get::<i16>(row, first + 1)?.into())?,
        timestamp: time(row, first + 2)?,
        payload: Bytes::copy_from_slice(get(row, first + 3)?),
    })
}

pub(super) fn message(row: &Row) -> Result<StoredMessage, StoreError> {
    Ok(StoredMessage {
        ordinal: counter(row, 0, "the ordinal of a message")?,
        sequence: counter(row, 1, "the sequence of a message")?,
        message: columns::read_message(get(row, 2)?)?,
        request: columns::read_request(get(row, 3)?)?,
    })
}

pub(crate) fn time(row: &Row, column: usize) -> Result<Timestamp, StoreError> {
    get(row, column).map(Timestamp::from_unix_millis)
}

pub(crate) fn id<T>(
    row: &Row,
    column: usize,
    read: impl FnOnce(&str) -> Result<T, InvalidId>,
) -> Result<T, StoreError> {
    read(get(row, column)?).map_err(|error| StoreError::corrupt(format!("an id: {error}")))
}
