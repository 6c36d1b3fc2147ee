//! A store that was filled at once is like one that grew.
#![cfg(feature = "fill")]

use longhaul_protocol::TaskId;
use longhaul_store::{HistoryLimit, ListQuery, Scope, SnapshotQuery, Store};
use longhaul_store_sqlite::fill;

use self::folder::{Folder, now, open};

mod folder;

#[tokio::test]
async fn filled_tasks_are_listed_counted_and_read() {
    let folder = Folder::new();
    fill(&folder.config(), 100, now()).unwrap();
    fill(&folder.config(), 100, now()).unwrap();
    let store = open(&folder.config());
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
    for task in tasks {
        assert_eq!((task.history.len(), task.artifacts.len()), (1, 1));
        assert_eq!(task.history[0].task_id, task.id);
        let task_id = TaskId::new(&task.id).unwrap();
        let view = SnapshotQuery { at: Some(4), history: HistoryLimit::All, artifacts: true };
        let snapshot = store.snapshot(&query.scope, &task_id, view).await.unwrap().unwrap();
        assert_eq!(snapshot.task.artifacts, task.artifacts);
        assert_eq!(snapshot.sequence, snapshot.head.last_sequence);
        assert!(snapshot.head.state.is_terminal());
    }
    store.close().await.unwrap();
}
