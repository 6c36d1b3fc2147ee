use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::options::Options;
use crate::statement;

/// One row of an answer: each column as text, `None` for null.
pub type Row = Vec<Option<String>>;

/// Where a PostgreSQL server is, and as whom to come: enough to connect to it, not to stop it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Server {
    /// `postgres://USER@HOST:PORT`
    address: String,
}

/// The cluster of this process for tests that share one. Statics are not dropped: the watchdog ends it with us.
static SHARED: Mutex<Option<Cluster>> = Mutex::new(None);

impl Server {
    /// Names a server that all tests of a run share, as `postgres://USER@HOST:PORT`. `./test` sets it.
    pub const VARIABLE: &str = "LONGHAUL_TEST_POSTGRES";

    pub(crate) fn local(port: u16) -> Self {
        Self { address: format!("postgres://postgres@127.0.0.1:{port}") }
    }

    /// The server that tests share: the one that [`VARIABLE`](Self::VARIABLE) names, else a cluster that the first call
    /// starts and that ends with this process. Where each test is a process (cargo nextest) it would be one for each:
    /// `cargo run -p longhaul-pgtest -- cargo nextest run ...` gives them one for all.
    ///
    /// # Errors
    ///
    /// [`Error::Address`], or those of [`Cluster::start`]; the next call tries again.
    pub fn shared() -> Result<Self, Error> {
        if let Ok(value) = std::env::var(Self::VARIABLE) {
            return value.parse();
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = match shared.take() {
            Some(cluster) => cluster,
            None => Cluster::start(Options::default())?,
        };
        Ok(shared.insert(cluster).server().clone())
    }

    /// The server's address without a database, as [`VARIABLE`](Self::VARIABLE) takes it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where to find `database`, which may or may not exist.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("{}/{database}", self.address)
    }

    /// Makes an empty database and returns its URL. Its name should be letters, digits and `_`.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`], also when there is one of that name.
    pub fn create_database(&self, name: &str) -> Result<String, Error> {
        // The server's other way, by its log of writes, costs the same on a disk and a third more in memory.
        let name_quoted = quoted(name);
        self.execute("postgres", &format!("CREATE DATABASE {name_quoted} TEMPLATE template0 STRATEGY file_copy"))?;
        Ok(self.url(name))
    }

    /// Drops a database with all connections to it, if there is one of that name.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`]
    pub fn drop_database(&self, name: &str) -> Result<(), Error> {
        self.execute("postgres", &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(name)))
    }

    /// Runs SQL on a connection of its own, at most for a minute. Several statements are one transaction.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`]
    pub fn execute(&self, database: &str, sql: &str) -> Result<(), Error> {
        self.query(database, sql).map(drop)
    }

    /// As [`execute`](Self::execute), and returns the rows.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`]
    pub fn query(&self, database: &str, sql: &str) -> Result<Vec<Row>, Error> {
        statement::run(&self.url(database), sql)
    }
}

impl FromStr for Server {
    type Err = Error;

    /// Reads `postgres://USER@HOST:PORT`.
    fn from_str(value: &str) -> Result<Self, Error> {
        let address = value.strip_suffix('/').unwrap_or(value);
        let place = address.strip_prefix("postgres://").or_else(|| address.strip_prefix("postgresql://"));
        match place {
            Some(place) if !place.is_empty() && !place.contains(['/', '?']) => Ok(Self { address: address.to_owned() }),
            _ => Err(Error::Address { address: value.to_owned() }),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_from_outside_names_a_server_and_no_database() {
        let url = |value: &str| value.parse().ok().map(|server: Server| server.url("d"));
        assert_eq!(url("postgres://u:p@h:1").as_deref(), Some("postgres://u:p@h:1/d"));
        assert_eq!(url("postgresql://u@h/").as_deref(), Some("postgresql://u@h/d"));
        for wrong in ["", "postgres://", "postgres://u@h/d", "postgres://u@h?x=y", "mysql://u@h"] {
            assert_eq!(url(wrong), None, "{wrong}");
        }
    }
}
