//! Processes under measurement: starting, stopping, and what `/proc` says of them.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::http::Connection;
use crate::request;

/// How long a process may take until it answers.
const START_MAX: Duration = Duration::from_secs(20);

/// How long a process may take to stop after SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Ticks a second of the times in `/proc/PID/stat`: `USER_HZ`, 100 on every platform that we build for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Where a store keeps its tasks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum StoreKind {
    /// In memory.
    Memory,
    /// In a SQLite file, each commit synced.
    Sqlite,
}

impl StoreKind {
    /// The name that the server's `--store` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        }
    }
}

/// A process that listens, ended when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    addr: SocketAddr,
    log: PathBuf,
}

/// What to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments before `--listen`.
    pub args: Vec<String>,
    /// File for its output.
    pub log: PathBuf,
    /// Runtime threads; `None` leaves them to the program.
    pub threads: Option<usize>,
}

impl Process {
    /// Starts a process on a free port and waits until it answers `GET /readyz`.
    pub async fn start(launch: Launch<'_>) -> Result<Self> {
        let addr = free_addr()?;
        let output = File::create(&launch.log).with_context(|| format!("cannot create {}", launch.log.display()))?;
        let mut command = Command::new(launch.program);
        command
            .args(&launch.args)
            .args(["--listen", &addr.to_string()])
            .env("LONGHAUL_LOG", "warn")
            .env_remove("TOKIO_WORKER_THREADS")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true);
        if let Some(threads) = launch.threads {
            command.env("TOKIO_WORKER_THREADS", threads.to_string());
        }
        let child = command.spawn().with_context(|| format!("cannot start {}", launch.program.display()))?;
        let id = child.id().context("the process has ended at once")?;
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("the process has no id")?;
        let mut process = Self { child, pid, addr, log: launch.log };
        process.wait_until_ready().await?;
        Ok(process)
    }

    /// Address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Asks it to stop and waits; ends it when it takes too long, which is an error.
    pub async fn stop(mut self) -> Result<()> {
        kill_process(self.pid, Signal::TERM).context("cannot signal the process")?;
        if tokio::time::timeout(STOP_MAX, self.child.wait()).await.is_err() {
            self.child.kill().await.context("cannot end the process")?;
            bail!("the process ignored SIGTERM for {} s", STOP_MAX.as_secs());
        }
        Ok(())
    }

    /// Ends it with SIGKILL and waits.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("cannot end the process")
    }

    /// Resident memory in MB (10^6 bytes).
    pub fn resident_mb(&self) -> Result<f64> {
        resident_mb_of(&self.proc_file("status")?)
    }

    /// Processor time used so far, all threads, user and system.
    pub fn cpu_time(&self) -> Result<Duration> {
        let stat = self.proc_file("stat")?;
        cpu_seconds(&stat).map(Duration::from_secs_f64)
    }

    fn proc_file(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.pid.as_raw_nonzero());
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the process ended with {status}: {}", self.log_tail());
            }
            if let Ok(mut connection) = Connection::connect(self.addr).await
                && connection.exchange(&request::get("/readyz")).await.is_ok()
            {
                return Ok(());
            }
            if begun.elapsed() > START_MAX {
                bail!("the process is not ready after {} s: {}", START_MAX.as_secs(), self.log_tail());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("; ")
    }
}

/// An address of this machine that nobody listens on.
fn free_addr() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port")?;
    Ok(listener.local_addr()?)
}

/// The user and system time in a line of `/proc/PID/stat`.
fn cpu_seconds(stat: &str) -> Result<f64> {
    // The name of the program comes second, in parentheses, and may itself hold spaces.
    let (_, fields) = stat.rsplit_once(')').context("no program name in stat")?;
    let mut times = fields.split_whitespace().skip(11).take(2);
    let mut next = || -> Result<f64> { times.next().context("stat is too short")?.parse().context("not a time") };
    Ok((next()? + next()?) / TICKS_PER_SECOND)
}

/// Resident memory of this process in MB (10^6 bytes).
pub fn own_resident_mb() -> Result<f64> {
    resident_mb_of(&std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?)
}

fn resident_mb_of(status: &str) -> Result<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS is not a number")?;
    Ok(kib * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_fields_14_and_15() {
        let stat = "77 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        assert!((cpu_seconds(stat).unwrap() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_short_line_is_an_error() {
        assert!(cpu_seconds("77 (a) S 1 2").is_err());
    }
}
