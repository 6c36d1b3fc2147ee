//! Conversions between the generated messages and the data model's wire messages, both ways.
//!
//! Both sides have the same fields, so a conversion is a list of field names; the macros take each
//! message apart by name, and a field that one side lacks does not compile. Towards protobuf nothing
//! can fail. From protobuf only a time can, since protobuf's reaches further than ours:
//! [`ConvertError`] names its field.

mod artifact;
mod card;
mod event;
mod message;
mod request;
pub mod v0_3;

use std::collections::BTreeMap;
use std::convert::Infallible;

use indexmap::IndexMap;
use longhaul_protocol::json::{JsonError, from_json};
use longhaul_protocol::{A2aError, FieldViolation, JsonObject, Timestamp, wire};
use serde_json::Value;

use crate::a2a;
use crate::json_value::{JsonStruct, JsonValue};

/// A protobuf message that is no message of the data model.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("field {field} {description}")]
pub struct ConvertError {
    field: String,
    description: String,
}

impl ConvertError {
    /// The field's path as JSON names it, such as `tasks[0].status.timestamp`.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with the field, and what is allowed.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    fn new(description: impl Into<String>) -> Self {
        Self { field: String::new(), description: description.into() }
    }

    /// The same error, seen from the message whose `field` holds it.
    fn within(mut self, field: &str) -> Self {
        // An index follows its list's name without a dot, and a oneof has no name in JSON.
        let dot = match self.field.chars().next() {
            None | Some('[') => "",
            Some(_) if field.is_empty() => "",
            Some(_) => ".",
        };
        self.field = format!("{field}{dot}{}", self.field);
        self
    }
}

/// A fault of JSON that stands for a message: its path has the names of JSON already.
impl From<JsonError> for ConvertError {
    fn from(error: JsonError) -> Self {
        Self { field: error.path, description: error.message }
    }
}

/// For code that converts any message: most can't fail.
impl From<Infallible> for ConvertError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<ConvertError> for A2aError {
    fn from(error: ConvertError) -> Self {
        Self::invalid_argument(vec![FieldViolation { field: error.field, description: error.description }])
    }
}

/// Reads the JSON of a stored stream response into its protobuf message.
///
/// # Errors
///
/// When `json` is not the ProtoJSON form of a `StreamResponse`.
pub fn stream_response_from_json(json: &[u8]) -> Result<a2a::StreamResponse, JsonError> {
    from_json::<wire::StreamResponse>(json).map(Into::into)
}

/// A conversion that cannot fail.
///
/// It stands beside `From` because neither the containers nor, on one side, the messages are ours.
trait Mirror<T> {
    fn mirror(self) -> T;
}

/// A conversion that a time out of range can fail.
trait TryMirror<T> {
    fn try_mirror(self) -> Result<T, ConvertError>;
}

impl<A: Mirror<B>, B> Mirror<Option<B>> for Option<A> {
    fn mirror(self) -> Option<B> {
        self.map(Mirror::mirror)
    }
}

impl<A: Mirror<B>, B> Mirror<Vec<B>> for Vec<A> {
    fn mirror(self) -> Vec<B> {
        self.into_iter().map(Mirror::mirror).collect()
    }
}

impl<A: Mirror<B>, B> Mirror<IndexMap<String, B>> for BTreeMap<String, A> {
    fn mirror(self) -> IndexMap<String, B> {
        self.into_iter().map(|(key, value)| (key, value.mirror())).collect()
    }
}

impl<A: Mirror<B>, B> Mirror<BTreeMap<String, B>> for IndexMap<String, A> {
    fn mirror(self) -> BTreeMap<String, B> {
        self.into_iter().map(|(key, value)| (key, value.mirror())).collect()
    }
}

impl<A: TryMirror<B>, B> TryMirror<Option<B>> for Option<A> {
    fn try_mirror(self) -> Result<Option<B>, ConvertError> {
        self.map(TryMirror::try_mirror).transpose()
    }
}

impl<A: TryMirror<B>, B> TryMirror<Vec<B>> for Vec<A> {
    fn try_mirror(self) -> Result<Vec<B>, ConvertError> {
        self.into_iter()
            .enumerate()
            .map(|(index, item)| item.try_mirror().map_err(|error| error.within(&format!("[{index}]"))))
            .collect()
    }
}

impl TryMirror<Timestamp> for prost_types::Timestamp {
    fn try_mirror(self) -> Result<Timestamp, ConvertError> {
        Timestamp::from_parts(self.seconds, self.nanos).map_err(|error| ConvertError::new(error.to_string()))
    }
}

impl Mirror<prost_types::Timestamp> for Timestamp {
    fn mirror(self) -> prost_types::Timestamp {
        prost_types::Timestamp {
            seconds: self.seconds(),
            // Below 10^9, so it fits.
            nanos: i32::try_from(self.nanos()).unwrap_or_default(),
        }
    }
}

/// Converts by one expression.
macro_rules! mirror_by {
    ($($from:ty => $to:ty: |$value:ident| $result:expr;)*) => {$(
        impl Mirror<$to> for $from {
            fn mirror(self) -> $to {
                let $value = self;
                $result
            }
        }
    )*};
}

mirror_by! {
    String => String: |value| value;
    bool => bool: |value| value;
    i32 => i32: |value| value;
    i64 => i64: |value| value;
    i32 => wire::TaskState: |number| wire::TaskState(number);
    wire::TaskState => i32: |state| state.number();
    i32 => wire::Role: |number| wire::Role(number);
    wire::Role => i32: |role| role.number();
    JsonStruct => JsonObject: |object| object.0;
    JsonObject => JsonStruct: |object| JsonStruct(object);
    JsonValue => Value: |value| value.0;
    Value => JsonValue: |value| JsonValue(value);
    bytes::Bytes => bytes::Bytes: |value| value;
}

