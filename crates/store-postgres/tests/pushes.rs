//! Push configs while others have their rows at the same moment.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longhaul_lifecycle::TaskHead;
use longhaul_pgtest::Database;
use longhaul_protocol::{ContextId, PushConfigId, TaskId, TaskState, Timestamp};
use longhaul_store::{
    Commit, Committed, DueDelivery, EventKind, Expect, NewEvent, NewTask, Next, PushBacklog, PushConfig, PushStore,
    Scope, Settlement, Store, StoreError,
};
use longhaul_store_postgres::{LeaseClock, PostgresConfig, PostgresStore};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_secs(20);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_700_000_000_000 + millis)
}

fn task_id(id: &str) -> TaskId {
    TaskId::new(id).unwrap()
}

fn config(id: &str, host: &str) -> PushConfig {
    PushConfig {
        id: PushConfigId::new(id).unwrap(),
        url: format!("https://{host}/"),
        host: host.to_owned(),
        scheme: None,
        secrets: Some(Bytes::from_static(b"sealed")),
        version: "1.0".to_owned(),
        created_at: at(0),
    }
}

/// A store, and a session beside it that has rows when it wants to.
struct Fixture {
    store: Arc<PostgresStore>,
    other: tokio_postgres::Client,
    database: Database,
}

impl Fixture {
    async fn new() -> Self {
        let database = Database::fresh().unwrap();
        let config = PostgresConfig {
            url: database.url().to_owned(),
            lease_clock: LeaseClock::Caller,
            ..PostgresConfig::default()
        };
        let store = Arc::new(PostgresStore::open(&config).await.unwrap());
        let (other, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        let mut connected = JoinSet::new();
        connected.spawn(connection);
        connected.detach_all();
        other.batch_execute("SET search_path = longhaul").await.unwrap();
        Self { store, other, database }
    }

    /// Waits until somebody waits for what this session has.
    async fn until_waited_for(&self) {
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waited = async {
            while self.other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
                // The answer is of one moment as long as the transaction lasts.
                self.other.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, waited).await.unwrap();
    }

    async fn number(&self, sql: &str) -> i64 {
        self.other.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn claim(&self, millis: i64) -> Vec<DueDelivery> {
        self.store.claim_deliveries(at(millis), at(millis + 10), 100, None, &[]).await.unwrap()
    }

    /// The only delivery that is due.
    async fn only(&self, millis: i64) -> DueDelivery {
        let mut due = self.claim(millis).await;
        assert_eq!(due.len(), 1, "{due:?}");
        due.remove(0)
    }
}

async fn settle(store: &PostgresStore, due: &DueDelivery, settlement: Settlement, hold: bool) -> Next {
    store.settle_delivery(due, settlement, hold.then(|| at(1000)), at(5)).await.unwrap()
}

fn dead() -> Settlement {
    Settlement::Dead { error: "no".to_owned() }
}

fn begin(id: &str, pushes: Vec<PushConfig>) -> Commit {
    let context = ContextId::new("context").unwrap();
    Commit {
        task_id: task_id(id),
        expect: Expect::New(NewTask::default()),
        head: Some(TaskHead::submitted(task_id(id), context, at(0))),
        events: vec![NewEvent { kind: EventKind::Artifact, payload: Bytes::from_static(b"{}") }],
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes,
        now: at(0),
    }
}

/// The next event of a task that `begin` made.
fn go_on(id: &str, before: Committed, pushes: Vec<PushConfig>) -> Commit {
    let begun = begin(id, pushes);
    let head = begun.head.map(|head| TaskHead { version: before.version + 1, ..head });
    Commit { expect: Expect::Version(before.version), head, now: at(1), ..begun }
}

/// The last event of a task that `begin` made.
fn end(id: &str, before: Committed) -> Commit {
    let last = go_on(id, before, Vec::new());
    let head = last.head.map(|head| TaskHead { state: TaskState::Completed, ..head });
    Commit { head, ..last }
}

#[tokio::test]
async fn a_commit_counts_that_waited_for_a_settlement() {
    let fixture = Fixture::new().await;
    let begun = fixture.store.commit(begin("task", vec![config("config", "host")])).await.unwrap();
    assert!(begun.has_pushes);
    fixture.other.batch_execute("BEGIN; UPDATE push_config SET cursor = 1, due_at = NULL").await.unwrap();
    let store = Arc::clone(&fixture.store);
    let mut committing = JoinSet::new();
    committing.spawn(async move { store.commit(go_on("task", begun, Vec::new())).await });
    fixture.until_waited_for().await;
    fixture.other.batch_execute("COMMIT").await.unwrap();
    let committed = committing.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!((committed.last_sequence, committed.has_pushes), (2, true));
    let due = fixture.only(1).await;
    assert_eq!((due.sequence, due.last_sequence), (2, 2));
}

#[tokio::test]
async fn a_settlement_that_waited_for_a_commit_goes_on_with_its_event() {
    let fixture = Fixture::new().await;
    fixture.store.commit(begin("task", vec![config("config", "host")])).await.unwrap();
    let due = fixture.only(0).await;
    fixture.other.batch_execute("BEGIN; UPDATE push_config SET last_sequence = 2").await.unwrap();
    let store = Arc::clone(&fixture.store);
    let mut settling = JoinSet::new();
    settling.spawn(async move { settle(&store, &due, Settlement::Delivered, true).await });
    fixture.until_waited_for().await;
    fixture.other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(settling.join_next().await.unwrap().unwrap(), Next::Held { sequence: 2 });
}

#[tokio::test]
async fn a_claim_passes_over_what_another_has() {
    let fixture = Fixture::new().await;
    fixture.store.commit(begin("one", vec![config("config", "host")])).await.unwrap();
    fixture.store.commit(begin("two", vec![config("config", "host")])).await.unwrap();
    fixture.other.batch_execute("BEGIN; SELECT FROM push_config WHERE task_id = 'one' FOR UPDATE").await.unwrap();
    let claimed = fixture.store.claim_deliveries(at(0), at(10), 1, None, &[]).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].task_id, task_id("two"));
    fixture.other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(fixture.only(0).await.task_id, task_id("one"));
}

