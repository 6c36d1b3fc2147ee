//! Opens the store that the settings name.

mod postgres;
mod sqlite;

use std::sync::Arc;

use longhaul_engine::{Clock, Store, SystemClock};
use longhaul_store::MemoryStore;

use crate::settings::{StoreKind, StoreSettings};

pub use postgres::{PASSWORD_VARIABLE, database, migrate};
pub use sqlite::{existing, not_opened};

/// A store, and the clock that its times are of.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The store.
    pub store: Arc<dyn Store>,
    /// A clock that is not behind the latest time in it; a database's own.
    pub clock: Arc<dyn Clock>,
}

/// Opens the store for a server, and logs which it is. A database that is not there yet is waited for.
///
/// # Errors
///
/// When it can't be opened, with the next step.
pub async fn open(settings: &StoreSettings) -> anyhow::Result<Opened> {
    match &settings.kind {
        StoreKind::Memory => {
            tracing::warn!("tasks are kept in memory and are gone when this process ends");
            Ok(Opened { store: Arc::new(MemoryStore::new()), clock: Arc::new(SystemClock::new()) })
        }
        StoreKind::Sqlite => {
            let opened = sqlite::open(settings).map_err(|error| not_opened(&settings.data, error))?;
            tracing::info!(file = %sqlite::file(&settings.data).display(), "tasks are kept in a SQLite file");
            Ok(opened)
        }
        StoreKind::Postgres(url) => postgres::patiently(url, &settings.postgres).await,
    }
}
