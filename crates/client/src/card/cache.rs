//! How long a card is kept, and how it is asked for again (A2A §8.6.2, RFC 9111 for a private cache).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{
    AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, PRAGMA, VARY,
};
use indexmap::IndexMap;
use longhaul_protocol::Timestamp;

use super::origin::CardOrigin;
use super::read::CardDocument;
use crate::clock::{between, http_date, later};

/// How long a card is fresh if its server says nothing of it (A2A §8.6.2 leaves it open).
pub const FRESH_DEFAULT: Duration = Duration::from_secs(60);

/// How long a card is fresh at most, whatever its server says: an agent that moved must be found again.
pub const FRESH_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The most cards that a [`CardCache`] holds. The one that was not asked for longest makes room.
pub const CARDS_MAX: usize = 32;

/// What is kept of an answer's headers, and updated by a 304.
const KEPT: [HeaderName; 8] = [CACHE_CONTROL, PRAGMA, EXPIRES, DATE, AGE, VARY, ETAG, LAST_MODIFIED];

/// Whether and how long an answer may be used again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Freshness {
    /// It is not to be stored.
    NotStored,
    /// For so long from now on; not at all at zero, then it has to be asked for again before it is used.
    For(Duration),
}

impl Freshness {
    /// Reads what an answer that came at `now` says of itself.
    ///
    /// `max-age` counts before `Expires`, and of several the shortest; a value that can't be read is none at all, so the answer is
    /// stale. What it spent on the way (`Age`, `Date`) is gone. `s-maxage` is not for a cache of one's own.
    #[must_use]
    pub fn of(headers: &HeaderMap, now: Timestamp) -> Self {
        let directives = Directives::of(headers);
        if directives.no_store {
            return Self::NotStored;
        }
        let varies = texts(headers, &VARY).any(|text| text.contains('*'));
        let is_asked_again = directives.no_cache || varies;
        let lifetime = if is_asked_again { Duration::ZERO } else { lifetime(headers, &directives, now) };
        Self::For(lifetime.min(FRESH_MAX).saturating_sub(age(headers, now)))
    }
}

/// The directives of `Cache-Control` that a client's cache keeps.
#[derive(Default)]
struct Directives {
    no_store: bool,
    no_cache: bool,
    max_age: Option<Duration>,
}

impl Directives {
    fn of(headers: &HeaderMap) -> Self {
        let mut directives = Self::default();
        // A comma in a quoted list cuts it in two, and its rest is a directive that nobody knows.
        for directive in texts(headers, &CACHE_CONTROL).flat_map(|text| text.split(',')) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" => directives.no_store = true,
                "no-cache" => directives.no_cache = true,
                "max-age" => {
                    let seconds = seconds(value.trim().trim_matches('"')).unwrap_or_default();
                    directives.max_age = Some(directives.max_age.map_or(seconds, |other| other.min(seconds)));
                }
                _ => {}
            }
        }
        let says_nothing = !headers.contains_key(CACHE_CONTROL);
        directives.no_cache |= says_nothing && texts(headers, &PRAGMA).any(|text| text.contains("no-cache"));
        directives
    }
}

fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

/// Digits and nothing else; more than there are seconds is very long.
fn seconds(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX))))
}

fn lifetime(headers: &HeaderMap, directives: &Directives, now: Timestamp) -> Duration {
    if let Some(max_age) = directives.max_age {
        return max_age;
    }
    match texts(headers, &EXPIRES).next() {
        None => FRESH_DEFAULT,
        Some(expires) => {
            let sent = date(headers, &DATE).unwrap_or(now);
            http_date(expires).map(|expires| between(sent, expires)).unwrap_or_default()
        }
    }
}

/// How old the answer is: by its `Age`, or by its `Date` if that makes it older.
fn age(headers: &HeaderMap, now: Timestamp) -> Duration {
    let by_caches = texts(headers, &AGE).next().and_then(seconds).unwrap_or_default();
    let by_date = date(headers, &DATE).map(|sent| between(sent, now)).unwrap_or_default();
    by_caches.max(by_date)
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    texts(headers, name).next().and_then(http_date)
}

/// A card that was fetched, and what is needed to use it again.
#[derive(Clone, Debug)]
pub struct Cached {
    document: Arc<CardDocument>,
    origin: CardOrigin,
    headers: HeaderMap,
    fresh_until: Timestamp,
}

