//! A stream for people: each event as it comes (§11.2 of the contract).

use longhaul_protocol::wire::{StreamResponse, StreamResponsePayload, Task, TaskState};

use super::task::{state_name, write_artifact, write_status};
use super::{Detail, Page, message, task};

/// Writes events, and keeps what the last lines have to say again.
#[derive(Debug)]
pub struct StreamText {
    detail: Detail,
    last: Option<Standing>,
}

#[derive(Debug)]
struct Standing {
    task_id: String,
    context_id: String,
    state: TaskState,
    /// Whether the event that was written last said it.
    said: bool,
}

impl StreamText {
    /// A stream of which nothing came yet.
    pub fn new(detail: Detail) -> Self {
        Self { detail, last: None }
    }

    /// What is written for an event.
    pub fn event(&mut self, event: &StreamResponse) -> String {
        let mut page = Page::new();
        match &event.payload {
            Some(StreamResponsePayload::Task(it)) => {
                self.snapshot(&mut page, it);
                let state = it.status.as_ref().map(|status| status.state).unwrap_or_default();
                self.stands(&it.id, &it.context_id, state);
            }
            Some(StreamResponsePayload::StatusUpdate(update)) => {
                page.field("Task", &update.task_id);
                page.field("Context", &update.context_id);
                let status = update.status.clone().unwrap_or_default();
                write_status(&mut page, &status, self.detail);
                self.stands(&update.task_id, &update.context_id, status.state);
            }
            Some(StreamResponsePayload::ArtifactUpdate(update)) => {
                page.field("Task", &update.task_id);
                page.field_if("Append", if update.append { "yes" } else { "" });
                page.field_if("Last chunk", if update.last_chunk { "yes" } else { "" });
                write_artifact(&mut page, &update.artifact.clone().unwrap_or_default(), self.detail);
                if let Some(last) = &mut self.last {
                    last.said = false;
                }
            }
            Some(StreamResponsePayload::Message(it)) => message(&mut page, it, self.detail),
            None => page.field("Empty event", "the agent sent an event without content"),
        }
        page.into_text()
    }

    /// The history was written by the caller: it is only shown to who wants to see all.
    fn snapshot(&self, page: &mut Page, it: &Task) {
        if self.detail == Detail::Concise && !it.history.is_empty() {
            task(page, &Task { history: Vec::new(), ..it.clone() }, self.detail);
        } else {
            task(page, it, self.detail);
        }
    }

    /// What is written at the end, so that who saw only the tail has ids and state.
    pub fn end(&self) -> String {
        let mut page = Page::new();
        if let Some(last) = self.last.as_ref().filter(|last| !last.said) {
            page.field("Task", &last.task_id);
            page.field("Context", &last.context_id);
            page.field("State", state_name(last.state));
        }
        page.into_text()
    }

    fn stands(&mut self, task_id: &str, context_id: &str, state: TaskState) {
        let (task_id, context_id) = (task_id.to_owned(), context_id.to_owned());
        self.last = Some(Standing { task_id, context_id, state, said: true });
    }
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::from_json;

    use super::*;

    const TASK: &str = r#"{"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"},
        "history": [{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}]}}"#;
    const CHUNK: &str = r#"{"artifactUpdate": {"taskId": "t", "contextId": "c", "append": true, "lastChunk": true,
        "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}}"#;
    const END: &str =
        r#"{"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}"#;
    const ANSWER: &str = r#"{"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}"#;

    fn all(events: &[&str]) -> String {
        let mut stream = StreamText::new(Detail::Concise);
        let mut text: String = events.iter().map(|json| stream.event(&from_json(json.as_bytes()).unwrap())).collect();
        text.push_str(&stream.end());
        text
    }

    #[test]
    fn each_event_is_written_and_the_last_one_says_how_the_task_stands() {
        let wanted = "\
Task: t
Context: c
State: TASK_STATE_WORKING
Task: t
Append: yes
Last chunk: yes
Artifact: a
Text:
  x

Task: t
Context: c
State: TASK_STATE_COMPLETED
";
        assert_eq!(all(&[TASK, CHUNK, END]), wanted);
    }

    #[test]
    fn a_tail_that_is_no_status_is_followed_by_one() {
        assert!(all(&[TASK, CHUNK]).ends_with("  x\n\nTask: t\nContext: c\nState: TASK_STATE_WORKING\n"));
        assert_eq!(all(&[ANSWER]), "Message ID: m\nRole: ROLE_AGENT\nText:\n  hi\n\n");
    }
}
