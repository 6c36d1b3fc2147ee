//! A store that was filled at once is like one that grew.
#![cfg(feature = "fill")]

use longhaul_lifecycle::TaskHead;
use longhaul_pgtest::Database;
use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp};
use longhaul_store::fill::FilledTask;
use longhaul_store::{HistoryLimit, ListQuery, Scope, SnapshotQuery, Store, shard, shard_of_task};
use longhaul_store_postgres::{PostgresConfig, PostgresStore, fill};

#[tokio::test]
async fn filled_tasks_are_listed_counted_read_and_removed() {
    let database = Database::fresh().unwrap();
    let config = PostgresConfig { url: database.url().to_owned(), ..PostgresConfig::default() };
    let now = Timestamp::from_unix_millis(1_796_000_000_000);
    let lived = FilledTask::new(now).unwrap().head;
    fill(&config, 100, now).await.unwrap();
    fill(&config, 100, now).await.unwrap();
    let store = PostgresStore::open(&config).await.unwrap();
    let mut query = ListQuery {
        scope: Scope::default(),
        context_id: None,
        state: None,
        status_timestamp_after: None,
        after: None,
        page_size: 30,
        history: HistoryLimit::All,
        artifacts: true,
    };
    let mut tasks = Vec::new();
    loop {
        let page = store.list(query.clone()).await.unwrap();
        assert_eq!(page.total, 200);
        tasks.extend(page.tasks);
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    assert_eq!(tasks.len(), 200);
    for task in &tasks {
        assert_eq!((task.history.len(), task.artifacts.len()), (1, 1));
        assert_eq!(task.history[0].task_id, task.id);
        let (task_id, context_id) = (TaskId::new(&task.id).unwrap(), ContextId::new(&task.context_id).unwrap());
        assert_eq!(shard_of_task(&task_id), shard(&query.scope.tenant, &context_id));
        let view = SnapshotQuery { at: Some(4), history: HistoryLimit::All, artifacts: true };
        let snapshot = store.snapshot(&query.scope, &task_id, view).await.unwrap().unwrap();
        assert_eq!(snapshot.task.artifacts, task.artifacts);
        assert_eq!(snapshot.sequence, snapshot.head.last_sequence);
        let lived = TaskHead {
            id: task_id,
            context_id: context_id.clone(),
            status_timestamp: snapshot.head.status_timestamp,
            last_sequence: 4,
            ..lived.clone()
        };
        assert_eq!(snapshot.head, lived);
        let of_context = ListQuery { context_id: Some(context_id), ..query.clone() };
        assert_eq!(store.list(of_context).await.unwrap().total, 1);
    }
    assert_eq!(store.purge(TaskState::Completed, Timestamp::MAX, 150).await.unwrap(), 150);
    query.after = None;
    assert_eq!(store.list(query).await.unwrap().total, 50);
    store.close().await.unwrap();
}
