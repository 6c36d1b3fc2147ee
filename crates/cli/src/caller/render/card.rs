//! An agent card for people (§10.1 of the contract).

use longhaul_protocol::wire::{
    AgentCapabilities, AgentCard, AgentSkill, OAuthFlow, SecurityRequirement, SecurityScheme, SecuritySchemeKind,
};

use super::parts::metadata;
use super::{Detail, Page};

/// What is known of a card's signatures.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It has none, which the protocol allows.
    Absent,
    /// It has some, and nobody asked to verify them.
    Unchecked,
    /// One of them was made over this card with a key that is trusted.
    Verified(String),
    /// It has some, and none could be verified; that is why.
    Unverifiable(String),
}

impl Verdict {
    /// What can be said of a card without keys.
    pub fn without_keys(card: &AgentCard) -> Self {
        if card.signatures.is_empty() { Self::Absent } else { Self::Unchecked }
    }

    /// The same in words.
    pub fn words(&self) -> String {
        match self {
            Self::Absent => "absent".to_owned(),
            Self::Unchecked => "unverifiable (no key was given to verify it with)".to_owned(),
            Self::Verified(key) => format!("verified ({key})"),
            Self::Unverifiable(why) => format!("unverifiable ({why})"),
        }
    }
}

/// Writes a card: identity, capabilities, interfaces, security, skills.
pub fn card(page: &mut Page, card: &AgentCard, verdict: &Verdict, detail: Detail) {
    page.field("Name", &card.name);
    page.field("Description", &card.description);
    page.field("Version", &card.version);
    if let Some(provider) = &card.provider {
        page.field("Provider", format_args!("{} {}", provider.organization, provider.url));
    }
    page.field_if("Documentation", card.documentation_url.as_deref().unwrap_or_default());
    capabilities(page, &card.capabilities.clone().unwrap_or_default(), detail);
    for interface in &card.supported_interfaces {
        let tenant = if interface.tenant.is_empty() { String::new() } else { format!(" tenant {}", interface.tenant) };
        let (binding, version) = (&interface.protocol_binding, &interface.protocol_version);
        page.field("Interface", format_args!("{binding} {version} {}{tenant}", interface.url));
    }
    page.list_if("Input modes", &card.default_input_modes);
    page.list_if("Output modes", &card.default_output_modes);
    for (name, scheme) in &card.security_schemes {
        page.field("Security scheme", format_args!("{name}: {}", scheme_words(scheme)));
    }
    for requirement in &card.security_requirements {
        page.field("Security requirement", requirement_words(requirement));
    }
    page.field("Signature", verdict.words());
    for one in &card.skills {
        skill(page, one, detail);
    }
}

fn capabilities(page: &mut Page, capabilities: &AgentCapabilities, detail: Detail) {
    page.field("Streaming", yes(capabilities.streaming));
    page.field("Push notifications", yes(capabilities.push_notifications));
    page.field("Extended card", yes(capabilities.extended_agent_card));
    for extension in &capabilities.extensions {
        let required = if extension.required { " (required)" } else { "" };
        page.field("Extension", format_args!("{}{required}", extension.uri));
        if detail == Detail::Verbose {
            page.field_if("Description", &extension.description);
            metadata(page, extension.params.as_ref());
        }
    }
}

fn yes(capability: Option<bool>) -> &'static str {
    if capability == Some(true) { "yes" } else { "no" }
}

fn skill(page: &mut Page, skill: &AgentSkill, detail: Detail) {
    page.field("Skill", format_args!("{}: {}", skill.id, skill.name));
    page.field_if("Description", &skill.description);
    page.list_if("Tags", &skill.tags);
    if detail == Detail::Verbose {
        for example in &skill.examples {
            page.field("Example", example);
        }
        page.list_if("Input modes", &skill.input_modes);
        page.list_if("Output modes", &skill.output_modes);
        for requirement in &skill.security_requirements {
            page.field("Security requirement", requirement_words(requirement));
        }
    }
}

fn scheme_words(scheme: &SecurityScheme) -> String {
    match &scheme.scheme {
        Some(SecuritySchemeKind::ApiKey(key)) => format!("API key {} in {}", key.name, key.location),
        Some(SecuritySchemeKind::HttpAuth(http)) => format!("HTTP {}", http.scheme),
        Some(SecuritySchemeKind::OAuth2(oauth)) => {
            let flow = match oauth.flows.as_ref().and_then(|flows| flows.flow.as_ref()) {
                Some(OAuthFlow::AuthorizationCode(_)) => "authorization code",
                Some(OAuthFlow::ClientCredentials(_)) => "client credentials",
                Some(OAuthFlow::DeviceCode(_)) => "device code",
                Some(OAuthFlow::Implicit(_)) => "implicit",
                Some(OAuthFlow::Password(_)) => "password",
                None => "no flow",
            };
            format!("OAuth 2.0, {flow}")
        }
        Some(SecuritySchemeKind::OpenIdConnect(openid)) => format!("OpenID Connect {}", openid.open_id_connect_url),
        Some(SecuritySchemeKind::MutualTls(_)) => "client certificate".to_owned(),
        None => "of a kind that this client does not know".to_owned(),
    }
}

fn requirement_words(requirement: &SecurityRequirement) -> String {
    let schemes = requirement.schemes.iter().map(|(name, scopes)| match scopes.list.is_empty() {
        true => name.clone(),
        false => format!("{name} ({})", scopes.list.join(", ")),
    });
    schemes.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
#[path = "card/tests.rs"]
mod tests;
