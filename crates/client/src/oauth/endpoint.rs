//! Whether an endpoint that a card names may be used.

use std::net::Ipv4Addr;

use longhaul_push::guard::{Host, Target};

use super::error::OAuthError;
use crate::card::{CardOrigin, Interfaces, OriginPolicy, Reach, is_loopback};

/// A URL to which secrets may be sent, and the addresses that its host may have.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub url: String,
    pub reach: Reach,
}

impl Endpoint {
    /// Checks a URL that a card from `origin` names, or what the card points at: `https`, or this machine; and as far out as the
    /// card, unless the policy follows a card anywhere.
    pub fn check(
        what: &'static str,
        url: &str,
        origin: &CardOrigin,
        policy: &OriginPolicy,
    ) -> Result<Self, OAuthError> {
        let refused = |problem: String| OAuthError::Endpoint { what, url: shown(url), problem };
        let target = Target::parse(url).map_err(|problem| refused(problem.to_string()))?;
        let is_on_machine = is_loopback(&target);
        if !target.is_tls() && !is_on_machine {
            return Err(refused("it is without TLS".to_owned()));
        }
        let reach = match policy.interfaces {
            Interfaces::Any => Reach::ANYWHERE,
            Interfaces::SameOrigin | Interfaces::SameHost | Interfaces::Public => origin.reach(),
        };
        let address = match target.host() {
            Host::Address(address) => Some(*address),
            Host::Name(_) => is_on_machine.then_some(Ipv4Addr::LOCALHOST.into()),
        };
        if let Some(address) = address {
            reach.check_address(address).map_err(|problem| refused(problem.to_string()))?;
        }
        Ok(Self { url: without_fragment(url), reach })
    }
}

/// No request names a fragment, and parsers of requests want none.
pub(super) fn without_fragment(url: &str) -> String {
    url.split('#').next().unwrap_or_default().to_owned()
}

/// A URL as messages show it: without the query, which may hold a secret, and fit for a terminal.
fn shown(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    crate::transport::excerpt(plain.as_bytes())
}
