//! The Agent Card of `a2a.v1`.
//!
//! What of a card v0.3 can say, and which of its interfaces, is decided by `longhaul_protocol::v0_3::card`, for JSON and
//! for protobuf alike: a card goes through its JSON on the way, and only fields are mirrored here.

use longhaul_protocol::v0_3::card::{card_from_json, card_to_v0_3};
use longhaul_protocol::wire;
use serde_json::json;

use crate::a2a_v0_3;
use crate::convert::{ConvertError, Mirror, mirror, mirror_oneof};

/// Says in v0.3 what a card of v1.0 says. `None` if none of its interfaces speaks v0.3.
///
/// # Errors
///
/// Never for a card that v0.3 has written; an error says where its JSON is none of v0.3.
pub fn card_from_v1(card: &wire::AgentCard) -> Result<Option<a2a_v0_3::AgentCard>, ConvertError> {
    let Some(members) = card_to_v0_3(card) else { return Ok(None) };
    let card = card_from_json(serde_json::Value::Object(members).to_string().as_bytes())?;
    let mut interfaces = card.supported_interfaces.into_iter();
    let first = interfaces.next().unwrap_or_default();
    let capabilities = card.capabilities.unwrap_or_default();
    Ok(Some(a2a_v0_3::AgentCard {
        protocol_version: first.protocol_version,
        name: card.name,
        description: card.description,
        url: first.url,
        preferred_transport: first.protocol_binding,
        additional_interfaces: interfaces
            .map(|other| a2a_v0_3::AgentInterface { url: other.url, transport: other.protocol_binding })
            .collect(),
        provider: card.provider.mirror(),
        version: card.version,
        documentation_url: card.documentation_url.unwrap_or_default(),
        capabilities: Some(a2a_v0_3::AgentCapabilities {
            streaming: capabilities.streaming.unwrap_or_default(),
            push_notifications: capabilities.push_notifications.unwrap_or_default(),
            extensions: capabilities.extensions.mirror(),
        }),
        security_schemes: card.security_schemes.mirror(),
        security: card.security_requirements.mirror(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: card.skills.mirror(),
        supports_authenticated_extended_card: capabilities.extended_agent_card.unwrap_or_default(),
        signatures: card.signatures.mirror(),
        icon_url: card.icon_url.unwrap_or_default(),
    }))
}

/// Says in v1.0 what a card of v0.3 says.
///
/// # Errors
///
/// Never for what protobuf can hold; an error says where the interfaces are none of v0.3.
pub fn card_into_v1(card: a2a_v0_3::AgentCard) -> Result<wire::AgentCard, ConvertError> {
    let interfaces = json!({
        "url": card.url,
        "preferredTransport": card.preferred_transport,
        "protocolVersion": card.protocol_version,
        "additionalInterfaces": card
            .additional_interfaces
            .iter()
            .map(|other| json!({"url": other.url, "transport": other.transport}))
            .collect::<Vec<_>>(),
    });
    let some = |text: String| (!text.is_empty()).then_some(text);
    let capabilities = card.capabilities.unwrap_or_default();
    Ok(wire::AgentCard {
        supported_interfaces: card_from_json(interfaces.to_string().as_bytes())?.supported_interfaces,
        name: card.name,
        description: card.description,
        provider: card.provider.mirror(),
        version: card.version,
        documentation_url: some(card.documentation_url),
        capabilities: Some(wire::AgentCapabilities {
            streaming: Some(capabilities.streaming),
            push_notifications: Some(capabilities.push_notifications),
            extensions: capabilities.extensions.mirror(),
            extended_agent_card: Some(card.supports_authenticated_extended_card),
        }),
        security_schemes: card.security_schemes.mirror(),
        security_requirements: card.security.mirror(),
        default_input_modes: card.default_input_modes,
        default_output_modes: card.default_output_modes,
        skills: card.skills.mirror(),
        signatures: card.signatures.mirror(),
        icon_url: some(card.icon_url),
    })
}

mirror! {
    a2a_v0_3::AgentProvider, wire::AgentProvider { url, organization }
    a2a_v0_3::AgentExtension, wire::AgentExtension { uri, description, required, params }
    a2a_v0_3::AgentCardSignature, wire::AgentCardSignature { protected, signature, header }
    a2a_v0_3::StringList, wire::StringList { list }
    a2a_v0_3::Security, wire::SecurityRequirement { schemes }
    a2a_v0_3::SecurityScheme, wire::SecurityScheme { scheme }
    a2a_v0_3::ApiKeySecurityScheme, wire::APIKeySecurityScheme { description, location, name }
    a2a_v0_3::HttpAuthSecurityScheme, wire::HTTPAuthSecurityScheme { description, scheme, bearer_format }
    a2a_v0_3::OAuth2SecurityScheme, wire::OAuth2SecurityScheme { description, flows, oauth2_metadata_url }
    a2a_v0_3::OpenIdConnectSecurityScheme, wire::OpenIdConnectSecurityScheme { description, open_id_connect_url }
    a2a_v0_3::MutualTlsSecurityScheme, wire::MutualTlsSecurityScheme { description }
    a2a_v0_3::ClientCredentialsOAuthFlow, wire::ClientCredentialsOAuthFlow { token_url, refresh_url, scopes }
    a2a_v0_3::ImplicitOAuthFlow, wire::ImplicitOAuthFlow { authorization_url, refresh_url, scopes }
    a2a_v0_3::PasswordOAuthFlow, wire::PasswordOAuthFlow { token_url, refresh_url, scopes }
}

mirror_oneof!(
    a2a_v0_3::security_scheme::Scheme,
    wire::SecuritySchemeKind {
        ApiKeySecurityScheme = ApiKey,
        HttpAuthSecurityScheme = HttpAuth,
        Oauth2SecurityScheme = OAuth2,
        OpenIdConnectSecurityScheme = OpenIdConnect,
        MtlsSecurityScheme = MutualTls,
    }
);

/// v0.3 has no device code flow: a scheme with nothing else is left out before it comes here.
impl Mirror<a2a_v0_3::OAuthFlows> for wire::OAuthFlows {
    fn mirror(self) -> a2a_v0_3::OAuthFlows {
        use a2a_v0_3::o_auth_flows::Flow;
        let flow = match self.flow {
            Some(wire::OAuthFlow::AuthorizationCode(flow)) => Some(Flow::AuthorizationCode(flow.mirror())),
            Some(wire::OAuthFlow::ClientCredentials(flow)) => Some(Flow::ClientCredentials(flow.mirror())),
            Some(wire::OAuthFlow::Implicit(flow)) => Some(Flow::Implicit(flow.mirror())),
            Some(wire::OAuthFlow::Password(flow)) => Some(Flow::Password(flow.mirror())),
            Some(wire::OAuthFlow::DeviceCode(_)) | None => None,
        };
        a2a_v0_3::OAuthFlows { flow }
    }
}

impl Mirror<wire::OAuthFlows> for a2a_v0_3::OAuthFlows {
    fn mirror(self) -> wire::OAuthFlows {
        use a2a_v0_3::o_auth_flows::Flow;
        let flow = self.flow.map(|flow| match flow {
            Flow::AuthorizationCode(flow) => wire::OAuthFlow::AuthorizationCode(flow.mirror()),
            Flow::ClientCredentials(flow) => wire::OAuthFlow::ClientCredentials(flow.mirror()),
            Flow::Implicit(flow) => wire::OAuthFlow::Implicit(flow.mirror()),
            Flow::Password(flow) => wire::OAuthFlow::Password(flow.mirror()),
        });
        wire::OAuthFlows { flow }
    }
}

impl Mirror<a2a_v0_3::AuthorizationCodeOAuthFlow> for wire::AuthorizationCodeOAuthFlow {
    fn mirror(self) -> a2a_v0_3::AuthorizationCodeOAuthFlow {
        let Self { authorization_url, token_url, refresh_url, scopes, pkce_required: _ } = self;
        a2a_v0_3::AuthorizationCodeOAuthFlow { authorization_url, token_url, refresh_url, scopes: scopes.mirror() }
    }
}

impl Mirror<wire::AuthorizationCodeOAuthFlow> for a2a_v0_3::AuthorizationCodeOAuthFlow {
    fn mirror(self) -> wire::AuthorizationCodeOAuthFlow {
        let Self { authorization_url, token_url, refresh_url, scopes } = self;
        wire::AuthorizationCodeOAuthFlow {
            authorization_url,
            token_url,
            refresh_url,
            scopes: scopes.mirror(),
            ..Default::default()
        }
    }
}

impl Mirror<a2a_v0_3::AgentSkill> for wire::AgentSkill {
    fn mirror(self) -> a2a_v0_3::AgentSkill {
        let Self { id, name, description, tags, examples, input_modes, output_modes, security_requirements } = self;
        let security = security_requirements.mirror();
        a2a_v0_3::AgentSkill { id, name, description, tags, examples, input_modes, output_modes, security }
    }
}

impl Mirror<wire::AgentSkill> for a2a_v0_3::AgentSkill {
    fn mirror(self) -> wire::AgentSkill {
        let Self { id, name, description, tags, examples, input_modes, output_modes, security } = self;
        let security_requirements = security.mirror();
        wire::AgentSkill { id, name, description, tags, examples, input_modes, output_modes, security_requirements }
    }
}
