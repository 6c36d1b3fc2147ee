//! Artifacts as files (`--save`, `task download`): inside the folder that the caller named, whatever the agent calls them.

mod folder;
mod name;

use std::path::PathBuf;

use longhaul_protocol::wire::{Artifact, Part, PartContent};

use super::failure::{Failure, LocalCode};
pub use folder::Folder;
use name::file_name;

/// How many files one command writes.
const FILES_MAX: usize = 10_000;
/// How many bytes one command writes.
const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// What became of an artifact's content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Saved {
    /// A file was written.
    File {
        /// The artifact.
        artifact_id: String,
        /// Where it is.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The agent sent an address; it is not called.
    Url {
        /// The artifact.
        artifact_id: String,
        /// The address.
        url: String,
    },
}

/// Something to be written.
struct Content<'a> {
    /// What the agent calls it; may be empty.
    filename: &'a str,
    media_type: &'a str,
    bytes: Vec<u8>,
}

/// Writes the content of artifacts into a folder. Text parts that follow each other are one file, as they are one text that
/// came in chunks.
///
/// # Errors
///
/// [`Failure`] when a file can't be written or a limit is reached; what was written before stays.
pub fn save(folder: &Folder, artifacts: &[Artifact]) -> Result<Vec<Saved>, Failure> {
    let mut saved = Vec::new();
    let mut bytes_left = BYTES_MAX;
    for artifact in artifacts {
        let artifact_id = &artifact.artifact_id;
        for content in contents(&artifact.parts) {
            let content = match content {
                Ok(content) => content,
                Err(url) => {
                    saved.push(Saved::Url { artifact_id: artifact_id.clone(), url: url.to_owned() });
                    continue;
                }
            };
            let bytes = content.bytes.len() as u64;
            bytes_left = bytes_left.checked_sub(bytes).ok_or_else(|| too_much(format!("{BYTES_MAX} bytes")))?;
            if saved.len() >= FILES_MAX {
                return Err(too_much(format!("{FILES_MAX} files")));
            }
            let title = if artifact.name.is_empty() { artifact_id } else { &artifact.name };
            let path = folder.write(&file_name(content.filename, title, content.media_type), &content.bytes)?;
            saved.push(Saved::File { artifact_id: artifact_id.clone(), path, bytes });
        }
    }
    Ok(saved)
}

fn too_much(limit: String) -> Failure {
    Failure::local(
        LocalCode::AnswerTooLarge,
        format!("the artifacts are more than the {limit} that are written at once"),
    )
    .hint("longhaul task download --artifact writes one of them")
}

/// What is to be written, or the address that stands in its place.
fn contents(mut parts: &[Part]) -> Vec<Result<Content<'_>, &str>> {
    let mut contents = Vec::new();
    while let Some((part, rest)) = parts.split_first() {
        parts = rest;
        let (filename, media_type) = (part.filename.as_str(), part.media_type.as_str());
        let of = |bytes: Vec<u8>, media_type| Ok(Content { filename, media_type, bytes });
        contents.push(match &part.content {
            Some(PartContent::Raw(bytes)) => of(bytes.to_vec(), media_type),
            Some(PartContent::Data(value)) => {
                let media_type = if media_type.is_empty() { "application/json" } else { media_type };
                of(serde_json::to_vec_pretty(value).unwrap_or_default(), media_type)
            }
            Some(PartContent::Url(url)) => Err(url.as_str()),
            Some(PartContent::Text(text)) => {
                let same = |other: &&Part| other.filename.is_empty() || other.filename == part.filename;
                let mut text = text.clone();
                while let Some((next, after)) = parts.split_first() {
                    match next.as_text().filter(|_| same(&next)) {
                        Some(more) => text.push_str(more),
                        None => break,
                    }
                    parts = after;
                }
                let media_type = if media_type.is_empty() { "text/plain" } else { media_type };
                of(text.into_bytes(), media_type)
            }
            None => continue,
        });
    }
    contents
}

#[cfg(test)]
#[path = "save/tests.rs"]
mod tests;
