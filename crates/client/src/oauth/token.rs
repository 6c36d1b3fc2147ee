//! A token as a server gives it.

use std::time::Duration;

use longhaul_protocol::Timestamp;
use longhaul_push::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::OAuthError;
use super::scopes::Scopes;
use super::wire::Answer;
use crate::clock::later;

/// How long a token may be, in bytes: no header takes more.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// The longest time for which a token is taken to be valid.
const LIFETIME_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How a token was got.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// By a code that a person entered elsewhere (RFC 8628).
    DeviceCode,
    /// By the client's own credentials (RFC 6749 §4.4).
    ClientCredentials,
}

/// A token, and what its server says of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Token {
    /// What goes with each call, as `Bearer`.
    pub access_token: Secret,
    /// When it runs out, if the server says so.
    pub expires_at: Option<Timestamp>,
    /// What gets the next one, if the server gives that.
    pub refresh_token: Option<Secret>,
    /// What it is good for, if that is something else than was asked for.
    pub scopes: Option<Scopes>,
}

#[derive(Deserialize)]
struct Written {
    access_token: String,
    token_type: String,
    expires_in: Option<Value>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

impl Token {
    /// Reads an answer (RFC 6749 §5.1) to a request that was made at `asked_at`: from then on its time runs.
    pub fn read(answer: &Answer, asked_at: Timestamp) -> Result<Self, OAuthError> {
        let Written { access_token, token_type, expires_in, refresh_token, scope } = answer.read()?;
        if !token_type.eq_ignore_ascii_case("bearer") {
            return Err(answer.invalid("its token_type is not Bearer"));
        }
        let fits =
            |token: &str| (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic());
        if !fits(&access_token) {
            return Err(answer.invalid("its access_token can't be sent in a header"));
        }
        // An empty one is none, as some servers write it.
        let refresh_token = refresh_token.filter(|token| !token.is_empty());
        if refresh_token.as_ref().is_some_and(|token| token.len() > TOKEN_BYTES_MAX) {
            return Err(answer.invalid("its refresh_token is too long"));
        }
        let lifetime = match expires_in {
            None | Some(Value::Null) => None,
            Some(value) => {
                Some(seconds(&value).ok_or_else(|| answer.invalid("its expires_in is no number of seconds"))?)
            }
        };
        Ok(Self {
            access_token: Secret::new(access_token),
            expires_at: lifetime.map(|lifetime| later(asked_at, lifetime.min(LIFETIME_MAX))),
            refresh_token: refresh_token.map(Secret::new),
            // What is no scope is left out: it is for showing alone.
            scopes: scope.and_then(|scope| scope.parse().ok()).filter(|scopes: &Scopes| !scopes.is_empty()),
        })
    }
}

/// A number of seconds, which some servers write as text and some with a fraction.
pub(super) fn seconds(value: &Value) -> Option<Duration> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    // What is past all clocks is as good as for ever.
    number.filter(|seconds: &f64| *seconds >= 0.0).map(|seconds| Duration::from_secs(seconds.min(1e15) as u64))
}
