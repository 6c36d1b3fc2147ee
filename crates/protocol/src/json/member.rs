//! How a member of a message is read and written: `null` is absent, absent is the default.

use std::fmt;
use std::marker::PhantomData;

use indexmap::IndexMap;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::element::{Element, Read};
use super::path::{Segment, within};

/// The type of a struct's field.
pub(crate) trait Member: Sized {
    /// Reads the member; `null` gives what absence gives.
    fn read_member<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// Whether the member is left out.
    fn is_absent(&self) -> bool;

    /// Whether the member is printed even when it is absent, if A2A requires it.
    fn has_default_form(&self) -> bool {
        true
    }

    /// Writes the member.
    fn write_member<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

/// Reads a value, or `null` as none.
#[inline]
pub(crate) fn read_nullable<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Read,
    D: Deserializer<'de>,
{
    deserializer.deserialize_option(NullableVisitor(PhantomData))
}

struct NullableVisitor<T>(PhantomData<T>);

impl<'de, T: Read> Visitor<'de> for NullableVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        T::read(deserializer).map(Some)
    }
}

macro_rules! scalar_members {
    ($($scalar:ty: |$value:ident| $is_absent:expr;)+) => {$(
        impl Member for $scalar {
            fn read_member<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_nullable(deserializer).map(Option::unwrap_or_default)
            }

            fn is_absent(&self) -> bool {
                let $value = self;
                $is_absent
            }

            fn write_member<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.write(serializer)
            }
        }
    )+};
}

scalar_members! {
    String: |value| value.is_empty();
    bool: |value| !*value;
    i32: |value| *value == 0;
    i64: |value| *value == 0;
}

impl<T: Element> Member for Option<T> {
    fn read_member<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read_optional(deserializer)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn has_default_form(&self) -> bool {
        self.is_some()
    }

    fn write_member<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.write(serializer),
            None => serializer.serialize_unit(),
        }
    }
}

impl<T: Element> Member for Vec<T> {
    fn read_member<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list: Option<List<T>> = read_nullable(deserializer)?;
        Ok(list.map(|list| list.0).unwrap_or_default())
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn write_member<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for item in self {
            seq.serialize_element(&ElementRef(item))?;
        }
        seq.end()
    }
}

impl<T: Element> Member for IndexMap<String, T> {
    fn read_member<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table: Option<Table<T>> = read_nullable(deserializer)?;
        Ok(table.map(|table| table.0).unwrap_or_default())
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn write_member<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self {
            map.serialize_entry(key, &ElementRef(value))?;
        }
        map.end()
    }
}

/// A repeated field.
struct List<T>(Vec<T>);

impl<T: Element> Read for List<T> {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Element> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
        let mut items = Vec::new();
        loop {
            let next = seq.next_element_seed(ElementSeed(PhantomData));
            match within(|| Segment::Index(items.len()), next)? {
                Some(item) => {
                    // Most lists have one item, which is large.
                    if items.is_empty() {
                        items.reserve_exact(1);
                    }
                    items.push(item);
                }
                None => return Ok(List(items)),
            }
        }
    }
}

/// A map field.
struct Table<T>(IndexMap<String, T>);

impl<T: Element> Read for Table<T> {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor(PhantomData))
    }
}

struct TableVisitor<T>(PhantomData<T>);

impl<'de, T: Element> Visitor<'de> for TableVisitor<T> {
    type Value = Table<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table<T>, A::Error> {
        let mut entries = IndexMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(ElementSeed(PhantomData));
            let value = within(|| Segment::Key(key.clone()), value)?;
            entries.insert(key, value);
        }
        Ok(Table(entries))
    }
}

/// Reads an element.
struct ElementSeed<T>(PhantomData<T>);

impl<'de, T: Element> DeserializeSeed<'de> for ElementSeed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read(deserializer)
    }
}

/// Reads a member.
pub(crate) struct MemberSeed<T>(PhantomData<T>);

impl<T> MemberSeed<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Member> DeserializeSeed<'de> for MemberSeed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read_member(deserializer)
    }
}

/// Writes an element.
pub(crate) struct ElementRef<'a, T>(pub(crate) &'a T);

impl<T: Element> Serialize for ElementRef<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

/// Writes a member.
pub(crate) struct MemberRef<'a, T>(pub(crate) &'a T);

impl<T: Member> Serialize for MemberRef<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write_member(serializer)
    }
}
