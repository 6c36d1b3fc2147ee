//! Faults of objects, with the path to them, and paths of v1.0 told as paths of v0.3.

use crate::json::{JsonError, JsonErrorKind};

/// A fault of the member with this name.
#[cold]
pub(super) fn fault(member: &str, message: impl Into<String>) -> JsonError {
    JsonError { kind: JsonErrorKind::Invalid, path: member.to_owned(), message: message.into() }
}

/// The same fault, seen from the object whose member `name` it is in.
pub(super) fn inside(name: &str) -> impl Fn(JsonError) -> JsonError {
    move |mut error| {
        let dot = if error.path.is_empty() || error.path.starts_with('[') { "" } else { "." };
        error.path = format!("{name}{dot}{}", error.path);
        error
    }
}

/// Names that differ: those of v1.0, then those of v0.3.
pub(super) type Names = &'static [(&'static str, &'static str)];

/// Tells a path of v1.0 in the names of v0.3: its start by the first of `starts` that fits, and what follows a part by
/// `in_parts`.
pub(super) fn renamed(path: &str, starts: Names, in_parts: Names) -> String {
    let path = replace_start(path, starts);
    let Some(end) = part_end(&path) else { return path };
    let (part, rest) = path.split_at(end);
    match rest.strip_prefix('.') {
        Some(member) => format!("{part}.{}", replace_start(member, in_parts)),
        None => path,
    }
}

fn replace_start(path: &str, names: Names) -> String {
    for (from, to) in names {
        if let Some(rest) = path.strip_prefix(from)
            && (rest.is_empty() || rest.starts_with(['.', '[']))
        {
            return format!("{to}{rest}");
        }
    }
    path.to_owned()
}

/// Where the path to a part ends inside a path, if it leads there.
fn part_end(path: &str) -> Option<usize> {
    let list = ["parts[", "content["].into_iter().find_map(|name| path.find(name))?;
    let close = path.get(list..)?.find(']')?;
    Some(list + close + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_renamed_at_whole_names_only() {
        let starts: Names = &[("configuration.old", "configuration.new"), ("message.parts", "message.content")];
        let in_parts: Names = &[("raw", "file.bytes")];
        let check = |from: &str, to: &str| assert_eq!(renamed(from, starts, in_parts), to);
        check("configuration.old", "configuration.new");
        check("configuration.old.url", "configuration.new.url");
        check("configuration.older", "configuration.older");
        check("message.parts[12].raw", "message.content[12].file.bytes");
        check("message.parts[0]", "message.content[0]");
        check("message.parts", "message.content");
        check("message.raw", "message.raw");
        check("parts[1].metadata", "parts[1].metadata");
    }

    #[test]
    fn a_fault_knows_its_path() {
        let error = inside("message")(inside("parts")(inside("[1]")(fault("kind", "is wrong"))));
        assert_eq!(error.to_string(), "message.parts[1].kind: is wrong");
    }
}
