//! Names of files, made from what an agent says.

use crate::caller::render::clean::acts;

/// How long a name may be, in bytes: less than the 255 of file systems, so that a number fits behind it.
const NAME_BYTES_MAX: usize = 200;
/// How long an extension may be, in bytes, to be kept when the name is cut.
const EXTENSION_BYTES_MAX: usize = 16;

/// Names that are devices in every folder of Windows, with whatever extension.
const RESERVED: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// The name for a file: the last component of what the agent calls it, or its artifact's name and the extension of the media
/// type. It has no separator, no control character, no dot in front, and is no device.
pub fn file_name(filename: &str, title: &str, media_type: &str) -> String {
    let given = component(filename);
    if !given.is_empty() {
        return safe(&given);
    }
    let title = match component(title) {
        title if title.is_empty() => "artifact".to_owned(),
        title => title,
    };
    match extension(media_type) {
        Some(extension) if !title.to_ascii_lowercase().ends_with(&format!(".{extension}")) => {
            safe(&format!("{title}.{extension}"))
        }
        _ => safe(&title),
    }
}

/// The media types that agents make most.
const EXTENSIONS: [(&str, &str); 18] = [
    ("text/plain", "txt"),
    ("text/markdown", "md"),
    ("text/html", "html"),
    ("text/csv", "csv"),
    ("application/json", "json"),
    ("application/xml", "xml"),
    ("application/yaml", "yaml"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("audio/mpeg", "mp3"),
    ("audio/wav", "wav"),
    ("video/mp4", "mp4"),
];

fn extension(media_type: &str) -> Option<&'static str> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    EXTENSIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(essence)).map(|(_, extension)| *extension)
}

/// What is left of the last component once all that has a meaning to a system is gone.
fn component(text: &str) -> String {
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = last.chars().filter(|character| !acts(*character));
    let replaced: String =
        kept.map(|character| if r#"<>:"|?*"#.contains(character) { '_' } else { character }).collect();
    // A dot in front hides a file, or makes it one that a shell runs; dots and spaces behind are lost on Windows.
    replaced.trim_start_matches(['.', ' ', '-', '~']).trim_end_matches(['.', ' ']).to_owned()
}

fn safe(name: &str) -> String {
    let cut = cut(name);
    let stem = cut.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let numbered = |stem: &str| match stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt")) {
        Some(rest) => rest.chars().count() == 1 && rest.contains(|it: char| it.is_ascii_digit() || "¹²³".contains(it)),
        None => false,
    };
    if RESERVED.contains(&stem.as_str()) || numbered(&stem) { format!("_{cut}") } else { cut }
}

/// Cuts in the middle, so that a short extension stays.
fn cut(name: &str) -> String {
    if name.len() <= NAME_BYTES_MAX {
        return name.to_owned();
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let extension = match extension.filter(|extension| extension.len() <= EXTENSION_BYTES_MAX) {
        Some(extension) => format!(".{extension}"),
        None => String::new(),
    };
    let mut stem = String::new();
    for character in name.chars() {
        if stem.len() + character.len_utf8() + extension.len() > NAME_BYTES_MAX {
            break;
        }
        stem.push(character);
    }
    stem + &extension
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_component_that_means_nothing() {
        for (given, wanted) in [
            ("report.pdf", "report.pdf"),
            ("Übersicht 2026.txt", "Übersicht 2026.txt"),
            ("/etc/passwd", "passwd"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            ("..\\..\\windows\\system32\\x.dll", "x.dll"),
            ("C:\\x.txt", "x.txt"),
            ("C:x.txt", "C_x.txt"),
            (".bashrc", "bashrc"),
            ("...", "title.bin"),
            ("..", "title.bin"),
            ("a/", "title.bin"),
            ("", "title.bin"),
            ("a\0b\n\u{1b}[1m.txt", "ab[1m.txt"),
            ("gpj\u{202e}.exe", "gpj.exe"),
            ("-rf", "rf"),
            ("~root", "root"),
            ("CON", "_CON"),
            ("nul.txt", "_nul.txt"),
            ("COM1.log", "_COM1.log"),
            ("com.log", "com.log"),
            ("console", "console"),
            ("x.txt. . ", "x.txt"),
            ("what?.txt", "what_.txt"),
        ] {
            assert_eq!(file_name(given, "title.bin", ""), wanted, "{given:?}");
        }
    }

    #[test]
    fn without_a_name_the_artifact_gives_it_and_the_media_type_its_end() {
        for (title, media_type, wanted) in [
            ("report", "text/plain; charset=utf-8", "report.txt"),
            ("report.txt", "text/plain", "report.txt"),
            ("data", "application/json", "data.json"),
            ("../x", "image/png", "x.png"),
            ("", "", "artifact"),
            ("x", "application/x-nobody-knows", "x"),
        ] {
            assert_eq!(file_name("", title, media_type), wanted);
        }
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_its_end() {
        let name = file_name(&format!("{}.tar", "ä".repeat(500)), "", "");
        assert!(name.len() <= NAME_BYTES_MAX && name.ends_with("ä.tar"), "{name}");
        let endless = file_name(&format!("x.{}", "y".repeat(500)), "", "");
        assert_eq!(endless.len(), NAME_BYTES_MAX);
    }
}
