//! Tasks in a SQLite file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_engine::{Clock as _, SystemClock};
use longhaul_store_sqlite::{OpenError, SqliteConfig, SqliteStore};

use super::Opened;
use crate::failure::Attempt;
use crate::settings::StoreSettings;

/// The file without which a folder holds no store.
const FILE_NAME: &str = "longhaul.db";

/// The file in a folder.
pub fn file(directory: &Path) -> PathBuf {
    directory.join(FILE_NAME)
}

/// Opens the file of a folder for a server.
pub fn open(settings: &StoreSettings) -> Result<Opened, OpenError> {
    open_as(config(settings))
}

/// Opens the file of a folder for a command, if it is there. Leases stay as they are: only a server's start ends those of its
/// predecessor.
pub fn existing(settings: &StoreSettings) -> Result<Opened, OpenError> {
    let path = file(&settings.data);
    if let Err(source) = std::fs::metadata(&path) {
        return Err(OpenError::Files { action: "find", path, source });
    }
    open_as(SqliteConfig { readers: 1, ..config(settings) })
}

fn config(settings: &StoreSettings) -> SqliteConfig {
    SqliteConfig { directory: settings.data.clone(), synchronous: settings.synchronous, ..SqliteConfig::default() }
}

fn open_as(config: SqliteConfig) -> Result<Opened, OpenError> {
    let store = SqliteStore::open(&config, SystemClock::new().now())?;
    let clock = SystemClock::not_before(store.latest_time());
    Ok(Opened { store: Arc::new(store), clock: Arc::new(clock) })
}

/// Says that the store of a folder can't be opened, and what to do.
pub fn not_opened(directory: &Path, error: OpenError) -> anyhow::Error {
    let attempt = Attempt::new(format!("cannot open the store in {}", directory.display()));
    let attempt = match hint(&error) {
        Some(hint) => attempt.hint(hint),
        None => attempt,
    };
    anyhow::Error::new(error).context(attempt)
}

fn hint(error: &OpenError) -> Option<&'static str> {
    match error {
        OpenError::Held { .. } => Some("stop the other server, or choose another folder with --data"),
        OpenError::Newer { .. } | OpenError::PayloadFormat { .. } => {
            Some("use the newer release of longhaul, or another folder with --data")
        }
        OpenError::Files { .. } => Some("check the folder and its permissions, or choose another one with --data"),
        OpenError::NotOurs { .. } => Some("choose another folder with --data"),
        OpenError::SqliteTooOld { .. } | OpenError::Database { .. } => None,
    }
}
