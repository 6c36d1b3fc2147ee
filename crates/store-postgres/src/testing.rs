//! A database for tests of parts of the store, and how its statements are worked out.

use std::time::Duration;

use longhaul_pgtest::Database as Fresh;
use longhaul_protocol::TaskId;
use tokio_postgres::SimpleQueryMessage;
use tokio_util::task::TaskTracker;

use crate::PostgresConfig;
use crate::connect::Connector;
use crate::migrations;
use crate::pool::Pool;
use crate::reader::Reader;
use crate::session::{Database, Session};
use crate::shards;

/// How long a test waits for what should come at once, or does not wait at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A database with empty tables.
pub(crate) struct Fixture {
    pub(crate) database: Database,
    pub(crate) pool: Pool,
    pub(crate) session: Session,
    _fresh: Fresh,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let fresh = Fresh::fresh().unwrap();
        let config = PostgresConfig { url: fresh.url().to_owned(), ..PostgresConfig::default() };
        let connector = Connector::new(&config).unwrap();
        let database = Database::new(config, connector, TaskTracker::new());
        migrations::prepare(&database, true).await.unwrap();
        let (session, pool) = (database.connect().await.unwrap(), Pool::new(&database).unwrap());
        Self { database, pool, session, _fresh: fresh }
    }

    /// What another instance has: connections of its own.
    pub(crate) fn other_pool(&self) -> Pool {
        Pool::new(&self.database).unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.pool.clone())
    }

    pub(crate) async fn execute(&self, sql: &str) {
        self.session.client().batch_execute(sql).await.unwrap();
    }

    /// The first column of the only row.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.session.client().query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Puts completed tasks there, each a millisecond younger than the one before, with `events` events and two messages, a status
    /// and a checkpoint; the payload of each event has so many bytes. Answers their ids.
    pub(crate) async fn put_tasks(&self, owner: &str, count: usize, events: i64, bytes: i32) -> Vec<String> {
        let ids: Vec<String> = (0..count).map(|n| format!("{owner}-{n}")).collect();
        let shards: Vec<i16> = ids.iter().map(|id| shard_of(id)).collect();
        let put = "WITH put AS (
                INSERT INTO task (shard, id, tenant, owner, context_id, state, status_time, version, last_sequence, epoch, attempt,
                    leased, cancel_requested, messages, turn_message, history, status, compaction)
                SELECT u.shard, u.id, '', $3, 'context', 3, u.place, 1, $4, 1, 1, false, false, 2, 0, 2, true, 1
                FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS u (shard, id, place) RETURNING shard, id),
            statuses AS (INSERT INTO task_status SELECT shard, id, 'message' FROM put),
            checkpoints AS (INSERT INTO task_checkpoint SELECT shard, id, 'data' FROM put),
            messages AS (INSERT INTO message SELECT shard, id, n, 0, 'hello' FROM put, generate_series(0, 1) AS n)
            INSERT INTO event SELECT shard, id, n, 1, 0, convert_to(repeat('x', $5), 'UTF8') FROM put, generate_series(1, $4) AS n";
        self.session.execute(put, &[&shards, &ids, &owner, &events, &bytes]).await.unwrap();
        ids
    }

    /// How many rows each of these tables has.
    pub(crate) async fn rows<const N: usize>(&self, tables: [&str; N]) -> [i64; N] {
        let mut rows = [0; N];
        for (rows, table) in rows.iter_mut().zip(tables) {
            *rows = self.number(&format!("SELECT count(*) FROM {table}")).await;
        }
        rows
    }
}

pub(crate) fn shard_of(id: &str) -> i16 {
    shards::of_task(&TaskId::new(id).unwrap())
}

/// How a statement would be worked out, whatever its parameters.
pub(crate) async fn plan(fixture: &Fixture, sql: &str) -> Vec<String> {
    let params = (1..30).take_while(|n| sql.contains(&format!("${n}"))).count();
    let nulls = if params == 0 { String::new() } else { format!("({})", vec!["NULL"; params].join(",")) };
    let explain = format!("PREPARE step AS {sql}; EXPLAIN (COSTS OFF) EXECUTE step{nulls}; DEALLOCATE step");
    let answer = fixture.session.client().simple_query(&explain).await.unwrap();
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    answer.into_iter().filter_map(row).collect()
}

/// Refuses a plan that walks over all rows of a table.
pub(crate) fn check_plan(plan: &[String]) {
    let whole = plan.join("\n");
    for refused in ["Seq Scan", "Bitmap", "Hash Join", "Merge Join", "Gather"] {
        assert!(!whole.contains(refused), "{whole}");
    }
    let mut scans = 0;
    for (line, next) in plan.iter().zip(plan.iter().skip(1).map(String::as_str).chain([""])) {
        let Some((_, scan)) = line.split_once(" using ") else { continue };
        scans += 1;
        // The first of a small table; and logs to merge have an index of their own.
        let from_the_start = ["task_removed_pkey", "task_compaction"].iter().any(|index| scan.starts_with(index));
        assert!(next.contains("Index Cond: ") || from_the_start, "{whole}");
    }
    assert!(scans > 0, "{whole}");
}
