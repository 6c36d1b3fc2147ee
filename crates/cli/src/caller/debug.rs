//! `--debug`: what goes over the wire, on stderr, without credentials (§7.2 and §12.1 of the contract).

use std::fmt::Write as _;
use std::io::Write as _;

use http::HeaderMap;
use longhaul_client::{REDACTED, WireEvent, WireLog};

use super::redact::Redactor;
use super::render::clean;

/// Writes each event to stderr.
#[derive(Debug)]
pub struct DebugLog {
    /// What an agent may send back to us, and must not be shown either.
    redactor: Redactor,
}

impl DebugLog {
    /// One that keeps credentials to itself.
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }

    fn told(&self, event: &WireEvent<'_>) -> String {
        let mut text = String::new();
        match event {
            WireEvent::Request { operation, method, url, headers, body } => {
                let _ = writeln!(text, "debug: > {operation} {method} {url}");
                told_headers(&mut text, headers);
                told_body(&mut text, '>', body);
            }
            WireEvent::Answer { operation, status, body } => {
                let _ = writeln!(text, "debug: < {operation} {status}");
                told_body(&mut text, '<', body);
            }
            WireEvent::Item { operation, id, body } => {
                let _ = writeln!(text, "debug: < {operation} item {}", id.unwrap_or("without an id"));
                told_body(&mut text, '<', body);
            }
            WireEvent::StreamEnd { operation, error: None } => {
                let _ = writeln!(text, "debug: < {operation} the stream ended");
            }
            WireEvent::StreamEnd { operation, error: Some(error) } => {
                let _ = writeln!(text, "debug: < {operation} the stream was cut: {error}");
            }
            WireEvent::Retry { operation, error, after } => {
                let _ = writeln!(text, "debug: {operation} again in {} ms: {error}", after.as_millis());
            }
            _ => {}
        }
        let text = self.redactor.text(text);
        let lines = clean::lines(&text).map(|line| line.into_owned() + "\n");
        lines.collect()
    }
}

fn told_headers(text: &mut String, headers: &HeaderMap) {
    for (name, value) in headers {
        let value = if value.is_sensitive() { REDACTED.into() } else { String::from_utf8_lossy(value.as_bytes()) };
        let _ = writeln!(text, "debug: > {name}: {value}");
    }
}

fn told_body(text: &mut String, direction: char, body: &[u8]) {
    for line in String::from_utf8_lossy(body).lines() {
        let _ = writeln!(text, "debug: {direction} {line}");
    }
}

impl WireLog for DebugLog {
    fn record(&self, event: &WireEvent<'_>) {
        let _ = std::io::stderr().lock().write_all(self.told(event).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn log() -> DebugLog {
        DebugLog::new(Redactor::for_test(&["s3cret-bearer", "s3cret\"key"]))
    }

    #[test]
    fn a_request_is_told_without_what_is_secret() {
        let mut headers = HeaderMap::new();
        let mut token = HeaderValue::from_static("Bearer other");
        token.set_sensitive(true);
        headers.insert("authorization", token);
        headers.insert("a2a-version", HeaderValue::from_static("1.0"));
        let body = br#"{"echo":"s3cret-bearer s3cret\"key"}"#;
        let request =
            WireEvent::Request { operation: "GetTask", method: "POST", url: "http://a/", headers: &headers, body };
        let told = log().told(&request);
        assert_eq!(
            told,
            "debug: > GetTask POST http://a/\ndebug: > authorization: [redacted]\ndebug: > a2a-version: 1.0\n\
             debug: > {\"echo\":\"[redacted] [redacted]\"}\n"
        );
    }

    #[test]
    fn what_an_agent_sends_is_told_and_not_obeyed() {
        let told =
            log().told(&WireEvent::Answer { operation: "GetTask", status: 200, body: b"\x1b[2J\ns3cret-bearer" });
        assert_eq!(told, "debug: < GetTask 200\ndebug: < \\u{1b}[2J\ndebug: < [redacted]\n");
    }
}
