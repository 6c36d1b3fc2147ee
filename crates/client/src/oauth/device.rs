//! A login by a code that a person enters in a browser, wherever that is (RFC 8628).

use std::time::Duration;

use longhaul_protocol::Timestamp;
use longhaul_push::Secret;
use longhaul_push::guard::Target;
use serde::Deserialize;
use serde_json::Value;

use super::error::{OAuthError, RefusedCode};
use super::grant::{Authorizer, OAuthClient};
use super::scopes::Scopes;
use super::server::AuthorizationServer;
use super::store::StoredToken;
use super::token::{Grant, Token, seconds};
use super::wire::{Answer, Form, Wire};
use crate::clock::{between, later};

/// How long to wait between two questions if the server does not say (RFC 8628 §3.2).
pub const INTERVAL_DEFAULT: Duration = Duration::from_secs(5);
/// By how much a server that is asked too often makes each later wait longer (RFC 8628 §3.5).
pub const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The longest time that a code is waited for, whatever the server says.
pub const DEVICE_LIFETIME_MAX: Duration = Duration::from_secs(60 * 60);

const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// The longest wait after answers that did not come.
const BACKOFF_MAX: Duration = Duration::from_secs(60);
const USER_CODE_CHARS_MAX: usize = 64;
const DEVICE_CODE_BYTES_MAX: usize = 16 * 1024;
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A login that waits for a person: show [`user_code`](Self::user_code) and [`verification_uri`](Self::verification_uri), then
/// wait with [`Authorizer::finish_device_login`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceLogin {
    /// What the person enters. On one line, without control characters.
    pub user_code: String,
    /// Where: a URL of `https`, or on this machine.
    pub verification_uri: String,
    /// The same with the code in it, if the server gives one: for a link or a QR code.
    pub verification_uri_complete: Option<String>,
    /// Until when.
    pub expires_at: Timestamp,
    /// How long to wait between two questions.
    pub interval: Duration,
    device_code: Secret,
    wire: Wire,
    server: AuthorizationServer,
    client: OAuthClient,
    scopes: Scopes,
}

#[derive(Deserialize)]
struct Written {
    device_code: String,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Value,
    interval: Option<Value>,
}

/// What one question came to.
enum Polled {
    Token(Token),
    Pending,
    SlowDown,
    Failed(OAuthError),
}

impl Authorizer {
    /// Asks for a code that a person can enter.
    ///
    /// # Errors
    ///
    /// [`OAuthError::NotOffered`] when the server has no endpoint for it, [`OAuthError::Refused`] when it refuses, and what a
    /// request can end by.
    pub async fn start_device_login(
        &self,
        server: &AuthorizationServer,
        client: &OAuthClient,
        scopes: &Scopes,
    ) -> Result<DeviceLogin, OAuthError> {
        let endpoint = server.device.as_ref().ok_or_else(|| OAuthError::NotOffered {
            scheme: server.scheme.clone(),
            what: "login by a code (device authorization)",
        })?;
        let scope = scopes.to_string();
        let mut form: Form<'_> = Vec::new();
        // Who the client is has to be said in the body here, also by one with a secret (RFC 8628 §3.1).
        if client.secret.is_some() {
            form.push(("client_id", &client.id));
        }
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let asked_at = self.clock.now();
        let answer = self.ask(&self.wire(endpoint)?, form, client).await?;
        let written = Written::read(&answer)?;
        let lifetime = seconds(&written.expires_in).ok_or_else(|| answer.invalid("its expires_in is no number"))?;
        let interval = match &written.interval {
            None | Some(Value::Null) => INTERVAL_DEFAULT,
            Some(value) => seconds(value).ok_or_else(|| answer.invalid("its interval is no number"))?,
        };
        Ok(DeviceLogin {
            user_code: written.user_code,
            verification_uri: written.verification_uri,
            verification_uri_complete: written.verification_uri_complete,
            expires_at: later(asked_at, lifetime.min(DEVICE_LIFETIME_MAX)),
            interval: interval.clamp(INTERVAL_MIN, DEVICE_LIFETIME_MAX),
            device_code: Secret::new(written.device_code),
            wire: self.wire(&server.token)?,
            server: server.clone(),
            client: client.clone(),
            scopes: scopes.clone(),
        })
    }

    /// Waits until the person has entered the code, and gets the token. Asks at the server's pace, and more slowly while it gives
    /// no answer.
    ///
    /// # Errors
    ///
    /// [`OAuthError::Denied`], [`OAuthError::CodeExpired`], [`OAuthError::Refused`], and what a request can end by.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the login up.
    pub async fn finish_device_login(&self, login: DeviceLogin) -> Result<StoredToken, OAuthError> {
        let mut interval = login.interval;
        let mut failure = None;
        loop {
            let left = between(self.clock.now(), login.expires_at);
            if left.is_zero() {
                return Err(failure.unwrap_or(OAuthError::CodeExpired));
            }
            self.clock.sleep(interval.min(left)).await;
            failure = None;
            match self.poll(&login).await? {
                Polled::Token(token) => {
                    let DeviceLogin { server, client, scopes, .. } = &login;
                    let now = self.clock.now();
                    return Ok(StoredToken::of(token, server, client, scopes, Grant::DeviceCode, now));
                }
                Polled::Pending => {}
                Polled::SlowDown => interval += SLOW_DOWN,
                Polled::Failed(error) => {
                    interval = (interval * 2).min(BACKOFF_MAX.max(interval));
                    failure = Some(error);
                }
            }
        }
    }

    async fn poll(&self, login: &DeviceLogin) -> Result<Polled, OAuthError> {
        let mut form: Form<'_> = vec![("grant_type", GRANT_TYPE), ("device_code", login.device_code.reveal())];
        if login.client.secret.is_some() {
            form.push(("client_id", &login.client.id));
        }
        let asked_at = self.clock.now();
        let answer = self.ask(&login.wire, form, &login.client).await;
        match answer {
            Ok(answer) => Token::read(&answer, asked_at).map(Polled::Token),
            Err(OAuthError::Refused { whom, code, description }) => match code {
                RefusedCode::AuthorizationPending => Ok(Polled::Pending),
                RefusedCode::SlowDown => Ok(Polled::SlowDown),
                RefusedCode::ExpiredToken => Err(OAuthError::CodeExpired),
                RefusedCode::AccessDenied => Err(OAuthError::Denied { whom }),
                code => Err(OAuthError::Refused { whom, code, description }),
            },
            Err(error) if error.is_transient() => Ok(Polled::Failed(error)),
            Err(error) => Err(error),
        }
    }
}

impl Written {
    fn read(answer: &Answer) -> Result<Self, OAuthError> {
        let mut written: Self = answer.read()?;
        written.user_code = crate::transport::excerpt(written.user_code.as_bytes());
        if written.user_code.is_empty() || written.user_code.chars().count() > USER_CODE_CHARS_MAX {
            return Err(answer.invalid("its user_code is empty or longer than 64 characters"));
        }
        if !(1..=DEVICE_CODE_BYTES_MAX).contains(&written.device_code.len()) {
            return Err(answer.invalid("its device_code is empty or too long"));
        }
        // A person is sent there, perhaps by a click.
        if !may_be_visited(&written.verification_uri) {
            return Err(answer.invalid("its verification_uri is no URL of https"));
        }
        written.verification_uri_complete = written.verification_uri_complete.filter(|uri| may_be_visited(uri));
        Ok(written)
    }
}

fn may_be_visited(uri: &str) -> bool {
    Target::parse(uri).is_ok_and(|target| target.is_tls() || crate::card::is_loopback(&target))
}
