//! Where one logs in for an agent: what its card says, and the metadata that it points at.

use longhaul_protocol::wire::{AgentCard, OAuth2SecurityScheme, OAuthFlow, SecurityScheme, SecuritySchemeKind};
use serde::{Deserialize, Serialize};
use url::Url;

use super::agent::AgentUrl;
use super::endpoint::{Endpoint, without_fragment};
use super::error::OAuthError;
use super::grant::Authorizer;
use super::scopes::Scopes;
use super::token::Grant;
use crate::card::CardOrigin;
use crate::client::FoundCard;

/// How many schemes of a card an error names.
const SCHEMES_NAMED_MAX: usize = 16;

/// Who named the endpoints of a login, which says how far inside they may be.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBy {
    /// The agent's card.
    Card,
    /// The caller.
    Caller,
}

impl NamedBy {
    pub(super) fn origin(self, card: &CardOrigin) -> CardOrigin {
        match self {
            Self::Card => card.clone(),
            Self::Caller => CardOrigin::caller(),
        }
    }
}

/// Where one logs in for an agent, by one of the security schemes of its card.
#[derive(Clone, Debug)]
pub struct AuthorizationServer {
    pub(super) agent: AgentUrl,
    pub(super) scheme: String,
    pub(super) named_by: NamedBy,
    pub(super) token: Endpoint,
    pub(super) device: Option<Endpoint>,
    pub(super) refresh_url: String,
    flow: Option<Grant>,
    scopes: Scopes,
}

/// What is written somewhere; an empty URL is absent.
#[derive(Clone, Debug, Default)]
struct Urls {
    token: String,
    device: String,
    refresh: String,
    metadata: String,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    token_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
}

impl AuthorizationServer {
    /// Whom the login is for.
    #[must_use]
    pub fn agent(&self) -> &AgentUrl {
        &self.agent
    }

    /// The name of the security scheme in the card.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host and port that gets the client's credentials: to be shown before they are given.
    #[must_use]
    pub fn host(&self) -> String {
        let url = Url::parse(&self.token.url).ok();
        url.map_or_else(String::new, |url| url.authority().to_owned())
    }

    /// The way to a token that the card names; none if it names none that this client knows.
    #[must_use]
    pub fn declared(&self) -> Option<Grant> {
        self.flow
    }

    /// Whether a person can log in by a code.
    #[must_use]
    pub fn offers_device_login(&self) -> bool {
        self.device.is_some()
    }

    /// The scopes that the card asks of whoever calls the agent by this scheme.
    #[must_use]
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }
}

impl Authorizer {
    /// Finds out where to log in for the agent: by the scheme of this name, or else by the first that one can log in by, of those
    /// that the card requires before the others. Metadata is fetched only for what the card leaves out.
    ///
    /// # Errors
    ///
    /// [`OAuthError::Scheme`] when there is no such scheme, [`OAuthError::Endpoint`] when it names a URL that may not be used,
    /// [`OAuthError::NotOffered`] when it names no token URL, and what fetching the metadata can end by.
    pub async fn discover(&self, found: &FoundCard, scheme: Option<&str>) -> Result<AuthorizationServer, OAuthError> {
        let card = found.document.card();
        let (name, kind) = scheme_of(card, scheme)?;
        let mut urls = Urls::of(kind);
        if urls.token.is_empty() || (urls.device.is_empty() && flow_of(kind) != Some(Grant::ClientCredentials)) {
            self.complete(&mut urls, &found.origin).await?;
        }
        self.server(found, name, urls, NamedBy::Card)
    }

    /// The same with endpoints that the caller knows. The scheme only has to be one that takes a bearer token.
    ///
    /// # Errors
    ///
    /// [`OAuthError::Scheme`] when there is no such scheme, [`OAuthError::Endpoint`] when a URL can't be used.
    pub fn server_at(
        &self,
        found: &FoundCard,
        scheme: Option<&str>,
        token_url: &str,
        device_authorization_url: Option<&str>,
    ) -> Result<AuthorizationServer, OAuthError> {
        let (name, _) = match scheme_of(found.document.card(), scheme) {
            Ok(found) => found,
            Err(error) => bearer_of(found.document.card(), scheme).ok_or(error)?,
        };
        let device = device_authorization_url.unwrap_or_default().to_owned();
        let urls = Urls { token: token_url.to_owned(), device, ..Urls::default() };
        self.server(found, name, urls, NamedBy::Caller)
    }

