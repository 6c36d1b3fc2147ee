//! How an agent's card is found and fetched (§8.2, §8.6.2).

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_util::client::legacy::connect::HttpInfo;

use crate::card::{CARD_BYTES_MAX, Cached, CardCache, CardDocument, CardOrigin, CardReference, OriginPolicy, Reach};
use crate::clock::now;
use crate::error::{CardError, ClientError};
use crate::interceptor::{WireEvent, WireLog};
use crate::transport::{AddressPolicy, Deadline, Transport, TransportConfig, http_error, shown};

/// The most redirects on the way to a card.
const REDIRECTS_MAX: u32 = 3;
const OPERATION: &str = "GetAgentCard";

/// A card, and where it came from.
#[derive(Clone, Debug)]
pub struct FoundCard {
    /// The card.
    pub document: Arc<CardDocument>,
    /// Where it came from, which is what an [`OriginPolicy`] goes by.
    pub origin: CardOrigin,
}

/// Fetches cards, without any credential.
#[derive(Debug)]
pub(super) struct Discovery<'a> {
    config: &'a TransportConfig,
    transport: Transport,
    timeout: Duration,
    cache: Option<&'a CardCache>,
    log: Option<&'a Arc<dyn WireLog>>,
}

impl AddressPolicy for Reach {
    fn check(&self, host: &str, address: std::net::IpAddr) -> Result<(), String> {
        self.check_address(address).map_err(|refused| format!("{host} is not connected to: {refused}"))
    }
}

impl<'a> Discovery<'a> {
    pub fn new(
        config: &'a TransportConfig,
        timeout: Duration,
        cache: Option<&'a CardCache>,
        log: Option<&'a Arc<dyn WireLog>>,
    ) -> Result<Self, ClientError> {
        // What the caller named may be anywhere.
        let transport = Transport::new(config, Arc::new(Reach::ANYWHERE))?;
        Ok(Self { config, transport, timeout, cache, log })
    }

    /// Reads the card at the first of the reference's places where there is one.
    pub async fn fetch(&self, reference: &CardReference) -> Result<FoundCard, ClientError> {
        if let Some(path) = reference.file() {
            return read_file(path.clone()).await;
        }
        let mut missing = None;
        for url in reference.candidates() {
            match self.get(&url).await {
                Err(error) if is_missing(&error) => {
                    missing.get_or_insert(error);
                }
                read => return read,
            }
        }
        Err(missing.unwrap_or_else(|| {
            ClientError::Card(CardError::Reference { reference: String::new(), problem: "names no place".to_owned() })
        }))
    }

    async fn get(&self, url: &str) -> Result<FoundCard, ClientError> {
        let cached = self.cache.and_then(|cache| cache.get(url));
        if let Some(cached) = cached.as_ref().filter(|cached| cached.is_fresh(now())) {
            return Ok(FoundCard::of(cached));
        }
        let conditions = cached.as_ref().map(|cached| cached.conditional_headers()).unwrap_or_default();
        let mut answer = self.follow_redirects(url, &conditions).await?;
        if answer.status == StatusCode::NOT_MODIFIED {
            let same = cached.and_then(|cached| cached.after_304(&answer.headers, now()));
            if let (Some(cache), Some(same)) = (self.cache, same) {
                let found = FoundCard::of(&same);
                cache.put(url, Arc::new(same));
                return Ok(found);
            }
            answer = self.follow_redirects(url, &HeaderMap::new()).await?;
        }
        if !answer.status.is_success() {
            return Err(not_there(&answer));
        }
        let origin = match answer.url == url {
            true => answer.origin()?,
            false => answer.origin()?.redirected_from(url)?,
        };
        let document = Arc::new(CardDocument::parse(&answer.body, &answer.url)?);
        if let Some(cache) = self.cache {
            match Cached::new(document.clone(), origin.clone(), &answer.headers, now()) {
                Some(cached) => cache.put(url, Arc::new(cached)),
                None => cache.remove(url),
            }
        }
        Ok(FoundCard { document, origin })
    }

