use std::hash::{Hash, Hasher};
use std::sync::Arc;

use longhaul_lifecycle::{Command, TaskHead, Transition, Writer, decide};
use longhaul_protocol::{TaskState, Timestamp};

/// A moment, in ticks after the task was made.
pub fn at(ticks: i64) -> Timestamp {
    Timestamp::from_unix_millis(ticks)
}

/// A head as it was at some time. Cheap to keep, and without what decides nothing: when things were told.
#[derive(Clone, Debug, PartialEq)]
pub struct Head(Arc<TaskHead>);

impl Head {
    pub fn new(mut head: TaskHead) -> Self {
        head.status_timestamp = at(0);
        head.failures.iter_mut().for_each(|end| end.ended_at = at(0));
        Self(Arc::new(head))
    }

    /// Whether somebody's lease is alive.
    pub fn is_held(&self, now: i64) -> bool {
        self.leased && !self.lease_is_over(at(now))
    }

    /// What the lifecycle makes of the task; `None` when it refuses.
    pub fn decide(&self, command: Command, writer: Writer, now: i64) -> Option<Transition> {
        decide(&self.0, command, writer, at(now)).ok()
    }

    pub fn with_due_at(&self, due_at: Option<Timestamp>) -> Self {
        Self(Arc::new(TaskHead { due_at, ..TaskHead::clone(&self.0) }))
    }
}

impl std::ops::Deref for Head {
    type Target = TaskHead;

    fn deref(&self) -> &TaskHead {
        &self.0
    }
}

impl Hash for Head {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let TaskHead { version, epoch, attempt, leased, cancel_requested, turn_message, messages, .. } = **self;
        (version, epoch, attempt, leased, cancel_requested, turn_message, messages).hash(hasher);
        (self.state, self.due_at.map(Timestamp::unix_millis), self.failures.len()).hash(hasher);
        self.waiting.hash(hasher);
    }
}

/// What must hold for a write, as the writer names it.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub enum Expect {
    /// Nobody changed what decides since this version.
    Version(u64),
    /// As `Version`, and nobody's lease is alive: the decision rests on that.
    Unheld(u64),
    /// As `Version`, and the lease of this epoch is alive.
    LeaseAndVersion { epoch: u64, version: u64 },
    /// The lease of this epoch is alive.
    Lease { epoch: u64 },
}

/// A write on its way.
#[derive(Clone, Debug, Hash, PartialEq)]
pub struct Write {
    pub expect: Expect,
    /// The head as it will be; `None` for an artifact chunk, which decides nothing.
    pub head: Option<Head>,
    /// The time at which its writer sent it; 0 where nobody looks at it.
    pub sent_at: i64,
}

/// A heartbeat on its way.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct Renewal {
    pub epoch: u64,
    pub sent_at: i64,
}

/// Whether a comparison is made in the write itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compare {
    Yes,
    No,
}

/// By which time a write is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clock {
    /// The store's, when it writes.
    Store,
    /// The store's, when the write was sent.
    Sender,
}

/// For which writes it is compared that nobody holds the lease on whose end they rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reclaim {
    All,
    /// Only for those that take the lease, not for those that end it.
    Takes,
    None,
}

/// The store's guard: what it compares in a write. Each way to be careless about it is one value of one field.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// The epoch of an agent's write; else only that the task is WORKING.
    pub epoch: Compare,
    /// The version on which a write was decided.
    pub version: Compare,
    /// That a lease that was read as over is still over.
    pub reclaim: Reclaim,
    /// That a lease to be renewed has not run out.
    pub renewal: Compare,
    /// The time by which all this is judged.
    pub clock: Clock,
}

impl Guard {
    /// Compares everything.
    pub const CAREFUL: Self = Self {
        epoch: Compare::Yes,
        version: Compare::Yes,
        reclaim: Reclaim::All,
        renewal: Compare::Yes,
        clock: Clock::Store,
    };

    /// The time by which something is judged that was sent at `sent_at` and arrives at `now`.
    pub fn time(&self, sent_at: i64, now: i64) -> i64 {
        match self.clock {
            Clock::Store => now,
            Clock::Sender => sent_at,
        }
    }

    pub fn lets_write(&self, row: &Head, write: &Write, now: i64) -> bool {
        let now = self.time(write.sent_at, now);
        let same_version = |version| self.version == Compare::No || row.version == version;
        let holds = |epoch| match self.epoch {
            Compare::Yes => row.is_held(now) && row.epoch == epoch,
            Compare::No => row.state == TaskState::Working,
        };
        match write.expect {
            Expect::Version(version) => same_version(version),
            Expect::Unheld(version) => same_version(version) && (!row.is_held(now) || !self.repeats(row, write)),
            Expect::LeaseAndVersion { epoch, version } => holds(epoch) && same_version(version),
            Expect::Lease { epoch, .. } => holds(epoch),
        }
    }

    fn repeats(&self, row: &Head, write: &Write) -> bool {
        let takes = write.head.as_ref().is_some_and(|head| head.leased && head.epoch != row.epoch);
        match self.reclaim {
            Reclaim::All => true,
            Reclaim::Takes => takes,
            Reclaim::None => false,
        }
    }

    pub fn lets_renew(&self, row: &Head, renewal: Renewal, now: i64) -> bool {
        let now = self.time(renewal.sent_at, now);
        row.leased && row.epoch == renewal.epoch && (self.renewal == Compare::No || row.is_held(now))
    }
}

/// The row after a write that was let through. A lease that goes on ends when its newest renewal says.
pub fn written(row: &Head, write: &Write) -> Head {
    match &write.head {
        None => row.clone(),
        Some(head) if row.leased && head.leased && row.epoch == head.epoch => head.with_due_at(row.due_at),
        Some(head) => head.clone(),
    }
}
