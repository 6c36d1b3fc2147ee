use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Remembers what was used lately, within a bound: two generations, of which the elder is forgotten when the younger
/// is full. What is used moves into the younger one.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    generation_max: usize,
}

impl<K: Clone + Eq + Hash, V: Clone> Recent<K, V> {
    /// Remembers at least `generation_max` entries and at most twice as many.
    pub(crate) fn new(generation_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), generation_max }
    }

    pub(crate) fn get<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.insert(key, value.clone());
        Some(value)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.generation_max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(crate) fn remove<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut recent = Recent::new(10);
        recent.insert(0, 0);
        for number in 1..100 {
            recent.insert(number, number);
            assert_eq!(recent.get(&0), Some(0));
        }
        assert_eq!(recent.get(&1), None);
        assert_eq!(recent.get(&99), Some(99));
        assert!(recent.young.len() + recent.old.len() <= 20);
    }

    #[test]
    fn the_newest_value_wins_over_generations() {
        let mut recent = Recent::new(2);
        for (key, value) in [(1, 1), (2, 2), (3, 3), (1, 10), (4, 4)] {
            recent.insert(key, value);
        }
        assert_eq!(recent.get(&1), Some(10));
        recent.remove(&1);
        assert_eq!(recent.get(&1), None);
    }
}
