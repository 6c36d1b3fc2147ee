//! `ledger`: what was delegated, how it stands, and how it goes on after a crash.

mod agents;
pub mod delegate;
mod live;
mod recover;
mod text;

use longhaul_client::Outcome;
use longhaul_client::ledger::{
    Decision, Entry, EntryId, Filter, Ledger, LedgerError, ListQuery, Order, PAGE_MAX, ResumeOptions,
};
use longhaul_client::oauth::{Clock as _, SystemClock};
use longhaul_protocol::Timestamp;
use longhaul_protocol::wire::{SendMessageConfiguration, SendMessageRequest, SendMessageResponse};
use serde_json::{Value, json};

use crate::arguments::OutputForm;
use crate::caller::arguments::{
    AnswerFlags, Delivery, EntriesFlags, EntryFlags, LedgerCommand, PruneFlags, ResolveCommand, Which,
};
use crate::caller::failure::{Failure, LocalCode, told};
use crate::caller::parts::parts;
use crate::caller::render::Page;
use crate::caller::session::{End, Session};

use super::message::of_user;
use agents::Agents;
pub use agents::lasting;
pub use live::watch;

/// How many lines of its history are shown of a delegation.
const HISTORY_MAX: u32 = PAGE_MAX;

/// Does what the command says.
///
/// # Errors
///
/// [`End`] when it came to nothing.
pub async fn run(session: &Session, command: &LedgerCommand) -> Result<(), End> {
    let ledger = open(session).await?;
    match command {
        LedgerCommand::List(flags) => list(session, &ledger, flags).await,
        LedgerCommand::Show(flags) => show(session, &ledger, flags).await,
        LedgerCommand::Recover(flags) => recover::recover(session, &ledger, flags).await,
        LedgerCommand::Answer(flags) => answer(session, &ledger, flags).await,
        LedgerCommand::Resolve(command) => resolve(session, &ledger, command).await,
        LedgerCommand::Remove(flags) => remove(session, &ledger, flags).await,
        LedgerCommand::Prune(flags) => prune(session, &ledger, flags).await,
    }
}

/// Opens the ledger, and makes it when there is none.
///
/// # Errors
///
/// [`Failure`] when that can't be done.
pub async fn open(session: &Session) -> Result<Ledger, Failure> {
    let path = session.options.ledger.as_ref().ok_or_else(|| {
        Failure::local(LocalCode::Ledger, "there is no place for the ledger")
            .hint("set HOME, or name it with --ledger FILE")
    })?;
    Ledger::open(path).await.map_err(|error| failure(session, &error))
}

/// What an error of the ledger is for a caller.
pub fn failure(session: &Session, error: &LedgerError) -> Failure {
    let failed = |code| Failure::local(code, told(error));
    let next = |words: &str| session.options.continuation.ledger(words);
    match error {
        LedgerError::NotFound { .. } => {
            failed(LocalCode::Usage).hint(format!("look with: {}", next("list --which all")))
        }
        LedgerError::Invalid { .. } => failed(LocalCode::Usage),
        LedgerError::NotAllowed { entry, .. } | LedgerError::Conflict { entry, .. } => {
            failed(LocalCode::Ledger).hint(format!("look with: {}", next(&format!("show {entry}"))))
        }
        LedgerError::NotSettled { entry } => failed(LocalCode::Ledger)
            .hint(format!("give it up first, if it has to go: {}", next(&format!("resolve abandon {entry}")))),
        LedgerError::Claimed { .. } => {
            failed(LocalCode::Ledger).hint("wait until that has ended; ledger answer --take-over goes on all the same")
        }
        LedgerError::Busy { .. } => failed(LocalCode::Ledger).hint("try again"),
        _ => failed(LocalCode::Ledger),
    }
}

/// The time.
fn now() -> Timestamp {
    SystemClock.now()
}

