use std::error::Error;
use std::time::{Duration, UNIX_EPOCH};

use http::StatusCode;
use longhaul_protocol::Timestamp;
use thiserror::Error;

use super::request::FieldRefused;
use crate::guard::{AddressRefused, UrlRefused};
use crate::time::between;

/// The longest text of a cause that is kept, in bytes.
const CAUSE_BYTES_MAX: usize = 300;

/// What an attempt means for its delivery.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// 2xx: it is with the receiver.
    Delivered,
    /// Try again; the [`schedule`](crate::schedule) says when.
    Retry {
        /// What the receiver asked for by `Retry-After`, as far from now; it may be absurd.
        after: Option<Duration>,
        /// Why it did not arrive.
        why: Failure,
    },
    /// Trying again would change nothing: give this event up.
    Final {
        /// The status, if the request was sent at all.
        status: Option<u16>,
        /// Why it did not arrive.
        why: Failure,
    },
    /// 410: the receiver wants no more of them, and the config is to be removed.
    Gone,
}

/// What an attempt tells about the host, for its [`breaker`](crate::breaker).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Health {
    /// It answers, if only to refuse this delivery.
    Up,
    /// It can't be reached, or says itself that it is down (502, 503, 504).
    Down,
    /// It was not asked.
    Unknown,
}

/// Why a delivery did not arrive. Holds no payload, no credentials, and nothing of an answer but its status.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Failure {
    /// The URL is refused by the policy of today.
    #[error("url {0}")]
    Url(UrlRefused),
    /// A field can't be sent as a header.
    #[error("{0}")]
    Field(FieldRefused),
    /// The name can't be looked up.
    #[error("cannot look up the host: {0}")]
    Resolve(String),
    /// The name has no address.
    #[error("the host has no address")]
    NoAddress,
    /// Every address of the name is refused.
    #[error("{0}")]
    Address(AddressRefused),
    /// No address takes connections.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection can't be secured.
    #[error("cannot secure the connection: {0}")]
    Tls(String),
    /// The connection ended before an answer, or the answer is no HTTP or its head too long.
    #[error("got no answer: {0}")]
    Exchange(String),
    /// The time limit passed before an answer.
    #[error("got no answer in time")]
    Timeout,
    /// The receiver answered with this status.
    #[error("the receiver answered with status {0}")]
    Status(u16),
}

impl Answer {
    pub(super) fn failed(why: Failure) -> Self {
        match why {
            Failure::Url(_) | Failure::Field(_) => Self::Final { status: None, why },
            // An address may be refused today and pass tomorrow, when a name or the policy is mended.
            _ => Self::Retry { after: None, why },
        }
    }

    pub(super) fn of(status: &StatusCode, retry_after: Option<&str>, now: Timestamp) -> Self {
        let code = status.as_u16();
        let why = Failure::Status(code);
        match code {
            200..=299 => Self::Delivered,
            410 => Self::Gone,
            408 | 425 | 429 | 500..=599 => {
                Self::Retry { after: retry_after.and_then(|value| parse_retry_after(value, now)), why }
            }
            // Redirects are among them: where to deliver is the caller's word, not the receiver's.
            _ => Self::Final { status: Some(code), why },
        }
    }

    /// What it tells about the host.
    #[must_use]
    pub fn health(&self) -> Health {
        match self {
            Self::Delivered | Self::Gone => Health::Up,
            Self::Retry { why, .. } | Self::Final { why, .. } => match why {
                Failure::Status(502..=504) => Health::Down,
                Failure::Status(_) => Health::Up,
                Failure::Url(_) | Failure::Field(_) => Health::Unknown,
                Failure::Resolve(_)
                | Failure::NoAddress
                | Failure::Address(_)
                | Failure::Connect(_)
                | Failure::Tls(_)
                | Failure::Exchange(_)
                | Failure::Timeout => Health::Down,
            },
        }
    }
}

/// Seconds, or a date: how long it is until then. What is neither asks for nothing.
fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let millis = i64::try_from(date.as_millis()).ok()?;
    Some(between(now, Timestamp::from_unix_millis(millis)))
}

/// An error and its causes, in one line of limited length.
pub(super) fn explain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors repeat their cause.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    let end = text.floor_char_boundary(CAUSE_BYTES_MAX);
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    #[test]
    fn each_status_has_its_meaning() {
        for code in 100..=999_u16 {
            let answer = Answer::of(&StatusCode::from_u16(code).unwrap(), None, now());
            let why = Failure::Status(code);
            let expected = match code {
                200..=299 => Answer::Delivered,
                410 => Answer::Gone,
                408 | 425 | 429 => Answer::Retry { after: None, why },
                500..=599 => Answer::Retry { after: None, why },
                _ => Answer::Final { status: Some(code), why },
            };
            assert_eq!(answer, expected);
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let after = |value| parse_retry_after(value, now()).map(|after| after.as_secs());
        assert_eq!(after("120"), Some(120));
        assert_eq!(after(" 0 "), Some(0));
        assert_eq!(after("99999999999999999999999999"), Some(u64::MAX));
        assert_eq!(after("Fri, 02 Jan 2026 03:05:05 GMT"), Some(60));
        assert_eq!(after("Friday, 02-Jan-26 03:05:05 GMT"), Some(60));
        assert_eq!(after("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for value in ["", "soon", "-1", "1.5", "+1", "2026-01-02T03:05:05Z"] {
            assert_eq!(after(value), None, "{value}");
        }
    }

    #[test]
    fn hosts_that_answer_are_up_unless_they_say_otherwise() {
        let of = |code| Answer::of(&StatusCode::from_u16(code).unwrap(), None, now()).health();
        for code in [200, 307, 404, 410, 429, 500, 501] {
            assert_eq!(of(code), Health::Up, "{code}");
        }
        for code in [502, 503, 504] {
            assert_eq!(of(code), Health::Down, "{code}");
        }
        assert_eq!(Answer::failed(Failure::Timeout).health(), Health::Down);
        assert_eq!(Answer::failed(Failure::Url(UrlRefused::Http)).health(), Health::Unknown);
    }
}
