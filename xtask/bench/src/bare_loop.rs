//! The bare SQLite loop: the same rows as a task makes, written with nothing around them.
//!
//! One writer thread takes what is waiting, writes it in one transaction, commits, and answers.
//! A task is one insert (a row of 2 KB with 3 indexes, an event row) and one update (state and
//! time, an event row), each acknowledged on its own.
//!
//! Which pages these touch decides most of the rate, so there are two kinds of rows: see [`Rows`].

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rusqlite::{Connection, Statement, params};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::load::Window;
use crate::stats::{Latencies, Outcome};

const PAYLOAD_BYTES: usize = 2048;
const EVENT_BYTES: usize = 256;

/// Most writes in one transaction.
const BATCH_MAX: usize = 512;

/// The settings are those of the server.
const SCHEMA: &str = "
    PRAGMA page_size = 4096;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA cache_size = -16384;
    CREATE TABLE task (
        task_row INTEGER PRIMARY KEY,
        task_id TEXT NOT NULL,
        owner TEXT NOT NULL,
        context_id TEXT NOT NULL,
        state INTEGER NOT NULL,
        status_time INTEGER NOT NULL,
        payload BLOB NOT NULL
    );
    CREATE UNIQUE INDEX task_by_id ON task (task_id);
    CREATE INDEX task_by_time ON task (owner, status_time);
    CREATE INDEX task_by_context ON task (context_id, state, status_time);
    CREATE TABLE event (task_row INTEGER NOT NULL, sequence INTEGER NOT NULL, payload BLOB NOT NULL);
    CREATE UNIQUE INDEX event_by_task ON event (task_row, sequence);
";

/// Tasks that are there before scattered rows are written.
const EXISTING: u64 = 20_000;

/// Which rows the loop writes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Rows {
    /// Ids in the order of time, each task updated right after its insert: neighbours share pages.
    Fresh,
    /// Random ids, and updates of any of many tasks that exist already: each write has its own pages.
    Scattered,
}

/// One way to run the loop.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Shape {
    /// Clients, each with one write on its way at most.
    pub clients: usize,
    /// Which rows.
    pub rows: Rows,
    /// Whether writes share transactions.
    pub grouping: Grouping,
}

impl Shape {
    /// One client: the time of one transaction.
    pub const ALONE: Self = Self::grouped(1, Rows::Fresh);

    /// No grouping, with as many clients as would make groups of 32.
    pub const SINGLE: Self = Self { clients: 32, rows: Rows::Fresh, grouping: Grouping::Single };

    /// `clients` clients whose writes share transactions.
    pub const fn grouped(clients: usize, rows: Rows) -> Self {
        Self { clients, rows, grouping: Grouping::Waiting }
    }
}

/// Whether writes that wait together share a transaction.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Grouping {
    /// Whatever waits, in one transaction.
    Waiting,
    /// One write, one transaction.
    Single,
}

/// What the loop gave.
#[derive(Debug, Default)]
pub struct LoopOutcome {
    /// Both writes of a task.
    pub tasks: Outcome,
    /// One write, from handing it over to its answer.
    pub transactions: Outcome,
}

impl LoopOutcome {
    /// Adds another window.
    pub fn extend(&mut self, other: Self) {
        self.tasks.extend(other.tasks);
        self.transactions.extend(other.transactions);
    }
}

enum Write {
    Insert(u64),
    Update(u64),
}

struct Job {
    write: Write,
    done: oneshot::Sender<()>,
}

/// Runs the loop in one `shape` on a fresh file in `dir`.
pub async fn run(dir: &Path, shape: Shape, length: Duration) -> Result<LoopOutcome> {
    let file = dir.join("loop.db");
    let database = Connection::open(&file).with_context(|| format!("cannot create {}", file.display()))?;
    database.execute_batch(SCHEMA).context("cannot make the loop's tables")?;
    let first = match shape.rows {
        Rows::Fresh => 0,
        Rows::Scattered => EXISTING,
    };
    fill(&database, shape.rows, first).context("cannot fill the loop's tables")?;
    // Each client has one write on its way at most, so the queue never fills.
    let (queue, jobs) = sync_channel(shape.clients);
    let writer = std::thread::spawn(move || write_all(&database, &jobs, shape));
    let window = Window::after_warm_up(length);
    let mut set = JoinSet::new();
    let step = u64::try_from(shape.clients)?;
    for client in 0..step {
        set.spawn(drive(queue.clone(), first + client, step, window));
    }
    drop(queue);
    let mut outcome = LoopOutcome::default();
    while let Some(client) = set.join_next().await {
        let (tasks, transactions) = client.context("a client of the loop ended early")??;
        outcome.tasks.latencies.extend(tasks);
        outcome.transactions.latencies.extend(transactions);
    }
    outcome.tasks.elapsed = length;
    outcome.transactions.elapsed = length;
    match writer.join() {
        Ok(result) => result.context("the loop's writer failed")?,
        Err(_) => bail!("the loop's writer panicked"),
    }
    for suffix in ["", "-wal", "-shm"] {
        // The side files are gone already when the last connection closed cleanly.
        let _ = std::fs::remove_file(dir.join(format!("loop.db{suffix}")));
    }
    Ok(outcome)
}

