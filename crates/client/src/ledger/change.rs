//! What changes an entry: each a function within one transaction.

use std::time::Duration;

use bytes::Bytes;
use longhaul_protocol::Timestamp;

use super::check::CheckedRequest;
use super::db::Db;
use super::entry::{Claim, Claimant, Deadline, Entry, EntryId, Follower, Held, Kept, NewEntry};
use super::news::{Report, Telling};
use super::row::{self, Stored};
use super::state::{Event, Step, transition};
use super::worker::Trouble;
use super::{LedgerError, Note, State, StateKind};
use crate::clock::later;

/// How long a claim holds: what a follower that died followed waits so long at the most.
pub const CLAIM_DURATION: Duration = Duration::from_secs(30);
/// How often a follower should renew its claims.
pub const CLAIM_RENEWAL: Duration = Duration::from_secs(10);

/// How to come by the claim of an entry that another has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClaimMode {
    /// Only when nobody follows it now.
    IfFree,
    /// In any case: whoever follows it stops at the next thing that it writes. For what a person asks for.
    TakeOver,
}

/// What a person decides about an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Has an entry that is uncertain sent again, although the agent may do it twice.
    SendAgain,
    /// Says which task came of a message whose answer was lost.
    Adopt {
        /// The agent's id of the task.
        task_id: String,
    },
    /// Gives the delegation up. The agent is not told.
    Abandon {
        /// Why.
        why: String,
    },
    /// Has seen how the entry stands, or its alarm.
    Acknowledge,
    /// Raises the alarm now: something else found out that a person has to look.
    Alarm {
        /// Why.
        why: String,
    },
}

fn refused(entry: EntryId) -> impl FnOnce(super::NotAllowed) -> LedgerError {
    move |source| LedgerError::NotAllowed { entry, source }
}

fn settled(entry: &Entry) -> LedgerError {
    refused(entry.id)(super::NotAllowed::Settled(entry.state.kind()))
}

/// Writes a new entry down, already claimed by who is about to send it.
pub(super) fn prepare(
    db: &Db<'_>,
    new: NewEntry,
    request: CheckedRequest,
    follower: &Follower,
    now: Timestamp,
) -> Result<Held, Trouble> {
    let deadline = new.deadline.map(|deadline| match deadline {
        Deadline::At(moment) => Deadline::At(Timestamp::from_unix_millis(moment.unix_millis())),
        Deadline::Quiet(longest) => {
            let millis = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
            Deadline::Quiet(Duration::from_millis(millis.unsigned_abs()))
        }
    });
    let entry = Entry {
        id: EntryId::new(now),
        route: new.route,
        purpose: new.purpose,
        message_id: request.message_id,
        context_id: request.context_id,
        created_at: now,
        deadline,
        state: State::Prepared { task_id: request.task_id },
        since: now,
        last_event_id: None,
        last_heard_at: None,
        attempts: 0,
        alarm_at: None,
        alarmed_at: None,
        acknowledged_at: None,
        claimed: None,
        kept: Kept::Nothing,
        version: 1,
    };
    let number = row::insert(db, &entry)?;
    let mut stored = Stored { number, entry, requests: 0, happenings: 0, claim_epoch: 0 };
    add_request(db, &mut stored, &request.json)?;
    stored.entry.arm();
    row::happened(db, &mut stored, now, "prepared", "")?;
    let claim = give(&mut stored, follower, now);
    row::update(db, &stored)?;
    Ok(Held { entry: stored.entry, claim })
}

fn add_request(db: &Db<'_>, stored: &mut Stored, json: &Bytes) -> Result<(), Trouble> {
    stored.requests += 1;
    db.prepare("/* add_request */ INSERT INTO request (entry, ordinal, json) VALUES (?1, ?2, ?3)")?.execute((
        stored.number,
        stored.requests,
        &json[..],
    ))?;
    Ok(())
}

fn give(stored: &mut Stored, follower: &Follower, now: Timestamp) -> Claim {
    stored.claim_epoch += 1;
    stored.entry.claimed = Some(Claimant { by: follower.clone(), until: later(now, CLAIM_DURATION) });
    Claim { entry: stored.entry.id, epoch: stored.claim_epoch }
}

fn take_back(stored: &mut Stored) {
    if stored.entry.claimed.take().is_some() {
        stored.claim_epoch += 1;
    }
}

