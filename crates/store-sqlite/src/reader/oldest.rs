use longhaul_protocol::{TaskState, Timestamp};
use longhaul_store::{Claim, StoreError};
use rusqlite::{OptionalExtension, params};

use super::Reads;
use crate::fault::Fault;
use crate::layout::{self, int};

/// Looks for the tasks whose status is the oldest, over all scopes: the index by status time is one for each scope.
struct Oldest {
    found: Vec<(i64, i64)>,
    /// Only tasks of an earlier time than this can be among the oldest.
    before: i64,
    limit: usize,
}

impl Oldest {
    /// Keeps the oldest of what was found, and no more than are wanted.
    fn trim(&mut self) {
        self.found.sort_unstable();
        self.found.truncate(self.limit);
        if let Some((last, _)) = self.found.last().filter(|_| self.found.len() == self.limit) {
            self.before = self.before.min(last.saturating_add(1));
        }
    }
}

impl Reads<'_> {
    pub(crate) fn stale(
        &mut self,
        states: &[TaskState],
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, Fault> {
        let mut claims = Vec::new();
        for number in self.oldest(states, before, now, limit)? {
            let claim = self.claim(number)?;
            claims.push(claim.ok_or_else(|| StoreError::corrupt(format!("task {number} is without its context")))?);
        }
        Ok(claims)
    }

    /// The numbers of tasks in a terminal state, the oldest first; and whether tasks that were removed have left something.
    pub(crate) fn ended(
        &mut self,
        state: TaskState,
        before: Timestamp,
        limit: usize,
    ) -> Result<(Vec<i64>, bool), Fault> {
        let numbers = self.oldest(&[state], before, before, limit)?;
        let leftovers = self.statements.leftovers.query_row([], |row| row.get::<_, i64>(0)).optional()?;
        Ok((numbers, leftovers.is_some()))
    }

    fn oldest(
        &mut self,
        states: &[TaskState],
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<i64>, Fault> {
        let mut oldest = Oldest { found: Vec::new(), before: layout::ceil_millis(before), limit };
        let mut scopes = self.statements.scopes.query([0])?;
        while let Some(scope) = scopes.next()? {
            for state in states {
                // The column of the count of tasks in the state stands behind the scope's number.
                let column = usize::try_from(state.number()).unwrap_or_default();
                if scope.get::<_, i64>(column)? == 0 {
                    continue;
                }
                let (number, limit): (i64, _) = (scope.get(0)?, int(limit as u64));
                let wanted = params![number, state.number(), oldest.before, now.unix_millis(), limit];
                let mut rows = self.statements.oldest.query(wanted)?;
                while let Some(row) = rows.next()? {
                    oldest.found.push((row.get(0)?, row.get(1)?));
                }
                oldest.trim();
            }
        }
        Ok(oldest.found.into_iter().map(|(_, number)| number).collect())
    }
}
