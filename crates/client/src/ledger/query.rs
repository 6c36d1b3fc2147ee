//! What the ledger can be asked.

use longhaul_protocol::{Timestamp, from_json, wire};
use rusqlite::{OptionalExtension as _, Params};

use super::change;
use super::db::Db;
use super::entry::{EntryId, Follower, Happening, Held, Kept};
use super::news::Telling;
use super::row::{self, COLUMNS, Stored};
use super::worker::Trouble;
use super::{Entry, LedgerError, StateKind};
use crate::Outcome;

/// How many entries, or lines of history, one answer has at the most.
pub const PAGE_MAX: u32 = 1000;

/// Which entries to list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Filter {
    /// All.
    #[default]
    All,
    /// Those with which the client has something to do ([`State::is_open`](super::State::is_open)).
    Open,
    /// Those that a person has to look at ([`Entry::needs_person`]).
    NeedsPerson,
    /// Those that are not settled.
    Unsettled,
    /// Those that are over.
    Settled,
    /// Those in this state.
    State(StateKind),
}

/// In which order to list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Order {
    /// Those first that were written down first.
    #[default]
    OldestFirst,
    /// Those first that were written down last.
    NewestFirst,
}

/// What to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListQuery {
    /// Which entries.
    pub filter: Filter,
    /// In which order.
    pub order: Order,
    /// The cursor of the page before; none for the first.
    pub after: Option<EntryId>,
    /// How many at the most: 1 to [`PAGE_MAX`], moved into that range.
    pub limit: u32,
}

/// A part of the entries that were asked for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// Entries that can't be read ([`LedgerError::Corrupt`]), in the place of which the others are not held up.
    pub unreadable: Vec<LedgerError>,
    /// Where the next page begins; none after the last.
    pub next: Option<EntryId>,
}

/// How many entries stand in a state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Count {
    /// The state.
    pub state: StateKind,
    /// How many.
    pub entries: u64,
}

fn condition(filter: Filter) -> String {
    match filter {
        Filter::All => "TRUE".to_owned(),
        Filter::Open => OPEN.to_owned(),
        Filter::Unsettled => "state <= 7".to_owned(),
        Filter::Settled => "state >= 8".to_owned(),
        Filter::NeedsPerson => {
            "state <= 7 AND (state IN (3, 4, 6, 7) OR (alarmed_at IS NOT NULL AND acknowledged_at IS NULL))".to_owned()
        }
        Filter::State(kind) => format!("state = {}", kind.code()),
    }
}

/// Both conditions: by the second SQLite knows that the index of those that are not settled has them all.
const OPEN: &str = "state <= 5 AND state <= 7";

/// Reads rows of [`COLUMNS`] in the order of their ids, at most `limit` of them.
fn page(db: &Db<'_>, sql: &str, params: impl Params, limit: u32) -> Result<Page<Stored>, Trouble> {
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query(params)?;
    let mut page = Page { entries: Vec::new(), unreadable: Vec::new(), next: None };
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        if count == limit {
            page.next = Some(EntryId::from_bytes(row.get("id")?));
        }
        match row::read(row)? {
            Ok(stored) => page.entries.push(stored),
            Err(unreadable) => page.unreadable.push(unreadable),
        }
    }
    Ok(page)
}

fn map<T>(page: Page<Stored>, mut make: impl FnMut(Stored) -> Result<T, Trouble>) -> Result<Page<T>, Trouble> {
    let Page { entries, unreadable, next } = page;
    Ok(Page { entries: entries.into_iter().map(&mut make).collect::<Result<_, _>>()?, unreadable, next })
}

fn bounded(limit: u32) -> u32 {
    limit.clamp(1, PAGE_MAX)
}

pub(super) fn list(db: &Db<'_>, query: ListQuery) -> Result<Page<Entry>, Trouble> {
    let limit = bounded(query.limit);
    let (order, compare, start) = match query.order {
        Order::OldestFirst => ("ASC", ">", EntryId::from_bytes([0; 16])),
        Order::NewestFirst => ("DESC", "<", EntryId::from_bytes([0xff; 16])),
    };
    let sql = format!(
        "/* list */ SELECT {COLUMNS} FROM entry WHERE {} AND id {compare} ?1 ORDER BY id {order} LIMIT ?2",
        condition(query.filter)
    );
    let after = query.after.unwrap_or(start);
    map(page(db, &sql, (after.as_bytes(), limit), limit)?, |stored| Ok(stored.entry))
}

fn unclaimed(db: &Db<'_>, after: Option<EntryId>, limit: u32, now: Timestamp) -> Result<Page<Stored>, Trouble> {
    let sql = format!(
        "/* unclaimed */ SELECT {COLUMNS} FROM entry
        WHERE {OPEN} AND id > ?1 AND (claim_until IS NULL OR claim_until <= ?2) ORDER BY id LIMIT ?3"
    );
    let after = after.unwrap_or(EntryId::from_bytes([0; 16]));
    page(db, &sql, (after.as_bytes(), now.unix_millis(), limit), limit)
}

pub(super) fn open_unclaimed(
    db: &Db<'_>,
    after: Option<EntryId>,
    limit: u32,
    now: Timestamp,
) -> Result<Page<Entry>, Trouble> {
    map(unclaimed(db, after, bounded(limit), now)?, |stored| Ok(stored.entry))
}

pub(super) fn claim_open(
    db: &Db<'_>,
    follower: &Follower,
    after: Option<EntryId>,
    limit: u32,
    now: Timestamp,
) -> Result<Page<Held>, Trouble> {
    let found = unclaimed(db, after, bounded(limit), now)?;
    map(found, |stored| change::hold(db, stored, follower, now))
}

