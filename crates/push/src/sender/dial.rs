use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::Timestamp;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::SenderConfig;
use super::answer::{Failure, explain};
use super::link::{Link, Stream};
use super::resolve::Resolver;
use super::tls::{TlsSetupError, client_config};
use crate::guard::{Guard, Host, Target};

/// How many addresses of a name are tried in one attempt.
const ADDRESSES_MAX: usize = 6;

/// Makes connections, to addresses that the guard has passed.
pub(super) struct Dialer {
    guard: Guard,
    resolver: Arc<dyn Resolver>,
    tls: TlsConnector,
    roots: usize,
    connect_timeout: Duration,
    head_bytes_max: usize,
}

impl Dialer {
    pub(super) fn new(config: &SenderConfig, guard: Guard, resolver: Arc<dyn Resolver>) -> Result<Self, TlsSetupError> {
        let (tls, roots) = client_config(config.extra_roots.as_deref())?;
        Ok(Self {
            guard,
            resolver,
            tls: TlsConnector::from(tls),
            roots,
            connect_timeout: config.connect_timeout,
            head_bytes_max: config.head_bytes_max,
        })
    }

    pub(super) fn guard(&self) -> &Guard {
        &self.guard
    }

    pub(super) fn roots(&self) -> usize {
        self.roots
    }

    /// Connects to one of the host's addresses, in turn; an address has its share of the time that is left.
    pub(super) async fn dial(&self, target: &Target, now: Timestamp, deadline: Instant) -> Result<Link, Failure> {
        let addresses = self.addresses(target).await?;
        let mut last = Failure::NoAddress;
        for (tried, address) in addresses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let others = u32::try_from(addresses.len() - tried).unwrap_or(1);
            // The last one may have all that is left.
            let share = if others == 1 { left } else { (left / others).min(self.connect_timeout) };
            match timeout(share, self.connect(target, SocketAddr::new(*address, target.port()))).await {
                Ok(Ok(stream)) => return Link::new(stream, self.head_bytes_max, now).await,
                Ok(Err(failure)) => last = failure,
                Err(_) => last = Failure::Timeout,
            }
        }
        Err(last)
    }

    /// The addresses that a connection may be made to. A name may have some that are refused; those are left out.
    async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, Failure> {
        let found = match target.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.resolver.resolve(name).await.map_err(|error| Failure::Resolve(explain(&error)))?,
        };
        let mut passed = Vec::new();
        let mut refused = None;
        for address in found.into_iter().map(|address| address.to_canonical()) {
            match self.guard.check_address(address, target.host_name()) {
                Ok(()) if passed.contains(&address) => {}
                Ok(()) => passed.push(address),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(refused) if passed.is_empty() => Err(Failure::Address(refused)),
            _ => Ok(in_turns(passed)),
        }
    }

    async fn connect(&self, target: &Target, address: SocketAddr) -> Result<Stream, Failure> {
        let failed = |error: std::io::Error| Failure::Connect(explain(&error));
        let stream = TcpStream::connect(address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        if !target.is_tls() {
            return Ok(Box::new(stream));
        }
        let name = match target.host() {
            Host::Name(_) => {
                ServerName::try_from(target.host_name().to_owned()).map_err(|error| Failure::Tls(explain(&error)))?
            }
            Host::Address(address) => ServerName::from(*address),
        };
        match self.tls.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(Failure::Tls(explain(&error))),
        }
    }
}

/// Families alternate, beginning with the best address, so that one family that leads nowhere does not use up the time.
fn in_turns(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let first_is_v4 = addresses.first().is_some_and(IpAddr::is_ipv4);
    let (mut now, mut then): (VecDeque<_>, VecDeque<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == first_is_v4);
    let mut turns = Vec::new();
    while turns.len() < ADDRESSES_MAX {
        let Some(address) = now.pop_front().or_else(|| then.pop_front()) else { break };
        turns.push(address);
        if !then.is_empty() {
            std::mem::swap(&mut now, &mut then);
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_there_are_only_so_many() {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert_eq!(
            in_turns(addresses(&["2600::1", "2600::2", "2600::3", "8.8.8.8"])),
            addresses(&["2600::1", "8.8.8.8", "2600::2", "2600::3"])
        );
        let many: Vec<_> = (0..20_u8).map(|last| IpAddr::from([8, 8, 8, last])).collect();
        assert_eq!(in_turns(many.clone()), many[..ADDRESSES_MAX]);
        assert_eq!(in_turns(Vec::new()), Vec::<IpAddr>::new());
    }
}
