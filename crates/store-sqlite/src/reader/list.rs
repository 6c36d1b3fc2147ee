use longhaul_protocol::{TaskId, TaskState, Timestamp};
use longhaul_store::{ListBounds, ListCursor, ListPage, ListQuery, SnapshotQuery, StoreError};
use rusqlite::{OptionalExtension, Row, params};

use super::{Reads, row};
use crate::fault::Fault;
use crate::layout;

/// One task of a page: by status time, then by id.
type Place = (i64, String, i64);

/// The tasks among which a page is looked for: of one scope, or of one context.
struct Range {
    number: i64,
    in_context: bool,
    /// How many tasks it has in each state, by the state's number.
    counts: [i64; 8],
}

impl Range {
    /// The states in question that have tasks, and how many: the others need no look.
    fn states(&self, wanted: Option<TaskState>) -> Vec<(TaskState, i64)> {
        let states = TaskState::ALL.into_iter().filter(|state| wanted.is_none_or(|wanted| wanted == *state));
        let counted = states.map(|state| {
            let place = usize::try_from(state.number() - 1).unwrap_or_default();
            (state, self.counts.get(place).copied().unwrap_or_default())
        });
        counted.filter(|(_, count)| *count > 0).collect()
    }
}

impl Reads<'_> {
    pub(crate) fn list(&mut self, query: &ListQuery) -> Result<ListPage, Fault> {
        let Some(range) = self.range(query)? else { return Ok(ListPage::default()) };
        let bounds = ListBounds::new(query);
        let mut places = Vec::new();
        let mut total = 0;
        for (state, count) in range.states(query.state) {
            total += match query.status_timestamp_after {
                None => count,
                Some(_) => self.count_since(&range, state, bounds.since)?,
            };
            self.places(&range, state, &bounds, &mut places)?;
        }
        places.sort_unstable_by(|one, other| other.cmp(one));
        let more = places.len() > query.page_size;
        places.truncate(query.page_size);
        let next = places.last().filter(|_| more).map(cursor).transpose()?;
        let total = layout::count(total, "a count of tasks")?;
        let view = SnapshotQuery { at: None, history: query.history, artifacts: query.artifacts };
        let mut tasks = Vec::with_capacity(places.len());
        for (_, id, number) in places {
            let mut rows = self.statements.head_by_number.query([number])?;
            let found = rows.next()?.map(row::head).transpose()?;
            drop(rows);
            let (number, head) =
                found.ok_or_else(|| StoreError::corrupt(format!("task {id} is without its context")))?;
            tasks.push(self.task(number, &head, view)?);
        }
        Ok(ListPage { tasks, next, total })
    }

    fn range(&mut self, query: &ListQuery) -> Result<Option<Range>, Fault> {
        let (tenant, owner) = (query.scope.tenant.as_str(), query.scope.owner.as_str());
        let in_context = query.context_id.is_some();
        let read = |row: &Row<'_>| {
            let mut counts = [0; 8];
            for (count, column) in counts.iter_mut().zip(1..) {
                *count = row.get(column)?;
            }
            Ok(Range { number: row.get(0)?, in_context, counts })
        };
        let found = match &query.context_id {
            None => self.statements.scope_counts.query_row([tenant, owner], read),
            Some(context) => self.statements.context_counts.query_row([tenant, owner, context.as_str()], read),
        };
        Ok(found.optional()?)
    }

    fn places(
        &mut self,
        range: &Range,
        state: TaskState,
        bounds: &ListBounds,
        places: &mut Vec<Place>,
    ) -> Result<(), Fault> {
        let ListBounds { since, until, before_id, limit } = bounds;
        let statement =
            if range.in_context { &mut self.statements.page_of_context } else { &mut self.statements.page_of_scope };
        let mut rows = statement.query(params![range.number, state.number(), since, until, before_id, limit])?;
        while let Some(row) = rows.next()? {
            places.push((row.get(0)?, row.get(1)?, row.get(2)?));
        }
        Ok(())
    }

    fn count_since(&mut self, range: &Range, state: TaskState, since: i64) -> Result<i64, Fault> {
        let statement =
            if range.in_context { &mut self.statements.total_of_context } else { &mut self.statements.total_of_scope };
        Ok(statement.query_row(params![range.number, state.number(), since], |row| row.get(0))?)
    }
}

fn cursor((timestamp, id, _): &Place) -> Result<ListCursor, StoreError> {
    let task_id = TaskId::new(id).map_err(|error| StoreError::corrupt(format!("the id of a task: {error}")))?;
    Ok(ListCursor { timestamp: Timestamp::from_unix_millis(*timestamp), task_id })
}
