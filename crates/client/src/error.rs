//! What can go wrong on the caller's side.

use std::fmt;
use std::time::Duration;

use longhaul_protocol::{A2aError, ErrorCode};
use thiserror::Error;

use crate::card::ProtocolVersion;

/// The longest that a peer can ask to be left alone. More is as good as a refusal, and may not even fit a clock.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The cause of an error, whatever library it comes from.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call came to nothing. The same from each binding.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The agent answered with an error.
    #[error("{0}")]
    Agent(AgentError),
    /// The agent, or something before it, wants other credentials or none of ours: 401, 403, `UNAUTHENTICATED` or
    /// `PERMISSION_DENIED`.
    #[error("{whom} refused the credentials: {message}")]
    Unauthorized {
        /// The URL that was called.
        whom: String,
        /// What it said.
        message: String,
        /// The challenge of `WWW-Authenticate`, if there was one.
        challenge: Option<String>,
    },
    /// Something answered that does not speak A2A: a proxy, another server.
    #[error("{whom} answered with HTTP status {status}, which no A2A error explains{}", said(excerpt))]
    Http {
        /// The URL that was called.
        whom: String,
        /// The status.
        status: u16,
        /// The beginning of the body, without control characters.
        excerpt: String,
        /// What `Retry-After` says.
        retry_after: Option<Duration>,
    },
    /// No connection came about: name, address, TCP, TLS, or a proxy.
    #[error("cannot connect to {whom}")]
    Connect {
        /// What was to be connected to.
        whom: String,
        /// Why it was not.
        source: Cause,
    },
    /// The connection broke after the request had been sent: whether the agent acted on it is not known.
    #[error("the connection to {whom} broke before the answer was complete")]
    Broken {
        /// The URL that was called.
        whom: String,
        /// How.
        source: Cause,
    },
    /// No answer within the time.
    #[error("{whom} gave no answer within {} s", after.as_secs_f64())]
    Timeout {
        /// The URL that was called.
        whom: String,
        /// The time that it had.
        after: Duration,
    },
    /// The answer is none: not JSON, not the message that the operation answers with, for another request or task.
    #[error("{whom} gave an answer that is not one: {what}")]
    InvalidAnswer {
        /// The URL that was called.
        whom: String,
        /// What is wrong with it.
        what: String,
    },
    /// The answer is larger than the limit.
    #[error("{whom} sent more than {bytes_max} bytes in {what}")]
    TooLarge {
        /// The URL that was called.
        whom: String,
        /// What was larger: an answer, an event of a stream, headers.
        what: &'static str,
        /// The limit.
        bytes_max: usize,
    },
    /// The card could not be had, read, or used.
    #[error(transparent)]
    Card(#[from] CardError),
    /// The card says that the agent does not offer this.
    #[error("the agent does not offer {what}: its card says so")]
    NotOffered {
        /// What was asked for, such as `streaming`.
        what: &'static str,
    },
    /// What the caller gave can't be sent.
    #[error("{field} {problem}")]
    Invalid {
        /// The member or the option, as the caller knows it.
        field: String,
        /// What is wrong with it and what is allowed.
        problem: String,
    },
    /// A policy of this client forbids it: an address inside, another origin, a credential that would go astray.
    #[error("{what}")]
    Forbidden {
        /// What is forbidden, and by what.
        what: String,
    },
    /// A credential could not be had.
    #[error("cannot get a credential{}", for_scheme(scheme))]
    Credential {
        /// The name of the scheme in the card; empty where it is not for a single one.
        scheme: String,
        /// Why.
        source: Cause,
    },
    /// The client itself can't be set up.
    #[error("cannot {action}")]
    Setup {
        /// What was attempted.
        action: String,
        /// Why it failed.
        source: Cause,
    },
}

fn said(excerpt: &str) -> String {
    if excerpt.is_empty() { String::new() } else { format!(": {excerpt}") }
}

fn for_scheme(scheme: &str) -> String {
    if scheme.is_empty() { String::new() } else { format!(" for security scheme {scheme:?}") }
}

