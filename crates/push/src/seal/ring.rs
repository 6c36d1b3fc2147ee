use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use rand::RngExt as _;
use thiserror::Error;
use zeroize::Zeroizing;

use super::key::{InvalidKey, Key, KeyId, digest};
use super::{Place, UnsealError};

/// The version of the sealed form: this byte, the key's id, the nonce, and what the cipher made with its tag.
const FORM: u8 = 1;
const NONCE_BYTES: usize = 24;
/// How many keys a ring holds at most.
const KEYS_MAX: usize = 16;
/// A key file is a few lines; more than this is another file.
const FILE_BYTES_MAX: u64 = 16 * 1024;

/// The keys at hand: one that seals, and those before it, which only open.
///
/// As text it is one key a line, or several divided by commas, the current one first. Lines that begin with `#` are for people.
#[derive(Clone, Debug)]
pub struct Keys {
    current: Key,
    previous: Vec<Key>,
}

/// What a store keeps of a key, to notice that it is given another one. It tells nothing of the key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fingerprint(String);

/// Why a key file can't be used.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// The file can't be read or made.
    #[error("cannot {action} the key file {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others than its owner may read it.
    #[error("the key file {} can be read by others (hint: chmod 600 {})", path.display(), path.display())]
    Mode {
        /// The file.
        path: PathBuf,
    },
    /// A line of it is no key, or there is none.
    #[error("the key file {} holds what is no key", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What a key must be.
        source: InvalidKey,
    },
}

impl Keys {
    /// A ring that seals with `current`, and opens what `previous` have sealed.
    #[must_use]
    pub fn new(current: Key, previous: Vec<Key>) -> Self {
        Self { current, previous }
    }

    /// Reads a key file, one key a line, the current one first.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when it can't be read, others may read it, or a line is no key.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let failed = io_error("read", path);
        let file = File::open(path).map_err(&failed)?;
        // Asked of the open file: a name can be given to another one in between.
        if file.metadata().map_err(&failed)?.permissions().mode() & 0o077 != 0 {
            return Err(KeyFileError::Mode { path: path.to_owned() });
        }
        let mut text = Zeroizing::new(String::new());
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(&failed)?;
        text.parse().map_err(|source| KeyFileError::Content { path: path.to_owned(), source })
    }

    /// Reads a key file, which is made with a new key if there is none: mode 600, and on disk before this returns.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] when it can't be read or made.
    pub fn read_or_make(path: &Path) -> Result<Self, KeyFileError> {
        match Self::read(path) {
            Err(KeyFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => make(path),
            read => read,
        }
    }

    /// Seals `plain` to the config that it belongs to.
    #[must_use]
    pub fn seal(&self, plain: &[u8], place: Place<'_>) -> Vec<u8> {
        let mut nonce = [0; NONCE_BYTES];
        rand::rng().fill(nonce.as_mut_slice());
        let head = [&[FORM], self.current.id().0.as_slice(), &nonce].concat();
        let payload = Payload { msg: plain, aad: &associated(&head, place) };
        let cipher = XChaCha20Poly1305::new(self.current.bytes().into());
        #[expect(clippy::expect_used, reason = "the cipher takes 256 GiB, and secrets have limits far below")]
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload).expect("less than 256 GiB");
        [head, sealed].concat()
    }

    /// Opens what [`seal`](Self::seal) has sealed.
    ///
    /// # Errors
    ///
    /// [`UnsealError`] when it was sealed with another key, for another config, or changed.
    pub fn open(&self, sealed: &[u8], place: Place<'_>) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let parts = Parts::read(sealed)?;
        let key = self.find(parts.key).ok_or(UnsealError::UnknownKey(parts.key))?;
        let payload = Payload { msg: parts.sealed, aad: &associated(parts.head, place) };
        let opened = XChaCha20Poly1305::new(key.bytes().into()).decrypt(&XNonce::from(parts.nonce), payload);
        opened.map(Zeroizing::new).map_err(|_| UnsealError::Damaged)
    }

    /// Seals again what a previous key has sealed; `None` when it is sealed with the current one.
    ///
    /// # Errors
    ///
    /// [`UnsealError`] when it can't be opened.
    pub fn reseal(&self, sealed: &[u8], place: Place<'_>) -> Result<Option<Vec<u8>>, UnsealError> {
        if Parts::read(sealed)?.key == self.current.id() {
            return Ok(None);
        }
        Ok(Some(self.seal(&self.open(sealed, place)?, place)))
    }

    /// The name of the key that seals.
    #[must_use]
    pub fn current_id(&self) -> KeyId {
        self.current.id()
    }

    /// What a store keeps to know its key by.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.current)
    }

    /// Whether a key with this fingerprint is at hand, the current one or one before it: if not, this is another store's ring.
    #[must_use]
    pub fn knows(&self, fingerprint: &Fingerprint) -> bool {
        self.all().any(|key| Fingerprint::of(key) == *fingerprint)
    }

    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    fn find(&self, id: KeyId) -> Option<&Key> {
        self.all().find(|key| key.id() == id)
    }
}

impl FromStr for Keys {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut keys = lines.flat_map(|line| line.split(',')).map(str::parse).collect::<Result<Vec<Key>, _>>()?;
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(InvalidKey);
        }
        let current = keys.remove(0);
        Ok(Self::new(current, keys))
    }
}

impl Fingerprint {
    /// A fingerprint as a store kept it.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text for a store to keep: 32 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of(key: &Key) -> Self {
        let sum: [u8; 16] = digest(b"longhaul push key fingerprint", key.bytes());
        Self(sum.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

struct Parts<'a> {
    head: &'a [u8],
    key: KeyId,
    nonce: [u8; NONCE_BYTES],
    sealed: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(whole: &'a [u8]) -> Result<Self, UnsealError> {
        let (head, sealed) = whole.split_at_checked(1 + KeyId::BYTES + NONCE_BYTES).ok_or(UnsealError::Form)?;
        let (&form, rest) = head.split_first().ok_or(UnsealError::Form)?;
        let (&key, nonce) = rest.split_first_chunk().ok_or(UnsealError::Form)?;
        let nonce = nonce.try_into().map_err(|_| UnsealError::Form)?;
        if form == FORM { Ok(Self { head, key: KeyId(key), nonce, sealed }) } else { Err(UnsealError::Form) }
    }
}

/// What is authenticated and not hidden. The length of the task's id keeps the two ids apart.
fn associated(head: &[u8], place: Place<'_>) -> Vec<u8> {
    let length = u64::try_from(place.task_id.len()).unwrap_or(u64::MAX).to_be_bytes();
    [b"longhaul push secrets\0", head, &length, place.task_id.as_bytes(), place.config_id.as_bytes()].concat()
}

fn make(path: &Path) -> Result<Keys, KeyFileError> {
    let failed = io_error("make", path);
    let keys = Keys::new(Key::random(), Vec::new());
    // Complete before it has its name, so that nobody reads half a key, not even after power failed.
    let draft = path.with_extension(format!("{}.new", keys.current.id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(&failed)?;
    let named = file
        .write_all(format!("{}\n", *keys.current.to_text()).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, path));
    let removed = fs::remove_file(&draft);
    match named {
        Ok(()) => {}
        // Another process was faster, and its key is the key.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Keys::read(path),
        Err(error) => return Err(failed(error)),
    }
    removed.map_err(&failed)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(&failed)?;
    Ok(keys)
}

fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> KeyFileError {
    move |source| KeyFileError::Io { action, path: path.to_owned(), source }
}
