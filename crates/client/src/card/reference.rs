//! What a caller names an agent by.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use longhaul_push::guard::{Host, Target, UrlRefused};
use url::Url;

use crate::CardError;

use super::endpoint::{is_loopback, spelling};

/// Where the card of an origin is (A2A §8.2).
pub const WELL_KNOWN_PATH: &str = "/.well-known/agent-card.json";

/// Where drafts before 0.3 had it.
pub const WELL_KNOWN_PATH_OLD: &str = "/.well-known/agent.json";

/// Where a card is to be had, as text names it (CLI contract §10.1).
///
/// - `agent.example.com`, `localhost:4100`, `https://agent.example.com`: an origin. Its card is at the well-known path. Without
///   a scheme it is `https`; for `localhost` and loopback addresses, `http`.
/// - `https://agent.example.com/cards/one.json`: the card itself.
/// - `https://agent.example.com/agents/one`: the card itself, or, where there is none, an agent below a prefix with the
///   well-known path after it.
/// - `file:///home/me/card.json`, `./card.json`, `cards/one.json`, `card.json`: a file. Without a scheme, text with a slash is one
///   unless it begins as no file does: with a port, an address, or `localhost`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CardReference(Kind);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Kind {
    Url(Url),
    File(PathBuf),
}

impl CardReference {
    /// The path, if it is a file.
    #[must_use]
    pub fn file(&self) -> Option<&PathBuf> {
        match &self.0 {
            Kind::Url(_) => None,
            Kind::File(path) => Some(path),
        }
    }

    /// The URLs at which the card may be, none for a file. The next one is for a 404 at the one before, and for nothing else.
    #[must_use]
    pub fn candidates(&self) -> Vec<String> {
        let Kind::Url(url) = &self.0 else { return Vec::new() };
        let is_origin = url.path() == "/" && url.query().is_none();
        // A name that ends so is a document: nothing is below it.
        let is_document = url.path().ends_with(".json") || url.query().is_some();
        let mut candidates = Vec::new();
        if !is_origin {
            candidates.push(url.to_string());
        }
        if !is_document {
            let prefix = url.as_str().trim_end_matches('/');
            candidates.extend([WELL_KNOWN_PATH, WELL_KNOWN_PATH_OLD].map(|path| format!("{prefix}{path}")));
        }
        candidates
    }
}

impl fmt::Display for CardReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Url(url) => url.fmt(f),
            Kind::File(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for CardReference {
    type Err = CardError;

    /// # Errors
    ///
    /// [`CardError::Reference`] if it is none of these, or names a user.
    fn from_str(text: &str) -> Result<Self, CardError> {
        let text = text.trim();
        let kind = match text.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => file_of_url(text).map(Kind::File),
            Some(_) => url(text).map(Kind::Url),
            None if text.is_empty() => Err("it is empty (hint: agent.example.com, a URL, or a file)".to_owned()),
            None if is_path(text) => Ok(Kind::File(PathBuf::from(text))),
            None => host(text).map(Kind::Url),
        };
        kind.map(Self).map_err(|problem| CardError::Reference { reference: without_user(text), problem })
    }
}

/// Errors are shown and logged, so what may be a password is not in them.
pub(super) fn without_user(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => text.to_owned(),
    }
}

fn file_of_url(text: &str) -> Result<PathBuf, String> {
    let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
    path.ok_or_else(|| "it is no URL of a file on this machine (hint: file:///home/me/card.json)".to_owned())
}

/// Whether text without a scheme is a path. Names of hosts have no slash, and no host has a name that ends as JSON files do.
fn is_path(text: &str) -> bool {
    if text.starts_with(['/', '.', '~']) || text.contains('\\') {
        return true;
    }
    match text.split_once('/') {
        None => text.to_ascii_lowercase().ends_with(".json"),
        Some((_, "")) => false,
        Some((first, _)) => !can_only_be_host(first),
    }
}

fn can_only_be_host(first: &str) -> bool {
    let has_port = first
        .rsplit_once(':')
        .is_some_and(|(name, port)| !name.is_empty() && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let has_address =
        Target::parse(&format!("https://{first}")).is_ok_and(|target| matches!(target.host(), Host::Address(_)));
    has_port || has_address || first.eq_ignore_ascii_case("localhost")
}

/// A host with or without a port, and what may follow it.
fn host(text: &str) -> Result<Url, String> {
    let bracketed = text.parse::<Ipv6Addr>().map(|address| format!("[{address}]"));
    let text = bracketed.as_deref().unwrap_or(text);
    let target = Target::parse(&format!("https://{text}")).map_err(problem)?;
    let scheme = if is_loopback(&target) { "http" } else { "https" };
    url(&format!("{scheme}://{text}"))
}

fn url(text: &str) -> Result<Url, String> {
    let target = Target::parse(text).map_err(problem)?;
    // Read again from the one spelling, which has no fragment: that is never sent.
    Url::parse(&spelling(&target)).map_err(|_| problem(UrlRefused::Syntax))
}

fn problem(refused: UrlRefused) -> String {
    match refused {
        UrlRefused::Scheme | UrlRefused::Http => {
            "it must be a host, an http or https URL, or a file (hint: https://agent.example.com)".to_owned()
        }
        UrlRefused::UserInfo => "it must name no user or password (hint: give credentials as such)".to_owned(),
        UrlRefused::Syntax => "it is no URL (hint: https://agent.example.com)".to_owned(),
        other @ (UrlRefused::TooLong
        | UrlRefused::Characters
        | UrlRefused::Host
        | UrlRefused::Port(_)
        | UrlRefused::Address(_)) => format!("it {other}"),
    }
}

#[cfg(test)]
mod tests;
