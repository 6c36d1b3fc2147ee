//! JSON that leaves no doubt: no member twice, bounded in size and depth, and numbers that a canonical form can say.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use thiserror::Error;

use crate::card::CARD_BYTES_MAX;

/// How deep objects and lists of a card may be nested; the outermost counts as 1.
pub const CARD_DEPTH_MAX: usize = 128;

/// How much of a peer's text goes into an error, in characters.
const EXCERPT_CHARS_MAX: usize = 64;

/// Why a card has no canonical form (RFC 8785 §3.1, and our limits).
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CardProblem {
    /// The text is not JSON, or not JSON that everybody reads alike.
    #[error("the card is not JSON that all readers read alike: {problem}")]
    NotJson {
        /// What is wrong, and where.
        problem: String,
    },
    /// It is JSON, but no object.
    #[error("the card is not a JSON object")]
    NotAnObject,
    /// It is larger than [`CARD_BYTES_MAX`].
    #[error("the card is larger than {CARD_BYTES_MAX} bytes")]
    TooLarge,
    /// It is nested deeper than [`CARD_DEPTH_MAX`].
    #[error("the card is nested deeper than {CARD_DEPTH_MAX} levels")]
    TooDeep,
    /// It holds an integer that a canonical form would round: two different cards would be signed alike.
    #[error("the card holds the number {number}, which has no exact canonical form")]
    Number {
        /// The number.
        number: String,
    },
    /// It has a member of the protocol in the spelling of `.proto` files. Readers take both spellings (§5.5), so that a member
    /// in the other one, which a signature may not cover, could take the place of one that it covers.
    #[error("the card spells member {wanted:?} {member:?}")]
    Spelling {
        /// The member as it stands there.
        member: String,
        /// The member as it has to be.
        wanted: &'static str,
    },
}

/// Reads the text of a card for a verifier.
///
/// # Errors
///
/// [`CardProblem`] when it is larger than [`CARD_BYTES_MAX`], no JSON object, or has a member twice.
pub fn read_card(text: &[u8]) -> Result<Value, CardProblem> {
    if text.len() > CARD_BYTES_MAX {
        return Err(CardProblem::TooLarge);
    }
    let card = read_strict(text).map_err(|problem| CardProblem::NotJson { problem })?;
    if card.is_object() { Ok(card) } else { Err(CardProblem::NotAnObject) }
}

/// Reads JSON and refuses a member that is there twice. The message says what is wrong and where.
pub(super) fn read_strict(text: &[u8]) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let read = Strict::deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value.0));
    read.map_err(|error| error.to_string())
}

/// Makes sure that `card` is bounded and that its numbers are exact. Doesn't recurse: a value that a caller has made can be
/// nested without limit.
pub(super) fn check(card: &Value) -> Result<&Map<String, Value>, CardProblem> {
    let object = card.as_object().ok_or(CardProblem::NotAnObject)?;
    let mut bytes = 0_usize;
    let mut to_visit = vec![(card, 1_usize)];
    while let Some((value, depth)) = to_visit.pop() {
        bytes = bytes.saturating_add(1);
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => check_number(number)?,
            Value::String(text) => bytes = bytes.saturating_add(text.len()),
            Value::Array(_) | Value::Object(_) if depth > CARD_DEPTH_MAX => return Err(CardProblem::TooDeep),
            Value::Array(elements) => to_visit.extend(elements.iter().map(|element| (element, depth + 1))),
            Value::Object(members) => {
                bytes = members.keys().fold(bytes, |bytes, name| bytes.saturating_add(name.len()));
                to_visit.extend(members.values().map(|member| (member, depth + 1)));
            }
        }
        if bytes > CARD_BYTES_MAX {
            return Err(CardProblem::TooLarge);
        }
    }
    Ok(object)
}

/// Whether an integer is written as the canonical form writes it, which knows doubles alone (RFC 8785 §3.1, §3.2.2.3). Beyond
/// 53 bits several integers have one canonical form, and only the one that it prints is taken.
fn check_number(number: &Number) -> Result<(), CardProblem> {
    if number.is_f64() {
        return Ok(());
    }
    let written = number.to_string();
    match serde_json_canonicalizer::to_string(number) {
        Ok(canonical) if canonical == written => Ok(()),
        _ => Err(CardProblem::Number { number: written }),
    }
}

/// The beginning of what a peer wrote, for an error.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS_MAX).collect()
}

/// A JSON value without a member that is there twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element::<Strict>()? {
            list.push(element.0);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("member {:?} is there twice", excerpt(&name))));
            }
            object.insert(name, members.next_value::<Strict>()?.0);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_that_is_there_twice_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"b":[{"a":1,"\u0061":2}]}"#] {
            let problem = read_strict(text.as_bytes()).unwrap_err();
            assert!(problem.contains("member \"a\" is there twice"), "{problem}");
        }
        assert_eq!(
            read_strict(br#"{"a":{"a":[1,-1,1.5,null,true,"a"]}}"#),
            Ok(json!({"a": {"a": [1, -1, 1.5, null, true, "a"]}}))
        );
    }

    #[test]
    fn what_is_not_one_json_object_is_refused() {
        for text in [&b""[..], b"{", b"{} {}", b"{\"a\":\"\xff\"}", br#"{"a":"\ud800"}"#, br#"{"a":1e999}"#] {
            assert!(matches!(read_card(text), Err(CardProblem::NotJson { .. })), "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(read_card(b"[]"), Err(CardProblem::NotAnObject));
        let deep = "[".repeat(100_000);
        assert!(matches!(read_card(deep.as_bytes()), Err(CardProblem::NotJson { .. })));
        assert_eq!(read_card(&vec![b' '; CARD_BYTES_MAX + 1]), Err(CardProblem::TooLarge));
    }

    #[test]
    fn an_integer_that_a_double_rounds_is_refused() {
        // The last one is 2^60, and JavaScript prints it as the last of those that are taken.
        for rounded in [json!(9_007_199_254_740_993_u64), json!(u64::MAX), json!(i64::MIN), json!(1_u64 << 60)] {
            assert_eq!(check(&json!({ "n": rounded })), Err(CardProblem::Number { number: rounded.to_string() }));
        }
        let exact =
            json!([0, -1, 9_007_199_254_740_992_u64, -9_007_199_254_740_992_i64, 1_152_921_504_606_847_000_u64]);
        assert!(check(&json!({ "n": exact })).is_ok());
        assert!(check(&json!({ "n": [0.1, -0.0, 1e300, 18_446_744_073_709_551_615.0] })).is_ok());
    }

    #[test]
    fn a_value_that_is_too_deep_or_too_large_is_refused() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
        assert!(check(&nested(CARD_DEPTH_MAX)).is_ok());
        assert_eq!(check(&nested(CARD_DEPTH_MAX + 1)), Err(CardProblem::TooDeep));
        assert_eq!(check(&json!({ "a": "x".repeat(CARD_BYTES_MAX) })), Err(CardProblem::TooLarge));
        assert_eq!(check(&json!(7)), Err(CardProblem::NotAnObject));
    }
}
