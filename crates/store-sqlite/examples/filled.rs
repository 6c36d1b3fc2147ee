//! Measures how fast `fill` is, and what a page and a snapshot cost afterwards.
//!
//! ```text
//! cargo run --release -p longhaul-store-sqlite --features fill --example filled [TASKS] [FOLDER]
//! ```
#![expect(clippy::disallowed_methods, clippy::expect_used, reason = "a measurement, run by hand")]

use std::path::PathBuf;
use std::time::Instant;

use longhaul_protocol::Timestamp;
use longhaul_store::{HistoryLimit, ListQuery, Scope, SnapshotQuery, Store};
use longhaul_store_sqlite::{SqliteConfig, SqliteStore, fill};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let tasks = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let folder = arguments.next().map_or_else(|| std::env::temp_dir().join("longhaul-filled"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&folder);
    let config = SqliteConfig { directory: folder.clone(), ..SqliteConfig::default() };
    let now = Timestamp::from_unix_millis(1_796_000_000_000);
    let begun = Instant::now();
    fill(&config, tasks, now).expect("a filled store");
    let took = begun.elapsed();
    let bytes = std::fs::metadata(folder.join("longhaul.db")).expect("a file").len();
    println!(
        "{tasks} tasks in {took:?}: {:.0} a second, {} bytes a task",
        tasks as f64 / took.as_secs_f64(),
        bytes / tasks.max(1)
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(read(&config, now));
    let _ = std::fs::remove_dir_all(&folder);
}

async fn read(config: &SqliteConfig, now: Timestamp) {
    let store = SqliteStore::open(config, now).expect("the store");
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
    for _ in 0..100 {
        let page = store.list(query.clone()).await.expect("a page");
        last = page.tasks.last().map(|task| task.id.clone());
        query.after = page.next;
    }
    println!("a page of 50: {:?}", begun.elapsed() / 100);
    let task_id = longhaul_protocol::TaskId::new(last.expect("a task")).expect("an id");
    let begun = Instant::now();
    for _ in 0..1000 {
        let view = SnapshotQuery { at: None, history: HistoryLimit::All, artifacts: true };
        store.snapshot(&query.scope, &task_id, view).await.expect("a read").expect("a task");
    }
    println!("a task: {:?}", begun.elapsed() / 1000);
    store.close().await.expect("it closes");
}
