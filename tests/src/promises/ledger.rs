//! What callers were told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::Event;
use crate::task::{id_of, is_terminal, state_of};

/// What is known of one task.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The context that it was sent into: one for each round.
    pub context: String,
    /// The text of its first message.
    pub text: String,
    /// The ids of messages that were acknowledged.
    pub messages: BTreeSet<String>,
    /// The final status, once it was told.
    pub ended: Option<Value>,
    /// The status with a question, once it was told, as long as nobody tried to answer it.
    pub question: Option<Value>,
    /// The task as its first event told it.
    pub first: Option<Value>,
    /// The events that were told, as bytes.
    pub events: BTreeMap<u64, String>,
    /// How often the server was killed before the task was known to rest.
    pub kills: u32,
}

/// All that is known, shared by the callers.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    tasks: Arc<Mutex<BTreeMap<String, Known>>>,
    repeated: Arc<AtomicU64>,
}

impl Ledger {
    /// Notes a task as it was told: in the answer of `text`'s send, of which `message` is the id, or
    /// as read later (`None`).
    ///
    /// # Panics
    ///
    /// When its final status is another than the one that was told before.
    pub fn note(&self, context: &str, sent: Option<(&str, &str)>, task: &Value) {
        let mut all = self.tasks.lock().unwrap();
        let known = all.entry(id_of(task)).or_default();
        if let Some((text, message)) = sent {
            context.clone_into(&mut known.context);
            if known.text.is_empty() {
                text.clone_into(&mut known.text);
            }
            known.messages.insert(message.to_owned());
        }
        note_end(known, &task["status"]);
        if state_of(task) == "INPUT_REQUIRED" && known.messages.len() <= 1 {
            known.question = Some(task["status"].clone());
        }
    }

    /// Notes an item of a task's stream.
    ///
    /// # Panics
    ///
    /// When the same event was told otherwise before.
    pub fn note_event(&self, id: &str, event: &Event) {
        let mut all = self.tasks.lock().unwrap();
        let known = all.get_mut(id).expect("a stream is of a known task");
        let sequence = event.sequence.expect("an event has a number");
        if let Some(task) = event.data.get("task") {
            if sequence == 1 {
                known.first = Some(task.clone());
            }
            return;
        }
        let text = known.events.entry(sequence).or_insert_with(|| event.text.clone());
        assert_eq!(*text, event.text, "event {sequence} of {id} was told in two ways");
        if let Some(update) = event.data.get("statusUpdate") {
            note_end(known, &update["status"]);
        }
    }

    /// Somebody is about to answer this task's question.
    pub fn will_answer(&self, id: &str) {
        self.change(id, |known| known.question = None);
    }

    /// Counts a kill for the tasks of this context that were neither known to have ended nor to wait
    /// for their caller, and returns how many those were.
    pub fn count_kill(&self, context: &str) -> usize {
        let mut all = self.tasks.lock().unwrap();
        let open = all
            .values_mut()
            .filter(|known| known.context == context && known.ended.is_none() && known.question.is_none());
        open.map(|known| known.kills += 1).count()
    }

    /// Counts a request that had no answer, or was refused for now, and is made again.
    pub(super) fn count_repeated(&self) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests were made again.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// The ids of all tasks, or of those of a context.
    #[must_use]
    pub fn ids(&self, context: Option<&str>) -> BTreeSet<String> {
        let all = self.tasks.lock().unwrap();
        let of_context = |known: &Known| context.is_none_or(|context| known.context == context);
        let found = all.iter().filter(|(_, known)| of_context(known));
        found.map(|(id, _)| id.clone()).collect()
    }

    /// What is known of a task.
    #[must_use]
    pub fn get(&self, id: &str) -> Known {
        self.tasks.lock().unwrap()[id].clone()
    }

    /// Changes what is known of a task.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut Known)) {
        change(self.tasks.lock().unwrap().get_mut(id).expect("the task is known"));
    }
}

fn note_end(known: &mut Known, status: &Value) {
    let state = status["state"].as_str().unwrap_or_default();
    if is_terminal(state.trim_start_matches("TASK_STATE_")) {
        let ended = known.ended.get_or_insert_with(|| status.clone());
        assert_eq!(ended, status, "a final status has changed");
    }
}

/// Whether a task waits for its caller or has ended.
#[must_use]
pub fn rests(task: &Value) -> bool {
    matches!(state_of(task), "INPUT_REQUIRED" | "AUTH_REQUIRED") || is_terminal(state_of(task))
}
