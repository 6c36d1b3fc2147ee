use std::sync::Arc;

use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{TaskId, TaskState, Timestamp};
use longhaul_store::{Scope, Standing, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use super::Counters;
use super::batch::{Batch, Existence, Outcome, Work};
use super::statements::Statements;
use crate::fault::Fault;
use crate::layout;
use crate::recent::Recent;

/// How many heads and scopes the writer remembers at least; at most twice as many.
const RECENT_MAX: usize = 8192;
/// How many task numbers are set aside in one write. What is left of them when the store closes is never used.
const NUMBERS_RESERVED: i64 = 4096;

/// What the writer remembers of a task, so that the next commit need not read it. Nobody else writes, so it is the truth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) number: i64,
    pub(super) scope: i64,
    /// `None` until the batch that makes the task has found out.
    pub(super) context: Option<i64>,
    pub(super) state: TaskState,
    pub(super) version: u64,
    pub(super) epoch: u64,
    pub(super) leased: bool,
    /// In milliseconds.
    pub(super) due_at: Option<i64>,
    pub(super) last_sequence: u64,
    /// How many messages are stored.
    pub(super) history: u64,
    /// Whether the status has a message.
    pub(super) status: bool,
    /// Whether the task has push configs.
    pub(super) pushes: bool,
}

impl Known {
    /// A task that is not there yet.
    pub(super) fn new(number: i64, scope: i64, head: &TaskHead) -> Self {
        Self {
            number,
            scope,
            context: None,
            state: head.state,
            version: head.version,
            epoch: head.epoch,
            leased: head.leased,
            due_at: head.due_at.map(Timestamp::unix_millis),
            last_sequence: 0,
            history: 0,
            status: false,
            pushes: false,
        }
    }

    /// Whether the lease of this epoch is alive.
    pub(super) fn holds_lease(&self, epoch: u64, now: Timestamp) -> bool {
        self.epoch == epoch && self.leased && self.due_at.is_none_or(|until| until > now.unix_millis())
    }

    /// What decides whether a commit may be made at this time.
    pub(super) fn standing(&self, now: Timestamp) -> Standing {
        let lease_lives = self.holds_lease(self.epoch, now);
        Standing { version: self.version, epoch: self.epoch, lease_lives, last_sequence: self.last_sequence }
    }

    /// Whether the task waits for a worker.
    pub(super) fn in_line(&self) -> bool {
        layout::in_line(self.state, self.leased, self.due_at)
    }

    /// Takes over what a commit says.
    pub(super) fn follow(&mut self, head: &TaskHead) {
        let due_at = head.due_at.map(Timestamp::unix_millis);
        // A lease that is kept may have been renewed since the head was read.
        let keeps_lease = self.leased && head.leased && self.epoch == head.epoch;
        self.due_at = if keeps_lease { due_at.max(self.due_at) } else { due_at };
        self.state = head.state;
        self.version = head.version;
        self.epoch = head.epoch;
        self.leased = head.leased;
        self.status = head.status_message.is_some();
    }
}

/// The only hand that writes, with what it remembers.
pub(super) struct Writer<'c> {
    connection: &'c Connection,
    pub(super) statements: Statements<'c>,
    pub(super) heads: Recent<TaskId, Known>,
    scopes: Recent<Scope, i64>,
    next_number: i64,
    reserved_until: i64,
    /// How many more tasks than before the transaction are in line.
    pub(super) joined_line: i64,
    counters: Arc<Counters>,
}

impl<'c> Writer<'c> {
    pub(super) fn new(connection: &'c Connection, counters: Arc<Counters>) -> rusqlite::Result<Self> {
        let mut statements = Statements::prepare(connection)?;
        let reserved = statements.reserved_numbers.query_row([], |row| row.get(0))?;
        counters.set_backlog(statements.count_line.query_row([], |row| row.get(0))?);
        Ok(Self {
            connection,
            statements,
            heads: Recent::new(RECENT_MAX),
            scopes: Recent::new(RECENT_MAX),
            next_number: reserved,
            reserved_until: reserved,
            joined_line: 0,
            counters,
        })
    }

