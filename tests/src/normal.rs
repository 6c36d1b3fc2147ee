//! Makes results comparable: what the server makes up is replaced by the order of its appearance.

use serde_json::Value;

/// Replaces ids, times and page tokens; the same id is replaced alike throughout one value of this.
#[derive(Debug, Default)]
pub struct Normal {
    ids: Vec<String>,
}

impl Normal {
    /// The value with what differs from run to run replaced.
    pub fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| match (key.as_str(), value) {
                    ("nextPageToken", Value::String(token)) if !token.is_empty() => (key.clone(), "<token>".into()),
                    _ => (key.clone(), self.value(value)),
                })
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        if is_time(text) {
            return "<time>".to_owned();
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = find_uuid(rest) {
            let (before, found) = rest.split_at(start);
            let (id, after) = found.split_at(UUID_LENGTH);
            let known = self.ids.iter().position(|known| known == id);
            let number = known.unwrap_or_else(|| {
                self.ids.push(id.to_owned());
                self.ids.len() - 1
            });
            out.push_str(before);
            out.push_str(&format!("<id {number}>"));
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

const UUID_LENGTH: usize = 36;

fn find_uuid(text: &str) -> Option<usize> {
    let windows = text.as_bytes().windows(UUID_LENGTH);
    windows.into_iter().position(|window| {
        window.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    })
}

/// Whether this is a whole-millisecond time as the server writes it: `2026-01-31T12:34:56.789Z`.
#[must_use]
pub fn is_time(text: &str) -> bool {
    let pattern = b"dddd-dd-ddTdd:dd:dd.dddZ";
    text.len() == pattern.len()
        && text.bytes().zip(pattern).all(|(byte, kind)| match kind {
            b'd' => byte.is_ascii_digit(),
            other => byte == *other,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_numbered_and_times_hidden() {
        let (one, two) = ("0198c0de-0000-7000-8000-000000000001", "0198c0de-0000-7000-8000-000000000002");
        let value =
            json!([one, two, format!("task \"{one}\""), "2026-01-31T12:34:56.789Z", "x", {"nextPageToken": "abc"}]);
        let expected = json!(["<id 0>", "<id 1>", "task \"<id 0>\"", "<time>", "x", {"nextPageToken": "<token>"}]);
        assert_eq!(Normal::default().value(&value), expected);
    }
}
