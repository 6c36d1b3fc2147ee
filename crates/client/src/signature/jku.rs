//! Which key sets a card may point at.

use std::str::FromStr;

use thiserror::Error;
use url::Url;

/// The key sets that a `jku` may name. Empty unless an operator fills it, and then no `jku` is followed.
///
/// Whoever controls an allowed key set can sign *any* card: a `jku` is taken for where the key is, not for whose card it may
/// sign. Name sets of those whom you trust that far, and exact URLs rather than origins where others can publish files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct JkuAllowList {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Entry {
    Exactly(Url),
    Origin(url::Origin),
}

/// Why a text is no entry of an allow-list.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{entry:?} can't be allowed as jku: {problem}")]
pub struct JkuError {
    /// What was given.
    pub entry: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl JkuAllowList {
    /// Adds an `https` URL. One without path and query (`https://example.com`, `https://example.com:8443/`) allows every URL of
    /// that origin; any other allows itself alone, query included.
    ///
    /// # Errors
    ///
    /// [`JkuError`] when it is no URL of `https`, or has credentials or a fragment.
    pub fn allow(&mut self, entry: &str) -> Result<(), JkuError> {
        let url = readable(entry).map_err(|problem| JkuError { entry: entry.to_owned(), problem })?;
        let is_origin = url.path() == "/" && url.query().is_none();
        self.entries.push(if is_origin { Entry::Origin(url.origin()) } else { Entry::Exactly(url) });
        Ok(())
    }

    /// Whether nothing is allowed.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The URL that `jku` names, if it is allowed.
    pub(super) fn allowed(&self, jku: &str) -> Option<Url> {
        let url = readable(jku).ok()?;
        let is_allowed = self.entries.iter().any(|entry| match entry {
            Entry::Exactly(allowed) => *allowed == url,
            Entry::Origin(origin) => *origin == url.origin(),
        });
        is_allowed.then_some(url)
    }
}

impl FromStr for JkuAllowList {
    type Err = JkuError;

    /// Reads a list with one entry.
    fn from_str(entry: &str) -> Result<Self, JkuError> {
        let mut list = Self::default();
        list.allow(entry)?;
        Ok(list)
    }
}

fn readable(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "it is not an absolute URL")?;
    if url.scheme() != "https" {
        return Err("only https is accepted");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has credentials");
    }
    if url.fragment().is_some() {
        return Err("it has a fragment");
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_url_allows_itself_alone() {
        let list: JkuAllowList = "https://keys.example/a/jwks.json?v=1".parse().unwrap();
        for same in ["https://keys.example/a/jwks.json?v=1", "HTTPS://KEYS.example:443/a/b/../jwks.json?v=1"] {
            assert_eq!(list.allowed(same).unwrap().as_str(), "https://keys.example/a/jwks.json?v=1");
        }
        for other in [
            "https://keys.example/a/jwks.json",
            "https://keys.example/a/jwks.json?v=2",
            "https://keys.example/a/jwks.json?v=1#x",
            "https://keys.example:8443/a/jwks.json?v=1",
            "https://keys.example.evil/a/jwks.json?v=1",
            "https://keys.example@evil/a/jwks.json?v=1",
            "http://keys.example/a/jwks.json?v=1",
            "/a/jwks.json?v=1",
            "",
        ] {
            assert_eq!(list.allowed(other), None, "{other}");
        }
    }

    #[test]
    fn an_origin_allows_all_its_urls_and_no_other_port_or_host() {
        let list: JkuAllowList = "https://keys.example".parse().unwrap();
        assert!(list.allowed("https://keys.example/any?x").is_some());
        for other in
            ["https://keys.example:444/", "https://a.keys.example/", "http://keys.example/", "https://u@keys.example/"]
        {
            assert_eq!(list.allowed(other), None, "{other}");
        }
        assert_eq!(JkuAllowList::default().allowed("https://keys.example/"), None);
    }

    #[test]
    fn what_is_no_https_url_can_not_be_allowed() {
        for entry in
            ["", "keys.example", "http://a", "https://", "https://u:p@a/", "https://a/#f", "file:///a", "data:,x"]
        {
            assert!(JkuAllowList::from_str(entry).is_err(), "{entry}");
        }
    }
}
