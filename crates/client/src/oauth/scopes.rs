//! What a token is good for, in the words of its server.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How many scopes are asked for at most.
const SCOPES_MAX: usize = 100;
/// How long a scope is at most, in bytes.
const SCOPE_BYTES_MAX: usize = 500;

/// The scopes of a token (RFC 6749 §3.3): a set, in order. Empty: what the server gives by itself.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Scopes(Vec<String>);

/// A text that is no scope.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "{scope:?} is not a scope: 1 to {SCOPE_BYTES_MAX} visible ASCII characters without quotation mark and backslash, {SCOPES_MAX} of them at most"
)]
pub struct InvalidScope {
    /// The text.
    pub scope: String,
}

impl Scopes {
    /// Makes the set of these, whatever their order and however often each is there.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] when one of them can't be a scope, or there are more than 100.
    pub fn new(scopes: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, InvalidScope> {
        let mut all = Vec::new();
        for scope in scopes.into_iter().map(Into::into) {
            if !is_scope(&scope) || all.len() == SCOPES_MAX {
                return Err(InvalidScope { scope: scope.chars().take(SCOPE_BYTES_MAX).collect() });
            }
            all.push(scope);
        }
        all.sort_unstable();
        all.dedup();
        Ok(Self(all))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each scope.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

fn is_scope(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.len() <= SCOPE_BYTES_MAX && text.bytes().all(is_allowed)
}

impl FromStr for Scopes {
    type Err = InvalidScope;

    /// Reads scopes with spaces between them.
    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        Self::new(text.split_ascii_whitespace())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}
