//! Who waits for which task. The log carries, the bell only rings: a bell holds the newest events so that most readers
//! need not ask the store, but a reader that finds a gap reads the log, and a lost ring costs one sweep.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use longhaul_protocol::TaskId;
use longhaul_store::{EventKind, NewEvent};
use tokio::sync::Notify;

const SHARDS: usize = 32;
/// How many events a bell keeps for readers that are awake, and how many bytes of them.
const RECENT_EVENTS_MAX: usize = 256;
const RECENT_BYTES_MAX: usize = 256 * 1024;

/// One event as readers get it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub sequence: u64,
    pub kind: EventKind,
    pub payload: Bytes,
}

#[derive(Debug)]
pub(crate) struct Hub {
    shards: Vec<Mutex<HashMap<TaskId, Arc<Bell>>>>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Bell {
    state: Mutex<BellState>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct BellState {
    /// The greatest sequence that was rung for.
    last_sequence: u64,
    /// Events without a gap between them, of which the last has `last_sequence`; or none.
    recent: VecDeque<Event>,
    recent_bytes: usize,
}

impl Hub {
    pub fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }

    /// Registers for the wake-ups of a task. Register first, then read the log: so nothing can be missed.
    pub fn subscribe(self: &Arc<Self>, task_id: &TaskId) -> Subscription {
        let bell = Arc::clone(self.shard(task_id).entry(task_id.clone()).or_default());
        Subscription { hub: Arc::clone(self), task_id: task_id.clone(), bell }
    }

    /// Rings for events that were committed, the last of them with sequence `last_sequence`.
    pub fn publish(&self, task_id: &TaskId, last_sequence: u64, events: &[NewEvent]) {
        let Some(bell) = self.shard(task_id).get(task_id).map(Arc::clone) else { return };
        bell.state().append(last_sequence, events);
        bell.notify.notify_waiters();
    }

    /// Rings without events: readers that are behind `last_sequence` read the log.
    pub fn ring(&self, task_id: &TaskId, last_sequence: u64) {
        let Some(bell) = self.shard(task_id).get(task_id).map(Arc::clone) else { return };
        if bell.state().skip_to(last_sequence) {
            bell.notify.notify_waiters();
        }
    }

    /// The tasks that somebody waits for, in the order of their ids: so that a run can be repeated.
    pub fn waited_for(&self) -> Vec<TaskId> {
        let mut task_ids = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            task_ids.extend(shard.keys().cloned());
        }
        task_ids.sort_unstable();
        task_ids
    }

    fn shard(&self, task_id: &TaskId) -> MutexGuard<'_, HashMap<TaskId, Arc<Bell>>> {
        let place = usize::try_from(self.hasher.hash_one(task_id) % SHARDS as u64).unwrap_or(0);
        #[expect(clippy::indexing_slicing, reason = "a remainder of SHARDS is a place in a vector of SHARDS")]
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, BellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BellState {
    fn append(&mut self, last_sequence: u64, events: &[NewEvent]) {
        let first_sequence = last_sequence + 1 - (events.len() as u64).min(last_sequence);
        if last_sequence <= self.last_sequence {
            return;
        }
        if first_sequence != self.last_sequence + 1 {
            // Another commit of the task has not rung yet: its events are in the log, so the log is read.
            self.skip_to(last_sequence);
            return;
        }
        for (sequence, event) in (first_sequence..).zip(events) {
            self.recent_bytes += event.payload.len();
            self.recent.push_back(Event { sequence, kind: event.kind, payload: event.payload.clone() });
        }
        while self.recent.len() > RECENT_EVENTS_MAX || self.recent_bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_bytes -= oldest.payload.len();
        }
        self.last_sequence = last_sequence;
    }

    fn skip_to(&mut self, last_sequence: u64) -> bool {
        if last_sequence <= self.last_sequence {
            return false;
        }
        self.recent.clear();
        self.recent_bytes = 0;
        self.last_sequence = last_sequence;
        true
    }
}

/// What a bell knows for a reader.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Nothing beyond the reader's sequence.
    Nothing,
    /// The events that follow the reader's sequence.
    Events(Vec<Event>),
    /// There is more, but not here: read the log.
    ReadTheLog,
}