    fn server(
        &self,
        found: &FoundCard,
        scheme: &str,
        urls: Urls,
        named_by: NamedBy,
    ) -> Result<AuthorizationServer, OAuthError> {
        let card = found.document.card();
        let origin = named_by.origin(&found.origin);
        let check = |what, url: &str| Endpoint::check(what, url, &origin, &self.policy);
        if urls.token.is_empty() {
            return Err(OAuthError::NotOffered { scheme: scheme.to_owned(), what: "token URL" });
        }
        let token = check("token URL", &urls.token)?;
        let device = match urls.device.as_str() {
            "" => None,
            url => Some(check("device authorization URL", url)?),
        };
        let refresh_url = match urls.refresh.as_str() {
            "" => token.url.clone(),
            url => check("refresh URL", url)?.url,
        };
        let agent = AgentUrl::of(found)
            .ok_or_else(|| OAuthError::Scheme { problem: "the card names no interface to log in for".to_owned() })?;
        let flow = card.security_schemes.get(scheme).and_then(flow_of);
        let scopes = scopes_of(card, scheme);
        Ok(AuthorizationServer { agent, scheme: scheme.to_owned(), named_by, token, device, refresh_url, flow, scopes })
    }

    /// Adds what metadata says (RFC 8414 §3, OpenID Connect Discovery §4) to what the card does not.
    async fn complete(&self, urls: &mut Urls, origin: &CardOrigin) -> Result<(), OAuthError> {
        if urls.metadata.is_empty() {
            return Ok(());
        }
        let endpoint = Endpoint::check("metadata URL", &urls.metadata, origin, &self.policy)?;
        let answer = self.wire(&endpoint)?.get().await?;
        let metadata: Metadata = answer.read()?;
        if !is_issuers(&endpoint.url, &metadata.issuer) {
            return Err(answer.invalid("it is the metadata of another issuer"));
        }
        if urls.token.is_empty() {
            urls.token = metadata.token_endpoint.unwrap_or_default();
        }
        if urls.device.is_empty() {
            urls.device = metadata.device_authorization_endpoint.unwrap_or_default();
        }
        Ok(())
    }
}

impl Urls {
    fn of(scheme: &SecurityScheme) -> Self {
        let oauth2 = match &scheme.scheme {
            Some(SecuritySchemeKind::OAuth2(oauth2)) => oauth2,
            Some(SecuritySchemeKind::OpenIdConnect(connect)) => {
                return Self { metadata: connect.open_id_connect_url.clone(), ..Self::default() };
            }
            Some(
                SecuritySchemeKind::ApiKey(_) | SecuritySchemeKind::HttpAuth(_) | SecuritySchemeKind::MutualTls(_),
            )
            | None => return Self::default(),
        };
        let (token, refresh) = match flow(oauth2) {
            Some(OAuthFlow::AuthorizationCode(flow)) => (&*flow.token_url, &*flow.refresh_url),
            Some(OAuthFlow::ClientCredentials(flow)) => (&*flow.token_url, &*flow.refresh_url),
            Some(OAuthFlow::DeviceCode(flow)) => (&*flow.token_url, &*flow.refresh_url),
            // These two are not in OAuth 2.1.
            Some(OAuthFlow::Implicit(_) | OAuthFlow::Password(_)) | None => ("", ""),
        };
        let device = match flow(oauth2) {
            Some(OAuthFlow::DeviceCode(flow)) => &*flow.device_authorization_url,
            Some(_) | None => "",
        };
        Self {
            token: token.to_owned(),
            device: device.to_owned(),
            refresh: refresh.to_owned(),
            metadata: oauth2.oauth2_metadata_url.clone(),
        }
    }
}

fn flow(oauth2: &OAuth2SecurityScheme) -> Option<&OAuthFlow> {
    oauth2.flows.as_ref().and_then(|flows| flows.flow.as_ref())
}

fn flow_of(scheme: &SecurityScheme) -> Option<Grant> {
    let Some(SecuritySchemeKind::OAuth2(oauth2)) = &scheme.scheme else { return None };
    match flow(oauth2)? {
        OAuthFlow::DeviceCode(_) => Some(Grant::DeviceCode),
        OAuthFlow::ClientCredentials(_) => Some(Grant::ClientCredentials),
        OAuthFlow::AuthorizationCode(_) | OAuthFlow::Implicit(_) | OAuthFlow::Password(_) => None,
    }
}

/// The token URL that the card itself names for a scheme, as an endpoint has it; empty if it names none.
pub(super) fn token_url_of(scheme: &SecurityScheme) -> String {
    without_fragment(&Urls::of(scheme).token)
}

