//! Short ways to the wire structs that are made most often.

use bytes::Bytes;
use serde_json::Value;

use super::{Part, PartContent};

impl Part {
    /// A part with this content and nothing else.
    #[must_use]
    pub fn new(content: PartContent) -> Self {
        Self { content: Some(content), ..Self::default() }
    }

    /// A part with this text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// A part with these bytes.
    #[must_use]
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::new(PartContent::Raw(bytes.into()))
    }

    /// A part with this JSON.
    #[must_use]
    pub fn data(value: impl Into<Value>) -> Self {
        Self::new(PartContent::Data(value.into()))
    }

    /// The text, if this is a text part.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Some(PartContent::Text(text)) => Some(text),
            Some(PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_)) | None => None,
        }
    }
}
