//! What a follower of a task's stream knows of the task so far, and what it missed when it sees the task again.
//!
//! Servers that give their events no ids cannot be asked for those after a cut. They are asked for the task as it is, and
//! [`Fold::missed`] makes the events out of the difference. The [`Fold`] holds no content: digests and counts, within named
//! limits, however long the stream is.

mod artifacts;
mod content;
mod digest;
mod messages;
mod overlap;

use longhaul_protocol::{Role, TaskState, Timestamp, wire};
use thiserror::Error;

use artifacts::{Artifacts, Change};
use digest::Digest;
use messages::SeenMessages;
pub(super) use overlap::Standing;
use wire::StreamResponsePayload as Payload;

/// How many artifacts of a task are remembered.
///
/// Those beyond are told whole, as with `append: false`, after each cut, whether they changed or not.
pub const ARTIFACTS_MAX: usize = 10_000;

/// How many extensions and members of metadata are remembered, of all artifacts of a task together.
///
/// An artifact that brings the number above it is told whole, as with `append: false`, after each cut.
pub const ARTIFACT_DETAILS_MAX: usize = 10_000;

/// How many message ids are remembered: the newest ones. What that means is said at [`Fold::missed`].
pub const MESSAGES_MAX: usize = 1_000;

/// How many characters of a strange id an error shows.
const ID_CHARS_MAX: usize = 100;

/// Why an item of a stream, or a task, says nothing about the task that is followed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum FoldError {
    /// It is of another task.
    #[error("the {what} is of task {found:?}, not of task {expected:?}")]
    WrongTask {
        /// What it is.
        what: &'static str,
        /// The beginning of the id of the task that is followed.
        expected: String,
        /// The beginning of what it names.
        found: String,
    },
    /// It is of another context.
    #[error("the {what} is of context {found:?}, not of context {expected:?}")]
    WrongContext {
        /// What it is.
        what: &'static str,
        /// The beginning of the id of its context.
        expected: String,
        /// The beginning of what it names.
        found: String,
    },
    /// It lacks something without which it says nothing.
    #[error("the {what} has no {member}")]
    Incomplete {
        /// What it is.
        what: &'static str,
        /// What it lacks.
        member: &'static str,
    },
}

/// A task as far as a follower knows it.
///
/// It is first told by the first item of the stream, or its id is given by [`of_task`](Self::of_task).
#[derive(Clone, Debug, Default)]
pub struct Fold {
    task_id: Option<String>,
    context_id: Option<String>,
    status: Option<KnownStatus>,
    artifacts: Artifacts,
    messages: SeenMessages,
}

#[derive(Clone, Debug)]
struct KnownStatus {
    state: wire::TaskState,
    message: Option<Digest>,
    timestamp: Option<Timestamp>,
}

impl Fold {
    /// Nothing is known yet; the first item says which task it is.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing is known yet but the task's id.
    #[must_use]
    pub fn of_task(task_id: &str) -> Self {
        Self { task_id: Some(task_id.to_owned()), ..Self::default() }
    }

    /// Says which task it is, of which nothing is known yet.
    pub(super) fn follow(&mut self, task_id: &str) {
        self.task_id = Some(task_id.to_owned());
    }

