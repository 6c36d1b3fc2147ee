//! `task get`, `task cancel` and `task subscribe` (§10.3, §10.4 and §9 of the contract).

use longhaul_protocol::wire::{CancelTaskRequest, StreamResponse, StreamResponsePayload, Task};

use crate::caller::arguments::{CancelFlags, Delivery, GetFlags, SubscribeFlags};
use crate::caller::failure::Failure;
use crate::caller::parts::json_object;
use crate::caller::session::{End, Session};

use super::answers::{fetch, note, write_task};
use super::events;

/// Shows a task; with `--wait` once it rests.
///
/// # Errors
///
/// [`End`] when it came to nothing.
pub async fn get(session: &Session, flags: &GetFlags) -> Result<(), End> {
    let client = session.client().await?;
    if flags.wait {
        let mut stream = client.follow(&flags.task_id, session.follow());
        events::wait(session, &mut stream).await?;
    }
    let task = fetch(session, &client, &flags.task_id, flags.history).await?;
    show(session, &task, flags.history)
}

/// Cancels a task.
///
/// # Errors
///
/// [`End`] when it came to nothing, or the agent says that it can't be canceled.
pub async fn cancel(session: &Session, flags: &CancelFlags) -> Result<(), End> {
    let metadata = flags.metadata.as_deref().map(json_object).transpose();
    let metadata = metadata.map_err(|problem| Failure::usage(format!("--metadata: {problem}")))?;
    let client = session.client().await?;
    let request = CancelTaskRequest { id: flags.task_id.clone(), metadata, ..CancelTaskRequest::default() };
    let task = client.cancel_task(request).await.map_err(|error| session.failure(&error))?;
    session.answer(&task, |page| write_task(session, page, &task, None))
}

/// Follows a task until it rests: with `--stream` each event, otherwise the task as it is then.
///
/// # Errors
///
/// [`End`] when it can't be followed.
pub async fn subscribe(session: &Session, flags: &SubscribeFlags) -> Result<(), End> {
    let client = session.client().await?;
    let mut stream = client.follow(&flags.task_id, session.follow());
    match flags.stream.delivery() {
        Delivery::Stream => {
            events::show(session, &mut stream).await?;
            if let Some(task) = session.seen() {
                note(session, &task);
            }
            Ok(())
        }
        Delivery::Whole => {
            events::wait(session, &mut stream).await?;
            let task = fetch(session, &client, &flags.task_id, None).await?;
            show(session, &task, None)
        }
    }
}

fn show(session: &Session, task: &Task, history: Option<i32>) -> Result<(), End> {
    session.saw(&StreamResponse { payload: Some(StreamResponsePayload::Task(task.clone())) });
    session.answer(task, |page| write_task(session, page, task, history))?;
    note(session, task);
    Ok(())
}
