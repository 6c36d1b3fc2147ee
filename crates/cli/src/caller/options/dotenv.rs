//! Files of the form `.env`: where they are found, and what they say. The process's environment is left as it is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::caller::failure::Failure;

use super::setting::{Secrecy, Setting, variable};

/// The name of a file that is found by walking up.
const FILE_NAME: &str = ".env";
/// The file for all agents, below the home folder.
const GLOBAL: &str = ".config/a2a-cli/.env";
/// How large a file may be, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How many folders are walked up.
const FOLDERS_MAX: usize = 100;
/// The names that are ours begin so; a file may hold any others.
pub const PREFIX: &str = "A2ACLI_";

/// What a file says about us.
#[derive(Debug)]
pub struct DotEnv {
    /// Where it is.
    pub path: PathBuf,
    /// What it says, by variable.
    pub values: BTreeMap<String, String>,
    /// What a person should know about it.
    pub warnings: Vec<String>,
}

/// Reads the file that a caller named.
///
/// # Errors
///
/// A usage [`Failure`] when it can't be read, or is no such file.
pub fn named(path: &Path) -> Result<DotEnv, Failure> {
    let refused = |error: io::Error| {
        Failure::usage(format!("cannot read {}: {error}", path.display()))
            .hint("--config names a file of NAME=value lines")
    };
    read(path, fs::metadata(path).map_err(refused)?)
}

/// Finds the nearest `.env`, from a folder upwards. One that belongs to somebody else is not read: whoever can write it could
/// send the caller's credentials elsewhere.
///
/// # Errors
///
/// A usage [`Failure`] when it says something about us and can't be read.
pub fn local(folder: &Path, user: u32) -> Result<Option<DotEnv>, Failure> {
    for folder in folder.ancestors().take(FOLDERS_MAX) {
        let path = folder.join(FILE_NAME);
        if let Some(metadata) = fs::metadata(&path).ok().filter(fs::Metadata::is_file) {
            return of(&path, metadata, user).map(Some);
        }
    }
    Ok(None)
}

/// The file for all agents, if there is one.
///
/// # Errors
///
/// A usage [`Failure`] when it says something about us and can't be read.
pub fn global(home: &Path, user: u32) -> Result<Option<DotEnv>, Failure> {
    let path = home.join(GLOBAL);
    match fs::metadata(&path).ok().filter(fs::Metadata::is_file) {
        Some(metadata) => of(&path, metadata, user).map(Some),
        None => Ok(None),
    }
}

fn of(path: &Path, metadata: fs::Metadata, user: u32) -> Result<DotEnv, Failure> {
    if metadata.uid() == user || metadata.uid() == 0 {
        return read(path, metadata);
    }
    let warning = format!("{} is not read: it belongs to another user; --config reads it all the same", path.display());
    Ok(DotEnv { path: path.to_owned(), values: BTreeMap::new(), warnings: vec![warning] })
}

fn read(path: &Path, metadata: fs::Metadata) -> Result<DotEnv, Failure> {
    let refused = |problem: String| {
        Failure::usage(format!("cannot read {}: {problem}", path.display())).hint("each line of it is NAME=value")
    };
    let bytes = contents(path).map_err(|error| refused(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(refused(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut values = BTreeMap::new();
    // Whatever else is in a file is not about us, and need not even be well formed.
    if text.contains(PREFIX) {
        for entry in dotenvy::from_read_iter(text.as_bytes()) {
            let (name, value) = entry.map_err(|error| refused(problem(&error, &text)))?;
            if name.starts_with(PREFIX) {
                values.insert(name, value);
            }
        }
    }
    let warnings = readable_secrets(path, &metadata, &values).into_iter().collect();
    Ok(DotEnv { path: path.to_owned(), values, warnings })
}

/// At most one byte more than a file may have: what is no plain file may say that it is empty, and never end.
fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The library's own message holds the line, which may hold a secret.
fn problem(error: &dotenvy::Error, text: &str) -> String {
    match error {
        dotenvy::Error::LineParse(line, _) => match text.lines().position(|other| other == line) {
            Some(index) => format!("line {} is not NAME=value", index + 1),
            None => "a line is not NAME=value".to_owned(),
        },
        _ => "a line is not NAME=value".to_owned(),
    }
}

fn readable_secrets(path: &Path, metadata: &fs::Metadata, values: &BTreeMap<String, String>) -> Option<String> {
    let secret = Setting::ALL.iter().filter(|key| key.secrecy() != Secrecy::Open).map(|key| variable(key.flag()));
    let name = secret.into_iter().find(|name| values.contains_key(name))?;
    let others = metadata.mode() & 0o077 != 0;
    let path = path.display();
    others.then(|| format!("{path} holds {name} and can be read by others; take that away with: chmod 600 {path}"))
}
