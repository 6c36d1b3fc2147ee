use longhaul_protocol::TaskState;
use longhaul_store::columns::{count, int};
use longhaul_store::{ListBounds, ListCursor, ListPage, ListQuery, snapshot_task};

use super::row::{self, HEAD_COLUMNS, View};
use super::view::history_limit;
use super::{Reader, statements};
use crate::fault::Fault;
use crate::session::Param;
use crate::shards;

impl Reader {
    pub(crate) async fn list(&self, query: &ListQuery) -> Result<ListPage, Fault> {
        let ListBounds { since, until, before_id, limit } = ListBounds::new(query);
        let (tenant, owner) = (query.scope.tenant.as_str(), query.scope.owner.as_str());
        let context = query.context_id.as_ref().map_or("", |context| context.as_str());
        let statement = if query.context_id.is_some() { statements::LIST_CONTEXT } else { statements::LIST_SCOPE };
        let states = TaskState::ALL.into_iter().filter(|state| query.state.is_none_or(|wanted| wanted == *state));
        let states: Vec<i16> = states.filter_map(|state| i16::try_from(state.number()).ok()).collect();
        let (page_size, history) = (int(query.page_size as u64), history_limit(query.history));
        let is_counted = query.status_timestamp_after.is_none();
        let shard = shards::of_counts(&query.scope, query.context_id.as_ref());
        let wanted: &[Param<'_>] = &[
            &tenant,
            &owner,
            &context,
            &states,
            &since,
            &until,
            &before_id,
            &limit,
            &page_size,
            &history,
            &query.artifacts,
            &is_counted,
            &shard,
        ];
        let rows = self.pool.query(statement, wanted).await?;
        let total = rows.first().map_or(Ok(0), |row| row::get(row, 0))?;
        let mut page = ListPage { total: count(total, "a count of tasks")?, ..ListPage::default() };
        // The total comes with a row that has nothing else when there are no tasks.
        let tasks = rows.iter().filter(|row| !matches!(row.try_get::<_, Option<&str>>(1), Ok(None)));
        for row in tasks {
            if page.tasks.len() == query.page_size {
                return Ok(page);
            }
            let head = row::head(row, 1)?;
            let View { metadata, history, artifacts } = row::view(row, 1 + HEAD_COLUMNS)?;
            page.tasks.push(snapshot_task(&head, metadata, history, None, artifacts)?);
            page.next = Some(ListCursor { timestamp: head.status_timestamp, task_id: head.id });
        }
        Ok(ListPage { next: None, ..page })
    }
}
