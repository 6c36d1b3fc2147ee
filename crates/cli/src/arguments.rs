//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::admin::{Operation, StateName};
use crate::caller::arguments::{CallerCommand, CallerFlags};
use crate::settings::{ConfigError, FILE_NAME, Layer, Settings, Source, parse_duration};

const AFTER: &str = "\
Settings come from defaults, then the file longhaul.toml, then LONGHAUL_* variables, then flags; docs/config.md is the
reference.

Exit codes: 0 it ended as it was told to, 1 it failed, 2 the command line or the configuration is wrong.";

const OPERATOR: &str = "\
The store is that of the settings (store.kind, store.data). When a server holds the folder, the command goes through that
server (DIR/admin.sock, as the user that runs it); otherwise it opens the folder itself, and runs no turn. To a PostgreSQL
database it connects by itself, whether servers run or not. It acts on the tasks of all tenants and owners.
docs/operations.md says more.

Exit codes: 0 it was done, 1 it was not, 2 the command line or the configuration is wrong.";

const MIGRATE: &str = "\
Servers do the same when they start, unless store.postgres.migrate is false. A store in a SQLite file needs it never: the
server that opens the file does it. docs/operations.md says more.

Exit codes: 0 the tables are up to date, 1 they are not, 2 the command line or the configuration is wrong.";

const ROTATE: &str = "\
The keys are those of the server that holds the folder, as it read them when it started; otherwise those of the settings
(push.key_file, LONGHAUL_PUSH_KEY, or push.key in the folder), one a line, the new one first and those before it below.
docs/operations.md says how a key is replaced.

Exit codes: 0 every secret is sealed with the new key, 1 not every one is, 2 the command line or the configuration is wrong.";

const DEMO: &str = "\
The words at the beginning of a message choose what happens; they combine (stubborn slow 60):
  echo        one artifact with the message's parts, then COMPLETED; so does any text that is none of these words
  slow N      WORKING for N seconds, then COMPLETED
  chunks N    one artifact in N chunks
  burst N     N status updates
  input       INPUT_REQUIRED; the next message is done as its own words say
  auth        AUTH_REQUIRED, goes on by itself after 2 s
  reject      REJECTED
  fail        the agent raises before its first event; fail late: after one
  msg         a direct message, no task
  stubborn    ignores cancel
  late        writes an event after the end, which is refused

Exit codes: 0 it ended as it was told to, 1 it failed, 2 the command line or the configuration is wrong.";

/// Puts any agent behind a durable A2A v1.0 endpoint
#[derive(Debug, Parser)]
#[command(name = "longhaul", version, disable_version_flag = true, after_help = AFTER)]
pub struct Arguments {
    /// Print version
    #[arg(short = 'v', long, visible_short_alias = 'V', action = clap::ArgAction::Version)]
    version: Option<bool>,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a command as an agent
    #[command(after_help = AFTER)]
    Serve(ServeFlags),
    /// Serve a built-in agent that does what the words of a message say
    #[command(after_help = DEMO)]
    DemoServer(CommonFlags),
    /// Check a server's configuration and print what is in effect, as TOML; config show is for the client's commands
    #[command(after_help = AFTER, args_conflicts_with_subcommands = true)]
    Config(ConfigFlags),
    /// Let a task go on that waits for an authorization, which came another way than by a message
    #[command(after_help = OPERATOR)]
    Resume(ResumeFlags),
    /// Give up tasks that have had no update for long and that nobody works on: they become FAILED
    #[command(after_help = OPERATOR)]
    Reclaim(ReclaimFlags),
    /// Remove tasks that have ended, and give their disk space back
    #[command(after_help = OPERATOR)]
    Purge(PurgeFlags),
    /// Push notifications: what was given up, what waits, and the key that seals their secrets
    #[command(subcommand)]
    Push(PushCommand),
    /// Make the tables in a PostgreSQL database, or bring them up to date
    #[command(after_help = MIGRATE)]
    Migrate(OperatorFlags),
    #[command(flatten)]
    Caller(CallerCommand),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
}

/// Flags of `config`.
#[derive(Args, Debug)]
pub struct ConfigFlags {
    #[command(flatten)]
    pub serve: ServeFlags,
    #[command(subcommand)]
    pub show: Option<ConfigCommand>,
}

