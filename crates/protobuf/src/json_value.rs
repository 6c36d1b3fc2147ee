//! `google.protobuf.Value` and `Struct` as the JSON values that the data model holds.
//!
//! The types of `prost-types` would need a copy of every value in both directions, and `prost` stops
//! at 100 nested messages, which is 50 nested arrays. Here the wire form is read into, and written
//! from, `serde_json` values, with a limit of our own.

use std::borrow::Cow;

use bytes::{Buf, BufMut};
use longhaul_protocol::JsonObject;
use prost::encoding::{
    DecodeContext, WireType, bool, decode_key, decode_varint, double, encode_key, encode_varint, encoded_len_varint,
    int32, skip_field,
};
use prost::{DecodeError, Message};
use serde_json::{Number, Value};

/// How many arrays and objects may stand inside each other in one decoded value.
///
/// What comes in by gRPC is stored as JSON and must be readable as JSON: the limit is that of JSON,
/// less room for the messages and lists that can be around a value there.
pub const JSON_DEPTH_MAX: usize = longhaul_protocol::json::DEPTH_MAX - MESSAGE_DEPTH_MAX;

/// The most messages and lists that can be around a value in the JSON of any message: those of the
/// data of a part of a message of the history of a task in a page of tasks.
const MESSAGE_DEPTH_MAX: usize = 8;

/// The largest whole number below which every whole number has a double of its own.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The fields of `google.protobuf.Value`.
const NULL: u32 = 1;
const NUMBER: u32 = 2;
const STRING: u32 = 3;
const BOOL: u32 = 4;
const STRUCT: u32 = 5;
const LIST: u32 = 6;

/// The one field of `Struct` (entries) and of `ListValue` (values).
const ITEMS: u32 = 1;

/// The fields of an entry of `Struct`.
const ENTRY_KEY: u32 = 1;
const ENTRY_VALUE: u32 = 2;

/// The length of the key of any field above: their numbers are all below 16.
const KEY_LEN: usize = 1;

/// `google.protobuf.Value`: any JSON value.
///
/// Numbers are doubles on the wire. A double that is whole and within ±2^53 is read as an integer, so
/// that `1` does not come back as `1.0`; an integer past that loses digits, as in any implementation.
/// A value without a kind is read as `null`. Not-a-number and the infinities are refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonValue(pub Value);

/// `google.protobuf.Struct`: a JSON object. See [`JsonValue`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonStruct(pub JsonObject);

impl Message for JsonValue {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        let mut lengths = Lengths::default();
        measure_value(&self.0, &mut lengths);
        write_value(&self.0, &mut lengths, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        merge_value_field(&mut self.0, Field { tag, wire_type }, buf, &ctx, 0)
    }

    fn encoded_len(&self) -> usize {
        measure_value(&self.0, &mut Lengths::default())
    }

    fn clear(&mut self) {
        self.0 = Value::Null;
    }
}

impl Message for JsonStruct {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        let mut lengths = Lengths::default();
        measure_object(&self.0, &mut lengths);
        write_object(&self.0, &mut lengths, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        merge_object_field(&mut self.0, Field { tag, wire_type }, buf, &ctx, 1)
    }

