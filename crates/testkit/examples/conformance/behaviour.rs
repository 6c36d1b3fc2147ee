use std::time::Duration;

use longhaul_protocol::Message;

/// The kit's streaming timeout is 2 s; a stream that is to be joined on the way lasts twice as long.
const JOINABLE: Duration = Duration::from_secs(4);
/// How long a task takes whose end is to be waited for.
const LONG_RUNNING: Duration = Duration::from_secs(5);

/// What a turn does. The task is WORKING from its start, so no turn has to say so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Behaviour {
    /// Completes, with a word.
    Complete,
    /// Completes, without a word and without anything before it.
    CompleteSilently,
    /// Asks for input, on every turn.
    RequireInput,
    /// Asks for input on the first turn, completes on the next.
    RequireInputOnce,
    /// Answers with a message and makes no task.
    AnswerDirectly,
    /// Rejects the task.
    Reject,
    /// Fails, with a word.
    Fail,
    /// Works until it is canceled.
    WaitForCancel,
    /// Completes after this time.
    CompleteAfter(Duration),
    /// Completes with an artifact.
    Artifact(Content),
    /// Completes with an artifact that comes in two chunks.
    Chunks,
}

/// What an artifact holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// A text.
    Text(&'static str),
    /// A file's bytes.
    Bytes,
    /// Where a file is.
    Url,
    /// JSON.
    Data,
}

use Behaviour::Artifact;
use Content::{Bytes, Data, Text, Url};

/// What a message's id stands for (`a2a-tck`).
const BY_ID: &[(&str, Behaviour)] = &[
    ("tck-complete-task", Behaviour::Complete),
    ("tck-input-required", Behaviour::RequireInput),
    ("tck-artifact-text", Artifact(Text("Generated text content"))),
    ("tck-artifact-file", Artifact(Bytes)),
    ("tck-artifact-file-url", Artifact(Url)),
    ("tck-artifact-data", Artifact(Data)),
    ("tck-message-response", Behaviour::AnswerDirectly),
    ("tck-reject-task", Behaviour::Reject),
    ("tck-stream-001", Artifact(Text("Stream hello from TCK"))),
    ("tck-stream-002", Behaviour::CompleteSilently),
    ("tck-stream-003", Artifact(Text("Stream task lifecycle"))),
    ("tck-stream-ordering-001", Artifact(Text("Ordered output"))),
    ("tck-stream-artifact-text", Artifact(Text("Streamed text content"))),
    ("tck-stream-artifact-file", Artifact(Bytes)),
    ("tck-stream-artifact-chunked", Behaviour::Chunks),
    ("test-resubscribe-message-id", Behaviour::CompleteAfter(JOINABLE)),
];

/// What a message's text stands for (ACTS).
const BY_TEXT: &[(&str, Behaviour)] = &[
    ("tck-complete-task", Behaviour::Complete),
    ("tck-input-required", Behaviour::RequireInput),
    ("tck-reject-task", Behaviour::Reject),
    ("tck-message-response", Behaviour::AnswerDirectly),
    ("tck-artifact-text", Artifact(Text("Generated text content"))),
    ("tck-artifact-file", Artifact(Bytes)),
    ("tck-artifact-file-url", Artifact(Url)),
    ("tck-artifact-data", Artifact(Data)),
    ("tck-long-running", Behaviour::CompleteAfter(LONG_RUNNING)),
    ("tck-multi-turn", Behaviour::RequireInputOnce),
    ("tck-cancel", Behaviour::WaitForCancel),
    ("tck-stream-basic", Artifact(Text("Streamed text content"))),
    ("tck-stream-chunked", Behaviour::Chunks),
    ("tck-task-failure", Behaviour::Fail),
];

impl Behaviour {
    /// What a message asks for: its id decides before its text, on a continued task too, and the longest prefix before
    /// the others. A message that names nothing is completed.
    pub fn of(message: &Message) -> Self {
        let first = message.parts().iter().find_map(|part| part.as_text()).unwrap_or_default();
        let longest = |table: &[(&str, Self)], text: &str| {
            let named = table.iter().filter(|(prefix, _)| text.starts_with(prefix));
            named.max_by_key(|(prefix, _)| prefix.len()).map(|(_, behaviour)| *behaviour)
        };
        longest(BY_ID, message.id().as_str()).or_else(|| longest(BY_TEXT, first)).unwrap_or(Self::Complete)
    }
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::MessageId;

    use super::*;

    fn of(id: &str, text: &str) -> Behaviour {
        Behaviour::of(&Message::agent_text(MessageId::new(id).expect("a test's id"), text))
    }

    #[test]
    fn the_longest_prefix_decides() {
        assert_eq!(of("tck-artifact-file-0a1b2c3d", ""), Artifact(Bytes));
        assert_eq!(of("tck-artifact-file-url-0a1b2c3d-grpc", ""), Artifact(Url));
    }

    #[test]
    fn the_id_decides_before_the_text() {
        assert_eq!(of("tck-reject-task-1", "tck-cancel"), Behaviour::Reject);
        assert_eq!(of("m-1", "tck-cancel please"), Behaviour::WaitForCancel);
        assert_eq!(of("m-1", "hello"), Behaviour::Complete);
    }
}
