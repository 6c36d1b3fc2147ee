//! Security schemes and requirements: OpenAPI's form in v0.3, oneofs in v1.0.

use crate::wire::{
    self, APIKeySecurityScheme, AuthorizationCodeOAuthFlow, ClientCredentialsOAuthFlow, HTTPAuthSecurityScheme,
    ImplicitOAuthFlow, MutualTlsSecurityScheme, OAuth2SecurityScheme, OAuthFlow, OAuthFlows,
    OpenIdConnectSecurityScheme, PasswordOAuthFlow, SecuritySchemeKind,
};

use super::document::{Flow, Flows, Requirement, Scheme, Scopes};

const API_KEY: &str = "apiKey";
const HTTP: &str = "http";
const OAUTH2: &str = "oauth2";
const OPEN_ID_CONNECT: &str = "openIdConnect";
const MUTUAL_TLS: &str = "mutualTLS";

pub(super) fn requirement_to(requirement: Requirement) -> wire::SecurityRequirement {
    let schemes = requirement.0.into_iter().map(|(name, Scopes(list))| (name, wire::StringList { list }));
    wire::SecurityRequirement { schemes: schemes.collect() }
}

pub(super) fn requirement_of(requirement: &wire::SecurityRequirement) -> Requirement {
    let schemes = requirement.schemes.iter();
    Requirement(schemes.map(|(name, scopes)| (name.clone(), Scopes(scopes.list.clone()))).collect())
}

/// A scheme of a type that nobody knows stays in its place, as one of which v1.0 knows nothing.
pub(super) fn scheme_to(scheme: Scheme) -> wire::SecurityScheme {
    let Scheme { kind, description, .. } = scheme;
    let kind = match kind.as_str() {
        API_KEY => SecuritySchemeKind::ApiKey(APIKeySecurityScheme {
            description,
            location: scheme.location,
            name: scheme.name,
        }),
        HTTP => SecuritySchemeKind::HttpAuth(HTTPAuthSecurityScheme {
            description,
            scheme: scheme.scheme,
            bearer_format: scheme.bearer_format,
        }),
        OAUTH2 => SecuritySchemeKind::OAuth2(OAuth2SecurityScheme {
            description,
            flows: scheme.flows.map(|flows| OAuthFlows { flow: flow_to(flows) }),
            oauth2_metadata_url: scheme.oauth2_metadata_url,
        }),
        OPEN_ID_CONNECT => SecuritySchemeKind::OpenIdConnect(OpenIdConnectSecurityScheme {
            description,
            open_id_connect_url: scheme.open_id_connect_url,
        }),
        MUTUAL_TLS => SecuritySchemeKind::MutualTls(MutualTlsSecurityScheme { description }),
        _ => return wire::SecurityScheme::default(),
    };
    wire::SecurityScheme { scheme: Some(kind) }
}

/// v1.0 has room for one flow: the first in the order in which the protocol lists them.
fn flow_to(flows: Flows) -> Option<OAuthFlow> {
    let Flows { authorization_code, client_credentials, implicit, password } = flows;
    let authorization_code = authorization_code.map(|flow| {
        OAuthFlow::AuthorizationCode(AuthorizationCodeOAuthFlow {
            authorization_url: flow.authorization_url.unwrap_or_default(),
            token_url: flow.token_url.unwrap_or_default(),
            refresh_url: flow.refresh_url,
            scopes: flow.scopes,
            pkce_required: false,
        })
    });
    let client_credentials = client_credentials.map(|flow| {
        OAuthFlow::ClientCredentials(ClientCredentialsOAuthFlow {
            token_url: flow.token_url.unwrap_or_default(),
            refresh_url: flow.refresh_url,
            scopes: flow.scopes,
        })
    });
    let implicit = implicit.map(|flow| {
        OAuthFlow::Implicit(ImplicitOAuthFlow {
            authorization_url: flow.authorization_url.unwrap_or_default(),
            refresh_url: flow.refresh_url,
            scopes: flow.scopes,
        })
    });
    let password = password.map(|flow| {
        OAuthFlow::Password(PasswordOAuthFlow {
            token_url: flow.token_url.unwrap_or_default(),
            refresh_url: flow.refresh_url,
            scopes: flow.scopes,
        })
    });
    authorization_code.or(client_credentials).or(implicit).or(password)
}

/// `None` for a scheme of which nothing is known.
pub(super) fn scheme_of(scheme: &wire::SecurityScheme) -> Option<Scheme> {
    let of_kind = |kind: &str, description: &str| Scheme {
        kind: kind.to_owned(),
        description: description.to_owned(),
        ..Scheme::default()
    };
    Some(match scheme.scheme.as_ref()? {
        SecuritySchemeKind::ApiKey(key) => {
            Scheme { location: key.location.clone(), name: key.name.clone(), ..of_kind(API_KEY, &key.description) }
        }
        SecuritySchemeKind::HttpAuth(http) => Scheme {
            scheme: http.scheme.clone(),
            bearer_format: http.bearer_format.clone(),
            ..of_kind(HTTP, &http.description)
        },
        SecuritySchemeKind::OAuth2(oauth2) => Scheme {
            // Required by v0.3, which has no flow for device codes.
            flows: Some(oauth2.flows.as_ref().and_then(|flows| flows.flow.as_ref()).map(flow_of).unwrap_or_default()),
            oauth2_metadata_url: oauth2.oauth2_metadata_url.clone(),
            ..of_kind(OAUTH2, &oauth2.description)
        },
        SecuritySchemeKind::OpenIdConnect(connect) => Scheme {
            open_id_connect_url: connect.open_id_connect_url.clone(),
            ..of_kind(OPEN_ID_CONNECT, &connect.description)
        },
        SecuritySchemeKind::MutualTls(tls) => of_kind(MUTUAL_TLS, &tls.description),
    })
}

fn flow_of(flow: &OAuthFlow) -> Flows {
    match flow {
        OAuthFlow::AuthorizationCode(flow) => Flows {
            authorization_code: Some(Flow {
                authorization_url: Some(flow.authorization_url.clone()),
                token_url: Some(flow.token_url.clone()),
                refresh_url: flow.refresh_url.clone(),
                scopes: flow.scopes.clone(),
            }),
            ..Flows::default()
        },
        OAuthFlow::ClientCredentials(flow) => Flows {
            client_credentials: Some(Flow {
                authorization_url: None,
                token_url: Some(flow.token_url.clone()),
                refresh_url: flow.refresh_url.clone(),
                scopes: flow.scopes.clone(),
            }),
            ..Flows::default()
        },
        OAuthFlow::Implicit(flow) => Flows {
            implicit: Some(Flow {
                authorization_url: Some(flow.authorization_url.clone()),
                token_url: None,
                refresh_url: flow.refresh_url.clone(),
                scopes: flow.scopes.clone(),
            }),
            ..Flows::default()
        },
        OAuthFlow::Password(flow) => Flows {
            password: Some(Flow {
                authorization_url: None,
                token_url: Some(flow.token_url.clone()),
                refresh_url: flow.refresh_url.clone(),
                scopes: flow.scopes.clone(),
            }),
            ..Flows::default()
        },
        OAuthFlow::DeviceCode(_) => Flows::default(),
    }
}
