//! Strong digests of what the protocol says, the same for whatever means the same.
//!
//! Each piece goes in with its length before it, so that no two contents run into the same bytes. Members of objects are
//! sorted, and a number with an empty fraction is the whole number: a server may keep `data` and `metadata` as a
//! `google.protobuf.Struct`, which has neither order nor whole numbers.

use longhaul_protocol::{JsonObject, wire};
use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

/// A SHA-256.
pub(super) type Digest = [u8; 32];

/// The largest double below which all whole numbers are doubles: 2⁵³.
const WHOLE_DOUBLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Takes in one thing after another.
#[derive(Default)]
pub(super) struct Digester(Sha256);

impl Digester {
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(length(bytes.len()));
        self.0.update(bytes);
        self
    }

    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub fn finish(self) -> Digest {
        self.0.finalize().into()
    }

    fn list<T>(mut self, items: &[T], add: impl FnMut(Self, &T) -> Self) -> Self {
        self.0.update(length(items.len()));
        items.iter().fold(self, add)
    }

    fn object(self, object: &JsonObject) -> Self {
        let mut members: Vec<_> = object.iter().collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        self.list(&members, |digester, (name, value)| digester.text(name).value(value))
    }

    /// Objects that are empty and those that are not there mean the same.
    fn metadata(self, metadata: Option<&JsonObject>) -> Self {
        self.object(metadata.unwrap_or(&JsonObject::new()))
    }

    fn value(self, value: &Value) -> Self {
        match value {
            Value::Null => self.text("null"),
            Value::Bool(value) => self.text(if *value { "true" } else { "false" }),
            Value::Number(number) => self.text("number").text(&canonical(number)),
            Value::String(text) => self.text("string").text(text),
            Value::Array(items) => self.text("array").list(items, Self::value),
            Value::Object(object) => self.text("object").object(object),
        }
    }

    fn part(self, part: &wire::Part) -> Self {
        let digester = self.bytes(&of_members(part));
        match &part.content {
            None => digester.text("none"),
            Some(wire::PartContent::Text(text)) => digester.text("text").text(text),
            Some(wire::PartContent::Raw(raw)) => digester.text("raw").bytes(raw),
            Some(wire::PartContent::Url(url)) => digester.text("url").text(url),
            Some(wire::PartContent::Data(data)) => digester.text("data").value(data),
        }
    }
}

/// Of a text.
pub(super) fn of_text(text: &str) -> Digest {
    Digester::default().text(text).finish()
}

/// Of JSON.
pub(super) fn of_value(value: &Value) -> Digest {
    Digester::default().value(value).finish()
}

/// Of a part.
pub(super) fn of_part(part: &wire::Part) -> Digest {
    Digester::default().part(part).finish()
}

/// Of a part without its content.
pub(super) fn of_members(part: &wire::Part) -> Digest {
    Digester::default().text(&part.filename).text(&part.media_type).metadata(part.metadata.as_ref()).finish()
}

/// Of a message, without the ids of task and context: servers fill them in, so that it has them in one place and not in another.
pub(super) fn of_message(message: &wire::Message) -> Digest {
    let texts = |digester: Digester, texts: &[String]| digester.list(texts, |digester, text| digester.text(text));
    let digester = Digester::default().text(&message.message_id).bytes(&message.role.0.to_be_bytes());
    let digester = digester.list(&message.parts, Digester::part).metadata(message.metadata.as_ref());
    texts(texts(digester, &message.extensions), &message.reference_task_ids).finish()
}

fn canonical(number: &Number) -> String {
    match number.as_f64() {
        Some(double) if double.fract() == 0.0 && double.abs() < WHOLE_DOUBLE_MAX => {
            // Whole and small: nothing is cut off.
            (double as i64).to_string()
        }
        Some(_) | None => number.to_string(),
    }
}

fn length(length: usize) -> [u8; 8] {
    u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes()
}
