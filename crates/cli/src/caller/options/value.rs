//! How the values of settings are written.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use longhaul_client::Secret;
use longhaul_client::card::{Binding, ProtocolVersion};
use longhaul_client::signature::JkuAllowList;

use crate::arguments::OutputForm;
use crate::settings::parse_duration;

/// How often a task that is waited for is asked for, when nothing is said.
pub const POLL_INTERVAL_DEFAULT: Duration = Duration::from_secs(2);
/// The shortest interval: an agent is not asked without a pause.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest interval.
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// Any text.
pub fn word(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// A credential: one line of what a header can hold.
pub fn secret(text: &str) -> Result<Secret, String> {
    let text = text.trim();
    HeaderValue::from_str(text).map_err(|_| "must be one line without control characters".to_owned())?;
    Ok(Secret::new(text))
}

/// Yes or no.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

/// Words between commas.
pub fn list(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split([',', '\n']).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

/// URLs of key sets between commas.
pub fn jku_allow(text: &str) -> Result<JkuAllowList, String> {
    let mut allowed = JkuAllowList::default();
    for url in list(text)? {
        allowed.allow(&url).map_err(|error| error.to_string())?;
    }
    Ok(allowed)
}

/// Bindings between commas.
pub fn transports(text: &str) -> Result<Vec<Binding>, String> {
    list(text)?
        .iter()
        .map(|word| word.parse().map_err(|_| format!("{word:?} is none of jsonrpc, http+json and grpc")))
        .collect()
}

/// A version of the protocol: `1.0`.
pub fn version(text: &str) -> Result<ProtocolVersion, String> {
    text.parse().map_err(|_| format!("{text:?} is not a version such as 1.0 or 0.3"))
}

/// Service parameters, one a line, each `name:value`.
pub fn service_params(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(service_param).collect()
}

/// The value may be a credential, so no message holds it.
fn service_param(line: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || "must be name:value, such as x-trace-id:abc123".to_owned();
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
    let mut value: HeaderValue =
        value.trim().parse().map_err(|_| format!("the value of {name} must not hold control characters"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// `none`, or how long.
pub fn timeout(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "none" => Ok(None),
        text => match duration(text)? {
            Duration::ZERO => Err("must be longer than 0s; none sets no limit".to_owned()),
            duration => Ok(Some(duration)),
        },
    }
}

/// How often.
pub fn poll_interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if (POLL_INTERVAL_MIN..=POLL_INTERVAL_MAX).contains(&interval) {
        return Ok(interval);
    }
    Err("must be between 100ms and 1h".to_owned())
}

/// One or more numbers with units: `90s`, `1m30s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: write whole numbers and their units, such as 500ms, 90s or 1m30s");
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let unit = rest.find(|it: char| !it.is_ascii_digit()).ok_or_else(wrong)?;
        let (_, behind) = rest.split_at(unit);
        let end = behind.find(|it: char| it.is_ascii_digit()).map_or(rest.len(), |next| unit + next);
        let (one, after) = rest.split_at(end);
        total = parse_duration(one).and_then(|one| total.checked_add(one)).ok_or_else(wrong)?;
        rest = after;
    }
    if text.trim().is_empty() { Err(wrong()) } else { Ok(total) }
}

/// What stdout is for.
pub fn output(text: &str) -> Result<OutputForm, String> {
    match text {
        "text" => Ok(OutputForm::Text),
        "json" => Ok(OutputForm::Json),
        _ => Err(format!("{text:?} is neither text nor json")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_up() {
        for (text, millis) in [("2s", 2_000), ("1m30s", 90_000), ("1h5m", 3_900_000), ("500ms", 500), (" 2s ", 2_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "2", "s", "1.5s", "-1s", "1m30", "2 parsecs", "99999999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(timeout("none"), Ok(None));
        assert!(timeout("0s").is_err() && poll_interval("1ms").is_err() && poll_interval("2h").is_err());
    }

    #[test]
    fn transports_keep_their_order() {
        for (text, transport) in [
            ("jsonrpc", vec![Binding::JsonRpc]),
            ("HTTP+JSON", vec![Binding::HttpJson]),
            ("grpc, JSON-RPC", vec![Binding::Grpc, Binding::JsonRpc]),
        ] {
            assert_eq!(transports(text), Ok(transport), "{text}");
        }
        assert!(transports("smoke").is_err());
    }

    #[test]
    fn a_service_parameter_is_a_name_and_a_value_that_no_message_shows() {
        let params = service_params("x-a: b:c\nauthorization:Bearer s3cret").unwrap();
        assert_eq!(params[0].1, "b:c");
        assert!(!format!("{params:?}").contains("s3cret"));
        for wrong in ["s3cret", ":s3cret", "a b:s3cret", "x:s3cret\u{7f}"] {
            let problem = service_params(wrong).unwrap_err();
            assert!(!problem.contains("s3cret"), "{problem}");
        }
    }

    #[test]
    fn the_rest_is_read_to_the_letter() {
        assert_eq!(version("1.0"), Ok(ProtocolVersion::V1_0));
        assert!(version("v1.0").is_err() && version("").is_err());
        assert!(switch("yes") == Ok(true) && switch("OFF") == Ok(false) && switch("maybe").is_err());
        assert!(output("text").is_ok() && output("yaml").is_err());
        assert_eq!(list(" a/b, c ,, "), Ok(vec!["a/b".to_owned(), "c".to_owned()]));
        assert!(secret("a\nb").is_err());
        assert_eq!(secret(" s3cret ").unwrap().reveal(), "s3cret");
    }
}