/// Claims an entry that is not settled.
pub(super) fn claim(
    db: &Db<'_>,
    id: EntryId,
    follower: &Follower,
    mode: ClaimMode,
    now: Timestamp,
) -> Result<Held, Trouble> {
    let mut stored = row::load(db, id)?;
    if stored.entry.state.is_settled() {
        return Err(settled(&stored.entry).into());
    }
    if let Some(claimed) = stored.entry.claimed.clone().filter(|claimed| claimed.until > now) {
        match mode {
            ClaimMode::IfFree => {
                let (by, until) = (claimed.by.to_string(), claimed.until);
                return Err(LedgerError::Claimed { entry: id, by, until }.into());
            }
            ClaimMode::TakeOver => {
                let detail = format!("by {follower}, from {}", claimed.by);
                row::happened(db, &mut stored, now, "taken over", &detail)?;
            }
        }
    }
    hold(db, stored, follower, now)
}

/// Claims an entry that is free, or is held by one who is dead.
pub(super) fn claim_from(
    db: &Db<'_>,
    id: EntryId,
    follower: &Follower,
    dead: &Follower,
    now: Timestamp,
) -> Result<Held, Trouble> {
    let is_of_dead = row::load(db, id)?.entry.claimed.is_some_and(|claimed| claimed.by == *dead);
    let mode = if is_of_dead { ClaimMode::TakeOver } else { ClaimMode::IfFree };
    claim(db, id, follower, mode, now)
}

/// Claims an entry that was just found to be free.
pub(super) fn hold(db: &Db<'_>, mut stored: Stored, follower: &Follower, now: Timestamp) -> Result<Held, Trouble> {
    let claim = give(&mut stored, follower, now);
    row::update(db, &stored)?;
    Ok(Held { entry: stored.entry, claim })
}

/// Carries claims on. Returns which of them are no longer theirs.
pub(super) fn renew(db: &Db<'_>, claims: &[Claim], now: Timestamp) -> Result<Vec<EntryId>, Trouble> {
    let mut statement = db.prepare(
        "/* renew */ UPDATE entry SET claim_until = ?3 WHERE id = ?1 AND claim_epoch = ?2 AND claimed_by IS NOT NULL",
    )?;
    let until = later(now, CLAIM_DURATION).unix_millis();
    let mut lost = Vec::new();
    for claim in claims {
        if statement.execute((claim.entry.as_bytes(), claim.epoch, until))? == 0 {
            lost.push(claim.entry);
        }
    }
    Ok(lost)
}

/// Gives claims back. What is no longer theirs is let be.
pub(super) fn release(db: &Db<'_>, claims: &[Claim]) -> Result<(), Trouble> {
    let mut statement = db.prepare(
        "/* release */ UPDATE entry SET claimed_by = NULL, claim_until = NULL, claim_epoch = claim_epoch + 1
        WHERE id = ?1 AND claim_epoch = ?2",
    )?;
    for claim in claims {
        statement.execute((claim.entry.as_bytes(), claim.epoch))?;
    }
    Ok(())
}

fn claimed(db: &Db<'_>, claim: &Claim) -> Result<Stored, Trouble> {
    let stored = row::load(db, claim.entry)?;
    // A settled entry has no claim, and says itself that nothing can be written any more.
    if stored.claim_epoch != claim.epoch && !stored.entry.state.is_settled() {
        return Err(LedgerError::ClaimLost { entry: claim.entry }.into());
    }
    Ok(stored)
}

/// Writes down what a follower has learned.
pub(super) fn record(db: &Db<'_>, claim: &Claim, report: Report, now: Timestamp) -> Result<Entry, Trouble> {
    let mut stored = claimed(db, claim)?;
    let Report { event, telling, context_id, last_event_id, is_heard, unsent } = report;
    if let Some(why) = unsent {
        return not_sent(db, stored, &why, now);
    }
    let moved = match &event {
        None if stored.entry.state.is_settled() => return Err(settled(&stored.entry).into()),
        None => Moved::No,
        Some(event) => follow(db, &mut stored, event, now)?,
    };
    if stored.entry.state.is_settled() && moved == Moved::No {
        return Ok(stored.entry);
    }
    if is_heard {
        stored.entry.heard(now);
    }
    if let Some(context_id) = context_id {
        stored.entry.context_id.get_or_insert(context_id);
    }
    if let Some(last_event_id) = last_event_id {
        stored.entry.last_event_id = Some(last_event_id);
    }
    if moved == Moved::Yes {
        keep(db, &mut stored, telling)?;
    }
    stored.entry.arm();
    row::update(db, &stored)?;
    Ok(stored.entry)
}

