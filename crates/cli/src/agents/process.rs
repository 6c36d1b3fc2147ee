//! A command as a process group: how it is started, told to stop, and waited for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{AgentError, Outcome, Turn, text_part};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

/// How much of the end of stderr is shown when a command failed, in characters.
pub const STDERR_CHARS_MAX: usize = 2_000;
/// A character has at most four bytes, so this holds that many characters whatever they are.
const STDERR_BYTES_MAX: usize = 4 * STDERR_CHARS_MAX;
/// How much of what was said about one attempt is kept with the task, in characters: there may be many attempts.
const REASON_CHARS_MAX: usize = 300;
/// How much longer it may be with the exit code before it.
const REASON_PREFIX_MAX: usize = 20;
/// The exit code by which a command says that it is worth trying again: EX_TEMPFAIL.
const TRY_AGAIN: i32 = 75;
/// A variable longer than this keeps the command from starting on some systems.
const MODES_BYTES_MAX: usize = 32 * 1024;
/// How long output is waited for after the command has ended, should a process that left its group hold the pipe.
const LEFTOVER_OUTPUT_MAX: Duration = Duration::from_secs(1);

/// How a command is run.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// The command line, for `/bin/sh -c`.
    pub command: String,
    /// The folder that it runs in; `None`: that of the server.
    pub working_dir: Option<PathBuf>,
    /// A variable of our own environment that is as much ours as `LONGHAUL_*`.
    pub env_hidden: Option<&'static str>,
    /// The variables of our own environment that it sees; `None`: all but ours.
    pub env_pass: Option<Vec<String>>,
    /// Further variables.
    pub env: BTreeMap<String, String>,
    /// How long the engine waits for a canceled turn.
    pub cancel_grace: Duration,
}

impl CommandSpec {
    /// After which part of the grace a command that does not stop is killed, so that its last words are still stored.
    pub fn kill_after(&self) -> Duration {
        self.cancel_grace * 2 / 3
    }

    fn to_command(&self, turn: &Turn) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&self.command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        if let Some(dir) = &self.working_dir {
            command.current_dir(dir);
        }
        command.env_clear().envs(self.inherited()).envs(&self.env);
        command.env("LONGHAUL_TASK_ID", turn.task_id().as_str());
        command.env("LONGHAUL_CONTEXT_ID", turn.context_id().as_str());
        command.env("LONGHAUL_MESSAGE_ID", turn.message().id().as_str());
        command.env("LONGHAUL_ATTEMPT", turn.attempt().to_string());
        command.env("LONGHAUL_LEASE_EPOCH", turn.epoch().to_string());
        command.env("LONGHAUL_ACCEPTED_OUTPUT_MODES", joined(&turn.request().accepted_output_modes));
        command
    }

    fn inherited(&self) -> Vec<(OsString, OsString)> {
        let ours = |name: &OsString| {
            name.to_str().is_some_and(|name| name.starts_with("LONGHAUL_") || Some(name) == self.env_hidden)
        };
        match &self.env_pass {
            None => std::env::vars_os().filter(|(name, _)| !ours(name)).collect(),
            Some(names) => names.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect(),
        }
    }
}

/// As many modes as fit, separated by commas.
fn joined(modes: &[String]) -> String {
    let mut all = String::new();
    for mode in modes {
        if all.len() + mode.len() >= MODES_BYTES_MAX {
            break;
        }
        if !all.is_empty() {
            all.push(',');
        }
        all.push_str(mode);
    }
    all
}

/// A running command. Dropping it kills its process group.
#[derive(Debug)]
pub struct Process {
    child: Child,
    group: Group,
}

/// The three pipes of a command.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// A process group to send signals to.
#[derive(Clone, Copy, Debug)]
pub struct Group(Option<Pid>);

