//! The rows of a batch, column by column: all rows of one kind are written by one statement.

use std::borrow::Cow;

use tokio_postgres::types::ToSql;

use super::statements;
use crate::session::Param;

/// A kind of row, and the columns of many of them.
macro_rules! rows {
    ($row:ident, $columns:ident, $sql:expr, { $($column:ident: $type:ty),* $(,)? }) => {
        #[derive(Debug)]
        pub(super) struct $row<'b> {
            $(pub(super) $column: $type,)*
        }

        #[derive(Debug)]
        pub(super) struct $columns<'b> {
            $($column: Vec<$type>,)*
        }

        impl Default for $columns<'_> {
            fn default() -> Self {
                Self { $($column: Vec::new(),)* }
            }
        }

        impl<'b> $columns<'b> {
            pub(super) fn push(&mut self, row: $row<'b>) {
                $(self.$column.push(row.$column);)*
            }
        }

        impl Columns for $columns<'_> {
            fn sql(&self) -> &'static str {
                $sql
            }

            fn len(&self) -> usize {
                [$(self.$column.len()),*].into_iter().max().unwrap_or(0)
            }

            fn params(&self) -> Vec<Param<'_>> {
                vec![$(&self.$column as &(dyn ToSql + Sync)),*]
            }
        }
    };
}

/// The columns of many rows of one kind.
pub(super) trait Columns: Send + Sync {
    /// The statement that writes them.
    fn sql(&self) -> &'static str;

    /// How many rows there are.
    fn len(&self) -> usize;

    /// The statement's parameters: an array for each column.
    fn params(&self) -> Vec<Param<'_>>;
}

rows!(NewTaskRow, NewTasks, statements::INSERT_TASKS, {
    shard: i16,
    id: &'b str,
    tenant: Cow<'b, str>,
    owner: Cow<'b, str>,
    context_id: Cow<'b, str>,
    state: i16,
    status_time: i64,
    version: i64,
    last_sequence: i64,
    epoch: i64,
    attempt: i64,
    leased: bool,
    due_at: Option<i64>,
    cancel_requested: bool,
    messages: i64,
    turn_message: i64,
    history: i64,
    status: bool,
    compaction: i16,
    pushes: bool,
    waiting: Option<String>,
    failures: Option<&'b str>,
    worker: Option<&'b str>,
});
rows!(TaskRow, Tasks, statements::UPDATE_TASKS, {
    shard: i16,
    id: &'b str,
    state: i16,
    status_time: i64,
    version: i64,
    last_sequence: i64,
    epoch: i64,
    attempt: i64,
    leased: bool,
    due_at: Option<i64>,
    cancel_requested: bool,
    messages: i64,
    turn_message: i64,
    history: i64,
    status: bool,
    compaction: i16,
    pushes: bool,
    waiting: Option<String>,
    failures: Option<&'b str>,
    worker: Option<&'b str>,
});
rows!(ExtendedRow, Extended, statements::EXTEND_TASKS, {
    shard: i16,
    id: &'b str,
    last_sequence: i64,
    history: i64,
    pushes: bool,
});
rows!(EventRow, Events, statements::INSERT_EVENTS, {
    shard: i16,
    task_id: &'b str,
    sequence: i64,
    kind: i16,
    time: i64,
    payload: &'b [u8],
});
rows!(MessageRow, Messages, statements::INSERT_MESSAGES, {
    shard: i16,
    task_id: &'b str,
    ordinal: i64,
    sequence: i64,
    payload: &'b [u8],
    request: Option<&'b [u8]>,
});
rows!(StatusRow, Statuses, statements::PUT_STATUSES, { shard: i16, task_id: &'b str, message: &'b [u8] });
rows!(NoStatusRow, NoStatuses, statements::REMOVE_STATUSES, { shard: i16, task_id: &'b str });
rows!(MetadataRow, Metadata, statements::PUT_METADATA, { shard: i16, task_id: &'b str, metadata: &'b [u8] });
rows!(CheckpointRow, Checkpoints, statements::PUT_CHECKPOINTS, { shard: i16, task_id: &'b str, data: &'b [u8] });
rows!(NoLeaseRow, NoLeases, statements::REMOVE_LEASES, { shard: i16, task_id: &'b str });
rows!(AcceptedKey, NotAccepted, statements::REMOVE_ACCEPTED, {
    shard: i16,
    tenant: &'b str,
    owner: &'b str,
    message_id: &'b str,
});
rows!(AcceptedRow, Accepted, statements::INSERT_ACCEPTED, {
    shard: i16,
    tenant: &'b str,
    owner: &'b str,
    message_id: &'b str,
    task_id: &'b str,
    task_shard: i16,
    digest: &'b [u8],
    expires_at: i64,
});
rows!(CountRow, CountRows, statements::INSERT_COUNTS, {
    shard: i16,
    tenant: Cow<'b, str>,
    owner: Cow<'b, str>,
    context_id: Cow<'b, str>,
    batch: i64,
    n1: i64,
    n2: i64,
    n3: i64,
    n4: i64,
    n5: i64,
    n6: i64,
    n7: i64,
    n8: i64,
});
rows!(LockedPushesRow, LockedPushes, statements::LOCK_PUSHES, { shard: i16, id: &'b str });
rows!(ReplacedPushRow, ReplacedPushes, statements::REPLACE_PUSHES, {
    shard: i16,
    task_id: &'b str,
    id: &'b str,
    created_at: i64,
    host: &'b str,
    url: &'b str,
    scheme: Option<&'b str>,
    version: &'b str,
    secrets: Option<&'b [u8]>,
    now: i64,
});
rows!(NewPushRow, NewPushes, statements::INSERT_PUSHES, {
    shard: i16,
    task_id: &'b str,
    id: &'b str,
    tenant: Cow<'b, str>,
    owner: Cow<'b, str>,
    cursor: i64,
    last_sequence: i64,
    due_at: Option<i64>,
    created_at: i64,
    host: &'b str,
    url: &'b str,
    scheme: Option<&'b str>,
    version: &'b str,
    secrets: Option<&'b [u8]>,
});
rows!(AppendedRow, Appended, statements::APPEND_PUSHES, { shard: i16, id: &'b str, last_sequence: i64, now: i64 });
rows!(LockedDeadRow, LockedDead, statements::LOCK_DEAD_OF_PUSHES, { shard: i16, task_id: &'b str, id: &'b str });
rows!(MovedDeadRow, MovedDead, statements::MOVE_DEAD, {
    shard: i16,
    task_id: &'b str,
    id: &'b str,
    host: &'b str,
    now: i64,
});
