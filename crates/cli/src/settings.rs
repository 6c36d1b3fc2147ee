//! What the binary can be told: defaults, then the file, then the environment, then flags. `docs/config.md` is the
//! reference.

mod card;
mod database_url;
mod duration;
mod error;
mod file;
mod layer;
mod print;
mod push;
mod section;
mod store;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use longhaul_engine::{DedupMode, Retention};
use longhaul_server::Versions;

pub use card::{CardSettings, PushOffer, ServedAgent};
pub use database_url::DatabaseUrl;
pub use duration::parse as parse_duration;
pub use error::ConfigError;
pub use file::{FILE_NAME, Source};
use layer::WORKER_NAME_MAX;
pub use layer::{Layer, resolve};
use push::PushLayer;
pub use push::{Kept, PushSettings};
pub use store::{PostgresSettings, StoreKind, StoreSettings};

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `[server]`
    pub server: ServerSettings,
    /// `[store]`
    pub store: StoreSettings,
    /// `[agent]`
    pub agent: AgentSettings,
    /// `[push]`
    pub push: PushSettings,
    /// `[card]`
    pub card: CardSettings,
    /// `[retention]`
    pub retention: RetentionSettings,
    /// `[log]`
    pub log: LogSettings,
}

/// How the server speaks to the world.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Address and port to listen on.
    pub listen: String,
    /// The versions of the protocol that are served.
    pub versions: Versions,
    /// The path below the prefix at which drafts before 0.3 are served; `None`: they are not.
    pub drafts_path: Option<String>,
    /// The URL that the card names; `None`: `http://` and the address bound.
    pub public_url: Option<String>,
    /// The path below which everything but the card and health is served.
    pub prefix: String,
    /// How often an idle stream sends a comment.
    pub keep_alive: Duration,
    /// How large the body of a request may be, in bytes.
    pub body_bytes_max: usize,
    /// How many streams may be open at once.
    pub streams_max: usize,
    /// How long a client may take to send the head of a request.
    pub header_timeout: Duration,
    /// How long running turns may take to end when the server goes down.
    pub drain_timeout: Duration,
    /// How long clients may keep the card.
    pub card_max_age: Duration,
    /// Whether `/metrics` answers.
    pub metrics: bool,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:4100".to_owned(),
            versions: Versions::default(),
            drafts_path: None,
            public_url: None,
            prefix: String::new(),
            keep_alive: Duration::from_secs(10),
            body_bytes_max: 16 * 1024 * 1024,
            streams_max: 10_000,
            header_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            card_max_age: Duration::from_secs(300),
            metrics: false,
        }
    }
}

/// What does the work, and how it is driven.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSettings {
    /// The command to run.
    pub command: Option<AgentCommand>,
    /// The folder that the command runs in.
    pub working_dir: Option<PathBuf>,
    /// The variables of our environment that the command sees; `None`: all but our own.
    pub env_pass: Option<Vec<String>>,
    /// Further variables for the command.
    pub env: BTreeMap<String, String>,
    /// What leases say who holds them; `None`: the host's name up to its first dot.
    pub worker_name: Option<String>,
    /// How many turns run at once; `None`: 64 for a command, 1,024 for the demo.
    pub workers_max: Option<usize>,
    /// How often a turn is tried before its task has failed.
    pub attempts_max: u32,
    /// How long to wait before a turn's third attempt.
    pub backoff_min: Duration,
    /// How long to wait before an attempt at the most.
    pub backoff_max: Duration,
    /// How long a lease lasts unless it is renewed.
    pub lease_duration: Duration,
    /// How long an attempt may take.
    pub turn_duration_max: Duration,
    /// How long an attempt may write nothing; `None`: as long as it likes.
    pub inactivity_max: Option<Duration>,
    /// How many tasks may wait for a worker before new ones are refused.
    pub backlog_max: u64,
    /// How large a checkpoint may be, in bytes.
    pub checkpoint_bytes_max: usize,
    /// How long a canceled turn may take to end by itself.
    pub cancel_grace: Duration,
    /// How long the agent may take to look at a new message.
    pub accept_timeout: Duration,
    /// When a repeated message id is taken for a retry.
    pub dedup: DedupMode,
    /// How long a message id is remembered for that.
    pub dedup_window: Duration,
}

impl Default for AgentSettings {
    fn default() -> Self {
        let engine = longhaul_engine::Config::default();
        Self {
            command: None,
            working_dir: None,
            env_pass: None,
            env: BTreeMap::new(),
            worker_name: None,
            workers_max: None,
            attempts_max: engine.attempts_max,
            backoff_min: engine.backoff_min,
            backoff_max: engine.backoff_max,
            lease_duration: engine.lease_duration,
            turn_duration_max: engine.turn_duration_max,
            inactivity_max: engine.inactivity_max,
            backlog_max: engine.backlog_max,
            checkpoint_bytes_max: engine.checkpoint_bytes_max,
            cancel_grace: engine.cancel_grace,
            accept_timeout: engine.accept_timeout,
            dedup: engine.dedup,
            dedup_window: engine.dedup_window,
        }
    }
}

