//! `[store]`: where tasks are kept.

use std::path::PathBuf;
use std::time::Duration;

use longhaul_store_postgres::PostgresConfig;
use longhaul_store_sqlite::Synchronous;

use super::section::{Section, nearest};
use super::{ConfigError, DatabaseUrl};

/// Where tasks are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreSettings {
    /// Which store.
    pub kind: StoreKind,
    /// The folder of the SQLite file.
    pub data: PathBuf,
    /// When a commit to that file counts as kept.
    pub synchronous: Synchronous,
    /// `[store.postgres]`
    pub postgres: PostgresSettings,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            kind: StoreKind::Sqlite,
            data: PathBuf::from("./longhaul-data"),
            synchronous: Synchronous::Full,
            postgres: PostgresSettings::default(),
        }
    }
}

/// The stores of this version.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreKind {
    /// One SQLite file.
    Sqlite,
    /// This process's memory.
    Memory,
    /// A PostgreSQL database.
    Postgres(DatabaseUrl),
}

/// How a PostgreSQL database is used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PostgresSettings {
    /// The schema that holds the tables.
    pub schema: String,
    /// How many connections write.
    pub writers: usize,
    /// How many connections read at the most.
    pub readers: usize,
    /// How long the database may take to be reached.
    pub connect_timeout: Duration,
    /// How long the database may take for one step.
    pub statement_timeout: Duration,
    /// Whether instances ring each other by LISTEN and NOTIFY.
    pub notify: bool,
    /// Whether a server makes the tables and brings them up to date when it starts.
    pub migrate: bool,
    /// The file that holds the password.
    pub password_file: Option<PathBuf>,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        let config = PostgresConfig::default();
        Self {
            schema: config.schema,
            writers: config.writers,
            readers: config.readers,
            connect_timeout: config.connect_timeout,
            statement_timeout: config.statement_timeout,
            notify: config.notify,
            migrate: config.migrate,
            password_file: None,
        }
    }
}

impl StoreKind {
    /// Reads what `--store` and `store.kind` say; what is wrong, said at `place`, is told without a value that may hold a
    /// password.
    pub fn parse(place: &str, text: &str) -> Result<Self, ConfigError> {
        match text {
            "sqlite" => return Ok(Self::Sqlite),
            "memory" => return Ok(Self::Memory),
            _ => {}
        }
        if DatabaseUrl::is_meant_by(text) {
            let url = DatabaseUrl::parse(text);
            return url.map(Self::Postgres).map_err(|wrong| ConfigError::new(place, wrong.message, wrong.hint));
        }
        let word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        let said = if word { format!("is {text:?}, and") } else { "names no store that is known here, and".to_owned() };
        let near = if word { nearest(text, ["sqlite", "memory"].into_iter()) } else { None };
        let message = format!("{said} must be one of sqlite, memory, postgres://USER@HOST:PORT/DATABASE");
        let hint = match near {
            Some(near) => format!("write {near}, or the address of a PostgreSQL database"),
            None => "write sqlite, memory, or the address of a PostgreSQL database".to_owned(),
        };
        Err(ConfigError::new(place, message, hint))
    }
}

impl StoreSettings {
    /// Puts what the file says on them.
    pub fn apply(&mut self, mut section: Section<'_>) -> Result<(), ConfigError> {
        if let Some(kind) = section.text("kind")? {
            self.kind = StoreKind::parse(&section.place("kind"), &kind)?;
        }
        if let Some(data) = section.checked("data", not_empty)? {
            self.data = data.into();
        }
        section.set_choice(
            "synchronous",
            &mut self.synchronous,
            &[("full", Synchronous::Full), ("normal", Synchronous::Normal)],
        )?;
        self.postgres.apply(section.section("postgres")?)?;
        section.finish()
    }

    /// Refuses settings of SQLite beside a database; `data` is where its folder was said, if it was.
    pub fn check(&self, data: Option<String>) -> Result<(), ConfigError> {
        let StoreKind::Postgres(url) = &self.kind else { return Ok(()) };
        if let Some(place) = data {
            let message = "names the folder of a SQLite file, but tasks are kept in PostgreSQL";
            return Err(ConfigError::new(
                place,
                message,
                "leave it out, or keep tasks in that folder with --store sqlite",
            ));
        }
        if self.synchronous == Synchronous::Normal {
            let message = "is \"normal\", which is for SQLite: in PostgreSQL every commit is kept";
            return Err(ConfigError::new("store.synchronous", message, "leave it out"));
        }
        if url.has_password() && self.postgres.password_file.is_some() {
            let message = "is set although the address of the database holds a password";
            return Err(ConfigError::new("store.postgres.password_file", message, "leave one of them out"));
        }
        Ok(())
    }
}

impl PostgresSettings {
    fn apply(&mut self, mut section: Section<'_>) -> Result<(), ConfigError> {
        let millis = Duration::from_millis;
        if let Some(schema) = section.checked("schema", check_schema)? {
            self.schema = schema;
        }
        section.set_number("writers", &mut self.writers, 1..=PostgresConfig::WRITERS_MAX)?;
        section.set_number("readers", &mut self.readers, 1..=PostgresConfig::READERS_MAX)?;
        section.set_duration("connect_timeout", &mut self.connect_timeout, millis(100)..=millis(60_000))?;
        section.set_duration("statement_timeout", &mut self.statement_timeout, millis(100)..=millis(600_000))?;
        section.set_flag("notify", &mut self.notify)?;
        section.set_flag("migrate", &mut self.migrate)?;
        if let Some(file) = section.checked("password_file", a_file)? {
            self.password_file = Some(file.into());
        }
        section.finish()
    }
}

/// PostgreSQL cuts a longer name, and keeps `pg_` to itself.
fn check_schema(schema: &str) -> Result<(), String> {
    let reserved = schema.starts_with("pg_") || schema == "information_schema";
    if schema.is_empty() || schema.len() > 63 || schema.contains(char::is_control) || reserved {
        return Err("the name of a schema: 1 to 63 bytes, and not one of PostgreSQL's own".to_owned());
    }
    Ok(())
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("the name of a folder".to_owned()) } else { Ok(()) }
}

fn a_file(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("the name of a file".to_owned()) } else { Ok(()) }
}
