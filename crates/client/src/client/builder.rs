//! How a client is made.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::discover::{Discovery, FoundCard};
use super::{Client, IDEMPOTENT_SEND, Inner, Options, verify};
use crate::binding::Spoken;
use crate::card::{CardCache, CardReference, Chosen, OriginPolicy, Preference};
use crate::credentials::CredentialSource;
use crate::error::ClientError;
use crate::interceptor::{Interceptor, WireLog};
use crate::oauth::{Logins, StoredCredentials};
use crate::retry::RetryPolicy;
use crate::signature::{Fetched, Verifier};
use crate::transport::{Transport, TransportConfig};

const VERSION_HEADER: HeaderName = HeaderName::from_static("a2a-version");

/// Gathers what a [`Client`] is made of. Everything has a default.
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    pub(super) transport: TransportConfig,
    preference: Preference,
    origins: OriginPolicy,
    cache: Option<Arc<CardCache>>,
    verifier: Option<Verifier>,
    logins: Option<Logins>,
    extensions: Vec<String>,
    pub(super) options: Options,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            transport: TransportConfig::default(),
            preference: Preference::default(),
            origins: OriginPolicy::default(),
            cache: None,
            verifier: None,
            logins: None,
            extensions: vec![IDEMPOTENT_SEND.to_owned()],
            options: Options {
                timeout: Duration::from_secs(30),
                blocking_timeout: Duration::from_secs(60 * 60),
                retry: RetryPolicy::default(),
                headers: HeaderMap::new(),
                credentials: None,
                interceptors: Vec::new(),
                log: None,
            },
        }
    }
}

impl ClientBuilder {
    /// How connections are made.
    pub fn transport(mut self, config: TransportConfig) -> Self {
        self.transport = config;
        self
    }

    /// Which interfaces of a card are preferred, and which versions of the protocol are spoken.
    pub fn preference(mut self, preference: Preference) -> Self {
        self.preference = preference;
        self
    }

    /// Which URLs a card may send the client to.
    pub fn origins(mut self, policy: OriginPolicy) -> Self {
        self.origins = policy;
        self
    }

    /// A cache of cards, to be shared by clients of one process (§8.6.2). Default: each client fetches its own.
    pub fn cache(mut self, cache: Arc<CardCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// The time for each attempt of a call, and for opening a stream. Default 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = timeout;
        self
    }

    /// The time for each attempt of a send that waits until the task rests, and until the first event of a stream that a send
    /// begins, where it may not be sent again. Default 1 h.
    pub fn blocking_timeout(mut self, timeout: Duration) -> Self {
        self.options.blocking_timeout = timeout;
        self
    }

