//! How tasks are written when a command is through with them.

use longhaul_client::{Client, Outcome};
use longhaul_protocol::wire::{GetTaskRequest, Task};

use crate::caller::failure::Failure;
use crate::caller::render::{Detail, Page, outcome_note, task};
use crate::caller::session::Session;

/// Fetches a task.
///
/// # Errors
///
/// [`Failure`], as the agent or the way to it says.
pub async fn fetch(session: &Session, client: &Client, id: &str, history: Option<i32>) -> Result<Task, Failure> {
    let request = GetTaskRequest { id: id.to_owned(), history_length: history, ..GetTaskRequest::default() };
    client.get_task(request).await.map_err(|error| session.failure(&error))
}

/// Writes a task for people, and the command that goes on with it. The history is only shown when it was asked for: an agent
/// may send it unasked.
pub fn write_task(session: &Session, page: &mut Page, shown: &Task, history: Option<i32>) {
    let detail = session.options.detail;
    if history.is_none() && detail == Detail::Concise && !shown.history.is_empty() {
        let without = Task { history: Vec::new(), ..shown.clone() };
        task(page, &without, detail);
    } else {
        task(page, shown, detail);
    }
    if let Some(command) = session.continuation().resume(shown) {
        page.field("Resume", command);
    }
}

/// Says on stderr how a task stands, unless it ended as was hoped for.
pub fn note(session: &Session, shown: &Task) {
    if let Some(note) = outcome_note(&Outcome::of_task(shown.clone()), &session.continuation()) {
        eprint!("{note}");
    }
}
