//! Which credential goes with a call, and where (§4.5, §7.3).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use longhaul_protocol::wire::{AgentCard, SecurityRequirement, SecurityScheme, SecuritySchemeKind};
use longhaul_push::Secret;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::{Cause, ClientError};

/// How many alternatives of a card's security are looked at.
const ALTERNATIVES_MAX: usize = 64;

/// A credential, in the form that it has before a scheme says where it goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Credential {
    /// A bearer token: for HTTP's scheme `Bearer`, OAuth 2.0 and OpenID Connect.
    Bearer(Secret),
    /// A user and a password, for HTTP's scheme `Basic`.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// An API key.
    ApiKey(Secret),
}

/// Where credentials come from. Asked at each attempt, so that a token that ran out can be replaced.
#[async_trait]
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// The credential for the scheme that the card names so; none if there is none for it. Has the time of an attempt
    /// ([`ClientBuilder::timeout`](crate::ClientBuilder::timeout)), and is dropped after that.
    ///
    /// # Errors
    ///
    /// When there should be one, and it can't be had.
    async fn credential(&self, name: &str, scheme: &SecurityScheme) -> Result<Option<Credential>, Cause>;

    /// The credential for an agent whose card declares no scheme at all. By default none: nothing says that it would be for
    /// this agent.
    ///
    /// # Errors
    ///
    /// As [`credential`](Self::credential).
    async fn undeclared(&self) -> Result<Option<Credential>, Cause> {
        Ok(None)
    }
}

/// Credentials that are known beforehand: whichever fits a scheme is given to it.
#[derive(Clone, Debug, Default)]
pub struct StaticCredentials {
    /// For `Bearer`, OAuth 2.0 and OpenID Connect.
    pub bearer: Option<Secret>,
    /// For API keys.
    pub api_key: Option<Secret>,
    /// For `Basic`.
    pub basic: Option<(String, Secret)>,
}

#[async_trait]
impl CredentialSource for StaticCredentials {
    async fn credential(&self, _: &str, scheme: &SecurityScheme) -> Result<Option<Credential>, Cause> {
        let bearer = || self.bearer.clone().map(Credential::Bearer);
        let basic = || self.basic.clone().map(|(user, password)| Credential::Basic { user, password });
        Ok(match &scheme.scheme {
            Some(SecuritySchemeKind::ApiKey(_)) => self.api_key.clone().map(Credential::ApiKey),
            Some(SecuritySchemeKind::HttpAuth(http)) if http.scheme.eq_ignore_ascii_case("bearer") => bearer(),
            Some(SecuritySchemeKind::HttpAuth(http)) if http.scheme.eq_ignore_ascii_case("basic") => basic(),
            Some(SecuritySchemeKind::OAuth2(_) | SecuritySchemeKind::OpenIdConnect(_)) => bearer(),
            Some(SecuritySchemeKind::HttpAuth(_) | SecuritySchemeKind::MutualTls(_)) | None => None,
        })
    }

    /// The bearer token, which was given for this agent; an API key has no place without a scheme.
    async fn undeclared(&self) -> Result<Option<Credential>, Cause> {
        Ok(self.bearer.clone().map(Credential::Bearer))
    }
}

/// What credentials add to a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attached {
    pub headers: HeaderMap,
    /// Parameters of the URL, encoded.
    pub query: String,
}

/// Finds the credentials for the first of the card's alternatives for which all are there. A scheme of client certificates asks
/// for nothing here: the connection has it.
///
/// # Errors
///
/// [`ClientError::Credential`] when a source fails; [`ClientError::Unauthorized`] never: whether to call without is up to the
/// agent, and its refusal says more.
pub(crate) async fn attach(card: &AgentCard, source: &dyn CredentialSource) -> Result<Attached, ClientError> {
    if card.security_requirements.is_empty() && card.security_schemes.is_empty() {
        let failed = |source| ClientError::Credential { scheme: String::new(), source };
        let credential = source.undeclared().await.map_err(failed)?;
        return credential.map_or_else(|| Ok(Attached::default()), |credential| bearer_or_basic(&credential));
    }
    // A card that declares schemes and requires none takes any of them.
    let alternatives: Vec<Vec<&str>> = match card.security_requirements.as_slice() {
        [] => card.security_schemes.keys().take(ALTERNATIVES_MAX).map(|name| vec![name.as_str()]).collect(),
        required => required.iter().take(ALTERNATIVES_MAX).map(names).collect(),
    };
    for alternative in &alternatives {
        if let Some(attached) = all_of(card, alternative, source).await? {
            return Ok(attached);
        }
    }
    Ok(Attached::default())
}

