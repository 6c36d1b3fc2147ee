//! How many tasks are in each state, by scope and by context.

use longhaul_protocol::TaskState;

/// How many tasks came to be in each state, less those that left it.
pub(crate) type Counts = [i64; 8];

/// Counts tasks of a state.
pub(crate) fn add(counts: &mut Counts, state: TaskState, by: i64) {
    let place = usize::try_from(state.number() - 1).unwrap_or_default();
    if let Some(count) = counts.get_mut(place) {
        *count += by;
    }
}