impl ClientError {
    /// The error that the agent answered with, if it is one.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentError> {
        match self {
            Self::Agent(error) => Some(error),
            _ => None,
        }
    }

    /// Which A2A error the agent answered with, if it is one that the protocol knows.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        self.agent().and_then(|error| error.code)
    }

    /// Whether the agent cannot have acted on the request: it was not sent, or was refused as a whole.
    ///
    /// 503 and `UNAVAILABLE` are no such promise: a proxy also gives them when the agent breaks off a request that it had.
    #[must_use]
    pub fn is_before_acting(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Card(_)
            | Self::NotOffered { .. }
            | Self::Invalid { .. }
            | Self::Forbidden { .. }
            | Self::Credential { .. }
            | Self::Setup { .. }
            | Self::Unauthorized { .. } => true,
            Self::Agent(error) => error.code.is_some_and(is_refusal),
            Self::Http { status, .. } => *status == 429,
            Self::Broken { .. } | Self::Timeout { .. } | Self::InvalidAnswer { .. } | Self::TooLarge { .. } => false,
        }
    }

    /// Whether the same request may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Broken { .. } | Self::Timeout { .. } => true,
            Self::Agent(error) => {
                matches!(error.code, Some(ErrorCode::Unavailable | ErrorCode::ResourceExhausted))
            }
            Self::Http { status, .. } => matches!(status, 408 | 425 | 429 | 502 | 503 | 504),
            Self::Card(error) => error.is_transient(),
            Self::Unauthorized { .. }
            | Self::InvalidAnswer { .. }
            | Self::TooLarge { .. }
            | Self::NotOffered { .. }
            | Self::Invalid { .. }
            | Self::Forbidden { .. }
            | Self::Credential { .. }
            | Self::Setup { .. } => false,
        }
    }

    /// How long the peer asks to be left alone, if it says so: a day at the most.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let asked = match self {
            Self::Agent(error) => error.error.retry_after,
            Self::Http { retry_after, .. } => *retry_after,
            _ => None,
        };
        asked.map(|asked| asked.min(RETRY_AFTER_MAX))
    }
}

/// The error with its causes, in one line.
pub(crate) fn explain(error: &ClientError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Whether an agent that answers with this has left the request alone.
fn is_refusal(code: ErrorCode) -> bool {
    match code {
        // It failed, was not there any more, or its own answer was no good: all of which it may have noticed too late.
        ErrorCode::Internal | ErrorCode::Unavailable | ErrorCode::InvalidAgentResponse => false,
        ErrorCode::TaskNotFound
        | ErrorCode::TaskNotCancelable
        | ErrorCode::PushNotificationNotSupported
        | ErrorCode::UnsupportedOperation
        | ErrorCode::ContentTypeNotSupported
        | ErrorCode::ExtendedAgentCardNotConfigured
        | ErrorCode::ExtensionSupportRequired
        | ErrorCode::VersionNotSupported
        | ErrorCode::InvalidArgument
        | ErrorCode::TooLarge
        | ErrorCode::ResourceExhausted
        | ErrorCode::ParseError
        | ErrorCode::InvalidRequest
        | ErrorCode::MethodNotFound
        | ErrorCode::RouteNotFound
        | ErrorCode::MethodNotAllowed => true,
    }
}

/// An error that an agent answered with (§3.3.2, §5.4).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentError {
    /// Which error of the protocol it is; none if the agent's code and reason are not known.
    pub code: Option<ErrorCode>,
    /// Message, violations and metadata. Its own `code` is [`ErrorCode::Internal`] where [`code`](Self::code) is none.
    pub error: A2aError,
    /// The code on the wire: of JSON-RPC, of HTTP, or of gRPC.
    pub wire_code: i64,
}

impl AgentError {
    /// The name that the specification gives the error, such as `TaskNotFoundError`; for what it has no name for, the name of
    /// our table.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.code {
            None => "UnknownError",
            Some(code) => error_name(code),
        }
    }
}

