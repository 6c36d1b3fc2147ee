//! `fdatasync` by itself: the rate that no durable store beats with one write at a time.

use anyhow::Result;

use crate::disk;
use crate::report::Figure;
use crate::run::Run;

pub fn measure(run: &Run, figures: &mut Vec<Figure>) -> Result<()> {
    let mut outcome = disk::fdatasync(run.dir(), run.options.window)?;
    figures.push(Figure::new("4 KB overwrite and fdatasync", outcome.rate(), "/s"));
    figures.push(Figure::new("p50", outcome.latencies.p50_ms(), "ms"));
    figures.push(Figure::new("p99", outcome.latencies.p99_ms(), "ms"));
    Ok(())
}
