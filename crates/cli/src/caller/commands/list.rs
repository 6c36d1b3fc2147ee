//! `task list`.

use longhaul_client::Client;
use longhaul_protocol::wire::{ListTasksRequest, ListTasksResponse};

use crate::arguments::OutputForm;
use crate::caller::arguments::{Delivery, ListFlags};
use crate::caller::failure::{Failure, LocalCode};
use crate::caller::render::{Page, json, tasks};
use crate::caller::session::{End, Session};

use super::pages::following;

/// How many tasks one document holds.
const TASKS_MAX: usize = 100_000;
/// How many pages are asked for.
const PAGES_MAX: usize = 100_000;

/// Lists tasks: one page, or all of them.
///
/// # Errors
///
/// [`End`] when it came to nothing.
pub async fn list(session: &Session, flags: &ListFlags) -> Result<(), End> {
    let client = session.client().await?;
    let mut request = request(flags);
    let mut whole: Option<ListTasksResponse> = None;
    for _ in 0..PAGES_MAX {
        let page = page(session, &client, &request).await?;
        let next = page.next_page_token.clone();
        match (session.options.output, flags.stream.delivery()) {
            (OutputForm::Json, Delivery::Stream) => {
                for task in &page.tasks {
                    session.print(&json::document(task))?;
                }
            }
            _ => whole = Some(joined(whole, page)?),
        }
        if !flags.all {
            break;
        }
        match following(&request.page_token, &next)? {
            Some(next) => request.page_token = next,
            None => break,
        }
    }
    match whole {
        Some(whole) => session.answer(&whole, |page: &mut Page| tasks(page, &whole, session.options.detail)),
        None => Ok(()),
    }
}

fn request(flags: &ListFlags) -> ListTasksRequest {
    ListTasksRequest {
        context_id: flags.context_id.clone().unwrap_or_default(),
        status: flags.status.map(Into::into).unwrap_or_default(),
        page_size: flags.page_size,
        page_token: flags.page_token.clone().unwrap_or_default(),
        // A list shows how tasks stand; what they were told is asked for.
        history_length: Some(flags.history.unwrap_or(0)),
        status_timestamp_after: flags.since,
        include_artifacts: flags.artifacts.then_some(true),
        ..ListTasksRequest::default()
    }
}

async fn page(session: &Session, client: &Client, request: &ListTasksRequest) -> Result<ListTasksResponse, Failure> {
    client.list_tasks(request.clone()).await.map_err(|error| session.failure(&error))
}

fn joined(whole: Option<ListTasksResponse>, page: ListTasksResponse) -> Result<ListTasksResponse, Failure> {
    let Some(mut whole) = whole else { return Ok(page) };
    whole.tasks.extend(page.tasks);
    whole.next_page_token = page.next_page_token;
    whole.page_size = i32::try_from(whole.tasks.len()).unwrap_or(i32::MAX);
    if whole.tasks.len() > TASKS_MAX {
        return Err(Failure::local(LocalCode::AnswerTooLarge, format!("there are more than {TASKS_MAX} tasks"))
            .hint("-o json --stream writes them one by one"));
    }
    Ok(whole)
}
