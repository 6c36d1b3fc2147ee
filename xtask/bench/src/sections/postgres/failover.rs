//! How soon the turns of an instance that was killed run at another.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use longhaul_pgtest::{Cluster, Database};

use crate::emit;
use crate::http::Connection;
use crate::report::{Bound, Figure};
use crate::request::MessageRequest;
use crate::run::Run;
use crate::stats::Latencies;

const INSTANCES: usize = 3;
/// How often one is killed, and how many turns it runs then.
const KILLS: usize = 5;
const TURNS: usize = 6;
/// A tenth and less of the default, so that this takes seconds: what is measured follows the lease.
const LEASE: Duration = Duration::from_secs(2);
/// How long the turns are waited for.
const TURNS_MAX: Duration = Duration::from_secs(30);

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>, cluster: &Cluster) -> Result<()> {
    let database = Database::fresh_in(cluster)?;
    let begun = run.data_dir()?.join("begun");
    let command = format!("echo $(date +%s%N) \"$(cat)\" >> '{}'; exec sleep 60", begun.display());
    let lease_ms = LEASE.as_millis();
    let config = format!("[agent]\nlease_duration = \"{lease_ms}ms\"\nattempts_max = 100\n");
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        instances.push(run.instance(database.url(), Some(&command), &config).await?);
    }
    let mut latencies = Latencies::default();
    for kill in 0..KILLS {
        // The first one: the others have been there for a while.
        let victim = instances.remove(0);
        let name = format!("turn-{kill}");
        for _ in 0..TURNS {
            let mut connection = Connection::connect(victim.addr()).await?;
            connection.exchange(MessageRequest::leave(&name)?.next()?).await?;
        }
        starts(&begun, &name, TURNS).await?;
        // At different moments between two heartbeats, and after the first.
        let share = u32::try_from(kill)? + 1;
        tokio::time::sleep(LEASE / 2 + LEASE / 15 * share).await;
        let killed = emit::now()?;
        victim.kill().await?;
        for started in starts(&begun, &name, 2 * TURNS).await?.into_iter().skip(TURNS) {
            latencies.push(started.saturating_sub(killed));
        }
        instances.push(run.instance(database.url(), Some(&command), &config).await?);
    }
    for instance in instances {
        instance.kill().await?;
    }
    let lease = LEASE.as_secs();
    let what = format!("kill -9 to the next attempt at another instance, lease of {lease} s");
    figures.push(Figure::new(format!("{what}, p50"), latencies.p50_ms(), "ms"));
    let longest = Figure::new(format!("{what}, longest of {}", latencies.len()), latencies.quantile_ms(1.0), "ms");
    let limit = (LEASE + Duration::from_secs(1)).as_secs_f64() * 1e3;
    figures.push(longest.limit("ms, limit lease + 1 s", Bound::AtMost, limit));
    Ok(())
}

/// When the commands of a name were started, in order, once there are `count`.
async fn starts(file: &Path, name: &str, count: usize) -> Result<Vec<Duration>> {
    let limit = tokio::time::Instant::now() + TURNS_MAX;
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' ').filter(|(_, of)| *of == name));
        let times = lines.map(|(time, _)| time.parse().map(Duration::from_nanos));
        let mut times = times.collect::<Result<Vec<_>, _>>().context("no time in the file of a command")?;
        if times.len() >= count {
            times.sort_unstable();
            return Ok(times);
        }
        if tokio::time::Instant::now() > limit {
            bail!("of {count} commands {} were started", times.len());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
