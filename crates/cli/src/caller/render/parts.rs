//! Parts of messages and artifacts for people (§10.2 of the contract). None is left out.

use longhaul_protocol::json::JsonObject;
use longhaul_protocol::wire::{Part, PartContent};
use serde_json::Value;

use super::{Detail, Page};

/// What stands between text parts that are shown as one text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Joint {
    /// Nothing: the parts of an artifact are what came in chunks.
    Chunks,
    /// A line break: the parts of a message are said one after another.
    Lines,
}

/// Writes parts; texts stand under `label`.
pub fn parts(page: &mut Page, label: &str, parts: &[Part], joint: Joint, detail: Detail) {
    match detail {
        Detail::Concise => concise(page, label, parts, joint),
        Detail::Verbose => {
            for (index, part) in parts.iter().enumerate() {
                page.field("Part", format_args!("{} of {}", index + 1, parts.len()));
                verbose(page, label, part);
            }
        }
    }
}

fn concise(page: &mut Page, label: &str, mut parts: &[Part], joint: Joint) {
    while let Some((first, rest)) = parts.split_first() {
        parts = rest;
        if first.as_text().is_none() {
            content(page, label, first);
            continue;
        }
        let more = rest.iter().take_while(|part| part.as_text().is_some()).count();
        let texts: Vec<&str> = std::iter::once(first).chain(rest.iter().take(more)).filter_map(Part::as_text).collect();
        page.block(label, &texts.join(if joint == Joint::Lines { "\n" } else { "" }));
        parts = rest.get(more..).unwrap_or_default();
    }
}

fn verbose(page: &mut Page, label: &str, part: &Part) {
    let kind = match &part.content {
        Some(PartContent::Text(_)) => "text",
        Some(PartContent::Raw(_)) => "file",
        Some(PartContent::Url(_)) => "file by URL",
        Some(PartContent::Data(_)) => "data",
        None => "empty",
    };
    page.field("Kind", kind);
    if !matches!(&part.content, Some(PartContent::Raw(_) | PartContent::Url(_))) {
        page.field_if("File", &part.filename);
        page.field_if("Media type", &part.media_type);
    }
    content(page, label, part);
    metadata(page, part.metadata.as_ref());
}

fn content(page: &mut Page, label: &str, part: &Part) {
    match &part.content {
        Some(PartContent::Text(text)) => page.block(label, text),
        Some(PartContent::Data(value)) => page.json_block("Data", value),
        Some(PartContent::Raw(bytes)) => {
            page.field("File", &part.filename);
            page.field("Media type", &part.media_type);
            page.field("Size", format_args!("{} bytes", bytes.len()));
        }
        Some(PartContent::Url(url)) => {
            page.field("File", &part.filename);
            page.field("Media type", &part.media_type);
            page.field("URL", url);
        }
        None => page.field("Empty part", "the agent sent a part without content"),
    }
}

/// Metadata, if there is any.
pub fn metadata(page: &mut Page, metadata: Option<&JsonObject>) {
    if let Some(object) = metadata.filter(|object| !object.is_empty()) {
        page.json_block("Metadata", &Value::Object(object.clone()));
    }
}
