use std::collections::{HashSet, VecDeque};

use longhaul_protocol::wire;

use super::MESSAGES_MAX;
use super::digest::{self, Digest};

/// The ids of the messages that were seen last.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenMessages {
    ids: HashSet<Digest>,
    oldest_first: VecDeque<Digest>,
}

impl SeenMessages {
    /// Takes note of an id. An empty one says nothing.
    pub fn insert(&mut self, message_id: &str) {
        let id = digest::of_text(message_id);
        if message_id.is_empty() || !self.ids.insert(id) {
            return;
        }
        self.oldest_first.push_back(id);
        if self.oldest_first.len() > MESSAGES_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    /// Whether an id was seen.
    pub fn contains(&self, message_id: &str) -> bool {
        self.ids.contains(&digest::of_text(message_id))
    }

    /// The messages of a history, each once, behind the last one that was seen; without `current`, which is told otherwise.
    pub fn behind(&self, history: Vec<wire::Message>, current: Option<&wire::Message>) -> Vec<wire::Message> {
        let is_seen = |message: &wire::Message| self.contains(&message.message_id);
        let Some(last) = history.iter().rposition(is_seen) else { return Vec::new() };
        let mut told: HashSet<_> = current.into_iter().map(|message| message.message_id.clone()).collect();
        let behind = history.into_iter().skip(last + 1);
        behind.filter(|message| !message.message_id.is_empty() && told.insert(message.message_id.clone())).collect()
    }
}
