//! Texts that stand for one thing each: kinds, states, roles, and times.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::json::{Element, Read, read_nullable};
use crate::state;
use crate::timestamp::Timestamp;
use crate::wire;

/// Makes an enum of names. Any other name is refused, or, where a case is `else`, read as that one.
macro_rules! names {
    (
        $(#[$doc:meta])* $name:ident {
            $($(#[$case_doc:meta])* $case:ident = $text:literal $(| $misspelt:literal)?,)+
        }
        $(else $other:ident)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum $name {
            $($(#[$case_doc])* $case,)+
        }

        impl $name {
            /// The text that stands for it.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$case => $text,)+
                }
            }
        }

        const _: () = {
            struct NameVisitor;

            impl Visitor<'_> for NameVisitor {
                type Value = $name;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a string")
                }

                fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                    match text {
                        $($text $(| $misspelt)? => Ok($name::$case),)+
                        _ => names!(@other $name [$($text),+] $($other)?),
                    }
                }
            }

            impl Read for $name {
                fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserializer.deserialize_str(NameVisitor)
                }
            }

            impl Element for $name {
                fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(self.text())
                }
            }
        };
    };
    (@other $name:ident $texts:tt) => {
        Err(E::custom(format_args!("must be one of {}", $texts.join(", "))))
    };
    (@other $name:ident $texts:tt $other:ident) => {
        Ok($name::$other)
    };
}

names! {
    /// What an object is: v0.3's discriminator. Parts have their own, [`PartKind`].
    Kind {
        /// A task.
        Task = "task",
        /// A message.
        Message = "message",
        /// A change of a task's status.
        StatusUpdate = "status-update",
        /// A new or longer artifact.
        ArtifactUpdate = "artifact-update",
    }
}

names! {
    /// What a part is.
    PartKind {
        /// A part with text.
        Text = "text",
        /// A part with a file.
        File = "file",
        /// A part with JSON.
        Data = "data",
    }
}

names! {
    /// The state of a task. Only answers hold one, so it is read as a client reads it: what is not known is unknown.
    TaskState {
        /// Accepted, not yet worked on.
        Submitted = "submitted",
        /// Being worked on.
        Working = "working",
        /// Waits for a message of its caller.
        InputRequired = "input-required",
        /// Ended well.
        Completed = "completed",
        /// Ended because somebody asked for that.
        Canceled = "canceled" | "cancelled",
        /// Ended with an error.
        Failed = "failed",
        /// Declined by the agent.
        Rejected = "rejected",
        /// Waits for an authorization.
        AuthRequired = "auth-required",
        /// The unspecified state of v1.0.
        Unknown = "unknown",
    } else Unknown
}

names! {
    /// Who sent a message.
    Role {
        /// The caller.
        User = "user",
        /// The agent.
        Agent = "agent",
    }
}

impl From<wire::TaskState> for TaskState {
    fn from(state: wire::TaskState) -> Self {
        match state.known() {
            Some(state::TaskState::Submitted) => Self::Submitted,
            Some(state::TaskState::Working) => Self::Working,
            Some(state::TaskState::Completed) => Self::Completed,
            Some(state::TaskState::Failed) => Self::Failed,
            Some(state::TaskState::Canceled) => Self::Canceled,
            Some(state::TaskState::InputRequired) => Self::InputRequired,
            Some(state::TaskState::Rejected) => Self::Rejected,
            Some(state::TaskState::AuthRequired) => Self::AuthRequired,
            None => Self::Unknown,
        }
    }
}

impl From<TaskState> for wire::TaskState {
    fn from(state: TaskState) -> Self {
        let known = match state {
            TaskState::Submitted => state::TaskState::Submitted,
            TaskState::Working => state::TaskState::Working,
            TaskState::InputRequired => state::TaskState::InputRequired,
            TaskState::Completed => state::TaskState::Completed,
            TaskState::Canceled => state::TaskState::Canceled,
            TaskState::Failed => state::TaskState::Failed,
            TaskState::Rejected => state::TaskState::Rejected,
            TaskState::AuthRequired => state::TaskState::AuthRequired,
            TaskState::Unknown => return Self::default(),
        };
        known.into()
    }
}

impl From<wire::Role> for Role {
    /// A role that is not known is the agent's: callers are checked, and send no other than theirs.
    fn from(role: wire::Role) -> Self {
        match role.known() {
            Some(state::Role::User) => Self::User,
            Some(state::Role::Agent) | None => Self::Agent,
        }
    }
}

impl From<Role> for wire::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => state::Role::User.into(),
            Role::Agent => state::Role::Agent.into(),
        }
    }
}

/// A time. Agents of v0.3 write what they like, since no SDK looks at it: a text without an offset is taken for UTC, and
/// one that is no time at all for an absent one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Time(pub Timestamp);

impl Read for Time {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Timestamp::read(deserializer).map(Self)
    }
}

impl Element for Time {
    fn read_optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        let text: Option<String> = read_nullable(deserializer)?;
        Ok(text.and_then(|text| text.parse().or_else(|_| format!("{text}Z").parse()).ok()).map(Self))
    }

    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