    fn encoded_len(&self) -> usize {
        measure_object(&self.0, &mut Lengths::default())
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The key of a field.
#[derive(Clone, Copy)]
struct Field {
    tag: u32,
    wire_type: WireType,
}

impl Field {
    fn expect(self, expected: WireType) -> Result<(), DecodeError> {
        if self.wire_type == expected {
            return Ok(());
        }
        Err(refuse(format!("invalid wire type: {:?} (expected {expected:?})", self.wire_type)))
    }
}

/// Merges one field of a `Value` that stands inside `depth` arrays and objects.
fn merge_value_field(
    value: &mut Value,
    field: Field,
    buf: &mut impl Buf,
    ctx: &DecodeContext,
    depth: usize,
) -> Result<(), DecodeError> {
    let ctx_here = ctx.clone();
    match field.tag {
        NULL => {
            int32::merge(field.wire_type, &mut 0, buf, ctx_here)?;
            *value = Value::Null;
        }
        NUMBER => {
            let mut read = 0.0;
            double::merge(field.wire_type, &mut read, buf, ctx_here)?;
            *value = Value::Number(number(read)?);
        }
        STRING => {
            field.expect(WireType::LengthDelimited)?;
            *value = Value::String(with_payload(buf, text)?);
        }
        BOOL => {
            let mut read = false;
            bool::merge(field.wire_type, &mut read, buf, ctx_here)?;
            *value = Value::Bool(read);
        }
        STRUCT => {
            field.expect(WireType::LengthDelimited)?;
            let depth = deeper(depth)?;
            // The same kind twice is merged, as for every message in a oneof.
            if !value.is_object() {
                *value = Value::Object(JsonObject::new());
            }
            if let Value::Object(object) = value {
                with_payload(buf, |bytes| {
                    each_field(bytes, |field, bytes| merge_object_field(object, field, bytes, ctx, depth))
                })?;
            }
        }
        LIST => {
            field.expect(WireType::LengthDelimited)?;
            let depth = deeper(depth)?;
            if !value.is_array() {
                *value = Value::Array(Vec::new());
            }
            if let Value::Array(list) = value {
                with_payload(buf, |bytes| {
                    each_field(bytes, |field, bytes| merge_list_field(list, field, bytes, ctx, depth))
                })?;
            }
        }
        tag => skip_field(field.wire_type, tag, buf, ctx_here)?,
    }
    Ok(())
}

/// Merges one field of a `Struct` that is the `depth`th array or object from the outside.
fn merge_object_field(
    object: &mut JsonObject,
    field: Field,
    buf: &mut impl Buf,
    ctx: &DecodeContext,
    depth: usize,
) -> Result<(), DecodeError> {
    if field.tag != ITEMS {
        return skip_field(field.wire_type, field.tag, buf, ctx.clone());
    }
    field.expect(WireType::LengthDelimited)?;
    let mut key = String::new();
    let mut value = Value::Null;
    with_payload(buf, |bytes| {
        each_field(bytes, |field, bytes| match field.tag {
            ENTRY_KEY => {
                field.expect(WireType::LengthDelimited)?;
                key = with_payload(bytes, text)?;
                Ok(())
            }
            ENTRY_VALUE => merge_value(&mut value, field, bytes, ctx, depth),
            tag => skip_field(field.wire_type, tag, bytes, ctx.clone()),
        })
    })?;
    object.insert(key, value);
    Ok(())
}

/// Merges one field of a `ListValue` that is the `depth`th array or object from the outside.
fn merge_list_field(
    list: &mut Vec<Value>,
    field: Field,
    buf: &mut &[u8],
    ctx: &DecodeContext,
    depth: usize,
) -> Result<(), DecodeError> {
    if field.tag != ITEMS {
        return skip_field(field.wire_type, field.tag, buf, ctx.clone());
    }
    let mut value = Value::Null;
    merge_value(&mut value, field, buf, ctx, depth)?;
    list.push(value);
    Ok(())
}

/// Merges a whole `Value` that is itself a field.
fn merge_value(
    value: &mut Value,
    field: Field,
    buf: &mut &[u8],
    ctx: &DecodeContext,
    depth: usize,
) -> Result<(), DecodeError> {
    field.expect(WireType::LengthDelimited)?;
    with_payload(buf, |bytes| each_field(bytes, |field, bytes| merge_value_field(value, field, bytes, ctx, depth)))
}

/// Counts one more array or object around a value.
fn deeper(depth: usize) -> Result<usize, DecodeError> {
    if depth >= JSON_DEPTH_MAX {
        return Err(refuse(format!("a JSON value is nested deeper than {JSON_DEPTH_MAX} levels")));
    }
    Ok(depth + 1)
}

/// Reads a length and hands out that many bytes, without a copy when they lie in one piece.
fn with_payload<R>(buf: &mut impl Buf, read: impl FnOnce(&[u8]) -> Result<R, DecodeError>) -> Result<R, DecodeError> {
    let length = decode_varint(buf)?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= buf.remaining())
        .ok_or_else(|| refuse("buffer underflow"))?;
    if let Some(bytes) = buf.chunk().get(..length) {
        let read = read(bytes)?;
        buf.advance(length);
        return Ok(read);
    }
    read(&buf.copy_to_bytes(length))
}

/// Reads every field of a message that is `bytes`.
fn each_field(
    mut bytes: &[u8],
    mut merge: impl FnMut(Field, &mut &[u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    while !bytes.is_empty() {
        let (tag, wire_type) = decode_key(&mut bytes)?;
        merge(Field { tag, wire_type }, &mut bytes)?;
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| refuse("invalid string value: data is not UTF-8 encoded"))
}

fn number(read: f64) -> Result<Number, DecodeError> {
    let whole = read.fract() == 0.0 && read.abs() <= WHOLE_MAX;
    let minus_zero = read == 0.0 && read.is_sign_negative();
    if whole && !minus_zero {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within ±2^53, so exact")]
        return Ok(Number::from(read as i64));
    }
    Number::from_f64(read).ok_or_else(|| refuse("a number in a JSON value must be finite"))
}

#[expect(deprecated, reason = "the only way to an error of one's own in a hand-written `Message`")]
fn refuse(description: impl Into<Cow<'static, str>>) -> DecodeError {
    DecodeError::new(description)
}

/// The lengths of all arrays and objects of a value, in the order in which they are written.
///
/// They are measured once: asking each level again for the length of all below it would cost the
/// depth times the size, and the depth is the caller's choice.
#[derive(Default)]
struct Lengths {
    lengths: Vec<usize>,
    written: usize,
}

impl Lengths {
    /// Keeps the length that `measure` finds, before those that it keeps itself.
    fn keep(&mut self, measure: impl FnOnce(&mut Self) -> usize) -> usize {
        let at = self.lengths.len();
        self.lengths.push(0);
        let length = measure(self);
        if let Some(slot) = self.lengths.get_mut(at) {
            *slot = length;
        }
        length
    }

    /// The length of the array or object that is written next.
    fn peek(&self) -> usize {
        self.lengths.get(self.written).copied().unwrap_or_default()
    }

    fn take(&mut self) -> usize {
        let length = self.peek();
        self.written += 1;
        length
    }
}

/// The length of a field whose payload has a length before it.
fn delimited_len(payload: usize) -> usize {
    KEY_LEN + encoded_len_varint(payload as u64) + payload
}

/// The length of a `Value`, where `container` is the length of the array or object in it.
fn value_len(value: &Value, container: usize) -> usize {
    match value {
        Value::Null | Value::Bool(_) => KEY_LEN + 1,
        Value::Number(_) => KEY_LEN + 8,
        Value::String(text) => delimited_len(text.len()),
        Value::Array(_) | Value::Object(_) => delimited_len(container),
    }
}

fn measure_value(value: &Value, lengths: &mut Lengths) -> usize {
    let container = match value {
        Value::Array(list) => {
            lengths.keep(|lengths| list.iter().map(|item| delimited_len(measure_value(item, lengths))).sum())
        }
        Value::Object(object) => lengths.keep(|lengths| measure_object(object, lengths)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    value_len(value, container)
}

fn measure_object(object: &JsonObject, lengths: &mut Lengths) -> usize {
    object.iter().map(|(key, value)| delimited_len(entry_len(key, measure_value(value, lengths)))).sum()
}

fn entry_len(key: &str, value: usize) -> usize {
    delimited_len(key.len()) + delimited_len(value)
}

fn write_value(value: &Value, lengths: &mut Lengths, buf: &mut impl BufMut) {
    match value {
        Value::Null => int32::encode(NULL, &0, buf),
        Value::Bool(value) => bool::encode(BOOL, value, buf),
        // `as_f64` has no answer only for numbers of arbitrary precision, which are not compiled in.
        Value::Number(value) => double::encode(NUMBER, &value.as_f64().unwrap_or_default(), buf),
        Value::String(text) => write_text(STRING, text, buf),
        Value::Array(list) => {
            write_length(LIST, lengths.take(), buf);
            for item in list {
                write_length(ITEMS, value_len(item, lengths.peek()), buf);
                write_value(item, lengths, buf);
            }
        }
        Value::Object(object) => {
            write_length(STRUCT, lengths.take(), buf);
            write_object(object, lengths, buf);
        }
    }
}

fn write_object(object: &JsonObject, lengths: &mut Lengths, buf: &mut impl BufMut) {
    for (key, value) in object {
        let value_len = value_len(value, lengths.peek());
        write_length(ITEMS, entry_len(key, value_len), buf);
        write_text(ENTRY_KEY, key, buf);
        write_length(ENTRY_VALUE, value_len, buf);
        write_value(value, lengths, buf);
    }
}

fn write_length(tag: u32, length: usize, buf: &mut impl BufMut) {
    encode_key(tag, WireType::LengthDelimited, buf);
    encode_varint(length as u64, buf);
}

fn write_text(tag: u32, text: &str, buf: &mut impl BufMut) {
    write_length(tag, text.len(), buf);
    buf.put_slice(text.as_bytes());
}
