//! What was received before: of each config the sequences, of other senders the ids. Bounded, whatever is sent.

use std::collections::{BTreeMap, HashMap};

/// Of how many stretches of sequences a config's memory consists at the most.
const STRETCHES_MAX: usize = 64;

/// Where an event stands among those that were handed over before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Order {
    /// Right behind the last one, or the first of its config that came here.
    Next,
    /// Others before it did not come: they were given up, and may come late.
    AfterGap {
        /// The first that is missing.
        first_missing: u64,
    },
    /// Later ones were handed over before: it had been given up, and was sent again.
    Late,
    /// Its sender does not say.
    Unknown,
}

/// What an event is known by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Name {
    /// One of Longhaul's deliveries: `<task>_<sequence>_<config>`.
    Numbered { stream: String, sequence: u64 },
    /// Another id.
    Id(String),
}

impl Name {
    /// Reads an id. It is only one of Longhaul's if it is of the task that the event is of.
    pub fn read(id: &str, task_id: &str) -> Self {
        let numbered = id.strip_prefix(task_id).and_then(|rest| rest.strip_prefix('_')).and_then(|rest| {
            let (sequence, config) = rest.split_once('_')?;
            let is_number = sequence.bytes().all(|byte| byte.is_ascii_digit()) && !config.is_empty();
            let sequence = sequence.parse().ok().filter(|sequence| is_number && *sequence > 0)?;
            Some(Self::Numbered { stream: format!("{task_id}_{config}"), sequence })
        });
        numbered.unwrap_or_else(|| Self::Id(id.to_owned()))
    }

    /// By what its memory is found.
    fn key(&self) -> &str {
        match self {
            Self::Numbered { stream, .. } => stream,
            Self::Id(id) => id,
        }
    }

    fn sequence(&self) -> u64 {
        match self {
            Self::Numbered { sequence, .. } => *sequence,
            Self::Id(_) => 1,
        }
    }
}

/// What becomes of an event that came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Entry {
    /// It is to be handled, and nothing else of its config meanwhile.
    Begun(Order),
    /// It was handled before.
    Known,
    /// Another of its config is being handled.
    Busy,
}

/// All that is remembered.
#[derive(Debug)]
pub(super) struct Memory {
    streams: HashMap<String, Stream>,
    /// Which were used longest ago.
    by_use: BTreeMap<u64, String>,
    uses: u64,
    remembered_max: usize,
}

#[derive(Debug, Default)]
struct Stream {
    /// First and last sequence of what was handed over without a gap.
    stretches: BTreeMap<u64, u64>,
    is_busy: bool,
    used: u64,
}

impl Memory {
    pub fn new(remembered_max: usize) -> Self {
        let (streams, by_use) = (HashMap::new(), BTreeMap::new());
        Self { streams, by_use, uses: 0, remembered_max: remembered_max.max(1) }
    }

    pub fn begin(&mut self, name: &Name) -> Entry {
        let sequence = name.sequence();
        let stream = self.used(name.key());
        if stream.is_busy {
            return Entry::Busy;
        }
        if stream.holds(sequence) {
            return Entry::Known;
        }
        stream.is_busy = true;
        let order = match (name, stream.last()) {
            (Name::Id(_), _) => Order::Unknown,
            (_, Some(last)) if sequence < last => Order::Late,
            (_, Some(last)) if sequence > last + 1 => Order::AfterGap { first_missing: last + 1 },
            (_, Some(_) | None) => Order::Next,
        };
        self.forget_the_oldest();
        Entry::Begun(order)
    }

    /// It was handled, and is known from now on.
    pub fn done(&mut self, name: &Name) {
        let stream = self.used(name.key());
        stream.is_busy = false;
        stream.add(name.sequence(), name.sequence());
    }

    /// It was not handled: it may come again.
    pub fn undo(&mut self, name: &Name) {
        if let Some(stream) = self.streams.get_mut(name.key()) {
            stream.is_busy = false;
        }
    }

    /// All up to this one were handled, by a process before this one.
    pub fn restore(&mut self, name: &Name) {
        self.used(name.key()).add(1, name.sequence());
        self.forget_the_oldest();
    }

    fn used(&mut self, key: &str) -> &mut Stream {
        self.uses += 1;
        let stream = self.streams.entry(key.to_owned()).or_default();
        self.by_use.remove(&stream.used);
        stream.used = self.uses;
        self.by_use.insert(self.uses, key.to_owned());
        stream
    }

    fn forget_the_oldest(&mut self) {
        while self.streams.len() > self.remembered_max {
            let Some((_, key)) = self.by_use.pop_first() else { return };
            self.streams.remove(&key);
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.streams.len().max(self.by_use.len())
    }
}

impl Stream {
    fn last(&self) -> Option<u64> {
        self.stretches.last_key_value().map(|(_, last)| *last)
    }

