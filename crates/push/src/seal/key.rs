use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use zeroize::{Zeroize as _, Zeroizing};

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// A key of 32 bytes. Read from 64 hexadecimal digits, or from base64 of either alphabet.
#[derive(Clone)]
pub struct Key {
    bytes: Zeroizing<[u8; 32]>,
    id: KeyId,
}

/// Says that a text is no [`Key`].
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("must be 32 bytes in base64 or hex (hint: head -c 32 /dev/urandom | base64)")]
pub struct InvalidKey;

impl Key {
    /// How many bytes a key has.
    pub const BYTES: usize = 32;

    /// A new key, from the system's random source.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = Zeroizing::new([0; Self::BYTES]);
        rand::rng().fill(bytes.as_mut_slice());
        Self::from_bytes(bytes)
    }

    /// The key as a line of text, in base64.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.bytes.as_slice()))
    }

    /// What names the key and tells nothing of it.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    pub(super) fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.bytes
    }

    fn from_bytes(bytes: Zeroizing<[u8; Self::BYTES]>) -> Self {
        let id = KeyId(digest(b"longhaul push key id", &bytes));
        Self { bytes, id }
    }
}

/// The first bytes of a digest of a key. What it is for goes in, so that two of them have nothing to do with each other.
pub(super) fn digest<const N: usize>(purpose: &[u8], key: &[u8; Key::BYTES]) -> [u8; N] {
    let sum = Sha256::new().chain_update(purpose).chain_update([0]).chain_update(key).finalize();
    let mut start = [0; N];
    start.iter_mut().zip(sum).for_each(|(to, from)| *to = from);
    start
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim();
        let decoded = if text.len() == 2 * Self::BYTES {
            decode_hex(text)
        } else {
            STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
        };
        let mut decoded = decoded.ok_or(InvalidKey)?;
        let bytes = <[u8; Self::BYTES]>::try_from(decoded.as_slice()).map(Zeroizing::new);
        decoded.zeroize();
        bytes.map(Self::from_bytes).map_err(|_| InvalidKey)
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let (pairs, []) = digits.as_ref()?.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| u8::try_from(high << 4 | low).ok()).collect()
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Names a key.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct KeyId(pub(super) [u8; KeyId::BYTES]);

impl KeyId {
    pub(super) const BYTES: usize = 8;
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
