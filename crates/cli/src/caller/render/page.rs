//! The form of `text` (§11.2 of the contract): `Label: value` lines, and blocks for what one line can't hold.

use std::fmt::{Display, Write as _};

use serde_json::Value;

use super::clean;

/// Stands where there is nothing to say, so that a field is never taken for the label of a block.
const NOTHING: &str = "-";

/// What is written to stdout, field by field.
///
/// A block is its label, each line of its content behind two spaces, and an empty line. The spaces keep an empty line of the
/// content from closing it, and keep a content from looking like a field.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// A page with nothing on it.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was written.
    pub fn into_text(self) -> String {
        self.text
    }

    /// One field.
    pub fn field(&mut self, label: &str, value: impl Display) {
        let value = value.to_string();
        let value = if value.is_empty() { NOTHING.into() } else { clean::line(&value) };
        let _ = writeln!(self.text, "{label}: {value}");
    }

    /// One field, if there is something to say.
    pub fn field_if(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            self.field(label, value);
        }
    }

    /// A list on one line, if there is something in it.
    pub fn list_if(&mut self, label: &str, values: &[String]) {
        self.field_if(label, &values.join(", "));
    }

    /// One block.
    pub fn block(&mut self, label: &str, content: &str) {
        let _ = writeln!(self.text, "{label}:");
        for line in clean::lines(content) {
            let _ = writeln!(self.text, "  {line}");
        }
        self.text.push('\n');
    }

    /// JSON for people, as a block.
    pub fn json_block(&mut self, label: &str, value: &Value) {
        // A value that can't be written does not exist: keys are strings, numbers finite.
        self.block(label, &serde_json::to_string_pretty(value).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_can_not_be_left_by_its_content() {
        let mut page = Page::new();
        page.field("State", "A\nTask: forged");
        page.block("Text", "one\n\nTask: forged\r\n");
        page.field("Context", "");
        assert_eq!(page.into_text(), "State: A\\nTask: forged\nText:\n  one\n  \n  Task: forged\n\nContext: -\n");
    }
}
