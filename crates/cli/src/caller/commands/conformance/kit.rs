//! The protocol's public kit (A2A TCK), run from a checkout of it.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use longhaul_client::card::{CardReference, WELL_KNOWN_PATH};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::arguments::OutputForm;
use crate::caller::failure::{Failure, LocalCode};
use crate::caller::session::{End, Session};

/// What starts the kit, in its folder.
const STARTER: &str = "run_tck.py";
/// The Python of the kit's own environment, in its folder.
const PYTHON: &str = ".venv/bin/python";
/// How the kit ends when tests have failed; any other status but 0 is a fault of the kit, or of its environment.
const FOUND_SOMETHING: i32 = 1;
/// Where the kit leaves its report, in its folder.
const REPORT: &str = "reports/compatibility.json";

/// Runs the kit against the agent, and passes on what it says.
///
/// # Errors
///
/// [`End`] when it can't be run, and when it finds that something is not as it has to be.
pub async fn run(session: &Session, folder: &Path, level: Option<&str>) -> Result<(), End> {
    let host = host(session.options.agent()?)?;
    if !folder.join(STARTER).is_file() {
        let message = format!("there is no {STARTER} in {}", folder.display());
        return Err(Failure::usage(message)
            .hint("clone https://github.com/a2aproject/a2a-tck and name its folder")
            .into());
    }
    // Whether there is an agent is told in our words, not in those of a hundred tests.
    session.card().await?;
    let status = Kit::start(session, folder, &host, level)?.end().await?;
    if session.options.output == OutputForm::Json {
        let report = folder.join(REPORT);
        let told =
            json!({ "host": host, "passed": status.success(), "exitStatus": status.code(), "report": report.to_str() });
        session.print_json(&told)?;
    }
    let told = match status.code() {
        Some(0) => return Ok(()),
        Some(FOUND_SOMETHING) => Failure::local(LocalCode::NotConformant, "the kit found what is not as it has to be")
            .hint(format!("its report is in {}/reports", folder.display())),
        _ => Failure::local(LocalCode::Internal, format!("the kit did not get to its end: {status}"))
            .hint("look at what it says above; its environment may lack something that its README names"),
    };
    Err(End::Told(told))
}

/// What the kit is given: it looks for the card itself.
fn host(reference: &str) -> Result<String, Failure> {
    let wrong = || {
        Failure::usage("the kit finds cards at the well-known path only")
            .hint("name the agent by its host, such as --agent-card https://agent.example.com")
    };
    let reference: CardReference = reference.parse().map_err(|_| wrong())?;
    let candidates = reference.candidates();
    candidates.iter().find_map(|at| at.strip_suffix(WELL_KNOWN_PATH)).map(str::to_owned).ok_or_else(wrong)
}

/// A run of the kit: a group of processes, which end with it.
struct Kit {
    child: Child,
    group: Option<Pid>,
}

impl Kit {
    fn start(session: &Session, folder: &Path, host: &str, level: Option<&str>) -> Result<Self, Failure> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let own = folder.join(PYTHON);
        let python = if own.exists() { own } else { PathBuf::from("python3") };
        let mut command = Command::new(&python);
        command.arg(STARTER).args(["--sut-host", host]).current_dir(&folder).stdin(Stdio::null()).process_group(0);
        if let Some(level) = level {
            command.args(["--level", level]);
        }
        if session.options.output == OutputForm::Json {
            // Stdout is for the one document.
            command.stdout(std::io::stderr());
        }
        let child = command.spawn().map_err(|error| {
            Failure::local(LocalCode::Internal, format!("cannot run {}: {error}", python.display()))
                .hint("make the kit's environment as its README says: uv sync, or python3 -m venv .venv")
        })?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { child, group })
    }

    async fn end(mut self) -> Result<ExitStatus, Failure> {
        let ended = self.child.wait().await;
        self.group = None;
        ended.map_err(|error| Failure::local(LocalCode::Internal, format!("cannot wait for the kit: {error}")))
    }
}

impl Drop for Kit {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // It may have ended by now.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }
}
