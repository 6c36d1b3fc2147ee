//! An entry as it lies in the file.

use std::time::Duration;

use longhaul_protocol::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{OptionalExtension as _, Row, named_params};

use super::db::Db;
use super::entry::{Claimant, Deadline, EntryId, Follower, Kept};
use super::worker::Trouble;
use super::{Entry, LedgerError, Note, Route, State, StateKind};

/// How many lines of history are kept of one entry: the first and the newest. 10,000.
pub const HISTORY_MAX: i64 = 10_000;
/// How many of these are the first.
const HISTORY_FIRST: i64 = 100;

/// All of a row. `number` and the counters are for the file alone.
pub(super) const COLUMNS: &str = "number, id, version, state, task_id, note, since, card, interface_url, binding,
    protocol_version, tenant, purpose, message_id, context_id, created_at, deadline_at, quiet_max, alarm_at, alarmed_at,
    acknowledged_at, last_heard_at, last_event_id, attempts, requests, happenings, kept, claimed_by, claim_until, claim_epoch";

/// A row that was read: the entry, and what only the file needs.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) number: i64,
    pub(super) entry: Entry,
    pub(super) requests: i64,
    pub(super) happenings: i64,
    pub(super) claim_epoch: i64,
}

/// Reads one row of [`COLUMNS`]. Only the outer error is the database's.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Result<Stored, LedgerError>> {
    let id = EntryId::from_bytes(row.get("id")?);
    let cells = Cells { row, id };
    Ok(cells.stored())
}

struct Cells<'a> {
    row: &'a Row<'a>,
    id: EntryId,
}

