//! The card as v0.3 writes it: one struct for each of its objects that differs from v1.0's.

use indexmap::IndexMap;
use serde::{Deserializer, Serializer};

use crate::json::{Element, Member, Read, wire_message};
use crate::wire;

wire_message! {
    /// What an agent tells about itself.
    Card {
        /// The version of the protocol at `url`.
        protocol_version "protocolVersion": String [required],
        /// The name.
        name "name": String [required],
        /// A description for people.
        description "description": String [required],
        /// Where the agent is reached by the preferred transport.
        url "url": String [required],
        /// The transport at `url`.
        preferred_transport "preferredTransport": String [required],
        /// Where else the agent is reached; may list `url` again.
        additional_interfaces "additionalInterfaces": Vec<Interface>,
        /// Where an icon is.
        icon_url "iconUrl": Option<String>,
        /// Who runs the agent.
        provider "provider": Option<wire::AgentProvider>,
        /// The version of the agent.
        version "version": String [required],
        /// Where more is written.
        documentation_url "documentationUrl": Option<String>,
        /// What of the optional protocol is supported.
        capabilities "capabilities": Option<Capabilities> [required],
        /// The ways to authenticate, by name.
        security_schemes "securitySchemes": IndexMap<String, Scheme>,
        /// The alternatives of which one is needed.
        security "security": Vec<Requirement>,
        /// Media types that are taken.
        default_input_modes "defaultInputModes": Vec<String> [required],
        /// Media types that are given.
        default_output_modes "defaultOutputModes": Vec<String> [required],
        /// What the agent can do.
        skills "skills": Vec<Skill> [required],
        /// Whether there is a card for authenticated callers.
        supports_authenticated_extended_card "supportsAuthenticatedExtendedCard": Option<bool>,
        /// Signatures over the card.
        signatures "signatures": Vec<wire::AgentCardSignature>,
    }
}

wire_message! {
    /// Where and how an agent is reached.
    Interface {
        /// The URL.
        url "url": String [required],
        /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or another.
        transport "transport": String [required],
    }
}

wire_message! {
    /// What of the optional protocol an agent supports.
    Capabilities {
        /// Whether streams are served.
        streaming "streaming": Option<bool>,
        /// Whether events are pushed.
        push_notifications "pushNotifications": Option<bool>,
        /// The extensions.
        extensions "extensions": Vec<wire::AgentExtension>,
    }
}

wire_message! {
    /// One thing that an agent can do.
    Skill {
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
        /// Media types that are taken.
        input_modes "inputModes": Vec<String>,
        /// Media types that are given.
        output_modes "outputModes": Vec<String>,
        /// The alternatives of which one is needed.
        security "security": Vec<Requirement>,
    }
}

wire_message! {
    /// One way to authenticate, as OpenAPI 3 writes it: `kind` says which of the members belong to it.
    Scheme {
        /// `apiKey`, `http`, `oauth2`, `openIdConnect` or `mutualTLS`.
        kind "type": String [required],
        /// A description for people.
        description "description": String,
        /// Where an API key is put.
        location "in": String,
        /// The name of an API key.
        name "name": String,
        /// The HTTP authentication scheme.
        scheme "scheme": String,
        /// How a bearer token is formed.
        bearer_format "bearerFormat": String,
        /// The flows of OAuth 2.0.
        flows "flows": Option<Flows>,
        /// Where the metadata of the authorization server is.
        oauth2_metadata_url "oauth2MetadataUrl": String,
        /// The discovery URL of OpenID Connect.
        open_id_connect_url "openIdConnectUrl": String,
    }
}

wire_message! {
    /// The flows of OAuth 2.0 that are supported, any number of them.
    Flows {
        /// The authorization code flow.
        authorization_code "authorizationCode": Option<Flow>,
        /// The client credentials flow.
        client_credentials "clientCredentials": Option<Flow>,
        /// The implicit flow.
        implicit "implicit": Option<Flow>,
        /// The password flow.
        password "password": Option<Flow>,
    }
}

wire_message! {
    /// One flow; which of the URLs it has depends on which it is.
    Flow {
        /// The authorization endpoint.
        authorization_url "authorizationUrl": Option<String>,
        /// The token endpoint.
        token_url "tokenUrl": Option<String>,
        /// The refresh endpoint.
        refresh_url "refreshUrl": String,
        /// The scopes and what they are for.
        scopes "scopes": IndexMap<String, String> [required],
    }
}

/// Security schemes that are needed together, each with its scopes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirement(pub IndexMap<String, Scopes>);

impl Read for Requirement {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Member::read_member(deserializer).map(Self)
    }
}

impl Element for Requirement {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write_member(serializer)
    }
}

/// The scopes of one scheme.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scopes(pub Vec<String>);

impl Read for Scopes {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Member::read_member(deserializer).map(Self)
    }
}

impl Element for Scopes {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write_member(serializer)
    }
}
