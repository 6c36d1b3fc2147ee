//! Blocking sends a second on SQLite, on PostgreSQL with one instance and with three, and what `pgbench` makes of their rows.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use longhaul_pgtest::{Cluster, Database};

use super::script::{Ringing, Sent, Trips};
use crate::http::Connection;
use crate::load;
use crate::pgbench::Bench;
use crate::process::{Process, StoreKind};
use crate::report::{Bound, Figure};
use crate::request::MessageRequest;
use crate::run::Run;
use crate::stats::Outcome;

const TEXT: &str = "echo hello";
const CLIENTS: [usize; 3] = [8, 32, 128];
/// The instances of the larger subject.
const INSTANCES: usize = 3;
/// Target: sends a second, of runs of the script a second, each at its best number of clients.
const RATIO_MIN: f64 = 0.6;
/// Sends before the script is made.
const SENT: usize = 20;
/// Clients with which ringing inside the transaction is compared.
const RINGING_CLIENTS: usize = 32;

/// Instances that share a store, and what they did at one number of clients.
struct Subject {
    name: &'static str,
    instances: Vec<Process>,
    best: f64,
}

/// A script, and its rates at one number of clients.
struct Ceiling {
    name: &'static str,
    script: PathBuf,
    best: f64,
}

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>, cluster: &Cluster) -> Result<()> {
    let [one, three, bare] = [Database::fresh_in(cluster)?, Database::fresh_in(cluster)?, Database::fresh_in(cluster)?];
    let sent = sent(run, &bare).await?;
    let script = |run: &Run, name: &str, trips, ringing| -> Result<PathBuf> {
        let path = run.dir().join(format!("{name}.pgbench"));
        std::fs::write(&path, sent.script(trips, ringing)?)?;
        Ok(path)
    };
    let each = script(run, "each", Trips::Each, Ringing::No)?;
    let together = script(run, "together", Trips::One, Ringing::No)?;
    let ringing = script(run, "ringing", Trips::Each, Ringing::Inside)?;
    let mut subjects = [
        Subject { name: "sqlite", instances: vec![run.server(StoreKind::Sqlite, None).await?], best: 0.0 },
        Subject { name: "postgres, one instance", instances: start(run, one.url(), 1).await?, best: 0.0 },
        Subject { name: "postgres, three instances", instances: start(run, three.url(), INSTANCES).await?, best: 0.0 },
    ];
    let mut ceilings = [
        Ceiling { name: "pgbench, a trip for each statement", script: each.clone(), best: 0.0 },
        Ceiling { name: "pgbench, a trip for each transaction", script: together, best: 0.0 },
    ];
    for clients in CLIENTS {
        measure_at(run, figures, clients, &mut subjects, (&mut ceilings, bare.url())).await?;
    }
    push_bests(figures, &subjects, &ceilings);
    for subject in subjects {
        for instance in subject.instances {
            instance.stop().await?;
        }
    }
    notify_inside(run, figures, bare.url(), [&each, &ringing]).await
}

/// Makes the tables, and sends, of which the last counts: the first ones find nothing prepared.
async fn sent(run: &mut Run, database: &Database) -> Result<Sent> {
    let server = run.instance(database.url(), None, "").await?;
    let mut connection = Connection::connect(server.addr()).await?;
    let mut request = MessageRequest::send(TEXT)?;
    for _ in 0..SENT {
        load::send_one(&mut connection, &mut request).await?;
    }
    server.stop().await?;
    Sent::read(database.server(), database.name()).context("cannot read what a send wrote")
}

pub(super) async fn start(run: &mut Run, url: &str, count: usize) -> Result<Vec<Process>> {
    let mut instances = Vec::with_capacity(count);
    for _ in 0..count {
        instances.push(run.instance(url, None, "").await?);
    }
    Ok(instances)
}

async fn measure_at(
    run: &Run,
    figures: &mut Vec<Figure>,
    clients: usize,
    subjects: &mut [Subject],
    (ceilings, url): (&mut [Ceiling], &str),
) -> Result<()> {
    let mut outcomes: Vec<Outcome> = subjects.iter().map(|_| Outcome::default()).collect();
    let mut rates = vec![0.0; ceilings.len()];
    for _ in 0..run.options.rounds {
        for (subject, outcome) in subjects.iter().zip(&mut outcomes) {
            let addrs: Vec<_> = subject.instances.iter().map(Process::addr).collect();
            outcome.extend(load::sends_to(&addrs, clients, run.options.window, TEXT).await?);
        }
        for (ceiling, rate) in ceilings.iter().zip(&mut rates) {
            *rate += bench(run, url, &ceiling.script, clients).await?;
        }
    }
    for (subject, mut outcome) in subjects.iter_mut().zip(outcomes) {
        subject.best = subject.best.max(outcome.rate());
        let what = format!("{}, {clients}", subject.name);
        figures.push(Figure::new(format!("{what}: sends"), outcome.rate(), "/s"));
        figures.push(Figure::new(format!("{what}: p50"), outcome.latencies.p50_ms(), "ms"));
        figures.push(Figure::new(format!("{what}: p99"), outcome.latencies.p99_ms(), "ms"));
    }
    for (ceiling, rate) in ceilings.iter_mut().zip(rates) {
        let rate = rate / crate::stats::as_f64(run.options.rounds);
        ceiling.best = ceiling.best.max(rate);
        figures.push(Figure::new(format!("{}, {clients}: runs", ceiling.name), rate, "/s"));
    }
    Ok(())
}

async fn bench(run: &Run, url: &str, script: &Path, clients: usize) -> Result<f64> {
    Bench { url, script, clients, length: run.options.window }.run().await
}

/// Each subject at its best number of clients, of each script at its best.
fn push_bests(figures: &mut Vec<Figure>, subjects: &[Subject], ceilings: &[Ceiling]) {
    for subject in subjects.iter().filter(|subject| subject.name != "sqlite") {
        for ceiling in ceilings {
            let figure = Figure::new(format!("{}: best, of {}", subject.name, ceiling.name), subject.best, "/s");
            let ratio = figure.ratio(ceiling.best, "runs", Bound::AtLeast, RATIO_MIN);
            // The target is set by the script that a person would write.
            let is_target = ceiling.name.ends_with("each statement");
            figures.push(if is_target { ratio } else { ratio.aim() });
        }
    }
}

/// What it costs to ring inside of the transactions that change something, with nobody listening.
async fn notify_inside(run: &Run, figures: &mut Vec<Figure>, url: &str, [apart, inside]: [&PathBuf; 2]) -> Result<()> {
    let (mut silent, mut ringing) = (0.0, 0.0);
    for _ in 0..run.options.rounds {
        silent += bench(run, url, apart, RINGING_CLIENTS).await?;
        ringing += bench(run, url, inside, RINGING_CLIENTS).await?;
    }
    let rounds = crate::stats::as_f64(run.options.rounds);
    let what = |what: &str| format!("pgbench, {RINGING_CLIENTS}: runs, {what}");
    figures.push(Figure::new(what("no NOTIFY"), silent / rounds, "/s"));
    figures.push(Figure::new(what("NOTIFY in each transaction"), ringing / rounds, "/s"));
    figures.push(Figure::new(what("the second of the first"), ringing / silent.max(1.0), ""));
    Ok(())
}
