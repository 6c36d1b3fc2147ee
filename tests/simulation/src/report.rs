use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::SimClock;

/// The promises, in the order in which the design gives them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Promise {
    /// What a caller was told is accepted is in the store.
    Kept,
    /// What was told is in the store.
    ToldWhatIsStored,
    /// Every task comes to rest, and whoever waits for it is answered.
    ComesToRest,
    /// One log, one order.
    OneOrder,
    /// A terminal state is final.
    Final,
    /// Nobody writes without its lease.
    Fenced,
    /// Nobody sees another's task.
    Private,
    /// Nothing panics, and no fault of our own is told.
    Sound,
}

/// One promise that was broken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// Which.
    pub promise: Promise,
    /// How, and of which task.
    pub what: String,
    /// When, in milliseconds since the start.
    pub at: i64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} ms: {}", self.promise, self.at, self.what)
    }
}

/// What happened, as a hash and if wanted as lines, and which promises were broken.
#[derive(Debug)]
pub struct Trace {
    clock: Arc<SimClock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    hash: Hash,
    lines: Option<Vec<String>>,
    violations: Vec<Violation>,
    at: i64,
    calls: u64,
    counts: BTreeMap<&'static str, u64>,
}

/// How many violations are kept of one run.
const VIOLATIONS_MAX: usize = 50;
/// How many calls of the store in one millisecond are taken for an endless loop.
const CALLS_MAX: u64 = 50_000;

impl Trace {
    pub(crate) fn new(clock: Arc<SimClock>, keeps_lines: bool) -> Arc<Self> {
        let hash = Hash(0xcbf2_9ce4_8422_2325);
        let lines = keeps_lines.then(Vec::new);
        Arc::new(Self {
            clock,
            state: Mutex::new(State { hash, lines, violations: Vec::new(), at: 0, calls: 0, counts: BTreeMap::new() }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of something that happened.
    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        let at = self.clock.elapsed();
        let mut state = self.state();
        // Writing into a hash or a string does not fail.
        let _ = state.hash.write_fmt(format_args!("{at} {what}\n"));
        if let Some(lines) = &mut state.lines {
            lines.push(format!("{at} {what}"));
        }
    }

    /// Counts a call of the store.
    ///
    /// # Panics
    ///
    /// When there are so many in one millisecond that the engine must be in an endless loop.
    pub(crate) fn called(&self) {
        let at = self.clock.elapsed();
        let mut state = self.state();
        state.calls = if state.at == at { state.calls + 1 } else { 1 };
        state.at = at;
        let calls = state.calls;
        drop(state);
        assert!(calls < CALLS_MAX, "the engine asks the store without end");
    }

    /// Counts something of which a report says how often it happened.
    pub(crate) fn count(&self, what: &'static str) {
        *self.state().counts.entry(what).or_default() += 1;
    }

    /// A promise was broken.
    pub(crate) fn broken(&self, promise: Promise, what: impl Into<String>) {
        let (at, what) = (self.clock.elapsed(), what.into());
        self.note(format_args!("broken: {promise:?}: {what}"));
        let mut state = self.state();
        if state.violations.len() < VIOLATIONS_MAX {
            state.violations.push(Violation { promise, what, at });
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.state().hash.0
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.state().counts.clone()
    }

    pub(crate) fn take(&self) -> (Vec<Violation>, Vec<String>) {
        let mut state = self.state();
        (std::mem::take(&mut state.violations), state.lines.take().unwrap_or_default())
    }
}

/// FNV-1a.
#[derive(Clone, Copy, Debug)]
struct Hash(u64);

impl fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Ok(())
    }
}
