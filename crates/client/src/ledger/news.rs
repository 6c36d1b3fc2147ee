//! What a follower has learned, as the ledger takes it in.

use bytes::Bytes;
use longhaul_protocol::{from_json, to_json, wire};

use super::state::{Event, Stands, TaskEnd};
use super::{Kept, LedgerError, Note, check};
use crate::Outcome;
use crate::client::EVENT_ID_BYTES_MAX;

/// The most bytes that are kept of what an agent told, as ProtoJSON: 16 MiB.
pub const OUTCOME_BYTES_MAX: usize = 16 << 20;

/// What a follower has to write down.
#[derive(Clone, Debug)]
pub enum News {
    /// The request is about to be sent. Written before each attempt.
    Sending,
    /// The attempt that was written down last cannot have reached the agent: it counts no more.
    NotSent {
        /// Why it did not.
        error: String,
    },
    /// The agent told how the delegation stands: in its answer, by a stream, when it was asked.
    Told {
        /// How.
        outcome: Box<Outcome>,
        /// The id of the stream's event, if it came by one that has an id.
        last_event_id: Option<String>,
    },
    /// An event of a stream that changes nothing about how the task stands, such as a chunk of an artifact. Worth writing down
    /// once a second at the most.
    Heard {
        /// The event's id, if it has one.
        last_event_id: Option<String>,
    },
    /// The agent refused the request, and no attempt can have been taken.
    Refused {
        /// The agent's error.
        error: String,
    },
    /// The agent says that it does not know the task.
    NotFound {
        /// The agent's error.
        error: String,
    },
    /// The answer was lost. The task could not be found, and sending again is not known to be safe.
    Unresolved {
        /// What was tried.
        why: String,
    },
}

/// News in the form in which they are written.
#[derive(Default)]
pub(super) struct Report {
    pub(super) event: Option<Event>,
    pub(super) telling: Option<Telling>,
    pub(super) context_id: Option<String>,
    pub(super) last_event_id: Option<String>,
    /// Whether they come from the agent.
    pub(super) is_heard: bool,
    /// Why an attempt counts no more; then there is nothing else.
    pub(super) unsent: Option<Note>,
}

impl Report {
    /// What a person or the caller decided.
    pub(super) fn of_decision(event: Event) -> Self {
        Self { event: Some(event), ..Self::default() }
    }

    pub(super) fn of(news: News) -> Result<Self, LedgerError> {
        let heard = |event| Self { is_heard: true, ..Self::of_decision(event) };
        Ok(match news {
            News::Sending => Self::of_decision(Event::Sending),
            News::NotSent { error } => Self { unsent: Some(Note::new(&error)), ..Self::default() },
            News::Unresolved { why } => Self::of_decision(Event::Unresolved { why: Note::new(&why) }),
            News::Refused { error } => heard(Event::Refused { error: Note::new(&error) }),
            News::NotFound { error } => heard(Event::NotFound { error: Note::new(&error) }),
            News::Heard { last_event_id } => {
                Self { last_event_id: event_id(last_event_id), is_heard: true, ..Self::default() }
            }
            News::Told { outcome, last_event_id } => {
                let event = event(&outcome)?;
                let (context_id, last_event_id) = (context_id(&outcome), event_id(last_event_id));
                Self { telling: Telling::of(*outcome), context_id, last_event_id, ..heard(event) }
            }
        })
    }
}

fn event(outcome: &Outcome) -> Result<Event, LedgerError> {
    let ended = |task: &wire::Task, end| told(task, Stands::Ended(end, said(task)));
    match outcome {
        Outcome::Answered(message) => Ok(Event::Answered { text: text(message) }),
        Outcome::Running(task) => told(task, Stands::Running),
        Outcome::Unknown(task) => told(task, Stands::Unknown),
        Outcome::NeedsInput { task, question } => {
            told(task, Stands::Question(question.as_ref().map(text).unwrap_or_default()))
        }
        Outcome::NeedsAuthorization { task, explanation } => {
            told(task, Stands::Authorization(explanation.as_ref().map(text).unwrap_or_default()))
        }
        Outcome::Completed(task) => ended(task, TaskEnd::Completed),
        Outcome::Failed(task) => ended(task, TaskEnd::Failed),
        Outcome::Canceled(task) => ended(task, TaskEnd::Canceled),
        Outcome::Rejected(task) => ended(task, TaskEnd::Rejected),
    }
}

