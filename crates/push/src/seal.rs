//! Secrets at rest: sealed by a key from configuration, and to the config that they belong to.
//!
//! XChaCha20-Poly1305 with a random nonce; the task and the config are authenticated with it, so that a sealed value that is
//! written into another row does not open there. A sealed value names its key, so that several keys can be at work while
//! [`Keys::reseal`] replaces the older ones.

mod key;
mod ring;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

pub use key::{InvalidKey, Key, KeyId};
pub use ring::{Fingerprint, KeyFileError, Keys};

use crate::secret::Secret;

/// What a config keeps secret.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PushSecrets {
    /// `token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// `authentication.credentials`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Secret>,
}

/// The config to which a sealed value belongs.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The task's id.
    pub task_id: &'a str,
    /// The config's id.
    pub config_id: &'a str,
}

/// Why a sealed value can't be opened.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum UnsealError {
    /// It was sealed with a key that is not among ours.
    #[error("the secrets were sealed with key {0}, which is not at hand (hint: list it behind the current key)")]
    UnknownKey(KeyId),
    /// It was changed, or belongs to another config.
    #[error("the secrets were changed since they were sealed, or belong to another config")]
    Damaged,
    /// It is no sealed value, or one of a later version.
    #[error("the secrets have an unknown form")]
    Form,
}

impl Keys {
    /// Seals what a config keeps secret.
    #[must_use]
    pub fn seal_secrets(&self, secrets: &PushSecrets, place: Place<'_>) -> Vec<u8> {
        #[expect(clippy::expect_used, reason = "texts can always be written as JSON")]
        let plain = Zeroizing::new(serde_json::to_vec(secrets).expect("two texts"));
        self.seal(&plain, place)
    }

    /// Opens what [`seal_secrets`](Self::seal_secrets) has sealed.
    ///
    /// # Errors
    ///
    /// [`UnsealError`] when it was sealed with another key, for another config, or changed.
    pub fn open_secrets(&self, sealed: &[u8], place: Place<'_>) -> Result<PushSecrets, UnsealError> {
        serde_json::from_slice(&self.open(sealed, place)?).map_err(|_| UnsealError::Form)
    }
}

#[cfg(test)]
mod tests;