/// The entry of this id, or of the task of this id.
async fn find(session: &Session, ledger: &Ledger, id: &str) -> Result<Entry, Failure> {
    let failed = |error| failure(session, &error);
    if let Ok(id) = id.parse::<EntryId>() {
        match ledger.get(id).await {
            Err(LedgerError::NotFound { .. }) => {}
            found => return found.map_err(failed),
        }
    }
    let mut found = ledger.find_by_task(id).await.map_err(failed)?.entries;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::usage(format!("the ledger has no delegation {id:?}, and none whose task is that"))
            .hint(format!("look with: {}", session.options.continuation.ledger("list --which all")))),
        more => {
            let ids: Vec<String> = found.iter().map(|entry| entry.id.to_string()).collect();
            Err(Failure::usage(format!("{more} delegations have a task {id:?}: {}", ids.join(", ")))
                .hint("name one of them"))
        }
    }
}

/// The entries of one kind, the newest first, and those that can't be read.
async fn entries(
    session: &Session,
    ledger: &Ledger,
    filter: Filter,
    limit: usize,
) -> Result<(Vec<Entry>, Vec<LedgerError>), Failure> {
    let (mut all, mut unreadable, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let left = u32::try_from(limit.saturating_sub(all.len())).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let query = ListQuery { filter, order: Order::NewestFirst, after, limit: left };
        let page = ledger.list(query).await.map_err(|error| failure(session, &error))?;
        all.extend(page.entries);
        unreadable.extend(page.unreadable);
        after = page.next;
        if after.is_none() || all.len() >= limit {
            return Ok((all, unreadable));
        }
    }
}

async fn list(session: &Session, ledger: &Ledger, flags: &EntriesFlags) -> Result<(), End> {
    let filter = match flags.which {
        Which::Unsettled => Filter::Unsettled,
        Which::Open => Filter::Open,
        Which::NeedsPerson => Filter::NeedsPerson,
        Which::Settled => Filter::Settled,
        Which::All => Filter::All,
    };
    let limit = usize::try_from(flags.limit).unwrap_or(usize::MAX);
    let (found, unreadable) = entries(session, ledger, filter, limit).await?;
    let counts = ledger.counts().await.map_err(|error| failure(session, &error))?;
    match session.options.output {
        OutputForm::Json => {
            let of_state = counts.iter().map(|count| (count.state.name().to_owned(), json!(count.entries)));
            let listed = json!({
                "entries": found.iter().map(text::json).collect::<Vec<_>>(),
                "unreadable": unreadable.iter().map(|error| told(error)).collect::<Vec<_>>(),
                "counts": of_state.collect::<serde_json::Map<_, _>>(),
            });
            session.print_json(&listed)?;
        }
        OutputForm::Text => {
            let mut page = Page::new();
            for entry in &found {
                text::line(&mut page, entry);
            }
            for error in &unreadable {
                page.field("Unreadable", told(error));
            }
            let words: Vec<String> =
                counts.iter().map(|count| format!("{} {}", count.entries, count.state.name())).collect();
            page.field("Shown", found.len());
            page.field("In the ledger", words.join(", "));
            session.print(&page.into_text())?;
        }
    }
    Ok(())
}

async fn show(session: &Session, ledger: &Ledger, flags: &EntryFlags) -> Result<(), End> {
    let failed = |error| failure(session, &error);
    let entry = find(session, ledger, &flags.id).await?;
    let request = ledger.request(entry.id).await.map_err(failed)?;
    let outcome = ledger.outcome(entry.id).await.map_err(failed)?;
    let history = ledger.history(entry.id, 0, HISTORY_MAX).await.map_err(failed)?;
    match session.options.output {
        OutputForm::Json => {
            let outcome = outcome.map(|outcome| text::proto(&response(outcome)));
            let history: Vec<Value> = history.iter().map(text::happening).collect();
            let entry = text::json(&entry);
            let shown =
                json!({ "entry": entry, "request": text::proto(&request), "outcome": outcome, "history": history });
            session.print_json(&shown)
        }
        OutputForm::Text => {
            let mut page = Page::new();
            text::whole(&mut page, &entry);
            page.field_if("Next", &text::next(session, &entry).unwrap_or_default());
            for happening in &history {
                text::write_happening(&mut page, happening);
            }
            if let Some(outcome) = outcome {
                text::outcome(session, &mut page, &outcome);
            }
            session.print(&page.into_text())
        }
    }
}

