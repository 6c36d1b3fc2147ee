//! The Agent Card.

use longhaul_protocol::wire;

use crate::a2a;
use crate::convert::{mirror, mirror_oneof};

mirror! {
    a2a::AgentCard, wire::AgentCard {
        name,
        description,
        supported_interfaces,
        provider,
        version,
        documentation_url,
        capabilities,
        security_schemes,
        security_requirements,
        default_input_modes,
        default_output_modes,
        skills,
        signatures,
        icon_url,
    }
    a2a::AgentInterface, wire::AgentInterface {
        url,
        protocol_binding,
        tenant,
        protocol_version,
    }
    a2a::AgentProvider, wire::AgentProvider { url, organization }
    a2a::AgentCapabilities, wire::AgentCapabilities {
        streaming,
        push_notifications,
        extensions,
        extended_agent_card,
    }
    a2a::AgentExtension, wire::AgentExtension { uri, description, required, params }
    a2a::AgentSkill, wire::AgentSkill {
        id,
        name,
        description,
        tags,
        examples,
        input_modes,
        output_modes,
        security_requirements,
    }
    a2a::AgentCardSignature, wire::AgentCardSignature { protected, signature, header }
    a2a::StringList, wire::StringList { list }
    a2a::SecurityRequirement, wire::SecurityRequirement { schemes }
    a2a::SecurityScheme, wire::SecurityScheme { scheme }
    a2a::ApiKeySecurityScheme, wire::APIKeySecurityScheme { description, location, name }
    a2a::HttpAuthSecurityScheme, wire::HTTPAuthSecurityScheme {
        description,
        scheme,
        bearer_format,
    }
    a2a::OAuth2SecurityScheme, wire::OAuth2SecurityScheme {
        description,
        flows,
        oauth2_metadata_url,
    }
    a2a::OpenIdConnectSecurityScheme, wire::OpenIdConnectSecurityScheme {
        description,
        open_id_connect_url,
    }
    a2a::MutualTlsSecurityScheme, wire::MutualTlsSecurityScheme { description }
    a2a::OAuthFlows, wire::OAuthFlows { flow }
    a2a::AuthorizationCodeOAuthFlow, wire::AuthorizationCodeOAuthFlow {
        authorization_url,
        token_url,
        refresh_url,
        scopes,
        pkce_required,
    }
    a2a::ClientCredentialsOAuthFlow, wire::ClientCredentialsOAuthFlow {
        token_url,
        refresh_url,
        scopes,
    }
    a2a::ImplicitOAuthFlow, wire::ImplicitOAuthFlow { authorization_url, refresh_url, scopes }
    a2a::PasswordOAuthFlow, wire::PasswordOAuthFlow { token_url, refresh_url, scopes }
    a2a::DeviceCodeOAuthFlow, wire::DeviceCodeOAuthFlow {
        device_authorization_url,
        token_url,
        refresh_url,
        scopes,
    }
}

mirror_oneof!(
    a2a::security_scheme::Scheme,
    wire::SecuritySchemeKind {
        ApiKeySecurityScheme = ApiKey,
        HttpAuthSecurityScheme = HttpAuth,
        Oauth2SecurityScheme = OAuth2,
        OpenIdConnectSecurityScheme = OpenIdConnect,
        MtlsSecurityScheme = MutualTls,
    }
);

mirror_oneof!(
    a2a::o_auth_flows::Flow,
    wire::OAuthFlow {
        AuthorizationCode = AuthorizationCode,
        ClientCredentials = ClientCredentials,
        Implicit = Implicit,
        Password = Password,
        DeviceCode = DeviceCode,
    }
);
