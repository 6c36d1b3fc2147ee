//! `longhaul config show`: what is in effect for the client's commands, and who says so.

use serde_json::{Value, json};

use crate::arguments::OutputForm;
use crate::caller::render::{Page, json};

use super::setting::Setting;
use super::sources::{Origin, Sources, shown};

/// Writes each setting with its value and its source. Credentials are only said to be there.
pub fn show(sources: &Sources, form: OutputForm) -> String {
    match form {
        OutputForm::Text => text(sources),
        OutputForm::Json => json::value(&all(sources)),
    }
}

fn text(sources: &Sources) -> String {
    let mut page = Page::new();
    for key in Setting::ALL {
        let (value, origin) = sources.of(*key);
        match (value, key.default_words()) {
            (Some(value), _) => page.field(key.flag(), format_args!("{} ({origin})", shown(*key, value))),
            (None, "") => page.field(key.flag(), "- (not set)"),
            (None, words) => page.field(key.flag(), format_args!("{words} (default)")),
        }
    }
    page.into_text()
}

fn all(sources: &Sources) -> Value {
    let one = |key: &Setting| {
        let (value, origin) = sources.of(*key);
        let value = match (value, key.default_words()) {
            (Some(value), _) => Some(shown(*key, value)),
            (None, "") => None,
            (None, words) => Some(words.to_owned()),
        };
        let kind = match origin {
            Origin::Flag(_) => "flag",
            Origin::Variable(_) => "environment",
            Origin::File { .. } => "file",
            Origin::Default => "default",
        };
        let path = match origin {
            Origin::File { path, .. } => path.to_str(),
            Origin::Flag(_) | Origin::Variable(_) | Origin::Default => None,
        };
        json!({ "name": key.flag(), "value": value, "source": kind, "from": origin.to_string(), "path": path })
    };
    json!({ "settings": Setting::ALL.iter().map(one).collect::<Vec<_>>() })
}
