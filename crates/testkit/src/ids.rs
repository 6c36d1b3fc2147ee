use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_engine::{IdSource, shard, uuid_v7};
use longhaul_protocol::{ContextId, MessageId, TaskId, Tenant, Timestamp};

/// Ids that are counted instead of drawn: valid UUIDs of version 7, the same ones in every run. Jitter is always
/// [`CountedIds::JITTER`].
#[derive(Debug, Default)]
pub struct CountedIds {
    counter: AtomicU64,
}

impl CountedIds {
    /// The jitter of every wait: it takes a quarter of it away.
    pub const JITTER: f64 = 0.5;

    /// Ids from 1 on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn next(&self, now: Timestamp, shard: Option<u16>) -> String {
        let mut random = [0; 10];
        let count = (self.counter.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes();
        random.iter_mut().skip(2).zip(count).for_each(|(to, from)| *to = from);
        uuid_v7(now, random, 0, shard).hyphenated().to_string()
    }
}

impl IdSource for CountedIds {
    fn task_id(&self, tenant: &Tenant, context_id: &ContextId, now: Timestamp) -> TaskId {
        TaskId::new(self.next(now, Some(shard(tenant, context_id)))).expect("a UUID is a valid id")
    }

    fn context_id(&self, now: Timestamp) -> ContextId {
        ContextId::new(self.next(now, None)).expect("a UUID is a valid id")
    }

    fn message_id(&self, now: Timestamp) -> MessageId {
        MessageId::new(self.next(now, None)).expect("a UUID is a valid id")
    }

    fn jitter(&self) -> f64 {
        Self::JITTER
    }
}
