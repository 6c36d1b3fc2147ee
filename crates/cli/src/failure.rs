//! How a failure is told: what went wrong with its causes, and the next step where there is one.

use std::fmt;
use std::process::ExitCode;

use crate::settings::ConfigError;

/// Says what was attempted, and what to do since it failed.
#[derive(Debug)]
pub struct Attempt {
    what: String,
    hint: Option<String>,
}

impl Attempt {
    /// Something that was attempted: "cannot open the store".
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Prints an error to stderr and answers with the exit code for it.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let (lines, code) = told(error);
    eprintln!("{lines}");
    ExitCode::from(code)
}

fn told(error: &anyhow::Error) -> (String, u8) {
    let config = error.downcast_ref::<ConfigError>();
    let hint = match config {
        Some(config) => Some(config.hint.as_str()),
        None => error.downcast_ref::<Attempt>().and_then(|attempt| attempt.hint.as_deref()),
    };
    let mut lines = match config {
        Some(_) => format!("longhaul: cannot use the configuration: {error:#}"),
        None => format!("longhaul: {error:#}"),
    };
    if let Some(hint) = hint {
        lines.push_str("\nhint: ");
        lines.push_str(hint);
    }
    (lines, if config.is_some() { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn causes_and_the_next_step_are_told() {
        let cause = std::io::Error::other("the disk is full");
        let error = Err::<(), _>(cause)
            .context(Attempt::new("cannot open the store").hint("make room"))
            .expect_err("it is one");
        assert_eq!(told(&error), ("longhaul: cannot open the store: the disk is full\nhint: make room".to_owned(), 1));
        let wrong = anyhow::Error::new(ConfigError::new("longhaul.toml", "there is no key x", "leave it out"));
        let text = "longhaul: cannot use the configuration: longhaul.toml: there is no key x\nhint: leave it out";
        assert_eq!(told(&wrong), (text.to_owned(), 2));
    }
}
