//! The keys that a caller trusts, and those that it fetched.

use std::collections::BTreeMap;

use url::{Origin, Url};

use super::jwk::{Jwk, JwkSet, RefusedKey};

/// Keys that a caller trusts to sign cards: any card, or those of one origin.
///
/// A signature that names a `kid` is tried with the keys of that `kid` and with those without one; a signature without `kid`
/// with all. Two agents that both call their key `key-1` don't disturb each other: every key of that name is tried.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    anywhere: Vec<JwkSet>,
    by_origin: Vec<(Origin, JwkSet)>,
}

impl TrustStore {
    /// Trusts these keys for any card.
    pub fn trust(&mut self, keys: impl Into<JwkSet>) {
        self.anywhere.push(keys.into());
    }

    /// Trusts these keys for cards that were fetched from the origin of `url` (scheme, host, port), as
    /// [`Fetched::of_card_at`] says it. Its path doesn't matter.
    pub fn trust_for_origin(&mut self, url: &Url, keys: impl Into<JwkSet>) {
        self.by_origin.push((url.origin(), keys.into()));
    }

    /// The sets that count for a card from this URL.
    pub(super) fn sets<'a>(&'a self, card_url: Option<&Url>) -> impl Iterator<Item = &'a JwkSet> {
        let origin = card_url.map(Url::origin);
        let of_origin = self.by_origin.iter().filter(move |(own, _)| Some(own) == origin.as_ref());
        of_origin.map(|(_, set)| set).chain(&self.anywhere)
    }
}

/// What a caller fetched for a verification: where the card came from, and key sets that it points at.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    card_url: Option<Url>,
    sets: BTreeMap<Url, Result<JwkSet, String>>,
}

impl Fetched {
    /// Nothing is known about where the card came from: keys that are trusted for an origin don't count.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The card was fetched from this URL: after redirects, and over a connection that proves the host.
    #[must_use]
    pub fn of_card_at(url: Url) -> Self {
        Self { card_url: Some(url), sets: BTreeMap::new() }
    }

    /// Adds the key set at `jku`, one of [`Verifier::wanted_jku`](super::Verifier::wanted_jku), or why it could not be had.
    pub fn insert(&mut self, jku: Url, set: Result<JwkSet, String>) {
        self.sets.insert(jku, set);
    }

    pub(super) fn card_url(&self) -> Option<&Url> {
        self.card_url.as_ref()
    }

    pub(super) fn set(&self, jku: &Url) -> Option<&Result<JwkSet, String>> {
        self.sets.get(jku)
    }
}

/// How sure it is that a key is the one that a signature means.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Match {
    /// Both have the same `kid`.
    Named,
    /// One of them has no `kid`.
    Possible,
}

impl JwkSet {
    /// The keys that may be the one that a signature with this `kid` means.
    pub(super) fn candidates<'a>(&'a self, kid: Option<&'a str>) -> impl Iterator<Item = (Match, &'a Jwk)> {
        self.keys().iter().filter_map(move |key| match (kid, key.kid()) {
            (Some(wanted), Some(own)) if wanted == own => Some((Match::Named, key)),
            (Some(_), Some(_)) => None,
            (None, _) | (_, None) => Some((Match::Possible, key)),
        })
    }

    /// The key of this `kid` that can't be used, if there is one.
    pub(super) fn refused_of<'a>(&'a self, kid: Option<&str>) -> Option<&'a RefusedKey> {
        self.refused().iter().find(|key| key.kid.is_some() && key.kid.as_deref() == kid)
    }
}