/// Takes an attempt back that cannot have reached the agent.
fn not_sent(db: &Db<'_>, mut stored: Stored, why: &Note, now: Timestamp) -> Result<Entry, Trouble> {
    let entry = &mut stored.entry;
    if entry.state.kind() != StateKind::Prepared || entry.attempts == 0 {
        let event = "that an attempt was not sent";
        return Err(refused(entry.id)(super::NotAllowed::NotNow { state: entry.state.kind(), event }).into());
    }
    entry.attempts -= 1;
    entry.version += 1;
    row::happened(db, &mut stored, now, "not sent", why.as_str())?;
    row::update(db, &stored)?;
    Ok(stored.entry)
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Moved {
    Yes,
    No,
}

/// Has the entry follow an event, and writes the line of its history.
fn follow(db: &Db<'_>, stored: &mut Stored, event: &Event, now: Timestamp) -> Result<Moved, Trouble> {
    let step = transition(&stored.entry.state, event).map_err(refused(stored.entry.id))?;
    if *event == Event::Sending {
        stored.entry.attempts = stored.entry.attempts.saturating_add(1);
        stored.entry.version += 1;
        let detail = format!("attempt {}", stored.entry.attempts);
        row::happened(db, stored, now, "sending", &detail)?;
        return Ok(Moved::No);
    }
    let Step::Moves(state) = step else { return Ok(Moved::No) };
    let told_of = detail(event, &state);
    let entry = &mut stored.entry;
    entry.state = state;
    entry.since = now;
    entry.acknowledged_at = None;
    entry.version += 1;
    if entry.state.is_settled() {
        take_back(stored);
    }
    let kind = stored.entry.state.kind();
    row::happened(db, stored, now, what(event, kind), &told_of)?;
    Ok(Moved::Yes)
}

/// The word for an event in the history.
fn what(event: &Event, kind: StateKind) -> &'static str {
    match event {
        Event::Sending => "sending",
        Event::Told { .. } | Event::Answered { .. } | Event::Unresolved { .. } | Event::Abandon { .. } => kind.name(),
        Event::Refused { .. } => "refused",
        Event::NotFound { .. } => "not found",
        Event::Reply => "reply",
        Event::SendAgain => "to be sent again",
        Event::Adopt { .. } => "adopted",
    }
}

fn detail(event: &Event, state: &State) -> String {
    match event {
        // What the entry itself no longer says.
        Event::Refused { error } => error.to_string(),
        Event::Answered { text } => text.to_string(),
        Event::Adopt { task_id } => Note::new(task_id).to_string(),
        Event::Sending
        | Event::Told { .. }
        | Event::NotFound { .. }
        | Event::Unresolved { .. }
        | Event::Reply
        | Event::SendAgain
        | Event::Abandon { .. } => state.text().to_owned(),
    }
}

/// Keeps what the agent told in the place of what it told before.
fn keep(db: &Db<'_>, stored: &mut Stored, telling: Option<Telling>) -> Result<(), Trouble> {
    let Some(telling) = telling else {
        // The end of one that was given up leaves the last question where it is.
        if !stored.entry.state.is_settled() {
            stored.entry.kept = Kept::Nothing;
        }
        return Ok(());
    };
    db.prepare("/* keep */ INSERT OR REPLACE INTO told (entry, kind, json) VALUES (?1, ?2, ?3)")?.execute((
        stored.number,
        telling.kind,
        &telling.json[..],
    ))?;
    stored.entry.kept = telling.kept;
    Ok(())
}

/// Goes on with the task by another message, which becomes the request.
pub(super) fn reply(db: &Db<'_>, claim: &Claim, request: CheckedRequest, now: Timestamp) -> Result<Entry, Trouble> {
    let mut stored = claimed(db, claim)?;
    if request.task_id.as_deref() != stored.entry.state.task_id() {
        let problem = match stored.entry.state.task_id() {
            Some(task_id) => format!("must name the task {task_id:?} that it goes on with"),
            None => "has no task that it could go on with".to_owned(),
        };
        return Err(LedgerError::Invalid { field: "the reply", problem }.into());
    }
    follow(db, &mut stored, &Event::Reply, now)?;
    add_request(db, &mut stored, &request.json)?;
    stored.entry.message_id = request.message_id;
    stored.entry.attempts = 0;
    stored.entry.kept = Kept::Nothing;
    stored.entry.arm();
    row::update(db, &stored)?;
    Ok(stored.entry)
}

