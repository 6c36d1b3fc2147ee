//! Blocking sends of `echo hello`: the server on each store, beside the floor and the bare loop.

use anyhow::{Context as _, Result};

use crate::bare_loop::{Rows, Shape};
use crate::http::Connection;
use crate::load;
use crate::process::{Process, StoreKind};
use crate::report::{Bound, Figure};
use crate::request::MessageRequest;
use crate::run::{Run, Subject};
use crate::stats::Outcome;

const TEXT: &str = "echo hello";
const CONNECTIONS: [usize; 3] = [1, 32, 256];

/// The fastest peer's rate in memory, of the floor, by connections: what durable sends aim at.
fn aim(connections: usize) -> Option<f64> {
    match connections {
        32 => Some(0.22),
        256 => Some(0.16),
        _ => None,
    }
}

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    for connections in CONNECTIONS {
        measure_at(run, figures, connections).await?;
    }
    Ok(())
}

/// Measures at one number of connections, on servers of its own: a store in memory keeps all tasks.
async fn measure_at(run: &mut Run, figures: &mut Vec<Figure>, connections: usize) -> Result<()> {
    let mut servers = Vec::new();
    for store in run.options.stores.clone() {
        servers.push((store, Subject::new(run.server(store, None).await?)));
    }
    let (_, first) = servers.first().context("no store to measure")?;
    let answer = answer_of(&first.process).await?;
    let mut floor = Subject::new(run.floor(&answer).await?);
    for _ in 0..run.options.rounds {
        drive(&mut floor, connections, run).await?;
        for (store, server) in &mut servers {
            if *store == StoreKind::Sqlite {
                run.run_loop(Shape::grouped(connections, Rows::Fresh)).await?;
                run.run_loop(Shape::grouped(connections, Rows::Scattered)).await?;
            }
            drive(server, connections, run).await?;
        }
    }
    floor.process.stop().await?;
    let floor_rate = floor.outcome.rate();
    push(figures, "floor", connections, floor.outcome, |rate| rate);
    for (store, server) in servers {
        server.process.stop().await?;
        match store {
            StoreKind::Memory => push(figures, "memory", connections, server.outcome, |rate| {
                rate.ratio(floor_rate, "floor", Bound::AtLeast, 0.5)
            }),
            StoreKind::Sqlite => push_sqlite(run, figures, connections, server.outcome, floor_rate).await?,
        }
    }
    Ok(())
}

async fn drive(subject: &mut Subject, connections: usize, run: &Run) -> Result<()> {
    let outcome = load::sends(subject.process.addr(), connections, run.options.window, TEXT).await?;
    subject.outcome.extend(outcome);
    Ok(())
}

async fn answer_of(server: &Process) -> Result<Vec<u8>> {
    let mut connection = Connection::connect(server.addr()).await?;
    let body = load::send_one(&mut connection, &mut MessageRequest::send(TEXT)?).await?;
    Ok(body.to_vec())
}

fn push(
    figures: &mut Vec<Figure>,
    name: &str,
    connections: usize,
    mut outcome: Outcome,
    judge: impl FnOnce(Figure) -> Figure,
) {
    let what = format!("{name}, {connections}");
    figures.push(judge(Figure::new(format!("{what}: sends"), outcome.rate(), "/s")));
    figures.push(Figure::new(format!("{what}: p50"), outcome.latencies.p50_ms(), "ms"));
    figures.push(Figure::new(format!("{what}: p99"), outcome.latencies.p99_ms(), "ms"));
}

async fn push_sqlite(
    run: &mut Run,
    figures: &mut Vec<Figure>,
    connections: usize,
    mut outcome: Outcome,
    floor_rate: f64,
) -> Result<()> {
    let what = format!("sqlite, {connections}");
    let rate = outcome.rate();
    let sends = Figure::new(format!("{what}: sends"), rate, "/s");
    let p50 = Figure::new(format!("{what}: p50"), outcome.latencies.p50_ms(), "ms");
    if connections == 1 {
        let transaction = run.transaction_p50_ms().await?;
        let rule = format!("ms, limit 2 x {transaction:.3} + 0.3");
        figures.push(sends);
        figures.push(p50.limit(&rule, Bound::AtMost, 2.0 * transaction + 0.3));
    } else {
        let scattered = run.loop_outcome(Shape::grouped(connections, Rows::Scattered)).await?;
        let scattered = scattered.tasks.rate();
        let fresh = run.loop_outcome(Shape::grouped(connections, Rows::Fresh)).await?.tasks.rate();
        let single = run.loop_outcome(Shape::SINGLE).await?.tasks.rate();
        figures.push(sends.ratio(scattered, "the bare loop", Bound::AtLeast, 0.6));
        let beside = |base: &str| Figure::new(format!("{what}: sends, beside {base}"), rate, "/s");
        let figure = beside("fresh rows").ratio(fresh, "the loop on fresh rows", Bound::AtLeast, 0.6);
        figures.push(figure.aim());
        let figure = beside("no grouping");
        figures.push(figure.ratio(single, "one write a transaction", Bound::AtLeast, 1.0));
        if let Some(aim) = aim(connections) {
            figures.push(beside("the floor").ratio(floor_rate, "floor", Bound::AtLeast, aim).aim());
        }
        figures.push(p50);
    }
    figures.push(Figure::new(format!("{what}: p99"), outcome.latencies.p99_ms(), "ms"));
    Ok(())
}
