//! The agent card (§4.4) and its security schemes (§4.5).

use indexmap::IndexMap;

use crate::json::{JsonObject, wire_message};

wire_message! {
    /// What an agent tells about itself (§4.4.1).
    AgentCard {
        /// The name.
        name "name": String [required],
        /// A description for people.
        description "description": String [required],
        /// Where the agent is reached, the preferred way first.
        supported_interfaces "supportedInterfaces": Vec<AgentInterface> [required],
        /// Who runs the agent.
        provider "provider": Option<AgentProvider>,
        /// The version of the agent.
        version "version": String [required],
        /// Where more is written.
        documentation_url "documentationUrl": Option<String>,
        /// What of the optional protocol is supported.
        capabilities "capabilities": Option<AgentCapabilities> [required],
        /// The ways to authenticate, by name.
        security_schemes "securitySchemes": IndexMap<String, SecurityScheme>,
        /// The alternatives of which one is needed.
        security_requirements "securityRequirements": Vec<SecurityRequirement>,
        /// Media types that are taken.
        default_input_modes "defaultInputModes": Vec<String> [required],
        /// Media types that are given.
        default_output_modes "defaultOutputModes": Vec<String> [required],
        /// What the agent can do.
        skills "skills": Vec<AgentSkill> [required],
        /// Signatures over the card.
        signatures "signatures": Vec<AgentCardSignature>,
        /// Where an icon is.
        icon_url "iconUrl": Option<String>,
    }
}

wire_message! {
    /// Where and how an agent is reached (§4.4.6).
    AgentInterface {
        /// The URL.
        url "url": String [required],
        /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or another.
        protocol_binding "protocolBinding": String [required],
        /// Which tenant it is for; may be empty.
        tenant "tenant": String,
        /// The version of the protocol, such as `1.0`.
        protocol_version "protocolVersion": String [required],
    }
}

wire_message! {
    /// Who runs an agent (§4.4.2).
    AgentProvider {
        /// The URL.
        url "url": String [required],
        /// The name of the organization.
        organization "organization": String [required],
    }
}

wire_message! {
    /// What of the optional protocol an agent supports (§4.4.3).
    AgentCapabilities {
        /// Whether streams are served.
        streaming "streaming": Option<bool>,
        /// Whether events are pushed.
        push_notifications "pushNotifications": Option<bool>,
        /// The extensions, by URI in messages and artifacts.
        extensions "extensions": Vec<AgentExtension>,
        /// Whether there is a card for authenticated callers.
        extended_agent_card "extendedAgentCard": Option<bool>,
    }
}

wire_message! {
    /// An extension that an agent supports (§4.4.4).
    AgentExtension {
        /// The URI that names the extension.
        uri "uri": String,
        /// A description for people.
        description "description": String,
        /// Whether a caller must support it.
        required "required": bool,
        /// Settings of the extension.
        params "params": Option<JsonObject>,
    }
}

wire_message! {
    /// One thing that an agent can do (§4.4.5).
    AgentSkill {
        /// The id.
        id "id": String [required],
        /// The name.
        name "name": String [required],
        /// A description for people.
        description "description": String [required],
        /// Keywords.
        tags "tags": Vec<String> [required],
        /// Example prompts.
        examples "examples": Vec<String>,
        /// Media types that are taken; the defaults of the card when empty.
        input_modes "inputModes": Vec<String>,
        /// Media types that are given; the defaults of the card when empty.
        output_modes "outputModes": Vec<String>,
        /// The alternatives of which one is needed.
        security_requirements "securityRequirements": Vec<SecurityRequirement>,
    }
}

wire_message! {
    /// A JWS over the agent card (§4.4.7).
    AgentCardSignature {
        /// The protected header, base64url.
        protected "protected": String [required],
        /// The signature, base64url.
        signature "signature": String [required],
        /// The unprotected header.
        header "header": Option<JsonObject>,
    }
}

wire_message! {
    /// A list of strings, as a value of a map.
    StringList {
        /// The strings.
        list "list": Vec<String>,
    }
}

wire_message! {
    /// Security schemes that are needed together, each with its scopes (§4.5).
    SecurityRequirement {
        /// The scopes needed, by name of the scheme.
        schemes "schemes": IndexMap<String, StringList>,
    }
}

