//! `ledger recover`: everything open is found again, and followed to its rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use longhaul_client::ledger::{EntryId, Filter, Finding, Ledger, LedgerError, RecoverOptions, RunningTasks};
use serde_json::{Value, json};

use crate::arguments::OutputForm;
use crate::caller::arguments::RecoverFlags;
use crate::caller::failure::{Exit, Failure, LocalCode, told};
use crate::caller::render::Page;
use crate::caller::session::{End, Session};

use super::agents::Agents;
use super::{entries, failure, now, text};

/// How many entries are looked at for who follows them.
const LOOKED_AT_MAX: usize = 10_000;

/// Recovers, and writes each finding as it comes.
///
/// # Errors
///
/// [`End`] when something is left that could not be done, or waits for a person: after all of it was written.
pub async fn recover(session: &Session, ledger: &Ledger, flags: &RecoverFlags) -> Result<(), End> {
    session.delegated(None);
    say_who_is_waited_for(session, ledger).await?;
    let running = if flags.once { RunningTasks::Leave } else { RunningTasks::Follow };
    let mut recovery = ledger.recover(Arc::new(Agents::of(session)), options(session, running));
    let mut left = Left::default();
    loop {
        let finding = tokio::select! {
            finding = recovery.next() => finding,
            () = session.stop.cancelled() => {
                recovery.stop().await;
                return Ok(());
            }
        };
        let Some(finding) = finding else { break };
        left.count(session, &finding);
        match session.options.output {
            OutputForm::Json => session.print_json(&json_of(session, &finding))?,
            OutputForm::Text => session.print(&text_of(session, &finding))?,
        }
    }
    left.end(session)
}

/// Nothing may come for as long as a claim holds.
async fn say_who_is_waited_for(session: &Session, ledger: &Ledger) -> Result<(), End> {
    let (open, _) = entries(session, ledger, Filter::Open, LOOKED_AT_MAX).await?;
    let claimed: Vec<_> = open.iter().filter(|entry| entry.is_claimed(now())).collect();
    if let Some(until) = claimed.iter().filter_map(|entry| entry.claimed.as_ref()).map(|claimed| claimed.until).max() {
        let count = claimed.len();
        eprintln!("longhaul: other processes follow {count} of them, or did until they died, which shows at {until}");
    }
    Ok(())
}

/// How a recovery goes about it.
pub fn options(session: &Session, running: RunningTasks) -> RecoverOptions {
    let mut options = RecoverOptions::default();
    options.follow_up.follow = session.follow();
    options.running = running;
    options
}

/// What is left.
#[derive(Debug, Default)]
pub struct Left {
    people: BTreeSet<EntryId>,
    failed: Option<Failure>,
}

impl Left {
    /// Takes note of a finding.
    pub fn count(&mut self, session: &Session, finding: &Result<Finding, LedgerError>) {
        match finding {
            Ok(
                Finding::Question(entry)
                | Finding::Authorization(entry)
                | Finding::Uncertain(entry)
                | Finding::Lost(entry)
                | Finding::Alarm(entry),
            ) => {
                self.people.insert(entry.id);
            }
            // What ended after its alarm needs nobody any more.
            Ok(Finding::Settled(entry)) => {
                self.people.remove(&entry.id);
            }
            Ok(Finding::Unreachable { error, .. }) => {
                let failure = session.failure(error);
                // Whatever kept it from the agent: its entries stay open.
                self.failed.get_or_insert(failure);
            }
            Ok(_) => {}
            Err(error) => {
                self.failed.get_or_insert(failure(session, error));
            }
        }
    }

    /// How the command ends by it.
    ///
    /// # Errors
    ///
    /// [`End::Told`] when something is left.
    pub fn end(self, session: &Session) -> Result<(), End> {
        if let Some(failure) = self.failed {
            let exit = if failure.exit == Exit::Usage { Exit::Failed } else { failure.exit };
            let message = format!("not all could be recovered: {}", failure.message);
            return Err(End::Told(Failure { message, exit, ..failure }));
        }
        match self.people.len() {
            0 => Ok(()),
            people => {
                let next = session.options.continuation.ledger("list --which needs-person");
                let told = Failure::local(LocalCode::NeedsPerson, format!("{people} of them wait for a person"));
                Err(End::Told(told.hint(format!("look with: {next}"))))
            }
        }
    }
}

fn word(finding: &Finding) -> &'static str {
    match finding {
        Finding::Settled(_) => "settled",
        Finding::Refused { .. } => "refused",
        Finding::Question(_) => "question",
        Finding::Authorization(_) => "authorization",
        Finding::Uncertain(_) => "uncertain",
        Finding::Lost(_) => "lost",
        Finding::Running(_) => "running",
        Finding::Alarm(_) => "alarm",
        Finding::Trouble { .. } => "trouble",
        Finding::Unreachable { .. } => "unreachable",
        Finding::Elsewhere(_) => "elsewhere",
        _ => "unknown",
    }
}

fn problem(session: &Session, finding: &Finding) -> Option<String> {
    match finding {
        Finding::Refused { error, .. } | Finding::Trouble { error, .. } | Finding::Unreachable { error, .. } => {
            Some(session.failure(error).message)
        }
        _ => None,
    }
}

fn json_of(session: &Session, finding: &Result<Finding, LedgerError>) -> Value {
    match finding {
        Ok(finding) => {
            let agent = match finding {
                Finding::Trouble { route, .. } => Some(text::route(route)),
                _ => None,
            };
            json!({
                "finding": word(finding),
                "entry": finding.entry().map(text::json),
                "agent": agent,
                "error": problem(session, finding),
            })
        }
        Err(error) => json!({ "finding": "failed", "entry": null, "agent": null, "error": told(error) }),
    }
}

fn text_of(session: &Session, finding: &Result<Finding, LedgerError>) -> String {
    let mut page = Page::new();
    match finding {
        Err(error) => {
            page.field("Finding", "failed");
            page.field("Error", told(error));
        }
        Ok(finding) => {
            page.field("Finding", word(finding));
            if let Finding::Trouble { route, .. } = finding {
                page.field("Agent", &route.card);
            }
            if let Some(entry) = finding.entry() {
                text::short(&mut page, entry);
                let next = if entry.needs_person() { text::next(session, entry) } else { None };
                page.field_if("Next", &next.unwrap_or_default());
            }
            page.field_if("Error", &problem(session, finding).unwrap_or_default());
        }
    }
    page.into_text() + "\n"
}
