//! Telling tasks and streams of v1.0 in the words of the drafts.

use bytes::Bytes;

use crate::json::{JsonObject, to_json};
use crate::state;
use crate::wire;

use super::data::{Artifact, Message, Task, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent};

/// An item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A change of status.
    Status(TaskStatusUpdateEvent),
    /// A new or longer artifact.
    Artifact(TaskArtifactUpdateEvent),
}

impl Event {
    /// Its JSON.
    #[must_use]
    pub fn to_json(&self) -> Bytes {
        match self {
            Self::Status(event) => to_json(event),
            Self::Artifact(event) => to_json(event),
        }
    }

    /// Whether its stream ends with it.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Status(event) if event.r#final)
    }
}

/// Tells about one task.
#[derive(Clone, Debug)]
pub struct Teller {
    /// The id that its caller knows it by.
    id: String,
    /// The session that its caller knows.
    session_id: String,
    /// The ids of its artifacts in the order of their appearance: the place is the index.
    artifacts: Vec<String>,
}

impl Teller {
    /// Tells about the task that its caller knows by this id, in this session.
    #[must_use]
    pub fn new(id: impl Into<String>, session_id: impl Into<String>) -> Self {
        Self { id: id.into(), session_id: session_id.into(), artifacts: Vec::new() }
    }

    /// A task, with so many of the newest messages.
    #[must_use]
    pub fn task(&self, task: wire::Task, history_length: Option<i32>) -> Task {
        let kept = usize::try_from(history_length.unwrap_or_default()).unwrap_or_default();
        let skipped = task.history.len().saturating_sub(kept);
        let artifacts = (0..).zip(task.artifacts).map(|(index, artifact)| Artifact::from_v1(artifact, index));
        Task {
            id: self.id.clone(),
            session_id: self.session_id.clone(),
            status: task.status.map(TaskStatus::from_v1),
            artifacts: artifacts.collect(),
            history: task.history.into_iter().skip(skipped).map(Message::from_v1).collect(),
            metadata: task.metadata,
        }
    }

    /// A direct answer. The drafts have none: it is what a task says at its end.
    #[must_use]
    pub fn message(&self, message: wire::Message) -> Task {
        let (id, session_id) = (self.id.clone(), self.session_id.clone());
        Task { id, session_id, status: Some(completed(message)), ..Task::default() }
    }

    /// The events for an item of a stream: those of a task tell its artifacts first.
    #[must_use]
    pub fn events(&mut self, item: wire::StreamResponse) -> Vec<Event> {
        match item.payload {
            Some(wire::StreamResponsePayload::Task(task)) => {
                let artifacts = task.artifacts.into_iter();
                let mut events: Vec<Event> = artifacts
                    .map(|artifact| {
                        self.artifact(wire::TaskArtifactUpdateEvent { artifact: Some(artifact), ..Default::default() })
                    })
                    .collect();
                events.push(self.status(TaskStatus::from_v1(task.status.unwrap_or_default()), None));
                events
            }
            Some(wire::StreamResponsePayload::Message(message)) => vec![self.status(completed(message), None)],
            Some(wire::StreamResponsePayload::StatusUpdate(update)) => {
                vec![self.status(TaskStatus::from_v1(update.status.unwrap_or_default()), update.metadata)]
            }
            Some(wire::StreamResponsePayload::ArtifactUpdate(update)) => vec![self.artifact(update)],
            None => Vec::new(),
        }
    }