/// One reader's registration; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    task_id: TaskId,
    bell: Arc<Bell>,
}

impl Subscription {
    pub fn task_id(&self) -> &TaskId {
        &self.task_id
    }

    /// Takes note of what the reader found in the store, so that the next ring joins on without a gap. If another instance
    /// has written it, the other readers do not know yet, and nobody else will tell them.
    pub fn seen(&self, last_sequence: u64) {
        if self.bell.state().skip_to(last_sequence) {
            self.bell.notify.notify_waiters();
        }
    }

    /// What follows `after`.
    pub fn heard(&self, after: u64) -> Heard {
        let state = self.bell.state();
        if state.last_sequence <= after {
            return Heard::Nothing;
        }
        match state.recent.front() {
            Some(oldest) if oldest.sequence <= after + 1 => {
                Heard::Events(state.recent.iter().filter(|event| event.sequence > after).cloned().collect())
            }
            Some(_) | None => Heard::ReadTheLog,
        }
    }

    /// Waits until there is something beyond `after`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub async fn wait(&self, after: u64) {
        loop {
            let notified = self.bell.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.bell.state().last_sequence > after {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut shard = self.hub.shard(&self.task_id);
        // Two are left: the map's and this one. Nobody can register meanwhile, as the shard is locked.
        if Arc::strong_count(&self.bell) == 2 {
            shard.remove(&self.task_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> NewEvent {
        NewEvent { kind: EventKind::Artifact, payload: Bytes::from_static(b"{}") }
    }

    fn task_id() -> TaskId {
        TaskId::new("t").unwrap()
    }

    fn sequences(heard: Heard) -> Vec<u64> {
        match heard {
            Heard::Events(events) => events.iter().map(|event| event.sequence).collect(),
            Heard::Nothing | Heard::ReadTheLog => Vec::new(),
        }
    }

    #[test]
    fn events_that_join_on_are_heard_from_memory() {
        let hub = Arc::new(Hub::new());
        let reader = hub.subscribe(&task_id());
        reader.seen(2);
        hub.publish(&task_id(), 4, &[event(), event()]);
        assert_eq!(sequences(reader.heard(2)), [3, 4]);
        assert_eq!(sequences(reader.heard(3)), [4]);
        assert!(matches!(reader.heard(4), Heard::Nothing));
    }

    #[test]
    fn a_gap_sends_the_reader_to_the_log() {
        let hub = Arc::new(Hub::new());
        let reader = hub.subscribe(&task_id());
        reader.seen(2);
        hub.publish(&task_id(), 4, &[event()]);
        assert!(matches!(reader.heard(2), Heard::ReadTheLog));
        hub.publish(&task_id(), 3, &[event()]);
        assert!(matches!(reader.heard(2), Heard::ReadTheLog));
        hub.publish(&task_id(), 5, &[event()]);
        assert_eq!(sequences(reader.heard(4)), [5]);
    }

    #[tokio::test]
    async fn what_one_reader_finds_in_the_store_wakes_the_others() {
        let hub = Arc::new(Hub::new());
        let waits = hub.subscribe(&task_id());
        waits.seen(2);
        let mut waiting = std::pin::pin!(waits.wait(2));
        assert!(
            std::future::poll_fn(|context| std::task::Poll::Ready(waiting.as_mut().poll(context).is_pending())).await
        );
        hub.subscribe(&task_id()).seen(3);
        waiting.await;
    }

    #[test]
    fn memory_is_bounded_however_far_a_reader_is_behind() {
        let hub = Arc::new(Hub::new());
        let reader = hub.subscribe(&task_id());
        for sequence in 1..=10_000 {
            hub.publish(&task_id(), sequence, &[event()]);
        }
        assert!(reader.bell.state().recent.len() <= RECENT_EVENTS_MAX);
        assert!(matches!(reader.heard(0), Heard::ReadTheLog));
    }

    #[test]
    fn the_last_reader_takes_the_bell_away() {
        let hub = Arc::new(Hub::new());
        let first = hub.subscribe(&task_id());
        let second = hub.subscribe(&task_id());
        drop(first);
        assert_eq!(hub.waited_for().len(), 1);
        drop(second);
        assert!(hub.waited_for().is_empty());
    }
}
