//! `google.protobuf.Value` and `Struct`: every value survives, and nothing hostile does harm.

use bytes::{Buf, Bytes};
use longhaul_protobuf::json_value::JSON_DEPTH_MAX;
use longhaul_protobuf::{JsonStruct, JsonValue};
use proptest::prelude::*;
use prost::Message;
use serde_json::{Number, Value, json};

proptest! {
    #[test]
    fn every_value_comes_back_as_it_was(value in any_value()) {
        let sent = JsonValue(value);
        let bytes = sent.encode_to_vec();
        prop_assert_eq!(bytes.len(), sent.encoded_len());
        prop_assert_eq!(JsonValue::decode(bytes.as_slice()).unwrap(), sent);
    }

    #[test]
    fn every_object_comes_back_in_its_order(members in prop::collection::vec((".{0,6}", any_value()), 0..6)) {
        let sent = JsonStruct(members.into_iter().collect());
        let bytes = sent.encode_to_vec();
        prop_assert_eq!(bytes.len(), sent.encoded_len());
        let back = JsonStruct::decode(bytes.as_slice()).unwrap();
        prop_assert!(back.0.keys().eq(sent.0.keys()));
        prop_assert_eq!(back, sent);
    }

    #[test]
    fn bytes_in_two_pieces_are_read_like_bytes_in_one(value in any_value(), at in any::<prop::sample::Index>()) {
        let sent = JsonValue(value);
        let bytes = Bytes::from(sent.encode_to_vec());
        let at = at.index(bytes.len());
        let pieces = bytes.slice(..at).chain(bytes.slice(at..));
        prop_assert_eq!(JsonValue::decode(pieces).unwrap(), sent);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = JsonValue::decode(bytes.as_slice());
        let _ = JsonStruct::decode(bytes.as_slice());
    }

    #[test]
    fn our_reading_agrees_with_prost_types(value in any_value()) {
        let bytes = JsonValue(value.clone()).encode_to_vec();
        let theirs = prost_types::Value::decode(bytes.as_slice()).unwrap();
        let back = JsonValue::decode(theirs.encode_to_vec().as_slice()).unwrap();
        prop_assert_eq!(back.0, value);
    }
}

/// Any JSON value whose numbers have one form: whole ones up to 2^53 are integers.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53)..=(1 << 53)).prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(|number| {
            let whole = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
            json!(if whole { 0.5 } else { number })
        }),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn a_whole_double_within_2_53_is_an_integer() {
    for (double, expected) in [
        (0.0, json!(0)),
        (1.0, json!(1)),
        (-7.0, json!(-7)),
        (9_007_199_254_740_992.0, json!(9_007_199_254_740_992_i64)),
        (-9_007_199_254_740_992.0, json!(-9_007_199_254_740_992_i64)),
        (9_007_199_254_740_994.0, json!(9_007_199_254_740_994.0)),
        (0.25, json!(0.25)),
        (1e300, json!(1e300)),
    ] {
        assert_eq!(decode_number(double).unwrap(), expected, "{double}");
    }
}

#[test]
fn minus_zero_stays_a_minus_zero() {
    let Value::Number(number) = decode_number(-0.0).unwrap() else {
        panic!("not a number");
    };
    assert!(number.is_f64());
    assert!(number.as_f64().unwrap().is_sign_negative());
}

#[test]
fn numbers_that_json_lacks_are_refused() {
    for double in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = decode_number(double).unwrap_err();
        assert!(error.to_string().contains("must be finite"), "{error}");
    }
}

#[test]
fn integers_past_2_53_are_sent_as_the_nearest_double() {
    for (number, expected) in
        [(Number::from(u64::MAX), 18_446_744_073_709_551_615.0), (Number::from(i64::MIN), -9_223_372_036_854_775_808.0)]
    {
        let bytes = JsonValue(Value::Number(number)).encode_to_vec();
        let back = JsonValue::decode(bytes.as_slice()).unwrap();
        assert_eq!(back.0.as_f64(), Some(expected));
    }
}

