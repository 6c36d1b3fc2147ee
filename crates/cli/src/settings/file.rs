//! The file `longhaul.toml`.

use std::path::Path;
use std::time::Duration;

use longhaul_engine::DedupMode;
use longhaul_server::{Version, Versions};
use toml::Table;

use super::layer::{check_filter, check_listen, check_public_url, check_worker_name};
use super::section::{Document, Section};
use super::{
    AgentCommand, AgentSettings, ConfigError, LogFormat, LogSettings, RetentionSettings, ServerSettings, Settings,
    duration,
};

/// The file that is read when none is named, if it is there.
pub const FILE_NAME: &str = "longhaul.toml";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A file that was read.
#[derive(Debug)]
pub struct Source {
    file: String,
    table: Table,
}

impl Source {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            ConfigError::new(&*file, format!("cannot be read: {error}"), "check the path given with --config")
        })?;
        Self::parse(file, &text)
    }

    /// Takes a text for a file's.
    pub fn parse(file: impl Into<String>, text: &str) -> Result<Self, ConfigError> {
        let file = file.into();
        match text.parse() {
            Ok(table) => Ok(Self { file, table }),
            Err(error) => Err(ConfigError::new(
                file,
                format!("is not TOML: {}", error.to_string().trim_end()),
                "correct the line shown",
            )),
        }
    }

    /// Puts what the file says on the settings.
    pub fn apply(&self, settings: &mut Settings) -> Result<(), ConfigError> {
        let document = Document { file: &self.file, asked: Vec::new().into(), keys: &all_keys() };
        apply(settings, Section::root(&document, &self.table))
    }

    /// Where it names the folder of the SQLite file, if it does.
    pub fn says_data(&self) -> Option<String> {
        let store = self.table.get("store")?.as_table()?;
        store.contains_key("data").then(|| format!("{}: store.data", self.file))
    }
}

/// Every key that there is, by its path.
pub fn all_keys() -> Vec<String> {
    let mut table = Table::new();
    let mut card = Table::new();
    for list in ["skills", "extensions"] {
        card.insert(list.to_owned(), toml::Value::Array(vec![sample().into()]));
    }
    card.insert("provider".to_owned(), sample().into());
    table.insert("card".to_owned(), card.into());
    let document = Document { file: "", asked: Vec::new().into(), keys: &[] };
    // It is refused for what the samples lack only after every key was asked for.
    let _ = apply(&mut Settings::default(), Section::root(&document, &table));
    document.asked.into_inner()
}

/// What makes every table of a list valid.
fn sample() -> Table {
    ["id", "name", "description", "uri", "organization", "url"]
        .map(|key| (key.to_owned(), "urn:x".into()))
        .into_iter()
        .collect()
}

fn apply(settings: &mut Settings, mut root: Section<'_>) -> Result<(), ConfigError> {
    server(&mut settings.server, root.section("server")?)?;
    settings.store.apply(root.section("store")?)?;
    agent(&mut settings.agent, root.section("agent")?)?;
    settings.push.apply(root.section("push")?)?;
    retention(&mut settings.retention, root.section("retention")?)?;
    log(&mut settings.log, root.section("log")?)?;
    settings.card.apply(root.section("card")?)?;
    root.finish()
}

fn server(server: &mut ServerSettings, mut section: Section<'_>) -> Result<(), ConfigError> {
    let second = Duration::from_secs(1);
    if let Some(listen) = section.checked("listen", check_listen)? {
        server.listen = listen;
    }
    if let Some(names) = section.list("versions")? {
        server.versions = versions(&names).ok_or_else(|| {
            let hint = "write server.versions = [\"1.0\", \"0.3\"], or one of them";
            section.error("versions", format_args!("is {names:?}, and must name one of 1.0 and 0.3 or both"), hint)
        })?;
    }
    if let Some(path) = section.checked("drafts_path", check_drafts_path)? {
        server.drafts_path = Some(path).filter(|path| !path.is_empty());
    }
    if let Some(url) = section.checked("public_url", check_public_url)? {
        server.public_url = Some(url);
    }
    if let Some(prefix) = section.checked("prefix", check_prefix)? {
        server.prefix = prefix;
    }
    section.set_duration("keep_alive", &mut server.keep_alive, second..=Duration::from_secs(300))?;
    section.set_number("body_bytes_max", &mut server.body_bytes_max, 1024..=1024 * 1024 * 1024)?;
    section.set_number("streams_max", &mut server.streams_max, 1..=10_000_000)?;
    section.set_duration("header_timeout", &mut server.header_timeout, second..=Duration::from_secs(3600))?;
    section.set_duration("drain_timeout", &mut server.drain_timeout, Duration::ZERO..=Duration::from_secs(3600))?;
    section.set_duration("card_max_age", &mut server.card_max_age, Duration::ZERO..=7 * DAY)?;
    section.set_flag("metrics", &mut server.metrics)?;
    section.finish()
}

/// `None` for none, and for a name that is no version's.
fn versions(names: &[String]) -> Option<Versions> {
    let known = |name: &String| Version::ALL.iter().copied().find(|version| version.name() == name);
    let versions: Option<Vec<Version>> = names.iter().map(known).collect();
    Versions::new(versions?)
}

fn check_prefix(prefix: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let good =
        |segment: &str| !segment.is_empty() && segment.bytes().all(plain) && segment.bytes().any(|byte| byte != b'.');
    match prefix.strip_prefix('/') {
        _ if prefix.is_empty() => Ok(()),
        Some(path) if path.split('/').all(good) => Ok(()),
        _ => Err("empty, or a path like \"/agents/one\" without a slash at its end".to_owned()),
    }
}