/// Makes a `From` of `$from` for `$to`, field by field, and the `Mirror` that containers use.
macro_rules! mirror_one_way {
    ($from:path => $to:path { $($field:ident),* $(,)? }) => {
        impl From<$from> for $to {
            fn from(message: $from) -> Self {
                let $from { $($field),* } = message;
                Self { $($field: $crate::convert::Mirror::mirror($field)),* }
            }
        }

        impl $crate::convert::Mirror<$to> for $from {
            fn mirror(self) -> $to {
                self.into()
            }
        }
    };
}

/// Mirrors messages whose conversion cannot fail in either direction.
macro_rules! mirror {
    ($($ours:path, $theirs:path { $($field:ident),* $(,)? })*) => {$(
        $crate::convert::mirror_one_way!($ours => $theirs { $($field),* });
        $crate::convert::mirror_one_way!($theirs => $ours { $($field),* });
    )*};
}

/// Mirrors messages that hold a time: `TryFrom` from protobuf, `From` to it.
///
/// The fields after `try` are those that can fail, each with its JSON name.
macro_rules! try_mirror {
    ($(
        $ours:path, $theirs:path {
            $($field:ident),*; try $($fallible:ident: $name:literal),* $(,)?
        }
    )*) => {$(
        $crate::convert::mirror_one_way!($theirs => $ours { $($field,)* $($fallible),* });

        impl TryFrom<$ours> for $theirs {
            type Error = $crate::convert::ConvertError;

            fn try_from(message: $ours) -> Result<Self, Self::Error> {
                let $ours { $($field,)* $($fallible),* } = message;
                Ok(Self {
                    $($field: $crate::convert::Mirror::mirror($field),)*
                    $($fallible: $crate::convert::TryMirror::try_mirror($fallible)
                        .map_err(|error| error.within($name))?),*
                })
            }
        }

        impl $crate::convert::TryMirror<$theirs> for $ours {
            fn try_mirror(self) -> Result<$theirs, $crate::convert::ConvertError> {
                self.try_into()
            }
        }
    )*};
}

/// Makes the `Mirror` from one oneof to another, member by member.
macro_rules! mirror_oneof_one_way {
    ($from:path => $to:path { $($member:ident = $other:ident),* $(,)? }) => {
        impl $crate::convert::Mirror<$to> for $from {
            fn mirror(self) -> $to {
                use $from as From;
                use $to as To;
                match self {
                    $(From::$member(value) => To::$other($crate::convert::Mirror::mirror(value)),)*
                }
            }
        }
    };
}

/// Mirrors oneofs whose conversion cannot fail in either direction.
macro_rules! mirror_oneof {
    ($ours:path, $theirs:path { $($member:ident = $other:ident),* $(,)? }) => {
        $crate::convert::mirror_oneof_one_way!($ours => $theirs { $($member = $other),* });
        $crate::convert::mirror_oneof_one_way!($theirs => $ours { $($other = $member),* });
    };
}

/// Mirrors oneofs that hold a time in the members after `try`, each with its JSON name.
macro_rules! try_mirror_oneof {
    (
        $ours:path, $theirs:path {
            $($member:ident),*; try $($fallible:ident: $name:literal),* $(,)?
        }
    ) => {
        $crate::convert::mirror_oneof_one_way!(
            $theirs => $ours { $($member = $member,)* $($fallible = $fallible),* }
        );

        impl $crate::convert::TryMirror<$theirs> for $ours {
            fn try_mirror(self) -> Result<$theirs, $crate::convert::ConvertError> {
                use $ours as From;
                use $theirs as To;
                Ok(match self {
                    $(From::$member(value) => To::$member($crate::convert::Mirror::mirror(value)),)*
                    $(From::$fallible(value) => To::$fallible(
                        $crate::convert::TryMirror::try_mirror(value)
                            .map_err(|error| error.within($name))?,
                    ),)*
                })
            }
        }
    };
}

use {mirror, mirror_one_way, mirror_oneof, mirror_oneof_one_way, try_mirror, try_mirror_oneof};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_of_range_is_refused_by_the_path_of_its_field() {
        let late = a2a::TaskStatus {
            timestamp: Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 }),
            ..Default::default()
        };
        let page = a2a::ListTasksResponse {
            tasks: vec![a2a::Task::default(), a2a::Task { status: Some(late.clone()), ..Default::default() }],
            ..Default::default()
        };
        let error = wire::ListTasksResponse::try_from(page).unwrap_err();
        assert_eq!(error.field(), "tasks[1].status.timestamp");

        let item = a2a::StreamResponse {
            payload: Some(a2a::stream_response::Payload::StatusUpdate(a2a::TaskStatusUpdateEvent {
                status: Some(late),
                ..Default::default()
            })),
        };
        let error = wire::StreamResponse::try_from(item).unwrap_err();
        assert_eq!(error.field(), "statusUpdate.status.timestamp");
    }

    #[test]
    fn a_stored_item_becomes_its_protobuf_message() {
        let item =
            stream_response_from_json(br#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}"#)
                .unwrap();
        let Some(a2a::stream_response::Payload::Message(message)) = item.payload else {
            panic!("not a message: {item:?}");
        };
        assert_eq!(message.message_id, "m");
        assert_eq!(message.role, 2);
    }

    #[test]
    fn a_stored_item_that_is_not_one_is_refused() {
        assert!(stream_response_from_json(br#"{"message":5}"#).is_err());
    }
}