async fn drive(queue: SyncSender<Job>, first: u64, step: u64, window: Window) -> Result<(Latencies, Latencies)> {
    let (mut tasks, mut transactions) = (Latencies::default(), Latencies::default());
    let mut number = first;
    while !window.is_over() {
        let begun = Instant::now();
        submit(&queue, Write::Insert(number)).await?;
        window.record(begun, &mut transactions);
        let inserted = Instant::now();
        submit(&queue, Write::Update(number)).await?;
        window.record(inserted, &mut transactions);
        window.record(begun, &mut tasks);
        number += step;
    }
    Ok((tasks, transactions))
}

async fn submit(queue: &SyncSender<Job>, write: Write) -> Result<()> {
    let (done, answer) = oneshot::channel();
    queue.try_send(Job { write, done }).ok().context("the loop's writer has stopped")?;
    answer.await.context("the loop's writer dropped a write")
}

fn write_all(database: &Connection, jobs: &Receiver<Job>, shape: Shape) -> Result<()> {
    let batch_max = match shape.grouping {
        Grouping::Waiting => BATCH_MAX,
        Grouping::Single => 1,
    };
    let mut statements = Statements::prepare(database, shape.rows)?;
    let mut batch = Vec::with_capacity(batch_max);
    while let Ok(first) = jobs.recv() {
        batch.push(first);
        batch.extend(jobs.try_iter().take(batch_max - 1));
        database.execute_batch("BEGIN IMMEDIATE")?;
        for job in &batch {
            match job.write {
                Write::Insert(task) => statements.insert(task)?,
                Write::Update(task) => statements.update(task)?,
            }
        }
        database.execute_batch("COMMIT")?;
        for job in batch.drain(..) {
            // A client that is gone has nothing to be told.
            let _ = job.done.send(());
        }
    }
    Ok(())
}

/// Inserts the tasks below `count` in one transaction.
fn fill(database: &Connection, rows: Rows, count: u64) -> Result<()> {
    let mut statements = Statements::prepare(database, rows)?;
    database.execute_batch("BEGIN IMMEDIATE")?;
    for task in 0..count {
        statements.insert(task)?;
    }
    database.execute_batch("COMMIT")?;
    Ok(())
}

/// The statements of the loop, and what they write.
struct Statements<'a> {
    insert: Statement<'a>,
    update: Statement<'a>,
    log: Statement<'a>,
    rows: Rows,
    time: u64,
    payload: Vec<u8>,
    event: Vec<u8>,
}

impl<'a> Statements<'a> {
    fn prepare(database: &'a Connection, rows: Rows) -> Result<Self> {
        Ok(Self {
            insert: database.prepare(
                "INSERT INTO task (task_row, task_id, owner, context_id, state, status_time, payload)
                 VALUES (?1, ?2, 'owner', ?3, 1, ?4, ?5)",
            )?,
            update: database.prepare("UPDATE task SET state = 3, status_time = ?2 WHERE task_row = ?1")?,
            log: database.prepare("INSERT INTO event (task_row, sequence, payload) VALUES (?1, ?2, ?3)")?,
            rows,
            time: 0,
            payload: vec![b'p'; PAYLOAD_BYTES],
            event: vec![b'e'; EVENT_BYTES],
        })
    }

    fn insert(&mut self, task: u64) -> Result<()> {
        self.time += 1;
        let id = match self.rows {
            Rows::Fresh => task,
            Rows::Scattered => scatter(task),
        };
        let (task_id, context_id) = (format!("task-{id:032}"), format!("context-{id:032}"));
        let row = i64::try_from(task)?;
        self.insert.execute(params![row, task_id, context_id, i64::try_from(self.time)?, self.payload])?;
        self.log.execute(params![row, 1, self.event])?;
        Ok(())
    }

    fn update(&mut self, task: u64) -> Result<()> {
        self.time += 1;
        let target = match self.rows {
            Rows::Fresh => task,
            Rows::Scattered => scatter(self.time) % EXISTING,
        };
        self.update.execute(params![i64::try_from(target)?, i64::try_from(self.time)?])?;
        self.log.execute(params![i64::try_from(task)?, 2, self.event])?;
        Ok(())
    }
}

/// A number that looks random, and is another one for each `number` (the finalizer of SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_task_is_two_transactions() {
        let dir = std::env::temp_dir().join(format!("longhaul-bench-loop-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let shape = Shape { clients: 4, rows: Rows::Scattered, grouping: Grouping::Waiting };
        let outcome = run(&dir, shape, Duration::from_millis(200)).await.unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let (tasks, transactions) = (outcome.tasks.latencies.len(), outcome.transactions.latencies.len());
        assert!(tasks > 0);
        assert!(transactions.abs_diff(2 * tasks) <= 8, "{tasks} tasks, {transactions} transactions");
    }
}
