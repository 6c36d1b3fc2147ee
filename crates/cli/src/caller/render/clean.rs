//! What an agent says is shown, and never obeyed: nothing that it sends reaches a terminal as a command.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal would act on the character, break the line at it, or show what follows in another order.
pub fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let stays = |character: char| !acts(character) || kept(character);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            character if stays(character) => out.push(character),
            '\n' | '\r' | '\t' => out.extend(character.escape_default()),
            character => out.extend(character.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// The text on one line: what a terminal would act on is written as an escape, line breaks and tabs too.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// A piece of a line, as it stands in a text: tabs stay.
pub fn spoken(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character == '\t')
}

/// The lines of a text, without their ends. Tabs stay.
pub fn lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.lines().map(spoken)
}

/// The same JSON, with DEL and the C1 controls written as escapes: JSON allows them as they are, and some terminals obey
/// them. They can only be inside strings, where the escape means the same.
pub fn json(json: String) -> String {
    let acts = |character: char| matches!(character, '\u{7f}'..='\u{9f}');
    if !json.chars().any(acts) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if acts(character) {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_written_out() {
        for (given, wanted) in [
            ("plain, ä, 日本, 👩‍🚀", "plain, ä, 日本, 👩‍🚀"),
            ("a\nTask: b", r"a\nTask: b"),
            ("a\r\tb", r"a\r\tb"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("\u{202e}fdp.exe\u{2066}", r"\u{202e}fdp.exe\u{2066}"),
            ("a\u{2028}b\u{0}", r"a\u{2028}b\u{0}"),
        ] {
            assert_eq!(line(given), wanted);
        }
    }

    #[test]
    fn lines_keep_their_tabs_and_lose_their_carriage_returns() {
        let lines: Vec<_> = lines("a\tb\r\n\n\u{1b}[2Jc\rd\n").collect();
        assert_eq!(lines, ["a\tb", "", r"\u{1b}[2Jc\rd"]);
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let value = serde_json::json!({"t": "\u{1b}[2J \u{9b}31m \u{7f} ä 👍"});
        let written = json(value.to_string());
        assert!(!written.chars().any(char::is_control), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }
}
