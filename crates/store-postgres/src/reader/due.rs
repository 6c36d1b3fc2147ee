use longhaul_protocol::Timestamp;
use longhaul_store::columns::int;
use longhaul_store::{Claim, Due, Rotation, Scope};

use super::line::{KEY_SEPARATOR, Window};
use super::oldest::behind;
use super::{Reader, row, statements};
use crate::LeaseClock;
use crate::fault::Fault;
use crate::session::Param;

/// Of how many scopes it is said which context was served last, for each task that is wanted, before it is known which scopes
/// have tasks in line.
const LASTS_FACTOR: usize = 4;

/// What a row of `DUE` is.
const TIMED: i64 = 0;
/// The first column of a task.
const TASK: usize = 5;

impl Reader {
    /// Reads as much of the line as [`Rotation::take`] is likely to look at. Where it looked farther, more is read.
    pub(crate) async fn due(
        &self,
        clock: LeaseClock,
        now: Timestamp,
        limit: usize,
        rotation: Rotation,
    ) -> Result<Due, Fault> {
        let (mut factor, mut known): (i64, Vec<Scope>) = (1, Vec::new());
        loop {
            let (mut claims, mut window) = self.window(clock, now, limit, &rotation, (factor, &known)).await?;
            let mut taken = rotation.clone();
            claims.extend(taken.take(&mut window, limit.saturating_sub(claims.len()))?);
            if !window.was_short() || factor > int(limit as u64) {
                return Ok(Due { claims, rotation: taken });
            }
            known = window.into_scopes();
            factor *= 4;
        }
    }

    /// The tasks whose lease ran out or whose wait is over, the longest first, and a window on the line.
    async fn window(
        &self,
        clock: LeaseClock,
        now: Timestamp,
        limit: usize,
        rotation: &Rotation,
        (factor, known): (i64, &[Scope]),
    ) -> Result<(Vec<Claim>, Window), Fault> {
        let (tenant, owner) = behind(rotation.scope());
        let lasts = known.iter().filter_map(|scope| rotation.context(scope).map(|context| (scope, context)));
        let lasts = lasts.chain(rotation.contexts().take(limit.saturating_mul(LASTS_FACTOR)));
        let (scopes, contexts): (Vec<_>, Vec<_>) = lasts.unzip();
        let keys: Vec<String> =
            scopes.iter().map(|scope| format!("{}{KEY_SEPARATOR}{}", scope.tenant, scope.owner)).collect();
        let names: Vec<&str> = contexts.iter().map(|context| context.as_str()).collect();
        let (now, limit) = (now.unix_millis(), int(limit as u64));
        let by_database = clock == LeaseClock::Database;
        let wanted: &[Param<'_>] = &[&now, &limit, &tenant, &owner, &keys, &names, &factor, &by_database];
        let rows = self.pool.query(statements::DUE, wanted).await?;

        let lasts = scopes.into_iter().cloned().zip(contexts.into_iter().cloned());
        let (mut timed, mut window) = (Vec::new(), Window::new(lasts));
        for row in &rows {
            let [contexts_max, contexts, tasks_max]: [i64; 3] =
                [row::get(row, 0)?, row::get(row, 1)?, row::get(row, 2)?];
            let claim = Claim { scope: row::scope(row, 3)?, head: row::head(row, TASK)? };
            match contexts_max {
                TIMED => timed.push(claim),
                contexts_max => window.add(claim, contexts == contexts_max, tasks_max),
            }
        }
        timed.sort_by(|one, other| (one.head.due_at, &one.head.id).cmp(&(other.head.due_at, &other.head.id)));
        window.sort();
        Ok((timed, window))
    }

    pub(crate) async fn next_due(&self) -> Result<Option<Timestamp>, Fault> {
        let row = self.pool.query_opt(statements::NEXT_DUE, &[]).await?;
        let next = row.map(|row| row::get::<Option<i64>>(&row, 0)).transpose()?.flatten();
        Ok(next.map(Timestamp::from_unix_millis))
    }

    /// How many tasks are in line for a worker, now or later.
    pub(crate) async fn count_line(&self) -> Result<u64, Fault> {
        let row = self.pool.query_opt(statements::COUNT_LINE, &[]).await?;
        Ok(row.map_or(Ok(0), |row| row::counter(&row, 0, "the count of tasks in line"))?)
    }
}
