//! Tasks, messages and artifacts for people.

use longhaul_client::Outcome;
use longhaul_protocol::wire::{Artifact, Message, Role, Task, TaskState, TaskStatus};

use super::hint::Continuation;
use super::parts::{Joint, metadata, parts};
use super::{Detail, Page};

/// Writes a task: ids and state first, then what was said, the artifacts, and the history that came along.
pub fn task(page: &mut Page, task: &Task, detail: Detail) {
    page.field("Task", &task.id);
    page.field("Context", &task.context_id);
    match &task.status {
        Some(status) => write_status(page, status, detail),
        None => page.field("State", state_name(TaskState::default())),
    }
    if detail == Detail::Verbose {
        metadata(page, task.metadata.as_ref());
    }
    for artifact in &task.artifacts {
        write_artifact(page, artifact, detail);
    }
    for (index, message) in task.history.iter().enumerate() {
        page.field("History", format_args!("{} of {}", index + 1, task.history.len()));
        page.field("Role", role_name(message.role));
        said(page, "Text", message, detail);
    }
}

/// Writes state, time, and what the agent says about it.
pub fn write_status(page: &mut Page, status: &TaskStatus, detail: Detail) {
    page.field("State", state_name(status.state));
    if let Some(timestamp) = status.timestamp {
        page.field("Updated", timestamp);
    }
    if let Some(message) = &status.message {
        said(page, "Message", message, detail);
    }
}

/// Writes an artifact, or the chunk of one.
pub fn write_artifact(page: &mut Page, artifact: &Artifact, detail: Detail) {
    page.field("Artifact", &artifact.artifact_id);
    page.field_if("Name", &artifact.name);
    page.field_if("Description", &artifact.description);
    if detail == Detail::Verbose {
        page.list_if("Extensions", &artifact.extensions);
        metadata(page, artifact.metadata.as_ref());
    }
    parts(page, "Text", &artifact.parts, Joint::Chunks, detail);
}

/// Writes a message that is an answer of its own.
pub fn message(page: &mut Page, message: &Message, detail: Detail) {
    page.field("Message ID", &message.message_id);
    page.field_if("Task", &message.task_id);
    page.field_if("Context", &message.context_id);
    page.field("Role", role_name(message.role));
    said(page, "Text", message, detail);
}

/// Writes what a message says; texts stand under `label`.
fn said(page: &mut Page, label: &str, message: &Message, detail: Detail) {
    if detail == Detail::Verbose {
        page.list_if("Extensions", &message.extensions);
        page.list_if("Referenced tasks", &message.reference_task_ids);
        metadata(page, message.metadata.as_ref());
    }
    parts(page, label, &message.parts, Joint::Lines, detail);
}

/// A state as it was received: a name of the protocol, or the number that nobody knows.
pub fn state_name(state: TaskState) -> String {
    match state.known() {
        Some(known) => known.wire_name().to_owned(),
        None if state.number() == 0 => "TASK_STATE_UNSPECIFIED".to_owned(),
        None => state.number().to_string(),
    }
}

fn role_name(role: Role) -> String {
    role.known().map_or_else(|| "ROLE_UNSPECIFIED".to_owned(), |role| role.wire_name().to_owned())
}

/// What stderr says of an end that is none that was hoped for, or of a task that waits (§11.6 of the contract).
pub fn outcome_note(outcome: &Outcome, continuation: &Continuation) -> Option<String> {
    let note = match outcome {
        Outcome::Completed(_) | Outcome::Answered(_) => return None,
        Outcome::Failed(_) => "the task failed".to_owned(),
        Outcome::Canceled(_) => "the task was canceled".to_owned(),
        Outcome::Rejected(_) => "the agent rejected the task".to_owned(),
        Outcome::NeedsInput { task, .. } => waits("the task waits for your input", continuation.resume(task)),
        Outcome::NeedsAuthorization { task, .. } => {
            waits("the task waits for an authorization", continuation.resume(task))
        }
        Outcome::Running(task) => waits("the task is not over", continuation.resume(task)),
        Outcome::Unknown(task) => {
            waits("the task is in a state that this client does not know", continuation.resume(task))
        }
    };
    Some(format!("longhaul: {note}\n"))
}

fn waits(what: &str, next: Option<String>) -> String {
    match next {
        Some(next) => format!("{what}; go on with: {next}"),
        None => what.to_owned(),
    }
}

#[cfg(test)]
#[path = "task/tests.rs"]
mod tests;