pub(super) fn claims_run_out_at(db: &Db<'_>, now: Timestamp) -> Result<Option<Timestamp>, Trouble> {
    let sql = format!("/* claims_run_out_at */ SELECT min(claim_until) FROM entry WHERE {OPEN} AND claim_until > ?1");
    let next: Option<i64> = db.prepare(&sql)?.query_row([now.unix_millis()], |row| row.get(0))?;
    Ok(next.map(Timestamp::from_unix_millis))
}

pub(super) fn find_by_task(db: &Db<'_>, task_id: &str) -> Result<Page<Entry>, Trouble> {
    let sql = format!("/* find_by_task */ SELECT {COLUMNS} FROM entry WHERE task_id = ?1 ORDER BY id DESC LIMIT ?2");
    let found = page(db, &sql, (task_id, PAGE_MAX), PAGE_MAX)?;
    map(Page { next: None, ..found }, |stored| Ok(stored.entry))
}

fn due(db: &Db<'_>, now: Timestamp, limit: u32) -> Result<Page<Stored>, Trouble> {
    let sql = format!("/* due */ SELECT {COLUMNS} FROM entry WHERE alarm_at <= ?1 ORDER BY alarm_at LIMIT ?2");
    let found = page(db, &sql, (now.unix_millis(), limit), limit)?;
    // They are not in the order of their ids, and those that are raised are due no more: the next page is the first again.
    Ok(Page { next: None, ..found })
}

pub(super) fn due_alarms(db: &Db<'_>, now: Timestamp, limit: u32) -> Result<Page<Entry>, Trouble> {
    map(due(db, now, bounded(limit))?, |stored| Ok(stored.entry))
}

pub(super) fn raise_alarms(db: &Db<'_>, now: Timestamp, limit: u32) -> Result<Page<Entry>, Trouble> {
    map(due(db, now, bounded(limit))?, |stored| change::raise(db, stored, now))
}

pub(super) fn counts(db: &Db<'_>) -> Result<Vec<Count>, Trouble> {
    let mut statement = db.prepare("/* counts */ SELECT state, count(*) FROM entry GROUP BY state ORDER BY state")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let mut counts = Vec::new();
    for row in rows {
        let (code, entries) = row?;
        // One that can't be read is named where it is listed.
        if let Some(state) = StateKind::from_code(code) {
            counts.push(Count { state, entries: entries.unsigned_abs() });
        }
    }
    Ok(counts)
}

pub(super) fn request(db: &Db<'_>, id: EntryId) -> Result<wire::SendMessageRequest, Trouble> {
    let stored = row::load(db, id)?;
    let json: Option<Vec<u8>> = db
        .prepare("/* request */ SELECT json FROM request WHERE entry = ?1 AND ordinal = ?2")?
        .query_row((stored.number, stored.requests), |row| row.get(0))
        .optional()?;
    let corrupt = |problem| LedgerError::Corrupt { entry: id, problem };
    let json = json.ok_or_else(|| corrupt("its request is not there".to_owned()))?;
    Ok(from_json(&json).map_err(|error| corrupt(format!("its request: {error}")))?)
}

pub(super) fn outcome(db: &Db<'_>, id: EntryId) -> Result<Option<Outcome>, Trouble> {
    let stored = row::load(db, id)?;
    if stored.entry.kept == Kept::Nothing {
        return Ok(None);
    }
    let found: Option<(i64, Vec<u8>)> = db
        .prepare("/* outcome */ SELECT kind, json FROM told WHERE entry = ?1")?
        .query_row([stored.number], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let corrupt = |problem| LedgerError::Corrupt { entry: id, problem };
    let (kind, json) = found.ok_or_else(|| corrupt("what the agent told is not there".to_owned()))?;
    let outcome = Telling::read(kind, &json).map_err(|problem| corrupt(format!("what the agent told: {problem}")))?;
    Ok(Some(outcome))
}

pub(super) fn history(db: &Db<'_>, id: EntryId, after: u64, limit: u32) -> Result<Vec<Happening>, Trouble> {
    let stored = row::load(db, id)?;
    let mut statement = db.prepare(
        "/* history */ SELECT sequence, at, what, state, detail FROM history
        WHERE entry = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
    )?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = statement.query((stored.number, after, bounded(limit)))?;
    let mut happenings = Vec::new();
    while let Some(row) = rows.next()? {
        let code: i64 = row.get("state")?;
        let unknown = || LedgerError::Corrupt { entry: id, problem: format!("history: there is no state {code}") };
        happenings.push(Happening {
            sequence: row.get::<_, i64>("sequence")?.unsigned_abs(),
            at: Timestamp::from_unix_millis(row.get("at")?),
            what: row.get("what")?,
            state: StateKind::from_code(code).ok_or_else(unknown)?,
            detail: row.get("detail")?,
        });
    }
    Ok(happenings)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn plan(connection: &Connection, filter: Filter) -> String {
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT {COLUMNS} FROM entry WHERE {} AND id > ?1 ORDER BY id LIMIT ?2",
            condition(filter)
        );
        let mut statement = connection.prepare(&sql).unwrap();
        let steps = statement.query_map(([0_u8; 16], 10), |row| row.get::<_, String>(3)).unwrap();
        steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_page_costs_its_own_length() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema_0001.sql")).unwrap();
        for (filter, index) in [
            (Filter::All, "sqlite_autoindex_entry_1"),
            (Filter::Open, "entry_unsettled"),
            (Filter::Unsettled, "entry_unsettled"),
            (Filter::NeedsPerson, "entry_unsettled"),
            (Filter::State(StateKind::Question), "entry_state"),
        ] {
            let plan = plan(&connection, filter);
            assert!(plan.contains(index) && !plan.contains("B-TREE"), "{filter:?}: {plan}");
        }
    }
}
