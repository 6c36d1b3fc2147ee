use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp, wire};

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
