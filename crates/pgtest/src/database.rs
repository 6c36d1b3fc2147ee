use crate::error::Error;
use crate::home::random;
use crate::server::{Row, Server};

/// An empty database of one test, dropped with all connections to it when this value is.
#[derive(Debug)]
pub struct Database {
    server: Server,
    name: String,
    url: String,
}

impl Database {
    /// Makes one in the server that tests share ([`Server::shared`]).
    ///
    /// # Errors
    ///
    /// Those of [`Server::shared`] and [`Server::create_database`].
    pub fn fresh() -> Result<Self, Error> {
        Self::fresh_in(&Server::shared()?)
    }

    /// Makes one in `server`.
    ///
    /// # Errors
    ///
    /// Those of [`Server::create_database`].
    pub fn fresh_in(server: &Server) -> Result<Self, Error> {
        let name = format!("test_{:016x}", random());
        let url = server.create_database(&name)?;
        Ok(Self { server: server.clone(), name, url })
    }

    /// Where to find it: `postgres://USER@HOST:PORT/NAME`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server that it is in.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// As [`Server::execute`], in this database.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`]
    pub fn execute(&self, sql: &str) -> Result<(), Error> {
        self.server.execute(&self.name, sql)
    }

    /// As [`Server::query`], in this database.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`]
    pub fn query(&self, sql: &str) -> Result<Vec<Row>, Error> {
        self.server.query(&self.name, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // One that stays for lack of a server goes with its cluster.
        let _ = self.server.drop_database(&self.name);
    }
}
