//! The file itself: who may read it, its form, and how it is replaced.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use longhaul_protocol::Timestamp;
use longhaul_push::Secret;
use serde::{Deserialize, Serialize};

use super::{FILE_BYTES_MAX, Grant, NamedBy, Scopes, StoreError, StoredToken, TokenKey};
use crate::folder::{folder_of, make_folder, private, sync_folder};
use crate::oauth::AgentUrl;

/// The version of the form. It goes up when an older release would misread the file.
const VERSION: u32 = 1;

#[derive(Deserialize, Serialize)]
struct Document {
    version: u32,
    tokens: Vec<Record>,
}

/// A login as it is written. Times are milliseconds since 1970.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Record {
    agent: String,
    token_url: String,
    client_id: String,
    scopes: Vec<String>,
    scheme: String,
    grant: Grant,
    access_token: String,
    obtained_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    refresh_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<Vec<String>>,
    named_by: NamedBy,
}

impl From<&StoredToken> for Record {
    fn from(token: &StoredToken) -> Self {
        let list = |scopes: &Scopes| scopes.iter().map(str::to_owned).collect();
        let StoredToken { key: TokenKey { agent, token_url, client_id, scopes }, .. } = token;
        Self {
            agent: agent.as_str().to_owned(),
            token_url: token_url.clone(),
            client_id: client_id.clone(),
            scopes: list(scopes),
            scheme: token.scheme.clone(),
            grant: token.grant,
            access_token: token.access_token.reveal().to_owned(),
            obtained_at: token.obtained_at.unix_millis(),
            expires_at: token.expires_at.map(Timestamp::unix_millis),
            refresh_token: token.refresh_token.as_ref().map(|secret| secret.reveal().to_owned()),
            refresh_url: token.refresh_url.clone(),
            granted: token.granted.as_ref().map(list),
            named_by: token.named_by,
        }
    }
}

impl Record {
    /// None if it holds what no login has.
    fn read(self) -> Option<StoredToken> {
        Some(StoredToken {
            key: TokenKey {
                agent: AgentUrl::read(&self.agent)?,
                token_url: self.token_url,
                client_id: self.client_id,
                scopes: Scopes::new(self.scopes).ok()?,
            },
            scheme: self.scheme,
            grant: self.grant,
            access_token: Secret::new(self.access_token),
            obtained_at: Timestamp::from_unix_millis(self.obtained_at),
            expires_at: self.expires_at.map(Timestamp::from_unix_millis),
            refresh_token: self.refresh_token.map(Secret::new),
            refresh_url: self.refresh_url,
            granted: self.granted.map(Scopes::new).transpose().ok()?,
            named_by: self.named_by,
        })
    }
}

/// Reads the file. There need be none.
pub(super) fn read(path: &Path) -> Result<Vec<StoredToken>, StoreError> {
    let failed = |source| files("read", path, source);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    check_folder(path)?;
    check_file(path, &file)?;
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    parse(&text).map_err(|problem| StoreError::Corrupt { path: path.to_owned(), problem })
}

fn parse(text: &[u8]) -> Result<Vec<StoredToken>, String> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    // A message of the parser could repeat a token.
    let told = |error: serde_json::Error| format!("line {} column {} is wrong", error.line(), error.column());
    let Version { version } = serde_json::from_slice(text).map_err(told)?;
    if version != VERSION {
        return Err(format!("it has version {version}, and this release reads version {VERSION}"));
    }
    let document: Document = serde_json::from_slice(text).map_err(told)?;
    let numbered = document.tokens.into_iter().zip(1..);
    numbered.map(|(record, number)| record.read().ok_or_else(|| format!("login {number} is none"))).collect()
}

/// Replaces the file. Whoever calls this holds the lock.
pub(super) fn write(path: &Path, tokens: &[StoredToken]) -> Result<(), StoreError> {
    let failed = |source: io::Error| files("write", path, source);
    let document = Document { version: VERSION, tokens: tokens.iter().map(Record::from).collect() };
    let text = serde_json::to_vec_pretty(&document).map_err(|error| failed(error.into()))?;
    let beside = beside(path, "new");
    // A process that died while it wrote has left this behind.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let written = write_new(&beside, &text).and_then(|()| fs::rename(&beside, path));
    if let Err(error) = written {
        // What can't be removed is removed before the next write.
        let _left = fs::remove_file(&beside);
        return Err(failed(error));
    }
    sync_folder(&folder_of(path)).map_err(failed)
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = private().write(true).create_new(true).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Opens the file that is locked, and makes it and its folder when there is none. It is another one than that of the tokens,
/// which is replaced, and it stays: removed, two processes could hold the lock of two files with one name.
pub(super) fn open_lock(path: &Path) -> Result<File, StoreError> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        make_folder(&folder).map_err(|error| files("make the folder", &folder, error))?;
    }
    check_folder(path)?;
    let lock = beside(path, "lock");
    private().write(true).create(true).truncate(false).open(&lock).map_err(|error| files("open", &lock, error))
}

fn files(action: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::Files { action, path: path.to_owned(), source: source.into() }
}

/// `tokens.json.new` for `tokens.json`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(unix)]
fn check_file(path: &Path, file: &File) -> Result<(), StoreError> {
    let metadata = file.metadata().map_err(|error| files("read", path, error))?;
    check_mode(path, &metadata, 0o077)
}

/// Whoever may change the folder can put another file in its place. Groups are often a user's own, so they may.
#[cfg(unix)]
fn check_folder(path: &Path) -> Result<(), StoreError> {
    let folder = folder_of(path);
    let metadata = fs::metadata(&folder).map_err(|error| files("read", &folder, error))?;
    check_mode(&folder, &metadata, 0o002)
}

#[cfg(unix)]
fn check_mode(path: &Path, metadata: &fs::Metadata, forbidden: u32) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & forbidden == 0 {
        return Ok(());
    }
    Err(StoreError::Open { path: path.to_owned(), mode, is_folder: metadata.is_dir() })
}

#[cfg(not(unix))]
fn check_file(_path: &Path, _file: &File) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(not(unix))]
fn check_folder(_path: &Path) -> Result<(), StoreError> {
    Ok(())
}