    fn holds(&self, sequence: u64) -> bool {
        self.stretches.range(..=sequence).next_back().is_some_and(|(_, last)| sequence <= *last)
    }

    fn add(&mut self, first: u64, last: u64) {
        let (mut first, mut last) = (first, last);
        // Whatever it touches becomes one stretch with it.
        while let Some((&known_first, &known_last)) = self.stretches.range(..=last.saturating_add(1)).next_back()
            && known_last.saturating_add(1) >= first
        {
            self.stretches.remove(&known_first);
            (first, last) = (first.min(known_first), last.max(known_last));
        }
        self.stretches.insert(first, last);
        // Rather twice than never: the oldest is forgotten, not joined.
        while self.stretches.len() > STRETCHES_MAX {
            self.stretches.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(sequence: u64) -> Name {
        Name::read(&format!("t_{sequence}_c"), "t")
    }

    fn handle(memory: &mut Memory, name: &Name) -> Entry {
        let entry = memory.begin(name);
        if matches!(entry, Entry::Begun(_)) {
            memory.done(name);
        }
        entry
    }

    #[test]
    fn ids_of_longhaul_tell_their_sequence() {
        let stream = "t-1_a_b".to_owned();
        assert_eq!(Name::read("t-1_12_a_b", "t-1"), Name::Numbered { stream, sequence: 12 });
        for other in [
            "t-2_12_a",
            "t-1_12_",
            "t-1__a",
            "t-1_x_a",
            "t-1_+1_a",
            "t-1_0_a",
            "t-1_99999999999999999999_a",
            "msg_1",
            "",
        ] {
            assert_eq!(Name::read(other, "t-1"), Name::Id(other.to_owned()));
        }
    }

    #[test]
    fn each_is_handed_over_once_and_its_order_is_told() {
        let mut memory = Memory::new(10);
        let order = |memory: &mut Memory, sequence| match handle(memory, &numbered(sequence)) {
            Entry::Begun(order) => Some(order),
            Entry::Known | Entry::Busy => None,
        };
        assert_eq!(order(&mut memory, 3), Some(Order::Next), "where it begins is not known");
        assert_eq!(order(&mut memory, 4), Some(Order::Next));
        assert_eq!(order(&mut memory, 4), None);
        assert_eq!(order(&mut memory, 7), Some(Order::AfterGap { first_missing: 5 }));
        assert_eq!(order(&mut memory, 6), Some(Order::Late));
        assert_eq!(order(&mut memory, 1), Some(Order::Late), "it had been given up before this receiver was there");
        assert_eq!(order(&mut memory, 5), Some(Order::Late));
        for sequence in [1, 3, 4, 5, 6, 7] {
            assert_eq!(order(&mut memory, sequence), None, "{sequence}");
        }
        assert_eq!(order(&mut memory, 8), Some(Order::Next));
        assert_eq!(memory.streams["t_c"].stretches, BTreeMap::from([(1, 1), (3, 8)]));
    }

    #[test]
    fn what_was_not_handled_comes_again_and_nothing_overtakes_it() {
        let mut memory = Memory::new(10);
        assert_eq!(memory.begin(&numbered(1)), Entry::Begun(Order::Next));
        assert_eq!((memory.begin(&numbered(1)), memory.begin(&numbered(2))), (Entry::Busy, Entry::Busy));
        memory.undo(&numbered(1));
        assert_eq!(handle(&mut memory, &numbered(1)), Entry::Begun(Order::Next));
        assert_eq!(handle(&mut memory, &numbered(1)), Entry::Known);
    }

    #[test]
    fn a_restored_memory_knows_what_came_before() {
        let mut memory = Memory::new(10);
        memory.restore(&numbered(5));
        assert_eq!(handle(&mut memory, &numbered(5)), Entry::Known);
        assert_eq!(handle(&mut memory, &numbered(1)), Entry::Known);
        assert_eq!(handle(&mut memory, &numbered(6)), Entry::Begun(Order::Next));
    }

    #[test]
    fn memory_is_bounded() {
        let mut memory = Memory::new(3);
        for number in 0..100 {
            let id = Name::Id(number.to_string());
            assert_eq!(handle(&mut memory, &id), Entry::Begun(Order::Unknown));
            assert_eq!(handle(&mut memory, &id), Entry::Known);
        }
        assert_eq!(memory.len(), 3);
        for number in 1..=200 {
            handle(&mut memory, &numbered(2 * number));
        }
        assert_eq!((memory.len(), memory.streams["t_c"].stretches.len()), (3, STRETCHES_MAX));
        assert_eq!(handle(&mut memory, &numbered(400)), Entry::Known);
        assert_eq!(handle(&mut memory, &numbered(2)), Entry::Begun(Order::Late), "rather twice than never");
    }
}