fn told(task: &wire::Task, stands: Stands) -> Result<Event, LedgerError> {
    check::task_id(&task.id)?;
    Ok(Event::Told { task_id: task.id.clone(), stands })
}

fn said(task: &wire::Task) -> Note {
    task.status.as_ref().and_then(|status| status.message.as_ref()).map(text).unwrap_or_default()
}

/// The text parts of a message, as many as a note has room for.
fn text(message: &wire::Message) -> Note {
    let mut text = String::new();
    for part in message.parts.iter().filter_map(wire::Part::as_text) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(part);
        if text.len() > Note::BYTES_MAX {
            break;
        }
    }
    Note::new(&text)
}

fn context_id(outcome: &Outcome) -> Option<String> {
    let id = match outcome {
        Outcome::Answered(message) => Some(&message.context_id),
        outcome => outcome.task().map(|task| &task.context_id),
    };
    // One that is too long is left out: that it is kept is a help, and no reason to lose the news.
    id.cloned().filter(|id| (1..=check::ID_BYTES_MAX).contains(&id.len()))
}

/// One that is too long is left out, as with contexts: a stream can also be opened after an earlier event.
fn event_id(id: Option<String>) -> Option<String> {
    id.filter(|id| id.len() <= EVENT_ID_BYTES_MAX)
}

/// What the agent told, in the form in which it is kept.
#[derive(Debug)]
pub(super) struct Telling {
    pub(super) kind: i64,
    pub(super) json: Bytes,
    pub(super) kept: Kept,
}

const TASK: i64 = 1;
const MESSAGE: i64 = 2;

impl Telling {
    fn of(outcome: Outcome) -> Option<Self> {
        // It will tell more, and tells it again when it is asked.
        if matches!(outcome, Outcome::Running(_)) {
            return None;
        }
        Some(match outcome.into_payload() {
            wire::SendMessageResponsePayload::Message(message) => Self::of_message(message),
            wire::SendMessageResponsePayload::Task(task) => Self::of_task(task),
        })
    }

    fn of_task(mut task: wire::Task) -> Self {
        let mut kept = Kept::Whole;
        let mut json = to_json(&task);
        // From what is missed least to what is missed most; what is left has a fixed size at the most.
        for trim in [trim_history, trim_artifacts, trim_rest] {
            if json.len() <= OUTCOME_BYTES_MAX {
                break;
            }
            trim(&mut task);
            (json, kept) = (to_json(&task), Kept::Trimmed);
        }
        Self { kind: TASK, json, kept }
    }

    fn of_message(message: wire::Message) -> Self {
        let json = to_json(&message);
        if json.len() <= OUTCOME_BYTES_MAX {
            return Self { kind: MESSAGE, json, kept: Kept::Whole };
        }
        let part = wire::Part::text(text(&message).as_str());
        let rest = wire::Message { role: message.role, parts: vec![part], ..wire::Message::default() };
        Self { kind: MESSAGE, json: to_json(&rest), kept: Kept::Trimmed }
    }

    /// What was told, read again.
    pub(super) fn read(kind: i64, json: &[u8]) -> Result<Outcome, String> {
        match kind {
            TASK => from_json(json).map(Outcome::of_task).map_err(|error| error.to_string()),
            MESSAGE => from_json(json).map(|m| Outcome::Answered(Box::new(m))).map_err(|error| error.to_string()),
            other => Err(format!("there is no kind {other}")),
        }
    }
}

