use std::ops::Deref;

use longhaul_protocol::{ContextId, Owner, TaskId, Tenant, Timestamp};
use longhaul_store::Scope;

use super::Reader;
use crate::{shards, testing};

mod line;
mod oldest;
mod plans;
mod views;

/// A database with empty tables, and what reads from it.
struct Fixture {
    reader: Reader,
    base: testing::Fixture,
}

impl Deref for Fixture {
    type Target = testing::Fixture;

    fn deref(&self) -> &testing::Fixture {
        &self.base
    }
}

impl Fixture {
    async fn new() -> Self {
        let base = testing::Fixture::new().await;
        Self { reader: base.reader(), base }
    }

    async fn put(&self, rows: impl IntoIterator<Item = TaskRow<'_>>) {
        let rows: Vec<String> = rows.into_iter().map(|row| row.values()).collect();
        let columns = "shard, id, tenant, owner, context_id, state, status_time, leased, epoch, due_at, last_sequence,
            compaction, version, attempt, cancel_requested, messages, turn_message, history, status";
        for rows in rows.chunks(1000) {
            self.execute(&format!("INSERT INTO task ({columns}) VALUES {}", rows.join(","))).await;
        }
    }
}

/// A row of `task`, as far as the tests below tell rows apart.
#[derive(Clone, Copy)]
struct TaskRow<'r> {
    id: &'r str,
    owner: &'r str,
    context_id: &'r str,
    state: i16,
    status_time: i64,
    leased: bool,
    epoch: i64,
    due_at: Option<i64>,
    last_sequence: i64,
    compaction: i16,
}

impl Default for TaskRow<'_> {
    fn default() -> Self {
        Self {
            id: "t",
            owner: "",
            context_id: "c",
            state: 1,
            status_time: 0,
            leased: false,
            epoch: 0,
            due_at: None,
            last_sequence: 1,
            compaction: 0,
        }
    }
}

impl TaskRow<'_> {
    fn values(&self) -> String {
        let Self { id, owner, context_id, state, status_time, leased, epoch, last_sequence, compaction, .. } = self;
        let (shard, due_at) =
            (shards::of_task(&task_id(id)), self.due_at.map_or("NULL".to_owned(), |due_at| due_at.to_string()));
        format!(
            "({shard}, '{id}', '', '{owner}', '{context_id}', {state}, {status_time}, {leased}, {epoch}, {due_at},
            {last_sequence}, {compaction}, 1, 0, false, 1, 0, 1, false)"
        )
    }
}

fn task_id(id: &str) -> TaskId {
    TaskId::new(id).unwrap()
}

fn scope(owner: &str) -> Scope {
    Scope { tenant: Tenant::default(), owner: Owner::new(owner).unwrap() }
}

fn context_id(id: &str) -> ContextId {
    ContextId::new(id).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}
