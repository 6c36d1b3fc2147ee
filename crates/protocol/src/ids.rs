//! Typed ids. Each is checked once, where it comes in, and cheap to clone from then on.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Says why a text cannot be an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what} {problem}")]
#[non_exhaustive]
pub struct InvalidId {
    /// The kind of id that was wanted, such as `task id`.
    pub what: &'static str,
    /// What is wrong with the text.
    pub problem: IdProblem,
}

/// What is wrong with a text that was to become an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum IdProblem {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text is too long.
    #[error("must have at most {max} bytes, has {actual}")]
    TooLong {
        /// The most bytes that are allowed.
        max: usize,
        /// The bytes of the text.
        actual: usize,
    },
    /// The text holds a control character, which no store has to keep.
    #[error("must not hold control characters")]
    ControlCharacter,
    /// The text holds a character that separates path segments.
    #[error("must not hold a slash")]
    Slash,
}

/// What one kind of id allows.
struct Limits {
    what: &'static str,
    bytes_max: usize,
    may_be_empty: bool,
    may_hold_slash: bool,
}

impl Limits {
    fn check(&self, text: &str) -> Result<(), InvalidId> {
        let problem = if text.is_empty() && !self.may_be_empty {
            IdProblem::Empty
        } else if text.len() > self.bytes_max {
            IdProblem::TooLong { max: self.bytes_max, actual: text.len() }
        } else if text.chars().any(char::is_control) {
            IdProblem::ControlCharacter
        } else if !self.may_hold_slash && text.contains('/') {
            IdProblem::Slash
        } else {
            return Ok(());
        };
        Err(InvalidId { what: self.what, problem })
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $bytes_max:literal, $may_be_empty:literal, $may_hold_slash:literal) => {
        $(#[$doc])*
        #[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The most bytes that the UTF-8 form may have.
            pub const BYTES_MAX: usize = $bytes_max;

            const LIMITS: Limits = Limits {
                what: $what,
                bytes_max: $bytes_max,
                may_be_empty: $may_be_empty,
                may_hold_slash: $may_hold_slash,
            };

            /// Checks that `text` may be such an id, without making one.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] says what is wrong.
            pub fn check(text: &str) -> Result<(), InvalidId> {
                Self::LIMITS.check(text)
            }

            /// Makes an id of `text`.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] says what is wrong.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                Self::check(text)?;
                Ok(Self(Arc::from(text)))
            }

            /// The text of the id.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.as_str()).finish()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidId;

            fn try_from(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct IdVisitor;

                impl de::Visitor<'_> for IdVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a ", $what))
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::new(text).map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(IdVisitor)
            }
        }
    };
}

id! {
    /// Identifies one task for its whole life (§3.4.2). Never empty, at most [`TaskId::BYTES_MAX`]
    /// bytes, no control characters.
    TaskId, "task id", 128, false, true
}
id! {
    /// Identifies a group of tasks and messages (§3.4.1). Never empty, at most
    /// [`ContextId::BYTES_MAX`] bytes, no control characters.
    ContextId, "context id", 256, false, true
}
id! {
    /// Identifies a message; its sender makes it (§4.1.4). Never empty, at most
    /// [`MessageId::BYTES_MAX`] bytes, no control characters.
    MessageId, "message id", 256, false, true
}
id! {
    /// Identifies an artifact within its task (§4.1.7). Never empty, at most
    /// [`ArtifactId::BYTES_MAX`] bytes, no control characters.
    ArtifactId, "artifact id", 256, false, true
}
id! {
    /// Identifies a push config within its task (§4.3.1). Never empty, at most
    /// [`PushConfigId::BYTES_MAX`] bytes, no control characters.
    PushConfigId, "push config id", 128, false, true
}
id! {
    /// Names the tenant that a request is for; empty when there is none. At most
    /// [`Tenant::BYTES_MAX`] bytes, no control characters, no slash (it is one segment of a path).
    #[derive(Default)]
    Tenant, "tenant", 256, true, false
}
id! {
    /// Names who owns a task; empty when callers are not told apart. At most [`Owner::BYTES_MAX`]
    /// bytes, no control characters.
    #[derive(Default)]
    Owner, "owner", 256, true, true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_not_empty_and_has_at_most_its_bytes() {
        assert_eq!(TaskId::new("").unwrap_err().to_string(), "task id must not be empty");
        assert!(TaskId::new("x".repeat(128)).is_ok());
        assert_eq!(TaskId::new("x".repeat(129)).unwrap_err().problem, IdProblem::TooLong { max: 128, actual: 129 });
        assert!(ContextId::new("ü".repeat(128)).is_ok());
        assert!(ContextId::new("ü".repeat(129)).is_err());
    }

    #[test]
    fn an_id_holds_no_control_characters() {
        for text in ["a\0", "a\nb", "\u{7f}", "\u{85}"] {
            assert_eq!(MessageId::new(text).unwrap_err().problem, IdProblem::ControlCharacter);
        }
        for text in ["a/b", "..", "a?b", "日本", " "] {
            assert_eq!(TaskId::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn tenant_and_owner_may_be_empty() {
        assert_eq!(Tenant::default().as_str(), "");
        assert_eq!(Owner::new("").unwrap(), Owner::default());
        assert_eq!(Tenant::new("a/b").unwrap_err().problem, IdProblem::Slash);
        assert!(Owner::new("a/b").is_ok());
    }

    #[test]
    fn an_id_is_a_string_in_json_and_is_checked_when_read() {
        let id: TaskId = serde_json::from_str("\"t\\u00fc\"").unwrap();
        assert_eq!(id.as_str(), "tü");
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"tü\"");
        assert!(serde_json::from_str::<TaskId>("\"\"").is_err());
        assert!(serde_json::from_str::<TaskId>("5").is_err());
    }
}
