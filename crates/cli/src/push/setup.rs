//! What a server or a command needs to send push notifications, made of the settings.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use longhaul_engine::{Clock, Engine, EngineError, PushParts};
use longhaul_push::schedule::Schedule;
use longhaul_push::seal::{Key, Keys};
use longhaul_push::{Guard, Policy, Sender, SenderConfig};

use super::{HttpCourier, KeyVault};
use crate::failure::Attempt;
use crate::settings::{ConfigError, Kept, PushSettings, StoreKind, StoreSettings};

/// The file beside a SQLite file that holds the key, when no other is named.
const KEY_FILE_NAME: &str = "push.key";

/// What sends.
#[derive(Clone, Debug)]
pub struct Setup {
    courier: Arc<HttpCourier>,
    vault: Arc<KeyVault>,
}

impl Setup {
    /// The engine's parts.
    pub fn parts(&self) -> PushParts {
        PushParts { courier: Arc::clone(&self.courier) as _, vault: Arc::clone(&self.vault) as _ }
    }

    /// Closes connections that are not used, for as long as it is polled.
    pub async fn tidy(&self) {
        self.courier.tidy().await;
    }
}

/// Makes what a server needs; `None` when it is switched off or there is no key, which the log says. The folder of a SQLite file
/// is held: a key file is made in it when there is none.
///
/// # Errors
///
/// When a key, a secret or a file can't be used, with the next step.
pub fn set_up(push: &PushSettings, store: &StoreSettings, clock: &Arc<dyn Clock>) -> anyhow::Result<Option<Setup>> {
    if !push.enabled {
        tracing::info!("push notifications are off: push.enabled is false");
        return Ok(None);
    }
    let keys = match (&push.key, &store.kind) {
        (Some(kept), _) => kept.keys()?,
        (None, StoreKind::Memory) => Keys::new(Key::random(), Vec::new()),
        (None, StoreKind::Sqlite) => Keys::read_or_make(&key_file(store)).context(
            Attempt::new("cannot have a key for push notifications")
                .hint("mend the file, name another one with push.key_file, or set push.enabled = false"),
        )?,
        (None, StoreKind::Postgres(_)) => {
            tracing::warn!(
                "push notifications are off: there is no key that seals their secrets; give each server the same one by \
                 push.key_file or LONGHAUL_PUSH_KEY, or set push.enabled = false"
            );
            return Ok(None);
        }
    };
    let setup = with_keys(push, keys, clock)?;
    if setup.courier.roots() == 0 {
        tracing::warn!(
            "no authority is trusted, so push notifications reach no https receiver: install ca-certificates, or name a \
             file with push.roots_file"
        );
    }
    Ok(Some(setup))
}

/// Makes what a command needs that works on a store itself. No key is made.
///
/// # Errors
///
/// When there is no key, or something can't be used, with the next step.
pub fn for_operator(push: &PushSettings, store: &StoreSettings, clock: &Arc<dyn Clock>) -> anyhow::Result<Setup> {
    let kept = match (&push.key, &store.kind) {
        (Some(kept), _) => kept.clone(),
        (None, StoreKind::Sqlite) => Kept::File(key_file(store)),
        (None, StoreKind::Postgres(_) | StoreKind::Memory) => {
            let hint = "name the file that the servers have, or set LONGHAUL_PUSH_KEY as they have it";
            return Err(ConfigError::new("push.key_file", "is not set, and there is no key", hint).into());
        }
    };
    with_keys(push, kept.keys()?, clock)
}

fn key_file(store: &StoreSettings) -> PathBuf {
    store.data.join(KEY_FILE_NAME)
}

fn with_keys(push: &PushSettings, keys: Keys, clock: &Arc<dyn Clock>) -> anyhow::Result<Setup> {
    let guard = Guard::new(Policy { allow: push.allow.clone(), allow_http: push.allow_http });
    let config = SenderConfig {
        timeout: push.timeout,
        connect_timeout: SenderConfig::default().connect_timeout.min(push.timeout),
        body_bytes_max: push.answer_bytes_max,
        extra_roots: push.roots_file.clone(),
        ..SenderConfig::default()
    };
    let sender = Sender::new(config, guard).context(
        Attempt::new("cannot send push notifications").hint("name a PEM file of certificates with push.roots_file"),
    )?;
    let signing = push.signing_secret.as_ref().map(Kept::signing_secrets).transpose()?.unwrap_or_default();
    let schedule = Schedule { delay_min: push.delay_min, delay_max: push.delay_max, window: push.give_up_after };
    let courier = HttpCourier::new(sender, push.timeout, schedule, signing, Arc::clone(clock));
    Ok(Setup { courier: Arc::new(courier), vault: Arc::new(KeyVault::new(keys)) })
}

/// Logs that something waits for push notifications to be on again, if so: what is due keeps its task.
pub async fn tell_what_waits(engine: &Engine) {
    match engine.push_backlog().await {
        Ok(backlog) if backlog.configs > 0 => {
            let configs = backlog.configs;
            tracing::warn!(configs, "push notifications are due and are not sent: their tasks are kept until they are");
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot look whether push notifications are due");
        }
    }
}

/// Refuses a key that is not the store's.
///
/// # Errors
///
/// When it is another one or the store can't say, with the next step.
pub async fn check_key(engine: &Engine, push: &PushSettings, store: &StoreSettings) -> anyhow::Result<()> {
    let Err(error) = engine.check_push_key().await else { return Ok(()) };
    let attempt = Attempt::new("cannot send push notifications");
    let attempt = match (&error, &push.key) {
        (EngineError::UnsupportedOperation(_), None) => {
            let file = key_file(store);
            attempt.hint(format!(
                "put the key with which they were sealed back into {}, or below the new one there; to serve without push \
                 notifications, set push.enabled = false",
                file.display()
            ))
        }
        (EngineError::UnsupportedOperation(_), Some(_)) => attempt.hint(
            "give the key with which they were sealed behind the new one (push.key_file, LONGHAUL_PUSH_KEY), then run \
             longhaul push rotate-key; to serve without push notifications, set push.enabled = false",
        ),
        _ => attempt,
    };
    Err(anyhow::Error::new(error).context(attempt))
}
