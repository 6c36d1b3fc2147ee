use longhaul_protocol::{TaskState, Timestamp};
use longhaul_store::{Claim, Oldest, StoreError};
use rusqlite::{OptionalExtension, params};

use super::Reads;
use crate::fault::Fault;
use crate::layout::int;

/// Which of the old tasks.
#[derive(Clone, Copy)]
enum Wanted {
    /// Those without a lease, or with one that is over by then.
    Unheld(Timestamp),
    /// Those with nothing left to be delivered.
    Told,
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
        for number in self.oldest(states, before, limit, Wanted::Unheld(now))? {
            let claim = self.claim(number)?;
            claims.push(claim.ok_or_else(|| StoreError::corrupt(format!("task {number} is without its context")))?);
        }
        Ok(claims)
    }

    /// The numbers of tasks in a terminal state whose end was told to all, the oldest first; and whether tasks that were removed have left something.
    pub(crate) fn ended(
        &mut self,
        state: TaskState,
        before: Timestamp,
        limit: usize,
    ) -> Result<(Vec<i64>, bool), Fault> {
        let numbers = self.oldest(&[state], before, limit, Wanted::Told)?;
        let leftovers = self.statements.leftovers.query_row([], |row| row.get::<_, i64>(0)).optional()?;
        Ok((numbers, leftovers.is_some()))
    }

    fn oldest(
        &mut self,
        states: &[TaskState],
        before: Timestamp,
        limit: usize,
        wanted: Wanted,
    ) -> Result<Vec<i64>, Fault> {
        // The index by status time is one for each scope.
        let mut oldest = Oldest::new(before, limit);
        let mut scopes = self.statements.scopes.query([0])?;
        while let Some(scope) = scopes.next()? {
            for state in states {
                // The column of the count of tasks in the state stands behind the scope's number.
                let column = usize::try_from(state.number()).unwrap_or_default();
                if scope.get::<_, i64>(column)? == 0 {
                    continue;
                }
                let (number, limit): (i64, _) = (scope.get(0)?, int(limit as u64));
                let (state, before) = (state.number(), oldest.before());
                let mut rows = match wanted {
                    Wanted::Unheld(now) => {
                        self.statements.oldest.query(params![number, state, before, now.unix_millis(), limit])?
                    }
                    Wanted::Told => self.statements.ended.query(params![number, state, before, limit])?,
                };
                while let Some(row) = rows.next()? {
                    oldest.add(row.get(0)?, row.get::<_, i64>(1)?, ());
                }
            }
        }
        Ok(oldest.into_found().map(|(number, ())| number).collect())
    }
}
