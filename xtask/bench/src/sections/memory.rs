//! Resident memory of the idle server, and after many finished tasks.

use std::time::Duration;

use anyhow::Result;

use crate::load;
use crate::process::StoreKind;
use crate::report::{Bound, Figure};
use crate::run::Run;

const CONNECTIONS: usize = 32;

/// Time before each look, in which the server comes to rest.
const REST: Duration = Duration::from_secs(1);

/// Most megabytes that finished tasks may add.
const GROWTH_MB_MAX: f64 = 64.0;

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    for store in run.options.stores.clone() {
        let server = run.server(store, None).await?;
        tokio::time::sleep(REST).await;
        let idle = server.resident_mb()?;
        let count = run.options.finished;
        load::sends_exactly(server.addr(), CONNECTIONS, count, "echo hello").await?;
        tokio::time::sleep(REST).await;
        let after = server.resident_mb()?;
        server.stop().await?;
        let name = store.name();
        figures.push(Figure::new(format!("{name}: idle"), idle, "MB"));
        figures.push(Figure::new(format!("{name}: after {count} tasks"), after, "MB"));
        let growth = Figure::new(format!("{name}: growth"), after - idle, "MB");
        figures.push(match store {
            // Tasks in memory take memory.
            StoreKind::Memory => growth,
            StoreKind::Sqlite => growth.limit("MB", Bound::AtMost, GROWTH_MB_MAX),
        });
    }
    Ok(())
}
