//! The command line.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::settings::{ConfigError, FILE_NAME, Layer, Settings, Source};

const AFTER: &str = "\
Settings come from defaults, then the file longhaul.toml, then LONGHAUL_* variables, then flags; docs/config.md is the
reference.

Exit codes: 0 it ended as it was told to, 1 it failed, 2 the command line or the configuration is wrong.";

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
#[command(name = "longhaul", version, after_help = AFTER)]
pub struct Arguments {
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
    /// Check the configuration and print what is in effect, as TOML
    #[command(after_help = AFTER)]
    Config(ServeFlags),
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

/// Flags of each server.
#[derive(Args, Debug)]
pub struct CommonFlags {
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:4100]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Folder of the SQLite file [default: ./longhaul-data]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Where tasks are kept: sqlite, or memory, which forgets them at the end [default: sqlite]
    #[arg(long, value_name = "KIND")]
    store: Option<String>,
    /// Configuration file [default: ./longhaul.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
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
pub fn load(flags: &CommonFlags, layer: &Layer, environment: &Layer) -> Result<Settings, ConfigError> {
    let named =
        flags.config.clone().or_else(|| variable("LONGHAUL_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
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
