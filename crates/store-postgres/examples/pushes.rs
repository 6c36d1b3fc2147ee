//! Measures how many deliveries are claimed and settled in a second, and what push configs cost the commits, on a private cluster.
//!
//! ```text
//! cargo run --release -p longhaul-store-postgres --example pushes [TASKS] [SENDERS] [HOSTS] [URL]
//! ```
#![expect(clippy::disallowed_methods, clippy::expect_used, reason = "a measurement, run by hand")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_pgtest::{Cluster, Database, Durability, Options};
use longhaul_protocol::{ContextId, PushConfigId, TaskId, Timestamp};
use longhaul_store::{
    Commit, DueDelivery, EventKind, Expect, NewEvent, NewTask, Next, PushConfig, PushStore, Settlement, Store,
};
use longhaul_store_postgres::{PostgresConfig, PostgresStore};
use tokio::task::JoinSet;

/// How many events a task is made with.
const EVENTS: usize = 10;
const CLAIM: usize = 64;
const WRITERS: usize = 64;
const NOW: i64 = 1_796_000_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (tasks, senders, hosts) = (number(2000), number(64), number(100));
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
    runtime.block_on(measure(&config, tasks, senders, hosts));
}

async fn measure(config: &PostgresConfig, tasks: usize, senders: usize, hosts: usize) {
    let store = Arc::new(PostgresStore::open(config).await.expect("the store"));
    for (what, hosts) in [("without", 0), ("with a config", hosts)] {
        let begun = Instant::now();
        create(&store, what, tasks, hosts).await;
        println!("{tasks} tasks {what}: {:.0} commits a second", rate(tasks, begun));
    }
    let begun = Instant::now();
    let next = store.next_delivery().await.expect("an answer");
    println!("the next delivery: {next:?} in {:?}", begun.elapsed());
    let begun = Instant::now();
    let early = Timestamp::from_unix_millis(NOW - 1);
    let due = store.claim_deliveries(early, early, CLAIM, None, &[]).await.expect("claims");
    println!("a claim while nothing is due: {} in {:?}", due.len(), begun.elapsed());
    let begun = Instant::now();
    let (settled, claims, claiming) = deliver(&store, senders).await;
    assert_eq!(settled, tasks * EVENTS);
    println!("{settled} deliveries, {senders} at once: {:.0} settled a second", rate(settled, begun));
    println!("{claims} claims of {CLAIM}, {:?} each", claiming / u32::try_from(claims.max(1)).unwrap_or(1));
    store.close().await.expect("it closes");
}

fn rate(count: usize, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64()
}

async fn create(store: &Arc<PostgresStore>, what: &'static str, tasks: usize, hosts: usize) {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(store);
        writers.spawn(async move {
            for n in (writer..tasks).step_by(WRITERS) {
                store.commit(creation(&format!("{what}-{n}"), n, hosts)).await.expect("a commit");
            }
        });
    }
    writers.join_all().await;
}

/// A task with a log, and a config at one of the hosts if there are any.
fn creation(id: &str, n: usize, hosts: usize) -> Commit {
    let (task_id, now) = (TaskId::new(id).expect("an id"), Timestamp::from_unix_millis(NOW));
    let context = ContextId::new("context").expect("an id");
    let config = n.checked_rem(hosts).map(|host| PushConfig {
        id: PushConfigId::new("config").expect("an id"),
        url: format!("https://host-{host}.example/hooks/of/somebody"),
        host: format!("host-{host}.example:443"),
        scheme: Some("Bearer".to_owned()),
        secrets: Some(Bytes::from_static(&[7; 120])),
        version: "1.0".to_owned(),
        created_at: now,
    });
    let event = NewEvent { kind: EventKind::Artifact, payload: Bytes::from_static(&[b' '; 300]) };
    Commit {
        task_id: task_id.clone(),
        expect: Expect::New(NewTask::default()),
        head: Some(TaskHead::submitted(task_id, context, now)),
        events: vec![event; EVENTS],
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: config.into_iter().collect(),
        now,
    }
}

/// Delivers all to receivers that answer at once. Answers how much was settled, in how many claims, and how long those took.
async fn deliver(store: &Arc<PostgresStore>, senders: usize) -> (usize, usize, Duration) {
    let (places, mut sending) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    let (now, until) = (Timestamp::from_unix_millis(NOW + 1), Timestamp::from_unix_millis(NOW + 60_000));
    let (mut settled, mut claims, mut claiming, mut last) = (0, 0, Duration::ZERO, None::<String>);
    loop {
        let free = senders.saturating_sub(places.load(Ordering::Relaxed)).min(CLAIM);
        if free * 2 >= senders.min(CLAIM) {
            let begun = Instant::now();
            let due = store.claim_deliveries(now, until, free, last.as_deref(), &[]).await.expect("claims");
            (claims, claiming) = (claims + 1, claiming + begun.elapsed());
            last = due.last().map(|due| due.config.host.clone());
            if due.is_empty() && sending.is_empty() {
                return (settled, claims, claiming);
            }
            for due in due {
                places.fetch_add(1, Ordering::Relaxed);
                sending.spawn(send(Arc::clone(store), due, now, until));
            }
        }
        if let Some(sent) = sending.join_next().await {
            settled += sent.expect("a sender");
            places.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Goes on to the end of the log.
async fn send(store: Arc<PostgresStore>, mut due: DueDelivery, now: Timestamp, until: Timestamp) -> usize {
    for sent in 1.. {
        match store.settle_delivery(&due, Settlement::Delivered, Some(until), now).await.expect("settled") {
            Next::Held { sequence } => due.sequence = sequence,
            Next::Released => return sent,
            Next::Lost => return sent - 1,
        }
    }
    unreachable!("a log ends")
}
