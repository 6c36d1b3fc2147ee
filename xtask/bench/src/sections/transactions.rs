//! The bare SQLite loop, in all its shapes.

use anyhow::Result;

use crate::bare_loop::{Rows, Shape};
use crate::report::Figure;
use crate::run::Run;

/// The numbers of clients at which the grouped loop runs.
const CLIENTS: [usize; 3] = [1, 32, 256];

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    for (rows, name) in [(Rows::Scattered, "scattered rows"), (Rows::Fresh, "fresh rows")] {
        for clients in CLIENTS {
            let shape = Shape::grouped(clients, rows);
            push(run, figures, shape, &format!("{name}, {clients}")).await?;
        }
    }
    push(run, figures, Shape::SINGLE, "fresh rows, 32, one write a transaction").await
}

async fn push(run: &mut Run, figures: &mut Vec<Figure>, shape: Shape, what: &str) -> Result<()> {
    let outcome = run.loop_outcome(shape).await?;
    figures.push(Figure::new(format!("{what}: tasks"), outcome.tasks.rate(), "/s"));
    let latencies = &mut outcome.transactions.latencies;
    figures.push(Figure::new(format!("{what}: write p50"), latencies.p50_ms(), "ms"));
    figures.push(Figure::new(format!("{what}: write p99"), latencies.p99_ms(), "ms"));
    Ok(())
}
