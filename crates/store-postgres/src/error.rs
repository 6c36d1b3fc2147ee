use thiserror::Error;

/// Why a store could not be opened. What is in the database is as it was.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The address of the database is not one.
    #[error("the database's address cannot be read")]
    Url {
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The certificates by which the database is to be known can't be used.
    #[error("the connection to the database cannot be secured")]
    Tls {
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database can't be reached: it may be later.
    #[error("the database {place} cannot be reached")]
    Unreachable {
        /// Where it is said to be, without secrets.
        place: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server is there and does not let this role into this database.
    #[error("the server of the database {place} refuses the connection")]
    Refused {
        /// Where it is said to be, without secrets.
        place: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server is older than what this release needs.
    #[error("the database's server has version {found}, at least {needed} is needed")]
    ServerTooOld {
        /// Its version.
        found: String,
        /// The oldest that will do.
        needed: u32,
    },
    /// The database does not keep its text as UTF-8.
    #[error("the database keeps its text as {found}, and UTF8 is needed")]
    Encoding {
        /// What it keeps it as.
        found: String,
    },
    /// The database takes no writes: a standby, or one that was set so.
    #[error("the database takes no writes: it is a standby or set to read only")]
    ReadOnly,
    /// The schema was made by something else.
    #[error("schema {schema} of the database holds tables that are not Longhaul's")]
    NotOurs {
        /// The schema.
        schema: String,
    },
    /// The tables were brought to a form that this release can't work on.
    #[error(
        "the database has schema version {found}, which needs a release that knows version {readable_by}; this one knows {known}"
    )]
    Newer {
        /// The version of the tables.
        found: i64,
        /// The oldest version that a release must know to work on them.
        readable_by: i64,
        /// The newest version that this release knows.
        known: i64,
    },
    /// The tables have yet to be made, or brought up to date.
    #[error("the database has schema version {found}, and this release needs {needed}")]
    Older {
        /// The version of the tables; 0 when there are none.
        found: i64,
        /// The version that this release needs.
        needed: i64,
    },
    /// The payloads in the database have a form that this release cannot read.
    #[error("the database holds payloads of format {found}, and this release knows format {known}")]
    PayloadFormat {
        /// The format in the database.
        found: i64,
        /// The format of this release.
        known: i64,
    },
    /// The database refused.
    #[error("cannot {action}")]
    Database {
        /// What was attempted.
        action: &'static str,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