    fn status(&self, status: TaskStatus, metadata: Option<JsonObject>) -> Event {
        let r#final = status.is_final();
        Event::Status(TaskStatusUpdateEvent { id: self.id.clone(), status: Some(status), r#final, metadata })
    }

    fn artifact(&mut self, update: wire::TaskArtifactUpdateEvent) -> Event {
        let artifact = update.artifact.unwrap_or_default();
        let known = self.artifacts.iter().position(|known| *known == artifact.artifact_id);
        let index = known.unwrap_or_else(|| {
            self.artifacts.push(artifact.artifact_id.clone());
            self.artifacts.len() - 1
        });
        let artifact = Artifact {
            append: update.append,
            last_chunk: update.last_chunk,
            ..Artifact::from_v1(artifact, i32::try_from(index).unwrap_or(i32::MAX))
        };
        Event::Artifact(TaskArtifactUpdateEvent {
            id: self.id.clone(),
            artifact: Some(artifact),
            metadata: update.metadata,
        })
    }
}

fn completed(message: wire::Message) -> TaskStatus {
    TaskStatus::from_v1(wire::TaskStatus {
        state: state::TaskState::Completed.into(),
        message: Some(message),
        timestamp: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json::from_json;

    fn read<T: crate::json::ProtoJson>(value: &Value) -> T {
        from_json(value.to_string().as_bytes()).unwrap()
    }

    fn told(events: &[Event]) -> Vec<Value> {
        events.iter().map(|event| serde_json::from_slice(&event.to_json()).unwrap()).collect()
    }

    fn status(state: &str) -> Value {
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": state}}})
    }

    /// One row a state of v1.0: that of the drafts, whether a stream ends there, and whether the real one is told.
    #[test]
    fn states_become_those_of_the_drafts() {
        #[rustfmt::skip]
        let rows = [
            ("SUBMITTED",      "submitted",      false, None),
            ("WORKING",        "working",        false, None),
            ("INPUT_REQUIRED", "input-required", true,  None),
            ("COMPLETED",      "completed",      true,  None),
            ("CANCELED",       "canceled",       true,  None),
            ("FAILED",         "failed",         true,  None),
            ("REJECTED",       "failed",         true,  Some("The task is in state rejected.")),
            ("AUTH_REQUIRED",  "failed",         true,  Some("The task is in state auth-required.")),
        ];
        for (state, name, is_final, real) in rows {
            let events = Teller::new("mine", "s").events(read(&status(&format!("TASK_STATE_{state}"))));
            assert_eq!(events[0].is_final(), is_final, "{state}");
            let told = &told(&events)[0];
            assert_eq!((&told["id"], &told["status"]["state"]), (&json!("mine"), &json!(name)));
            assert_eq!(told["status"]["message"]["parts"][0]["text"].as_str(), real, "{state}");
        }
    }

    #[test]
    fn the_reason_follows_the_real_state() {
        let mut update = status("TASK_STATE_REJECTED");
        update["statusUpdate"]["status"]["message"] =
            json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "too heavy"}]});
        let events = Teller::new("mine", "s").events(read(&update));
        let parts = json!([
            {"type": "text", "text": "The task is in state rejected."},
            {"type": "text", "text": "too heavy"},
        ]);
        assert_eq!(told(&events)[0]["status"]["message"]["parts"], parts);
    }

    #[test]
    fn artifacts_keep_their_index_through_a_stream() {
        let chunk = |id: &str, append: bool| {
            let artifact = json!({"artifactId": id, "parts": [{"text": "x"}]});
            json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": artifact, "append": append}})
        };
        let task = json!({"task": {
            "id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"},
            "artifacts": [{"artifactId": "a", "parts": [{"text": "x"}]}],
        }});
        let mut teller = Teller::new("mine", "s");
        let first = told(&teller.events(read(&task)));
        assert_eq!((first.len(), &first[0]["artifact"]["index"]), (2, &json!(0)));
        assert_eq!(first[1]["status"]["state"], "working");
        let mut index = |id: &str, append| {
            let told = told(&teller.events(read(&chunk(id, append))));
            (told[0]["artifact"]["index"].clone(), told[0]["artifact"]["append"] == true)
        };
        assert_eq!(index("b", false), (json!(1), false));
        assert_eq!(index("a", true), (json!(0), true));
        assert_eq!(index("b", false), (json!(1), false));
    }

    #[test]
    fn a_task_has_as_much_history_as_was_asked_for() {
        let task = json!({
            "id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
            "history": [
                {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "one"}]},
                {"messageId": "2", "role": "ROLE_AGENT", "parts": [{"raw": "AAE=", "filename": "f"}]},
            ],
        });
        let told = |length| {
            let task = Teller::new("mine", "s").task(read(&task), length);
            serde_json::from_slice::<Value>(&to_json(&task)).unwrap()
        };
        assert_eq!(told(None), json!({"id": "mine", "sessionId": "s", "status": {"state": "completed"}}));
        let file = json!({"type": "file", "file": {"bytes": "AAE=", "name": "f"}});
        assert_eq!(told(Some(1))["history"], json!([{"role": "agent", "parts": [file]}]));
        assert_eq!(told(Some(9))["history"][0]["parts"], json!([{"type": "text", "text": "one"}]));
    }

    #[test]
    fn a_message_is_read_with_the_names_of_the_drafts() {
        let message: Message = read(&json!({"role": "user", "parts": [{"type": "data", "data": {"n": 1}}]}));
        let message = message.into_v1("m".to_owned()).unwrap();
        assert_eq!((message.message_id.as_str(), message.role.known()), ("m", Some(state::Role::User)));
        assert_eq!(message.parts, [wire::Part::data(json!({"n": 1}))]);
        let empty: Message = read(&json!({"role": "user", "parts": [{"text": "a"}, {}]}));
        assert_eq!(empty.into_v1("m".to_owned()).unwrap_err().path, "parts[1].type");
    }
}
