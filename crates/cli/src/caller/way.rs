//! How agents are reached: over which connections, with which credentials, and by which cards.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longhaul_client::card::{CardReference, Preference};
use longhaul_client::oauth::{AgentUrl, Authorizer, Logins, OAuthClient, TokenStore};
use longhaul_client::signature::{JwkSet, TrustStore, Verifier};
use longhaul_client::{Client, ClientBuilder, ClientError, FoundCard, Secret, StaticCredentials, TransportConfig};
use longhaul_protocol::wire::SecuritySchemeKind;

use super::debug::DebugLog;
use super::failure::Failure;
use super::options::{CardTrust, Diagnostics, Options};
use super::redact::Redactor;

/// The longest that one attempt of a call may take; `--timeout` makes it shorter.
const CALL_DURATION_MAX: Duration = Duration::from_secs(30);
/// The largest file with keys, in bytes.
const KEYS_BYTES_MAX: u64 = JwkSet::BYTES_MAX as u64;

/// Whether one can log in to an agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Login {
    /// Its card was not seen, or offers none.
    Unknown,
    /// Its card offers it.
    Offered,
    /// It has been done.
    There,
}

/// What is shown to an agent of the credentials that the caller gave. Logins are always used: each is for one agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presents {
    /// All: it is the agent that they were given for.
    All,
    /// None: it is another one.
    LoginsOnly,
}

/// Keys that are trusted to sign cards.
#[derive(Clone, Debug, Default)]
pub struct CardKeys(Option<JwkSet>);

impl CardKeys {
    /// Those that the options name.
    ///
    /// # Errors
    ///
    /// A usage [`Failure`] when the file can't be read.
    pub fn read(options: &Options) -> Result<Self, Failure> {
        options.card_keys.as_deref().map(|path| keys("--card-keys", path)).transpose().map(Self)
    }
}

/// Reads a file with keys.
///
/// # Errors
///
/// A usage [`Failure`] that names the flag.
pub fn keys(flag: &str, path: &Path) -> Result<JwkSet, Failure> {
    let refused = |problem: String| {
        Failure::usage(format!("{flag} {}: {problem}", path.display())).hint("name a file with a JWK set, or one JWK")
    };
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(KEYS_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| refused(error.to_string()))?;
    JwkSet::parse(&bytes).map_err(|error| refused(error.to_string()))
}

/// How agents are reached. Clones share what they know.
#[derive(Clone, Debug)]
pub struct Way {
    options: Arc<Options>,
    keys: CardKeys,
    /// What else must not be shown: tokens of logins, secrets of push configs.
    hidden: Arc<Mutex<Vec<Secret>>>,
}

impl Way {
    /// By these options.
    pub fn new(options: Arc<Options>, keys: CardKeys) -> Self {
        Self { options, keys, hidden: Arc::default() }
    }

    /// What takes the credentials out of what is written for people.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(&self.options, &self.hidden.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes note of secrets that must not be shown by what is made from now on.
    pub fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner).extend(secrets);
    }

    /// How connections are made.
    fn transport(&self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        transport.verification = self.options.verification;
        transport.extra_roots.clone_from(&self.options.ca);
        transport.identity.clone_from(&self.options.identity);
        transport
    }

    /// Which interfaces are preferred.
    pub fn preference(&self) -> Preference {
        let mut preference = Preference { bindings: self.options.transports.clone(), ..Preference::default() };
        if let Some(version) = self.options.a2a_version {
            preference.versions = vec![version];
        }
        preference
    }

    /// What gets tokens.
    pub fn authorizer(&self) -> Authorizer {
        Authorizer::new(&self.transport()).origins(self.options.origins)
    }

    /// Where logins are kept; none without a home.
    pub fn store(&self) -> Option<TokenStore> {
        self.options.tokens.clone().map(TokenStore::new)
    }

    /// What verifies cards, with these keys besides those of the options.
    pub fn verifier(&self, more: Option<JwkSet>) -> Verifier {
        let mut trust = TrustStore::default();
        self.keys.0.iter().cloned().chain(more).for_each(|keys| trust.trust(keys));
        Verifier::new(trust).with_jku_allow(self.options.jku_allow.clone())
    }

    /// How a client is made.
    ///
    /// # Errors
    ///
    /// [`ClientError::Invalid`] for a service parameter that the client sets itself.
    pub fn builder(&self, presents: Presents) -> Result<ClientBuilder, ClientError> {
        let options = &*self.options;
        let mut builder = Client::builder()
            .transport(self.transport())
            .preference(self.preference())
            .origins(options.origins)
            .timeout(options.timeout.map_or(CALL_DURATION_MAX, |timeout| timeout.min(CALL_DURATION_MAX)));
        if presents == Presents::All {
            let (bearer, api_key) = (options.bearer.clone(), options.api_key.clone());
            builder = builder.credentials(Arc::new(StaticCredentials { bearer, api_key, basic: None }));
            for (name, value) in &options.service_params {
                builder = builder.header(name.as_str(), value.to_str().unwrap_or_default())?;
            }
        }
        if let Some(store) = self.store() {
            builder = builder.logins(Logins { store, authorizer: self.authorizer(), client: self.oauth_client() });
        }
        if options.trust == CardTrust::Verified {
            builder = builder.require_verified_card(self.verifier(None));
        }
        if options.diagnostics == Diagnostics::On {
            builder = builder.wire_log(Arc::new(DebugLog::new(self.redactor())));
        }
        Ok(builder)
    }

    /// Who renews tokens where that takes a secret.
    fn oauth_client(&self) -> Option<OAuthClient> {
        let (id, secret) = (self.options.client_id.clone()?, self.options.client_secret.clone()?);
        Some(OAuthClient { id, secret: Some(secret) })
    }

    /// Reads a card, and makes no client.
    ///
    /// # Errors
    ///
    /// [`ClientError::Card`] and what fetching it can end by.
    pub async fn fetch(&self, reference: &str, presents: Presents) -> Result<FoundCard, ClientError> {
        let reference: CardReference = reference.parse().map_err(ClientError::Card)?;
        self.builder(presents)?.fetch(&reference).await
    }

    /// Whether one can log in to the agent of a card, and has done so.
    pub async fn login(&self, found: &FoundCard) -> Login {
        let is_login = |kind: &_| matches!(kind, SecuritySchemeKind::OAuth2(_) | SecuritySchemeKind::OpenIdConnect(_));
        let schemes = &found.document.card().security_schemes;
        if !schemes.values().any(|scheme| scheme.scheme.as_ref().is_some_and(is_login)) {
            return Login::Unknown;
        }
        let (Some(store), Some(agent)) = (self.store(), AgentUrl::of(found)) else { return Login::Offered };
        // A file that can't be read is told of by the call that needs it.
        let known = store.tokens().await.unwrap_or_default();
        let ours = known.into_iter().filter(|token| token.key.agent == agent);
        let secrets: Vec<Secret> =
            ours.flat_map(|token| [Some(token.access_token), token.refresh_token]).flatten().collect();
        if secrets.is_empty() {
            return Login::Offered;
        }
        self.hide(secrets);
        Login::There
    }
}
