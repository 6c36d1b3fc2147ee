//! Renewals of leases, while other things hang.

use std::time::Duration;

use longhaul_lifecycle::{TaskHead, WorkerId};
use longhaul_pgtest::Database;
use longhaul_protocol::{ContextId, TaskId, Timestamp};
use longhaul_store::{Commit, EventKind, Expect, HeldLease, NewEvent, NewTask, Store};
use longhaul_store_postgres::{PostgresConfig, PostgresStore};

#[tokio::test]
async fn readers_that_hang_keep_no_lease_from_being_renewed() {
    let database = Database::fresh().unwrap();
    let config = PostgresConfig { url: database.url().to_owned(), readers: 1, ..PostgresConfig::default() };
    let store = PostgresStore::open(&config).await.unwrap();
    let now = store.clock().now();
    let until = Timestamp::from_unix_millis(now.unix_millis() + 60_000);
    let task_id = TaskId::new("task").unwrap();
    let submitted = TaskHead::submitted(task_id.clone(), ContextId::new("context").unwrap(), now);
    let head =
        TaskHead { epoch: 1, attempt: 1, leased: true, worker: WorkerId::new("w"), due_at: Some(until), ..submitted };
    let commit = Commit {
        task_id: task_id.clone(),
        expect: Expect::New(NewTask::default()),
        head: Some(head),
        events: vec![NewEvent { kind: EventKind::Artifact, payload: "{}".into() }],
        messages: Vec::new(),
        checkpoint: None,
        dedup: None,
        pushes: Vec::new(),
        now,
    };
    store.commit(commit).await.unwrap();
    let held = [HeldLease { task_id: task_id.clone(), epoch: 1 }];
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    let hangs = async |connections: i64| {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        while client.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) < connections {}
    };
    let test = async {
        client.batch_execute("BEGIN; LOCK TABLE longhaul.event").await.unwrap();
        let renewing = async {
            // The only reader waits for the table.
            hangs(1).await;
            let renewed = tokio::time::timeout(Duration::from_secs(5), store.renew(&held, now, until)).await;
            client.batch_execute("COMMIT").await.unwrap();
            renewed
        };
        let (events, renewed) = tokio::join!(store.events_after(&task_id, 0, 10), renewing);
        assert_eq!(events.unwrap().len(), 1);
        assert_eq!(renewed.expect("nothing keeps it").unwrap(), []);
        // Nor a renewal before it that was given up.
        client.batch_execute("BEGIN; LOCK TABLE longhaul.lease").await.unwrap();
        for connections in 1..=2 {
            let tried = async {
                tokio::select! {
                    done = store.renew(&held, now, until) => panic!("{done:?}"),
                    () = hangs(connections) => {}
                }
            };
            tokio::time::timeout(Duration::from_secs(5), tried).await.expect("each has a connection of its own");
        }
        client.batch_execute("COMMIT").await.unwrap();
        assert_eq!(store.renew(&held, now, until).await.unwrap(), []);
    };
    tokio::select! {
        () = test => {}
        ended = connection => panic!("{ended:?}"),
    }
    store.close().await.unwrap();
}
