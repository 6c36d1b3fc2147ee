//! The macros that make a struct and its JSON form from one list of fields, and what they use.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, Unexpected, Visitor};

use super::whole_number;

/// Makes a message of the proto.
///
/// ```text
/// Name {
///     field "jsonName": Type [required],
/// } oneof member: Enum {
///     field "jsonName" => Variant(Type),
/// }
/// ```
macro_rules! wire_message {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$field_doc:meta])* $field:ident $json:literal: $type:ty $([$required:ident])?,)*
        } $(
            $(#[$oneof_doc:meta])*
            oneof $oneof:ident: $enum:ident {
                $($(#[$case_doc:meta])* $case:ident $case_json:literal => $variant:ident($case_type:ty),)+
            }
        )?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$oneof_doc])* pub $oneof: Option<$enum>,)?
            $($(#[$field_doc])* pub $field: $type,)*
        }

        $(
            $(#[$oneof_doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub enum $enum {
                $($(#[$case_doc])* $variant($case_type),)+
            }
        )?

        const _: () = {
            use $crate::json;

            #[derive(Clone, Copy)]
            #[expect(non_camel_case_types, reason = "named as the fields are")]
            enum Key {
                $($field,)*
                $($($case,)+)?
            }

            /// The field of a member's name, and 1 if the name is not the JSON one, else 0.
            fn find(name: &str) -> Option<(Key, u32)> {
                match name {
                    $($json => Some((Key::$field, 0)),)*
                    $($($case_json => Some((Key::$case, 0)),)+)?
                    _ => match name {
                        $(stringify!($field) => Some((Key::$field, 1)),)*
                        $($(stringify!($case) => Some((Key::$case, 1)),)+)?
                        _ => None,
                    },
                }
            }

            $(const CASES: &[&str] = &[$($case_json),+];)?

            struct MessageVisitor;

            impl<'de> serde::de::Visitor<'de> for MessageVisitor {
                type Value = $name;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(concat!("a JSON object (", stringify!($name), ")"))
                }

                fn visit_map<A>(self, mut map: A) -> Result<$name, A::Error>
                where
                    A: serde::de::MapAccess<'de>,
                {
                    let mut message = $name::default();
                    let mut seen = json::Seen::default();
                    while let Some(found) = map.next_key_seed(json::KeySeed(find))? {
                        let Some((key, spelling)) = found else {
                            map.next_value::<serde::de::IgnoredAny>()?;
                            continue;
                        };
                        match key {
                            $(Key::$field => {
                                seen.mark(key as u32, spelling, $json)?;
                                message.$field = json::within(
                                    || json::Segment::Member($json),
                                    map.next_value_seed(json::MemberSeed::<$type>::new()),
                                )?;
                            })*
                            $($(Key::$case => {
                                seen.mark(key as u32, spelling, $case_json)?;
                                let value = json::within(
                                    || json::Segment::Member($case_json),
                                    map.next_value_seed(json::MemberSeed::<Option<$case_type>>::new()),
                                )?;
                                if let Some(value) = value {
                                    if message.$oneof.is_some() {
                                        return Err(json::second_of_oneof($case_json, CASES));
                                    }
                                    message.$oneof = Some($enum::$variant(value));
                                }
                            })+)?
                        }
                    }
                    Ok(message)
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D>(deserializer: D) -> Result<Self, D::Error>
                where
                    D: serde::Deserializer<'de>,
                {
                    deserializer.deserialize_map(MessageVisitor)
                }
            }

            impl serde::Serialize for $name {
                fn serialize<S>(&self, serializer: S) -> Result<S::Ok, S::Error>
                where
                    S: serde::Serializer,
                {
                    use serde::ser::SerializeMap as _;

                    let mut map = serializer.serialize_map(None)?;
                    $(match &self.$oneof {
                        $(Some($enum::$variant(value)) => {
                            map.serialize_entry($case_json, &json::ElementRef(value))?;
                        })+
                        None => {}
                    })?
                    $(
                        let is_printed = json::wire_message!(@is_printed self.$field, $($required)?);
                        if is_printed {
                            map.serialize_entry($json, &json::MemberRef(&self.$field))?;
                        }
                    )*
                    map.end()
                }
            }

            impl json::Read for $name {
                fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    serde::Deserialize::deserialize(deserializer)
                }
            }

            impl json::Element for $name {
                fn write<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serde::Serialize::serialize(self, serializer)
                }
            }

            impl json::ProtoJson for $name {}
        };
    };
    (@is_printed $value:expr,) => { !json::Member::is_absent(&$value) };
    (@is_printed $value:expr, required) => { json::Member::has_default_form(&$value) };
}

