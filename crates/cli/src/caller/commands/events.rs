//! Following a task: quietly until it rests, or with each event as it comes.

use longhaul_client::follow::EventStream;
use longhaul_protocol::wire::{Message, StreamResponsePayload};

use crate::arguments::OutputForm;
use crate::caller::progress::Progress;
use crate::caller::render::{Page, StreamText, json};
use crate::caller::session::{End, Session};

/// Waits until the events end. Answers with the agent's message, if it made no task.
///
/// The ids are said on stderr as soon as they are known: whoever interrupts the wait can go on with them.
///
/// # Errors
///
/// [`End`] when the task can't be followed any further.
pub async fn wait(session: &Session, events: &mut EventStream) -> Result<Option<Message>, End> {
    let mut progress = Progress::begin(session.options.output);
    let mut answer = None;
    while let Some(event) = events.next().await {
        let payload = event.map_err(|error| session.failure(&error))?.payload;
        if let Some((id, context_id)) = session.saw(&payload) {
            progress.say(&format!("task {id} of context {context_id}"));
        }
        progress.event(&payload);
        if let Some(StreamResponsePayload::Message(message)) = payload.payload {
            answer = Some(message);
        }
    }
    progress.end();
    Ok(answer)
}

/// Writes each event as it comes.
///
/// # Errors
///
/// As [`wait`], and when nobody reads stdout any more.
pub async fn show(session: &Session, events: &mut EventStream) -> Result<(), End> {
    let mut text = StreamText::new(session.options.detail);
    while let Some(event) = events.next().await {
        let payload = event.map_err(|error| session.failure(&error))?.payload;
        session.saw(&payload);
        session.print(&match session.options.output {
            OutputForm::Json => json::document(&payload),
            OutputForm::Text => text.event(&payload),
        })?;
    }
    if session.options.output == OutputForm::Text {
        let resume = session.seen().and_then(|task| session.options.continuation.resume(&task));
        let mut page = Page::new();
        page.field_if("Resume", resume.as_deref().unwrap_or_default());
        session.print(&(text.end() + &page.into_text()))?;
    }
    Ok(())
}
