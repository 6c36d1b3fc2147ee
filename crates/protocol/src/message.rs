//! A message and an artifact that keep the rules of the protocol, so that nobody checks them again.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::FieldViolation;
use crate::ids::{ArtifactId, ContextId, MessageId, TaskId};
use crate::json::ProtoJson;
use crate::rules::FieldRules;
use crate::state::Role;
use crate::wire;

/// A message with a valid id, a known role and at least one part, each with content (§4.1.4).
///
/// It does not change once it is made, so a clone is the same one.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    checked: Arc<Checked>,
}

#[derive(Clone, Debug, PartialEq)]
struct Checked {
    wire: wire::Message,
    id: MessageId,
    role: Role,
}

impl Message {
    /// Checks a message of the wire.
    ///
    /// # Errors
    ///
    /// Each member that breaks a rule, with its path inside the message.
    pub fn new(wire: wire::Message) -> Result<Self, Vec<FieldViolation>> {
        let violations = wire.violations();
        let id = MessageId::new(&wire.message_id);
        match (id, wire.role.known()) {
            (Ok(id), Some(role)) if violations.is_empty() => Ok(Self::checked(wire, id, role)),
            _ => Err(violations),
        }
    }

    /// A message of the agent with one text part, without context and task.
    #[must_use]
    pub fn agent_text(id: MessageId, text: impl Into<String>) -> Self {
        let wire = wire::Message {
            message_id: id.as_str().to_owned(),
            role: Role::Agent.into(),
            parts: vec![wire::Part::text(text)],
            ..wire::Message::default()
        };
        Self::checked(wire, id, Role::Agent)
    }

    fn checked(wire: wire::Message, id: MessageId, role: Role) -> Self {
        Self { checked: Arc::new(Checked { wire, id, role }) }
    }

    /// The same message, in this context and of this task.
    #[must_use]
    pub fn with_task(mut self, context_id: &ContextId, task_id: Option<&TaskId>) -> Self {
        let wire = &mut Arc::make_mut(&mut self.checked).wire;
        wire.context_id = context_id.as_str().to_owned();
        wire.task_id = task_id.map(|id| id.as_str().to_owned()).unwrap_or_default();
        self
    }

    /// The id that the sender gave it.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.checked.id
    }

    /// Who sent it.
    #[must_use]
    pub fn role(&self) -> Role {
        self.checked.role
    }

    /// The context that the sender named.
    #[must_use]
    pub fn context_id(&self) -> Option<ContextId> {
        ContextId::new(&self.as_wire().context_id).ok()
    }

    /// The task that the sender named.
    #[must_use]
    pub fn task_id(&self) -> Option<TaskId> {
        TaskId::new(&self.as_wire().task_id).ok()
    }

    /// The content; never empty.
    #[must_use]
    pub fn parts(&self) -> &[wire::Part] {
        &self.as_wire().parts
    }

    /// The text parts, joined by newlines; empty when there are none.
    #[must_use]
    pub fn text(&self) -> String {
        let mut texts = self.parts().iter().filter_map(wire::Part::as_text);
        let mut joined = texts.next().unwrap_or_default().to_owned();
        for text in texts {
            joined.push('\n');
            joined.push_str(text);
        }
        joined
    }

    /// The message as it is on the wire.
    #[must_use]
    pub fn as_wire(&self) -> &wire::Message {
        &self.checked.wire
    }

    /// The message as it is on the wire.
    #[must_use]
    pub fn into_wire(self) -> wire::Message {
        Arc::unwrap_or_clone(self.checked).wire
    }
}

/// An artifact, or a chunk of one, with a valid id and at least one part, each with content (§4.1.7).
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    wire: wire::Artifact,
    id: ArtifactId,
}

impl Artifact {
    /// Checks an artifact of the wire.
    ///
    /// # Errors
    ///
    /// Each member that breaks a rule, with its path inside the artifact.
    pub fn new(wire: wire::Artifact) -> Result<Self, Vec<FieldViolation>> {
        let violations = wire.violations();
        match ArtifactId::new(&wire.artifact_id) {
            Ok(id) if violations.is_empty() => Ok(Self { wire, id }),
            _ => Err(violations),
        }
    }