fn check_drafts_path(path: &str) -> Result<(), String> {
    const TAKEN: [&str; 6] = ["/v1", "/tasks", "/extendedAgentCard", "/metrics", "/healthz", "/readyz"];
    let is_free = !TAKEN.contains(&path) && path.matches('/').count() <= 1;
    match check_prefix(path) {
        Ok(()) if is_free => Ok(()),
        _ => Err("empty, or one name like \"/drafts\" that nothing else has".to_owned()),
    }
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("the name of a folder".to_owned()) } else { Ok(()) }
}

fn agent(agent: &mut AgentSettings, mut section: Section<'_>) -> Result<(), ConfigError> {
    let exec = section.checked("exec", a_command)?;
    let exec_jsonl = section.checked("exec_jsonl", |command| {
        if exec.is_some() {
            Err("absent beside agent.exec, since one server has one agent".to_owned())
        } else {
            a_command(command)
        }
    })?;
    agent.command =
        exec.clone().map(AgentCommand::Exec).or(exec_jsonl.map(AgentCommand::ExecJsonl)).or(agent.command.take());
    if let Some(dir) = section.checked("working_dir", not_empty)? {
        agent.working_dir = Some(dir.into());
    }
    if let Some(names) = section.list("env_pass")? {
        agent.env_pass = Some(names);
    }
    if let Some(env) = section.texts("env")? {
        agent.env = env;
    }
    if let Some(name) = section.checked("worker_name", check_worker_name)? {
        agent.worker_name = Some(name);
    }
    if let Some(workers) = section.number("workers_max", 1..=1_000_000)? {
        agent.workers_max = Some(workers);
    }
    section.set_number("attempts_max", &mut agent.attempts_max, 1..=100)?;
    leases(agent, &mut section)?;
    section.set_duration("cancel_grace", &mut agent.cancel_grace, Duration::ZERO..=Duration::from_secs(300))?;
    section.set_duration(
        "accept_timeout",
        &mut agent.accept_timeout,
        Duration::from_millis(10)..=Duration::from_secs(60),
    )?;
    section.set_choice(
        "dedup",
        &mut agent.dedup,
        &[("requested", DedupMode::Requested), ("always", DedupMode::Always)],
    )?;
    section.set_duration("dedup_window", &mut agent.dedup_window, Duration::from_secs(1)..=365 * DAY)?;
    section.finish()
}

/// How long an attempt may take, and what comes after one that came to nothing.
fn leases(agent: &mut AgentSettings, section: &mut Section<'_>) -> Result<(), ConfigError> {
    let (millis, hour) = (Duration::from_millis, Duration::from_secs(3600));
    section.set_duration("backoff_min", &mut agent.backoff_min, millis(10)..=hour)?;
    section.set_duration("backoff_max", &mut agent.backoff_max, millis(10)..=DAY)?;
    if agent.backoff_min > agent.backoff_max {
        let (min, max) = (duration::format(agent.backoff_min), duration::format(agent.backoff_max));
        let message = format_args!("is {min}, which is more than agent.backoff_max, {max}");
        return Err(section.error("backoff_min", message, "lower backoff_min, or raise backoff_max"));
    }
    section.set_duration("lease_duration", &mut agent.lease_duration, LEASE_MIN..=hour)?;
    section.set_duration("turn_duration_max", &mut agent.turn_duration_max, millis(1000)..=365 * DAY)?;
    section.set_duration_or("off", "inactivity_max", &mut agent.inactivity_max, millis(1000)..=365 * DAY)?;
    section.set_number("backlog_max", &mut agent.backlog_max, 1..=1_000_000_000)?;
    section.set_number("checkpoint_bytes_max", &mut agent.checkpoint_bytes_max, 1..=16 * 1024 * 1024)
}

/// Renewed at a third, so this is a heartbeat every 100 ms.
const LEASE_MIN: Duration = Duration::from_millis(300);

fn retention(retention: &mut RetentionSettings, mut section: Section<'_>) -> Result<(), ConfigError> {
    let kept = &mut retention.kept;
    for (key, to) in [
        ("completed", &mut kept.completed),
        ("failed", &mut kept.failed),
        ("canceled", &mut kept.canceled),
        ("rejected", &mut kept.rejected),
    ] {
        section.set_duration_or("never", key, to, Duration::ZERO..=KEPT_MAX)?;
    }
    let second = Duration::from_secs(1);
    section.set_duration_or("off", "stale_after", &mut retention.stale_after, second..=KEPT_MAX)?;
    let minute = Duration::from_secs(60);
    section.set_duration_or("never", "compact_after", &mut retention.compact_after, minute..=KEPT_MAX)?;
    section.set_duration("housekeeping_interval", &mut retention.housekeeping_interval, second..=DAY)?;
    section.finish()
}

/// How long a task may be kept for a time that ends.
const KEPT_MAX: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

pub fn a_command(command: &str) -> Result<(), String> {
    if command.trim().is_empty() { Err("a command line for /bin/sh".to_owned()) } else { Ok(()) }
}

fn log(log: &mut LogSettings, mut section: Section<'_>) -> Result<(), ConfigError> {
    if let Some(level) = section.checked("level", check_filter)? {
        log.level = level;
    }
    section.set_choice("format", &mut log.format, &[("text", LogFormat::Text), ("json", LogFormat::Json)])?;
    section.finish()
}
