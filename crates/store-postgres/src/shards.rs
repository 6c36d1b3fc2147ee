//! In which shard rows lie: the first column of every primary key.

use longhaul_protocol::{ContextId, MessageId, TaskId, Tenant};
use longhaul_store::{Scope, shard, shard_of_task, shard_of_text};

/// Everything of a task.
pub(crate) fn of_task(task_id: &TaskId) -> i16 {
    to_column(shard_of_task(task_id))
}

/// That a message was accepted.
pub(crate) fn of_message(tenant: &Tenant, message_id: &MessageId) -> i16 {
    to_column(shard_of_text(&format!("{tenant}\0{message_id}")))
}

/// The count of a context's tasks; without a context, that of all tasks of the scope.
pub(crate) fn of_counts(scope: &Scope, context: Option<&ContextId>) -> i16 {
    let of_tenant = |tenant: &Tenant| shard_of_text(&format!("{tenant}\0"));
    to_column(context.map_or_else(|| of_tenant(&scope.tenant), |context| shard(&scope.tenant, context)))
}

fn to_column(shard: u16) -> i16 {
    i16::try_from(shard).unwrap_or(i16::MAX)
}