/// What else can be shown.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print what is in effect for the client's commands, and which flag, variable or file says so
    #[command(after_help = crate::caller::arguments::AFTER)]
    Show(CallerFlags),
}

/// Flags of `serve`.
#[derive(Args, Debug)]
pub struct ServeFlags {
    /// The agent: a command for /bin/sh, run for each turn; text on stdin, each line of stdout a chunk
    #[arg(long, value_name = "CMD", conflicts_with = "exec_jsonl")]
    exec: Option<String>,
    /// The agent: a command that speaks JSON lines both ways; see docs/exec.md
    #[arg(long, value_name = "CMD")]
    exec_jsonl: Option<String>,
    #[command(flatten)]
    pub common: CommonFlags,
}

/// Flags of `resume`.
#[derive(Args, Debug)]
pub struct ResumeFlags {
    /// The task's id
    #[arg(value_name = "TASK")]
    task_id: String,
    #[command(flatten)]
    pub operator: OperatorFlags,
}

/// Flags of `reclaim`.
#[derive(Args, Debug)]
pub struct ReclaimFlags {
    /// Only tasks without an update for longer than this: 90s, 30m, 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = a_duration)]
    older_than: Duration,
    /// Only tasks in these states [default: submitted,working,input_required,auth_required]
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', value_parser = an_open_state)]
    state: Vec<StateName>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub operator: OperatorFlags,
}

/// Flags of `purge`.
#[derive(Args, Debug)]
pub struct PurgeFlags {
    /// Only tasks that ended longer ago than this: 90s, 30m, 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = a_duration)]
    older_than: Duration,
    /// Only tasks in these states [default: completed,failed,canceled,rejected]
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', value_parser = an_ended_state)]
    state: Vec<StateName>,
    #[command(flatten)]
    pub operator: OperatorFlags,
}

/// What to do about push notifications.
#[derive(Debug, Subcommand)]
pub enum PushCommand {
    /// List deliveries that were given up
    #[command(after_help = OPERATOR)]
    Dead(DeadFlags),
    /// Send deliveries again that were given up
    #[command(after_help = OPERATOR)]
    Retry(RetryFlags),
    /// Count what waits to be delivered, and what was given up
    #[command(after_help = OPERATOR)]
    Backlog(OperatorFlags),
    /// Seal the secrets of all push configs anew, with the first of the keys at hand
    #[command(after_help = ROTATE)]
    RotateKey(OperatorFlags),
}

/// Flags of `push dead`.
#[derive(Args, Debug)]
pub struct DeadFlags {
    /// Only those of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    #[command(flatten)]
    pub operator: OperatorFlags,
}

/// Flags of `push retry`.
#[derive(Args, Debug)]
pub struct RetryFlags {
    /// Those of this task
    #[arg(value_name = "TASK", required_unless_present = "all", conflicts_with = "all")]
    task_id: Option<String>,
    /// Only those of this push config of it
    #[arg(value_name = "CONFIG")]
    config_id: Option<String>,
    /// Those of all tasks
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub operator: OperatorFlags,
}

/// Flags of each operator's command.
#[derive(Args, Debug)]
pub struct OperatorFlags {
    /// Folder of the SQLite file [default: ./longhaul-data]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Where tasks are kept: sqlite, or postgres://USER@HOST:PORT/DATABASE [default: sqlite]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Configuration file [default: ./longhaul.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What stdout is for: people, or programs
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value = "text")]
    pub output: OutputForm,
}

/// What stdout is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum OutputForm {
    /// People.
    Text,
    /// Programs.
    Json,
}

fn an_open_state(text: &str) -> Result<StateName, String> {
    match StateName::parse(text)? {
        state if state.0.is_terminal() => Err("tasks in this state have ended; longhaul purge removes them".to_owned()),
        state => Ok(state),
    }
}

