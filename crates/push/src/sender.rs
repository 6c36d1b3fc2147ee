//! Sends one delivery and says what its answer means.
//!
//! A name is looked up once an attempt; each of its addresses is checked, and those that pass are dialled in turn. A connection
//! that is kept for the next delivery to the same scheme, host and port leads to an address that was checked when it was made.

mod answer;
mod dial;
mod link;
mod pool;
mod request;
mod resolve;
mod tls;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use longhaul_protocol::Timestamp;
use tokio::time::{Instant, timeout_at};

pub use answer::{Answer, Failure, Health};
pub use request::{CREDENTIALS_BYTES_MAX, FieldRefused, SCHEME_BYTES_MAX, TOKEN_BYTES_MAX, check_fields};
pub use resolve::{Resolver, SystemResolver};
pub use tls::TlsSetupError;

use crate::guard::{Guard, Target};
use crate::secret::Secret;
use crate::sign::SigningSecret;
use dial::Dialer;
use link::{Head, Link};
use pool::Pool;

/// The limits of one attempt, and of what is kept between attempts.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// From the lookup of the name until the answer's head is there. Default 15 s.
    pub timeout: Duration,
    /// How long one address may take to connect, TLS included, if there are others. Default 5 s.
    pub connect_timeout: Duration,
    /// The longest head of an answer, in bytes. Default 32 KiB, at least 8 KiB.
    pub head_bytes_max: usize,
    /// How much of an answer's body is read, and thrown away, before the connection is closed. Default 64 KiB.
    pub body_bytes_max: usize,
    /// For how long a body is read. Default 1 s; the answer counts, whatever becomes of its body.
    pub body_timeout: Duration,
    /// Connections kept open for each scheme, host and port. Default 4; 0 keeps none.
    pub idle_per_origin_max: usize,
    /// Connections kept open in all. Default 256.
    pub idle_max: usize,
    /// For how long a connection is kept that is not used. Default 15 s.
    pub idle_timeout: Duration,
    /// For how long a connection is used in all, so that a change in DNS is followed. Default 60 s.
    pub connection_age_max: Duration,
    /// A PEM file of authorities that are trusted besides the system's. Default: none.
    pub extra_roots: Option<PathBuf>,
}

impl Default for SenderConfig {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            timeout: seconds(15),
            connect_timeout: seconds(5),
            head_bytes_max: 32 * 1024,
            body_bytes_max: 64 * 1024,
            body_timeout: seconds(1),
            idle_per_origin_max: 4,
            idle_max: 256,
            idle_timeout: seconds(15),
            connection_age_max: seconds(60),
            extra_roots: None,
        }
    }
}

/// One event on its way to one config.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// `url` of the config, as it was given.
    pub url: String,
    /// The JSON of one `StreamResponse`, or what else the version has.
    pub body: Bytes,
    /// `Webhook-Id`: the same at each attempt, visible ASCII without a full stop.
    pub id: String,
    /// `A2A-Version`: that of the body.
    pub version: String,
    /// `Content-Type`: that of the body.
    pub media_type: &'static str,
    /// `authentication.scheme`. Without credentials no `Authorization` is sent.
    pub scheme: Option<String>,
    /// `authentication.credentials`.
    pub credentials: Option<Secret>,
    /// `token`.
    pub token: Option<Secret>,
    /// What it is signed with; with none it is not signed.
    pub signing: Arc<[SigningSecret]>,
}

/// Sends deliveries. Many may be under way at once.
pub struct Sender {
    config: SenderConfig,
    dialer: Dialer,
    pool: Pool,
}

impl Sender {
    /// A sender that asks the system for the addresses of names.
    ///
    /// # Errors
    ///
    /// [`TlsSetupError`] when [`SenderConfig::extra_roots`] can't be used.
    pub fn new(config: SenderConfig, guard: Guard) -> Result<Self, TlsSetupError> {
        Self::with_resolver(config, guard, Arc::new(SystemResolver::new()))
    }

    /// A sender that asks `resolver` for the addresses of names.
    ///
    /// # Errors
    ///
    /// [`TlsSetupError`] when [`SenderConfig::extra_roots`] can't be used.
    pub fn with_resolver(
        config: SenderConfig,
        guard: Guard,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, TlsSetupError> {
        let dialer = Dialer::new(&config, guard, resolver)?;
        Ok(Self { dialer, pool: Pool::new(&config), config })
    }

    /// The guard that each attempt asks; the one to ask when a config is made.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        self.dialer.guard()
    }

    /// How many authorities are trusted: with none, no `https` receiver is (hint: install `ca-certificates`).
    #[must_use]
    pub fn roots(&self) -> usize {
        self.dialer.roots()
    }

    /// Makes one attempt. `now` is what the signature says, and what a date in `Retry-After` is compared with.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes the connection; the receiver may have the delivery all the same.
    pub async fn send(&self, delivery: &Delivery, now: Timestamp) -> Answer {
        let target = match self.guard().check_url(&delivery.url) {
            Ok(target) => target,
            Err(refused) => return Answer::failed(Failure::Url(refused)),
        };
        let request = match request::build(delivery, &target, now) {
            Ok(request) => request,
            Err(refused) => return Answer::failed(Failure::Field(refused)),
        };
        let deadline = Instant::now() + self.config.timeout;
        match timeout_at(deadline, self.exchange(request, &target, now, deadline)).await {
            Ok(Ok((head, link))) => {
                let answer = Answer::of(&head.status, head.retry_after.as_deref(), now);
                self.finish(head, link, &target, now).await;
                answer
            }
            Ok(Err(failure)) => Answer::failed(failure),
            Err(_) => Answer::failed(Failure::Timeout),
        }
    }

    /// Closes connections that nobody has used for a while. Each [`send`](Self::send) does it too, so this is for quiet times.
    pub fn close_idle(&self, now: Timestamp) {
        self.pool.close_idle(now);
    }

    /// Gets an answer's head, on a kept connection or else on a new one.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        target: &Target,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<(Head, Link), Failure> {
        // One that was closed meanwhile shows it at once or by no answer at all; the delivery is sent again, with the same id.
        if let Some(mut link) = self.pool.take(target, now).await
            && let Ok(head) = link.send(request.clone()).await
        {
            return Ok((head, link));
        }
        let mut link = self.dialer.dial(target, now, deadline).await?;
        let head = link.send(request).await?;
        Ok((head, link))
    }

    /// Reads the body to its end, if it has one soon, and keeps the connection.
    async fn finish(&self, head: Head, mut link: Link, target: &Target, now: Timestamp) {
        if self.config.idle_per_origin_max == 0 {
            return;
        }
        let deadline = Instant::now() + self.config.body_timeout;
        let drained = timeout_at(deadline, link.drain(head.body, self.config.body_bytes_max)).await;
        if drained == Ok(true) {
            self.pool.put(target, link, now);
        }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sender").field("config", &self.config).finish_non_exhaustive()
    }
}
