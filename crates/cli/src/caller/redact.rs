//! Keeps credentials out of what is written for people to read: an agent may send back what it was sent (§12.1 of the contract).

use longhaul_client::{REDACTED, Secret};

use super::failure::Failure;
use super::options::Options;

/// A credential shorter than this is not looked for in what an agent sends: it would be found in every word.
const SECRET_BYTES_MIN: usize = 4;

/// Knows the credentials of one command, and takes them out of texts.
#[derive(Clone)]
pub struct Redactor {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// One for the credentials of these options, and for others that were read.
    pub fn new(options: &Options, others: &[Secret]) -> Self {
        let own = [&options.bearer, &options.api_key, &options.client_secret].into_iter().flatten();
        let credentials = own.chain(others).map(|secret| secret.reveal());
        let params = options.service_params.iter().filter_map(|(_, value)| value.to_str().ok());
        // A parameter may be `Bearer xyz`, and an agent may send back the last word only.
        let words = params.flat_map(|value| std::iter::once(value).chain(value.split_whitespace()));
        Self::of(credentials.chain(words))
    }

    fn of<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let long = secrets.filter(|secret| secret.len() >= SECRET_BYTES_MIN);
        let mut secrets: Vec<String> = long.flat_map(|secret| [secret.to_owned(), inside_json(secret)]).collect();
        // The longest first, so that no rest of it stays.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// The text without them.
    pub fn text(&self, mut text: String) -> String {
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        text
    }

    /// The failure without them.
    pub fn failure(&self, failure: Failure) -> Failure {
        let hint = failure.hint.map(|hint| self.text(hint.into_owned()).into());
        Failure { message: self.text(failure.message), hint, ..failure }
    }
}

fn inside_json(text: &str) -> String {
    let quoted = serde_json::Value::String(text.to_owned()).to_string();
    quoted.trim_matches('"').to_owned()
}

#[cfg(test)]
impl Redactor {
    /// One for these texts.
    pub fn for_test(secrets: &[&str]) -> Self {
        Self::of(secrets.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_sends_back_is_taken_out() {
        let redactor = Redactor::for_test(&["s3cret\"key", "s3cret\"key-longer", "abc"]);
        let failure = Failure::usage("no task for s3cret\"key-longer").hint("s3cret\"key, abc");
        let failure = redactor.failure(failure);
        assert_eq!(failure.message, "no task for [redacted]");
        assert_eq!(failure.hint.as_deref(), Some("[redacted], abc"));
        assert_eq!(redactor.text(r#"{"echo":"s3cret\"key"}"#.to_owned()), r#"{"echo":"[redacted]"}"#);
    }
}
