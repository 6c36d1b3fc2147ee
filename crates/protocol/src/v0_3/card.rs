//! Agent cards of v0.3, as cards of v1.0 and back.
//!
//! What one of them can't say is lost on the way:
//!
//! - Of v0.3: `capabilities.stateTransitionHistory`, and all flows of an OAuth 2.0 scheme but the first.
//! - Of v1.0: interfaces of other versions, `tenant`, the device code flow, `pkceRequired`.
//!
//! Signatures are carried over as they are. They are over the text of the card that they came with, never over its translation.

mod document;
mod security;

use crate::json::{JsonError, JsonObject, from_json};
use crate::wire;

use document::{Capabilities, Card, Interface, Skill};
use security::{requirement_of, requirement_to, scheme_of, scheme_to};

/// The version that a card of v0.3 speaks when it names none (§5.5 of v0.3).
pub const VERSION: &str = "0.3";

/// The transport at `url` when the card names none (§5.5 of v0.3).
const TRANSPORT_DEFAULT: &str = "JSONRPC";

/// Reads a card of v0.3, or of a draft before it, as one of v1.0.
///
/// The interface at `url` comes first, with the card's own `protocolVersion`; the additional ones follow with its major and
/// minor. As everywhere in [`wire`], nothing is required.
///
/// # Errors
///
/// [`JsonError`] says what is wrong, and where in the card of v0.3.
pub fn card_from_json(json: &[u8]) -> Result<wire::AgentCard, JsonError> {
    from_json::<Card>(json).map(to_v1_0)
}

/// The members by which v0.3 says what a card of v1.0 says. `None` if none of its interfaces speaks v0.3.
#[must_use]
pub fn card_to_v0_3(card: &wire::AgentCard) -> Option<JsonObject> {
    let card = of_v1_0(card)?;
    match serde_json::to_value(&card) {
        Ok(serde_json::Value::Object(members)) => Some(members),
        // The writer makes an object, and all its keys are strings.
        Ok(_) | Err(_) => None,
    }
}

/// Whether a version is v0.3 or an older one; a version that is not given is (§3.6.2).
fn is_older(version: &str) -> bool {
    version.is_empty() || version == "0" || version.starts_with("0.")
}

/// The major and the minor of a version: all that is compared (§3.6).
fn without_patch(version: &str) -> &str {
    version.match_indices('.').nth(1).and_then(|(end, _)| version.get(..end)).unwrap_or(version)
}

fn or_default<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}

fn to_v1_0(card: Card) -> wire::AgentCard {
    let supported_interfaces = interfaces_to_v1_0(&card);
    wire::AgentCard {
        name: card.name,
        description: card.description,
        supported_interfaces,
        provider: card.provider,
        version: card.version,
        documentation_url: card.documentation_url,
        capabilities: capabilities_to_v1_0(card.capabilities, card.supports_authenticated_extended_card),
        security_schemes: card.security_schemes.into_iter().map(|(name, scheme)| (name, scheme_to(scheme))).collect(),
        security_requirements: card.security.into_iter().map(requirement_to).collect(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: card.skills.into_iter().map(skill_to_v1_0).collect(),
        signatures: card.signatures,
        icon_url: card.icon_url,
    }
}

fn interfaces_to_v1_0(card: &Card) -> Vec<wire::AgentInterface> {
    let version = or_default(&card.protocol_version, VERSION);
    let interface = |url: &str, transport: &str, version: &str| wire::AgentInterface {
        url: url.to_owned(),
        protocol_binding: transport.to_owned(),
        tenant: String::new(),
        protocol_version: version.to_owned(),
    };
    let mut interfaces = Vec::new();
    if !card.url.is_empty() {
        interfaces.push(interface(&card.url, or_default(&card.preferred_transport, TRANSPORT_DEFAULT), version));
    }
    let more = card.additional_interfaces.iter();
    interfaces.extend(more.map(|other| interface(&other.url, &other.transport, without_patch(version))));
    interfaces
}

/// The flag of the extended card stands beside the capabilities in v0.3, so either of the two makes them present.
fn capabilities_to_v1_0(
    capabilities: Option<Capabilities>,
    extended_agent_card: Option<bool>,
) -> Option<wire::AgentCapabilities> {
    if capabilities.is_none() && extended_agent_card.is_none() {
        return None;
    }
    let capabilities = capabilities.unwrap_or_default();
    Some(wire::AgentCapabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extensions: capabilities.extensions,
        extended_agent_card,
    })
}

fn skill_to_v1_0(skill: Skill) -> wire::AgentSkill {
    wire::AgentSkill {
        id: skill.id,
        name: skill.name,
        description: skill.description,
        tags: skill.tags,
        examples: skill.examples,
        input_modes: skill.input_modes,
        output_modes: skill.output_modes,
        security_requirements: skill.security.into_iter().map(requirement_to).collect(),
    }
}

fn of_v1_0(card: &wire::AgentCard) -> Option<Card> {
    let mut interfaces = card.supported_interfaces.iter().filter(|interface| is_older(&interface.protocol_version));
    let first = interfaces.next()?;
    let schemes = card.security_schemes.iter();
    Some(Card {
        protocol_version: or_default(&first.protocol_version, VERSION).to_owned(),
        name: card.name.clone(),
        description: card.description.clone(),
        url: first.url.clone(),
        preferred_transport: first.protocol_binding.clone(),
        additional_interfaces: interfaces.map(interface_of_v1_0).collect(),
        icon_url: card.icon_url.clone(),
        provider: card.provider.clone(),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone(),
        // Required by v0.3, so there even when the card has none.
        capabilities: Some(card.capabilities.as_ref().map(capabilities_of_v1_0).unwrap_or_default()),
        security_schemes: schemes.filter_map(|(name, scheme)| Some((name.clone(), scheme_of(scheme)?))).collect(),
        security: card.security_requirements.iter().map(requirement_of).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(skill_of_v1_0).collect(),
        supports_authenticated_extended_card: card.capabilities.as_ref().and_then(|all| all.extended_agent_card),
        signatures: card.signatures.clone(),
    })
}

fn interface_of_v1_0(interface: &wire::AgentInterface) -> Interface {
    Interface { url: interface.url.clone(), transport: interface.protocol_binding.clone() }
}

fn capabilities_of_v1_0(capabilities: &wire::AgentCapabilities) -> Capabilities {
    Capabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extensions: capabilities.extensions.clone(),
    }
}

fn skill_of_v1_0(skill: &wire::AgentSkill) -> Skill {
    Skill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        security: skill.security_requirements.iter().map(requirement_of).collect(),
    }
}
