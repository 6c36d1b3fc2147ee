//! Where a card may lead its reader.

use std::net::IpAddr;

use longhaul_push::guard::{Guard, Host, Kind, Policy, Target, UrlRefused};
use thiserror::Error;

use crate::CardError;

use super::endpoint::{is_loopback, is_same_host};
use super::reference::without_user;

/// Which interface URLs a card may name, and where the caller's credentials go.
///
/// A card is written by whoever runs its host, and requests leave from inside the caller's network. The default follows a card
/// wherever an agent may rightly be, and nowhere else:
///
/// - The card's own host is called, at any port. An address may be as far inside as the card's own address was and no further:
///   a card from the internet leads to the internet only, one from a private network not to this machine, whatever its name
///   resolves to by then ([`Reach`]).
/// - Another host is called over TLS and at public addresses only.
/// - A card that came over TLS does not lead to an interface without it, but on this machine itself.
/// - Credentials go to the card's own host, and that is the one which the caller named: a redirect to another host does not
///   make that one their own. To others they go only if [`CredentialsTo::Interface`] says so: an interface there is called
///   without them.
/// - A card from a file, or made by the program, is the caller's own word: it may name anything.
/// - Nothing leads to an address at which clouds tell machines their secrets, under any policy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OriginPolicy {
    /// Which interface URLs a card may name.
    pub interfaces: Interfaces,
    /// To which of them credentials are sent.
    pub credentials: CredentialsTo,
}

/// Which interface URLs a card may name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Interfaces {
    /// Those of the card's own scheme, host and port.
    SameOrigin,
    /// Those on the card's own host, at any port.
    SameHost,
    /// The same, and on any other host those with TLS and public addresses.
    #[default]
    Public,
    /// Any: also without TLS, and inside, but for metadata services.
    Any,
}

/// To which interfaces credentials are sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CredentialsTo {
    /// Those on the card's own host, which the caller named.
    #[default]
    CardHost,
    /// Each interface that the policy permits: the card is trusted to name who may have them.
    Interface,
}

/// What a policy permits for one URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Permit {
    /// Which addresses its host may have.
    pub reach: Reach,
    /// Whether it gets credentials.
    pub credentials: Credentials,
}

/// Whether credentials go to an interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Credentials {
    /// They do.
    Sent,
    /// They don't, since the interface is not on the card's host, or that is not the one which the caller named.
    Withheld,
}

/// Which addresses a host may turn out to have. Asked with each address of a name before it is connected to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reach(Zone);

/// How far out an address is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Zone {
    Machine,
    Network,
    Internet,
}

/// An address to which a card may not lead.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("the address {address} is {kind}, where this card may not lead")]
pub struct AddressForbidden {
    /// The address.
    pub address: IpAddr,
    /// What kind of address it is.
    pub kind: Kind,
}

/// Why a card may not name a URL.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum OriginRefused {
    /// It is none.
    #[error("{}", as_sentence(.0))]
    Url(UrlRefused),
    /// It is not of the card's origin.
    #[error("it is not of the card's origin, as the policy asks")]
    OtherOrigin,
    /// It is not on the card's host.
    #[error("it is not on the card's host, as the policy asks")]
    OtherHost,
    /// It is on another host, without TLS.
    #[error("it is on another host than the card, and without TLS (hint: a policy can permit any interface)")]
    OtherHostWithoutTls,
    /// The card came over TLS, and it is without.
    #[error("it is without TLS, but the card came with it (hint: a policy can permit any interface)")]
    Downgrade,
    /// It is further inside than the card.
    #[error("{0} (hint: a policy can permit any interface)")]
    Address(AddressForbidden),
}

/// A URL's fault, without what only someone who makes push configs can do about it.
pub(super) fn as_sentence(refused: &UrlRefused) -> String {
    match refused {
        UrlRefused::Scheme | UrlRefused::Http => "must be an absolute http or https URL".to_owned(),
        UrlRefused::UserInfo => "must name no user or password".to_owned(),
        UrlRefused::Syntax => "must be an absolute URL".to_owned(),
        other @ (UrlRefused::TooLong
        | UrlRefused::Characters
        | UrlRefused::Host
        | UrlRefused::Port(_)
        | UrlRefused::Address(_)) => other.to_string(),
    }
}

impl Zone {
    /// `None` for an address to which nothing leads.
    pub(super) fn of(address: IpAddr) -> Option<Self> {
        match kind_of(address) {
            None => Some(Self::Internet),
            Some(Kind::Metadata) => None,
            // Where the spelling of an IPv4 address in IPv6 ends is not known here, so it counts as the innermost.
            Some(Kind::Loopback | Kind::Unspecified | Kind::Embedded) => Some(Self::Machine),
            Some(
                Kind::Private
                | Kind::CarrierNat
                | Kind::LinkLocal
                | Kind::Documentation
                | Kind::Multicast
                | Kind::Reserved,
            ) => Some(Self::Network),
        }
    }
}

/// What kind of inside address it is; `None` for a public one.
fn kind_of(address: IpAddr) -> Option<Kind> {
    Guard::new(Policy::default()).check_address(address, "").err().map(|refused| refused.kind)
}

impl Reach {
    /// All but metadata services: for a URL that the caller chose.
    pub const ANYWHERE: Self = Self(Zone::Machine);

    /// Public addresses only.
    pub const INTERNET: Self = Self(Zone::Internet);