/// The schemes that an alternative asks for.
fn names(alternative: &SecurityRequirement) -> Vec<&str> {
    alternative.schemes.keys().map(String::as_str).collect()
}

/// The credentials for all of these schemes, if all of them are there.
async fn all_of(
    card: &AgentCard,
    names: &[&str],
    source: &dyn CredentialSource,
) -> Result<Option<Attached>, ClientError> {
    let mut attached = Attached::default();
    for &name in names {
        let Some(scheme) = card.security_schemes.get(name) else { return Ok(None) };
        if matches!(scheme.scheme, Some(SecuritySchemeKind::MutualTls(_))) {
            continue;
        }
        let failed = |source| ClientError::Credential { scheme: name.to_owned(), source };
        let Some(credential) = source.credential(name, scheme).await.map_err(failed)? else { return Ok(None) };
        attached.add(name, scheme, &credential)?;
    }
    Ok(Some(attached))
}

fn bearer_or_basic(credential: &Credential) -> Result<Attached, ClientError> {
    let mut attached = Attached::default();
    match credential {
        Credential::Bearer(token) => attached.authorization("", format!("Bearer {}", token.reveal()))?,
        Credential::Basic { user, password } => attached.authorization("", basic(user, password))?,
        Credential::ApiKey(_) => {}
    }
    Ok(attached)
}

fn basic(user: &str, password: &Secret) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())))
}

impl Attached {
    fn add(&mut self, name: &str, scheme: &SecurityScheme, credential: &Credential) -> Result<(), ClientError> {
        match (&scheme.scheme, credential) {
            (Some(SecuritySchemeKind::ApiKey(place)), Credential::ApiKey(key)) => {
                match place.location.to_ascii_lowercase().as_str() {
                    "header" => self.header(name, &place.name, key.reveal()),
                    "cookie" => self.header(name, header::COOKIE.as_str(), &format!("{}={}", place.name, key.reveal())),
                    "query" => {
                        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
                        let and = if self.query.is_empty() { "" } else { "&" };
                        self.query.push_str(&format!("{and}{}={}", encoded(&place.name), encoded(key.reveal())));
                        Ok(())
                    }
                    other => Err(unusable(
                        name,
                        format!("the card puts the key in {other:?}, not in header, query or cookie"),
                    )),
                }
            }
            (Some(_), Credential::Bearer(token)) => self.authorization(name, format!("Bearer {}", token.reveal())),
            (Some(_), Credential::Basic { user, password }) => self.authorization(name, basic(user, password)),
            (Some(_) | None, Credential::ApiKey(_)) | (None, _) => {
                Err(unusable(name, "the credential does not fit the scheme".to_owned()))
            }
        }
    }

    fn authorization(&mut self, scheme: &str, value: String) -> Result<(), ClientError> {
        self.header(scheme, header::AUTHORIZATION.as_str(), &value)
    }

    fn header(&mut self, scheme: &str, name: &str, value: &str) -> Result<(), ClientError> {
        let name =
            HeaderName::try_from(name).map_err(|_| unusable(scheme, format!("{name:?} is no name of a header")))?;
        // The names that frame a request are not for a card to choose.
        if [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION].contains(&name) {
            return Err(unusable(scheme, format!("{name} is no header for a key")));
        }
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| unusable(scheme, "the credential holds characters that no header can".to_owned()))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }
}

/// The source did not answer in time. Nothing was sent.
pub(crate) fn late(after: Duration) -> ClientError {
    let source = format!("its source gave no answer within {} s", after.as_secs_f64());
    ClientError::Credential { scheme: String::new(), source: source.into() }
}

/// The card puts a key where gRPC has nothing. Sent without it, the call would be refused, and nobody knew why.
pub(crate) fn no_query() -> ClientError {
    let source = "the card puts the API key in the query of a URL, which gRPC has not (hint: prefer another binding)";
    ClientError::Credential { scheme: String::new(), source: source.into() }
}

fn unusable(scheme: &str, why: String) -> ClientError {
    ClientError::Credential { scheme: scheme.to_owned(), source: why.into() }
}
