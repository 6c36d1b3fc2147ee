//! Seals what configs keep secret, with the keys of the settings.

use bytes::Bytes;
use longhaul_engine::{Secrets, SecretsError, Vault};
use longhaul_protocol::{PushConfigId, TaskId};
use longhaul_push::Secret;
use longhaul_push::seal::{Fingerprint, Keys, Place, PushSecrets};

/// A ring of keys.
#[derive(Debug)]
pub struct KeyVault(Keys);

impl KeyVault {
    /// A vault of these keys.
    pub fn new(keys: Keys) -> Self {
        Self(keys)
    }
}

fn place<'a>(task_id: &'a TaskId, id: &'a PushConfigId) -> Place<'a> {
    Place { task_id: task_id.as_str(), config_id: id.as_str() }
}

impl Vault for KeyVault {
    fn seal(&self, task_id: &TaskId, id: &PushConfigId, secrets: &Secrets) -> Result<Bytes, SecretsError> {
        let secret = |text: &str| (!text.is_empty()).then(|| Secret::new(text));
        let secrets = PushSecrets { token: secret(&secrets.token), credentials: secret(&secrets.credentials) };
        Ok(self.0.seal_secrets(&secrets, place(task_id, id)).into())
    }

    fn open(&self, task_id: &TaskId, id: &PushConfigId, sealed: &[u8]) -> Result<Secrets, SecretsError> {
        let opened = self.0.open_secrets(sealed, place(task_id, id));
        let PushSecrets { token, credentials } = opened.map_err(|error| SecretsError(error.to_string()))?;
        let text = |secret: Option<Secret>| secret.map(|secret| secret.reveal().to_owned()).unwrap_or_default();
        Ok(Secrets { credentials: text(credentials), token: text(token) })
    }

    fn is_current(&self, sealed: &[u8]) -> bool {
        // What the current key has sealed is not opened for this, so it does not matter whose it is.
        matches!(self.0.reseal(sealed, Place { task_id: "", config_id: "" }), Ok(None))
    }

    fn fingerprint(&self) -> Bytes {
        Bytes::copy_from_slice(self.0.fingerprint().as_str().as_bytes())
    }

    fn knows(&self, fingerprint: &[u8]) -> bool {
        str::from_utf8(fingerprint).is_ok_and(|text| self.0.knows(&Fingerprint::from_text(text)))
    }
}

#[cfg(test)]
mod tests {
    use longhaul_push::seal::Key;

    use super::*;

    fn ids() -> (TaskId, PushConfigId) {
        (TaskId::new("t-1").expect("it is one"), PushConfigId::new("c-1").expect("it is one"))
    }

    fn secrets() -> Secrets {
        Secrets { credentials: "hunter2".to_owned(), token: String::new() }
    }

    #[test]
    fn what_is_sealed_is_read_for_its_config_alone() {
        let (task_id, id) = ids();
        let vault = KeyVault::new(Keys::new(Key::random(), Vec::new()));
        let sealed = vault.seal(&task_id, &id, &secrets()).expect("it is sealed");
        assert!(!String::from_utf8_lossy(&sealed).contains("hunter2"));
        assert!(vault.open(&task_id, &id, &sealed).expect("it is read") == secrets());
        let other = PushConfigId::new("c-2").expect("it is one");
        assert!(vault.open(&task_id, &other, &sealed).is_err());
    }

    #[test]
    fn a_new_key_reads_what_the_one_before_has_sealed_and_says_that_it_is_not_its_own() {
        let (task_id, id) = ids();
        let (old, new) = (Key::random(), Key::random());
        let before = KeyVault::new(Keys::new(old.clone(), Vec::new()));
        let (now, alone) =
            (KeyVault::new(Keys::new(new.clone(), vec![old])), KeyVault::new(Keys::new(new, Vec::new())));
        let sealed = before.seal(&task_id, &id, &secrets()).expect("it is sealed");
        assert!(before.is_current(&sealed) && !now.is_current(&sealed) && !alone.is_current(&sealed));
        assert!(now.open(&task_id, &id, &sealed).is_ok() && alone.open(&task_id, &id, &sealed).is_err());
        assert!(now.knows(&before.fingerprint()) && !alone.knows(&before.fingerprint()));
        assert!(before.knows(&before.fingerprint()) && !before.knows(b"\xff") && !before.knows(b""));
        assert!(!now.is_current(b"rubbish"));
    }
}
