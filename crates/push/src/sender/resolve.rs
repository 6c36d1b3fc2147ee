use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// How many names are looked up at once: each takes a thread until the system answers, which is long after we gave up.
const LOOKUPS_MAX: usize = 128;

/// Where the addresses of names come from.
#[async_trait]
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses of `host`, best first.
    ///
    /// # Errors
    ///
    /// When they can't be found out.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the wait.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks the system, which knows DNS and the machine's own names.
#[derive(Debug)]
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl SystemResolver {
    /// A resolver of at most 128 names at once.
    #[must_use]
    pub fn new() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let host = host.to_owned();
        let lookup = tokio::task::spawn_blocking(move || {
            let found = (host.as_str(), 0).to_socket_addrs().map(|found| found.map(|found| found.ip()).collect());
            drop(permit);
            found
        });
        lookup.await.map_err(io::Error::other)?
    }
}