    /// An artifact with one text part.
    #[must_use]
    pub fn text(id: ArtifactId, text: impl Into<String>) -> Self {
        let wire = wire::Artifact {
            artifact_id: id.as_str().to_owned(),
            parts: vec![wire::Part::text(text)],
            ..wire::Artifact::default()
        };
        Self { wire, id }
    }

    /// The id, unique in its task.
    #[must_use]
    pub fn id(&self) -> &ArtifactId {
        &self.id
    }

    /// The content; never empty.
    #[must_use]
    pub fn parts(&self) -> &[wire::Part] {
        &self.wire.parts
    }

    /// The artifact as it is on the wire.
    #[must_use]
    pub fn as_wire(&self) -> &wire::Artifact {
        &self.wire
    }

    /// The artifact as it is on the wire.
    #[must_use]
    pub fn into_wire(self) -> wire::Artifact {
        self.wire
    }
}

macro_rules! json_as_on_the_wire {
    ($($name:ident)+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.as_wire().serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let wire = wire::$name::deserialize(deserializer)?;
                $name::new(wire).map_err(|violations| match violations.first() {
                    Some(FieldViolation { field, description }) => {
                        de::Error::custom(format_args!("{field}: {description}"))
                    }
                    None => de::Error::custom("invalid"),
                })
            }
        }

        impl ProtoJson for $name {}

        impl TryFrom<wire::$name> for $name {
            type Error = Vec<FieldViolation>;

            fn try_from(wire: wire::$name) -> Result<Self, Self::Error> {
                Self::new(wire)
            }
        }

        impl From<$name> for wire::$name {
            fn from(value: $name) -> Self {
                value.into_wire()
            }
        }
    )+};
}

json_as_on_the_wire! { Message Artifact }

#[cfg(test)]
mod tests {
    use crate::json::from_json;

    use super::*;

    #[test]
    fn a_message_of_the_wire_is_checked() {
        let message: Message = from_json(
            br#"{"messageId":"m1","role":"ROLE_USER","taskId":"t1","parts":[{"text":"a"},{"data":1},{"text":"b"}]}"#,
        )
        .unwrap();
        assert_eq!(message.id().as_str(), "m1");
        assert_eq!(message.role(), Role::User);
        assert_eq!(message.text(), "a\nb");
        assert_eq!(message.task_id(), Some(TaskId::new("t1").unwrap()));
        assert_eq!(message.context_id(), None);
        assert_eq!(Message::new(message.clone().into_wire()), Ok(message));
    }

    #[test]
    fn a_message_that_breaks_a_rule_is_refused_with_each_member() {
        let wire = from_json(br#"{"role":77,"parts":[{"text":"a"},{}]}"#).unwrap();
        let violations = Message::new(wire).unwrap_err();
        let fields: Vec<&str> = violations.iter().map(|violation| violation.field.as_str()).collect();
        assert_eq!(fields, ["messageId", "role", "parts[1]"]);
        let error = from_json::<Message>(br#"{"messageId":"m","role":1,"parts":[]}"#).unwrap_err();
        assert_eq!(error.message, "parts: must have at least one item");
    }

    #[test]
    fn a_text_of_the_agent_is_a_valid_message_even_when_empty() {
        let message = Message::agent_text(MessageId::new("m").unwrap(), "");
        assert_eq!(Message::new(message.clone().into_wire()), Ok(message));
    }

    #[test]
    fn an_artifact_of_the_wire_is_checked() {
        let artifact = Artifact::text(ArtifactId::new("a").unwrap(), "x");
        assert_eq!(Artifact::new(artifact.clone().into_wire()), Ok(artifact));
        assert_eq!(Artifact::new(wire::Artifact::default()).unwrap_err().len(), 2);
    }
}
