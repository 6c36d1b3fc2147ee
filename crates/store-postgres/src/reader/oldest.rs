use longhaul_protocol::{TaskId, TaskState, Timestamp};
use longhaul_store::columns::int;
use longhaul_store::{Claim, Oldest, Scope};
use tokio_postgres::Row;

use super::{Reader, row, statements};
use crate::fault::Fault;
use crate::session::Param;

/// Through how many scopes one statement looks.
const SCOPES_MAX: i64 = 1024;

/// Which tasks are looked for.
struct Search<'s> {
    statement: &'static str,
    states: &'s [TaskState],
    before: Timestamp,
    now: Timestamp,
    limit: usize,
}

impl Reader {
    pub(crate) async fn stale(
        &self,
        states: &[TaskState],
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claim>, Fault> {
        let states: Vec<_> = states.iter().copied().filter(|state| !state.is_terminal()).collect();
        let search = Search { statement: statements::STALE, states: &states, before, now, limit };
        let claim = |row: &Row, scope| Ok(Claim { scope, head: row::head(row, 6)? });
        Ok(self.oldest(&search, claim).await?.into_iter().map(|(_, claim)| claim).collect())
    }

    /// The tasks that ended in `state` before a time, the oldest first and at most `limit`.
    pub(crate) async fn ended(&self, state: TaskState, before: Timestamp, limit: usize) -> Result<Vec<TaskId>, Fault> {
        let search = Search { statement: statements::ENDED, states: &[state], before, now: before, limit };
        Ok(self.oldest(&search, |_, _| Ok(())).await?.into_iter().map(|(task_id, ())| task_id).collect())
    }

    /// Looks through all scopes, some at a time: the index by status time is one for each scope.
    async fn oldest<V>(
        &self,
        search: &Search<'_>,
        read: impl Fn(&Row, Scope) -> Result<V, Fault>,
    ) -> Result<Vec<(TaskId, V)>, Fault> {
        let mut oldest = Oldest::new(search.before, search.limit);
        let states: Vec<i16> = search.states.iter().filter_map(|state| i16::try_from(state.number()).ok()).collect();
        let mut after = None;
        loop {
            let (tenant, owner) = behind(after.as_ref());
            let (limit, now) = (int(search.limit as u64), search.now.unix_millis());
            let before = oldest.before();
            let wanted: &[Param<'_>] = &[&tenant, &owner, &SCOPES_MAX, &states, &before, &limit, &now];
            let rows = self.pool.query(search.statement, wanted).await?;
            for row in &rows {
                // Without a task the row only says how far was looked.
                if let Some(status_time) = row::get(row, 5)? {
                    oldest.add(status_time, row::task_id(row, 6)?, read(row, row::scope(row, 3)?)?);
                }
            }
            after = match rows.first() {
                Some(row) if row::get::<i64>(row, 2)? == SCOPES_MAX => Some(row::scope(row, 0)?),
                _ => return Ok(oldest.into_found().collect()),
            };
        }
    }
}

/// The first place, in the order of tenant and owner, that is behind a scope. Ids hold no control characters, so nothing stands
/// between a scope and this.
pub(super) fn behind(scope: Option<&Scope>) -> (String, String) {
    scope.map_or_else(Default::default, |scope| (scope.tenant.as_str().to_owned(), format!("{}\u{1}", scope.owner)))
}
