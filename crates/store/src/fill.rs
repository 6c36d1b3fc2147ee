//! Finished tasks by the million, for benchmarks: one life, written out once, and the ids of as many as are wanted.

use bytes::Bytes;
use longhaul_lifecycle::{ArtifactUpdate, Command, StatusUpdate, TaskHead, WorkerId, Writer, decide};
use longhaul_protocol::{Artifact, ContextId, Message, Role, TaskId, Tenant, Timestamp, json, wire};

use crate::{EventKind, StoreError, created_event, shard};

/// What stands for the ids where they will be; as long as they are.
const TASK_ID: &str = "00000000-0000-7000-8000-00000000000a";
const CONTEXT_ID: &str = "00000000-0000-7000-8000-00000000000b";

/// A payload with ids in it, and where they are.
#[derive(Clone, Debug)]
pub struct Patched {
    bytes: Vec<u8>,
    tasks: Vec<usize>,
    contexts: Vec<usize>,
}

impl Patched {
    fn new(payload: &Bytes) -> Self {
        let places = |id: &str| {
            let found = payload.windows(id.len()).enumerate().filter(|(_, window)| *window == id.as_bytes());
            found.map(|(place, _)| place).collect()
        };
        Self { bytes: payload.to_vec(), tasks: places(TASK_ID), contexts: places(CONTEXT_ID) }
    }

    /// The payload with the ids of another task.
    pub fn patch(&mut self, task: &TaskId, context: &ContextId) -> &[u8] {
        for (places, id) in [(&self.tasks, task.as_str()), (&self.contexts, context.as_str())] {
            for place in places {
                if let Some(target) = self.bytes.get_mut(*place..*place + id.len()) {
                    target.copy_from_slice(id.as_bytes());
                }
            }
        }
        &self.bytes
    }
}

/// A task that was sent, begun, answered with one artifact, and completed.
#[derive(Clone, Debug)]
pub struct FilledTask {
    /// The head at its end, but for its ids.
    pub head: TaskHead,
    /// Its log.
    pub events: Vec<(EventKind, Patched)>,
    /// The only message of its history, which joined behind the second event.
    pub message: Patched,
}

impl FilledTask {
    /// Lives the life once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] when the rules do not let it be lived like this.
    pub fn new(now: Timestamp) -> Result<Self, StoreError> {
        let broken = |what: &dyn std::fmt::Display| StoreError::corrupt(format!("the task to fill with: {what}"));
        let task_id = TaskId::new(TASK_ID).map_err(|error| broken(&error))?;
        let context_id = ContextId::new(CONTEXT_ID).map_err(|error| broken(&error))?;
        let submitted = TaskHead::submitted(task_id.clone(), context_id.clone(), now);
        let created = created_event(&submitted, None);
        let mut events = vec![(created.kind, created.payload)];
        let start = Command::Start { lease_until: Timestamp::MAX, worker: WorkerId::default() };
        let started = decide(&submitted, start, Writer::Engine, now).map_err(|error| broken(&error))?;
        let agent = Writer::Agent { epoch: started.head.epoch };
        let completed =
            decide(&started.head, Command::Complete { message: None }, agent, now).map_err(|error| broken(&error))?;
        let status = |update: &StatusUpdate| {
            let kind = EventKind::Status { state: update.state, rests: update.rests };
            (kind, json::to_json(&update.to_wire(&task_id, &context_id)))
        };
        events.extend(started.updates.iter().map(status));
        let artifact = wire::Artifact {
            artifact_id: "output".to_owned(),
            parts: vec![text("The answer to the question, of about the length that an answer has.")],
            ..wire::Artifact::default()
        };
        let artifact = Artifact::new(artifact).map_err(|violations| broken(&violations.len()))?;
        let update = ArtifactUpdate { artifact, append: false, last_chunk: false, metadata: None };
        events.push((EventKind::Artifact, json::to_json(&update.into_wire(&task_id, &context_id))));
        events.extend(completed.updates.iter().map(status));
        let message = wire::Message {
            message_id: TASK_ID.to_owned(),
            context_id: CONTEXT_ID.to_owned(),
            task_id: TASK_ID.to_owned(),
            role: Role::User.into(),
            parts: vec![text("A question, of about the length that a question has.")],
            ..wire::Message::default()
        };
        let message = Message::new(message).map_err(|violations| broken(&violations.len()))?;
        let message = Patched::new(&json::to_json(message.as_wire()));
        let events = events.iter().map(|(kind, payload)| (*kind, Patched::new(payload))).collect();
        Ok(Self { head: completed.head, events, message })
    }
}

fn text(text: &str) -> wire::Part {
    wire::Part { content: Some(wire::PartContent::Text(text.to_owned())), ..wire::Part::default() }
}

/// The ids of a task and of the context that it is alone in: of the form that the server makes, but not by chance.
///
/// # Errors
///
/// [`StoreError::Corrupt`] when they are none.
pub fn filled_ids(tenant: &Tenant, time_millis: i64, number: i64) -> Result<(TaskId, ContextId), StoreError> {
    let broken = |what: &dyn std::fmt::Display| StoreError::corrupt(format!("an id to fill with: {what}"));
    let context_id = ContextId::new(id(time_millis, number & 0xfff, 0xb, number)).map_err(|error| broken(&error))?;
    // A task's id carries the shard of its context.
    let random = i64::from(shard(tenant, &context_id)) << 2 | number & 3;
    let task_id = TaskId::new(id(time_millis, random, 0xa, number)).map_err(|error| broken(&error))?;
    Ok((task_id, context_id))
}

fn id(time: i64, random: i64, kind: u8, number: i64) -> String {
    let time = time & 0xffff_ffff_ffff;
    format!("{:08x}-{:04x}-7{random:03x}-8{kind:03x}-{:012x}", time >> 16, time & 0xffff, number & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard_of_task;

    #[test]
    fn a_tasks_id_carries_the_shard_of_its_context() {
        let tenant = Tenant::default();
        for number in 0..100 {
            let (task_id, context_id) = filled_ids(&tenant, 1_796_000_000_000, number).unwrap();
            assert_eq!(shard_of_task(&task_id), shard(&tenant, &context_id));
            assert_eq!((task_id.as_str().len(), context_id.as_str().len()), (TASK_ID.len(), CONTEXT_ID.len()));
        }
    }

    #[test]
    fn payloads_name_the_task_that_they_are_of() {
        let mut filled = FilledTask::new(Timestamp::from_unix_millis(1)).unwrap();
        let (task_id, context_id) = filled_ids(&Tenant::default(), 1, 7).unwrap();
        for (_, payload) in &mut filled.events {
            let payload = String::from_utf8(payload.patch(&task_id, &context_id).to_vec()).unwrap();
            assert!(payload.contains(task_id.as_str()) && payload.contains(context_id.as_str()), "{payload}");
            assert!(!payload.contains(TASK_ID) && !payload.contains(CONTEXT_ID), "{payload}");
        }
    }
}
