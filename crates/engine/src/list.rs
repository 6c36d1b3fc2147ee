//! ListTasks (A2A §3.1.4).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp, wire};
use longhaul_store::{HistoryLimit, ListCursor, ListQuery, Scope};
use sha2::{Digest as _, Sha256};

use crate::{Engine, EngineError};

/// What `ListTasks` asks for, already checked by the field rules.
#[derive(Clone, Debug)]
pub struct TasksQuery {
    /// Whose tasks.
    pub scope: Scope,
    /// Only tasks of this context.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Only tasks whose status is of this time or later.
    pub status_timestamp_after: Option<Timestamp>,
    /// How many tasks a page has at the most.
    pub page_size: usize,
    /// Where the page begins: empty for the first one, else what the page before said.
    pub page_token: String,
    /// How much history each task comes with.
    pub history: HistoryLimit,
    /// Whether each task comes with its artifacts.
    pub artifacts: bool,
}

/// One page of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPage {
    /// The tasks, the newest status first.
    pub tasks: Vec<wire::Task>,
    /// Where the next page begins; empty on the last one.
    pub next_page_token: String,
    /// How many tasks match the filters, on whatever page.
    pub total_size: u64,
}

const TOKEN_VERSION: u8 = 1;
const DIGEST_BYTES: usize = 8;

impl Engine {
    /// Lists tasks (A2A §3.1.4), the newest status first. A task that does not change during a walk is seen exactly once.
    ///
    /// # Errors
    ///
    /// [`EngineError::Invalid`] for a page token that is not one of ours or belongs to other filters.
    pub async fn list_tasks(&self, query: TasksQuery) -> Result<TaskPage, EngineError> {
        let digest = query.digest();
        let after = match query.page_token.as_str() {
            "" => None,
            token => Some(decode(token, digest)?),
        };
        let list = ListQuery {
            scope: query.scope,
            context_id: query.context_id,
            state: query.state,
            status_timestamp_after: query.status_timestamp_after,
            after,
            page_size: query.page_size,
            history: query.history,
            artifacts: query.artifacts,
        };
        let page = self.inner.store.list(list).await.map_err(|error| EngineError::store("list tasks", error))?;
        let next_page_token = page.next.map(|cursor| encode(&cursor, digest)).unwrap_or_default();
        Ok(TaskPage { tasks: page.tasks, next_page_token, total_size: page.total })
    }
}

impl TasksQuery {
    /// A digest of the filters: a cursor belongs to those with which it was made.
    fn digest(&self) -> [u8; DIGEST_BYTES] {
        let mut hash = Sha256::new();
        let after = self.status_timestamp_after.map(|after| after.to_string());
        let filters = [
            Some(self.scope.tenant.as_str()),
            Some(self.scope.owner.as_str()),
            self.context_id.as_ref().map(ContextId::as_str),
            self.state.map(TaskState::wire_name),
            after.as_deref(),
        ];
        for filter in filters {
            // A zero byte can be in no filter, so no two lists of filters read alike.
            hash.update([u8::from(filter.is_some())]);
            hash.update(filter.unwrap_or_default());
            hash.update([0]);
        }
        let mut digest = [0; DIGEST_BYTES];
        digest.iter_mut().zip(hash.finalize().iter()).for_each(|(to, from)| *to = *from);
        digest
    }
}

fn encode(cursor: &ListCursor, digest: [u8; DIGEST_BYTES]) -> String {
    let mut bytes = vec![TOKEN_VERSION];
    bytes.extend(digest);
    bytes.extend(cursor.timestamp.unix_millis().to_be_bytes());
    bytes.extend(cursor.task_id.as_str().as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(token: &str, digest: [u8; DIGEST_BYTES]) -> Result<ListCursor, EngineError> {
    let invalid = || EngineError::invalid("pageToken", "is not a page token of this server; begin again without one");
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| invalid())?;
    let (version, rest) = bytes.split_first().ok_or_else(invalid)?;
    let (filters, rest) = rest.split_first_chunk::<DIGEST_BYTES>().ok_or_else(invalid)?;
    let (millis, task_id) = rest.split_first_chunk::<8>().ok_or_else(invalid)?;
    if *version != TOKEN_VERSION {
        return Err(invalid());
    }
    if *filters != digest {
        let why = "belongs to a list with other filters; repeat the filters of the first page, or begin again without a token";
        return Err(EngineError::invalid("pageToken", why));
    }
    let task_id = std::str::from_utf8(task_id).ok().and_then(|id| TaskId::new(id).ok()).ok_or_else(invalid)?;
    Ok(ListCursor { timestamp: Timestamp::from_unix_millis(i64::from_be_bytes(*millis)), task_id })
}
