//! Logins as a source of credentials.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::Timestamp;
use longhaul_protocol::wire::SecurityScheme;
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use super::agent::AgentUrl;
use super::error::OAuthError;
use super::grant::{Authorizer, OAuthClient, login_needed};
use super::server::{takes_bearer, token_url_of};
use super::store::{StoredToken, TokenStore};
use super::token::Grant;
use crate::card::CardOrigin;
use crate::client::FoundCard;
use crate::credentials::{Credential, CredentialSource};
use crate::error::Cause;

/// A token is renewed when it is valid for less than this, or for less than half its life if that is shorter.
pub const RENEWED_BEFORE: Duration = Duration::from_secs(60);

/// How long after a failure the same token is not tried to be renewed again: a server in trouble is not asked at each call.
const RENEWAL_PAUSE: Duration = Duration::from_secs(5);

/// Where logins are kept, and how they are renewed.
#[derive(Clone, Debug)]
pub struct Logins {
    /// Where they are kept.
    pub store: TokenStore,
    /// How they are renewed.
    pub authorizer: Authorizer,
    /// Who renews them. Needed where the client has a secret, which is not kept; only logins of this client are then used.
    /// Without one, those of any client are, and renewed by its id alone.
    pub client: Option<OAuthClient>,
}

/// Gives the token of a login to the calls of the one agent that it was for; where another source has something, that.
///
/// The token goes with a scheme of OAuth 2.0, OpenID Connect or HTTP's `Bearer` that has the name which it had at login, and
/// not where the card names another token URL by now. It is renewed before it runs out, once, however many calls wait for it,
/// in this process and others. While it is still valid, a failure to renew it does no harm.
#[derive(Debug)]
pub struct StoredCredentials {
    shared: Arc<Shared>,
    inner: Option<Arc<dyn CredentialSource>>,
    /// A renewal goes on when the call that needed it is given up: the server has used up the old refresh token by then.
    renewals: TaskTracker,
}

#[derive(Debug)]
struct Shared {
    logins: Logins,
    agent: Option<AgentUrl>,
    origin: CardOrigin,
    /// Held while a token is renewed, by the task that does it. Others wait here rather than at the file's lock, which knows
    /// no turns, and share what came of it.
    renewing: Mutex<Option<Failure>>,
}

/// A renewal that came to nothing.
#[derive(Debug)]
struct Failure {
    stale: StoredToken,
    at: Timestamp,
    error: Arc<OAuthError>,
}

impl StoredCredentials {
    /// For the agent of this card. What `inner` has goes first.
    #[must_use]
    pub fn new(logins: Logins, card: &FoundCard, inner: Option<Arc<dyn CredentialSource>>) -> Self {
        let shared =
            Shared { logins, agent: AgentUrl::of(card), origin: card.origin.clone(), renewing: Mutex::default() };
        Self { shared: Arc::new(shared), inner, renewals: TaskTracker::new() }
    }
}

#[async_trait]
impl CredentialSource for StoredCredentials {
    async fn credential(&self, name: &str, scheme: &SecurityScheme) -> Result<Option<Credential>, Cause> {
        if let Some(inner) = &self.inner
            && let Some(credential) = inner.credential(name, scheme).await?
        {
            return Ok(Some(credential));
        }
        if !takes_bearer(scheme) {
            return Ok(None);
        }
        let Some(token) = self.shared.find(name, scheme).await? else { return Ok(None) };
        let now = self.shared.logins.authorizer.clock.now();
        let is_over = token.left(now).is_some_and(|left| left.is_zero());
        if is_fresh(&token, now) || (!is_over && !self.shared.can_renew(&token)) {
            return Ok(Some(Credential::Bearer(token.access_token)));
        }
        let shared = self.shared.clone();
        let stale = token.clone();
        let renewed = self.renewals.spawn(async move { shared.renewed(&stale, now).await }).await?;
        match renewed {
            Ok(renewed) => Ok(Some(Credential::Bearer(renewed.access_token))),
            Err(error) if is_over => Err(error.into()),
            Err(error) => {
                tracing::warn!(agent = %token.key.agent, error = &error as &dyn std::error::Error, "token not renewed");
                Ok(Some(Credential::Bearer(token.access_token)))
            }
        }
    }

