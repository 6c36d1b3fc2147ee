//! Several instances on one PostgreSQL, on the disk of everything else, beside `pgbench` writing the same rows.

mod events;
mod failover;
mod script;
mod sends;

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use longhaul_pgtest::{Cluster, Durability, Options};

use crate::report::Figure;
use crate::run::Run;

/// What is set beside the defaults: room for the connections of all subjects, and what anybody would set. In this order, all
/// as in `docs/scaling.md`.
const SETTINGS: [(&str, &str); 4] =
    [("max_connections", "400"), ("shared_buffers", "1GB"), ("max_wal_size", "8GB"), ("checkpoint_timeout", "15min")];

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    let cluster = cluster(run)?;
    sends::measure(run, figures, &cluster).await?;
    events::measure(run, figures, &cluster).await?;
    failover::measure(run, figures, &cluster).await
}

/// A server of its own, which flushes what it commits to the disk that the rest of the run is on.
pub fn cluster(run: &Run) -> Result<Cluster> {
    let folder = std::env::temp_dir();
    if device(&folder)? != device(run.dir())? {
        let (folder, run) = (folder.display(), run.dir().display());
        bail!("{folder} lies on another disk than {run} (hint: TMPDIR names the folder for the database)");
    }
    let options = SETTINGS
        .into_iter()
        .fold(Options::new(Durability::Synced), |options, (name, value)| options.setting(name, value));
    Cluster::start(options).context("cannot start PostgreSQL")
}

fn device(folder: &Path) -> Result<u64> {
    Ok(folder.metadata().with_context(|| format!("cannot look at {}", folder.display()))?.dev())
}
