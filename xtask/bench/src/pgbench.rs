//! `pgbench`: what the database does with the same rows and nothing around it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

/// Where Debian keeps the programs of each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// How long after its time a run may take to end.
const END_MAX: Duration = Duration::from_secs(30);

/// One run.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The database, as `postgres://…`.
    pub url: &'a str,
    /// The script.
    pub script: &'a Path,
    /// Clients, each of which runs the script again and again.
    pub clients: usize,
    /// For how long; whole seconds, at least one.
    pub length: Duration,
}

impl Bench<'_> {
    /// How often the script was run, a second. A run that failed is an error.
    pub async fn run(&self) -> Result<f64> {
        let program = find()?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(self.clients);
        let seconds = self.length.as_secs_f64().round().max(1.0);
        let child = Command::new(&program)
            .args(["--no-vacuum", "--protocol=prepared"])
            .args(["--client", &self.clients.to_string(), "--jobs", &threads.to_string()])
            .args(["--time", &format!("{seconds:.0}")])
            .arg("--file")
            .arg(self.script)
            .arg(self.url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let limit = Duration::from_secs_f64(seconds) + END_MAX;
        let output = tokio::time::timeout(limit, child.wait_with_output()).await.context("pgbench does not end")??;
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            bail!("pgbench failed ({}): {}", output.status, errors.lines().take(5).collect::<Vec<_>>().join("; "));
        }
        runs_a_second(&said).with_context(|| format!("pgbench said {said:?} {errors:?}"))
    }
}

fn runs_a_second(said: &str) -> Result<f64> {
    let failed = said.lines().find_map(|line| line.strip_prefix("number of failed transactions: "));
    if failed.is_some_and(|failed| !failed.starts_with("0 ")) {
        bail!("some runs failed");
    }
    let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")).context("no rate")?;
    tps.split(' ').next().unwrap_or_default().parse().context("the rate is no number")
}

/// The newest of Debian's, else the one in `PATH`.
fn find() -> Result<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let numbers = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let debian = numbers.max().map(|version| Path::new(DEBIAN).join(version.to_string()).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = debian.into_iter().chain(std::env::split_paths(&path));
    let found = folders.find_map(|folder| Some(folder.join("pgbench")).filter(|program| program.is_file()));
    found.context("there is no pgbench (hint: apt-get install postgresql)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_without_connecting() {
        let said = "number of failed transactions: 0 (0.000%)\nlatency average = 1.2 ms\n\
                    initial connection time = 6.1 ms\ntps = 1234.5678 (without initial connection time)\n";
        assert!((runs_a_second(said).unwrap() - 1234.5678).abs() < 1e-9);
    }

    #[test]
    fn failed_runs_are_no_figure() {
        assert!(runs_a_second("number of failed transactions: 3 (0.1%)\ntps = 10 (without)").is_err());
        assert!(runs_a_second("").is_err());
    }
}
