//! What a caller sends: from the flags of `send` to the parts of a message (§10.2 of the contract).

mod flags;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use longhaul_protocol::from_json;
use longhaul_protocol::json::JsonObject;
use longhaul_protocol::wire::{Part, PartContent};
use percent_encoding::percent_decode_str;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::failure::Failure;
pub use flags::{PartFlag, PartFlags};

/// How many bytes the files, data and texts of one message may have together.
pub const INLINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What stands for stdin.
const STDIN: &str = "-";

/// Makes the parts of a message, in the order of the command line.
///
/// # Errors
///
/// A usage [`Failure`] when a flag misses its part, a file can't be read or is too large, or data is no JSON.
pub fn parts(flags: &[PartFlag], stdin: &mut dyn Read) -> Result<Vec<Part>, Failure> {
    let mut maker = Maker { stdin: Some(stdin), bytes_left: INLINE_BYTES_MAX };
    let mut made: Vec<Part> = Vec::new();
    // Whether a media type that comes now has a part to belong to.
    let mut open = false;
    for flag in flags {
        let part = match flag {
            PartFlag::MediaType(media_type) => {
                let part = made.last_mut().filter(|_| std::mem::take(&mut open));
                part.ok_or_else(|| stray_media_type(media_type))?.media_type.clone_from(media_type);
                continue;
            }
            PartFlag::Words(text) => {
                open = false;
                made.push(maker.text(text)?);
                continue;
            }
            PartFlag::Text(text) => maker.text(text)?,
            PartFlag::File(reference) => maker.file(reference)?,
            PartFlag::Data(path) => maker.data(path)?,
        };
        open = true;
        made.push(part);
    }
    if made.is_empty() {
        return Err(Failure::usage("there is nothing to send")
            .hint("give a text, as in longhaul send \"hello\", or --text, --file, --data"));
    }
    Ok(made)
}

fn stray_media_type(media_type: &str) -> Failure {
    Failure::usage(format!("--media-type {media_type} follows no part flag"))
        .hint("it says what the part right before it is: --file report.bin --media-type application/pdf")
}

struct Maker<'a> {
    /// None once it was read.
    stdin: Option<&'a mut dyn Read>,
    bytes_left: u64,
}

impl Maker<'_> {
    fn text(&mut self, text: &str) -> Result<Part, Failure> {
        self.take("a text", text.len() as u64)?;
        Ok(Part::text(text))
    }

    fn file(&mut self, reference: &str) -> Result<Part, Failure> {
        match Reference::parse(reference) {
            Reference::Url(url) => {
                let filename = name_in_url(url);
                Ok(Part { media_type: guessed(&filename), filename, ..Part::new(PartContent::Url(url.to_owned())) })
            }
            Reference::Stdin => Ok(Part::raw(self.read_stdin()?)),
            Reference::Path(path) => {
                let bytes = self.read(&path)?;
                let filename = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                Ok(Part { media_type: guessed(&filename), filename, ..Part::raw(bytes) })
            }
        }
    }

    fn data(&mut self, path: &str) -> Result<Part, Failure> {
        let (bytes, place) = match path {
            STDIN => (self.read_stdin()?, "stdin".to_owned()),
            path => (self.read(Path::new(path))?, path.to_owned()),
        };
        let value = json_value(&bytes).map_err(|problem| {
            Failure::usage(format!("{place} is not JSON: {problem}")).hint("--file sends any bytes")
        })?;
        Ok(Part { media_type: "application/json".to_owned(), ..Part::data(value) })
    }

    fn read(&mut self, path: &Path) -> Result<Vec<u8>, Failure> {
        let place = path.display().to_string();
        let file = File::open(path).map_err(|error| unreadable(&place, &error))?;
        self.read_all(&place, file)
    }

    fn read_stdin(&mut self) -> Result<Vec<u8>, Failure> {
        let Some(stdin) = self.stdin.take() else {
            return Err(Failure::usage("stdin can be only one part").hint("write one of them to a file"));
        };
        self.read_all("stdin", stdin)
    }

    fn read_all(&mut self, place: &str, from: impl Read) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        // One byte more than there is room for shows that it is too much.
        from.take(self.bytes_left + 1).read_to_end(&mut bytes).map_err(|error| unreadable(place, &error))?;
        self.take(place, bytes.len() as u64)?;
        Ok(bytes)
    }

    fn take(&mut self, place: &str, bytes: u64) -> Result<(), Failure> {
        let too_large = || {
            let limit = INLINE_BYTES_MAX / (1024 * 1024);
            Failure::usage(format!("with {place} the message is larger than {limit} MiB"))
                .hint("send a file that large by its URL: --file https://…")
        };
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }
}

fn unreadable(place: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {place}: {error}")).hint("name a file that is there and can be read")
}

/// Reads any JSON as the protocol reads `data`.
///
/// # Errors
///
/// What is wrong with it.
pub fn json_value(json: &[u8]) -> Result<Value, String> {
    // Alone first: what follows must not be taken for another member of the part.
    let _: IgnoredAny = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let part: Part = from_json(&[b"{\"data\":", json, b"}"].concat()).map_err(|error| error.to_string())?;
    match part.content {
        Some(PartContent::Data(value)) => Ok(value),
        _ => Err("it is no value".to_owned()),
    }
}

/// Reads a JSON object.
///
/// # Errors
///
/// What is wrong with it.
pub fn json_object(json: &str) -> Result<JsonObject, String> {
    match json_value(json.as_bytes())? {
        Value::Object(object) => Ok(object),
        _ => Err("must be a JSON object, such as {\"key\": \"value\"}".to_owned()),
    }
}

/// What `--file` names.
enum Reference<'a> {
    Stdin,
    Path(PathBuf),
    Url(&'a str),
}

impl<'a> Reference<'a> {
    fn parse(text: &'a str) -> Self {
        if text == STDIN {
            return Self::Stdin;
        }
        let scheme = |scheme: &str| {
            // One letter is a drive.
            scheme.len() > 1
                && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+.-".contains(it))
        };
        match text.split_once("://") {
            Some((name, path)) if name.eq_ignore_ascii_case("file") => {
                let path = path.strip_prefix("localhost").unwrap_or(path);
                Self::Path(PathBuf::from(percent_decode_str(path).decode_utf8_lossy().into_owned()))
            }
            Some((name, _)) if scheme(name) => Self::Url(text),
            _ => Self::Path(PathBuf::from(text)),
        }
    }
}

/// The last component of a URL's path.
fn name_in_url(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()).unwrap_or_default();
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

fn guessed(filename: &str) -> String {
    mime_guess::from_path(filename).first_raw().unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "parts/tests.rs"]
mod tests;