    /// What the other source has. A login is for a scheme.
    async fn undeclared(&self) -> Result<Option<Credential>, Cause> {
        match &self.inner {
            Some(inner) => inner.undeclared().await,
            None => Ok(None),
        }
    }
}

fn is_fresh(token: &StoredToken, now: Timestamp) -> bool {
    let Some(expires_at) = token.expires_at else { return true };
    let life = crate::clock::between(token.obtained_at, expires_at);
    crate::clock::between(now, expires_at) > RENEWED_BEFORE.min(life / 2)
}

impl Shared {
    fn can_renew(&self, token: &StoredToken) -> bool {
        let has_secret = self.logins.client.as_ref().is_some_and(|client| client.secret.is_some());
        token.refresh_token.is_some() || (token.grant == Grant::ClientCredentials && has_secret)
    }

    /// The last login for this scheme. Read at each call, so that a logout counts at once.
    async fn find(&self, name: &str, scheme: &SecurityScheme) -> Result<Option<StoredToken>, OAuthError> {
        let Some(agent) = &self.agent else { return Ok(None) };
        let declared = token_url_of(scheme);
        let is_meant = |token: &StoredToken| {
            token.key.agent == *agent
                && token.scheme == name
                && (declared.is_empty() || token.named_by == super::NamedBy::Caller || declared == token.key.token_url)
                && self.logins.client.as_ref().is_none_or(|client| client.id == token.key.client_id)
        };
        let tokens = self.logins.store.tokens().await?;
        Ok(tokens.into_iter().rev().find(is_meant))
    }

    /// The login with a token that is fresh. Who asked while another one tried has the same answer.
    async fn renewed(&self, stale: &StoredToken, asked_at: Timestamp) -> Result<StoredToken, OAuthError> {
        let mut last = self.renewing.lock().await;
        let clock = &self.logins.authorizer.clock;
        if let Some(failure) = last.as_ref().filter(|failure| failure.counts_for(stale, asked_at, clock.now())) {
            return Err(failure.told());
        }
        let renewed = self.renew(stale).await;
        *last = None;
        renewed.map_err(|error| {
            last.insert(Failure { stale: stale.clone(), at: clock.now(), error: Arc::new(error) }).told()
        })
    }

    /// Renews a token, unless another process has done so meanwhile.
    async fn renew(&self, stale: &StoredToken) -> Result<StoredToken, OAuthError> {
        let Logins { store, authorizer, client } = &self.logins;
        // Before anybody else can use the refresh token up, the new one has to be in the file.
        let lock = store.lock().await?;
        let tokens = store.tokens().await?;
        let Some(token) = tokens.into_iter().find(|token| token.key == stale.key) else {
            return Err(login_needed(&stale.key.agent, None));
        };
        if is_fresh(&token, authorizer.clock.now()) {
            return Ok(token);
        }
        let public = || OAuthClient { id: token.key.client_id.clone(), secret: None };
        let client = client.clone().unwrap_or_else(public);
        let renewed = authorizer.renew(&token, &client, &self.origin).await?;
        let renewed = renewed.ok_or_else(|| login_needed(&token.key.agent, None))?;
        store.put_locked(lock, renewed.clone()).await?;
        Ok(renewed)
    }
}

impl Failure {
    fn counts_for(&self, stale: &StoredToken, asked_at: Timestamp, now: Timestamp) -> bool {
        self.stale == *stale && (asked_at <= self.at || crate::clock::between(self.at, now) < RENEWAL_PAUSE)
    }

    fn told(&self) -> OAuthError {
        match &*self.error {
            OAuthError::LoginNeeded { agent, source } => {
                OAuthError::LoginNeeded { agent: agent.clone(), source: source.clone() }
            }
            _ => OAuthError::NotRenewed { agent: self.stale.key.agent.clone(), source: self.error.clone() },
        }
    }
}