/// The name of an error in the specification (§3.3.2), and of those of the framing that it lacks.
#[must_use]
pub fn error_name(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::TaskNotFound => "TaskNotFoundError",
        ErrorCode::TaskNotCancelable => "TaskNotCancelableError",
        ErrorCode::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        ErrorCode::UnsupportedOperation => "UnsupportedOperationError",
        ErrorCode::ContentTypeNotSupported => "ContentTypeNotSupportedError",
        ErrorCode::InvalidAgentResponse => "InvalidAgentResponseError",
        ErrorCode::ExtendedAgentCardNotConfigured => "ExtendedAgentCardNotConfiguredError",
        ErrorCode::ExtensionSupportRequired => "ExtensionSupportRequiredError",
        ErrorCode::VersionNotSupported => "VersionNotSupportedError",
        ErrorCode::InvalidArgument => "InvalidParamsError",
        ErrorCode::TooLarge => "TooLargeError",
        ErrorCode::ResourceExhausted => "ResourceExhaustedError",
        ErrorCode::Unavailable => "UnavailableError",
        ErrorCode::Internal => "InternalError",
        ErrorCode::ParseError => "JSONParseError",
        ErrorCode::InvalidRequest => "InvalidRequestError",
        ErrorCode::MethodNotFound | ErrorCode::RouteNotFound | ErrorCode::MethodNotAllowed => "MethodNotFoundError",
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(_) => write!(f, "{}: {}", self.name(), self.error.message),
            None => write!(f, "the agent's error {}: {}", self.wire_code, self.error.message),
        }
    }
}

/// Why an agent card could not be had, read, or used (§8).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CardError {
    /// The reference is neither a host, a URL, nor a file.
    #[error("{reference:?} names no agent card: {problem}")]
    Reference {
        /// What was given.
        reference: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is none at the URL or the path.
    #[error("there is no agent card at {place}")]
    NotFound {
        /// The URL or the path.
        place: String,
        /// What was answered.
        source: Cause,
    },
    /// It is no agent card.
    #[error("what is at {place} is not an agent card: {problem}")]
    Invalid {
        /// The URL or the path.
        place: String,
        /// What is wrong, with the member's path.
        problem: String,
    },
    /// It has to be verified, and it isn't: no signature fits by a trusted key.
    #[error("the card at {place} is not verified: {report}")]
    Unverified {
        /// The URL or the path.
        place: String,
        /// What is known of each signature.
        report: String,
    },
    /// It names no interface that can be used, or none that may be.
    #[error("no interface of the agent can be used: {}", reasons.join("; "))]
    NoInterface {
        /// For each interface, why not.
        reasons: Vec<String>,
        /// The version to allow where the agent has none of those that are allowed, and this client speaks one of its.
        allow: Option<ProtocolVersion>,
    },
}

impl CardError {
    fn is_transient(&self) -> bool {
        let Self::NotFound { source, .. } = self else { return false };
        source.downcast_ref::<ClientError>().is_some_and(ClientError::is_transient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_agent(code: ErrorCode) -> ClientError {
        ClientError::Agent(AgentError { code: Some(code), error: A2aError::new(code, "said"), wire_code: 0 })
    }

    #[test]
    fn nobody_is_left_alone_for_longer_than_a_clock_goes() {
        let endless = Some(Duration::MAX);
        let mut error = A2aError::new(ErrorCode::Unavailable, "later");
        error.retry_after = endless;
        let of_agent = ClientError::Agent(AgentError { code: Some(ErrorCode::Unavailable), error, wire_code: 0 });
        let whom = || "http://h".to_owned();
        let http = ClientError::Http { whom: whom(), status: 503, excerpt: String::new(), retry_after: endless };
        for error in [of_agent, http] {
            assert_eq!(error.retry_after(), Some(RETRY_AFTER_MAX));
        }
    }

    #[test]
    fn what_a_proxy_says_of_an_agent_that_broke_off_is_no_promise_that_it_did_nothing() {
        let http = |status| ClientError::Http {
            whom: "http://h".to_owned(),
            status,
            excerpt: "upstream connect error or disconnect/reset before headers".to_owned(),
            retry_after: None,
        };
        let later = [http(503), http(502), http(504), of_agent(ErrorCode::Unavailable)];
        assert!(later.iter().all(|error| error.is_transient() && !error.is_before_acting()));
        assert!(!of_agent(ErrorCode::Internal).is_before_acting());
        assert!(!of_agent(ErrorCode::InvalidAgentResponse).is_before_acting());
        let refused = [http(429), of_agent(ErrorCode::ResourceExhausted), of_agent(ErrorCode::TaskNotFound)];
        assert!(refused.iter().all(ClientError::is_before_acting));
    }
}
