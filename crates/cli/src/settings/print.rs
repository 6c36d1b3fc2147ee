//! The effective settings as a file that would say the same.

use std::path::Path;
use std::time::Duration;

use longhaul_engine::DedupMode;
use longhaul_protocol::wire::{AgentExtension, AgentSkill};
use longhaul_store_sqlite::Synchronous;
use serde_json::Value as Json;
use toml::{Table, Value};

use super::{
    AgentCommand, AgentSettings, CardSettings, Kept, LogFormat, PostgresSettings, PushSettings, Settings, StoreKind,
    duration,
};

/// What stands for a value that may be a secret.
const HIDDEN: &str = "(not shown)";

impl Settings {
    /// Writes the settings as TOML. The values of `agent.env` may be secrets and are not shown, nor are the database's password,
    /// and keys and secrets that came by a variable.
    pub fn to_toml(&self) -> String {
        let mut root = Table::new();
        root.insert("server".to_owned(), self.server().into());
        root.insert("store".to_owned(), self.store().into());
        root.insert("agent".to_owned(), agent(&self.agent).into());
        root.insert("push".to_owned(), push(&self.push).into());
        root.insert("card".to_owned(), card(&self.card).into());
        root.insert("retention".to_owned(), self.retention().into());
        root.insert("log".to_owned(), self.log().into());
        root.to_string()
    }

    fn server(&self) -> Table {
        let server = &self.server;
        let mut table = Writer::default();
        table.text("listen", &server.listen);
        table.list("versions", &server.versions.iter().map(|version| version.name().to_owned()).collect::<Vec<_>>());
        table.text("drafts_path", server.drafts_path.as_deref().unwrap_or_default());
        table.optional("public_url", server.public_url.as_deref());
        table.text("prefix", &server.prefix);
        table.text("keep_alive", duration::format(server.keep_alive));
        table.number("body_bytes_max", server.body_bytes_max);
        table.number("streams_max", server.streams_max);
        table.text("header_timeout", duration::format(server.header_timeout));
        table.text("drain_timeout", duration::format(server.drain_timeout));
        table.text("card_max_age", duration::format(server.card_max_age));
        table.put("metrics", server.metrics);
        table.0
    }

    fn store(&self) -> Table {
        let (store, mut table) = (&self.store, Writer::default());
        let synchronous = match store.synchronous {
            Synchronous::Full => "full",
            Synchronous::Normal => "normal",
        };
        match &store.kind {
            StoreKind::Sqlite => table.text("kind", "sqlite"),
            StoreKind::Memory => table.text("kind", "memory"),
            StoreKind::Postgres(url) => table.text("kind", url.to_string()),
        }
        // Beside a database they are refused.
        if !matches!(store.kind, StoreKind::Postgres(_)) {
            table.text("data", store.data.to_string_lossy());
            table.text("synchronous", synchronous);
        }
        table.put("postgres", postgres(&store.postgres));
        table.0
    }

    fn retention(&self) -> Table {
        let (kept, mut table) = (&self.retention.kept, Writer::default());
        table.duration_or("never", "completed", kept.completed);
        table.duration_or("never", "failed", kept.failed);
        table.duration_or("never", "canceled", kept.canceled);
        table.duration_or("never", "rejected", kept.rejected);
        table.duration_or("off", "stale_after", self.retention.stale_after);
        table.duration_or("never", "compact_after", self.retention.compact_after);
        table.text("housekeeping_interval", duration::format(self.retention.housekeeping_interval));
        table.0
    }

    fn log(&self) -> Table {
        let mut table = Writer::default();
        let format = match self.log.format {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        };
        table.text("level", &self.log.level);
        table.text("format", format);
        table.0
    }
}

fn postgres(postgres: &PostgresSettings) -> Table {
    let mut table = Writer::default();
    table.text("schema", &postgres.schema);
    table.number("writers", postgres.writers);
    table.number("readers", postgres.readers);
    table.text("connect_timeout", duration::format(postgres.connect_timeout));
    table.text("statement_timeout", duration::format(postgres.statement_timeout));
    table.put("notify", postgres.notify);
    table.put("migrate", postgres.migrate);
    table.optional("password_file", postgres.password_file.as_deref().and_then(Path::to_str));
    table.0
}

fn push(push: &PushSettings) -> Table {
    let mut table = Writer::default();
    let file = |kept: &Option<Kept>| match kept {
        Some(Kept::File(path)) => path.to_str().map(str::to_owned),
        Some(Kept::Variable(_)) | None => None,
    };
    table.put("enabled", push.enabled);
    table.list("allow", &push.allow.iter().map(ToString::to_string).collect::<Vec<_>>());
    table.put("allow_http", push.allow_http);
    table.optional("key_file", file(&push.key).as_deref());
    table.optional("signing_secret_file", file(&push.signing_secret).as_deref());
    table.text("timeout", duration::format(push.timeout));
    table.text("give_up_after", duration::format(push.give_up_after));
    table.text("delay_min", duration::format(push.delay_min));
    table.text("delay_max", duration::format(push.delay_max));
    table.number("configs_max", push.configs_max);
    table.number("in_flight_max", push.in_flight_max);
    table.number("host_max", push.host_max);
    table.number("answer_bytes_max", push.answer_bytes_max);
    table.optional("roots_file", push.roots_file.as_deref().and_then(Path::to_str));
    table.0
}

