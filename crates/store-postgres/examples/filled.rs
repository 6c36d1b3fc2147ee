//! Measures how fast `fill` is, and what a page, a snapshot and a purge cost afterwards, on a private cluster.
//!
//! ```text
//! cargo run --release -p longhaul-store-postgres --features fill --example filled [TASKS] [URL]
//! ```
#![expect(clippy::disallowed_methods, clippy::expect_used, reason = "a measurement, run by hand")]

use std::time::Instant;

use longhaul_pgtest::{Cluster, Database, Durability, Options};
use longhaul_protocol::{TaskId, TaskState, Timestamp};
use longhaul_store::{HistoryLimit, ListQuery, Scope, SnapshotQuery, Store};
use longhaul_store_postgres::{PostgresConfig, PostgresStore, fill};

const PAGES: u32 = 100;
const SNAPSHOTS: u32 = 1000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let tasks = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let given = arguments.next();
    let options = Options::new(Durability::Synced).setting("shared_buffers", "256MB").setting("max_wal_size", "4GB");
    let private = given.is_none().then(|| {
        let cluster = Cluster::start(options).expect("a cluster");
        let database = Database::fresh_in(cluster.server()).expect("a database");
        (cluster, database)
    });
    let url = given.or_else(|| private.as_ref().map(|(_, database)| database.url().to_owned())).expect("a database");
    let config = PostgresConfig { url, ..PostgresConfig::default() };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(&config, tasks));
}

async fn measure(config: &PostgresConfig, tasks: u64) {
    let now = Timestamp::from_unix_millis(1_796_000_000_000);
    let begun = Instant::now();
    fill(config, tasks, now).await.expect("a filled store");
    let took = begun.elapsed();
    println!("{tasks} tasks in {took:?}: {:.0} a second", tasks as f64 / took.as_secs_f64());
    let store = PostgresStore::open(config).await.expect("the store");
    read(&store).await;
    let begun = Instant::now();
    let mut removed = 0;
    while removed < tasks.min(10_000) {
        removed += store.purge(TaskState::Completed, Timestamp::MAX, 50).await.expect("a purge");
    }
    println!("{removed} tasks removed, 50 at once: {:?} each", begun.elapsed() / u32::try_from(removed).unwrap_or(1));
    store.close().await.expect("it closes");
}

async fn read(store: &PostgresStore) {
    let mut query = ListQuery {
        scope: Scope::default(),
        context_id: None,
        state: None,
        status_timestamp_after: None,
        after: None,
        page_size: 50,
        history: HistoryLimit::Latest(0),
        artifacts: false,
    };
    let begun = Instant::now();
    let mut last = None;
    for _ in 0..PAGES {
        let page = store.list(query.clone()).await.expect("a page");
        last = page.tasks.last().map(|task| task.id.clone());
        query.after = page.next;
    }
    println!("a page of 50: {:?}", begun.elapsed() / PAGES);
    let task_id = TaskId::new(last.expect("a task")).expect("an id");
    let begun = Instant::now();
    for _ in 0..SNAPSHOTS {
        let view = SnapshotQuery { at: None, history: HistoryLimit::All, artifacts: true };
        store.snapshot(&query.scope, &task_id, view).await.expect("a read").expect("a task");
    }
    println!("a task: {:?}", begun.elapsed() / SNAPSHOTS);
}
