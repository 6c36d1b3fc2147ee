//! Which interface of a card is called (A2A §8.3.2, CLI contract §13).

use longhaul_protocol::wire::{AgentCard, AgentInterface};

use crate::CardError;

use super::binding::Binding;
use super::endpoint::Endpoint;
use super::origin::{CardOrigin, Credentials, OriginPolicy, Permit, Reach, as_sentence};
use super::shown;
use super::version::ProtocolVersion;

/// The most interfaces of which an error tells why they can't be used.
const REASONS_MAX: usize = 16;

/// What the caller prefers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Preference {
    /// Bindings, the best first. The first that the card offers is taken; with none of them, or an empty list, the card's own
    /// order counts. Default: empty.
    pub bindings: Vec<Binding>,
    /// The versions that may be spoken, in any order. Versions before 1.0 are spoken only if they are in it, and even then only
    /// to an agent that has nothing later. Default: 1.0.
    pub versions: Vec<ProtocolVersion>,
}

impl Default for Preference {
    fn default() -> Self {
        Self { bindings: Vec::new(), versions: vec![ProtocolVersion::V1_0] }
    }
}

/// The interface that is called, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Chosen {
    /// The binding.
    pub binding: Binding,
    /// Its URL, absolute and with scheme `http` or `https`, also where gRPC's `host:port` was declared.
    pub url: String,
    /// The tenant exactly as declared, to be set in each request; empty if none is, and then to be left out.
    pub tenant: String,
    /// The version to say in each request: the highest that both speak.
    pub version: ProtocolVersion,
    /// Which of `supportedInterfaces` it is.
    pub index: usize,
    /// Which addresses its host may have.
    pub reach: Reach,
    /// Whether the caller's credentials go there.
    pub credentials: Credentials,
}

/// Chooses the interface to call.
///
/// Of those that this client can and may call, one with a version from 1.0 on comes before any older one. Among the rest the
/// first preferred binding decides, or else the binding of the first in the card's order; and of several with that binding the
/// highest version, then the card's order.
///
/// # Errors
///
/// [`CardError::NoInterface`] with a reason for each interface.
pub fn choose(
    card: &AgentCard,
    preference: &Preference,
    policy: &OriginPolicy,
    origin: &CardOrigin,
) -> Result<Chosen, CardError> {
    let mut usable = Vec::new();
    let mut refused = Vec::new();
    for (index, interface) in card.supported_interfaces.iter().enumerate() {
        match examine(index, interface, preference, policy, origin) {
            Ok(chosen) => usable.push(chosen),
            Err(problem) => refused.push(reason(index, interface, &problem)),
        }
    }
    best(usable, preference).ok_or_else(|| none(refused, card, preference))
}

fn best(mut usable: Vec<Chosen>, preference: &Preference) -> Option<Chosen> {
    let is_current = |chosen: &Chosen| chosen.version >= ProtocolVersion::V1_0;
    if usable.iter().any(is_current) {
        usable.retain(is_current);
    }
    let preferred = preference.bindings.iter().find(|binding| usable.iter().any(|chosen| chosen.binding == **binding));
    let binding = preferred.copied().or_else(|| usable.first().map(|chosen| chosen.binding))?;
    usable.retain(|chosen| chosen.binding == binding);
    let highest = usable.iter().map(|chosen| chosen.version).max()?;
    usable.into_iter().find(|chosen| chosen.version == highest)
}

/// An interface as it would be called, or why it can't be.
fn examine(
    index: usize,
    interface: &AgentInterface,
    preference: &Preference,
    policy: &OriginPolicy,
    origin: &CardOrigin,
) -> Result<Chosen, String> {
    let binding: Binding = interface
        .protocol_binding
        .parse()
        .map_err(|_| format!("this client does not speak the binding {}", shown(&interface.protocol_binding)))?;
    let version = version_for(&interface.protocol_version, &preference.versions)?;
    let endpoint = match binding {
        Binding::Grpc => Endpoint::grpc(&interface.url, origin),
        Binding::JsonRpc | Binding::HttpJson => Endpoint::http(&interface.url),
    };
    let endpoint = endpoint.map_err(|problem| format!("its URL {}", as_sentence(&problem)))?;
    if binding == Binding::HttpJson && endpoint.target.path_and_query().query().is_some() {
        return Err("its URL has a query, so no path can follow it".to_owned());
    }
    let Permit { reach, credentials } =
        policy.check(&endpoint.target, origin).map_err(|refused| refused.to_string())?;
    Ok(Chosen { binding, url: endpoint.url, tenant: interface.tenant.clone(), version, index, reach, credentials })
}

/// The highest version that may be spoken to an interface.
fn version_for(declared: &str, allowed: &[ProtocolVersion]) -> Result<ProtocolVersion, String> {
    let version = declared_version(declared).ok_or_else(|| format!("{} is no version", shown(declared)))?;
    let allowed = allowed.iter().copied().filter(|allowed| allowed.is_served_by(version)).max();
    match allowed.ok_or_else(|| format!("it speaks {version}, which is not allowed"))? {
        allowed if allowed.is_spoken() => Ok(allowed),
        allowed => Err(format!("this client does not speak {allowed}")),
    }
}

/// A version that is not given is 0.3 (A2A §3.6.2).
pub(super) fn declared_version(declared: &str) -> Option<ProtocolVersion> {
    if declared.is_empty() { Some(ProtocolVersion::V0_3) } else { declared.parse().ok() }
}

fn reason(index: usize, interface: &AgentInterface, problem: &str) -> String {
    let AgentInterface { url, protocol_binding, .. } = interface;
    format!("interface {} ({protocol} at {}): {problem}", index + 1, shown(url), protocol = shown(protocol_binding))
}

fn none(mut refused: Vec<String>, card: &AgentCard, preference: &Preference) -> CardError {
    let more = refused.len().saturating_sub(REASONS_MAX);
    refused.truncate(REASONS_MAX);
    if more > 0 {
        refused.push(format!("and {more} more"));
    }
    if refused.is_empty() {
        refused.push("the card names none".to_owned());
    }
    let (about_versions, allow) = about_versions(card, preference).unzip();
    refused.extend(about_versions);
    CardError::NoInterface { reasons: refused, allow: allow.flatten() }
}

/// Which versions the agent has where none of them is allowed, and what to do about it: never a silent downgrade.
fn about_versions(card: &AgentCard, preference: &Preference) -> Option<(String, Option<ProtocolVersion>)> {
    let declared = card.supported_interfaces.iter().filter_map(|one| declared_version(&one.protocol_version));
    let mut declared: Vec<_> = declared.collect();
    declared.sort_unstable();
    declared.dedup();
    declared.truncate(REASONS_MAX);
    let is_allowed = |version: &ProtocolVersion| preference.versions.iter().any(|one| one.is_served_by(*version));
    let highest = declared.last().copied()?;
    if declared.iter().any(is_allowed) {
        return None;
    }
    let list = |versions: &[ProtocolVersion]| versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let allowed = list(&preference.versions);
    let speaks = list(&declared);
    Some(match highest.is_spoken() {
        true => (format!("the agent speaks {speaks}, and {allowed} is allowed (hint: allow {highest})"), Some(highest)),
        false => (format!("the agent speaks {speaks}, and {allowed} is allowed"), None),
    })
}

#[cfg(test)]
mod tests;
