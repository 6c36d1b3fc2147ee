use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request};
use http_body_util::Full;
use longhaul_protocol::Timestamp;
use thiserror::Error;

use super::Delivery;
use crate::guard::Target;
use crate::secret::Secret;
use crate::sign::{is_signable_id, sign_all};

/// The longest `authentication.scheme`, in bytes.
pub const SCHEME_BYTES_MAX: usize = 64;
/// The longest `authentication.credentials`, in bytes.
pub const CREDENTIALS_BYTES_MAX: usize = 8192;
/// The longest `token`, in bytes.
pub const TOKEN_BYTES_MAX: usize = 4096;
const ID_BYTES_MAX: usize = 256;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("longhaul/", env!("CARGO_PKG_VERSION")));
const NOTIFICATION_TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");
const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Why a field can't be sent as a header. Never shows what is in it.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{field} {must}")]
pub struct FieldRefused {
    /// The field of the config, as the protocol spells it.
    pub field: &'static str,
    /// What it must be.
    pub must: &'static str,
}

/// Checks what a config says about authentication, to be asked when it is made.
///
/// # Errors
///
/// [`FieldRefused`] when a field is too long or holds what would end a header and begin another.
pub fn check_fields(
    scheme: Option<&str>,
    credentials: Option<&Secret>,
    token: Option<&Secret>,
) -> Result<(), FieldRefused> {
    authorization(scheme, credentials)?;
    notification_token(token)?;
    Ok(())
}

/// The request of one attempt.
pub(super) fn build(
    delivery: &Delivery,
    target: &Target,
    now: Timestamp,
) -> Result<Request<Full<Bytes>>, FieldRefused> {
    let mut request = Request::post(http::Uri::from(target.path_and_query().clone()))
        .body(Full::new(delivery.body.clone()))
        .map_err(|_| FieldRefused { field: "url", must: "must be a URL" })?;
    fill(request.headers_mut(), delivery, target, now)?;
    Ok(request)
}

fn fill(headers: &mut HeaderMap, delivery: &Delivery, target: &Target, now: Timestamp) -> Result<(), FieldRefused> {
    headers.insert(HOST, visible("url", target.authority())?);
    headers.insert(CONTENT_TYPE, visible("media type", delivery.media_type)?);
    headers.insert(USER_AGENT, AGENT);
    headers.insert(VERSION, visible("version", &delivery.version)?);
    if let Some(value) = authorization(delivery.scheme.as_deref(), delivery.credentials.as_ref())? {
        headers.insert(AUTHORIZATION, value);
    }
    if let Some(value) = notification_token(delivery.token.as_ref())? {
        headers.insert(NOTIFICATION_TOKEN, value);
    }
    let id = &delivery.id;
    if !is_signable_id(id) || id.len() > ID_BYTES_MAX {
        return Err(FieldRefused { field: "id", must: "must be visible ASCII without a full stop" });
    }
    headers.insert(ID, visible("id", id)?);
    headers.insert(TIMESTAMP, HeaderValue::from(now.seconds()));
    if !delivery.signing.is_empty() {
        let signature = sign_all(&delivery.signing, id, now.seconds(), &delivery.body);
        headers.insert(SIGNATURE, visible("signature", &signature)?);
    }
    Ok(())
}

/// `Authorization`, if there are credentials. The schemes that everybody knows are written as everybody writes them, for
/// receivers that compare them by letter.
fn authorization(scheme: Option<&str>, credentials: Option<&Secret>) -> Result<Option<HeaderValue>, FieldRefused> {
    const SCHEME: &str = "authentication.scheme";
    const CREDENTIALS: &str = "authentication.credentials";
    let credentials = credentials.filter(|credentials| !credentials.reveal().is_empty());
    let Some(scheme) = scheme.filter(|scheme| !scheme.is_empty()) else {
        return match credentials {
            Some(_) => Err(FieldRefused { field: SCHEME, must: "must be there if there are credentials" }),
            None => Ok(None),
        };
    };
    if scheme.len() > SCHEME_BYTES_MAX || !scheme.bytes().all(is_token_byte) {
        return Err(FieldRefused { field: SCHEME, must: "must be the name of a scheme, such as Bearer" });
    }
    let Some(credentials) = credentials else { return Ok(None) };
    let scheme = ["Bearer", "Basic"].into_iter().find(|known| known.eq_ignore_ascii_case(scheme)).unwrap_or(scheme);
    let credentials = bounded(CREDENTIALS, credentials.reveal(), CREDENTIALS_BYTES_MAX)?;
    visible(CREDENTIALS, credentials)?;
    sensitive(CREDENTIALS, &format!("{scheme} {credentials}")).map(Some)
}

