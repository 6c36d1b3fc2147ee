//! Measures how many deliveries a second the store lets go out, to receivers that answer at once: each is claimed or held, its
//! event is read, and it is settled.
//!
//! ```text
//! cargo run --release -p longhaul-store-sqlite --example deliveries [TASKS] [FOLDER]
//! ```
#![expect(clippy::disallowed_methods, clippy::expect_used, clippy::panic, reason = "a measurement, run by hand")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ContextId, PushConfigId, TaskId, Timestamp};
use longhaul_store::{
    Commit, DueDelivery, EventKind, Expect, NewEvent, NewTask, Next, PushConfig, PushStore as _, Settlement, Store,
    created_event,
};
use longhaul_store_sqlite::{SqliteConfig, SqliteStore};

const EVENTS: u64 = 10;
const CLAIMS_MAX: usize = 64;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let tasks = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let folder = arguments.next().map_or_else(|| std::env::temp_dir().join("longhaul-deliveries"), PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    for (hosts, in_flight) in [(1, 64), (1000, 64), (1000, 256)] {
        let _ = std::fs::remove_dir_all(&folder);
        runtime.block_on(measure(tasks, hosts, in_flight, &folder));
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_796_000_000_000)
}

async fn measure(tasks: u64, hosts: u64, in_flight: usize, folder: &std::path::Path) {
    let config = SqliteConfig { directory: folder.to_owned(), ..SqliteConfig::default() };
    let store = Arc::new(SqliteStore::open(&config, now()).expect("a store"));
    let mut made = tokio::task::JoinSet::new();
    for number in 0..tasks {
        let store = Arc::clone(&store);
        made.spawn(async move { store.commit(task(number, hosts)).await.expect("a task is made") });
        if made.len() >= 512 {
            made.join_next().await;
        }
    }
    made.join_all().await;
    let begun = Instant::now();
    let claiming = Instant::now();
    store.next_delivery().await.expect("an answer");
    let next_took = claiming.elapsed();
    let delivered = Arc::new(AtomicU64::new(0));
    let mut sends = tokio::task::JoinSet::new();
    let mut after: Option<String> = None;
    loop {
        let until = Timestamp::from_unix_millis(now().unix_millis() + 60_000);
        let limit = CLAIMS_MAX.min(in_flight - sends.len());
        let due = store.claim_deliveries(now(), until, limit, after.as_deref(), &[]).await.expect("claims");
        if due.is_empty() && sends.is_empty() {
            break;
        }
        after = due.last().map(|due| due.config.host.clone());
        for due in due {
            let (store, delivered) = (Arc::clone(&store), Arc::clone(&delivered));
            sends.spawn(async move { send(&*store, due, until, &delivered).await });
        }
        sends.join_next().await;
        while sends.try_join_next().is_some() {}
    }
    let (count, seconds) = (delivered.load(Ordering::Relaxed), begun.elapsed().as_secs_f64());
    assert_eq!(count, tasks * EVENTS, "all are delivered");
    let rate = count as f64 / seconds;
    println!("{hosts:5} hosts, {in_flight:4} in flight: {rate:8.0} deliveries/s; the next time takes {next_took:?}");
    store.close().await.expect("it closes");
}

async fn send(store: &dyn Store, mut due: DueDelivery, until: Timestamp, delivered: &AtomicU64) {
    loop {
        let event = store.events_after(&due.task_id, due.sequence - 1, 1).await.expect("an event");
        assert_eq!(event.len(), 1, "the event is there");
        delivered.fetch_add(1, Ordering::Relaxed);
        let settled = store.settle_delivery(&due, Settlement::Delivered, Some(until), now()).await.expect("settled");
        match settled {
            Next::Held { sequence } => due.sequence = sequence,
            Next::Released => return,
            Next::Lost => panic!("nobody else claims"),
        }
    }
}

fn task(number: u64, hosts: u64) -> Commit {
    let id = format!("00000000-0000-7000-8000-{number:012x}");
    let (task_id, context_id) = (TaskId::new(&id).expect("an id"), ContextId::new(&id).expect("an id"));
    let head = TaskHead::submitted(task_id, context_id, now());
    let chunk = NewEvent { kind: EventKind::Artifact, payload: Bytes::from(vec![b' '; 300]) };
    let mut events = vec![created_event(&head, None)];
    events.resize(usize::try_from(EVENTS).expect("a few"), chunk);
    let host = format!("host-{}.example.com", number % hosts);
    let config = PushConfig {
        id: PushConfigId::new(&id).expect("an id"),
        url: format!("https://{host}/hook"),
        host,
        scheme: Some("Bearer".to_owned()),
        secrets: Some(Bytes::from(vec![7; 100])),
        version: "1.0".to_owned(),
        created_at: now(),
    };
    Commit {
        task_id: head.id.clone(),
        expect: Expect::New(NewTask::default()),
        events,
        head: Some(head),
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: vec![config],
        now: now(),
    }
}
