//! `ListTasks` on a small and on a large folder.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use longhaul_store_sqlite::SqliteConfig;
use serde_json::Value;

use crate::emit;
use crate::http::Connection;
use crate::load::Window;
use crate::process::{Process, StoreKind};
use crate::report::{Bound, Figure};
use crate::request;
use crate::run::Run;
use crate::stats::Latencies;

/// Tasks of the small folder.
const SMALL: u64 = 1000;

/// Latencies on one folder.
#[derive(Debug)]
struct Folder {
    server: Process,
    tasks: u64,
    first_page: Latencies,
    later_pages: Latencies,
}

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    if !run.measures(StoreKind::Sqlite) {
        bail!("needs the store sqlite");
    }
    let mut small = Folder::open(run, SMALL).await?;
    let mut large = Folder::open(run, run.options.tasks).await?;
    for _ in 0..run.options.rounds {
        small.drive(run).await?;
        large.drive(run).await?;
    }
    for (what, base, figure) in [
        ("first page", &mut small.first_page, &mut large.first_page),
        ("later pages", &mut small.later_pages, &mut large.later_pages),
    ] {
        let base = base.p50_ms();
        figures.push(Figure::new(format!("{} tasks: {what} p50", small.tasks), base, "ms"));
        let large = Figure::new(format!("{} tasks: {what} p50", large.tasks), figure.p50_ms(), "ms");
        figures.push(large.ratio(base, &format!("{SMALL} tasks"), Bound::AtMost, 1.3));
    }
    small.server.stop().await?;
    large.server.stop().await
}

impl Folder {
    async fn open(run: &mut Run, tasks: u64) -> Result<Self> {
        let data = run.data_dir()?;
        fill(&data, tasks)?;
        let server = run.server_on(&data, StoreKind::Sqlite, None).await?;
        Ok(Self { server, tasks, first_page: Latencies::default(), later_pages: Latencies::default() })
    }

    /// Asks for the first page and the pages after it in turn; a walk that ends starts again.
    async fn drive(&mut self, run: &Run) -> Result<()> {
        let mut connection = Connection::connect(self.server.addr()).await?;
        let window = Window::after_warm_up(run.options.window);
        let first = request::list_tasks("");
        let mut token = String::new();
        while !window.is_over() {
            let begun = Instant::now();
            let body = connection.exchange(&first).await?;
            window.record(begun, &mut self.first_page);
            let start = next_token(body, self.tasks)?;
            let later = request::list_tasks(if token.is_empty() { &start } else { &token });
            let begun = Instant::now();
            let body = connection.exchange(&later).await?;
            window.record(begun, &mut self.later_pages);
            token = next_token(body, self.tasks)?;
        }
        Ok(())
    }
}

/// The token of the next page, of an answer that must count `tasks` tasks.
fn next_token(body: &[u8], tasks: u64) -> Result<String> {
    let answer: Value = serde_json::from_slice(body).context("the answer is not JSON")?;
    let result = answer.get("result").with_context(|| format!("no result: {}", crate::http::excerpt(body)))?;
    let total = result.get("totalSize").and_then(Value::as_u64).context("no totalSize")?;
    if total != tasks {
        bail!("totalSize is {total}, not {tasks}");
    }
    Ok(result.get("nextPageToken").and_then(Value::as_str).context("no nextPageToken")?.to_owned())
}

/// Fills the folder `data` with finished tasks, a second apart, the newest one now.
fn fill(data: &Path, tasks: u64) -> Result<()> {
    let now = emit::timestamp()?;
    let config = SqliteConfig { directory: data.to_owned(), ..SqliteConfig::default() };
    longhaul_store_sqlite::fill(&config, tasks, now).with_context(|| format!("cannot fill a folder with {tasks} tasks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_counts_wrong_is_refused() {
        let body = br#"{"result":{"tasks":[],"totalSize":7,"nextPageToken":"x"}}"#;
        assert_eq!(next_token(body, 7).unwrap(), "x");
        assert!(next_token(body, 8).is_err());
        assert!(next_token(br#"{"error":{}}"#, 7).is_err());
    }
}
