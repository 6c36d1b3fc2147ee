use std::fmt;

/// What is wrong with the configuration, where it was said, and what to do about it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    /// The file, variable or flag.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl ConfigError {
    /// Something wrong at `place`.
    pub fn new(place: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for ConfigError {}
