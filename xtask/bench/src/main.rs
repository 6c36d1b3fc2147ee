//! Measures the release build of Longhaul beside floors taken in the same run.
//!
//! `docs/performance.md` says what each figure means. `cargo xtask bench` builds and runs this.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

mod bare_loop;
mod disk;
mod emit;
mod floor;
mod follow;
mod hook;
mod http;
mod load;
mod pgbench;
mod process;
mod report;
mod request;
mod run;
mod sections;
mod sse;
mod stats;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::process::StoreKind;
use crate::report::{Machine, Report};
use crate::run::{Options, Run};
use crate::sections::SectionName;

/// Time before each window in which nothing counts.
const WARM_UP: Duration = Duration::from_millis(300);

#[derive(Debug, Parser)]
#[command(name = "longhaul-bench", about, version)]
enum Command {
    /// Measures and prints figures, ratios and targets.
    Run(RunArgs),
    /// Serves the floor: a bare handler that parses a send and answers ready bytes.
    Floor(floor::Args),
    /// Prints the time, line by line: an agent whose chunks say when they were written.
    Emit(emit::Args),
    /// Follows many tasks at once.
    Follow(follow::Args),
}

#[derive(clap::Args, Debug)]
struct RunArgs {
    /// Length of each measured window, in seconds.
    #[arg(long, default_value_t = 3.0, value_name = "N")]
    seconds: f64,
    /// How often subjects that are compared take turns.
    #[arg(long, default_value_t = 2, value_name = "N")]
    rounds: usize,
    /// Only these sections, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "SECTION")]
    only: Vec<SectionName>,
    /// Only these stores, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "STORE")]
    store: Vec<StoreKind>,
    /// Tasks of the large folder in `list`.
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    tasks: u64,
    /// Tasks finished before `memory` looks again.
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    finished: u64,
    /// Tasks of the large database in `postgres-size`.
    #[arg(long, default_value_t = 3_000_000, value_name = "N")]
    postgres_tasks: u64,
    /// Also writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also writes the figures as tables in Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Ends with code 1 when a target is missed or a section could not be measured.
    #[arg(long)]
    strict: bool,
    /// The server to measure [default: `longhaul` beside this program].
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Folder for data, on the disk to measure [default: `bench` in the target folder].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keeps the folder of the run, with data and logs.
    #[arg(long)]
    keep: bool,
}

fn main() -> Result<ExitCode> {
    match Command::parse() {
        Command::Floor(args) => {
            // As many threads as tokio chooses for the server.
            tokio::runtime::Runtime::new()?.block_on(floor::serve(args))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Emit(args) => {
            emit::run(args)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Follow(args) => {
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(follow::run(args))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(args) => {
            // One thread: the generator must not take both cores of a small machine.
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure(args))
        }
    }
}

async fn measure(args: RunArgs) -> Result<ExitCode> {
    let beside = std::env::current_exe().context("cannot find this program")?;
    let release = beside.parent().context("this program lies in no folder")?;
    let server = args.server.unwrap_or_else(|| release.join("longhaul"));
    let dir = args.dir.unwrap_or_else(|| release.with_file_name("bench"));
    let all = [StoreKind::Memory, StoreKind::Sqlite].to_vec();
    let options = Options {
        window: Duration::try_from_secs_f64(args.seconds).context("--seconds is no length of time")?,
        rounds: args.rounds.max(1),
        stores: if args.store.is_empty() { all } else { args.store },
        tasks: args.tasks,
        finished: args.finished,
        postgres_tasks: args.postgres_tasks,
    };
    let mut run = Run::new(options, server, &dir)?;
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let mut report = Report { command, machine: Machine::here(), sections: Vec::new() };
    print!("{}", report.machine.to_text());
    let names = if args.only.is_empty() { SectionName::DEFAULT.to_vec() } else { args.only };
    for name in names {
        let section = sections::measure(name, &mut run).await;
        println!("\n{}", section.to_text().trim_end());
        report.sections.push(section);
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &args.markdown {
        std::fs::write(path, report.to_markdown()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if !args.keep {
        run.clean_up()?;
    }
    let failed = args.strict && !report.all_met();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
