use std::collections::BTreeMap;

use longhaul_protocol::Timestamp;

use crate::columns::ceil_millis;

/// Collects the tasks whose status is the oldest, out of parts that are looked through one after the other. What was found so
/// far says how old a task must be to be worth a look in the next part.
#[derive(Debug)]
pub struct Oldest<K, V> {
    found: BTreeMap<(i64, K), V>,
    before: i64,
    limit: usize,
}

impl<K: Ord, V> Oldest<K, V> {
    /// Looks for at most `limit` tasks with a status older than `before`.
    #[must_use]
    pub fn new(before: Timestamp, limit: usize) -> Self {
        Self { found: BTreeMap::new(), before: ceil_millis(before), limit }
    }

    /// Only tasks of an earlier millisecond than this can be among the oldest.
    #[must_use]
    pub fn before(&self) -> i64 {
        self.before
    }

    /// Takes in a task: the millisecond of its status, what tells it from others, and what is wanted of it.
    pub fn add(&mut self, status_time: i64, key: K, value: V) {
        self.found.insert((status_time, key), value);
        while self.found.len() > self.limit {
            self.found.pop_last();
        }
        if self.found.len() == self.limit {
            let last = self.found.last_key_value().map_or(i64::MIN, |((last, _), _)| *last);
            self.before = self.before.min(last.saturating_add(1));
        }
    }

    /// The oldest tasks, the oldest first.
    pub fn into_found(self) -> impl Iterator<Item = (K, V)> {
        self.found.into_iter().map(|((_, key), value)| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_newer_than_all_that_are_wanted_is_not_worth_a_look() {
        let mut oldest = Oldest::new(Timestamp::from_unix_millis(100), 2);
        assert_eq!(oldest.before(), 100);
        for (time, key) in [(50, 1), (70, 2), (60, 3)] {
            oldest.add(time, key, ());
        }
        // Of the same millisecond, one with a smaller key may come.
        assert_eq!(oldest.before(), 61);
        oldest.add(60, 0, ());
        assert_eq!(oldest.into_found().map(|(key, ())| key).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn none_are_kept_when_none_are_wanted() {
        let mut oldest = Oldest::new(Timestamp::from_unix_millis(100), 0);
        oldest.add(50, 1, ());
        assert_eq!(oldest.into_found().count(), 0);
    }
}
