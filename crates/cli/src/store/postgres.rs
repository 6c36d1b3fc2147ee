//! Tasks in a PostgreSQL database.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Clock, SystemClock};
use longhaul_protocol::Timestamp;
use longhaul_store_postgres::{ClockOffset, OpenError, PostgresConfig, PostgresStore, SchemaState};

use super::Opened;
use crate::failure::Attempt;
use crate::settings::{ConfigError, DatabaseUrl, PostgresSettings};

/// How long a server waits for a database that can't be reached: both may be starting.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// How long it goes on trying before it says again why, in milliseconds.
const SILENCE_MAX_MS: i64 = 5_000;
/// The variable that holds the password for PostgreSQL's own programs.
pub const PASSWORD_VARIABLE: &str = "PGPASSWORD";
/// How large a file may be to be taken for one that holds a password, in bytes.
const PASSWORD_BYTES_MAX: usize = 4096;

/// Opens the database for a server, and waits for one that can't be reached yet.
pub async fn patiently(url: &DatabaseUrl, settings: &PostgresSettings) -> anyhow::Result<Opened> {
    let config = config(url, settings)?;
    let store = reach(&config).await.map_err(|error| not_opened(url, error))?;
    let (place, schema, schema_version) = (store.place(), &config.schema, store.schema().to);
    tracing::info!(place, schema, schema_version, "tasks are kept in PostgreSQL");
    Ok(opened(store))
}

/// Opens the database for one command, which changes no tables and waits for nobody.
pub async fn database(url: &DatabaseUrl, settings: &PostgresSettings) -> anyhow::Result<Opened> {
    let config = PostgresConfig { writers: 1, readers: 1, migrate: false, ..config(url, settings)? };
    PostgresStore::open(&config).await.map(opened).map_err(|error| not_opened(url, error))
}

/// Makes the tables, or brings them up to date.
pub async fn migrate(url: &DatabaseUrl, settings: &PostgresSettings) -> anyhow::Result<SchemaState> {
    longhaul_store_postgres::migrate(&config(url, settings)?).await.map_err(|error| {
        let attempt = Attempt::new(format!("cannot make or update the tables in {}", url.place())).hint(hint(&error));
        anyhow::Error::new(error).context(attempt)
    })
}

fn opened(store: PostgresStore) -> Opened {
    let clock = DatabaseClock(store.clock());
    Opened { store: Arc::new(store), clock: Arc::new(clock) }
}

async fn reach(config: &PostgresConfig) -> Result<PostgresStore, OpenError> {
    let (clock, mut patience) = (SystemClock::new(), pin!(tokio::time::sleep(PATIENCE)));
    let (mut pause, mut said_at) = (PAUSE_MIN, None);
    loop {
        let error = match PostgresStore::open(config).await {
            Err(error @ OpenError::Unreachable { .. }) => error,
            done => return done,
        };
        let now = clock.now().unix_millis();
        if said_at.is_none_or(|then| now - then >= SILENCE_MAX_MS) {
            tracing::warn!(error = &error as &dyn Error, "the database cannot be reached, trying again");
            said_at = Some(now);
        }
        tokio::select! {
            biased;
            () = &mut patience => return Err(error),
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn config(url: &DatabaseUrl, settings: &PostgresSettings) -> Result<PostgresConfig, ConfigError> {
    let password = match &settings.password_file {
        Some(file) => Some(read_password(file)?),
        None => std::env::var(PASSWORD_VARIABLE).ok().filter(|password| !password.is_empty()),
    };
    Ok(PostgresConfig {
        url: url.with_password(password.as_deref()),
        schema: settings.schema.clone(),
        writers: settings.writers,
        readers: settings.readers,
        connect_timeout: settings.connect_timeout,
        statement_timeout: settings.statement_timeout,
        notify: settings.notify,
        migrate: settings.migrate,
        ..PostgresConfig::default()
    })
}

/// A password is the file's text without the newline that editors put at its end.
fn read_password(file: &Path) -> Result<String, ConfigError> {
    let wrong = |what: &dyn fmt::Display| {
        let message = format!("{} {what}", file.display());
        ConfigError::new(
            "store.postgres.password_file",
            message,
            "name a file that holds the password and nothing else",
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&format_args!("cannot be read: {error}")))?;
    let password = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    match password {
        "" => Err(wrong(&"is empty")),
        long if long.len() > PASSWORD_BYTES_MAX => {
            Err(wrong(&format_args!("is longer than {PASSWORD_BYTES_MAX} bytes")))
        }
        password => Ok(password.to_owned()),
    }
}

fn not_opened(url: &DatabaseUrl, error: OpenError) -> anyhow::Error {
    let attempt = Attempt::new(format!("cannot open the store in {}", url.place())).hint(hint(&error));
    anyhow::Error::new(error).context(attempt)
}

fn hint(error: &OpenError) -> String {
    let hint = match error {
        OpenError::Url { .. } => "write the address as postgres://USER@HOST:PORT/DATABASE?PARAMETER=VALUE",
        OpenError::Tls { .. } => "check sslmode and sslrootcert in the address of the database",
        OpenError::Unreachable { .. } => "start the database, or name where it is with --store",
        OpenError::Refused { .. } => {
            "check user and database in --store, and the password in PGPASSWORD or store.postgres.password_file; \
             docs/operations.md says how to make a role and a database"
        }
        OpenError::ServerTooOld { needed, .. } => return format!("use PostgreSQL {needed} or later"),
        OpenError::Encoding { .. } => {
            "name a database with --store that was made with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        }
        OpenError::ReadOnly => {
            "name the primary with --store; of several hosts (postgres://ONE,TWO/DATABASE) it is found by itself"
        }
        OpenError::NotOurs { .. } => {
            "choose another schema with store.postgres.schema, or another database with --store"
        }
        OpenError::Newer { .. } | OpenError::PayloadFormat { .. } => {
            "use the newer release of longhaul, or another database with --store"
        }
        OpenError::Older { .. } => "run longhaul migrate, or leave store.postgres.migrate = false out",
        OpenError::Database { .. } => {
            "the role must own the schema or be allowed to make it; docs/operations.md says how"
        }
    };
    hint.to_owned()
}

/// The database's clock, which all instances follow.
#[derive(Debug)]
struct DatabaseClock(Arc<ClockOffset>);

#[async_trait]
impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