/// Does what a person decided, if the entry is as the person saw it.
pub(super) fn decide(
    db: &Db<'_>,
    id: EntryId,
    version: u64,
    decision: Decision,
    now: Timestamp,
) -> Result<Entry, Trouble> {
    let mut stored = row::load(db, id)?;
    if stored.entry.version != version {
        return Err(LedgerError::Conflict { entry: id, expected: version, found: stored.entry.version }.into());
    }
    match decision {
        Decision::SendAgain => {
            follow(db, &mut stored, &Event::SendAgain, now)?;
            stored.entry.attempts = 0;
        }
        Decision::Adopt { task_id } => {
            follow(db, &mut stored, &Event::Adopt { task_id }, now).map(drop)?;
        }
        Decision::Abandon { why } => {
            follow(db, &mut stored, &Event::Abandon { why: Note::new(&why) }, now).map(drop)?;
        }
        Decision::Acknowledge => {
            stored.entry.acknowledged_at = Some(now);
            stored.entry.version += 1;
            row::happened(db, &mut stored, now, "acknowledged", "")?;
        }
        Decision::Alarm { why } => alarm(db, &mut stored, &Note::new(&why), now)?,
    }
    stored.entry.arm();
    row::update(db, &stored)?;
    Ok(stored.entry)
}

fn alarm(db: &Db<'_>, stored: &mut Stored, why: &Note, now: Timestamp) -> Result<(), Trouble> {
    if stored.entry.state.is_settled() {
        return Err(settled(&stored.entry).into());
    }
    stored.entry.alarmed_at = Some(now);
    stored.entry.acknowledged_at = None;
    stored.entry.version += 1;
    row::happened(db, stored, now, "alarm", why.as_str())
}

/// Raises an alarm that is due.
pub(super) fn raise(db: &Db<'_>, mut stored: Stored, now: Timestamp) -> Result<Entry, Trouble> {
    let why = match (stored.entry.deadline, stored.entry.last_heard_at) {
        (Some(Deadline::At(moment)), _) => format!("not settled by {moment}"),
        (Some(Deadline::Quiet(_)) | None, Some(heard)) => format!("the agent was last heard at {heard}"),
        (Some(Deadline::Quiet(_)) | None, None) => "the agent was never heard".to_owned(),
    };
    alarm(db, &mut stored, &Note::new(&why), now)?;
    stored.entry.arm();
    row::update(db, &stored)?;
    Ok(stored.entry)
}

/// Removes an entry that is settled, with all that belongs to it.
pub(super) fn remove(db: &Db<'_>, id: EntryId) -> Result<(), Trouble> {
    let stored = row::load(db, id)?;
    if !stored.entry.state.is_settled() {
        return Err(LedgerError::NotSettled { entry: id }.into());
    }
    remove_row(db, stored.number)
}

fn remove_row(db: &Db<'_>, number: i64) -> Result<(), Trouble> {
    for sql in [
        "/* remove */ DELETE FROM request WHERE entry = ?1",
        "/* remove */ DELETE FROM told WHERE entry = ?1",
        "/* remove */ DELETE FROM history WHERE entry = ?1",
        "/* remove */ DELETE FROM entry WHERE number = ?1",
    ] {
        db.prepare(sql)?.execute([number])?;
    }
    Ok(())
}

/// Removes at most so many entries that were settled before a moment. Returns how many it removed.
pub(super) fn prune(db: &Db<'_>, before: Timestamp, limit: u32) -> Result<u32, Trouble> {
    let numbers: Vec<i64> = db
        .prepare("/* prune */ SELECT number FROM entry WHERE state >= 8 AND since < ?1 ORDER BY state, id LIMIT ?2")?
        .query_map((before.unix_millis(), limit), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for number in &numbers {
        remove_row(db, *number)?;
    }
    Ok(u32::try_from(numbers.len()).unwrap_or(u32::MAX))
}
