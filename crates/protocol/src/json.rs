//! ProtoJSON as A2A uses it: bytes straight into the structs of [`wire`](crate::wire), and back.
//!
//! Reading takes camelCase and snake_case names (of two spellings the last one wins, the same
//! spelling twice is refused), ignores unknown members, takes `null` as absent, enums by name or
//! number, integers as numbers or strings, base64 in both alphabets with or without padding, and
//! refuses two members of a oneof. Writing leaves out default values, except members that A2A
//! requires (§5.7).

mod element;
mod macros;
mod member;
mod path;
mod value;

use std::cell::RefCell;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;

pub(crate) use element::{Element, Read, whole_number};
pub(crate) use macros::{EnumVisitor, KeySeed, Seen, second_of_oneof, wire_enum, wire_message};
pub(crate) use member::{ElementRef, Member, MemberRef, MemberSeed, read_nullable};
pub(crate) use path::{Segment, within};

/// A JSON object with its members in the order in which they came: `google.protobuf.Struct`.
///
/// Whole numbers keep their digits from -2⁶³ to 2⁶⁴ - 1; past that, and with a fraction or an
/// exponent, a number is the nearest double. Of a key given twice the last value wins.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// How many levels of arrays and objects may be inside each other, the outermost counted.
///
/// More are refused as [`JsonErrorKind::Depth`], except inside unknown members, which are skipped
/// without recursion.
pub const DEPTH_MAX: usize = 127;

/// A type whose JSON form is ProtoJSON: each struct of [`wire`](crate::wire), and the types made of
/// them.
pub trait ProtoJson: Serialize + DeserializeOwned {}

/// Says why JSON could not be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JsonError {
    /// What sort of fault it is.
    pub kind: JsonErrorKind,
    /// Where it is, in JSON names: `message.parts[0].raw`. Empty for the outermost value.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// The sorts of fault in JSON.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum JsonErrorKind {
    /// It is not JSON.
    Syntax,
    /// It is nested deeper than [`DEPTH_MAX`].
    Depth,
    /// It is JSON, but not of this message.
    Invalid,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for JsonError {}

/// Reads one message. The outermost value must be an object, and nothing may follow it.
///
/// # Errors
///
/// [`JsonError`] says what is wrong and where.
pub fn from_json<T: ProtoJson>(json: &[u8]) -> Result<T, JsonError> {
    serde_json::from_slice(json).or_else(|_| explain(json))
}

/// Reads any JSON object, with its members in their order.
///
/// # Errors
///
/// [`JsonError`] says what is wrong.
pub fn object_from_json(json: &[u8]) -> Result<JsonObject, JsonError> {
    struct Object(JsonObject);

    impl<'de> Deserialize<'de> for Object {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(value::ObjectVisitor).map(Self)
        }
    }

    serde_json::from_slice(json).or_else(|_| explain(json)).map(|Object(members)| members)
}

/// Reads again, slowly, and this time takes note of the path to the fault.
#[cold]
fn explain<T: DeserializeOwned>(json: &[u8]) -> Result<T, JsonError> {
    let (result, path) = path::traced(|| serde_json::from_slice(json));
    result.map_err(|error: serde_json::Error| {
        let mut message = error.to_string();
        let kind = match error.classify() {
            Category::Data => JsonErrorKind::Invalid,
            // The parser has no category of their own for these two.
            _ if message.starts_with("recursion limit exceeded") => JsonErrorKind::Depth,
            _ if message.starts_with("number out of range") => JsonErrorKind::Invalid,
            Category::Io | Category::Syntax | Category::Eof => JsonErrorKind::Syntax,
        };
        match kind {
            JsonErrorKind::Syntax => {}
            JsonErrorKind::Depth => {
                message = format!("must not be nested deeper than {DEPTH_MAX} levels");
            }
            // The path says where it is, better than line and column.
            JsonErrorKind::Invalid => {
                if let Some(end) = message.rfind(" at line ") {
                    message.truncate(end);
                }
            }
        }
        JsonError { kind, path, message }
    })
}

/// Writes one message, without white space.
#[must_use]
pub fn to_json<T: ProtoJson>(message: &T) -> Bytes {
    SCRATCH.with_borrow_mut(|out| {
        out.clear();
        #[expect(clippy::expect_used, reason = "writes to memory, and all keys are strings")]
        serde_json::to_writer(&mut *out, message).expect("a wire message has a JSON form");
        let json = Bytes::copy_from_slice(out);
        out.shrink_to(SCRATCH_BYTES_MAX);
        json
    })
}

/// How much memory each thread keeps for writing.
const SCRATCH_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// Where messages are written first, so that what is kept of them has the very size.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
