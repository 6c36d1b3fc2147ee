//! The bare SQLite loop, grouped and not.

use anyhow::Result;

use crate::bare_loop::Grouping;
use crate::report::Figure;
use crate::run::Run;

/// The numbers of clients at which the grouped loop runs.
const CLIENTS: [usize; 3] = [1, 32, 256];

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    for clients in CLIENTS {
        push(
            run,
            figures,
            clients,
            Grouping::Waiting,
            &format!("grouped, {clients}"),
        )
        .await?;
    }
    push(
        run,
        figures,
        32,
        Grouping::Single,
        "one write a transaction, 32",
    )
    .await
}

async fn push(
    run: &mut Run,
    figures: &mut Vec<Figure>,
    clients: usize,
    grouping: Grouping,
    what: &str,
) -> Result<()> {
    let outcome = run.loop_outcome(clients, grouping).await?;
    figures.push(Figure::new(
        format!("{what}: tasks"),
        outcome.tasks.rate(),
        "/s",
    ));
    let latencies = &mut outcome.transactions.latencies;
    figures.push(Figure::new(
        format!("{what}: write p50"),
        latencies.p50_ms(),
        "ms",
    ));
    figures.push(Figure::new(
        format!("{what}: write p99"),
        latencies.p99_ms(),
        "ms",
    ));
    Ok(())
}
