//! Where requests go: one server, or any of several that share a database.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// The addresses of instances that are all the same to their callers.
#[derive(Clone, Debug)]
pub struct Instances {
    addrs: Arc<[SocketAddr]>,
    seed: u64,
    clients: Arc<AtomicU64>,
}

impl Instances {
    /// Instances of which each request goes to one, drawn from `seed`.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn new(addrs: impl IntoIterator<Item = SocketAddr>, seed: u64) -> Self {
        let addrs: Arc<[SocketAddr]> = addrs.into_iter().collect();
        assert!(!addrs.is_empty(), "there is an instance");
        Self { addrs, seed, clients: Arc::default() }
    }

    /// The addresses.
    #[must_use]
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// The lots of one more client.
    pub(crate) fn dice(&self) -> StdRng {
        let number = self.clients.fetch_add(1, Ordering::Relaxed);
        StdRng::seed_from_u64(self.seed.wrapping_add(number))
    }
}

impl From<SocketAddr> for Instances {
    fn from(addr: SocketAddr) -> Self {
        Self::new([addr], 0)
    }
}

impl From<&Instances> for Instances {
    fn from(instances: &Instances) -> Self {
        instances.clone()
    }
}

/// Where the choices of a run come from: `LONGHAUL_SEED`, or drawn; printed either way.
///
/// # Panics
///
/// When the variable is no number.
#[must_use]
pub fn seed() -> u64 {
    let seed = setting("LONGHAUL_SEED").unwrap_or_else(rand::random);
    println!("LONGHAUL_SEED={seed}");
    seed
}

/// The number in a variable, if it is set.
///
/// # Panics
///
/// When it is no number.
#[must_use]
pub fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let value = text.parse().ok();
    Some(value.unwrap_or_else(|| panic!("{name}={text} is no number")))
}
