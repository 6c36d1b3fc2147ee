use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp, wire};

use crate::columns::{ceil_millis, int};
use crate::{HistoryLimit, Scope};

/// Where a page ends: the status time and id of its last task.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListCursor {
    /// The status time of the last task on the page.
    pub timestamp: Timestamp,
    /// Its id.
    pub task_id: TaskId,
}

/// What `ListTasks` asks for (A2A §3.1.4).
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Whose tasks.
    pub scope: Scope,
    /// Only tasks of this context.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Only tasks whose status is of this time or later.
    pub status_timestamp_after: Option<Timestamp>,
    /// Only tasks behind this one.
    pub after: Option<ListCursor>,
    /// How many tasks at the most.
    pub page_size: usize,
    /// How much history each task comes with.
    pub history: HistoryLimit,
    /// Whether each task comes with its artifacts.
    pub artifacts: bool,
}

/// One page: tasks by status time, the newest first, then by id, the greatest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListPage {
    /// The tasks of the page.
    pub tasks: Vec<wire::Task>,
    /// Where the next page begins; `None` when this is the last one.
    pub next: Option<ListCursor>,
    /// How many tasks match the filters, on whatever page.
    pub total: u64,
}

/// The part of an index by status time, then id, from which a page is read, for databases that keep whole milliseconds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListBounds {
    /// Only tasks of this millisecond or later ones.
    pub since: i64,
    /// Only tasks of this millisecond or earlier ones.
    pub until: i64,
    /// At `until` itself, only tasks with a smaller id.
    pub before_id: String,
    /// One task more than the page has: whether there is one says whether another page follows.
    pub limit: i64,
}

impl ListBounds {
    /// The bounds of the page that is asked for.
    #[must_use]
    pub fn new(query: &ListQuery) -> Self {
        let since = query.status_timestamp_after.map_or(i64::MIN, ceil_millis);
        let (until, before_id) = match &query.after {
            None => (i64::MAX, String::new()),
            // No task stands between two milliseconds: all of the earlier one are behind the cursor.
            Some(cursor) if ceil_millis(cursor.timestamp) > cursor.timestamp.unix_millis() => {
                (ceil_millis(cursor.timestamp), String::new())
            }
            Some(cursor) => (cursor.timestamp.unix_millis(), cursor.task_id.as_str().to_owned()),
        };
        Self { since, until, before_id, limit: int(query.page_size as u64).saturating_add(1) }
    }
}
