use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ContextId, Owner, TaskId, TaskState, Tenant, Timestamp};
use longhaul_store::{Scope, Standing, StoreError, columns};
use tokio_postgres::Row;

use crate::LeaseClock;
use crate::fault::Fault;
use crate::shards;

/// Which task: rows are written and taken in this order.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Key<'b> {
    pub(super) shard: i16,
    pub(super) id: &'b str,
}

impl<'b> Key<'b> {
    pub(super) fn of(task_id: &'b TaskId) -> Self {
        Self { shard: shards::of_task(task_id), id: task_id.as_str() }
    }
}

/// What decides about a task, as it stands while its row is taken.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) scope: Scope,
    pub(super) context: ContextId,
    pub(super) state: TaskState,
    pub(super) version: u64,
    pub(super) epoch: u64,
    pub(super) leased: bool,
    /// In milliseconds; while the task is leased, the end of its lease.
    pub(super) due_at: Option<i64>,
    /// Whether the lease was renewed, and has a row of its own.
    pub(super) renewed: bool,
    pub(super) last_sequence: u64,
    /// How many messages are stored.
    pub(super) history: u64,
    /// Whether the status has a message.
    pub(super) status: bool,
    /// Whether it has push configs.
    pub(super) pushes: bool,
}

impl Known {
    /// A task that is not there yet.
    pub(super) fn new(scope: &Scope, head: &TaskHead) -> Self {
        Self {
            scope: scope.clone(),
            context: head.context_id.clone(),
            state: head.state,
            version: head.version,
            epoch: head.epoch,
            leased: head.leased,
            due_at: head.due_at.map(Timestamp::unix_millis),
            renewed: false,
            last_sequence: 0,
            history: 0,
            status: false,
            pushes: false,
        }
    }

    /// A task from its row.
    pub(super) fn read(row: &Row) -> Result<Self, Fault> {
        let damaged = |error: longhaul_protocol::InvalidId| StoreError::corrupt(format!("an id: {error}"));
        let scope = Scope {
            tenant: Tenant::new(row.try_get::<_, &str>(1)?).map_err(damaged)?,
            owner: Owner::new(row.try_get::<_, &str>(2)?).map_err(damaged)?,
        };
        Ok(Self {
            scope,
            context: ContextId::new(row.try_get::<_, &str>(3)?).map_err(damaged)?,
            state: columns::state(row.try_get::<_, i16>(4)?.into())?,
            version: columns::count(row.try_get(5)?, "the version of a task")?,
            last_sequence: columns::count(row.try_get(6)?, "the last sequence of a task")?,
            epoch: columns::count(row.try_get(7)?, "the epoch of a task")?,
            leased: row.try_get(8)?,
            due_at: row.try_get(9)?,
            renewed: false,
            history: columns::count(row.try_get(10)?, "the history of a task")?,
            status: row.try_get(11)?,
            pushes: row.try_get(12)?,
        })
    }

    /// Takes note of a lease that was renewed.
    pub(super) fn renewed_until(&mut self, epoch: u64, until: i64) {
        self.renewed = true;
        if self.leased && self.epoch == epoch {
            self.due_at = Some(until);
        }
    }

    /// What decides whether a commit may be made at this time.
    pub(super) fn standing(&self, now: i64) -> Standing {
        let lease_lives = self.leased && self.due_at.is_none_or(|until| until > now);
        Standing { version: self.version, epoch: self.epoch, lease_lives, last_sequence: self.last_sequence }
    }

    /// Whether the task waits for a worker.
    pub(super) fn in_line(&self) -> bool {
        columns::in_line(self.state, self.leased, self.due_at)
    }

    /// Takes over what a commit says that was decided at `decided`, when it is `now` by the clock that counts.
    pub(super) fn follow(&mut self, head: &TaskHead, clock: LeaseClock, decided: i64, now: i64) {
        let due_at = head.due_at.map(Timestamp::unix_millis);
        let keeps_lease = self.leased && head.leased && self.epoch == head.epoch;
        // A row of its own says only when a lease ends that goes on as it was.
        self.renewed &= keeps_lease && (clock == LeaseClock::Database || due_at <= self.due_at);
        self.due_at = match (keeps_lease, clock) {
            // It is moved by renewals alone.
            (true, LeaseClock::Database) => self.due_at,
            (true, LeaseClock::Caller) => due_at.max(self.due_at),
            // As long as it was meant to be, by whatever clock that was counted.
            (false, LeaseClock::Database) if head.leased => due_at.map(|due_at| due_at - decided + now),
            (false, _) => due_at,
        };
        self.state = head.state;
        self.version = head.version;
        self.epoch = head.epoch;
        self.leased = head.leased;
        self.status = head.status_message.is_some();
    }
}