#[test]
fn nesting_up_to_the_limit_is_read_and_one_level_more_is_refused() {
    for wrap in [array_around as fn(Vec<u8>) -> Vec<u8>, object_around] {
        let deepest = nested(JSON_DEPTH_MAX, wrap);
        let value = JsonValue::decode(deepest.as_slice()).unwrap();
        assert_eq!(JsonValue::decode(value.encode_to_vec().as_slice()), Ok(value));

        let error = JsonValue::decode(nested(JSON_DEPTH_MAX + 1, wrap).as_slice()).unwrap_err();
        assert!(error.to_string().contains("nested deeper than"), "{error}");
    }
}

#[test]
fn a_value_of_a_hundred_levels_is_within_the_limit() {
    assert!(JsonValue::decode(nested(100, array_around).as_slice()).is_ok());
}

#[test]
fn hostile_nesting_is_refused_without_a_stack_overflow() {
    let bytes = nested(20_000, array_around);
    assert!(JsonValue::decode(bytes.as_slice()).is_err());
}

#[test]
fn a_length_past_the_end_is_refused() {
    // A string of 2^63 bytes, and a list of 100 bytes in a message of 2.
    for bytes in [&[0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[0x32, 100]] {
        assert!(JsonValue::decode(bytes).is_err());
    }
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    assert!(JsonValue::decode(&[0x1a, 1, 0xff][..]).is_err());
    // As the key of an entry, too.
    assert!(JsonStruct::decode(&[0x0a, 3, 0x0a, 1, 0xff][..]).is_err());
}

#[test]
fn fields_of_a_wrong_wire_type_are_refused() {
    for tag in 1..=6_u8 {
        // No kind of value is a 32-bit field.
        assert!(JsonValue::decode(&[tag << 3 | 5, 0, 0, 0, 0][..]).is_err(), "{tag}");
    }
}

#[test]
fn unknown_fields_are_skipped() {
    // Field 15, four bytes long, before the text "a".
    let bytes = [0x7a, 4, 1, 2, 3, 4, 0x1a, 1, b'a'];
    assert_eq!(JsonValue::decode(&bytes[..]).unwrap().0, json!("a"));
}

#[test]
fn a_value_without_a_kind_is_null() {
    assert_eq!(JsonValue::decode(&[][..]).unwrap().0, Value::Null);
}

#[test]
fn a_kind_given_twice_is_merged_and_another_kind_replaces_it() {
    let list = JsonValue(json!([1])).encode_to_vec();
    let object = JsonValue(json!({"a": 1, "b": 1})).encode_to_vec();
    let change = JsonValue(json!({"b": 2})).encode_to_vec();

    let twice = [list.clone(), list.clone()].concat();
    assert_eq!(JsonValue::decode(twice.as_slice()).unwrap().0, json!([1, 1]));
    let changed = [object.clone(), change].concat();
    assert_eq!(JsonValue::decode(changed.as_slice()).unwrap().0, json!({"a": 1, "b": 2}));
    let replaced = [object, list].concat();
    assert_eq!(JsonValue::decode(replaced.as_slice()).unwrap().0, json!([1]));
}

#[test]
fn an_entry_without_key_or_value_is_an_empty_key_and_null() {
    assert_eq!(JsonStruct::decode(&[0x0a, 0][..]).unwrap().0, *json!({"": null}).as_object().unwrap());
}

fn decode_number(double: f64) -> Result<Value, prost::DecodeError> {
    let mut bytes = vec![0x11];
    bytes.extend(double.to_le_bytes());
    JsonValue::decode(bytes.as_slice()).map(|value| value.0)
}

/// The encoding of a `Value`: `null` inside `levels` arrays or objects.
fn nested(levels: usize, wrap: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    (0..levels).fold(vec![0x08, 0], |inner, _| wrap(inner))
}

fn array_around(value: Vec<u8>) -> Vec<u8> {
    field(0x32, field(0x0a, value))
}

fn object_around(value: Vec<u8>) -> Vec<u8> {
    let mut entry = field(0x0a, b"k".to_vec());
    entry.extend(field(0x12, value));
    field(0x2a, field(0x0a, entry))
}

fn field(key: u8, payload: Vec<u8>) -> Vec<u8> {
    let mut bytes = vec![key];
    prost::encoding::encode_varint(payload.len() as u64, &mut bytes);
    bytes.extend(payload);
    bytes
}
