//! How many tasks are in each state, by scope and by context.

use longhaul_protocol::{ContextId, TaskState, Tenant};
use longhaul_store::{Scope, shard, shard_of_text};

/// How many tasks came to be in each state, less those that left it.
pub(crate) type Counts = [i64; 8];

/// Where the count of a context's tasks is kept; without a context, that of all tasks of the scope.
pub(crate) fn shard_of_counts(scope: &Scope, context: Option<&ContextId>) -> i16 {
    let of_tenant = |tenant: &Tenant| shard_of_text(&format!("{tenant}\0"));
    to_column(context.map_or_else(|| of_tenant(&scope.tenant), |context| shard(&scope.tenant, context)))
}

/// A shard as a column holds it.
pub(crate) fn to_column(shard: u16) -> i16 {
    i16::try_from(shard).unwrap_or(i16::MAX)
}

/// Counts tasks of a state.
pub(crate) fn add(counts: &mut Counts, state: TaskState, by: i64) {
    let place = usize::try_from(state.number() - 1).unwrap_or_default();
    if let Some(count) = counts.get_mut(place) {
        *count += by;
    }
}