fn notification_token(token: Option<&Secret>) -> Result<Option<HeaderValue>, FieldRefused> {
    let Some(token) = token.filter(|token| !token.reveal().is_empty()) else { return Ok(None) };
    sensitive("token", bounded("token", token.reveal(), TOKEN_BYTES_MAX)?).map(Some)
}

fn bounded<'a>(field: &'static str, text: &'a str, bytes_max: usize) -> Result<&'a str, FieldRefused> {
    if text.len() > bytes_max { Err(FieldRefused { field, must: "is too long" }) } else { Ok(text) }
}

fn sensitive(field: &'static str, text: &str) -> Result<HeaderValue, FieldRefused> {
    let mut value = visible(field, text)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Visible ASCII, with spaces inside.
fn visible(field: &'static str, text: &str) -> Result<HeaderValue, FieldRefused> {
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let is_trimmed = !text.starts_with(' ') && !text.ends_with(' ');
    match HeaderValue::from_str(text) {
        Ok(value) if is_visible && is_trimmed => Ok(value),
        _ => Err(FieldRefused { field, must: "must be visible ASCII, with no space at either end" }),
    }
}

/// Of a `token` (RFC 9110 §5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scheme: Option<&str>, credentials: Option<&str>, token: Option<&str>) -> Result<(), &'static str> {
        let credentials = credentials.map(Secret::new);
        let token = token.map(Secret::new);
        check_fields(scheme, credentials.as_ref(), token.as_ref()).map_err(|refused| refused.field)
    }

    fn shown(scheme: &str, credentials: &str) -> String {
        let value = authorization(Some(scheme), Some(&Secret::new(credentials))).unwrap().unwrap();
        assert!(value.is_sensitive());
        value.to_str().unwrap().to_owned()
    }

    #[test]
    fn known_schemes_are_written_in_one_way_and_others_as_they_are() {
        assert_eq!(shown("bearer", "abc"), "Bearer abc");
        assert_eq!(shown("BASIC", "dTpw"), "Basic dTpw");
        assert_eq!(shown("x-Key", "id=\"a b\", c=d"), "x-Key id=\"a b\", c=d");
    }

    #[test]
    fn what_would_make_another_header_is_refused_by_its_field() {
        const SCHEME: &str = "authentication.scheme";
        const CREDENTIALS: &str = "authentication.credentials";
        for bad in ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\tb", "é", "\u{7f}", " a", "a "] {
            assert_eq!(check(Some(bad), Some("c"), None), Err(SCHEME), "{bad:?}");
            assert_eq!(check(Some("Bearer"), Some(bad), None), Err(CREDENTIALS), "{bad:?}");
            assert_eq!(check(None, None, Some(bad)), Err("token"), "{bad:?}");
        }
        assert_eq!(check(Some("a b"), Some("c"), None), Err(SCHEME));
        assert_eq!(check(None, Some("c"), None), Err(SCHEME));
        assert_eq!(check(Some("Bearer"), Some(&"a".repeat(CREDENTIALS_BYTES_MAX + 1)), None), Err(CREDENTIALS));
        assert_eq!(check(None, None, Some(&"a".repeat(TOKEN_BYTES_MAX + 1))), Err("token"));
        assert_eq!(check(Some(&"a".repeat(SCHEME_BYTES_MAX + 1)), None, None), Err(SCHEME));
    }

    #[test]
    fn fields_that_are_not_there_are_fine() {
        assert_eq!(check(None, None, None), Ok(()));
        assert_eq!(check(Some("Bearer"), None, None), Ok(()));
        assert_eq!(check(Some(""), Some(""), Some("")), Ok(()));
    }

    #[test]
    fn a_refusal_does_not_show_what_was_refused() {
        let refused = check_fields(Some("Bearer"), Some(&Secret::new("s3cret\n")), None).unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("s3cret"));
    }
}
