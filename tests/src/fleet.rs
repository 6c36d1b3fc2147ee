//! Several servers on one PostgreSQL database, none of them special.

use std::ops::{Index, IndexMut};

use longhaul_pgtest::Database;

use crate::{Instances, Launch, Server, Store, seed};

/// How many instances there are.
pub const INSTANCES: usize = 3;

/// Server processes that share a database, each with a folder and a port of its own.
#[derive(Debug)]
pub struct Fleet {
    servers: Vec<Server>,
    seed: u64,
    // Dropped after the servers that use it.
    database: Option<Database>,
}

impl Fleet {
    /// Starts three instances at once, as this says, on an empty database.
    pub async fn start(launch: Launch) -> Self {
        let database = Database::fresh().expect("PostgreSQL makes a database");
        let urls = vec![database.url().to_owned(); INSTANCES];
        let mut fleet = Self::on(urls, launch).await;
        fleet.database = Some(database);
        fleet
    }

    /// Starts an instance for each of these addresses, which may be several ways to one database.
    pub async fn on(urls: impl IntoIterator<Item = String>, launch: Launch) -> Self {
        let launches = urls.into_iter().map(|url| Launch { store: Store::Postgres(url), ..launch.clone() });
        Self { servers: Server::launch_all(launches).await, seed: seed(), database: None }
    }

    /// Where requests may go: to any of them.
    #[must_use]
    pub fn instances(&self) -> Instances {
        Instances::new(self.servers.iter().map(Server::addr), self.seed)
    }

    /// The servers.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The database, if it is of this fleet alone.
    ///
    /// # Panics
    ///
    /// When the fleet was started with [`Fleet::on`].
    #[must_use]
    pub fn database(&self) -> &Database {
        self.database.as_ref().expect("the database is this fleet's")
    }
}

impl Index<usize> for Fleet {
    type Output = Server;

    fn index(&self, number: usize) -> &Server {
        &self.servers[number]
    }
}

impl IndexMut<usize> for Fleet {
    fn index_mut(&mut self, number: usize) -> &mut Server {
        &mut self.servers[number]
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- LONGHAUL_SEED={} repeats which instance was asked for what", self.seed);
        }
    }
}
