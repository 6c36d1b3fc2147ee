//! How long an event of one instance takes to a subscriber of another.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use longhaul_pgtest::{Cluster, Database};
use tokio::task::JoinSet;

use crate::http::{Connection, excerpt};
use crate::report::{Bound, Figure};
use crate::request::{self, MessageRequest};
use crate::run::Run;
use crate::stats::{Latencies, as_f64};
use crate::{emit, sse};

/// Tasks that write, and how often each: 500 events a second.
const TASKS: u32 = 10;
const EVERY_US: u64 = 20_000;
/// How many events each writes: for 6 s.
const EVENTS: u32 = 300;
/// Targets, in milliseconds.
const P50_MS: f64 = 50.0;
const P99_MS: f64 = 250.0;
/// How late a lost wake-up may make an event, in milliseconds: one poll, and its own way.
const POLL_MS: f64 = 1100.0;
/// At least this part of the events has to be seen by each subscriber: it comes when its task has begun.
const SEEN_MIN: f64 = 0.9;

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>, cluster: &Cluster) -> Result<()> {
    for notify in [true, false] {
        let word = if notify { "with" } else { "without" };
        let what = |whose: &str| format!("{word} NOTIFY: chunk of one instance to a subscriber of {whose}");
        let Seen { mut here, mut there } = measure_with(run, cluster, notify).await?;
        figures.push(Figure::new(format!("{}, p50", what("the same")), here.p50_ms(), "ms"));
        figures.push(Figure::new(format!("{}, p99", what("the same")), here.p99_ms(), "ms"));
        let p50 = Figure::new(format!("{}, p50", what("another")), there.p50_ms(), "ms");
        let p99 = Figure::new(format!("{}, p99", what("another")), there.p99_ms(), "ms");
        if notify {
            figures.push(p50.limit("ms", Bound::AtMost, P50_MS));
            figures.push(p99.limit("ms", Bound::AtMost, P99_MS));
        } else {
            figures.push(p50);
            figures.push(p99.limit("ms", Bound::AtMost, POLL_MS));
        }
        figures.push(Figure::new(format!("{}, longest", what("another")), there.quantile_ms(1.0), "ms"));
    }
    Ok(())
}

/// From the write of a chunk until a subscriber had it.
#[derive(Debug, Default)]
struct Seen {
    here: Latencies,
    there: Latencies,
}

async fn measure_with(run: &mut Run, cluster: &Cluster, notify: bool) -> Result<Seen> {
    let database = Database::fresh_in(cluster)?;
    let program = std::env::current_exe()?;
    let command = format!("exec '{}' emit --every-us {EVERY_US} --count {EVENTS}", program.display());
    let config = format!("[store.postgres]\nnotify = {notify}\n");
    let here = run.instance(database.url(), Some(&command), &config).await?;
    let there = run.instance(database.url(), Some(&command), &config).await?;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut readers = JoinSet::new();
    for _ in 0..TASKS {
        let task_id = send(here.addr()).await?;
        for (addr, other) in [(here.addr(), false), (there.addr(), true)] {
            let (task_id, seen) = (task_id.clone(), Arc::clone(&seen));
            readers.spawn(async move {
                let latencies = subscribe(addr, &task_id).await?;
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                if other {
                    seen.there.extend(latencies)
                } else {
                    seen.here.extend(latencies)
                }
                anyhow::Ok(())
            });
        }
    }
    while let Some(reader) = readers.join_next().await {
        reader.context("a reader ended early")??;
    }
    here.stop().await?;
    there.stop().await?;
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(seen)
}

/// Sends a message and does not wait: the turn runs where it was sent to.
async fn send(addr: SocketAddr) -> Result<String> {
    let mut connection = Connection::connect(addr).await?;
    let body = connection.exchange(MessageRequest::leave("go")?.next()?).await?;
    let answer: serde_json::Value = serde_json::from_slice(body).context("the answer is not JSON")?;
    let id = answer.pointer("/result/task/id").and_then(serde_json::Value::as_str);
    Ok(id.with_context(|| format!("no task: {}", excerpt(body)))?.to_owned())
}

/// Reads a task's events to its end. What is in the snapshot at the beginning is late and does not count.
async fn subscribe(addr: SocketAddr, task_id: &str) -> Result<Latencies> {
    let mut connection = Connection::connect(addr).await?;
    let mut latencies = Latencies::default();
    sse::run(&mut connection, &request::of_task("SubscribeToTask", task_id), |data, _| {
        let text = std::str::from_utf8(data).unwrap_or_default();
        if text.contains("\"artifactUpdate\"")
            && let Ok(now) = emit::now()
        {
            emit::written(text).for_each(|written| latencies.push(now.saturating_sub(written)));
        }
    })
    .await?;
    if as_f64(latencies.len()) < f64::from(EVENTS) * SEEN_MIN {
        bail!("a subscriber saw {} of {EVENTS} chunks", latencies.len());
    }
    Ok(latencies)
}
