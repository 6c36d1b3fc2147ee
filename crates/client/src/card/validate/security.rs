//! Security schemes, and the requirements that name them (A2A §4.5).

use longhaul_protocol::wire::{
    AgentCard, OAuth2SecurityScheme, OAuthFlow, SecurityRequirement, SecurityScheme, SecuritySchemeKind,
};

use crate::card::shown;

use super::Findings;
use super::names::{Names, key};
use super::text::check_url;

const LOCATIONS: [&str; 3] = ["query", "header", "cookie"];

pub(super) fn check(card: &AgentCard, names: &Names, findings: &mut Findings) {
    for (name, scheme) in &card.security_schemes {
        check_scheme(name, scheme, names, findings);
    }
    check_requirements(&card.security_requirements, card, names, "", findings);
}

/// `parent` is the path of the object that has them: empty, or with a dot at its end.
pub(super) fn check_requirements(
    requirements: &[SecurityRequirement],
    card: &AgentCard,
    names: &Names,
    parent: &str,
    findings: &mut Findings,
) {
    for (index, requirement) in requirements.iter().enumerate() {
        for name in requirement.schemes.keys().filter(|name| !card.security_schemes.contains_key(*name)) {
            let path = names.requirement(parent, index, name);
            findings.error(path, format!("must name one of securitySchemes, which has no {}", shown(name)));
        }
    }
}

fn check_scheme(name: &str, scheme: &SecurityScheme, names: &Names, findings: &mut Findings) {
    match &scheme.scheme {
        None if names.is_v0_3 => {
            let path = names.scheme(name, "", "", "type");
            findings.error(path, "must be one of apiKey, http, oauth2, openIdConnect, mutualTLS");
        }
        None => {
            let kinds = "apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, \
                         openIdConnectSecurityScheme, mtlsSecurityScheme";
            findings.error(format!("securitySchemes.{}", key(name)), format!("must have one of {kinds}"));
        }
        Some(SecuritySchemeKind::ApiKey(api_key)) => {
            if !LOCATIONS.contains(&api_key.location.as_str()) {
                let path = names.scheme(name, "apiKeySecurityScheme", "location", "in");
                let allowed = LOCATIONS.join(", ");
                findings.error(path, format!("must be one of {allowed}, not {}", shown(&api_key.location)));
            }
        }
        Some(SecuritySchemeKind::OAuth2(oauth2)) => check_oauth2(name, oauth2, names, findings),
        Some(SecuritySchemeKind::OpenIdConnect(connect)) => {
            let path = names.scheme(name, "openIdConnectSecurityScheme", "openIdConnectUrl", "openIdConnectUrl");
            check_url(&connect.open_id_connect_url, &path, findings);
        }
        Some(SecuritySchemeKind::HttpAuth(_) | SecuritySchemeKind::MutualTls(_)) => {}
    }
}

fn check_oauth2(name: &str, oauth2: &OAuth2SecurityScheme, names: &Names, findings: &mut Findings) {
    let path = |member: &str| names.scheme(name, "oauth2SecurityScheme", member, member);
    check_url(&oauth2.oauth2_metadata_url, &path("oauth2MetadataUrl"), findings);
    let Some(flow) = oauth2.flows.as_ref().and_then(|flows| flows.flow.as_ref()) else {
        return findings.error(path("flows"), "must have a flow");
    };
    let (flow_name, urls) = urls_of(flow);
    let flow_path = path(&format!("flows.{flow_name}"));
    if matches!(flow, OAuthFlow::Implicit(_) | OAuthFlow::Password(_)) {
        findings.remark(&*flow_path, "is a flow that should no longer be used");
    }
    for (member, url) in urls {
        check_url(url, &format!("{flow_path}.{member}"), findings);
    }
}

/// A flow's name, and its URLs by theirs; an empty one is absent.
fn urls_of(flow: &OAuthFlow) -> (&'static str, Vec<(&'static str, &str)>) {
    const AUTHORIZATION: &str = "authorizationUrl";
    const TOKEN: &str = "tokenUrl";
    const REFRESH: &str = "refreshUrl";
    match flow {
        OAuthFlow::AuthorizationCode(flow) => (
            "authorizationCode",
            vec![(AUTHORIZATION, &*flow.authorization_url), (TOKEN, &*flow.token_url), (REFRESH, &*flow.refresh_url)],
        ),
        OAuthFlow::ClientCredentials(flow) => {
            ("clientCredentials", vec![(TOKEN, &*flow.token_url), (REFRESH, &*flow.refresh_url)])
        }
        OAuthFlow::Implicit(flow) => {
            ("implicit", vec![(AUTHORIZATION, &*flow.authorization_url), (REFRESH, &*flow.refresh_url)])
        }
        OAuthFlow::Password(flow) => ("password", vec![(TOKEN, &*flow.token_url), (REFRESH, &*flow.refresh_url)]),
        OAuthFlow::DeviceCode(flow) => (
            "deviceCode",
            vec![
                ("deviceAuthorizationUrl", &*flow.device_authorization_url),
                (TOKEN, &*flow.token_url),
                (REFRESH, &*flow.refresh_url),
            ],
        ),
    }
}
