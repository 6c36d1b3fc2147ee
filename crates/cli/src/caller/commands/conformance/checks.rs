//! What is looked at by each binding.

use std::future::Future;
use std::time::Duration;

use longhaul_client::follow::FollowOptions;
use longhaul_client::{Client, ClientError, Outcome, WaitOptions, error_name, new_id};
use longhaul_protocol::ErrorCode;
use longhaul_protocol::wire::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, Part, SendMessageConfiguration, SendMessageRequest,
    StreamResponsePayload, Task,
};
use tokio::time::timeout;

use super::{Check, Finding};
use crate::caller::commands::message::of_user;

/// How long one check may take.
const CHECK_DURATION_MAX: Duration = Duration::from_secs(30);

/// Looks at the operations of one binding.
pub async fn of_binding(client: &Client, text: &str) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut add = |name, section, result| checks.push(Check { binding: Some(client.binding()), name, section, result });
    let sent = within(client.delegate(request(text), wait())).await;
    let task = sent.as_ref().ok().and_then(|outcome| outcome.task().cloned());
    add("message is answered", "3.1.1", sent.as_ref().map_or_else(|why| Finding::Fail(why.clone()), answered));
    add("task can be read", "3.1.3", with(task.as_ref(), |task| read(client, task)).await);
    add("task is listed", "3.1.4", with(task.as_ref(), |task| listed(client, task)).await);
    let unknown = GetTaskRequest { id: new_id(), ..GetTaskRequest::default() };
    add("unknown task is not found", "3.3.2", refused(client.get_task(unknown), ErrorCode::TaskNotFound).await);
    let unknown = CancelTaskRequest { id: new_id(), ..CancelTaskRequest::default() };
    add("unknown task is not canceled", "3.3.2", refused(client.cancel_task(unknown), ErrorCode::TaskNotFound).await);
    add(
        "task that has ended is not canceled",
        "3.1.5",
        with(ended(task.as_ref()), |task| canceled(client, task)).await,
    );
    add(
        "task that has ended takes no message",
        "3.1.1",
        with(ended(task.as_ref()), |task| continued(client, task, text)).await,
    );
    let streamed = if client.streams() {
        streamed(client, text).await
    } else {
        Finding::Skip("the card offers no streams".to_owned())
    };
    add("stream begins with the task and ends with its rest", "3.1.2", streamed);
    checks
}

fn wait() -> WaitOptions {
    let mut wait = WaitOptions::default();
    wait.timeout = Some(CHECK_DURATION_MAX);
    wait
}

fn request(text: &str) -> SendMessageRequest {
    let message = of_user("", "", vec![Part::text(text)]);
    SendMessageRequest { message: Some(message), ..SendMessageRequest::default() }
}

async fn within<T>(call: impl Future<Output = Result<T, ClientError>>) -> Result<T, String> {
    match timeout(CHECK_DURATION_MAX, call).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", CHECK_DURATION_MAX.as_secs())),
    }
}

/// Whether a call is refused by this error of the protocol.
async fn refused<T>(call: impl Future<Output = Result<T, ClientError>>, code: ErrorCode) -> Finding {
    let wanted = error_name(code);
    match timeout(CHECK_DURATION_MAX, call).await {
        Ok(Ok(_)) => Finding::Fail(format!("it succeeds, and has to be {wanted}")),
        Ok(Err(error)) if error.code() == Some(code) => Finding::Pass,
        Ok(Err(error)) => Finding::Fail(format!("it is \"{error}\", and has to be {wanted}")),
        Err(_) => Finding::Fail(format!("no answer within {} s", CHECK_DURATION_MAX.as_secs())),
    }
}

async fn with<'a, F: Future<Output = Finding>>(task: Option<&'a Task>, look: impl FnOnce(&'a Task) -> F) -> Finding {
    match task {
        Some(task) => look(task).await,
        None => Finding::Skip("there is no task that it could be looked at with".to_owned()),
    }
}

fn ended(task: Option<&Task>) -> Option<&Task> {
    let state = |task: &&Task| task.status.as_ref().and_then(|status| status.state.known());
    task.filter(|task| state(task).is_some_and(longhaul_protocol::TaskState::is_terminal))
}

fn answered(outcome: &Outcome) -> Finding {
    match outcome {
        Outcome::Unknown(_) => Finding::Fail("the task is in a state that the protocol does not have".to_owned()),
        Outcome::Running(_) => Finding::Skip("the task was not over in time".to_owned()),
        _ => Finding::Pass,
    }
}

async fn read(client: &Client, task: &Task) -> Finding {
    let request = GetTaskRequest { id: task.id.clone(), history_length: Some(0), ..GetTaskRequest::default() };
    match within(client.get_task(request)).await {
        Ok(found) if found.id != task.id => Finding::Fail(format!("it answers with task {:?}", found.id)),
        Ok(found) if !found.history.is_empty() => {
            Finding::Fail("it has a history although none was asked for".to_owned())
        }
        Ok(_) => Finding::Pass,
        Err(why) => Finding::Fail(why),
    }
}

async fn listed(client: &Client, task: &Task) -> Finding {
    let request = ListTasksRequest { context_id: task.context_id.clone(), ..ListTasksRequest::default() };
    match within(client.list_tasks(request)).await {
        Ok(page) if page.tasks.iter().any(|found| found.id == task.id) => Finding::Pass,
        Ok(_) => Finding::Fail("it is not among the tasks of its context".to_owned()),
        Err(why) => Finding::Fail(why),
    }
}

async fn canceled(client: &Client, task: &Task) -> Finding {
    let request = CancelTaskRequest { id: task.id.clone(), ..CancelTaskRequest::default() };
    refused(client.cancel_task(request), ErrorCode::TaskNotCancelable).await
}

async fn continued(client: &Client, task: &Task, text: &str) -> Finding {
    let mut request = request(text);
    request.configuration =
        Some(SendMessageConfiguration { return_immediately: true, ..SendMessageConfiguration::default() });
    if let Some(message) = &mut request.message {
        message.task_id.clone_from(&task.id);
    }
    refused(client.send_message(request), ErrorCode::UnsupportedOperation).await
}

async fn streamed(client: &Client, text: &str) -> Finding {
    let mut events = match client.send_streaming_message(request(text), FollowOptions::default()) {
        Ok(events) => events,
        Err(error) => return Finding::Fail(error.to_string()),
    };
    let mut is_first = true;
    let all = async {
        while let Some(event) = events.next().await {
            let payload = event?.payload.payload;
            let begins = matches!(payload, Some(StreamResponsePayload::Task(_) | StreamResponsePayload::Message(_)));
            if is_first && !begins {
                return Ok(Finding::Fail("its first event is neither a task nor a message".to_owned()));
            }
            is_first = false;
        }
        Ok(Finding::Pass)
    };
    within(all).await.unwrap_or_else(Finding::Fail)
}