/// A command and how it is spoken to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AgentCommand {
    /// Text in, lines out.
    Exec(String),
    /// JSON lines both ways.
    ExecJsonl(String),
}

/// How long tasks are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetentionSettings {
    /// How long tasks are kept that have ended, by the state that they ended in.
    pub kept: Retention,
    /// How long a task may go without an update that nobody works on; `None`: for ever.
    pub stale_after: Option<Duration>,
    /// How long after a task's end its log is merged; `None`: never.
    pub compact_after: Option<Duration>,
    /// How often it is looked for all of these.
    pub housekeeping_interval: Duration,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        let engine = longhaul_engine::Config::default();
        Self {
            kept: engine.retention,
            stale_after: engine.stale_after,
            compact_after: engine.compact_after,
            housekeeping_interval: engine.housekeeping_interval,
        }
    }
}

/// What is logged.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    /// A level, or a filter of `tracing-subscriber`.
    pub level: String,
    /// How a line looks.
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Settings {
    /// Puts the layers on each other.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the first thing that is wrong, where it was said, and what to do.
    pub fn layered(file: Option<&Source>, environment: &Layer, flags: &Layer) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        if let Some(file) = file {
            file.apply(&mut settings)?;
        }
        environment.apply(&mut settings)?;
        flags.apply(&mut settings)?;
        let data = flags.says_data().or_else(|| environment.says_data());
        settings.store.check(data.or_else(|| file.and_then(Source::says_data)))?;
        Ok(settings)
    }

    /// The command that is served, if there is one.
    pub fn served(&self) -> Option<ServedAgent<'_>> {
        self.agent.command.as_ref().map(|command| match command {
            AgentCommand::Exec(command) => ServedAgent::Exec(command),
            AgentCommand::ExecJsonl(command) => ServedAgent::ExecJsonl(command),
        })
    }

    /// The settings with the values that follow from the command and the machine where nobody set another.
    #[must_use]
    pub fn in_effect(mut self) -> Self {
        if let Some(served) = self.served() {
            let (card, workers) = (self.card.clone().with_defaults(served), self.workers_max(served));
            self.card = card;
            self.agent.workers_max = Some(workers);
        }
        self.agent.worker_name = Some(self.worker_name()).filter(|name| !name.is_empty());
        self
    }

    fn workers_max(&self, served: ServedAgent<'_>) -> usize {
        let default = match served {
            // Each is a process.
            ServedAgent::Exec(_) | ServedAgent::ExecJsonl(_) => 64,
            ServedAgent::Demo => longhaul_engine::Config::default().workers_max,
        };
        self.agent.workers_max.unwrap_or(default)
    }

    fn worker_name(&self) -> String {
        self.agent.worker_name.clone().unwrap_or_else(host_name)
    }

    /// The engine's part of it.
    pub fn engine(&self, served: ServedAgent<'_>) -> longhaul_engine::Config {
        let (agent, push, retention) = (&self.agent, &self.push, &self.retention);
        longhaul_engine::Config {
            worker_name: self.worker_name(),
            workers_max: self.workers_max(served),
            attempts_max: agent.attempts_max,
            backoff_min: agent.backoff_min,
            backoff_max: agent.backoff_max,
            lease_duration: agent.lease_duration,
            turn_duration_max: agent.turn_duration_max,
            inactivity_max: agent.inactivity_max,
            backlog_max: agent.backlog_max,
            checkpoint_bytes_max: agent.checkpoint_bytes_max,
            stale_after: retention.stale_after,
            compact_after: retention.compact_after,
            retention: retention.kept,
            housekeeping_interval: retention.housekeeping_interval,
            cancel_grace: agent.cancel_grace,
            accept_timeout: agent.accept_timeout,
            dedup: agent.dedup,
            dedup_window: agent.dedup_window,
            input_modes: self.card.all_input_modes(served),
            push_configs_max: push.configs_max,
            push_in_flight_max: push.in_flight_max,
            push_host_max: push.host_max,
            ..longhaul_engine::Config::default()
        }
    }
}

/// The machine's name up to its first dot, as far as it can name a worker.
fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let label = name.split('.').next().unwrap_or_default();
    let fits = |character: &char| character.is_ascii_alphanumeric() || ['-', '_'].contains(character);
    label.chars().filter(fits).take(WORKER_NAME_MAX).collect()
}

#[cfg(test)]
mod tests;