impl Cells<'_> {
    fn corrupt(&self, problem: String) -> LedgerError {
        LedgerError::Corrupt { entry: self.id, problem }
    }

    fn get<T: FromSql>(&self, name: &'static str) -> Result<T, LedgerError> {
        self.row.get(name).map_err(|error| self.corrupt(format!("{name}: {error}")))
    }

    fn count<T: TryFrom<i64>>(&self, name: &'static str) -> Result<T, LedgerError> {
        let value = self.get::<i64>(name)?;
        T::try_from(value).map_err(|_| self.corrupt(format!("{name}: {value} is out of range")))
    }

    fn time(&self, name: &'static str) -> Result<Timestamp, LedgerError> {
        self.get(name).map(Timestamp::from_unix_millis)
    }

    fn maybe_time(&self, name: &'static str) -> Result<Option<Timestamp>, LedgerError> {
        Ok(self.get::<Option<i64>>(name)?.map(Timestamp::from_unix_millis))
    }

    fn stored(&self) -> Result<Stored, LedgerError> {
        Ok(Stored {
            number: self.get("number")?,
            entry: self.entry()?,
            requests: self.get("requests")?,
            happenings: self.get("happenings")?,
            claim_epoch: self.get("claim_epoch")?,
        })
    }

    fn entry(&self) -> Result<Entry, LedgerError> {
        Ok(Entry {
            id: self.id,
            route: self.route()?,
            purpose: self.get("purpose")?,
            message_id: self.get("message_id")?,
            context_id: self.get("context_id")?,
            created_at: self.time("created_at")?,
            deadline: self.deadline()?,
            state: self.state()?,
            since: self.time("since")?,
            last_event_id: self.get("last_event_id")?,
            last_heard_at: self.maybe_time("last_heard_at")?,
            attempts: self.count("attempts")?,
            alarm_at: self.maybe_time("alarm_at")?,
            alarmed_at: self.maybe_time("alarmed_at")?,
            acknowledged_at: self.maybe_time("acknowledged_at")?,
            claimed: self.claimant()?,
            kept: self.kept()?,
            version: self.count("version")?,
        })
    }

    fn route(&self) -> Result<Route, LedgerError> {
        Ok(Route {
            card: self.get("card")?,
            interface_url: self.get("interface_url")?,
            binding: self.get("binding")?,
            protocol_version: self.get("protocol_version")?,
            tenant: self.get("tenant")?,
        })
    }

    fn deadline(&self) -> Result<Option<Deadline>, LedgerError> {
        match (self.maybe_time("deadline_at")?, self.get::<Option<i64>>("quiet_max")?) {
            (None, None) => Ok(None),
            (Some(moment), None) => Ok(Some(Deadline::At(moment))),
            (None, Some(_)) => Ok(Some(Deadline::Quiet(Duration::from_millis(self.count("quiet_max")?)))),
            (Some(_), Some(_)) => Err(self.corrupt("deadline_at, quiet_max: both are set".to_owned())),
        }
    }

    fn claimant(&self) -> Result<Option<Claimant>, LedgerError> {
        match (self.get::<Option<String>>("claimed_by")?, self.maybe_time("claim_until")?) {
            (None, None) => Ok(None),
            (Some(by), Some(until)) => {
                Ok(Some(Claimant { by: Follower::new(&by).map_err(|e| self.corrupt(e.to_string()))?, until }))
            }
            (Some(_), None) | (None, Some(_)) => {
                Err(self.corrupt("claimed_by, claim_until: only one of them is set".to_owned()))
            }
        }
    }

    fn kept(&self) -> Result<Kept, LedgerError> {
        match self.get::<i64>("kept")? {
            0 => Ok(Kept::Nothing),
            1 => Ok(Kept::Whole),
            2 => Ok(Kept::Trimmed),
            other => Err(self.corrupt(format!("kept: there is no {other}"))),
        }
    }

    fn state(&self) -> Result<State, LedgerError> {
        let code = self.get("state")?;
        let kind = StateKind::from_code(code).ok_or_else(|| self.corrupt(format!("state: there is no {code}")))?;
        let task_id = self.get::<Option<String>>("task_id")?;
        let note = Note::new(&self.get::<String>("note")?);
        let known = || task_id.clone().ok_or_else(|| self.corrupt(format!("task_id: {kind} has one")));
        Ok(match kind {
            StateKind::Prepared => State::Prepared { task_id },
            StateKind::Accepted => State::Accepted { task_id: known()? },
            StateKind::Question => State::Question { task_id: known()?, text: note },
            StateKind::Authorization => State::Authorization { task_id: known()?, text: note },
            StateKind::Unknown => State::Unknown { task_id: known()? },
            StateKind::Uncertain => State::Uncertain { task_id, why: note },
            StateKind::Lost => State::Lost { task_id: known()?, why: note },
            StateKind::Completed
            | StateKind::Failed
            | StateKind::Canceled
            | StateKind::Rejected
            | StateKind::Answered
            | StateKind::Refused
            | StateKind::Abandoned => {
                let end = kind.end().ok_or_else(|| self.corrupt(format!("state: {kind} is no end")))?;
                State::Settled { end, task_id, text: note }
            }
        })
    }
}

/// Finds an entry.
pub(super) fn load(db: &Db<'_>, id: EntryId) -> Result<Stored, Trouble> {
    let sql = format!("/* load */ SELECT {COLUMNS} FROM entry WHERE id = ?1");
    let found = db.prepare(&sql)?.query_row([id.as_bytes()], read).optional()?;
    Ok(found.ok_or(LedgerError::NotFound { entry: id })??)
}

fn millis(moment: Option<Timestamp>) -> Option<i64> {
    moment.map(Timestamp::unix_millis)
}

