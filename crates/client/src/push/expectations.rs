use std::fmt;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use longhaul_protocol::Timestamp;
use longhaul_push::Secret;
use longhaul_push::sign::{SignedHeaders, SigningSecret, TOLERANCE, verify};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

use super::Refused;

/// The token's header, and what others call it.
const TOKENS: [&str; 2] = ["x-a2a-notification-token", "a2a-notification-token"];
const VERSION: &str = "a2a-version";
pub(super) const ID: &str = "webhook-id";
const TIMESTAMP: &str = "webhook-timestamp";
const SIGNATURE: &str = "webhook-signature";

/// What a request must bring to be taken, and how much is remembered. What is `None` or empty is not asked for.
#[derive(Clone)]
pub struct Expectations {
    /// The `token` of the push config.
    pub token: Option<Secret>,
    /// `authentication.scheme` and `authentication.credentials` of the push config.
    pub authorization: Option<(String, Secret)>,
    /// Secrets of the Standard Webhooks scheme, of which one must have signed: several while one is being replaced.
    pub signing: Vec<SigningSecret>,
    /// How old a signature may be, and how far ahead. Default 5 min.
    pub tolerance: Duration,
    /// The largest body, in bytes. Default 16 MiB.
    pub body_bytes_max: usize,
    /// Of how many configs it is remembered how far they were delivered, and of how many other ids that they were. Of those that
    /// were longest quiet an event may be handed over again. Default 10,000, at least 1.
    pub remembered_max: usize,
    /// Whether whoever finds the address may send. Default no: something must be asked for.
    pub is_open: bool,
}

/// Nothing is asked for, so anybody could send.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("neither a token, an authorization nor a signature is asked for (hint: set one, or is_open)")]
pub struct Unprotected;

impl Default for Expectations {
    fn default() -> Self {
        Self {
            token: None,
            authorization: None,
            signing: Vec::new(),
            tolerance: TOLERANCE,
            body_bytes_max: 16 * 1024 * 1024,
            remembered_max: 10_000,
            is_open: false,
        }
    }
}

impl fmt::Debug for Expectations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Expectations").finish_non_exhaustive()
    }
}

impl Expectations {
    /// Asks for the token of the push config.
    #[must_use]
    pub fn token(token: &str) -> Self {
        Self { token: Some(Secret::new(token)), ..Self::default() }
    }

    /// Asks for a signature by one of these secrets.
    #[must_use]
    pub fn signed(secrets: Vec<SigningSecret>) -> Self {
        Self { signing: secrets, ..Self::default() }
    }

    pub(super) fn is_unprotected(&self) -> bool {
        self.token.is_none() && self.authorization.is_none() && self.signing.is_empty() && !self.is_open
    }

    /// Whether a request is the sender's, and of a form that can be read.
    pub(super) fn check(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), Refused> {
        if body.len() > self.body_bytes_max {
            return Err(Refused::TooLarge(self.body_bytes_max));
        }
        if let Some(token) = &self.token {
            let given = TOKENS.iter().flat_map(|name| headers.get_all(*name));
            only_these(given, |value| is_same(value, token.reveal().as_bytes())).ok_or(Refused::Token)?;
        }
        if let Some((scheme, credentials)) = &self.authorization {
            let given = headers.get_all(AUTHORIZATION).into_iter();
            let fits = |value: &[u8]| is_authorization(value, scheme, credentials);
            only_these(given, fits).ok_or(Refused::Authorization)?;
        }
        if !self.signing.is_empty() {
            let [id, timestamp, signature] = [ID, TIMESTAMP, SIGNATURE].map(|name| one(headers, name));
            let (Some(id), Some(timestamp), Some(signature)) = (id, timestamp, signature) else {
                return Err(Refused::Unsigned);
            };
            let signed = SignedHeaders { id, timestamp, signature };
            verify(&self.signing, signed, body, now, self.tolerance).map_err(Refused::Signature)?;
        }
        // Who is not the sender does not learn what else is wrong.
        if !one(headers, CONTENT_TYPE.as_str()).is_some_and(is_json) {
            return Err(Refused::ContentType);
        }
        match one(headers, VERSION) {
            Some(version) if version != "1.0" && !version.starts_with("1.0.") => Err(Refused::Version),
            Some(_) | None => Ok(()),
        }
    }
}

/// The value of a header that is there once.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next().filter(|_| values.next().is_none());
    value.and_then(|value| value.to_str().ok())
}

/// `Some` when there are values, and each of them fits.
fn only_these<'a>(mut values: impl Iterator<Item = &'a HeaderValue>, fits: impl Fn(&[u8]) -> bool) -> Option<()> {
    let first = fits(values.next()?.as_bytes());
    (values.all(|value| fits(value.as_bytes())) && first).then_some(())
}

/// Tells by its time only whether they are of one length.
fn is_same(given: &[u8], wanted: &[u8]) -> bool {
    given.ct_eq(wanted).into()
}

fn is_authorization(given: &[u8], scheme: &str, credentials: &Secret) -> bool {
    let Some((given_scheme, given)) = given.split_at_checked(scheme.len()) else { return false };
    let Some(given) = given.strip_prefix(b" ") else { return false };
    given_scheme.eq_ignore_ascii_case(scheme.as_bytes()) && is_same(given, credentials.reveal().as_bytes())
}

fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    ["application/a2a+json", "application/json"].into_iter().any(|known| known.eq_ignore_ascii_case(media_type))
}