fn trim_history(task: &mut wire::Task) {
    task.history = Vec::new();
}

fn trim_artifacts(task: &mut wire::Task) {
    task.artifacts = Vec::new();
}

fn trim_rest(task: &mut wire::Task) {
    let state = task.status.as_ref().map(|status| status.state).unwrap_or_default();
    let timestamp = task.status.as_ref().and_then(|status| status.timestamp);
    let id = std::mem::take(&mut task.id);
    let status = Some(wire::TaskStatus { state, message: None, timestamp });
    *task = wire::Task { id, status, ..wire::Task::default() };
}

#[cfg(test)]
mod tests {
    use longhaul_protocol::TaskState;

    use super::*;

    fn task(artifact: usize, history: usize, status: usize) -> wire::Task {
        let message = |bytes: usize| wire::Message {
            message_id: "m".to_owned(),
            parts: vec![wire::Part::text("x".repeat(bytes))],
            ..wire::Message::default()
        };
        wire::Task {
            id: "t".to_owned(),
            status: Some(wire::TaskStatus {
                state: TaskState::Completed.into(),
                message: Some(message(status)),
                timestamp: None,
            }),
            artifacts: vec![wire::Artifact {
                artifact_id: "a".to_owned(),
                parts: vec![wire::Part::text("y".repeat(artifact))],
                ..wire::Artifact::default()
            }],
            history: vec![message(history)],
            ..wire::Task::default()
        }
    }

    fn kept(task: wire::Task) -> (Kept, wire::Task) {
        let telling = Telling::of(Outcome::of_task(task)).unwrap();
        assert!(telling.json.len() <= OUTCOME_BYTES_MAX);
        let Outcome::Completed(task) = Telling::read(telling.kind, &telling.json).unwrap() else { panic!("the state") };
        (telling.kept, *task)
    }

    #[test]
    fn what_is_too_large_is_trimmed_and_the_end_is_kept() {
        let large = OUTCOME_BYTES_MAX;
        let whole = task(10, 10, 10);
        assert_eq!(kept(whole.clone()), (Kept::Whole, whole));
        let without_history = wire::Task { history: Vec::new(), ..task(10, large, 10) };
        assert_eq!(kept(task(10, large, 10)), (Kept::Trimmed, without_history));
        let (kind, rest) = kept(task(large, 10, 10));
        assert_eq!((kind, rest.artifacts.len(), rest.status), (Kept::Trimmed, 0, task(0, 0, 10).status));
        let (kind, rest) = kept(task(10, 10, large));
        assert_eq!((kind, rest.id.as_str(), rest.status.unwrap().message), (Kept::Trimmed, "t", None));
    }

    #[test]
    fn an_endless_id_of_an_event_does_not_keep_the_news_from_being_written() {
        let endless = || Some("9".repeat(EVENT_ID_BYTES_MAX + 1));
        let heard = Report::of(News::Heard { last_event_id: endless() }).unwrap();
        assert!(heard.is_heard && heard.last_event_id.is_none());
        let outcome = Box::new(Outcome::of_task(task(1, 1, 1)));
        let told = Report::of(News::Told { outcome, last_event_id: endless() }).unwrap();
        assert!(told.event.is_some() && told.last_event_id.is_none());
        assert!(Report::of(News::Heard { last_event_id: Some("9".to_owned()) }).unwrap().last_event_id.is_some());
    }

    #[test]
    fn a_task_without_an_id_or_with_an_endless_one_is_no_news() {
        for id in [String::new(), "x".repeat(check::TASK_ID_BYTES_MAX + 1)] {
            let task = wire::Task { id, ..task(1, 1, 1) };
            let news = News::Told { outcome: Box::new(Outcome::of_task(task)), last_event_id: None };
            assert!(matches!(Report::of(news), Err(LedgerError::Invalid { field: "the task's id", .. })));
        }
    }
}
