//! Measures how long commits wait while tasks are removed: many small ones, then one with a log of 100,000 events, which is
//! merged before.
//!
//! ```text
//! cargo run --release -p longhaul-store-sqlite --features fill --example purge [TASKS] [FOLDER]
//! ```
#![expect(clippy::disallowed_methods, clippy::expect_used, reason = "a measurement, run by hand")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longhaul_lifecycle::{Command, TaskHead, WorkerId, Writer, decide};
use longhaul_protocol::{ContextId, TaskId, TaskState, Timestamp, json, wire};
use longhaul_store::{Commit, EventKind, Expect, NewEvent, NewTask, Scope, Store, created_event};
use longhaul_store_sqlite::{SqliteConfig, SqliteStore, fill};

const EVENTS: usize = 100_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let tasks = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let folder = arguments.next().map_or_else(|| std::env::temp_dir().join("longhaul-purge"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&folder);
    let config = SqliteConfig { directory: folder.clone(), ..SqliteConfig::default() };
    let now = Timestamp::from_unix_millis(1_796_000_000_000);
    fill(&config, tasks, now).expect("a filled store");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    runtime.block_on(measure(&config, tasks, now));
    let _ = std::fs::remove_dir_all(&folder);
}

async fn measure(config: &SqliteConfig, tasks: u64, now: Timestamp) {
    let store = Arc::new(SqliteStore::open(config, now).expect("the store"));
    let mut chunks = begin(&*store, "chunks", now).await;
    let quiet = latencies(&store, &mut chunks, now, tokio::time::sleep(Duration::from_secs(2))).await;
    report("commits alone", quiet);
    let begun = Instant::now();
    let removed = remove(&store, Timestamp::MAX);
    let busy = latencies(&store, &mut chunks, now, removed).await;
    report("commits while small tasks are removed", busy);
    println!("{:.0} tasks removed a second", tasks as f64 / begun.elapsed().as_secs_f64());
    for name in ["merged", "removed"] {
        long_life(&*store, name, now).await;
        let begun = Instant::now();
        if name == "merged" {
            let merged = async { assert_eq!(store.compact(Timestamp::MAX, 10).await.expect("a compaction"), 1) };
            let busy = latencies(&store, &mut chunks, now, merged).await;
            report("commits while a long log is merged", busy);
            println!("{EVENTS} events merged in {:?}", begun.elapsed());
            remove(&store, Timestamp::MAX).await;
        }
    }
    let begun = Instant::now();
    let busy = latencies(&store, &mut chunks, now, remove(&store, Timestamp::MAX)).await;
    report("commits while a long log is removed", busy);
    println!("{EVENTS} events removed in {:?}", begun.elapsed());
    let space = async {
        let mut bytes = 0;
        loop {
            match store.give_back(1 << 20).await.expect("space") {
                0 => break,
                given => bytes += given,
            }
        }
        println!("{} MiB given back", bytes >> 20);
    };
    let busy = latencies(&store, &mut chunks, now, space).await;
    report("commits while space is given back", busy);
    store.close().await.expect("it closes");
}

async fn remove(store: &SqliteStore, before: Timestamp) {
    while store.purge(TaskState::Completed, before, 1000).await.expect("a purge") > 0 {}
}

/// How long each of many commits took, one after the other, until `other` was done.
async fn latencies(
    store: &Arc<SqliteStore>,
    head: &mut TaskHead,
    now: Timestamp,
    other: impl Future<Output = ()>,
) -> Vec<Duration> {
    let done = Arc::new(AtomicBool::new(false));
    let writes = {
        let (store, mut head, done) = (Arc::clone(store), head.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            let mut taken = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                head.last_sequence = store.commit(pieces(&head, 1, now)).await.expect("a chunk").last_sequence;
                taken.push(begun.elapsed());
            }
            (taken, head)
        })
    };
    other.await;
    done.store(true, Ordering::Relaxed);
    let (taken, newer) = writes.await.expect("the writes");
    *head = newer;
    taken
}

fn report(what: &str, mut taken: Vec<Duration>) {
    taken.sort_unstable();
    let at = |share: usize| taken.get((taken.len() * share / 1000).min(taken.len() - 1)).copied().unwrap_or_default();
    println!("{what}: {} commits, p50 {:?}, p99 {:?}, most {:?}", taken.len(), at(500), at(990), at(1000));
}

/// A task with a lease.
async fn begin(store: &dyn Store, id: &str, now: Timestamp) -> TaskHead {
    let task_id = TaskId::new(id).expect("an id");
    let submitted = TaskHead::submitted(task_id.clone(), ContextId::new(id).expect("an id"), now);
    let start = Command::Start { lease_until: Timestamp::MAX, worker: WorkerId::default() };
    let head = TaskHead { last_sequence: 1, ..decide(&submitted, start, Writer::Engine, now).expect("a start").head };
    let commit = Commit {
        task_id,
        expect: Expect::New(NewTask { scope: Scope::default(), metadata: None }),
        head: Some(head.clone()),
        events: vec![created_event(&submitted, None)],
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now,
    };
    store.commit(commit).await.expect("a task begins");
    head
}

/// A task with a long log that has ended.
async fn long_life(store: &dyn Store, id: &str, now: Timestamp) {
    let mut long = begin(store, id, now).await;
    for _ in 0..EVENTS / 500 {
        long.last_sequence = store.commit(pieces(&long, 500, now)).await.expect("chunks").last_sequence;
    }
    let done = decide(&long, Command::Complete { message: None }, Writer::Engine, now).expect("an end");
    let end = Commit { expect: Expect::Version(long.version), head: Some(done.head), ..pieces(&long, 1, now) };
    store.commit(end).await.expect("an end");
}

/// Chunks of one artifact under the lease, about as long as those of a language model.
fn pieces(head: &TaskHead, count: usize, now: Timestamp) -> Commit {
    let part = wire::Part {
        content: Some(wire::PartContent::Text("of a sentence, a few words at a time ".to_owned())),
        ..wire::Part::default()
    };
    let update = wire::TaskArtifactUpdateEvent {
        task_id: format!("{:0>36}", head.id.as_str()),
        context_id: format!("{:0>36}", head.context_id.as_str()),
        artifact: Some(wire::Artifact {
            artifact_id: "output".to_owned(),
            parts: vec![part],
            ..wire::Artifact::default()
        }),
        append: true,
        ..wire::TaskArtifactUpdateEvent::default()
    };
    let response = wire::StreamResponse { payload: Some(wire::StreamResponsePayload::ArtifactUpdate(update)) };
    let event = NewEvent { kind: EventKind::Artifact, payload: json::to_json(&response) };
    Commit {
        task_id: head.id.clone(),
        expect: Expect::Lease { epoch: head.epoch, last_sequence: head.last_sequence },
        head: None,
        events: vec![event; count],
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now,
    }
}