impl Group {
    /// Sends a signal to every process of the group that is left.
    pub fn signal(self, signal: Signal) {
        if let Some(group) = self.0 {
            // It fails when nobody is left, which is what was wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Process {
    /// Starts the command of a turn.
    pub fn start(spec: &CommandSpec, turn: &Turn) -> Result<(Self, Pipes), AgentError> {
        let mut child = spec.to_command(turn).spawn().map_err(not_started)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self { child, group: Group(pid) };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(AgentError::new("the command has no pipes"));
        };
        Ok((process, Pipes { stdin, stdout, stderr }))
    }

    pub fn group(&self) -> Group {
        self.group
    }

    /// Waits until the command itself has ended, then ends what it left behind in its group.
    pub async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.group.signal(Signal::KILL);
        self.group = Group(None);
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

/// Writes everything to stdin and closes it. A command need not read it: what it leaves is dropped.
pub async fn feed(mut stdin: ChildStdin, bytes: &[u8]) {
    let _ = stdin.write_all(bytes).await;
    let _ = stdin.shutdown().await;
}

/// Reads from a pipe; `None` at its end, or when nothing comes although the command has ended.
pub async fn read_some(
    pipe: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    ended: &CancellationToken,
) -> Option<usize> {
    let leftover = async {
        ended.cancelled().await;
        tokio::time::sleep(LEFTOVER_OUTPUT_MAX).await;
    };
    tokio::select! {
        biased;
        read = pipe.read_buf(buffer) => read.ok().filter(|read| *read > 0),
        () = leftover => None,
    }
}

/// Reads stderr to its end and keeps the last [`STDERR_CHARS_MAX`] characters.
pub async fn tail(mut stderr: ChildStderr, ended: &CancellationToken) -> String {
    let mut end: Vec<u8> = Vec::new();
    while read_some(&mut stderr, &mut end, ended).await.is_some() {
        if end.len() > 2 * STDERR_BYTES_MAX {
            end.drain(..end.len() - STDERR_BYTES_MAX);
        }
    }
    let text = String::from_utf8_lossy(&end);
    last_chars(text.trim_end(), STDERR_CHARS_MAX)
}

/// The end of a text: so many characters at the most.
fn last_chars(text: &str, chars_max: usize) -> String {
    let surplus = text.chars().count().saturating_sub(chars_max);
    text.chars().skip(surplus).collect()
}

/// Waits for `time`; for ever when there is none.
pub async fn wait_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Tells a canceled command to stop: SIGTERM, and SIGKILL to one that does not listen.
pub async fn stop_when_canceled(turn: &Turn, group: Group, kill_after: Duration) {
    turn.canceled().await;
    group.signal(Signal::TERM);
    tokio::time::sleep(kill_after).await;
    group.signal(Signal::KILL);
    std::future::pending::<()>().await;
}

/// Waits for a command while something else keeps an eye on it, and says so in `ended`.
pub async fn watch(
    process: &mut Process,
    keeper: impl Future<Output = ()>,
    ended: &CancellationToken,
) -> std::io::Result<ExitStatus> {
    let mut keeper = pin!(keeper);
    let mut waiting = pin!(process.ended());
    let status = tokio::select! {
        biased;
        status = &mut waiting => status,
        // A keeper never returns; should one, there is only the command to wait for.
        () = &mut keeper => waiting.await,
    };
    ended.cancel();
    status
}

/// What is said of a command that did not end well; `None` for exit code 0.
fn failure(status: ExitStatus, stderr: &str) -> Option<String> {
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("the command ended with exit code {code}"),
        (None, Some(number)) => format!("the command was killed by signal {}", signal_name(number)),
        (None, None) => "the command ended in an unknown way".to_owned(),
    };
    Some(if stderr.is_empty() { how } else { format!("{how}: {stderr}") })
}

/// What a command that did not end well means for its turn: the task has failed, or the turn is tried again.
pub fn outcome(status: ExitStatus, stderr: &str) -> Result<Outcome, AgentError> {
    match failure(status, stderr) {
        None => Ok(Outcome::Complete(None)),
        Some(_) if status.code() == Some(TRY_AGAIN) => {
            let how = format!("exit code {TRY_AGAIN}");
            Err(try_again(&if stderr.is_empty() {
                how
            } else {
                format!("{how}: {}", last_chars(stderr, REASON_CHARS_MAX))
            }))
        }
        Some(why) => Ok(Outcome::Fail(Some(vec![text_part(why)]))),
    }
}

/// The wish of a command for another attempt. Callers may read the reason.
pub fn try_again(reason: &str) -> AgentError {
    let reason: String = reason.chars().take(REASON_CHARS_MAX + REASON_PREFIX_MAX).collect();
    AgentError::transient(format!("the command asks for another attempt: {reason}")).with_reason(reason)
}

/// A machine that is out of processes, files or memory for now may have some at the next attempt.
fn not_started(error: std::io::Error) -> AgentError {
    let short = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::TXTBSY];
    let passes = error.raw_os_error().is_some_and(|code| short.iter().any(|errno| errno.raw_os_error() == code));
    let cause = format!("cannot start the command: {error}");
    if passes {
        AgentError::transient(cause).with_reason("the command could not be started")
    } else {
        AgentError::new(cause)
    }
}

fn signal_name(number: i32) -> String {
    #[rustfmt::skip]
    let names = [
        (Signal::HUP, "SIGHUP"), (Signal::INT, "SIGINT"), (Signal::QUIT, "SIGQUIT"), (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"), (Signal::ABORT, "SIGABRT"), (Signal::BUS, "SIGBUS"), (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"), (Signal::SEGV, "SIGSEGV"), (Signal::PIPE, "SIGPIPE"), (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"), (Signal::XCPU, "SIGXCPU"), (Signal::XFSZ, "SIGXFSZ"), (Signal::SYS, "SIGSYS"),
    ];
    let known = names.iter().find(|(signal, _)| signal.as_raw() == number);
    known.map_or_else(|| number.to_string(), |(_, name)| format!("{number} ({name})"))
}

/// A spec that several turns share.
pub type SharedSpec = Arc<CommandSpec>;