async fn answer(session: &Session, ledger: &Ledger, flags: &AnswerFlags) -> Result<(), End> {
    let parts = parts(&flags.parts.0, &mut std::io::stdin().lock())?;
    let entry = find(session, ledger, &flags.id).await?;
    let agents = Agents::of(session);
    let client = agents.client(&entry.route).await.map_err(|error| session.failure(&error))?;
    let request = SendMessageRequest {
        // The ledger knows the task and its context.
        message: Some(of_user("", "", parts)),
        configuration: Some(SendMessageConfiguration::default()),
        ..SendMessageRequest::default()
    };
    let mut options = ResumeOptions::default();
    options.follow_up.follow = session.follow();
    if flags.take_over {
        options.mode = longhaul_client::ledger::ClaimMode::TakeOver;
    }
    session.delegated(Some(entry.id));
    let followed = ledger.answer(entry.id, &client, request, options).await;
    let followed = followed.map_err(|error| failure(session, &error))?;
    let finding = delegate::follow(session, followed, Delivery::Whole).await?;
    match delegate::outcome(session, ledger, finding).await? {
        Some(outcome) => delegate::show(session, outcome),
        None => Ok(()),
    }
}

async fn resolve(session: &Session, ledger: &Ledger, command: &ResolveCommand) -> Result<(), End> {
    let entry = find(session, ledger, &command.entry().id).await?;
    let decision = match command {
        ResolveCommand::SendAgain(_) => Decision::SendAgain,
        ResolveCommand::Adopt(flags) => Decision::Adopt { task_id: flags.task.clone() },
        ResolveCommand::Abandon(flags) => Decision::Abandon { why: flags.why.clone() },
        ResolveCommand::Acknowledge(_) => Decision::Acknowledge,
    };
    let decided = ledger.decide(entry.id, entry.version, decision, now()).await;
    show_entry(session, &decided.map_err(|error| failure(session, &error))?)
}

fn show_entry(session: &Session, entry: &Entry) -> Result<(), End> {
    match session.options.output {
        OutputForm::Json => session.print_json(&text::json(entry)),
        OutputForm::Text => {
            let mut page = Page::new();
            text::whole(&mut page, entry);
            page.field_if("Next", &text::next(session, entry).unwrap_or_default());
            session.print(&page.into_text())
        }
    }
}

async fn remove(session: &Session, ledger: &Ledger, flags: &EntryFlags) -> Result<(), End> {
    let entry = find(session, ledger, &flags.id).await?;
    ledger.remove(entry.id).await.map_err(|error| failure(session, &error))?;
    removed(session, 1)
}

async fn prune(session: &Session, ledger: &Ledger, flags: &PruneFlags) -> Result<(), End> {
    let older = i64::try_from(flags.older_than.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp::from_unix_millis(now().unix_millis().saturating_sub(older));
    let count = ledger.prune(before).await.map_err(|error| failure(session, &error))?;
    removed(session, count)
}

fn removed(session: &Session, count: u64) -> Result<(), End> {
    match session.options.output {
        OutputForm::Json => session.print_json(&json!({ "removed": count })),
        OutputForm::Text => {
            let mut page = Page::new();
            page.field("Removed", count);
            session.print(&page.into_text())
        }
    }
}

/// An outcome in the form in which the protocol answers a send.
pub fn response(outcome: Outcome) -> SendMessageResponse {
    SendMessageResponse { payload: Some(outcome.into_payload()) }
}