    /// The task's id, once it is known.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        self.task_id.as_deref()
    }

    /// The state that was told last; none before the first. It may be one that nobody knows.
    #[must_use]
    pub fn state(&self) -> Option<wire::TaskState> {
        self.status.as_ref().map(|status| status.state)
    }

    /// Whether anything of the task was told: a status, or an artifact.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.is_empty()
    }

    /// Takes note of a message that the follower knows from elsewhere, such as the one that it sent.
    pub fn saw_message(&mut self, message_id: &str) {
        self.messages.insert(message_id);
    }

    /// Takes in what a stream says. A task replaces all that was known, but for the messages seen; an update adds to it.
    ///
    /// An update that appends to an artifact which is not known makes it, as on the server's side (§4.2.2).
    ///
    /// # Errors
    ///
    /// [`FoldError`] when the item is of another task or context, or lacks what it should tell. Nothing is changed then.
    pub fn apply(&mut self, item: &wire::StreamResponse) -> Result<(), FoldError> {
        match &item.payload {
            Some(Payload::Task(task)) => self.apply_task(task),
            Some(Payload::StatusUpdate(update)) => {
                let what = "status update";
                self.check(what, &update.task_id, &update.context_id)?;
                let status = update.status.as_ref().ok_or(FoldError::Incomplete { what, member: "status" })?;
                self.learn(&update.task_id, &update.context_id);
                self.set_status(status);
                Ok(())
            }
            Some(Payload::ArtifactUpdate(update)) => {
                let what = "artifact update";
                self.check(what, &update.task_id, &update.context_id)?;
                let artifact = update.artifact.as_ref().ok_or(FoldError::Incomplete { what, member: "artifact" })?;
                self.learn(&update.task_id, &update.context_id);
                if update.append {
                    self.artifacts.append(artifact);
                } else {
                    self.artifacts.replace(artifact);
                }
                Ok(())
            }
            Some(Payload::Message(message)) => {
                // An answer without a task names none.
                if !message.task_id.is_empty() {
                    self.check("message", &message.task_id, &message.context_id)?;
                }
                self.messages.insert(&message.message_id);
                Ok(())
            }
            None => Err(FoldError::Incomplete { what: "item of the stream", member: "payload" }),
        }
    }

    /// The events that bring whoever saw all that was folded to what `snapshot` shows. They are not taken in: each is
    /// [applied](Self::apply) when it is handed on.
    ///
    /// - When nothing was folded yet: the task itself, whole.
    /// - First come the artifacts. Of one that only grew, the parts behind the known ones, with `append: true`; a new or
    ///   rewritten one whole, with `append: false`. A server may have joined adjacent texts that came as parts of their own:
    ///   then the rest begins within a text. `lastChunk` is not set, since a snapshot does not say it.
    /// - Then come status messages that passed meanwhile, if the status is another one: the agent's messages in the history
    ///   behind the last message that was seen. Their state is given as WORKING, whatever it was, and they have no timestamp,
    ///   since the history has neither. Without a seen message in the history none is told, as those before the follower came
    ///   would be among them.
    /// - Last comes the status, if state, message or timestamp are others.
    ///
    /// What no event can say is not said: an artifact that is gone, the task's metadata, messages of the caller. A snapshot
    /// that is older than what was folded gives events that go back to it, so that a stream which begins with it goes on
    /// from there.
    ///
    /// # Errors
    ///
    /// [`FoldError`] when the task is another one, or of another context.
    pub fn missed(&self, snapshot: wire::Task) -> Result<Vec<wire::StreamResponse>, FoldError> {
        self.check("task", &snapshot.id, &snapshot.context_id)?;
        if self.is_empty() {
            return Ok(vec![wire::StreamResponse { payload: Some(Payload::Task(snapshot)) }]);
        }
        let is_last = artifacts::last_of_each_id(&snapshot.artifacts);
        let wire::Task { id: task_id, mut context_id, status, artifacts, history, .. } = snapshot;
        let status = status.ok_or(FoldError::Incomplete { what: "task", member: "status" })?;
        if context_id.is_empty() {
            context_id = self.context_id.clone().unwrap_or_default();
        }
        let artifacts = artifacts.into_iter().zip(is_last).filter(|(_, is_last)| *is_last);
        let artifacts = artifacts.filter_map(|(artifact, _)| self.missed_of_artifact(artifact)).map(|update| {
            let (task_id, context_id) = (task_id.clone(), context_id.clone());
            Payload::ArtifactUpdate(wire::TaskArtifactUpdateEvent { task_id, context_id, ..update })
        });
        let statuses = self.missed_of_status(status, history).into_iter().map(|status| {
            let (task_id, context_id, status) = (task_id.clone(), context_id.clone(), Some(status));
            Payload::StatusUpdate(wire::TaskStatusUpdateEvent { task_id, context_id, status, metadata: None })
        });
        Ok(artifacts.chain(statuses).map(|payload| wire::StreamResponse { payload: Some(payload) }).collect())
    }

    fn is_empty(&self) -> bool {
        self.status.is_none() && self.artifacts.is_empty()
    }

    fn apply_task(&mut self, task: &wire::Task) -> Result<(), FoldError> {
        let what = "task";
        self.check(what, &task.id, &task.context_id)?;
        let status = task.status.as_ref().ok_or(FoldError::Incomplete { what, member: "status" })?;
        self.learn(&task.id, &task.context_id);
        self.artifacts = Artifacts::default();
        task.artifacts.iter().for_each(|artifact| self.artifacts.replace(artifact));
        task.history.iter().for_each(|message| self.messages.insert(&message.message_id));
        self.set_status(status);
        Ok(())
    }

    fn set_status(&mut self, status: &wire::TaskStatus) {
        if let Some(message) = &status.message {
            self.messages.insert(&message.message_id);
        }
        let message = status.message.as_ref().map(digest::of_message);
        self.status = Some(KnownStatus { state: status.state, message, timestamp: status.timestamp });
    }

    fn has_status(&self, status: &wire::TaskStatus) -> bool {
        self.status.as_ref().is_some_and(|known| {
            // A time that one of the two does not give says nothing about the other.
            let same_time =
                known.timestamp.is_none() || status.timestamp.is_none() || known.timestamp == status.timestamp;
            same_time && known.state == status.state && known.message == status.message.as_ref().map(digest::of_message)
        })
    }

    /// The statuses to be told, the present one last.
    fn missed_of_status(&self, status: wire::TaskStatus, history: Vec<wire::Message>) -> Vec<wire::TaskStatus> {
        if self.has_status(&status) {
            // The same again: nothing can have passed.
            return Vec::new();
        }
        let passed = self.messages.behind(history, status.message.as_ref());
        let passed = passed.into_iter().filter(|message| message.role.known() == Some(Role::Agent)).map(passed_status);
        passed.chain([status]).collect()
    }

    /// What is to be told of an artifact, without the ids of task and context.
    fn missed_of_artifact(&self, artifact: wire::Artifact) -> Option<wire::TaskArtifactUpdateEvent> {
        let (artifact, append) = match self.artifacts.change(&artifact) {
            Change::None => return None,
            Change::Whole => (artifact, false),
            Change::Parts(end) => {
                let (artifact_id, parts) = (artifact.artifact_id, end.rest(artifact.parts));
                (wire::Artifact { artifact_id, parts, ..wire::Artifact::default() }, true)
            }
            Change::PartsAndDetails(end) => {
                let parts = end.rest(artifact.parts);
                (wire::Artifact { parts, ..artifact }, true)
            }
        };
        Some(wire::TaskArtifactUpdateEvent {
            artifact: Some(artifact),
            append,
            ..wire::TaskArtifactUpdateEvent::default()
        })
    }

    fn check(&self, what: &'static str, task_id: &str, context_id: &str) -> Result<(), FoldError> {
        if task_id.is_empty() {
            return Err(FoldError::Incomplete { what, member: "task id" });
        }
        match &self.task_id {
            Some(expected) if expected != task_id => {
                return Err(FoldError::WrongTask { what, expected: excerpt(expected), found: excerpt(task_id) });
            }
            Some(_) | None => {}
        }
        match &self.context_id {
            // The proto lets it be empty.
            Some(expected) if expected != context_id && !context_id.is_empty() => {
                Err(FoldError::WrongContext { what, expected: excerpt(expected), found: excerpt(context_id) })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn learn(&mut self, task_id: &str, context_id: &str) {
        self.task_id.get_or_insert_with(|| task_id.to_owned());
        if !context_id.is_empty() {
            self.context_id.get_or_insert_with(|| context_id.to_owned());
        }
    }
}

/// The status of which only the message was left.
fn passed_status(message: wire::Message) -> wire::TaskStatus {
    wire::TaskStatus { state: TaskState::Working.into(), message: Some(message), timestamp: None }
}

fn excerpt(id: &str) -> String {
    id.chars().take(ID_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