fn an_ended_state(text: &str) -> Result<StateName, String> {
    match StateName::parse(text)? {
        state if state.0.is_terminal() => Ok(state),
        _ => Err("tasks in this state have not ended; longhaul reclaim gives them up".to_owned()),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn a_duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a whole number and its unit: 90s, 30m, 1h or 7d".to_owned())
}

/// Flags of each server.
#[derive(Args, Debug)]
pub struct CommonFlags {
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:4100]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Folder of the SQLite file [default: ./longhaul-data]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Where tasks are kept: sqlite, postgres://USER@HOST:PORT/DATABASE, or memory, which forgets them at the end
    /// [default: sqlite]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// What leases say who holds them [default: the host's name up to its first dot]
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,
    /// Configuration file [default: ./longhaul.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Hosts and networks inside that push notifications may go to, such as hooks.internal,10.0.0.0/8 [default: none]
    #[arg(long, value_name = "HOST,…")]
    push_allow: Option<String>,
    /// Send push notifications to http:// as well, not only to https://
    #[arg(long)]
    push_allow_http: bool,
    /// The URL that the card names, without a path [default: http:// and the address bound]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// What is logged: error, warn, info, debug, trace, or a filter [default: info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// How it is logged: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl ServeFlags {
    /// The flags as a layer of settings.
    pub fn layer(&self) -> Layer {
        Layer::of(|flag, _| match flag {
            "--exec" => Some((flag, self.exec.clone()?)),
            "--exec-jsonl" => Some((flag, self.exec_jsonl.clone()?)),
            _ => self.common.said(flag),
        })
    }
}

impl ResumeFlags {
    /// What is asked for.
    pub fn operation(&self) -> Operation {
        Operation::Resume { task_id: self.task_id.clone() }
    }
}

impl ReclaimFlags {
    /// What is asked for.
    pub fn operation(&self) -> Operation {
        let older_than_ms = millis(self.older_than);
        Operation::Reclaim { older_than_ms, states: self.state.clone(), dry_run: self.dry_run }
    }
}

impl PurgeFlags {
    /// What is asked for.
    pub fn operation(&self) -> Operation {
        Operation::Purge { older_than_ms: millis(self.older_than), states: self.state.clone() }
    }
}

impl PushCommand {
    /// What is asked for.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Dead(flags) => Operation::PushDead { task_id: flags.task.clone() },
            Self::Retry(RetryFlags { task_id, config_id, .. }) => {
                Operation::PushRetry { task_id: task_id.clone(), config_id: config_id.clone() }
            }
            Self::Backlog(_) => Operation::PushBacklog,
            Self::RotateKey(_) => Operation::PushRotateKey,
        }
    }

    /// Where the store is.
    pub fn operator(&self) -> &OperatorFlags {
        match self {
            Self::Dead(flags) => &flags.operator,
            Self::Retry(flags) => &flags.operator,
            Self::Backlog(flags) | Self::RotateKey(flags) => flags,
        }
    }
}

impl OperatorFlags {
    /// The flags as a layer of settings.
    pub fn layer(&self) -> Layer {
        Layer::of(|flag, _| match flag {
            "--data" => Some((flag, self.data.clone()?)),
            "--store" => Some((flag, self.store.clone()?)),
            _ => None,
        })
    }
}

impl CommonFlags {
    /// The flags as a layer of settings.
    pub fn layer(&self) -> Layer {
        Layer::of(|flag, _| self.said(flag))
    }

    fn said(&self, flag: &'static str) -> Option<(&'static str, String)> {
        let value = match flag {
            "--listen" => &self.listen,
            "--data" => &self.data,
            "--store" => &self.store,
            "--worker-name" => &self.worker_name,
            "--push-allow" => &self.push_allow,
            "--push-allow-http" => return self.push_allow_http.then(|| (flag, "true".to_owned())),
            "--public-url" => &self.public_url,
            "--log" => &self.log,
            "--log-format" => &self.log_format,
            _ => return None,
        };
        value.clone().map(|value| (flag, value))
    }
}

fn variable(name: &str) -> Option<String> {
    // A variable that is no text is as good as any other wrong value, and is shown as such.
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// What the environment says.
pub fn environment() -> Layer {
    Layer::of_environment(variable)
}

/// Reads the file, if there is one, and puts the layers on each other.
pub fn load(config: Option<&Path>, layer: &Layer, environment: &Layer) -> Result<Settings, ConfigError> {
    let variable = || variable("LONGHAUL_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let named = config.map(Path::to_owned).or_else(variable);
    let default = Path::new(FILE_NAME);
    let path = named.or_else(|| default.exists().then(|| default.to_owned()));
    let file = path.as_deref().map(Source::read).transpose()?;
    Settings::layered(file.as_ref(), environment, layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }
}
