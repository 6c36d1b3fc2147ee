//! The entries of one agent, so that no agent waits for another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::EntryId;
use crate::{Client, ClientError, RetryPolicy};

/// The first wait after calls have failed; it doubles with each further failure.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
/// The longest of these waits.
const BACKOFF_MAX: Duration = Duration::from_secs(15);

/// Calls that fail in a row.
pub(super) struct Trouble {
    pub(super) since: Instant,
    pub(super) until: Instant,
    pub(super) error: Arc<ClientError>,
    rounds: u32,
}

impl Trouble {
    /// One failure more, after those before, of somebody who asks to be left alone for so long.
    fn after(before: Option<&Self>, error: Arc<ClientError>, asked: Duration, now: Instant) -> Self {
        let rounds = before.map_or(0, |before| before.rounds.saturating_add(1));
        let policy = RetryPolicy { backoff_min: BACKOFF_MIN, backoff_max: BACKOFF_MAX, ..RetryPolicy::default() };
        let wait = policy.backoff(rounds.saturating_add(1));
        let since = before.map_or(now, |before| before.since);
        Self { since, until: now + wait.max(asked), error, rounds }
    }
}

/// What is to be done next in a lane.
pub(super) enum Next {
    Connect,
    Check(Client, EntryId),
    Nothing,
}

/// One agent with its entries.
#[derive(Default)]
pub(super) struct Lane {
    client: Option<Client>,
    is_connecting: bool,
    /// Those to be asked about, by when.
    waiting: BTreeSet<(Instant, EntryId)>,
    checking: usize,
    /// What is wrong with the agent as a whole.
    trouble: Option<Trouble>,
    /// What is wrong with single entries.
    troubles: BTreeMap<EntryId, Trouble>,
}

impl Lane {
    pub(super) fn wait(&mut self, id: EntryId, until: Instant) {
        self.waiting.insert((until, id));
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many entries fail for themselves.
    pub(super) fn failing(&self) -> usize {
        self.troubles.len()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.checking == 0 && !self.is_connecting
    }

    /// When there may be something to do, unless a job ends before.
    pub(super) fn due(&self, checks_max: usize) -> Option<Instant> {
        if self.is_connecting || self.checking >= self.checks(checks_max) {
            return None;
        }
        let (first, _) = self.waiting.first()?;
        Some(self.trouble.as_ref().map_or(*first, |trouble| trouble.until.max(*first)))
    }

    /// While the agent is in trouble, one is enough to find out whether that is over.
    fn checks(&self, checks_max: usize) -> usize {
        if self.trouble.is_some() { 1 } else { checks_max.max(1) }
    }

    pub(super) fn next(&mut self, checks_max: usize, now: Instant) -> Next {
        if self.due(checks_max).is_none_or(|due| due > now) {
            return Next::Nothing;
        }
        let Some(client) = self.client.clone() else {
            self.is_connecting = true;
            return Next::Connect;
        };
        let Some((_, id)) = self.waiting.pop_first() else { return Next::Nothing };
        self.checking += 1;
        Next::Check(client, id)
    }

    pub(super) fn connected(&mut self, client: Client) {
        self.is_connecting = false;
        self.client = Some(client);
    }

    /// It could not be connected. Says whether that is new.
    pub(super) fn not_connected(&mut self, error: Arc<ClientError>, now: Instant) -> bool {
        self.is_connecting = false;
        self.fails(error, now)
    }

    /// The agent as a whole fails. Says whether that is new.
    pub(super) fn fails(&mut self, error: Arc<ClientError>, now: Instant) -> bool {
        let is_new = self.trouble.is_none();
        self.client = None;
        // When that is longer than the patience, what waits is given up meanwhile.
        let asked = error.retry_after().unwrap_or_default();
        self.trouble = Some(Trouble::after(self.trouble.as_ref(), error, asked, now));
        is_new
    }

    /// A check has ended.
    pub(super) fn checked(&mut self) {
        self.checking = self.checking.saturating_sub(1);
    }

    /// The agent has answered about an entry.
    pub(super) fn answered(&mut self, id: EntryId) {
        self.trouble = None;
        self.troubles.remove(&id);
    }

    /// An entry could not be asked about. Returns since when, and when it is to be tried again.
    pub(super) fn entry_fails(&mut self, id: EntryId, error: Arc<ClientError>, now: Instant) -> (Instant, Instant) {
        let asked = error.retry_after().unwrap_or_default().min(BACKOFF_MAX);
        let trouble = Trouble::after(self.troubles.get(&id), error, asked, now);
        let (since, until) = (trouble.since, trouble.until);
        self.troubles.insert(id, trouble);
        (since, until)
    }

    /// The agent's trouble, when it lasts longer than the patience; then all that waits is given up for this time.
    pub(super) fn give_up(&mut self, patience: Duration, now: Instant) -> Option<(Arc<ClientError>, Vec<EntryId>)> {
        let trouble = self.trouble.as_ref()?;
        if now.saturating_duration_since(trouble.since) < patience || self.waiting.is_empty() {
            return None;
        }
        let ids = std::mem::take(&mut self.waiting).into_iter().map(|(_, id)| id).collect();
        Some((trouble.error.clone(), ids))
    }
}

/// Whether an error is about the agent as a whole, and not about one call.
pub(super) fn is_of_agent(error: &ClientError) -> bool {
    match error {
        ClientError::Connect { .. }
        | ClientError::Card(_)
        | ClientError::Unauthorized { .. }
        | ClientError::Forbidden { .. }
        | ClientError::Credential { .. }
        | ClientError::Setup { .. } => true,
        ClientError::Agent(_) | ClientError::Http { .. } => error.is_transient(),
        // A large or slow task has these for itself.
        ClientError::Broken { .. }
        | ClientError::Timeout { .. }
        | ClientError::InvalidAnswer { .. }
        | ClientError::TooLarge { .. }
        | ClientError::NotOffered { .. }
        | ClientError::Invalid { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_agent_that_asks_to_be_left_alone_is_until_the_patience_is_over() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        let busy = Arc::new(ClientError::Http {
            whom: "http://h".to_owned(),
            status: 503,
            excerpt: String::new(),
            retry_after: Some(Duration::from_secs(60)),
        });
        lane.wait(EntryId::new(crate::clock::now()), now);
        assert!(lane.fails(busy, now));
        assert!(matches!(lane.next(1, now + Duration::from_secs(59)), Next::Nothing));
        assert!(matches!(lane.next(1, now + Duration::from_secs(60)), Next::Connect));
        let (_, given) = lane.give_up(Duration::from_secs(30), now + Duration::from_secs(30)).unwrap();
        assert_eq!(given.len(), 1);
    }
}
