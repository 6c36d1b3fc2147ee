//! The bare SQLite loop: the same rows as a task makes, written with nothing around them.
//!
//! One writer thread takes what is waiting, writes it in one transaction, commits, and answers.
//! A task is one insert (a row of 2 KB with 3 indexes, an event row) and one update (state and
//! time, an event row), each acknowledged on its own.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rusqlite::{Connection, params};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::load::Window;
use crate::stats::{Latencies, Outcome};

const PAYLOAD_BYTES: usize = 2048;
const EVENT_BYTES: usize = 256;

/// Most writes in one transaction.
const BATCH_MAX: usize = 512;

const SCHEMA: &str = "
    PRAGMA page_size = 4096;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
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

/// Whether writes that wait together share a transaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
    Insert(i64),
    Update(i64),
}

struct Job {
    write: Write,
    done: oneshot::Sender<()>,
}

/// Runs the loop with `clients` clients on a fresh file in `dir`.
pub async fn run(
    dir: &Path,
    clients: usize,
    grouping: Grouping,
    length: Duration,
) -> Result<LoopOutcome> {
    let file = dir.join("loop.db");
    let database =
        Connection::open(&file).with_context(|| format!("cannot create {}", file.display()))?;
    database
        .execute_batch(SCHEMA)
        .context("cannot make the loop's tables")?;
    // Each client has one write on its way at most, so the queue never fills.
    let (queue, jobs) = sync_channel(clients);
    let writer = std::thread::spawn(move || write_all(database, &jobs, grouping));
    let window = Window::after_warm_up(length);
    let mut set = JoinSet::new();
    for client in 0..clients {
        set.spawn(drive(
            queue.clone(),
            i64::try_from(client)?,
            i64::try_from(clients)?,
            window,
        ));
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

async fn drive(
    queue: SyncSender<Job>,
    first: i64,
    step: i64,
    window: Window,
) -> Result<(Latencies, Latencies)> {
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
    queue
        .try_send(Job { write, done })
        .ok()
        .context("the loop's writer has stopped")?;
    answer.await.context("the loop's writer dropped a write")
}

fn write_all(database: Connection, jobs: &Receiver<Job>, grouping: Grouping) -> Result<()> {
    let batch_max = match grouping {
        Grouping::Waiting => BATCH_MAX,
        Grouping::Single => 1,
    };
    let payload = vec![b'p'; PAYLOAD_BYTES];
    let event = vec![b'e'; EVENT_BYTES];
    let mut insert = database.prepare(
        "INSERT INTO task (task_row, task_id, owner, context_id, state, status_time, payload)
         VALUES (?1, ?2, 'owner', ?3, 1, ?4, ?5)",
    )?;
    let mut update =
        database.prepare("UPDATE task SET state = 3, status_time = ?2 WHERE task_row = ?1")?;
    let mut log =
        database.prepare("INSERT INTO event (task_row, sequence, payload) VALUES (?1, ?2, ?3)")?;
    let mut time: i64 = 0;
    let mut batch = Vec::with_capacity(batch_max);
    while let Ok(first) = jobs.recv() {
        batch.push(first);
        batch.extend(jobs.try_iter().take(batch_max - 1));
        database.execute_batch("BEGIN IMMEDIATE")?;
        for job in &batch {
            time += 1;
            match job.write {
                Write::Insert(row) => {
                    insert.execute(params![
                        row,
                        format!("task-{row:032}"),
                        format!("context-{row:032}"),
                        time,
                        payload
                    ])?;
                    log.execute(params![row, 1, event])?;
                }
                Write::Update(row) => {
                    update.execute(params![row, time])?;
                    log.execute(params![row, 2, event])?;
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_task_is_two_transactions() {
        let dir = std::env::temp_dir().join(format!("longhaul-bench-loop-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let outcome = run(&dir, 4, Grouping::Waiting, Duration::from_millis(200))
            .await
            .unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let (tasks, transactions) = (
            outcome.tasks.latencies.len(),
            outcome.transactions.latencies.len(),
        );
        assert!(tasks > 0);
        assert!(
            transactions.abs_diff(2 * tasks) <= 8,
            "{tasks} tasks, {transactions} transactions"
        );
    }
}