#[tokio::test]
async fn nothing_of_a_task_is_left_that_others_move_while_it_is_removed() {
    let fixture = Fixture::new().await;
    let moves = ["UPDATE push_dead SET due_at = 7", "UPDATE push_config SET secrets = 'sealed again'"];
    for moved in moves {
        let begun = fixture.store.commit(begin("task", vec![config("config", "host")])).await.unwrap();
        fixture.store.commit(end("task", begun)).await.unwrap();
        for _ in 0..2 {
            settle(&fixture.store, &fixture.only(5).await, dead(), false).await;
        }
        let backlog = PushBacklog { configs: 0, dead: 2 };
        assert_eq!(fixture.store.push_backlog().await.unwrap(), backlog);
        fixture.other.batch_execute(&format!("BEGIN; {moved}")).await.unwrap();
        let store = Arc::clone(&fixture.store);
        let mut purging = JoinSet::new();
        purging.spawn(async move { store.purge(TaskState::Completed, at(1_000_000), 10).await });
        fixture.until_waited_for().await;
        fixture.other.batch_execute("COMMIT").await.unwrap();
        assert_eq!(purging.join_next().await.unwrap().unwrap().unwrap(), 1);
        let left = "SELECT (SELECT count(*) FROM push_config) + (SELECT count(*) FROM push_dead)";
        assert_eq!(fixture.number(left).await, 0, "{moved}");
    }
}

#[tokio::test]
async fn of_many_settlements_of_a_claim_one_counts() {
    let fixture = Fixture::new().await;
    let pushes = (0..20).map(|n| config(&format!("config-{n}"), "host")).collect();
    let begun = fixture.store.commit(begin("task", pushes)).await.unwrap();
    fixture.store.commit(go_on("task", begun, Vec::new())).await.unwrap();
    let mut settling = JoinSet::new();
    for due in fixture.claim(1).await {
        for settlement in [Settlement::Delivered, dead(), Settlement::Delivered] {
            let (store, due) = (Arc::clone(&fixture.store), due.clone());
            settling.spawn(async move { settle(&store, &due, settlement, true).await });
        }
    }
    let answers = settling.join_all().await;
    let count = |next: Next| answers.iter().filter(|answer| **answer == next).count();
    assert_eq!((count(Next::Held { sequence: 2 }), count(Next::Lost)), (20, 40));
    let PushBacklog { configs, dead } = fixture.store.push_backlog().await.unwrap();
    assert_eq!(configs, 20);
    assert_eq!(fixture.number("SELECT count(*) FROM push_config WHERE cursor = 1").await, 20);
    assert!(dead <= 20, "{dead}");
}

