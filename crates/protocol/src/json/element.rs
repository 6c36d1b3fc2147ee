//! How each type of the proto is read and written where it stands alone, so never as `null`.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::timestamp::Timestamp;

use super::JsonObject;
use super::member::read_nullable;
use super::value::{ObjectVisitor, ValueSeed};

/// What can be read where `null` is refused.
pub(crate) trait Read: Sized {
    /// Reads a value; `null` is refused.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// A value of the proto: a scalar, an enum or a message.
pub(crate) trait Element: Read {
    /// Reads a member with presence: `null` is absent.
    fn read_optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        read_nullable(deserializer)
    }

    /// Writes the value.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

impl Read for String {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

impl Element for String {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl Read for bool {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

impl Element for bool {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self)
    }
}

impl Read for i32 {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntegerVisitor(PhantomData))
    }
}

impl Element for i32 {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(*self)
    }
}

impl Read for i64 {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntegerVisitor(PhantomData))
    }
}

impl Element for i64 {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(*self)
    }
}

impl Read for Timestamp {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

impl Element for Timestamp {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }
}

impl Read for JsonObject {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

impl Element for JsonObject {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }
}

impl Read for Value {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueSeed)
    }
}

impl Element for Value {
    /// `null` is a value here, not an absence.
    fn read_optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::read(deserializer).map(Some)
    }

    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }
}

impl Read for Bytes {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Base64Visitor)
    }
}

impl Element for Bytes {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self))
    }
}

/// Takes padding or none, and whatever is in the bits that the last character has to spare.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

struct Base64Visitor;

impl Visitor<'_> for Base64Visitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base64 text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        let engine = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
        let bytes = engine.decode(text).map_err(|_| E::custom("must be base64"))?;
        Ok(Bytes::from(bytes))
    }
}

/// Reads an integer from a number with or without a (zero) fraction or exponent, or from a string
/// that holds such a number.
struct IntegerVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i64>> IntegerVisitor<T> {
    fn fit<E: Error>(value: i64, given: Unexpected<'_>) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(given, &Self(PhantomData)))
    }
}

impl<T: TryFrom<i64>> Visitor<'_> for IntegerVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number of {} bits", size_of::<T>() * 8)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        Self::fit(value, Unexpected::Signed(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        let given = Unexpected::Unsigned(value);
        let value = i64::try_from(value).map_err(|_| E::invalid_value(given, &self))?;
        Self::fit(value, given)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        let given = Unexpected::Float(value);
        let whole = whole_number(value).ok_or_else(|| E::invalid_value(given, &self))?;
        Self::fit(whole, given)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        // Numbers only: the parser would also skip white space around them.
        let is_bare = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
        let number = if is_bare { serde_json::from_str::<Number>(text).ok() } else { None };
        let whole = number.and_then(|number| number.as_i64().or_else(|| whole_number(number.as_f64()?)));
        let whole = whole.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))?;
        Self::fit(whole, Unexpected::Str(text))
    }
}

/// `value` as an integer, if it is one and fits.
pub(crate) fn whole_number(value: f64) -> Option<i64> {
    // 2⁶³ is the first value past the range, and a power of two, so that it is exact as a float.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range, as just checked")]
    (value.fract() == 0.0 && (-LIMIT..LIMIT).contains(&value)).then_some(value as i64)
}