/// Writes down a new entry. Returns its row's number.
pub(super) fn insert(db: &Db<'_>, entry: &Entry) -> Result<i64, Trouble> {
    let (deadline_at, quiet_max) = match entry.deadline {
        None => (None, None),
        Some(Deadline::At(moment)) => (Some(moment.unix_millis()), None),
        Some(Deadline::Quiet(longest)) => (None, Some(i64::try_from(longest.as_millis()).unwrap_or(i64::MAX))),
    };
    db.prepare(
        "/* insert */ INSERT INTO entry (id, version, state, note, since, card, interface_url, binding,
                protocol_version, tenant, purpose, message_id, context_id, created_at, deadline_at, quiet_max,
                attempts, requests, happenings, kept, claim_epoch)
            VALUES (:id, 0, 1, '', :since, :card, :interface_url, :binding, :protocol_version, :tenant, :purpose,
                :message_id, :context_id, :created_at, :deadline_at, :quiet_max, 0, 0, 0, 0, 0)",
    )?
    .execute(named_params! {
        ":id": entry.id.as_bytes(),
        ":since": entry.since.unix_millis(),
        ":card": entry.route.card,
        ":interface_url": entry.route.interface_url,
        ":binding": entry.route.binding,
        ":protocol_version": entry.route.protocol_version,
        ":tenant": entry.route.tenant,
        ":purpose": entry.purpose,
        ":message_id": entry.message_id,
        ":context_id": entry.context_id,
        ":created_at": entry.created_at.unix_millis(),
        ":deadline_at": deadline_at,
        ":quiet_max": quiet_max,
    })?;
    Ok(db.connection.last_insert_rowid())
}

/// Writes all that can change of an entry that was read in the same transaction.
pub(super) fn update(db: &Db<'_>, stored: &Stored) -> Result<(), Trouble> {
    let entry = &stored.entry;
    let kept = match entry.kept {
        Kept::Nothing => 0,
        Kept::Whole => 1,
        Kept::Trimmed => 2,
    };
    db.prepare(
        "/* update */ UPDATE entry SET version = :version, state = :state, task_id = :task_id, note = :note,
                since = :since, message_id = :message_id, context_id = :context_id, alarm_at = :alarm_at,
                alarmed_at = :alarmed_at, acknowledged_at = :acknowledged_at, last_heard_at = :last_heard_at,
                last_event_id = :last_event_id, attempts = :attempts, requests = :requests, happenings = :happenings,
                kept = :kept, claimed_by = :claimed_by, claim_until = :claim_until, claim_epoch = :claim_epoch
            WHERE number = :number",
    )?
    .execute(named_params! {
        ":number": stored.number,
        ":version": i64::try_from(entry.version).unwrap_or(i64::MAX),
        ":state": entry.state.kind().code(),
        ":task_id": entry.state.task_id(),
        ":note": entry.state.text(),
        ":since": entry.since.unix_millis(),
        ":message_id": entry.message_id,
        ":context_id": entry.context_id,
        ":alarm_at": millis(entry.alarm_at),
        ":alarmed_at": millis(entry.alarmed_at),
        ":acknowledged_at": millis(entry.acknowledged_at),
        ":last_heard_at": millis(entry.last_heard_at),
        ":last_event_id": entry.last_event_id,
        ":attempts": entry.attempts,
        ":requests": stored.requests,
        ":happenings": stored.happenings,
        ":kept": kept,
        ":claimed_by": entry.claimed.as_ref().map(|claimed| claimed.by.as_str()),
        ":claim_until": entry.claimed.as_ref().map(|claimed| claimed.until.unix_millis()),
        ":claim_epoch": stored.claim_epoch,
    })?;
    Ok(())
}

/// Appends a line to the entry's history, which names the state that the entry has by now.
pub(super) fn happened(
    db: &Db<'_>,
    stored: &mut Stored,
    now: Timestamp,
    what: &str,
    detail: &str,
) -> Result<(), Trouble> {
    stored.happenings += 1;
    let state = stored.entry.state.kind().code();
    db.prepare(
        "/* happened */ INSERT INTO history (entry, sequence, at, what, state, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute((stored.number, stored.happenings, now.unix_millis(), what, state, detail))?;
    if stored.happenings > HISTORY_MAX {
        let middle = stored.happenings - HISTORY_MAX + HISTORY_FIRST;
        db.prepare("/* happened */ DELETE FROM history WHERE entry = ?1 AND sequence = ?2")?
            .execute((stored.number, middle))?;
    }
    Ok(())
}
