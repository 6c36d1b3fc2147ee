//! The file of tokens.

mod file;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::Timestamp;
use longhaul_push::Secret;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::agent::AgentUrl;
use super::grant::OAuthClient;
use super::scopes::Scopes;
use super::server::{AuthorizationServer, NamedBy};
use super::token::{Grant, Token};
use crate::clock::between;
use crate::error::Cause;

/// How many tokens the file holds at most.
pub const ENTRIES_MAX: usize = 1000;
/// How large the file may be, in bytes.
pub const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How long a process waits for another one that changes the file. A refresh, which asks a server meanwhile, takes less.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(150);

/// How long to wait before the lock is asked for again.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// Why the file of tokens can't be used. Nothing is written over a file that could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Others than its owner can read or change the file, so that the tokens in it may be known to them.
    #[error("others can read or change {} (mode {mode:o}) (hint: chmod {} {})", path.display(), if *is_folder { "go-w" } else { "600" }, path.display())]
    Open {
        /// The file, or its folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Whether it is the folder.
        is_folder: bool,
    },
    /// The file is not one of tokens.
    #[error("{} is not a file of tokens that this version can read: {problem} (hint: move it away and log in again)", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where. Nothing of what it holds.
        problem: String,
    },
    /// The file can't be read or written.
    #[error("cannot {action} {}", path.display())]
    Files {
        /// What was attempted.
        action: &'static str,
        /// The file or the folder.
        path: PathBuf,
        /// Why it failed.
        source: Cause,
    },
    /// Another process has had the file for too long.
    #[error("another process has had {} for {} s", path.display(), LOCK_WAIT_MAX.as_secs())]
    Busy {
        /// The file that is locked.
        path: PathBuf,
    },
    /// The file is full.
    #[error("{} holds {ENTRIES_MAX} tokens, which is the most (hint: log out of some agents)", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
}

/// What tells one login from another.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TokenKey {
    /// The agent that it is for.
    pub agent: AgentUrl,
    /// Where the token came from.
    pub token_url: String,
    /// The client's id there.
    pub client_id: String,
    /// What was asked for.
    pub scopes: Scopes,
}

/// A login: a token, whom it is for, and how it is renewed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StoredToken {
    /// What tells it from others. Logging in again with the same replaces it.
    pub key: TokenKey,
    /// The name of the security scheme in the card.
    pub scheme: String,
    /// How it was got.
    pub grant: Grant,
    /// What goes with each call, as `Bearer`.
    pub access_token: Secret,
    /// When it was got.
    pub obtained_at: Timestamp,
    /// When it runs out, if its server said so.
    pub expires_at: Option<Timestamp>,
    /// What gets the next one, if there is that.
    pub refresh_token: Option<Secret>,
    /// Where the next one is got.
    pub refresh_url: String,
    /// What its server said that it is good for, if that is something else than was asked for.
    pub granted: Option<Scopes>,
    /// Who named the endpoints.
    pub named_by: NamedBy,
}

impl StoredToken {
    pub(super) fn of(
        token: Token,
        server: &AuthorizationServer,
        client: &OAuthClient,
        scopes: &Scopes,
        grant: Grant,
        now: Timestamp,
    ) -> Self {
        Self {
            key: TokenKey {
                agent: server.agent.clone(),
                token_url: server.token.url.clone(),
                client_id: client.id.clone(),
                scopes: scopes.clone(),
            },
            scheme: server.scheme.clone(),
            grant,
            access_token: token.access_token,
            obtained_at: now,
            expires_at: token.expires_at,
            refresh_token: token.refresh_token,
            refresh_url: server.refresh_url.clone(),
            granted: token.scopes,
            named_by: server.named_by,
        }
    }

