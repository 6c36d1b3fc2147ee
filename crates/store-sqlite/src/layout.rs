//! How values lie in columns: see [`longhaul_store::columns`]; and the keys of events and messages.

use longhaul_protocol::TaskState;
pub(crate) use longhaul_store::columns::*;
use rusqlite::ToSql;
use rusqlite::types::ToSqlOutput;

const PLACE_BITS: u32 = 26;
/// The last place in a task's log or history: 67,108,863.
pub(crate) const PLACE_MAX: u64 = (1 << PLACE_BITS) - 1;
/// The greatest number of a task, so that every key fits.
pub(crate) const TASK_NUMBER_MAX: i64 = (1 << (63 - PLACE_BITS)) - 1;

/// What is in the column `compaction`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Compaction {
    /// The log is whole.
    Whole = 0,
    /// The log is whole, and to be merged one day.
    Due = 1,
    /// The log was merged.
    Merged = 2,
}

impl Compaction {
    /// What a task's row says when a commit has written its head.
    pub(crate) fn of_head(state: TaskState, last_sequence: u64) -> Self {
        if longhaul_store::is_compactable(state, last_sequence) { Self::Due } else { Self::Whole }
    }
}

impl ToSql for Compaction {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(*self as i64))
    }
}

/// The key of a task's event or message at a place; of its last possible one when the place is beyond.
pub(crate) fn key(task_number: i64, place: u64) -> i64 {
    (task_number << PLACE_BITS) | int(place.min(PLACE_MAX))
}

/// The place within the task: a sequence, or an ordinal.
pub(crate) fn place(key: i64) -> u64 {
    key.unsigned_abs() & PLACE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_number_and_place() {
        assert_eq!(place(key(7, 12)), 12);
        assert_eq!(key(7, PLACE_MAX) + 1, key(8, 0));
        assert!(key(TASK_NUMBER_MAX, PLACE_MAX) == i64::MAX);
    }
}
