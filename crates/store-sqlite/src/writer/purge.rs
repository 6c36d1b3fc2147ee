use longhaul_protocol::{TaskId, TaskState, Timestamp};
use rusqlite::{OptionalExtension, Statement, params};

use super::transaction::Writer;
use crate::fault::Fault;
use crate::layout::{self, int};

/// How many events and messages one job removes at the most, and how many bytes of them, a single one apart: so the job
/// takes a few milliseconds, and whoever wants to write next waits no longer.
const ROWS_MAX: usize = 500;
const BYTES_MAX: i64 = 1 << 20;

/// Tasks to remove, as far as they are still what they were when they were found.
#[derive(Debug)]
pub(crate) struct Purge {
    pub(crate) numbers: Vec<i64>,
    pub(crate) state: TaskState,
    pub(crate) before: Timestamp,
}

/// What one job did of a [`Purge`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Purged {
    /// How many of the numbers, from the first on, are done with.
    pub(crate) handled: usize,
    /// How many of them were tasks that are gone now.
    pub(crate) removed: u64,
    /// Whether a log was too long, so that a part of it is left for [`Writer::sweep`].
    pub(crate) leftovers: bool,
}

/// What may still be removed in a transaction.
struct Budget {
    rows: usize,
    bytes: i64,
}

impl Budget {
    fn new() -> Self {
        Self { rows: ROWS_MAX, bytes: BYTES_MAX }
    }

    fn is_spent(&self) -> bool {
        self.rows == 0 || self.bytes <= 0
    }
}

impl Writer<'_> {
    /// Removes tasks until the budget of one transaction is spent. A task is gone with the first step: it is not found, not
    /// listed, not counted. What is left of a long log is named in `task_removed` by the same transaction, so that it is
    /// removed later, whatever happens in between: nobody sees it, for numbers are never given out again.
    pub(super) fn purge(&mut self, purge: &Purge) -> Result<Purged, Fault> {
        let mut budget = Budget::new();
        let mut purged = Purged::default();
        for number in &purge.numbers {
            purged.handled += 1;
            if self.remove_task(*number, purge.state, purge.before)? {
                purged.removed += 1;
                if !self.remove_rows(*number, &mut budget)? {
                    self.statements.put_removed.execute([number])?;
                    purged.leftovers = true;
                }
            }
            if budget.is_spent() {
                break;
            }
        }
        Ok(purged)
    }

    /// Removes a slice of what removed tasks have left. Answers whether there is more.
    pub(super) fn sweep(&mut self) -> Result<bool, Fault> {
        let mut budget = Budget::new();
        while !budget.is_spent() {
            let next = self.statements.next_removed.query_row([], |row| row.get::<_, i64>(0)).optional()?;
            let Some(number) = next else { return Ok(false) };
            if self.remove_rows(number, &mut budget)? {
                self.statements.forget_removed.execute([number])?;
            }
        }
        Ok(true)
    }

    /// Removes the narrow rows of a task, if it is one that may go. Answers whether it was.
    fn remove_task(&mut self, number: i64, state: TaskState, before: Timestamp) -> Result<bool, Fault> {
        let wanted = params![number, state.number(), layout::ceil_millis(before)];
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get::<_, bool>(3)?))
        };
        let found = self.statements.ended_task.query_row(wanted, read).optional()?;
        let Some((id, scope, context, pushes)) = found.filter(|_| state.is_terminal()) else { return Ok(false) };
        let id = TaskId::new(id).map_err(|error| longhaul_store::StoreError::corrupt(format!("an id: {error}")))?;
        self.heads.remove(&id);
        let less = |other: i32| if other == state.number() { -1_i64 } else { 0 };
        for (number, count) in
            [(scope, &mut self.statements.count_in_scope), (context, &mut self.statements.count_in_context)]
        {
            count.execute(params![number, less(1), less(2), less(3), less(4), less(5), less(6), less(7), less(8)])?;
        }
        self.statements.remove_empty_context.execute([context])?;
        self.statements.remove_task.execute([number])?;
        self.statements.remove_status.execute([number])?;
        self.statements.remove_metadata.execute([number])?;
        self.statements.remove_checkpoint.execute([number])?;
        if pushes {
            self.statements.remove_push_configs.execute([id.as_str()])?;
            self.statements.remove_dead_of_task.execute([id.as_str()])?;
        }
        Ok(true)
    }

    /// Removes events and messages of a task, within the budget. Answers whether none are left.
    fn remove_rows(&mut self, number: i64, budget: &mut Budget) -> Result<bool, Fault> {
        let statements = &mut self.statements;
        Ok(remove_range(&mut statements.event_sizes, &mut statements.remove_events, number, budget)?
            && remove_range(&mut statements.message_sizes, &mut statements.remove_messages, number, budget)?)
    }
}

fn remove_range(
    sizes: &mut Statement<'_>,
    remove: &mut Statement<'_>,
    number: i64,
    budget: &mut Budget,
) -> Result<bool, Fault> {
    let (first, last) = (layout::key(number, 0), layout::key(number, layout::PLACE_MAX));
    if budget.is_spent() {
        return Ok(false);
    }
    let mut until = None;
    // One more than may go, to see whether any are left.
    let mut rows = sizes.query(params![first, last, int(budget.rows as u64 + 1)])?;
    while let Some(row) = rows.next()? {
        if budget.is_spent() {
            drop(rows);
            remove.execute([first, until.unwrap_or(first)])?;
            return Ok(false);
        }
        until = Some(row.get(0)?);
        budget.rows -= 1;
        budget.bytes -= row.get::<_, i64>(1)?;
    }
    drop(rows);
    if let Some(until) = until {
        remove.execute([first, until])?;
    }
    Ok(true)
}