impl Cached {
    /// A card as it came at `now`, with the headers of its answer; `None` if it is not to be stored.
    #[must_use]
    pub fn new(document: Arc<CardDocument>, origin: CardOrigin, headers: &HeaderMap, now: Timestamp) -> Option<Self> {
        let mut kept = HeaderMap::new();
        update(&mut kept, headers);
        Self::with_headers(document, origin, kept, now)
    }

    fn with_headers(
        document: Arc<CardDocument>,
        origin: CardOrigin,
        headers: HeaderMap,
        now: Timestamp,
    ) -> Option<Self> {
        let Freshness::For(lifetime) = Freshness::of(&headers, now) else { return None };
        Some(Self { document, origin, headers, fresh_until: later(now, lifetime) })
    }

    /// The card.
    #[must_use]
    pub fn document(&self) -> &Arc<CardDocument> {
        &self.document
    }

    /// Where it came from.
    #[must_use]
    pub fn origin(&self) -> &CardOrigin {
        &self.origin
    }

    /// The entity tag, as it was given.
    #[must_use]
    pub fn etag(&self) -> Option<&HeaderValue> {
        self.headers.get(ETAG)
    }

    /// When it was changed last, as it was given.
    #[must_use]
    pub fn last_modified(&self) -> Option<&HeaderValue> {
        self.headers.get(LAST_MODIFIED)
    }

    /// Until when it can be used without asking.
    #[must_use]
    pub fn fresh_until(&self) -> Timestamp {
        self.fresh_until
    }

    /// Whether it can be used without asking.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.fresh_until
    }

    /// The headers by which a request asks whether it has changed; none if nothing is known to ask by.
    #[must_use]
    pub fn conditional_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // A server that knows both looks at the tag alone.
        headers.extend(self.etag().map(|etag| (IF_NONE_MATCH, etag.clone())));
        headers.extend(self.last_modified().map(|date| (IF_MODIFIED_SINCE, date.clone())));
        headers
    }

    /// The same card after a 304 with these headers, which came at `now`. `None` if the answer is about another card, or says
    /// that it is not to be stored: then it is fetched anew, without conditions.
    #[must_use]
    pub fn after_304(&self, headers: &HeaderMap, now: Timestamp) -> Option<Self> {
        let is_other = match (self.etag(), headers.get(ETAG)) {
            (Some(ours), Some(theirs)) => opaque(ours) != opaque(theirs),
            _ => false,
        };
        if is_other {
            return None;
        }
        let mut kept = self.headers.clone();
        // These two say how old the stored answer was; the new one is as old as it says itself.
        kept.remove(AGE);
        kept.remove(DATE);
        update(&mut kept, headers);
        Self::with_headers(Arc::clone(&self.document), self.origin.clone(), kept, now)
    }
}

/// A tag without the mark of a weak one (RFC 9110 §8.8.3.2).
fn opaque(etag: &HeaderValue) -> &[u8] {
    let bytes = etag.as_bytes();
    bytes.strip_prefix(b"W/").unwrap_or(bytes)
}

/// Replaces each header that `new` has.
fn update(kept: &mut HeaderMap, new: &HeaderMap) {
    for name in &KEPT {
        if new.contains_key(name) {
            kept.remove(name);
            kept.extend(new.get_all(name).iter().map(|value| (name.clone(), value.clone())));
        }
    }
}

/// The cards of one client, by the URL that was asked for. In memory, at most [`CARDS_MAX`].
///
/// For one identity: it does not tell apart what a server answers to different credentials.
#[derive(Debug, Default)]
pub struct CardCache {
    /// The one asked for last is last.
    cards: Mutex<IndexMap<String, Arc<Cached>>>,
}

impl CardCache {
    /// The card of a URL, fresh or not.
    #[must_use]
    pub fn get(&self, url: &str) -> Option<Arc<Cached>> {
        let mut cards = self.lock();
        let (url, cached) = cards.shift_remove_entry(url)?;
        cards.insert(url, Arc::clone(&cached));
        Some(cached)
    }

    /// Keeps a card in place of the one before.
    pub fn put(&self, url: &str, cached: Arc<Cached>) {
        let mut cards = self.lock();
        cards.shift_remove(url);
        cards.insert(url.to_owned(), cached);
        if cards.len() > CARDS_MAX {
            cards.shift_remove_index(0);
        }
    }

    /// Forgets the card of a URL.
    pub fn remove(&self, url: &str) {
        self.lock().shift_remove(url);
    }

    /// Nothing is done under the lock that could leave half a change behind.
    fn lock(&self) -> MutexGuard<'_, IndexMap<String, Arc<Cached>>> {
        self.cards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
