//! Measures how many lives a second the store takes: a life is two commits, as of a task that is sent and answered.
//!
//! ```text
//! cargo run --release -p longhaul-store-sqlite --example rate [SECONDS] [FOLDER]
//! ```
#![expect(clippy::disallowed_methods, clippy::expect_used, reason = "a measurement, run by hand")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use longhaul_lifecycle::{Command, StatusUpdate, TaskHead, WorkerId, Writer, decide};
use longhaul_protocol::{ContextId, Message, Role, TaskId, Timestamp, json, wire};
use longhaul_store::{Commit, EventKind, Expect, NewEvent, NewMessage, NewTask, Scope, Store, created_event};
use longhaul_store_sqlite::{SqliteConfig, SqliteStore};

static NEXT: AtomicU64 = AtomicU64::new(1);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let folder = arguments.next().map_or_else(|| std::env::temp_dir().join("longhaul-rate"), PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    for clients in [1, 32, 256] {
        let _ = std::fs::remove_dir_all(&folder);
        runtime.block_on(measure(clients, Duration::from_secs(seconds), &folder));
    }
    let _ = std::fs::remove_dir_all(&folder);
}

async fn measure(clients: usize, time: Duration, folder: &std::path::Path) {
    let config = SqliteConfig { directory: folder.to_owned(), ..SqliteConfig::default() };
    let now = Timestamp::from_unix_millis(1_796_000_000_000);
    let store = Arc::new(SqliteStore::open(&config, now).expect("a store"));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                while begun.elapsed() < time {
                    let before = Instant::now();
                    live(&*store, now).await;
                    taken.push(before.elapsed());
                }
                taken
            })
        })
        .collect();
    let mut taken = Vec::new();
    for task in tasks {
        taken.extend(task.await.expect("a client"));
    }
    let rate = taken.len() as f64 / begun.elapsed().as_secs_f64();
    taken.sort_unstable();
    let at = |share: usize| taken.get(taken.len() * share / 100).copied().unwrap_or_default();
    let stats = store.writer_stats();
    let size = stats.commits as f64 / stats.batches as f64;
    println!("{clients:4} clients: {rate:8.0} lives/s, p50 {:?}, p99 {:?}, {size:.1} commits a batch", at(50), at(99));
    store.close().await.expect("it closes");
}

/// What the engine commits for a task that is answered at once.
async fn live(store: &dyn Store, now: Timestamp) {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let id = |kind: u8| format!("{:08x}-{:04x}-7000-8{kind:03x}-{number:012x}", number >> 16, number & 0xffff);
    let (task_id, context_id) = (TaskId::new(id(1)).expect("an id"), ContextId::new(id(2)).expect("an id"));
    let submitted = TaskHead::submitted(task_id.clone(), context_id.clone(), now);
    let lease_until = Timestamp::from_unix_millis(now.unix_millis() + 30_000);
    let started = decide(&submitted, Command::Start { lease_until, worker: WorkerId::default() }, Writer::Engine, now)
        .expect("a start");
    let event = |update: &StatusUpdate| NewEvent {
        kind: EventKind::Status { state: update.state, rests: update.rests },
        payload: json::to_json(&update.to_wire(&task_id, &context_id)),
    };
    let mut events = vec![created_event(&submitted, None)];
    events.extend(started.updates.iter().map(event));
    let first = Commit {
        task_id: task_id.clone(),
        expect: Expect::New(NewTask { scope: Scope::default(), metadata: None }),
        head: Some(started.head.clone()),
        events,
        messages: vec![NewMessage::new(question(&id(3)), 1)],
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now,
    };
    store.commit(first).await.expect("a task begins");
    let (epoch, version) = (started.head.epoch, started.head.version);
    let completed =
        decide(&started.head, Command::Complete { message: None }, Writer::Agent { epoch }, now).expect("an end");
    let mut events = vec![NewEvent { kind: EventKind::Artifact, payload: artifact(&task_id, &context_id) }];
    events.extend(completed.updates.iter().map(event));
    let expect = Expect::LeaseAndVersion { epoch, version };
    let second = Commit {
        task_id: task_id.clone(),
        expect,
        head: Some(completed.head),
        events,
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now,
    };
    store.commit(second).await.expect("a task ends");
}

fn question(id: &str) -> Message {
    let part = wire::Part {
        content: Some(wire::PartContent::Text("echo this line back".to_owned())),
        ..wire::Part::default()
    };
    let message = wire::Message {
        message_id: id.to_owned(),
        role: Role::User.into(),
        parts: vec![part],
        ..wire::Message::default()
    };
    Message::new(message).expect("a message")
}

fn artifact(task_id: &TaskId, context_id: &ContextId) -> Bytes {
    let part = wire::Part {
        content: Some(wire::PartContent::Text("echo this line back\n".to_owned())),
        ..wire::Part::default()
    };
    let update = wire::TaskArtifactUpdateEvent {
        task_id: task_id.as_str().to_owned(),
        context_id: context_id.as_str().to_owned(),
        artifact: Some(wire::Artifact {
            artifact_id: "output".to_owned(),
            parts: vec![part],
            ..wire::Artifact::default()
        }),
        ..wire::TaskArtifactUpdateEvent::default()
    };
    json::to_json(&wire::StreamResponse { payload: Some(wire::StreamResponsePayload::ArtifactUpdate(update)) })
}
