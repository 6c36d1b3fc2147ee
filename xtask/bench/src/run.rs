//! What the sections of one run share: options, folder, processes, and the bare loop's figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::bare_loop::{self, LoopOutcome, Shape};
use crate::process::{Launch, Process, StoreKind};
use crate::stats::Outcome;

/// What a run is asked to do.
#[derive(Debug)]
pub struct Options {
    /// Length of each measured window.
    pub window: Duration,
    /// How often subjects that are compared take turns.
    pub rounds: usize,
    /// The stores to measure.
    pub stores: Vec<StoreKind>,
    /// Tasks of the large folder in `list`.
    pub tasks: u64,
    /// Tasks finished before `memory` looks again.
    pub finished: u64,
    /// Tasks of the large database in `postgres-size`.
    pub postgres_tasks: u64,
}

/// One run.
#[derive(Debug)]
pub struct Run {
    /// What it is asked to do.
    pub options: Options,
    server: PathBuf,
    dir: PathBuf,
    started: usize,
    loops: BTreeMap<Shape, LoopOutcome>,
}

impl Run {
    /// A run in a fresh folder below `parent`, which must lie on the disk that is to be measured.
    pub fn new(options: Options, server: PathBuf, parent: &Path) -> Result<Self> {
        let dir = parent.join(format!("run-{}", std::process::id()));
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self { options, server, dir, started: 0, loops: BTreeMap::new() })
    }

    /// The folder of the run.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Removes the folder of the run.
    pub fn clean_up(&self) -> Result<()> {
        std::fs::remove_dir_all(&self.dir).with_context(|| format!("cannot remove {}", self.dir.display()))
    }

    /// A fresh folder for data.
    pub fn data_dir(&mut self) -> Result<PathBuf> {
        self.started += 1;
        let dir = self.dir.join(format!("data-{}", self.started));
        std::fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(dir)
    }

    /// Starts the server on a fresh folder.
    pub async fn server(&mut self, store: StoreKind, threads: Option<usize>) -> Result<Process> {
        let data = self.data_dir()?;
        self.server_on(&data, store, threads).await
    }

    /// Starts the server on `data`.
    pub async fn server_on(&mut self, data: &Path, store: StoreKind, threads: Option<usize>) -> Result<Process> {
        self.start(data, &["demo-server", "--store", store.name()], threads).await
    }

    /// Starts the server on `data` with these lines as its configuration.
    pub async fn server_with(&mut self, data: &Path, store: StoreKind, config: &str) -> Result<Process> {
        let config = self.config(config)?;
        self.start(data, &["demo-server", "--store", store.name(), "--config", &config], None).await
    }

    /// Starts the server of an agent that is this command, on SQLite in `data`.
    pub async fn agent_on(&mut self, data: &Path, command: &str, config: &str) -> Result<Process> {
        let config = self.config(config)?;
        self.start(data, &["serve", "--store", "sqlite", "--exec", command, "--config", &config], None).await
    }

    fn config(&mut self, lines: &str) -> Result<String> {
        self.started += 1;
        let path = self.dir.join(format!("longhaul-{}.toml", self.started));
        std::fs::write(&path, lines).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.to_str().context("the file's name is not text")?.to_owned())
    }

    async fn start(&mut self, data: &Path, words: &[&str], threads: Option<usize>) -> Result<Process> {
        let data = data.to_str().context("the data folder's name is not text")?;
        self.launch(&[words, &["--data", data]].concat(), threads).await
    }

    /// Starts one of several instances on the database at `url`, with these lines as its configuration; without a command
    /// its agent is the built-in one.
    pub async fn instance(&mut self, url: &str, command: Option<&str>, config: &str) -> Result<Process> {
        let config = self.config(config)?;
        let agent = command.map_or_else(|| vec!["demo-server"], |command| vec!["serve", "--exec", command]);
        self.launch(&[agent.as_slice(), &["--store", url, "--config", &config]].concat(), None).await
    }

    async fn launch(&mut self, words: &[&str], threads: Option<usize>) -> Result<Process> {
        self.started += 1;
        let log = self.dir.join(format!("server-{}.log", self.started));
        let args = words.iter().map(|&word| word.to_owned()).collect();
        Process::start(Launch { program: &self.server, args, log, threads }).await
    }

    /// Starts the floor, which answers `answer` to every request.
    pub async fn floor(&mut self, answer: &[u8]) -> Result<Process> {
        let path = self.dir.join("answer.json");
        std::fs::write(&path, answer).with_context(|| format!("cannot write {}", path.display()))?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let path = path.to_str().context("the answer's name is not text")?;
        let args = ["floor", "--answer", path].map(str::to_owned).to_vec();
        Process::start(Launch { program: &program, args, log: self.dir.join("floor.log"), threads: None }).await
    }

    /// Runs the bare loop for one window and keeps the figures with those of earlier windows.
    pub async fn run_loop(&mut self, shape: Shape) -> Result<()> {
        let outcome = bare_loop::run(&self.dir, shape, self.options.window).await?;
        self.loops.entry(shape).or_default().extend(outcome);
        Ok(())
    }

    /// The bare loop's figures; runs it first when it has not run yet.
    pub async fn loop_outcome(&mut self, shape: Shape) -> Result<&mut LoopOutcome> {
        if !self.loops.contains_key(&shape) {
            self.run_loop(shape).await?;
        }
        self.loops.get_mut(&shape).context("the loop has run")
    }

    /// Median of one transaction of the bare loop with one client, in milliseconds.
    pub async fn transaction_p50_ms(&mut self) -> Result<f64> {
        Ok(self.loop_outcome(Shape::ALONE).await?.transactions.latencies.p50_ms())
    }

    /// Whether `store` is to be measured.
    pub fn measures(&self, store: StoreKind) -> bool {
        self.options.stores.contains(&store)
    }
}

/// An outcome that windows are added to, with the process that it is of.
#[derive(Debug)]
pub struct Subject {
    /// The process.
    pub process: Process,
    /// What it did so far.
    pub outcome: Outcome,
}

impl Subject {
    /// A subject that did nothing yet.
    pub fn new(process: Process) -> Self {
        Self { process, outcome: Outcome::default() }
    }
}
