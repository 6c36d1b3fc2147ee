//! Leases: how soon a turn runs again whose worker died, what waiting and running tasks cost, and how soon a task begins.

mod inside;
mod throughput;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::http::Connection;
use crate::load;
use crate::process::StoreKind;
use crate::report::{Bound, Figure};
use crate::request::MessageRequest;
use crate::run::Run;
use crate::stats::median;

/// How often a server is killed.
const KILLS: usize = 7;
/// How long the file of a command is waited for.
const COMMAND_MAX: Duration = Duration::from_secs(20);
/// Connections through which waiting tasks are made.
const CONNECTIONS: usize = 32;
/// The state of a task that waits for its caller.
const ASKS: &str = "TASK_STATE_INPUT_REQUIRED";
/// Time before a look at memory, in which the server comes to rest.
const REST: Duration = Duration::from_secs(1);
/// Most megabytes that waiting tasks may add: caches fill, and then it stays.
const GROWTH_MB_MAX: f64 = 64.0;

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    if run.measures(StoreKind::Sqlite) {
        restart(run, figures).await?;
    }
    for store in run.options.stores.clone() {
        inside::measure(run, figures, store).await?;
    }
    throughput::measure(run, figures).await?;
    if run.measures(StoreKind::Sqlite) {
        waiting(run, figures).await?;
    }
    Ok(())
}

/// From `kill -9` until the command of the interrupted turn runs again in the next process, whose start is part of it.
async fn restart(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    let data = run.data_dir()?;
    let begun = data.join("begun");
    let command = format!("date +%s%N >> {}; exec sleep 600", begun.display());
    let config = "[agent]\nattempts_max = 100\nbackoff_min = \"10ms\"\nbackoff_max = \"10ms\"\n";
    let mut server = run.agent_on(&data, &command, config).await?;
    send_and_leave(server.addr(), "go").await?;
    let mut times = Vec::new();
    for kill in 1..=KILLS {
        newest(&begun, kill).await?;
        let killed = now_ns()?;
        server.kill().await?;
        server = run.agent_on(&data, &command, config).await?;
        let started = newest(&begun, kill + 1).await?;
        times.push(millis(started.saturating_sub(killed)));
    }
    server.kill().await?;
    let longest = times.iter().copied().fold(0.0, f64::max);
    figures.push(Figure::new("sqlite: kill -9 to the command running again, p50", median(&mut times), "ms"));
    figures.push(Figure::new(format!("sqlite: the same, longest of {KILLS}"), longest, "ms"));
    Ok(())
}

/// The last of `count` times in a file, in nanoseconds since 1970.
async fn newest(file: &Path, count: usize) -> Result<u64> {
    let limit = tokio::time::Instant::now() + COMMAND_MAX;
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.ends_with('\n') && text.lines().count() >= count {
            return text.lines().last().unwrap_or_default().parse().context("no time in the file of a command");
        }
        if tokio::time::Instant::now() > limit {
            bail!("the command was not started {count} times");
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn now_ns() -> Result<u64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_nanos())?)
}

fn millis(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e3
}

/// One send that is answered at once.
async fn send_and_leave(addr: std::net::SocketAddr, text: &str) -> Result<()> {
    let mut connection = Connection::connect(addr).await?;
    connection.exchange(MessageRequest::leave(text)?.next()?).await?;
    Ok(())
}

/// Memory of a server on which many tasks wait for their callers, and after it was started again.
async fn waiting(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    let data = run.data_dir()?;
    let server = run.server_on(&data, StoreKind::Sqlite, None).await?;
    tokio::time::sleep(REST).await;
    let idle = server.resident_mb()?;
    let count = run.options.finished;
    load::sends_until(server.addr(), CONNECTIONS, count, "input", ASKS).await?;
    tokio::time::sleep(REST).await;
    let after = server.resident_mb()?;
    server.stop().await?;
    let server = run.server_on(&data, StoreKind::Sqlite, None).await?;
    tokio::time::sleep(REST).await;
    let again = server.resident_mb()?;
    server.stop().await?;
    figures.push(Figure::new("sqlite: idle", idle, "MB"));
    figures.push(Figure::new(format!("sqlite: with {count} waiting tasks"), after, "MB"));
    figures.push(Figure::new("sqlite: growth", after - idle, "MB").limit("MB", Bound::AtMost, GROWTH_MB_MAX));
    figures.push(Figure::new(format!("sqlite: started again with {count} waiting tasks"), again, "MB"));
    Ok(())
}