    /// Checks one address of the host. The very address that was checked is the one to connect to.
    ///
    /// # Errors
    ///
    /// [`AddressForbidden`] if it is further inside than the card may lead, or a metadata service.
    pub fn check_address(self, address: IpAddr) -> Result<(), AddressForbidden> {
        let address = address.to_canonical();
        let is_within = Zone::of(address).is_some_and(|zone| zone >= self.0);
        match kind_of(address) {
            Some(kind) if !is_within => Err(AddressForbidden { address, kind }),
            Some(_) | None => Ok(()),
        }
    }
}

/// Where a card came from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CardOrigin(Option<Source>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Source {
    target: Target,
    address: Option<IpAddr>,
    /// What the caller named, where that redirected here.
    named: Option<Target>,
}

impl CardOrigin {
    /// From the caller: out of a file, or made by the program.
    #[must_use]
    pub fn caller() -> Self {
        Self(None)
    }

    /// From a URL: the one that answered, after redirects.
    ///
    /// # Errors
    ///
    /// [`CardError::Reference`] if it is no `http` or `https` URL.
    pub fn url(url: &str) -> Result<Self, CardError> {
        Ok(Self(Some(Source { target: target_of(url)?, address: None, named: None })))
    }

    /// The same, where the caller had named another URL, which redirected here.
    ///
    /// # Errors
    ///
    /// [`CardError::Reference`] if that is no `http` or `https` URL.
    pub fn redirected_from(mut self, named: &str) -> Result<Self, CardError> {
        if let Some(source) = &mut self.0 {
            source.named = Some(target_of(named)?);
        }
        Ok(self)
    }

    /// The same, with the address that answered. Without it, a host that is named counts as one on the internet.
    #[must_use]
    pub fn at(mut self, address: IpAddr) -> Self {
        if let Some(source) = &mut self.0 {
            source.address = Some(address);
        }
        self
    }

    /// Which addresses servers beside the agent may have that the card names: those as far out as its own, or farther.
    pub(crate) fn reach(&self) -> Reach {
        self.0.as_ref().map_or(Reach::ANYWHERE, |source| Reach(source.zone()))
    }

    pub(super) fn target(&self) -> Option<&Target> {
        self.0.as_ref().map(|source| &source.target)
    }
}

fn target_of(url: &str) -> Result<Target, CardError> {
    Target::parse(url)
        .map_err(|refused| CardError::Reference { reference: without_user(url), problem: as_sentence(&refused) })
}

impl Source {
    /// How far out the card's host is.
    fn zone(&self) -> Zone {
        if is_loopback(&self.target) {
            return Zone::Machine;
        }
        let address = match self.target.host() {
            Host::Address(address) => Some(*address),
            Host::Name(_) => self.address,
        };
        address.and_then(Zone::of).unwrap_or(Zone::Internet)
    }
}

impl OriginPolicy {
    /// Follows a card anywhere, and trusts it with the credentials.
    pub const ANY: Self = Self { interfaces: Interfaces::Any, credentials: CredentialsTo::Interface };

    /// Says whether a card from `origin` may name `url`, without looking its host up.
    ///
    /// # Errors
    ///
    /// [`OriginRefused`] says why it may not.
    pub fn check_url(&self, url: &str, origin: &CardOrigin) -> Result<Permit, OriginRefused> {
        let target = Target::parse(url).map_err(OriginRefused::Url)?;
        self.check(&target, origin)
    }

    pub(super) fn check(&self, target: &Target, origin: &CardOrigin) -> Result<Permit, OriginRefused> {
        let permit = match &origin.0 {
            None => Permit { reach: Reach::ANYWHERE, credentials: Credentials::Sent },
            Some(source) => self.check_source(target, source)?,
        };
        if let Host::Address(address) = target.host() {
            permit.reach.check_address(*address).map_err(OriginRefused::Address)?;
        } else if is_loopback(target) {
            permit.reach.check_address(std::net::Ipv4Addr::LOCALHOST.into()).map_err(OriginRefused::Address)?;
        }
        Ok(permit)
    }

    fn check_source(&self, target: &Target, source: &Source) -> Result<Permit, OriginRefused> {
        let card = &source.target;
        let is_on_card_host = is_same_host(card, target);
        let is_same_origin = is_on_card_host && card.port() == target.port() && card.is_tls() == target.is_tls();
        let reach = match self.interfaces {
            Interfaces::SameOrigin if !is_same_origin => return Err(OriginRefused::OtherOrigin),
            Interfaces::SameHost if !is_on_card_host => return Err(OriginRefused::OtherHost),
            Interfaces::Public if !is_on_card_host && !target.is_tls() => {
                return Err(OriginRefused::OtherHostWithoutTls);
            }
            Interfaces::SameOrigin | Interfaces::SameHost | Interfaces::Public => {
                let is_on_machine = is_loopback(target) && source.zone() == Zone::Machine;
                if card.is_tls() && !target.is_tls() && !is_on_machine {
                    return Err(OriginRefused::Downgrade);
                }
                if is_on_card_host { Reach(source.zone()) } else { Reach::INTERNET }
            }
            Interfaces::Any => Reach::ANYWHERE,
        };
        let is_named = source.named.as_ref().is_none_or(|named| is_same_host(named, card));
        let credentials = match self.credentials {
            CredentialsTo::CardHost if !is_on_card_host || !is_named => Credentials::Withheld,
            CredentialsTo::CardHost | CredentialsTo::Interface => Credentials::Sent,
        };
        Ok(Permit { reach, credentials })
    }
}

#[cfg(test)]
mod tests;
