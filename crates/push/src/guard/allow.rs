use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// One entry of `push.allow`: a host by its name, or a network.
///
/// Read from `hooks.internal` (that name exactly, in any case, with or without a dot at its end), `10.1.2.3`, `127.0.0.0/8` or
/// `fd00::/8`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Allow(Entry);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Entry {
    Host(String),
    Network(Network),
}

/// Why a text is no [`Allow`].
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum InvalidAllow {
    /// Neither a name nor an address.
    #[error("{0:?} is no host name, address or network (hint: write hooks.internal, 10.1.2.3 or 10.0.0.0/8)")]
    Form(String),
    /// The prefix is no number, or longer than the address.
    #[error("{0:?} has no valid prefix length (hint: 0 to 32 for IPv4, 0 to 128 for IPv6)")]
    Prefix(String),
    /// An address inside of a network instead of the network.
    #[error("{given:?} is an address in a network (hint: write {network})")]
    HostBits {
        /// What was read.
        given: String,
        /// What was probably meant.
        network: String,
    },
}

impl Allow {
    pub(super) fn is_host(&self, host: &str) -> bool {
        match &self.0 {
            Entry::Host(name) => name.eq_ignore_ascii_case(host.strip_suffix('.').unwrap_or(host)),
            Entry::Network(_) => false,
        }
    }

    pub(super) fn holds_address(&self, address: IpAddr) -> bool {
        match &self.0 {
            Entry::Host(_) => false,
            Entry::Network(network) => network.holds(address),
        }
    }

    pub(super) fn is_exactly(&self, address: IpAddr) -> bool {
        match &self.0 {
            Entry::Host(_) => false,
            Entry::Network(network) => network.is_single() && network.holds(address),
        }
    }
}

impl FromStr for Allow {
    type Err = InvalidAllow;

    fn from_str(text: &str) -> Result<Self, InvalidAllow> {
        let text = text.trim();
        if let Some((address, prefix)) = text.split_once('/') {
            return network(text, address, prefix).map(|network| Self(Entry::Network(network)));
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self(Entry::Network(Network::single(address))));
        }
        // Names as URLs have them, so that both are compared in one form. An address in a strange spelling is no name.
        match url::Host::parse(text) {
            Ok(url::Host::Domain(name)) if !text.contains(':') && !name.contains('*') => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                if name.is_empty() { Err(InvalidAllow::Form(text.to_owned())) } else { Ok(Self(Entry::Host(name))) }
            }
            _ => Err(InvalidAllow::Form(text.to_owned())),
        }
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Entry::Host(name) => formatter.write_str(name),
            Entry::Network(network) => network.fmt(formatter),
        }
    }
}

fn network(text: &str, address: &str, prefix: &str) -> Result<Network, InvalidAllow> {
    let address: IpAddr = address.parse().map_err(|_| InvalidAllow::Form(text.to_owned()))?;
    let bad_prefix = || InvalidAllow::Prefix(text.to_owned());
    let prefix: u8 = prefix.parse().map_err(|_| bad_prefix())?;
    let network = match address {
        IpAddr::V4(v4) if prefix <= 32 => Network::v4(v4, prefix),
        IpAddr::V6(v6) if prefix <= 128 => match v6.to_ipv4_mapped() {
            // Addresses are compared after they were made IPv4, so a network of mapped ones must be, too.
            Some(v4) if prefix >= 96 => Network::v4(v4, prefix - 96),
            _ => Network::v6(v6, prefix),
        },
        _ => return Err(bad_prefix()),
    };
    let masked = network.masked();
    if masked == network {
        Ok(network)
    } else {
        Err(InvalidAllow::HostBits { given: text.to_owned(), network: masked.to_string() })
    }
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Network {
    address: IpAddr,
    /// 0 to 32, or to 128 for IPv6.
    prefix: u8,
}

impl Network {
    pub(super) const fn v4(address: Ipv4Addr, prefix: u8) -> Self {
        Self { address: IpAddr::V4(address), prefix }
    }

    pub(super) const fn v6(address: Ipv6Addr, prefix: u8) -> Self {
        Self { address: IpAddr::V6(address), prefix }
    }

    fn single(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
    }

    fn is_single(self) -> bool {
        self.prefix == if self.address.is_ipv4() { 32 } else { 128 }
    }

    pub(super) fn holds(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.prefix) == masked(self.address, self.prefix)
    }

    fn masked(self) -> Self {
        Self { address: masked(self.address, self.prefix), prefix: self.prefix }
    }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    // A shift by all the bits there are is refused, and means that no bit is compared.
    match address {
        IpAddr::V4(address) => {
            let mask = 32_u32.checked_sub(prefix.into()).and_then(|rest| u32::MAX.checked_shl(rest)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = 128_u32.checked_sub(prefix.into()).and_then(|rest| u128::MAX.checked_shl(rest)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}
