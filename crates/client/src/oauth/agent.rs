//! Whom a login is for.

use std::fmt;

use url::Url;

use crate::card::CardOrigin;
use crate::client::FoundCard;

/// The agent that a login is for: the URL of its card. Agents that share a host and have cards of their own are different agents.
///
/// A card from a file has no such URL; its agent is told by the URL of the first interface that it names.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AgentUrl(String);

impl AgentUrl {
    /// The agent of a card that was found. None if the card is from a file and names no interface with a URL.
    #[must_use]
    pub fn of(card: &FoundCard) -> Option<Self> {
        let is_callers = card.origin == CardOrigin::caller();
        let first = || card.document.card().supported_interfaces.first().map(|interface| interface.url.as_str());
        let text = if is_callers { first()? } else { card.document.place() };
        Self::read(text)
    }

    /// Reads what [`as_str`](Self::as_str) gave. Without a fragment, which no request names.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut url = Url::parse(text).ok()?;
        url.set_fragment(None);
        Some(Self(url.into()))
    }

    /// The URL in full. Its query may hold what is not to be shown: see `Display`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Without the query.
impl fmt::Display for AgentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.split('?').next().unwrap_or_default())
    }
}
