//! The agents of the ledger's entries, each with its own credentials.

use async_trait::async_trait;
use longhaul_client::card::{CardReference, Preference};
use longhaul_client::ledger::{Connector, Route};
use longhaul_client::{Client, ClientError};

use crate::caller::session::Session;
use crate::caller::way::{Presents, Way};

/// Leads to the agents. What the caller gave for one agent is shown to no other.
#[derive(Debug)]
pub struct Agents {
    way: Way,
    /// The agent that the credentials of the options are for.
    own: Option<String>,
}

impl Agents {
    /// As the options say.
    pub fn of(session: &Session) -> Self {
        Self { way: session.way.clone(), own: session.options.agent_card.as_deref().map(lasting) }
    }

    /// A client of the agent that an entry was delegated to, by the same binding if it still has that.
    ///
    /// # Errors
    ///
    /// As the way to the agent says.
    pub async fn client(&self, route: &Route) -> Result<Client, ClientError> {
        let presents = match &self.own {
            Some(own) if is_same(own, &route.card) => Presents::All,
            Some(_) | None => Presents::LoginsOnly,
        };
        let found = self.way.fetch(&route.card, presents).await?;
        // The log has to know the tokens that it must not show.
        self.way.login(&found).await;
        let common = self.way.preference();
        let bindings = route.binding.parse().into_iter().chain(common.bindings.iter().copied()).collect();
        let preference = Preference { bindings, ..common };
        self.way.builder(presents)?.preference(preference).connect_card(found).await
    }
}

#[async_trait]
impl Connector for Agents {
    async fn connect(&self, route: &Route) -> Result<Client, ClientError> {
        self.client(route).await
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one == other
        || matches!((one.parse::<CardReference>(), other.parse::<CardReference>()), (Ok(one), Ok(other)) if one == other)
}

/// A reference that means the same in another folder.
pub fn lasting(reference: &str) -> String {
    let parsed = reference.parse::<CardReference>().ok();
    let file = parsed.as_ref().and_then(CardReference::file).and_then(|path| path.canonicalize().ok());
    file.and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_else(|| reference.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_the_same_however_its_reference_is_written() {
        for (one, other) in [
            ("agent.example.com", "https://agent.example.com"),
            ("localhost:4100", "http://localhost:4100/"),
            ("https://a.example.com/card.json", "https://a.example.com/card.json"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("agent.example.com", "agent.example.org"),
            ("https://a.example.com", "http://a.example.com"),
            ("https://a.example.com/one", "https://a.example.com/two"),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }
}
