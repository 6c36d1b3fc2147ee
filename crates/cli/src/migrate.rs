//! `longhaul migrate`: makes the tables of a database, or brings them up to date.

use anyhow::Context as _;
use longhaul_store_postgres::SchemaState;

use crate::failure::Attempt;
use crate::settings::{StoreKind, StoreSettings};
use crate::store;

/// What it came to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Migrated {
    /// The tables of a database were looked at, and changed where they had to be.
    Database {
        /// Where they are.
        place: String,
        /// The version before and now.
        versions: SchemaState,
    },
    /// There is nothing that this command has to do.
    ByItself(&'static str),
}

/// Makes the tables or brings them up to date, where a server does not do that in any case.
///
/// # Errors
///
/// When it was not done, with the next step.
pub fn run(settings: &StoreSettings) -> anyhow::Result<Migrated> {
    let url = match &settings.kind {
        StoreKind::Sqlite => {
            return Ok(Migrated::ByItself("a SQLite file is brought up to date by the server that opens it"));
        }
        StoreKind::Memory => return Ok(Migrated::ByItself("a store in memory has no tables")),
        StoreKind::Postgres(url) => url,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(Attempt::new("cannot start the runtime"))?;
    let versions = runtime.block_on(store::migrate(url, &settings.postgres))?;
    Ok(Migrated::Database { place: format!("{}, schema {}", url.place(), settings.postgres.schema), versions })
}

impl Migrated {
    /// For people, on stdout.
    pub fn text(&self) -> String {
        match self {
            Self::Database { place, versions: SchemaState { from: 0, to } } => {
                format!("{place}: the tables were made, schema version {to}\n")
            }
            Self::Database { place, versions: SchemaState { from, to } } if from == to => {
                format!("{place}: nothing to do, schema version {to}\n")
            }
            Self::Database { place, versions: SchemaState { from, to } } => {
                format!("{place}: brought from schema version {from} to {to}\n")
            }
            Self::ByItself(why) => format!("nothing to do: {why}\n"),
        }
    }

    /// For programs, on stdout: the versions, or `null` where there are none.
    pub fn json(&self) -> String {
        let json = match self {
            Self::Database { versions: SchemaState { from, to }, .. } => serde_json::json!({ "from": from, "to": to }),
            Self::ByItself(_) => serde_json::Value::Null,
        };
        format!("{json}\n")
    }
}
