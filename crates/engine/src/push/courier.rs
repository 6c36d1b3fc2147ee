use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::HostState;
use thiserror::Error;

/// What an engine needs to send push notifications.
#[derive(Clone, Debug)]
pub struct PushParts {
    /// Brings them to their receivers.
    pub courier: Arc<dyn Courier>,
    /// Keeps their secrets.
    pub vault: Arc<dyn Vault>,
}

/// What a config's receiver knows us by. Its `Debug` form shows nothing of it.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Secrets {
    /// The credentials of the authentication scheme.
    pub credentials: String,
    /// The token that is sent along.
    pub token: String,
}

impl Secrets {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.credentials.is_empty() && self.token.is_empty()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// One notification on its way.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// Where to.
    pub url: String,
    /// The HTTP authentication scheme.
    pub scheme: Option<String>,
    /// What goes with it.
    pub secrets: Secrets,
    /// The version of the protocol.
    pub version: String,
    /// The same for each attempt at this event, so that a receiver knows it again.
    pub id: String,
    /// The `StreamResponse` as JSON: the event, or the whole task if the courier asked for that.
    pub body: Bytes,
}

/// What a notification tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// The event.
    Event,
    /// The task as it stood with the event. An event that is not of the status is left out while others follow it: they
    /// tell it again.
    Task,
}

/// What became of an attempt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The receiver has it.
    Delivered,
    /// It may be tried again.
    Failed {
        /// How long the receiver wants us to wait at least.
        after: Option<Duration>,
        /// Why, for people; without secrets.
        why: String,
        /// Whether it is the host that can't be talked to, or is overloaded, and others of its deliveries would fail as well.
        host_is_down: bool,
    },
    /// It will be refused however often it is tried.
    Refused {
        /// Why, for people; without secrets.
        why: String,
    },
    /// The receiver wants no more.
    Gone,
}

/// Brings notifications to receivers, and knows how patient to be with them.
#[async_trait]
pub trait Courier: fmt::Debug + Send + Sync {
    /// Looks at a URL without resolving its name, and answers the host that it is of, with its port.
    ///
    /// # Errors
    ///
    /// What is wrong with it and what to do, as the end of a sentence about the field.
    fn check_url(&self, url: &str) -> Result<String, String>;

    /// Whether a scheme and what goes with it can stand in a header.
    ///
    /// # Errors
    ///
    /// Which field is wrong, and why, as the end of a sentence about it.
    fn check_secrets(&self, scheme: Option<&str>, secrets: &Secrets) -> Result<(), (&'static str, String)>;

    /// What is told to those who speak this version of the protocol.
    fn content(&self, version: &str) -> Content;

    /// Makes one attempt, within a time that it knows.
    async fn deliver(&self, parcel: Parcel) -> Verdict;

    /// How long an attempt may take at the most.
    fn attempt_max(&self) -> Duration;

    /// When an event is tried again that was tried `attempts` times, first at `first_attempt_at`; `None`: it is given up. `jitter`
    /// is a random number from 0 to 1.
    fn next_attempt(
        &self,
        attempts: u32,
        first_attempt_at: Timestamp,
        after: Option<Duration>,
        jitter: f64,
        now: Timestamp,
    ) -> Option<Timestamp>;

    /// What is known of a host after one more attempt at it has failed.
    fn after_failure(&self, failures: u32, jitter: f64, now: Timestamp) -> HostState;
}

/// Why secrets can't be sealed or read.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SecretsError(pub String);

/// Seals secrets, so that whoever reads the store can't read them.
pub trait Vault: fmt::Debug + Send + Sync {
    /// Seals secrets for one config.
    ///
    /// # Errors
    ///
    /// [`SecretsError`] when it can't be done.
    fn seal(&self, task_id: &TaskId, id: &PushConfigId, secrets: &Secrets) -> Result<Bytes, SecretsError>;

    /// Reads what was sealed for this config.
    ///
    /// # Errors
    ///
    /// [`SecretsError`] for what was sealed with another key, or for another config, or was changed.
    fn open(&self, task_id: &TaskId, id: &PushConfigId, sealed: &[u8]) -> Result<Secrets, SecretsError>;

    /// Whether it was sealed with the key that seals now.
    fn is_current(&self, sealed: &[u8]) -> bool;

    /// Tells the key that seals now from others, without telling what it is.
    fn fingerprint(&self) -> Bytes;

    /// Whether a key of this fingerprint can be read with.
    fn knows(&self, fingerprint: &[u8]) -> bool;
}