/// What a receiver sends may hold what the database takes in no text.
#[tokio::test]
async fn any_reason_is_kept() {
    let fixture = Fixture::new().await;
    fixture.store.commit(begin("task", vec![config("config", "host")])).await.unwrap();
    let error = "it said \0 and 'so on'".to_owned();
    settle(&fixture.store, &fixture.only(0).await, Settlement::Dead { error }, false).await;
    let dead = fixture.store.dead_deliveries(None, 9).await.unwrap();
    assert_eq!(dead[0].error, "it said \u{fffd} and 'so on'");
}

#[tokio::test]
async fn the_mark_of_a_task_goes_with_its_last_config() {
    let fixture = Fixture::new().await;
    let begun = fixture.store.commit(begin("task", vec![config("a", "host"), config("b", "host")])).await.unwrap();
    let (scope, task) = (Scope::default(), task_id("task"));
    let marked = "SELECT pushes::int::bigint FROM task";
    let due = fixture.claim(0).await;
    assert_eq!(settle(&fixture.store, &due[0], Settlement::Gone, false).await, Next::Released);
    assert_eq!(fixture.number(marked).await, 1);
    assert!(fixture.store.remove_push_config(&scope, &task, &due[1].config.id).await.unwrap());
    assert_eq!(fixture.number(marked).await, 0);
    let committed = fixture.store.commit(go_on("task", begun, Vec::new())).await.unwrap();
    assert!(!committed.has_pushes);
    let put = fixture.store.put_push_config(&scope, &task, config("c", "host"), 1, at(2)).await.unwrap();
    assert_eq!((put, fixture.number(marked).await), (Some(true), 1));
    let committed = fixture.store.commit(go_on("task", committed, Vec::new())).await.unwrap();
    assert!(committed.has_pushes);
    assert_eq!(fixture.only(2).await.sequence, 3);
}

const TASKS: usize = 12;
const ROUNDS: usize = 30;

/// Whoever takes rows takes them in one order: no two ever wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_waits_in_a_ring() {
    let fixture = Fixture::new().await;
    let mut working = JoinSet::new();
    for task in 0..TASKS {
        let store = Arc::clone(&fixture.store);
        working.spawn(async move { commit_all(&store, &format!("task-{task}")).await });
    }
    for sender in 0..4 {
        let store = Arc::clone(&fixture.store);
        working.spawn(async move { send(&store, sender).await });
    }
    for settler in 0..2 {
        let store = Arc::clone(&fixture.store);
        working.spawn(async move { change(&store, settler).await });
    }
    working.join_all().await;
    // Sessions tell of themselves when they end.
    fixture.store.close().await.unwrap();
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let ended = async { while fixture.number(sessions).await > 0 {} };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
    let rings = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(fixture.database.query(rings).unwrap(), [[Some("0".to_owned())]]);
}

async fn commit_all(store: &PostgresStore, id: &str) {
    let pushes = || vec![config("b", "host"), config("a", "other")];
    let mut known = store.commit(begin(id, pushes())).await.unwrap();
    for round in 0..ROUNDS {
        let pushes = if round % 3 == 0 { pushes() } else { Vec::new() };
        known = store.commit(go_on(id, known, pushes)).await.unwrap();
    }
    store.commit(end(id, known)).await.unwrap();
}

async fn send(store: &PostgresStore, sender: usize) {
    for round in 0..ROUNDS {
        let now = i64::try_from(round * 20).unwrap();
        let due = store.claim_deliveries(at(now), at(now + 10), 8, None, &[]).await.unwrap();
        let settled = due.iter().enumerate().map(|(place, due)| {
            let settlement = match (round + place + sender) % 5 {
                0 => Settlement::Gone,
                1 | 2 => dead(),
                3 => Settlement::Retry { at: at(now), error: "no".to_owned(), counts: true },
                _ => Settlement::Delivered,
            };
            settle(store, due, settlement, false)
        });
        futures_util::future::join_all(settled).await;
        store.retry_dead(None, None, at(now)).await.unwrap();
    }
}

async fn change(store: &PostgresStore, place: usize) {
    for round in 0..ROUNDS {
        let (scope, task) = (Scope::default(), task_id(&format!("task-{}", (round + place) % TASKS)));
        let id = PushConfigId::new("a").unwrap();
        store.put_push_config(&scope, &task, config("a", "third"), 5, at(0)).await.unwrap();
        store.reseal_config(&task, &id, b"sealed", Bytes::from_static(b"sealed")).await.unwrap();
        if round % 4 == 0 {
            store.remove_push_config(&scope, &task, &id).await.unwrap();
        }
        let purged: Result<u64, StoreError> = store.purge(TaskState::Completed, at(1_000_000), 3).await;
        purged.unwrap();
    }
}
