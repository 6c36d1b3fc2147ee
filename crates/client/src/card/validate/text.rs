//! URLs and media types.

use url::Url;

use crate::card::shown;

use super::Findings;

/// An absolute `http` or `https` URL. That an empty one is missing is told with the required members.
pub(super) fn check_url(text: &str, path: &str, findings: &mut Findings) {
    if text.is_empty() {
        return;
    }
    match Url::parse(text) {
        Ok(url) if url.scheme() == "https" => {}
        Ok(url) if url.scheme() == "http" => findings.remark(path, "is without TLS"),
        Ok(_) | Err(_) => findings.error(path, format!("must be an absolute https URL, not {}", shown(text))),
    }
}

/// `type/subtype`, also with a wildcard, with or without parameters.
pub(super) fn check_media_type(text: &str, path: impl FnOnce() -> String, findings: &mut Findings) {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is_media_type = essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    if !is_media_type {
        findings.error(path(), format!("must be a media type such as text/plain, not {}", shown(text)));
    }
}

/// A token of HTTP (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_allowed)
}
