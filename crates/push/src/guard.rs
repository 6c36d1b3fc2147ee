//! Where a push may go: the URL as it is written, and each address that its host turns out to have.
//!
//! A URL comes from a caller, and the request to it leaves from inside the operator's network with the operator's addresses. So
//! [`Guard::check_url`] is asked when a config is made (it looks nothing up), and [`Guard::check_address`] at each attempt for each
//! address that the name has at that moment, before anything connects to it.

mod address;
mod allow;
mod error;
mod ports;
mod target;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use address::Kind;
pub use allow::{Allow, InvalidAllow};
pub use error::{AddressRefused, UrlRefused};
pub use target::{Host, Target, URL_BYTES_MAX};

/// What an operator permits beyond `https` to the open internet.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Hosts and networks that may be inside (`push.allow`). Default: none.
    pub allow: Vec<Allow>,
    /// Whether `http` is taken as well as `https` (`push.allow_http`). Default: no.
    pub allow_http: bool,
}

/// Says of a URL and of an address whether a push may go there.
#[derive(Clone, Debug)]
pub struct Guard {
    policy: Policy,
}

impl Guard {
    /// A guard with this policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy }
    }

    /// Reads a URL and checks what can be known without looking its name up: the scheme, that it names no user, the port, and
    /// the address where one is written, in whatever spelling.
    ///
    /// # Errors
    ///
    /// [`UrlRefused`] says what the URL must be instead. It is about the field [`UrlRefused::FIELD`].
    pub fn check_url(&self, url: &str) -> Result<Target, UrlRefused> {
        let target = Target::parse(url)?;
        if !target.is_tls() && !self.policy.allow_http {
            return Err(UrlRefused::Http);
        }
        let listed = self.allows_host(&target);
        if !ports::may_use(target.port(), listed) {
            return Err(UrlRefused::Port(target.port()));
        }
        match target.host() {
            Host::Address(address) => {
                self.check_address(*address, target.host_name()).map_err(UrlRefused::Address)?;
            }
            // These names mean loopback wherever they are asked for (RFC 6761), so there is no need to ask.
            Host::Name(name) if is_localhost(name) && !listed => self.check_localhost(name)?,
            Host::Name(_) => {}
        }
        Ok(target)
    }

    /// Checks one address that `host` has. The very address that was checked is the one to connect to.
    ///
    /// `host` is [`Target::host_name`]; an address of a host that is listed by its name may be inside. Addresses of metadata
    /// services are refused unless they are listed one by one: no name and no wider network lets them in.
    ///
    /// # Errors
    ///
    /// [`AddressRefused`] says which kind of address it is.
    pub fn check_address(&self, address: IpAddr, host: &str) -> Result<(), AddressRefused> {
        let address = address.to_canonical();
        let Some(kind) = address::refused_kind(address) else { return Ok(()) };
        let is_allowed = self.policy.allow.iter().any(|allow| match kind {
            Kind::Metadata => allow.is_exactly(address),
            _ => allow.holds_address(address) || allow.is_host(host),
        });
        if is_allowed { Ok(()) } else { Err(AddressRefused { address, kind, host: host.to_owned() }) }
    }

    fn allows_host(&self, target: &Target) -> bool {
        self.policy.allow.iter().any(|allow| match target.host() {
            Host::Name(name) => allow.is_host(name),
            Host::Address(address) => allow.holds_address(address.to_canonical()),
        })
    }

    /// Either family is enough: which of them the name has is seen at the attempt.
    fn check_localhost(&self, name: &str) -> Result<(), UrlRefused> {
        let v4 = self.check_address(Ipv4Addr::LOCALHOST.into(), name);
        let v6 = self.check_address(Ipv6Addr::LOCALHOST.into(), name);
        if v6.is_ok() { Ok(()) } else { v4.map_err(UrlRefused::Address) }
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests;
