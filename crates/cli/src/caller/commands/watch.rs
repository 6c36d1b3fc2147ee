//! `watch`: many tasks at once, while they run.
//!
//! On a terminal each task is a line that is drawn again and again; elsewhere each event is written as it comes. It ends when
//! all of them have ended.

use futures_util::StreamExt as _;
use futures_util::stream::select_all;
use longhaul_client::Client;
use longhaul_client::ClientError;
use longhaul_client::follow::{Event, Until};
use longhaul_protocol::TaskState;
use longhaul_protocol::wire::ListTasksRequest;

use crate::arguments::OutputForm;
use crate::caller::arguments::WatchFlags;
use crate::caller::failure::Failure;
use crate::caller::progress::Board;
use crate::caller::render::{Page, StreamText, json};
use crate::caller::session::{End, Session};

use super::ledger;

/// How many tasks are followed at once.
const TASKS_MAX: usize = 200;
/// The states in which there is something to see.
const OPEN: [TaskState; 4] =
    [TaskState::Submitted, TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired];

/// Watches tasks until all of them have ended.
///
/// # Errors
///
/// [`End`] when the agent can't be had, or one of the tasks could not be followed to its end.
pub async fn watch(session: &Session, flags: &WatchFlags) -> Result<(), End> {
    if flags.ledger.is_some() {
        return ledger::watch(session).await;
    }
    let client = session.client().await?;
    let ids = if flags.all { open_tasks(session, &client).await? } else { flags.task_ids.clone() };
    if ids.len() > TASKS_MAX {
        return Err(Failure::usage(format!("there are {} tasks, and at most {TASKS_MAX} are watched", ids.len()))
            .hint("name the tasks to watch; longhaul task list lists them")
            .into());
    }
    let mut follow = session.follow();
    follow.until = Until::Terminal;
    let streams = ids.iter().map(|id| {
        let id = id.clone();
        client.follow(&id, follow.clone()).into_stream().map(move |event| (id.clone(), event)).boxed()
    });
    let mut events = select_all(streams);
    let mut view = View::new(session, &ids);
    while let Some((id, event)) = events.next().await {
        view.event(&id, event)?;
    }
    view.end()
}

async fn open_tasks(session: &Session, client: &Client) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for state in OPEN {
        let mut request =
            ListTasksRequest { status: state.into(), history_length: Some(0), ..ListTasksRequest::default() };
        // One more than are watched is enough to know that there are too many.
        while ids.len() <= TASKS_MAX {
            let page = client.list_tasks(request.clone()).await.map_err(|error| session.failure(&error))?;
            ids.extend(page.tasks.into_iter().map(|task| task.id));
            if page.next_page_token.is_empty() || page.next_page_token == request.page_token {
                break;
            }
            request.page_token = page.next_page_token;
        }
    }
    // A task whose state changed between two questions comes twice.
    ids.sort();
    ids.dedup();
    Ok(ids)
}

struct View<'a> {
    session: &'a Session,
    board: Board,
    text: StreamText,
    failed: Option<Failure>,
}

impl<'a> View<'a> {
    fn new(session: &'a Session, ids: &[String]) -> Self {
        let board = Board::begin(session.options.output, ids);
        Self { session, board, text: StreamText::new(session.options.detail), failed: None }
    }

    fn event(&mut self, id: &str, event: Result<Event, ClientError>) -> Result<(), End> {
        let payload = match event {
            Ok(event) => event.payload,
            Err(error) => return self.fault(id, self.session.failure(&error)),
        };
        self.board.event(id, &payload);
        match self.session.options.output {
            OutputForm::Json => self.session.print(&json::document(&payload)),
            OutputForm::Text if self.board.is_drawn() => Ok(()),
            OutputForm::Text => self.session.print(&self.text.event(&payload)),
        }
    }

    /// One that can't be followed does not keep the others from being seen.
    fn fault(&mut self, id: &str, failure: Failure) -> Result<(), End> {
        self.board.rest(id, &failure.message);
        if self.session.options.output == OutputForm::Text && !self.board.is_drawn() {
            let mut page = Page::new();
            page.field("Task", id);
            page.field("Error", &failure.message);
            self.session.print(&page.into_text())?;
        }
        let failure = Failure { message: format!("task {id}: {}", failure.message), ..failure };
        self.failed.get_or_insert(failure);
        Ok(())
    }

    fn end(self) -> Result<(), End> {
        self.board.end();
        self.failed.map_or(Ok(()), |failure| Err(failure.into()))
    }
}