/// Whether a token that one logs in for goes with this scheme.
pub(super) fn takes_bearer(scheme: &SecurityScheme) -> bool {
    match &scheme.scheme {
        Some(SecuritySchemeKind::OAuth2(_) | SecuritySchemeKind::OpenIdConnect(_)) => true,
        Some(SecuritySchemeKind::HttpAuth(http)) => http.scheme.eq_ignore_ascii_case("bearer"),
        Some(SecuritySchemeKind::ApiKey(_) | SecuritySchemeKind::MutualTls(_)) | None => false,
    }
}

fn is_login(scheme: &SecurityScheme) -> bool {
    matches!(&scheme.scheme, Some(SecuritySchemeKind::OAuth2(_) | SecuritySchemeKind::OpenIdConnect(_)))
}

/// The card's schemes: those that it requires, in its order, then all.
fn schemes(card: &AgentCard) -> impl Iterator<Item = (&str, &SecurityScheme)> {
    let required = card.security_requirements.iter().flat_map(|requirement| requirement.schemes.keys());
    let required = required.filter_map(|name| card.security_schemes.get_key_value(name));
    required.chain(&card.security_schemes).map(|(name, scheme)| (name.as_str(), scheme))
}

fn scheme_of<'a>(card: &'a AgentCard, wanted: Option<&str>) -> Result<(&'a str, &'a SecurityScheme), OAuthError> {
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted == name);
    schemes(card).find(|(name, scheme)| is_wanted(name) && is_login(scheme)).ok_or_else(|| {
        let named = card.security_schemes.keys().take(SCHEMES_NAMED_MAX).map(|name| format!("{name:?}"));
        let named = named.collect::<Vec<_>>().join(", ");
        let has = if named.is_empty() { "it has none at all".to_owned() } else { format!("it has {named}") };
        let of_name = wanted.map_or_else(String::new, |name| format!(" with the name {name:?}"));
        OAuthError::Scheme { problem: format!("the card has no scheme of OAuth 2.0 or OpenID Connect{of_name}; {has}") }
    })
}

fn bearer_of<'a>(card: &'a AgentCard, wanted: Option<&str>) -> Option<(&'a str, &'a SecurityScheme)> {
    schemes(card).find(|(name, scheme)| wanted.is_none_or(|wanted| wanted == *name) && takes_bearer(scheme))
}

/// What is no scope is left out: a server refuses less than it should rather than all.
fn scopes_of(card: &AgentCard, scheme: &str) -> Scopes {
    let lists = card.security_requirements.iter().filter_map(|requirement| requirement.schemes.get(scheme));
    lists.flat_map(|scopes| Scopes::new(&scopes.list)).next().unwrap_or_default()
}

/// Whether metadata at this URL may be of this issuer. Where the URL is one of those that the issuer's name leads to, it has to
/// be that of this very issuer (RFC 8414 §3.3), so that no tenant speaks for another; elsewhere the issuer has to be of the
/// same origin.
fn is_issuers(metadata_url: &str, issuer: &str) -> bool {
    const WELL_KNOWN: &str = "/.well-known/";
    let (Ok(at), Ok(issuer)) = (Url::parse(metadata_url), Url::parse(issuer)) else { return false };
    if at.origin() != issuer.origin() || issuer.query().is_some() || issuer.fragment().is_some() {
        return false;
    }
    let Some((before, rest)) = at.path().split_once(WELL_KNOWN) else { return true };
    let after = rest.find('/').and_then(|end| rest.get(end..)).unwrap_or_default();
    let plain = |path: &str| path.trim_end_matches('/').to_owned();
    plain(issuer.path()) == plain(&format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_counts_for_the_issuer_alone_whose_name_leads_to_it() {
        for (at, issuer) in [
            ("https://a.example/.well-known/oauth-authorization-server", "https://a.example"),
            ("https://a.example/.well-known/oauth-authorization-server/t1", "https://a.example/t1"),
            ("https://a.example/t1/.well-known/openid-configuration", "https://a.example/t1/"),
            ("https://a.example/metadata.json", "https://a.example/t1"),
        ] {
            assert!(is_issuers(at, issuer), "{at} {issuer}");
        }
        for (at, issuer) in [
            ("https://a.example/.well-known/oauth-authorization-server/t1", "https://a.example/t2"),
            ("https://a.example/t1/.well-known/openid-configuration", "https://a.example"),
            ("https://a.example/.well-known/openid-configuration", "https://b.example"),
            ("https://a.example/.well-known/openid-configuration", "http://a.example"),
            ("https://a.example/metadata.json", "https://a.example:8443"),
            ("https://a.example/metadata.json", "a"),
        ] {
            assert!(!is_issuers(at, issuer), "{at} {issuer}");
        }
    }
}