/// Makes an open enum of the proto: a number, of which some are known.
macro_rules! wire_enum {
    (
        $(#[$doc:meta])* $name:ident = $domain:ty, unspecified $unspecified:literal
        $(, $(#[$other_doc:meta])* misspelt $other:ident $misspelt:literal)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        pub struct $name(pub i32);

        impl $name {
            /// What a name stands for that this version of the protocol does not have. Never written; a rule
            /// refuses it where the value decides something.
            pub const UNRECOGNIZED: Self = Self(i32::MIN);

            /// Numbers below this one stand for names that the protocol does not have.
            const NAMES_END: i32 = i32::MIN + 2;

            $($(#[$other_doc])* pub const $other: Self = Self(i32::MIN + 1);)?

            /// What stands for a name that the protocol does not have.
            fn number_of_unknown(name: &str) -> i32 {
                match name {
                    $($misspelt => Self::$other.0,)?
                    _ => Self::UNRECOGNIZED.0,
                }
            }

            /// The value's number on the wire of protobuf, where a name that is not known is absent.
            #[must_use]
            pub fn number(self) -> i32 {
                if self.0 < Self::NAMES_END { 0 } else { self.0 }
            }

            /// The value as the rest of the system knows it; none if unspecified or unknown.
            #[must_use]
            pub fn known(self) -> Option<$domain> {
                <$domain>::from_number(self.0)
            }
        }

        impl From<$domain> for $name {
            fn from(value: $domain) -> Self {
                Self(value.number())
            }
        }

        const _: () = {
            use $crate::json;

            impl serde::Serialize for $name {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    match self.known() {
                        Some(value) => serializer.serialize_str(value.wire_name()),
                        None if self.number() == 0 => serializer.serialize_str($unspecified),
                        None => serializer.serialize_i32(self.0),
                    }
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let number = deserializer.deserialize_any(json::EnumVisitor(|name: &str| {
                        match name.is_empty() || name == $unspecified {
                            true => 0,
                            false => <$domain>::from_wire_name(name)
                                .map_or_else(|| Self::number_of_unknown(name), <$domain>::number),
                        }
                    }))?;
                    Ok(Self(number))
                }
            }

            impl json::Read for $name {
                fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    serde::Deserialize::deserialize(deserializer)
                }
            }

            impl json::Member for $name {
                fn read_member<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    json::read_nullable(deserializer).map(Option::unwrap_or_default)
                }

                fn is_absent(&self) -> bool {
                    self.number() == 0
                }

                fn has_default_form(&self) -> bool {
                    self.number() != 0
                }

                fn write_member<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serde::Serialize::serialize(self, serializer)
                }
            }
        };
    };
}

pub(crate) use {wire_enum, wire_message};

/// Which names of a message's members were read already: two bits for each field, one a spelling.
#[derive(Default)]
pub(crate) struct Seen(u64);

impl Seen {
    /// Takes note of a name, and refuses it the second time.
    #[inline]
    pub(crate) fn mark<E: Error>(&mut self, field: u32, spelling: u32, json: &'static str) -> Result<(), E> {
        let bit = 1 << (2 * field + spelling);
        if self.0 & bit != 0 {
            return Err(E::duplicate_field(json));
        }
        self.0 |= bit;
        Ok(())
    }
}

/// The error for a second member of a oneof.
#[cold]
pub(crate) fn second_of_oneof<E: Error>(second: &str, all: &[&str]) -> E {
    E::custom(format_args!("only one of {} is allowed, `{second}` is the second", all.join(", ")))
}

/// Reads a member's name by a function from names to fields.
pub(crate) struct KeySeed<F>(pub(crate) F);

impl<'de, K, F: Fn(&str) -> K> DeserializeSeed<'de> for KeySeed<F> {
    type Value = K;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<K, F: Fn(&str) -> K> Visitor<'_> for KeySeed<F> {
    type Value = K;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    #[inline]
    fn visit_str<E>(self, name: &str) -> Result<K, E> {
        Ok((self.0)(name))
    }
}

/// Reads an enum by name, through a function from names to numbers, or by number.
pub(crate) struct EnumVisitor<F>(pub(crate) F);

impl<F: Fn(&str) -> i32> Visitor<'_> for EnumVisitor<F> {
    type Value = i32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or the number of an enum's value")
    }

    fn visit_str<E>(self, name: &str) -> Result<i32, E> {
        Ok((self.0)(name))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<i32, E> {
        i32::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<i32, E> {
        i32::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<i32, E> {
        let whole = whole_number(value).and_then(|whole| i32::try_from(whole).ok());
        whole.ok_or_else(|| E::invalid_value(Unexpected::Float(value), &self))
    }
}
