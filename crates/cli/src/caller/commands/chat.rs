//! `chat`: turn after turn with one agent (§8.1 and §11.2 of the contract).
//!
//! The context goes from turn to turn, and the task as long as it waits for an answer. On a terminal what the agent says is
//! written as it comes; elsewhere lines of stdin are the turns, and each answer has the form that `send` gives it.

use std::io::{self, IsTerminal as _, Write as _};

use longhaul_client::Client;
use longhaul_protocol::wire::{Part, SendMessageRequest, Task};
use tokio::time::timeout;

use crate::arguments::OutputForm;
use crate::caller::failure::Failure;
use crate::caller::render::{ChatText, StreamText, json, state_name};
use crate::caller::session::{End, Session};

use super::ask;
use super::message::of_user;

/// What ends it, besides the end of stdin.
const QUIT: [&str; 2] = ["/quit", "/exit"];

/// Who is at the other side of stdin and stdout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// A person.
    Terminal,
    /// A pipe or a file.
    Pipe,
}

/// Talks until there is no more line.
///
/// # Errors
///
/// [`End`] when a turn can't be had at all; what the agent refuses is told, and the next turn may be another.
pub async fn chat(session: &Session) -> Result<(), End> {
    let place = place()?;
    let client = session.client().await?;
    let options = session.send_options()?;
    let mut turn =
        Turn { context_id: options.context_id.unwrap_or_default(), task_id: options.task_id.unwrap_or_default() };
    while let Some(line) = next_line(place).await {
        if QUIT.contains(&line.trim()) {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        match take(session, &client, turn.request(line), place).await {
            Ok(Some(task)) => turn.follows(&task),
            Ok(None) => turn.task_id.clear(),
            // One turn that is refused is no end of the conversation, for a person.
            Err(End::Failed(failure)) if place == Place::Terminal => eprint!("{}", failure.text()),
            Err(end) => return Err(end),
        }
    }
    Ok(())
}

/// A person who would type, and see nothing of the answer, is not waited for.
fn place() -> Result<Place, Failure> {
    match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (true, true) => Ok(Place::Terminal),
        (false, _) => Ok(Place::Pipe),
        (true, false) => Err(Failure::usage("stdin is a terminal and stdout is none")
            .hint("chat with both on a terminal, or give the lines on stdin; longhaul send sends one message")),
    }
}

async fn next_line(place: Place) -> Option<String> {
    if place == Place::Terminal {
        eprint!("> ");
        let _ = io::stderr().flush();
    }
    ask::next_line().await
}

/// What goes from turn to turn.
struct Turn {
    context_id: String,
    task_id: String,
}

impl Turn {
    fn request(&self, text: String) -> SendMessageRequest {
        let message = of_user(&self.context_id, &self.task_id, vec![Part::text(text)]);
        SendMessageRequest { message: Some(message), ..SendMessageRequest::default() }
    }

    /// A task that waits is answered by the next turn; after one that has ended there is a new one.
    fn follows(&mut self, task: &Task) {
        self.context_id.clone_from(&task.context_id);
        let state = task.status.as_ref().and_then(|status| status.state.known());
        self.task_id =
            if state.is_some_and(longhaul_protocol::TaskState::is_terminal) { String::new() } else { task.id.clone() };
    }
}

/// One turn. Answers with its task, if there is one.
async fn take(
    session: &Session,
    client: &Client,
    request: SendMessageRequest,
    place: Place,
) -> Result<Option<Task>, End> {
    session.forget();
    let turn = show(session, client, request, place);
    match session.options.timeout {
        None => turn.await?,
        Some(limit) => match timeout(limit, turn).await {
            Ok(ended) => ended?,
            Err(_) => return Err(session.late().into()),
        },
    }
    Ok(session.seen())
}

async fn show(session: &Session, client: &Client, request: SendMessageRequest, place: Place) -> Result<(), End> {
    let sent = client.send_streaming_message(request, session.follow());
    let mut events = sent.map_err(|error| session.failure(&error))?;
    let mut spoken = ChatText::default();
    let mut fields = StreamText::new(session.options.detail);
    while let Some(event) = events.next().await {
        let payload = event.map_err(|error| session.failure(&error))?.payload;
        session.saw(&payload);
        session.print(&match (session.options.output, place) {
            (OutputForm::Json, _) => json::document(&payload),
            (OutputForm::Text, Place::Terminal) => spoken.event(&payload),
            (OutputForm::Text, Place::Pipe) => fields.event(&payload),
        })?;
    }
    let end = match (session.options.output, place) {
        (OutputForm::Json, _) => String::new(),
        (OutputForm::Text, Place::Terminal) => spoken.end(),
        (OutputForm::Text, Place::Pipe) => fields.end(),
    };
    session.print(&end)?;
    if let (Place::Terminal, Some(task)) = (place, session.seen()) {
        let state = state_name(task.status.as_ref().map(|status| status.state).unwrap_or_default());
        eprintln!("[{} {}]", task.id.escape_debug(), state.trim_start_matches("TASK_STATE_"));
    }
    Ok(())
}
