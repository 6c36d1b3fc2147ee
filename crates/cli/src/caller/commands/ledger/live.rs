//! `watch --ledger`: all that is not settled, while it is followed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use longhaul_client::ledger::{Entry, EntryId, Filter, Ledger, LedgerError, RunningTasks, State};
use tokio::time::{MissedTickBehavior, interval};

use crate::arguments::OutputForm;
use crate::caller::failure::Failure;
use crate::caller::progress::Board;
use crate::caller::render::Page;
use crate::caller::session::{End, Session};

use super::agents::Agents;
use super::recover::{Left, options};
use super::{entries, failure, now, open, text};

/// How often the ledger is looked into.
const LOOK: Duration = Duration::from_millis(300);
/// How many entries are watched at once.
const WATCHED_MAX: usize = 200;

/// Watches until nothing runs any more.
///
/// # Errors
///
/// [`End`] as `ledger recover` ends.
pub async fn watch(session: &Session) -> Result<(), End> {
    let ledger = open(session).await?;
    let (mut found, _) = entries(session, &ledger, Filter::Unsettled, WATCHED_MAX + 1).await?;
    if found.len() > WATCHED_MAX {
        let message = format!("the ledger has more than {WATCHED_MAX} delegations to watch");
        return Err(Failure::usage(message)
            .hint("longhaul ledger recover follows them, and says what it finds")
            .into());
    }
    found.reverse();
    session.delegated(None);
    let mut view = View::begin(session, found)?;
    let mut left = Left::default();
    let mut recovery = ledger.recover(Arc::new(Agents::of(session)), options(session, RunningTasks::Follow));
    let mut is_recovering = true;
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while is_recovering || view.is_followed_elsewhere() {
        tokio::select! {
            finding = recovery.next(), if is_recovering => match finding {
                Some(finding) => left.count(session, &finding),
                None => is_recovering = false,
            },
            () = session.stop.cancelled() => {
                view.end();
                recovery.stop().await;
                return Ok(());
            }
            _ = looks.tick() => view.look(&ledger).await?,
        }
    }
    view.look(&ledger).await?;
    view.end();
    left.end(session)
}

/// What is shown.
struct View<'a> {
    session: &'a Session,
    board: Board,
    entries: BTreeMap<EntryId, Entry>,
}

impl<'a> View<'a> {
    fn begin(session: &'a Session, found: Vec<Entry>) -> Result<Self, End> {
        let ids: Vec<String> = found.iter().map(|entry| entry.id.to_string()).collect();
        let board = Board::begin(session.options.output, &ids);
        let mut view = Self { session, board, entries: BTreeMap::new() };
        for entry in found {
            view.changed(entry)?;
        }
        Ok(view)
    }

    /// Whether something runs that another process follows.
    fn is_followed_elsewhere(&self) -> bool {
        self.entries.values().any(|entry| {
            let runs = matches!(entry.state, State::Prepared { .. } | State::Accepted { .. } | State::Unknown { .. });
            runs && entry.is_claimed(now())
        })
    }

    async fn look(&mut self, ledger: &Ledger) -> Result<(), End> {
        let open: Vec<EntryId> =
            self.entries.values().filter(|entry| !entry.state.is_settled()).map(|entry| entry.id).collect();
        for id in open {
            match ledger.get(id).await {
                Ok(entry) if self.entries.get(&id).is_some_and(|known| known.version == entry.version) => {
                    self.entries.insert(id, entry);
                }
                Ok(entry) => self.changed(entry)?,
                // Somebody settled and removed it meanwhile.
                Err(LedgerError::NotFound { .. }) => {
                    self.entries.remove(&id);
                }
                Err(error) => return Err(failure(self.session, &error).into()),
            }
        }
        Ok(())
    }

    fn changed(&mut self, entry: Entry) -> Result<(), End> {
        let id = entry.id.to_string();
        let purpose = if entry.purpose.is_empty() { &entry.route.card } else { &entry.purpose };
        let words = format!("{}, {purpose}", entry.state.kind().name());
        if entry.state.is_settled() || entry.state.waits_for_person() {
            self.board.rest(&id, &words);
        } else {
            self.board.say(&id, &words);
        }
        match self.session.options.output {
            OutputForm::Json => self.session.print_json(&text::json(&entry))?,
            OutputForm::Text if self.board.is_drawn() => {}
            OutputForm::Text => {
                let mut page = Page::new();
                text::short(&mut page, &entry);
                self.session.print(&(page.into_text() + "\n"))?;
            }
        }
        self.entries.insert(entry.id, entry);
        Ok(())
    }

    fn end(self) {
        self.board.end();
    }
}