    /// When a call is tried again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.options.retry = policy;
        self
    }

    /// A header of each call; for gRPC, metadata. Its value is never logged, and goes where credentials go: not to an
    /// interface from which an [`OriginPolicy`] withholds them.
    ///
    /// # Errors
    ///
    /// [`ClientError::Invalid`] when it is none, or one that the client sets itself.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        const OWN: [&str; 9] = [
            "a2a-version",
            "host",
            "content-length",
            "content-type",
            "transfer-encoding",
            "connection",
            "accept",
            "te",
            "last-event-id",
        ];
        let invalid =
            |problem: &str| ClientError::Invalid { field: format!("header {name:?}"), problem: problem.to_owned() };
        let header = HeaderName::try_from(name).map_err(|_| invalid("has a name that no header can have"))?;
        if OWN.contains(&header.as_str()) || header.as_str().starts_with("grpc-") || header.as_str().ends_with("-bin") {
            return Err(invalid("is set by the client itself"));
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid("has a value that no header can have"))?;
        value.set_sensitive(true);
        if header.as_str() == "a2a-extensions" {
            let named = value.to_str().unwrap_or_default().split(',').map(str::trim).filter(|uri| !uri.is_empty());
            for uri in named.map(str::to_owned).collect::<Vec<_>>() {
                self = self.extension(uri);
            }
            return Ok(self);
        }
        self.options.headers.append(header, value);
        Ok(self)
    }

    /// An extension that each call asks for (§4.6), by its URI. One that no header can name has no client made.
    pub fn extension(mut self, uri: impl Into<String>) -> Self {
        let uri = uri.into();
        if !self.extensions.contains(&uri) {
            self.extensions.push(uri);
        }
        self
    }

    /// Where credentials come from. Default: there are none.
    pub fn credentials(mut self, source: Arc<dyn CredentialSource>) -> Self {
        self.options.credentials = Some(source);
        self
    }

    /// Logins, whose tokens go to the agent that each was for. What [`credentials`](Self::credentials) has goes first. Default:
    /// there are none.
    pub fn logins(mut self, logins: Logins) -> Self {
        self.logins = Some(logins);
        self
    }

    /// Wants the card to be signed by a key that the verifier trusts (§8.4), and uses only what of it the signature covers: the
    /// rest anybody on the way could have added or changed, the URL that gets the calls among it, or who gets a credential.
    ///
    /// Such a client's [`card`](Client::card) and [`document`](Client::document) are that part, without signatures. It is the
    /// whole card for [`Form::Specification`](crate::signature::Form::Specification). In the weaker forms a security requirement
    /// without scopes is not covered; without any requirement left, credentials go by the schemes, which are. Let the verifier
    /// insist on the strictest form where that is not enough. Default: signatures are not looked at.
    pub fn require_verified_card(mut self, verifier: Verifier) -> Self {
        self.verifier = Some(verifier);
        self
    }

    /// Something that sees each call. They are asked in the order in which they were given.
    pub fn interceptor(mut self, interceptor: Arc<dyn Interceptor>) -> Self {
        self.options.interceptors.push(interceptor);
        self
    }

    /// Something that sees what goes over the wire, without credentials.
    pub fn wire_log(mut self, log: Arc<dyn WireLog>) -> Self {
        self.options.log = Some(log);
        self
    }

    /// Reads the card that the reference names, and picks an interface.
    ///
    /// # Errors
    ///
    /// [`ClientError::Card`] when there is no card, or none that can be used; [`ClientError::Setup`] when the transport can't
    /// be set up; and whatever fetching the card can end by.
    pub async fn connect(self, reference: &str) -> Result<Client, ClientError> {
        let reference: CardReference = reference.parse()?;
        let found = self.fetch(&reference).await?;
        self.connect_card(found).await
    }

    /// A client by a card that was fetched before. Where the card has to be verified, the key sets that it names are fetched.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_card(self, card: FoundCard) -> Result<Client, ClientError> {
        let fetched = match &self.verifier {
            Some(verifier) => self.fetch_keys(&card, verifier).await?,
            None => Fetched::nothing(),
        };
        self.with_keys(card, &fetched)
    }

    /// Reads a card, and makes no client.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn fetch(&self, reference: &CardReference) -> Result<FoundCard, ClientError> {
        Discovery::new(&self.transport, self.options.timeout, self.cache.as_deref(), self.options.log.as_ref())?
            .fetch(reference)
            .await
    }

    /// A client by a card that is there already. Does no input or output: where the card has to be verified, only the keys of
    /// the trust store count, and [`connect_card`](Self::connect_card) fetches others.
    ///
    /// # Errors
    ///
    /// [`ClientError::Card`] when no interface can be used; [`ClientError::Setup`] when the transport can't be set up.
    pub fn with_card(self, card: FoundCard) -> Result<Client, ClientError> {
        let fetched = self.fetched(&card);
        self.with_keys(card, &fetched)
    }

    fn with_keys(self, card: FoundCard, fetched: &Fetched) -> Result<Client, ClientError> {
        let card = match &self.verifier {
            Some(verifier) => verify::covered_part(card, verifier, fetched)?,
            None => card,
        };
        let credentials = match self.logins {
            Some(logins) => Some(Arc::new(StoredCredentials::new(logins, &card, self.options.credentials)) as _),
            None => self.options.credentials,
        };
        let FoundCard { document, origin } = card;
        let chosen = document.choose(&self.preference, &self.origins, &origin)?;
        let transport = Transport::new(&self.transport, Arc::new(chosen.reach))?;
        let own_headers = own_headers(&chosen, &self.extensions)?;
        let options = Options { credentials, ..self.options };
        Ok(Client { inner: Arc::new(Inner { document, chosen, own_headers, transport, options }) })
    }
}

/// The headers that say the version, and the extensions that are asked for.
fn own_headers(chosen: &Chosen, extensions: &[String]) -> Result<HeaderMap, ClientError> {
    let version = HeaderValue::try_from(chosen.version.to_string()).map_err(|_| ClientError::Invalid {
        field: "protocolVersion".to_owned(),
        problem: "of the interface can't be sent".to_owned(),
    })?;
    let invalid = |extension: &str| ClientError::Invalid {
        field: format!("extension {extension:?}"),
        problem: "is no URI that a header can name: it is empty, or has commas, spaces or control characters"
            .to_owned(),
    };
    if let Some(uri) = extensions.iter().find(|uri| !is_one_extension(uri)) {
        return Err(invalid(uri));
    }
    let extensions = extensions.join(", ");
    let named = HeaderValue::try_from(&extensions).map_err(|_| invalid(&extensions))?;
    Ok(HeaderMap::from_iter([(VERSION_HEADER, version), (Spoken::of(chosen).extensions_header(), named)]))
}

/// Whether it is one of a list that commas part.
fn is_one_extension(uri: &str) -> bool {
    !uri.is_empty() && uri.chars().all(|c| c != ',' && !c.is_control() && !c.is_whitespace())
}
