//! `send`: a message to an agent, and what becomes of it (§10.2 of the contract).

mod delegated;

use longhaul_client::{Client, Outcome};
use longhaul_protocol::wire::{
    Part, SendMessageConfiguration, SendMessageRequest, SendMessageResponse, SendMessageResponsePayload, Task,
};

use crate::arguments::OutputForm;
use crate::caller::arguments::{Delivery, SendFlags};
use crate::caller::options::{Options, SendOptions, Waiting};
use crate::caller::parts::parts;
use crate::caller::render::{Detail, Page, json, message};
use crate::caller::save::{Folder, Saved, save};
use crate::caller::session::{End, Session};

use super::answers::{fetch, note, write_task};
use super::message::of_user;
use super::{ask, download, events};

/// Sends, and writes what came of it.
///
/// # Errors
///
/// [`End`] when it came to nothing.
pub async fn send(session: &Session, flags: &SendFlags) -> Result<(), End> {
    // All that can be wrong with the command line is told before anybody is called.
    let parts = parts(&flags.parts.0, &mut std::io::stdin().lock())?;
    let folder = flags.save.as_deref().map(Folder::open).transpose()?;
    let request = request(session.send_options()?, flags, parts);
    let client = session.client().await?;
    tell_sent(session, &request)?;
    let sending = Sending { session, flags, client, folder };
    if flags.ledger.is_some() {
        return sending.delegated(request).await;
    }
    match (flags.stream.delivery(), session.send_options()?.waiting) {
        (Delivery::Stream, _) => sending.stream(request).await,
        (Delivery::Whole, Waiting::No) => sending.at_once(request).await,
        (Delivery::Whole, Waiting::UntilRest) => sending.wait(request).await,
    }
}

/// `--verbose` shows what was sent as well.
fn tell_sent(session: &Session, request: &SendMessageRequest) -> Result<(), End> {
    let Options { output, detail, .. } = *session.options;
    let (OutputForm::Text, Detail::Verbose, Some(sent)) = (output, detail, &request.message) else { return Ok(()) };
    let mut page = Page::new();
    page.field("Sent", &sent.message_id);
    message(&mut page, sent, detail);
    session.print(&page.into_text())
}

fn request(options: SendOptions, flags: &SendFlags, parts: Vec<Part>) -> SendMessageRequest {
    let (context_id, task_id) = (options.context_id.unwrap_or_default(), options.task_id.unwrap_or_default());
    let mut message = of_user(&context_id, &task_id, parts);
    message.metadata.clone_from(&options.metadata);
    if let Some(id) = &flags.message_id {
        message.message_id.clone_from(id);
    }
    let configuration = SendMessageConfiguration {
        accepted_output_modes: options.accept,
        history_length: flags.history,
        return_immediately: options.waiting == Waiting::No && flags.stream.delivery() == Delivery::Whole,
        ..SendMessageConfiguration::default()
    };
    SendMessageRequest {
        message: Some(message),
        configuration: Some(configuration),
        metadata: options.metadata,
        ..SendMessageRequest::default()
    }
}

struct Sending<'a> {
    session: &'a Session,
    flags: &'a SendFlags,
    client: Client,
    folder: Option<Folder>,
}

impl Sending<'_> {
    /// `--stream`: each event as it comes.
    async fn stream(&self, request: SendMessageRequest) -> Result<(), End> {
        let session = self.session;
        let sent = self.client.send_streaming_message(request, session.follow());
        let mut stream = sent.map_err(|error| session.failure(&error))?;
        events::show(session, &mut stream).await?;
        let Some(task) = session.seen() else { return Ok(()) };
        note(session, &task);
        if self.folder.is_some() {
            let whole = fetch(session, &self.client, &task.id, Some(0)).await?;
            self.tell_saved(&self.save(&whole)?)?;
        }
        Ok(())
    }

    /// `--async`: what the agent says at once.
    async fn at_once(&self, request: SendMessageRequest) -> Result<(), End> {
        let answer = self.client.send_message(request).await.map_err(|error| self.session.failure(&error))?;
        self.show(answer)
    }

    /// Waits until the task rests, and with `--interactive` as long as there are questions and answers.
    async fn wait(&self, mut request: SendMessageRequest) -> Result<(), End> {
        let session = self.session;
        loop {
            let sent = self.client.send_streaming_message(request.clone(), session.follow());
            let mut stream = sent.map_err(|error| session.failure(&error))?;
            if let Some(message) = events::wait(session, &mut stream).await? {
                return self.show(SendMessageResponse { payload: Some(SendMessageResponsePayload::Message(message)) });
            }
            let id = stream.task_id().unwrap_or_default();
            let task = fetch(session, &self.client, id, self.flags.history).await?;
            match self.reply_to(&task).await {
                Some(text) => request = reply(&request, &task, text),
                None => {
                    return self.show(SendMessageResponse { payload: Some(SendMessageResponsePayload::Task(task)) });
                }
            }
        }
    }

    /// What a person answers, if the agent asks and a person is to be asked.
    async fn reply_to(&self, task: &Task) -> Option<String> {
        if !self.flags.interactive || !ask::somebody_is_there() {
            return None;
        }
        match Outcome::of_task(task.clone()) {
            Outcome::NeedsInput { question, .. } => ask::ask(question.as_ref()).await,
            _ => None,
        }
    }

    /// Writes the answer, and the files that were asked for.
    fn show(&self, answer: SendMessageResponse) -> Result<(), End> {
        let (session, history) = (self.session, self.flags.history);
        match &answer.payload {
            Some(SendMessageResponsePayload::Task(task)) => {
                let saved = self.save(task)?;
                session.answer(&answer, |page| write_task(session, page, task, history))?;
                self.tell_saved(&saved)?;
                note(session, task);
                Ok(())
            }
            Some(SendMessageResponsePayload::Message(said)) => {
                session.answer(&answer, |page| message(page, said, session.options.detail))
            }
            None => session.print(&match session.options.output {
                OutputForm::Json => json::document(&answer),
                OutputForm::Text => String::new(),
            }),
        }
    }

    fn save(&self, task: &Task) -> Result<Vec<Saved>, End> {
        match &self.folder {
            Some(folder) => Ok(save(folder, &task.artifacts)?),
            None => Ok(Vec::new()),
        }
    }

    /// The files that were written: on stdout for people; for programs stdout holds the answer alone.
    fn tell_saved(&self, saved: &[Saved]) -> Result<(), End> {
        let mut page = Page::new();
        download::write_saved(&mut page, saved);
        match self.session.options.output {
            OutputForm::Text => self.session.print(&page.into_text()),
            OutputForm::Json => {
                eprint!("{}", page.into_text());
                Ok(())
            }
        }
    }
}

/// The same request with a reply to a task.
fn reply(request: &SendMessageRequest, task: &Task, text: String) -> SendMessageRequest {
    let message = of_user(&task.context_id, &task.id, vec![Part::text(text)]);
    SendMessageRequest { message: Some(message), ..request.clone() }
}
