//! The grants that one request is enough for, and how a client says who it is.

use std::sync::Arc;
use std::time::Duration;

use longhaul_push::Secret;

use super::agent::AgentUrl;
use super::clock::{Clock, SystemClock};
use super::endpoint::Endpoint;
use super::error::{OAuthError, RefusedCode};
use super::scopes::Scopes;
use super::server::AuthorizationServer;
use super::store::StoredToken;
use super::token::{Grant, Token};
use super::wire::{Answer, Form, Wire, basic};
use crate::card::OriginPolicy;
use crate::transport::TransportConfig;

/// The time for one request to an authorization server.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client as an authorization server knows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OAuthClient {
    /// Its id.
    pub id: String,
    /// Its secret; a public client has none.
    pub secret: Option<Secret>,
}

/// Gets tokens from authorization servers.
#[derive(Clone, Debug)]
#[must_use]
pub struct Authorizer {
    pub(super) config: TransportConfig,
    pub(super) policy: OriginPolicy,
    pub(super) clock: Arc<dyn Clock>,
}

impl Authorizer {
    /// One whose connections are made as this says, but without its client certificate. Follows a card no further inside than
    /// the card itself came from.
    pub fn new(config: &TransportConfig) -> Self {
        Self { config: config.clone(), policy: OriginPolicy::default(), clock: Arc::new(SystemClock) }
    }

    /// Where a card may lead: [`Interfaces::Any`](crate::card::Interfaces::Any) permits endpoints inside to any card. TLS is
    /// needed all the same.
    pub fn origins(mut self, policy: OriginPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Another clock than the machine's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// A token for the client itself (RFC 6749 §4.4). Its secret goes by HTTP Basic, and where the server does not take that
    /// (`invalid_client`), once more in the body.
    ///
    /// # Errors
    ///
    /// [`OAuthError::Invalid`] for a client without a secret, [`OAuthError::Refused`] when the server refuses, and what a request
    /// can end by.
    pub async fn client_credentials(
        &self,
        server: &AuthorizationServer,
        client: &OAuthClient,
        scopes: &Scopes,
    ) -> Result<StoredToken, OAuthError> {
        if client.secret.is_none() {
            return Err(OAuthError::Invalid { what: "client secret", problem: "is needed for client credentials" });
        }
        let now = self.clock.now();
        let token = self.own_token(&server.token, client, scopes).await?;
        Ok(StoredToken::of(token, server, client, scopes, Grant::ClientCredentials, now))
    }

    async fn own_token(&self, endpoint: &Endpoint, client: &OAuthClient, scopes: &Scopes) -> Result<Token, OAuthError> {
        let scope = scopes.to_string();
        let mut form: Form<'_> = vec![("grant_type", "client_credentials")];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let asked_at = self.clock.now();
        Token::read(&self.ask(&self.wire(endpoint)?, form, client).await?, asked_at)
    }

    /// The next token of a login, from the endpoint that was known then. None if there is no way to one.
    pub(super) async fn renew(
        &self,
        login: &StoredToken,
        client: &OAuthClient,
        origin: &crate::card::CardOrigin,
    ) -> Result<Option<StoredToken>, OAuthError> {
        let origin = login.named_by.origin(origin);
        let now = self.clock.now();
        if let Some(refresh_token) = &login.refresh_token {
            let endpoint = Endpoint::check("refresh URL", &login.refresh_url, &origin, &self.policy)?;
            let form = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.reveal())];
            let answer = self.ask(&self.wire(&endpoint)?, form, client).await;
            let refused = match answer {
                Ok(answer) => return Ok(Some(login.renewed(Token::read(&answer, now)?, now))),
                Err(error) if !error.is_refused_as(&RefusedCode::InvalidGrant) => return Err(error),
                Err(refused) => refused,
            };
            if login.grant != Grant::ClientCredentials || client.secret.is_none() {
                return Err(login_needed(&login.key.agent, Some(refused)));
            }
        }
        if login.grant != Grant::ClientCredentials || client.secret.is_none() {
            return Ok(None);
        }
        let endpoint = Endpoint::check("token URL", &login.key.token_url, &origin, &self.policy)?;
        let token = self.own_token(&endpoint, client, &login.key.scopes).await?;
        Ok(Some(login.renewed(token, now)))
    }

    pub(super) fn wire(&self, endpoint: &Endpoint) -> Result<Wire, OAuthError> {
        Wire::to(endpoint, &self.config, TIMEOUT)
    }

    /// Asks for something that a client has to say who it is for.
    pub(super) async fn ask(
        &self,
        wire: &Wire,
        mut form: Form<'_>,
        client: &OAuthClient,
    ) -> Result<Answer, OAuthError> {
        if client.id.is_empty() {
            return Err(OAuthError::Invalid { what: "client id", problem: "is empty" });
        }
        let Some(secret) = &client.secret else {
            form.push(("client_id", &client.id));
            return wire.post(&form, None).await;
        };
        match wire.post(&form, Some(basic(&client.id, secret)?)).await {
            // A client that was not recognised has used nothing up: neither a code nor a refresh token.
            Err(error) if error.is_refused_as(&RefusedCode::InvalidClient) => {
                form.retain(|(name, _)| *name != "client_id");
                form.extend([("client_id", &*client.id), ("client_secret", secret.reveal())]);
                wire.post(&form, None).await
            }
            answer => answer,
        }
    }
}

pub(super) fn login_needed(agent: &AgentUrl, refused: Option<OAuthError>) -> OAuthError {
    OAuthError::LoginNeeded { agent: agent.clone(), source: refused.map(Arc::new) }
}