fn agent(agent: &AgentSettings) -> Table {
    let mut table = Writer::default();
    match &agent.command {
        Some(AgentCommand::Exec(command)) => table.text("exec", command),
        Some(AgentCommand::ExecJsonl(command)) => table.text("exec_jsonl", command),
        None => {}
    }
    table.optional("working_dir", agent.working_dir.as_deref().and_then(Path::to_str));
    if let Some(names) = &agent.env_pass {
        table.list("env_pass", names);
    }
    table.optional("worker_name", agent.worker_name.as_deref());
    if let Some(workers) = agent.workers_max {
        table.number("workers_max", workers);
    }
    table.number("attempts_max", agent.attempts_max as usize);
    table.text("backoff_min", duration::format(agent.backoff_min));
    table.text("backoff_max", duration::format(agent.backoff_max));
    table.text("lease_duration", duration::format(agent.lease_duration));
    table.text("turn_duration_max", duration::format(agent.turn_duration_max));
    table.duration_or("off", "inactivity_max", agent.inactivity_max);
    table.number("backlog_max", usize::try_from(agent.backlog_max).unwrap_or(usize::MAX));
    table.number("checkpoint_bytes_max", agent.checkpoint_bytes_max);
    table.text("cancel_grace", duration::format(agent.cancel_grace));
    table.text("accept_timeout", duration::format(agent.accept_timeout));
    let dedup = match agent.dedup {
        DedupMode::Requested => "requested",
        DedupMode::Always => "always",
    };
    table.text("dedup", dedup);
    table.text("dedup_window", duration::format(agent.dedup_window));
    if !agent.env.is_empty() {
        let hidden: Table = agent.env.keys().map(|name| (name.clone(), HIDDEN.into())).collect();
        table.put("env", hidden);
    }
    table.0
}

fn card(card: &CardSettings) -> Table {
    let mut table = Writer::default();
    table.optional("name", card.name.as_deref());
    table.optional("description", card.description.as_deref());
    table.optional("version", card.version.as_deref());
    table.optional("documentation_url", card.documentation_url.as_deref());
    table.optional("icon_url", card.icon_url.as_deref());
    table.some("input_modes", &card.input_modes);
    table.some("output_modes", &card.output_modes);
    table.put("streaming", card.streaming);
    table.put("push_notifications", card.push_notifications);
    table.put("grpc", card.grpc);
    if let Some(provider) = &card.provider {
        let mut inner = Writer::default();
        inner.text("organization", &provider.organization);
        inner.text("url", &provider.url);
        table.put("provider", inner.0);
    }
    table.tables("skills", card.skills.iter().map(skill).collect());
    table.tables("extensions", card.extensions.iter().map(extension).collect());
    table.0
}

fn skill(skill: &AgentSkill) -> Table {
    let mut table = Writer::default();
    table.text("id", &skill.id);
    table.text("name", &skill.name);
    table.text("description", &skill.description);
    table.list("tags", &skill.tags);
    table.some("examples", &skill.examples);
    table.some("input_modes", &skill.input_modes);
    table.some("output_modes", &skill.output_modes);
    table.0
}

fn extension(extension: &AgentExtension) -> Table {
    let mut table = Writer::default();
    table.text("uri", &extension.uri);
    table.text("description", &extension.description);
    table.put("required", extension.required);
    if let Some(Value::Table(params)) = extension.params.clone().map(Json::Object).and_then(toml_of) {
        table.put("params", params);
    }
    table.0
}

/// JSON that came from TOML, so that nothing is lost.
fn toml_of(json: Json) -> Option<Value> {
    Value::try_from(json).ok()
}

/// A table that is being written.
#[derive(Debug, Default)]
struct Writer(Table);

impl Writer {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn text(&mut self, key: &str, text: impl AsRef<str>) {
        self.put(key, text.as_ref());
    }

    fn optional(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    fn number(&mut self, key: &str, number: usize) {
        self.put(key, i64::try_from(number).unwrap_or(i64::MAX));
    }

    fn duration_or(&mut self, none: &str, key: &str, duration: Option<Duration>) {
        self.text(key, duration.map_or_else(|| none.to_owned(), duration::format));
    }

    fn list(&mut self, key: &str, texts: &[String]) {
        self.put(key, texts.to_vec());
    }

    fn some(&mut self, key: &str, texts: &[String]) {
        if !texts.is_empty() {
            self.list(key, texts);
        }
    }

    fn tables(&mut self, key: &str, tables: Vec<Table>) {
        if !tables.is_empty() {
            self.put(key, tables);
        }
    }
}
