//! What can go wrong on the way to a token.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::agent::AgentUrl;
use super::store::StoreError;
use crate::error::ClientError;

/// Why there is no token.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The card has no security scheme by which one can log in, or not the one that was asked for.
    #[error("{problem}")]
    Scheme {
        /// What the card has instead.
        problem: String,
    },
    /// An endpoint may not be used.
    #[error("the {what} {url} can't be used: {problem}")]
    Endpoint {
        /// Which endpoint.
        what: &'static str,
        /// Its URL, without the query.
        url: String,
        /// Why not.
        problem: String,
    },
    /// The authorization server does not offer this way to a token.
    #[error("security scheme {scheme:?} offers no {what}")]
    NotOffered {
        /// The scheme's name in the card.
        scheme: String,
        /// What is not offered.
        what: &'static str,
    },
    /// What the caller gave can't be sent.
    #[error("the {what} {problem}")]
    Invalid {
        /// What was given.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The authorization server could not be reached, or gave no whole answer.
    #[error("cannot ask {whom}")]
    Unreachable {
        /// The URL.
        whom: String,
        /// Why.
        source: Box<ClientError>,
    },
    /// The authorization server refused (RFC 6749 §5.2).
    #[error("{whom} refused: {code}{}", described(description.as_deref()))]
    Refused {
        /// The URL.
        whom: String,
        /// Why.
        code: RefusedCode,
        /// What it says of it, on one line, without control characters.
        description: Option<String>,
    },
    /// The answer is neither a token nor a refusal.
    #[error("{whom} answered with HTTP status {status}, which OAuth does not explain")]
    Status {
        /// The URL.
        whom: String,
        /// The status.
        status: u16,
    },
    /// The answer is not what it has to be.
    #[error("{whom} gave an answer that is not one: {what}")]
    InvalidAnswer {
        /// The URL.
        whom: String,
        /// What is wrong with it. Nothing of what it said: that may be a token.
        what: String,
    },
    /// Nobody entered the code while it was valid.
    #[error("the code has run out before anybody entered it (hint: log in again)")]
    CodeExpired,
    /// The person said no.
    #[error("the login was denied at {whom}")]
    Denied {
        /// The URL.
        whom: String,
    },
    /// The token of a login has run out, and there is no way to another but a new login.
    #[error("the login for {agent} has run out (hint: log in again)")]
    LoginNeeded {
        /// The agent.
        agent: AgentUrl,
        /// What the authorization server said to the refresh token, if it was asked.
        source: Option<Arc<OAuthError>>,
    },
    /// The token of a login has run out, and the attempt to get another failed: this one, or that of another call just before.
    #[error("cannot renew the token for {agent}")]
    NotRenewed {
        /// The agent.
        agent: AgentUrl,
        /// Why.
        source: Arc<OAuthError>,
    },
    /// The file of tokens.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn described(description: Option<&str>) -> String {
    description.map_or_else(String::new, |description| format!(": {description}"))
}

impl OAuthError {
    /// Whether the same may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => source.is_transient(),
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::Refused { code, .. } => {
                matches!(code, RefusedCode::ServerError | RefusedCode::TemporarilyUnavailable)
            }
            Self::NotRenewed { source, .. } => source.is_transient(),
            Self::Scheme { .. }
            | Self::Endpoint { .. }
            | Self::NotOffered { .. }
            | Self::Invalid { .. }
            | Self::InvalidAnswer { .. }
            | Self::CodeExpired
            | Self::Denied { .. }
            | Self::LoginNeeded { .. }
            | Self::Store(_) => false,
        }
    }

    pub(super) fn is_refused_as(&self, wanted: &RefusedCode) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }
}

/// Why an authorization server refused (RFC 6749 §5.2, RFC 8628 §3.5).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RefusedCode {
    /// The person has not decided yet.
    AuthorizationPending,
    /// The same, and it was asked too often.
    SlowDown,
    /// The code has run out.
    ExpiredToken,
    /// The person said no.
    AccessDenied,
    /// The client is unknown, or its secret is wrong.
    InvalidClient,
    /// The refresh token or the code is wrong, used up, or of somebody else.
    InvalidGrant,
    /// The request is wrong.
    InvalidRequest,
    /// A scope is unknown, or more than is allowed.
    InvalidScope,
    /// The client may not get a token in this way.
    UnauthorizedClient,
    /// Nobody gets a token in this way.
    UnsupportedGrantType,
    /// The server is at fault.
    ServerError,
    /// The server is busy.
    TemporarilyUnavailable,
    /// Another code, on one line, without control characters.
    Other(String),
}

const CODES: [(&str, RefusedCode); 12] = [
    ("authorization_pending", RefusedCode::AuthorizationPending),
    ("slow_down", RefusedCode::SlowDown),
    ("expired_token", RefusedCode::ExpiredToken),
    ("access_denied", RefusedCode::AccessDenied),
    ("invalid_client", RefusedCode::InvalidClient),
    ("invalid_grant", RefusedCode::InvalidGrant),
    ("invalid_request", RefusedCode::InvalidRequest),
    ("invalid_scope", RefusedCode::InvalidScope),
    ("unauthorized_client", RefusedCode::UnauthorizedClient),
    ("unsupported_grant_type", RefusedCode::UnsupportedGrantType),
    ("server_error", RefusedCode::ServerError),
    ("temporarily_unavailable", RefusedCode::TemporarilyUnavailable),
];

impl RefusedCode {
    pub(super) fn read(text: &str) -> Self {
        let known = CODES.into_iter().find(|(name, _)| *name == text);
        known.map_or_else(|| Self::Other(crate::transport::excerpt(text.as_bytes())), |(_, code)| code)
    }
}

impl fmt::Display for RefusedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(text) => f.write_str(text),
            known => f.write_str(CODES.iter().find(|(_, code)| code == known).map_or("unknown", |(name, _)| name)),
        }
    }
}