    /// The same login with its next token. A refresh token that the server does not replace stays good (RFC 6749 §6).
    pub(super) fn renewed(&self, token: Token, now: Timestamp) -> Self {
        let Token { access_token, expires_at, refresh_token, scopes } = token;
        Self {
            access_token,
            obtained_at: now,
            expires_at,
            refresh_token: refresh_token.or_else(|| self.refresh_token.clone()),
            granted: scopes.or_else(|| self.granted.clone()),
            ..self.clone()
        }
    }

    /// How long it is still valid; none if its server did not say.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        self.expires_at.map(|expires_at| between(now, expires_at))
    }
}

/// A file of tokens, for one user alone: mode 0600, in a folder that is made with 0700. It is replaced as a whole, so that a
/// reader finds the old or the new one, also after a crash; and processes that change it wait for each other.
#[derive(Clone, Debug)]
pub struct TokenStore {
    path: Arc<PathBuf>,
}

/// The right to change the file, which one holder has at a time, of all processes. Held until its last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock ends when the file is closed")] Arc<File>);

impl TokenStore {
    /// The store in this file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: Arc::new(path.into()) }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All logins, the one that was made or renewed last at the end; none if there is no file.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        let path = self.path.clone();
        self.blocking("read", move || file::read(&path)).await
    }

    /// Adds a login, in place of one with the same key.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn put(&self, token: StoredToken) -> Result<(), StoreError> {
        let lock = self.lock().await?;
        self.put_locked(lock, token).await
    }

    /// Removes all logins for an agent, and says which they were.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn remove(&self, agent: &AgentUrl) -> Result<Vec<StoredToken>, StoreError> {
        let agent = agent.clone();
        self.remove_where(move |token| token.key.agent == agent).await
    }

    /// Removes all logins for all agents, and says which they were.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn remove_all(&self) -> Result<Vec<StoredToken>, StoreError> {
        self.remove_where(|_| true).await
    }

    async fn remove_where(
        &self,
        is_to_go: impl Fn(&StoredToken) -> bool + Send + 'static,
    ) -> Result<Vec<StoredToken>, StoreError> {
        let lock = self.lock().await?;
        self.change(lock, move |tokens| tokens.extract_if(.., |token| is_to_go(token)).collect::<Vec<_>>()).await
    }

    pub(super) async fn put_locked(&self, lock: Lock, token: StoredToken) -> Result<(), StoreError> {
        let path = self.path.clone();
        let is_there = self
            .change(lock, move |tokens| {
                let is_known = tokens.iter().any(|other| other.key == token.key);
                if !is_known && tokens.len() >= ENTRIES_MAX {
                    return false;
                }
                tokens.retain(|other| other.key != token.key);
                tokens.push(token);
                true
            })
            .await?;
        if is_there { Ok(()) } else { Err(StoreError::Full { path: path.to_path_buf() }) }
    }

    /// Waits for the right to change the file.
    pub(super) async fn lock(&self) -> Result<Lock, StoreError> {
        let path = self.path.clone();
        let file = Arc::new(self.blocking("lock", move || file::open_lock(&path)).await?);
        let until = Instant::now() + LOCK_WAIT_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => sleep(LOCK_INTERVAL).await,
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(StoreError::Busy { path: self.path.to_path_buf() });
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(self.failed("lock", error)),
            }
        }
    }

    /// Reads, changes and writes. The lock goes along: what was begun is done before anybody else has the file, also if whoever
    /// asked for it has left.
    async fn change<T: Send + 'static>(
        &self,
        lock: Lock,
        change: impl FnOnce(&mut Vec<StoredToken>) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.path.clone();
        self.blocking("write", move || {
            let before = file::read(&path)?;
            let mut after = before.clone();
            let answer = change(&mut after);
            if after != before {
                file::write(&path, &after)?;
            }
            drop(lock);
            Ok(answer)
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(self.failed(action, error)))
    }

    fn failed(&self, action: &'static str, source: impl Into<Cause>) -> StoreError {
        StoreError::Files { action, path: self.path.to_path_buf(), source: source.into() }
    }
}