    /// Does `work` in one transaction, whole or not at all.
    pub(super) fn transact<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        let reserved_until = self.reserved_until;
        self.joined_line = 0;
        let done = self.begin().and_then(|()| work(self)).and_then(|done| {
            self.statements.commit.execute([])?;
            Ok(done)
        });
        match &done {
            Ok(_) => self.counters.add_to_backlog(self.joined_line),
            Err(_) => {
                self.heads.clear();
                self.scopes.clear();
                self.reserved_until = reserved_until;
                self.roll_back();
            }
        }
        done
    }

    fn begin(&mut self) -> Result<(), Fault> {
        // A rollback that failed itself leaves a transaction behind.
        if !self.connection.is_autocommit() {
            self.statements.rollback.execute([])?;
        }
        self.statements.begin.execute([])?;
        Ok(())
    }

    fn roll_back(&mut self) {
        // Some errors roll back by themselves.
        if !self.connection.is_autocommit()
            && let Err(error) = self.statements.rollback.execute([])
        {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot roll back");
        }
    }

    /// Does the work in one transaction. A refused commit leaves nothing behind; a fault undoes everything.
    pub(super) fn work(&mut self, work: &[Work<'_>]) -> Result<Vec<Outcome>, Fault> {
        self.transact(|writer| {
            let mut batch = Batch::new(writer, Existence::FoundAtTheEnd);
            let outcomes = work.iter().map(|work| batch.add(*work)).collect::<Result<_, _>>()?;
            batch.finish()?;
            Ok(outcomes)
        })
    }

    /// Does one piece of work in its own transaction, after its batch failed for what may have been another's fault.
    pub(super) fn work_alone(&mut self, work: Work<'_>) -> Result<Outcome, Fault> {
        self.transact(|writer| {
            let mut batch = Batch::new(writer, Existence::AskedBefore);
            let outcome = batch.add(work)?;
            batch.finish()?;
            Ok(outcome)
        })
    }

    pub(super) fn check(&mut self) -> Result<(), Fault> {
        self.statements.check.execute([])?;
        Ok(())
    }

    /// Gives free pages at the end of the file back, in a transaction of its own. Answers how many bytes they were.
    pub(super) fn give_back(&mut self, pages: u32) -> Result<u64, Fault> {
        let count = |connection: &Connection| connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0));
        let before = count(self.connection)?;
        // It gives a row for each page, and does nothing but what is asked for row by row.
        let mut vacuum = self.connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        let freed = u64::try_from(before - count(self.connection)?).unwrap_or(0);
        Ok(freed * u64::from(crate::connection::PAGE_BYTES))
    }

    /// Lets the leases that are alive run out.
    pub(super) fn expire_leases(&mut self, now: Timestamp) -> Result<u64, Fault> {
        self.heads.clear();
        Ok(self.statements.expire_leases.execute([now.unix_millis()])? as u64)
    }

    /// The number of a scope, which is made when it is new.
    pub(super) fn scope(&mut self, scope: &Scope) -> Result<i64, Fault> {
        if let Some(number) = self.scopes.get(scope) {
            return Ok(number);
        }
        let names = params![scope.tenant.as_str(), scope.owner.as_str()];
        let number = match self.statements.find_scope.query_row(names, |row| row.get(0)).optional()? {
            Some(number) => number,
            None => self.statements.insert_scope.insert(names)?,
        };
        self.scopes.insert(scope.clone(), number);
        Ok(number)
    }

    /// The number of a scope, if there is one.
    pub(super) fn known_scope(&mut self, scope: &Scope) -> Result<Option<i64>, Fault> {
        if let Some(number) = self.scopes.get(scope) {
            return Ok(Some(number));
        }
        let names = params![scope.tenant.as_str(), scope.owner.as_str()];
        Ok(self.statements.find_scope.query_row(names, |row| row.get(0)).optional()?)
    }

    /// A number for a new task. None is ever given out twice, though its task be removed.
    pub(super) fn take_number(&mut self) -> Result<i64, Fault> {
        let number = self.next_number;
        if number > layout::TASK_NUMBER_MAX {
            return Err(StoreError::unavailable("number a task", "all numbers were given out").into());
        }
        if number >= self.reserved_until {
            let until = number + NUMBERS_RESERVED;
            self.statements.reserve_numbers.execute([until])?;
            self.reserved_until = until;
        }
        self.next_number = number + 1;
        Ok(number)
    }

    /// What decides about a task; `None` when there is no such task.
    pub(super) fn known(&mut self, task_id: &TaskId) -> Result<Option<Known>, Fault> {
        if let Some(known) = self.heads.get(task_id) {
            return Ok(Some(known));
        }
        let mut rows = self.statements.find_task.query([task_id.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let known = Known {
            number: row.get(0)?,
            scope: row.get(1)?,
            context: Some(row.get(2)?),
            state: layout::state(row.get(3)?)?,
            version: layout::count(row.get(4)?, "the version of a task")?,
            epoch: layout::count(row.get(5)?, "the epoch of a task")?,
            leased: row.get(6)?,
            last_sequence: layout::count(row.get(7)?, "the last sequence of a task")?,
            history: layout::count(row.get(8)?, "the history of a task")?,
            status: row.get(9)?,
            due_at: row.get(10)?,
            pushes: row.get(11)?,
        };
        drop(rows);
        self.heads.insert(task_id.clone(), known);
        Ok(Some(known))
    }
}