wire_message! {
    /// One way to authenticate (§4.5.1).
    SecurityScheme {
    }
    /// Which scheme it is; none in an invalid scheme.
    oneof scheme: SecuritySchemeKind {
        /// An API key.
        api_key_security_scheme "apiKeySecurityScheme" => ApiKey(APIKeySecurityScheme),
        /// An HTTP scheme.
        http_auth_security_scheme "httpAuthSecurityScheme" => HttpAuth(HTTPAuthSecurityScheme),
        /// OAuth 2.0.
        oauth2_security_scheme "oauth2SecurityScheme" => OAuth2(OAuth2SecurityScheme),
        /// OpenID Connect.
        open_id_connect_security_scheme "openIdConnectSecurityScheme" => OpenIdConnect(OpenIdConnectSecurityScheme),
        /// A client certificate.
        mtls_security_scheme "mtlsSecurityScheme" => MutualTls(MutualTlsSecurityScheme),
    }
}

wire_message! {
    /// Authentication by an API key (§4.5.2).
    APIKeySecurityScheme {
        /// A description for people.
        description "description": String,
        /// `query`, `header` or `cookie`.
        location "location": String [required],
        /// The name.
        name "name": String [required],
    }
}

wire_message! {
    /// Authentication by an HTTP scheme (§4.5.3).
    HTTPAuthSecurityScheme {
        /// A description for people.
        description "description": String,
        /// The HTTP authentication scheme.
        scheme "scheme": String [required],
        /// How a bearer token is formed.
        bearer_format "bearerFormat": String,
    }
}

wire_message! {
    /// Authentication by OAuth 2.0 (§4.5.4).
    OAuth2SecurityScheme {
        /// A description for people.
        description "description": String,
        /// The flow.
        flows "flows": Option<OAuthFlows> [required],
        /// Where the metadata of the authorization server is.
        oauth2_metadata_url "oauth2MetadataUrl": String,
    }
}

wire_message! {
    /// Authentication by OpenID Connect (§4.5.5).
    OpenIdConnectSecurityScheme {
        /// A description for people.
        description "description": String,
        /// The discovery URL.
        open_id_connect_url "openIdConnectUrl": String [required],
    }
}

wire_message! {
    /// Authentication by a client certificate (§4.5.6).
    MutualTlsSecurityScheme {
        /// A description for people.
        description "description": String,
    }
}

wire_message! {
    /// The OAuth 2.0 flow that is supported (§4.5.7).
    OAuthFlows {
    }
    /// Which flow it is; none in an invalid one.
    oneof flow: OAuthFlow {
        /// The authorization code flow.
        authorization_code "authorizationCode" => AuthorizationCode(AuthorizationCodeOAuthFlow),
        /// The client credentials flow.
        client_credentials "clientCredentials" => ClientCredentials(ClientCredentialsOAuthFlow),
        /// The implicit flow.
        implicit "implicit" => Implicit(ImplicitOAuthFlow),
        /// The password flow.
        password "password" => Password(PasswordOAuthFlow),
        /// The device code flow.
        device_code "deviceCode" => DeviceCode(DeviceCodeOAuthFlow),
    }
}

wire_message! {
    /// The authorization code flow (§4.5.8).
    AuthorizationCodeOAuthFlow {
        /// The authorization endpoint.
        authorization_url "authorizationUrl": String [required],
        /// The token endpoint.
        token_url "tokenUrl": String [required],
        /// The refresh endpoint.
        refresh_url "refreshUrl": String,
        /// The scopes and what they are for.
        scopes "scopes": IndexMap<String, String> [required],
        /// Whether PKCE is required.
        pkce_required "pkceRequired": bool,
    }
}

wire_message! {
    /// The client credentials flow (§4.5.9).
    ClientCredentialsOAuthFlow {
        /// The token endpoint.
        token_url "tokenUrl": String [required],
        /// The refresh endpoint.
        refresh_url "refreshUrl": String,
        /// The scopes and what they are for.
        scopes "scopes": IndexMap<String, String> [required],
    }
}

wire_message! {
    /// The implicit flow, which the protocol deprecates.
    ImplicitOAuthFlow {
        /// The authorization endpoint.
        authorization_url "authorizationUrl": String,
        /// The refresh endpoint.
        refresh_url "refreshUrl": String,
        /// The scopes and what they are for.
        scopes "scopes": IndexMap<String, String>,
    }
}

wire_message! {
    /// The password flow, which the protocol deprecates.
    PasswordOAuthFlow {
        /// The token endpoint.
        token_url "tokenUrl": String,
        /// The refresh endpoint.
        refresh_url "refreshUrl": String,
        /// The scopes and what they are for.
        scopes "scopes": IndexMap<String, String>,
    }
}

wire_message! {
    /// The device code flow (§4.5.10).
    DeviceCodeOAuthFlow {
        /// The device authorization endpoint.
        device_authorization_url "deviceAuthorizationUrl": String [required],
        /// The token endpoint.
        token_url "tokenUrl": String [required],
        /// The refresh endpoint.
        refresh_url "refreshUrl": String,
        /// The scopes and what they are for.
        scopes "scopes": IndexMap<String, String> [required],
    }
}
