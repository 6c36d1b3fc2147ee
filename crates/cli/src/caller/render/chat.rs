//! What an agent says, as a person reads it in a conversation: the words alone, as they come.

use longhaul_protocol::wire::{Artifact, Message, Part, StreamResponse, StreamResponsePayload, TaskStatus};

use super::parts::{Joint, parts};
use super::{Detail, Page, clean};

/// Writes events of one turn.
#[derive(Debug, Default)]
pub struct ChatText {
    /// The artifact that is being written.
    artifact_id: Option<String>,
    /// Whether what was written last ended its line.
    line_is_open: bool,
}

impl ChatText {
    /// What is written for an event.
    pub fn event(&mut self, event: &StreamResponse) -> String {
        match &event.payload {
            Some(StreamResponsePayload::Task(task)) => {
                let mut text = self.status(task.status.as_ref());
                for artifact in &task.artifacts {
                    text.push_str(&self.artifact(artifact));
                }
                text
            }
            Some(StreamResponsePayload::StatusUpdate(update)) => self.status(update.status.as_ref()),
            Some(StreamResponsePayload::ArtifactUpdate(update)) => {
                if !update.append {
                    self.artifact_id = None;
                }
                update.artifact.as_ref().map(|artifact| self.artifact(artifact)).unwrap_or_default()
            }
            Some(StreamResponsePayload::Message(message)) => self.message(message),
            None => String::new(),
        }
    }

    /// What is written at the end of the turn.
    pub fn end(&mut self) -> String {
        self.closed_line()
    }

    fn closed_line(&mut self) -> String {
        if std::mem::take(&mut self.line_is_open) { "\n".to_owned() } else { String::new() }
    }

    fn status(&mut self, status: Option<&TaskStatus>) -> String {
        status.and_then(|status| status.message.as_ref()).map(|message| self.message(message)).unwrap_or_default()
    }

    fn message(&mut self, message: &Message) -> String {
        self.artifact_id = None;
        let mut text = self.closed_line();
        for part in &message.parts {
            text.push_str(&self.part(part));
            text.push_str(&self.closed_line());
        }
        text
    }

    fn artifact(&mut self, artifact: &Artifact) -> String {
        let mut text = String::new();
        if self.artifact_id.as_deref() != Some(&artifact.artifact_id) {
            text.push_str(&self.closed_line());
            let name = if artifact.name.is_empty() { &artifact.artifact_id } else { &artifact.name };
            text.push_str(&format!("[{}]\n", clean::line(name)));
            self.artifact_id = Some(artifact.artifact_id.clone());
        }
        for part in &artifact.parts {
            text.push_str(&self.part(part));
        }
        text
    }

    /// A text goes on in its line; what is none has lines of its own.
    fn part(&mut self, part: &Part) -> String {
        let Some(words) = part.as_text() else {
            let mut page = Page::new();
            parts(&mut page, "Text", std::slice::from_ref(part), Joint::Chunks, Detail::Concise);
            return self.closed_line() + &page.into_text();
        };
        self.line_is_open = if words.is_empty() { self.line_is_open } else { !words.ends_with('\n') };
        let lines: Vec<_> = words.split('\n').map(|line| clean::spoken(line)).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::from_json;

    use super::*;

    fn spoken(events: &[&str]) -> String {
        let mut chat = ChatText::default();
        let mut text: String = events.iter().map(|json| chat.event(&from_json(json.as_bytes()).unwrap())).collect();
        text.push_str(&chat.end());
        text
    }

    fn chunk(id: &str, text: &str, append: bool) -> String {
        format!(
            r#"{{"artifactUpdate": {{"append": {append}, "artifact": {{"artifactId": "{id}", "parts": [{{"text": "{text}"}}]}}}}}}"#
        )
    }

    #[test]
    fn chunks_are_written_as_one_text() {
        let events = [chunk("a", "one ", false), chunk("a", "two", true), chunk("b", "three\\n", false)];
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        assert_eq!(spoken(&events), "[a]\none two\n[b]\nthree\n");
    }

    #[test]
    fn a_message_and_a_question_are_written_in_lines() {
        let answer = r#"{"message": {"parts": [{"text": "hi"}, {"data": 1}]}}"#;
        let question = r#"{"statusUpdate": {"status": {"state": 6, "message": {"parts": [{"text": "where to?"}]}}}}"#;
        assert_eq!(spoken(&[answer]), "hi\nData:\n  1\n\n");
        assert_eq!(spoken(&[&chunk("a", "one", false), question]), "[a]\none\nwhere to?\n");
    }

    #[test]
    fn what_an_agent_says_is_not_obeyed() {
        let text = spoken(&[&chunk("\\u001b[2J", "a\\r\\u001b]0;x\\u0007", false)]);
        assert_eq!(text, "[\\u{1b}[2J]\na\\r\\u{1b}]0;x\\u{7}\n");
    }
}
