//! One delegation that is followed, and what is said about it.

use longhaul_client::Outcome;
use longhaul_client::ledger::{Finding, Followed, Ledger, State, Update};

use crate::arguments::OutputForm;
use crate::caller::arguments::Delivery;
use crate::caller::commands::answers::{note, write_task};
use crate::caller::failure::{Failure, LocalCode};
use crate::caller::progress::Progress;
use crate::caller::render::{StreamText, json, message};
use crate::caller::session::{End, Session};

use super::{failure, response, text};

/// Follows it to its rest, or until the command is ended, and shows what happens on the way: as a line on the terminal, or each event.
///
/// # Errors
///
/// [`End`] when the ledger fails, or nobody reads stdout any more.
pub async fn follow(session: &Session, mut followed: Followed, delivery: Delivery) -> Result<Finding, End> {
    let mut shown = Shown::begin(session, delivery);
    loop {
        let update = tokio::select! {
            update = followed.next() => update,
            () = session.stop.cancelled() => {
                // Others may go on with it at once. Why it ends is told by who ends it.
                let _ = followed.stop().await;
                return Err(session.interrupted().into());
            }
        };
        match update {
            Some(update) => shown.update(&update)?,
            None => break,
        }
    }
    let finding = followed.rest().await.map_err(|error| failure(session, &error))?;
    shown.end()?;
    Ok(finding)
}

/// Follows it until the agent has taken it on.
///
/// # Errors
///
/// As [`follow`].
pub async fn begin(session: &Session, mut followed: Followed) -> Result<Finding, End> {
    let mut shown = Shown::begin(session, Delivery::Whole);
    while let Some(update) = followed.next().await {
        shown.update(&update)?;
        if matches!(update, Update::Event(_)) {
            break;
        }
    }
    let finding = followed.stop().await.map_err(|error| failure(session, &error))?;
    shown.end()?;
    Ok(finding)
}

/// What is shown of a delegation while it is followed.
struct Shown<'a> {
    session: &'a Session,
    progress: Progress,
    stream: Option<StreamText>,
}

impl<'a> Shown<'a> {
    fn begin(session: &'a Session, delivery: Delivery) -> Self {
        let stream = (delivery == Delivery::Stream).then(|| StreamText::new(session.options.detail));
        // What is written line by line needs no line that is drawn again and again.
        let form = if stream.is_some() { OutputForm::Json } else { session.options.output };
        Self { session, progress: Progress::begin(form), stream }
    }

    fn update(&mut self, update: &Update) -> Result<(), End> {
        match update {
            Update::Event(event) => {
                if let Some((id, context_id)) = self.session.saw(&event.payload) {
                    self.progress.say(&format!("task {id} of context {context_id}"));
                }
                self.progress.event(&event.payload);
                match (&mut self.stream, self.session.options.output) {
                    (Some(_), OutputForm::Json) => self.session.print(&json::document(&event.payload))?,
                    (Some(stream), OutputForm::Text) => self.session.print(&stream.event(&event.payload))?,
                    (None, _) => {}
                }
            }
            Update::Alarm(entry) => self.progress.say(&format!("alarm: delegation {} is overdue", entry.id)),
            Update::Trouble(error) => {
                let problem = self.session.failure(error).message;
                self.progress.say(&format!("{problem}; it is tried again"));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(self) -> Result<(), End> {
        self.progress.end();
        match (self.stream, self.session.options.output) {
            (Some(stream), OutputForm::Text) => self.session.print(&stream.end()),
            _ => Ok(()),
        }
    }
}

/// What came of it, where there is something that the agent said; none while it runs.
///
/// # Errors
///
/// [`End`] when the agent refused, or nobody knows what became of it.
pub async fn outcome(session: &Session, ledger: &Ledger, finding: Finding) -> Result<Option<Outcome>, End> {
    let entry = match finding {
        Finding::Refused { error, .. } => return Err(session.failure(&error).into()),
        Finding::Unreachable { entry, error } => {
            let next = session.options.continuation.ledger("recover");
            let failure = session.failure(&error);
            let message = format!("{}; delegation {} stays in the ledger", failure.message, entry.id);
            return Err(Failure { message, ..failure }.hint(format!("go on with: {next}")).into());
        }
        Finding::Running(_) => return Ok(None),
        finding => match finding.entry() {
            Some(entry) => entry.clone(),
            None => return Ok(None),
        },
    };
    let told = ledger.outcome(entry.id).await.map_err(|error| failure(session, &error))?;
    if let (Some(outcome), State::Settled { .. } | State::Question { .. } | State::Authorization { .. }) =
        (told, &entry.state)
    {
        return Ok(Some(outcome));
    }
    let code = if entry.needs_person() { LocalCode::NeedsPerson } else { LocalCode::Ledger };
    let message = format!("delegation {} is {}: {}", entry.id, entry.state.kind().name(), entry.state.text());
    let told = Failure::local(code, message.trim_end_matches(": "));
    Err(match text::next(session, &entry) {
        Some(next) => told.hint(next).into(),
        None => told.into(),
    })
}

/// Writes what came of a delegation.
///
/// # Errors
///
/// [`End::ReaderLeft`] when nobody reads it.
pub fn show(session: &Session, outcome: Outcome) -> Result<(), End> {
    let said = match &outcome {
        Outcome::Answered(said) => Some(said.clone()),
        _ => None,
    };
    let task = outcome.task().cloned();
    session.answer(&response(outcome), |page| match (&task, &said) {
        (Some(task), _) => write_task(session, page, task, None),
        (None, Some(said)) => message(page, said, session.options.detail),
        (None, None) => {}
    })?;
    task.iter().for_each(|task| note(session, task));
    Ok(())
}
