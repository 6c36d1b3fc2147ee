use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the store in a database works.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct PostgresConfig {
    /// Where the database is: `postgres://user:password@host:port/database?sslmode=…`, with several hosts for a database that
    /// fails over. What it leaves out comes from PostgreSQL's own defaults. How the connection is secured is said as for libpq, by
    /// `sslmode` (`prefer` by default), `sslrootcert` (a file, or `system`; where `verify-ca` and `verify-full` find none, the
    /// system's authorities count), and `sslcert` with `sslkey`. Names count only as subject alternative names.
    pub url: String,
    /// The schema in the database that holds the tables; made when absent. Default: `longhaul`.
    pub schema: String,
    /// How many connections write, at least 1 and at most 16. Default: 2.
    pub writers: usize,
    /// How many connections read at the most, at least 1 and at most 256. Default: 8.
    pub readers: usize,
    /// How long the database may take to be reached. Default: 5 s.
    pub connect_timeout: Duration,
    /// How long the database may take for one step; what takes longer is given up. Default: 15 s.
    pub statement_timeout: Duration,
    /// Whether instances ring each other by LISTEN and NOTIFY. Without it each looks once a second. Default: true.
    pub notify: bool,
    /// Whether the schema is made and brought up to date when the store is opened. Default: true.
    pub migrate: bool,
    /// Whose clock decides whether a lease is alive. Default: the database's.
    pub lease_clock: LeaseClock,
}

impl PostgresConfig {
    /// The most connections that may write.
    pub const WRITERS_MAX: usize = 16;
    /// The most connections that may read.
    pub const READERS_MAX: usize = 256;
}

impl Default for PostgresConfig {
    fn default() -> Self {
        Self {
            url: "postgres://localhost/longhaul".to_owned(),
            schema: "longhaul".to_owned(),
            writers: 2,
            readers: 8,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
            notify: true,
            migrate: true,
            lease_clock: LeaseClock::Database,
        }
    }
}

/// Whose clock decides whether a lease is alive.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseClock {
    /// The database's, read in the step that decides: instances whose clocks differ agree.
    #[default]
    Database,
    /// The caller's, as its commits and renewals say: for tests that make up the time.
    Caller,
}
