//! How values lie in columns: see [`longhaul_store::columns`]; and the keys of events and messages.

pub(crate) use longhaul_store::columns::*;

const PLACE_BITS: u32 = 26;
/// The last place in a task's log or history: 67,108,863.
pub(crate) const PLACE_MAX: u64 = (1 << PLACE_BITS) - 1;
/// The greatest number of a task, so that every key fits.
pub(crate) const TASK_NUMBER_MAX: i64 = (1 << (63 - PLACE_BITS)) - 1;

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