    async fn follow_redirects(&self, url: &str, conditions: &HeaderMap) -> Result<Answer, ClientError> {
        let mut answer = self.once(&self.transport, url, conditions).await?;
        for _ in 0..REDIRECTS_MAX {
            if !answer.status.is_redirection() || answer.status == StatusCode::NOT_MODIFIED {
                return Ok(answer);
            }
            let next = answer.location()?;
            // Whoever redirects may lead where a card may lead, and no further inside.
            let permit = OriginPolicy::default().check_url(&next, &answer.origin()?).map_err(|refused| {
                ClientError::Forbidden { what: format!("{} redirects to {next}: {refused}", answer.url) }
            })?;
            let transport = Transport::new(self.config, Arc::new(permit.reach))?;
            answer = self.once(&transport, &next, conditions).await?;
        }
        match answer.status.is_redirection() && answer.status != StatusCode::NOT_MODIFIED {
            true => Err(ClientError::Card(CardError::NotFound {
                place: url.to_owned(),
                source: format!("more than {REDIRECTS_MAX} redirects").into(),
            })),
            false => Ok(answer),
        }
    }

    async fn once(&self, transport: &Transport, url: &str, conditions: &HeaderMap) -> Result<Answer, ClientError> {
        let mut request = Request::builder().method(Method::GET).uri(url);
        if let Some(headers) = request.headers_mut() {
            headers.clone_from(conditions);
            headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, application/a2a+json;q=0.9"));
            headers.insert("a2a-version", HeaderValue::from_static("1.0"));
        }
        let request = request.body(Full::new(Bytes::new())).map_err(|error| {
            ClientError::Card(CardError::Reference { reference: url.to_owned(), problem: error.to_string() })
        })?;
        let whom = shown(request.uri());
        self.record(&WireEvent::Request {
            operation: OPERATION,
            method: "GET",
            url: &whom,
            headers: request.headers(),
            body: b"",
        });
        let deadline = Deadline::after(self.timeout);
        let (head, body) = transport.send(request, deadline).await?.into_parts();
        let address = head.extensions.get::<HttpInfo>().map(|info| info.remote_addr().ip());
        let body = transport.read(body, CARD_BYTES_MAX, &whom, deadline).await?;
        self.record(&WireEvent::Answer { operation: OPERATION, status: i64::from(head.status.as_u16()), body: &body });
        Ok(Answer { url: url.to_owned(), status: head.status, headers: head.headers, body, address })
    }

    fn record(&self, event: &WireEvent<'_>) {
        if let Some(log) = self.log {
            log.record(event);
        }
    }
}

impl FoundCard {
    fn of(cached: &Cached) -> Self {
        Self { document: cached.document().clone(), origin: cached.origin().clone() }
    }
}

struct Answer {
    url: String,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    address: Option<std::net::IpAddr>,
}

impl Answer {
    fn origin(&self) -> Result<CardOrigin, ClientError> {
        let origin = CardOrigin::url(&self.url)?;
        Ok(match self.address {
            Some(address) => origin.at(address),
            None => origin,
        })
    }

    /// Where it redirects to.
    fn location(&self) -> Result<String, ClientError> {
        let location = self.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        let joined = url::Url::parse(&self.url).ok().zip(location).and_then(|(base, to)| base.join(to).ok());
        joined.map(String::from).ok_or_else(|| {
            ClientError::Card(CardError::NotFound { place: self.url.clone(), source: "it redirects to nowhere".into() })
        })
    }
}

/// What an answer without a card means: that there is none, or that it can't be had now.
fn not_there(answer: &Answer) -> ClientError {
    let whom = answer.url.parse::<Uri>().map_or_else(|_| answer.url.clone(), |uri| shown(&uri));
    match http_error(&whom, answer.status, &answer.headers, &answer.body) {
        error @ ClientError::Unauthorized { .. } => error,
        error => ClientError::Card(CardError::NotFound { place: whom, source: error.into() }),
    }
}

/// Whether there is nothing at a URL that a card could be. What answers to other methods only is none.
fn is_missing(error: &ClientError) -> bool {
    let ClientError::Card(CardError::NotFound { source, .. }) = error else { return false };
    matches!(source.downcast_ref(), Some(ClientError::Http { status: 404 | 405 | 410, .. }))
}

async fn read_file(path: std::path::PathBuf) -> Result<FoundCard, ClientError> {
    let place = path.display().to_string();
    let not_found =
        |source: std::io::Error| ClientError::Card(CardError::NotFound { place: place.clone(), source: source.into() });
    let read = tokio::task::spawn_blocking(move || read_limited(&path)).await;
    let bytes = read.map_err(|error| not_found(std::io::Error::other(error)))?.map_err(not_found)?;
    let document = Arc::new(CardDocument::parse(&bytes, &place)?);
    Ok(FoundCard { document, origin: CardOrigin::caller() })
}

/// One byte more than a card may have, so that one which is too long is seen to be.
fn read_limited(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(CARD_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
