//! The ledger as its callers have it: each call is one job of the thread that has the file.

use std::fmt;
use std::path::{Path, PathBuf};

use longhaul_protocol::{Timestamp, wire};
use tokio::sync::{mpsc, oneshot};

use super::change::{self, ClaimMode, Decision};
use super::db::Db;
use super::entry::{Claim, Entry, EntryId, Follower, Happening, Held, NewEntry};
use super::news::{News, Report};
use super::query::{self, Count, ListQuery, Page};
use super::worker::{self, Access, Trouble};
use super::{LedgerError, check, row};
use crate::Outcome;

/// How many entries one transaction of [`Ledger::prune`] removes.
const PRUNE_MAX: u32 = 500;

/// The durable record of what was delegated, in one SQLite file that several processes may have open at once.
///
/// What a call has answered is on the disk. Calls that wait together are written with one `fsync`, so many at once cost little.
/// Clones share one thread; it ends when the last is dropped, after it has done what was queued.
///
/// # Cancel safety
///
/// A call that is dropped may have been done or not; it is never done in part. After a dropped [`prepare`](Self::prepare) the
/// entry may be there, and is found like one of a process that died.
#[derive(Clone)]
pub struct Ledger {
    path: PathBuf,
    orders: mpsc::Sender<worker::Order>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The file keeps milliseconds: what is answered is what would be read.
fn whole_millis(now: Timestamp) -> Timestamp {
    Timestamp::from_unix_millis(now.unix_millis())
}

impl Ledger {
    /// Opens the ledger in this file, and makes it, with its folder, when there is none: for this user alone.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Newer`] and [`LedgerError::NotOurs`] leave the file as it is; else what opening it came to grief by.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        let path = path.as_ref().to_owned();
        let (orders, queue) = mpsc::channel(worker::QUEUE_MAX);
        let (opened, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("longhaul-ledger".to_owned());
        let of_thread = path.clone();
        thread
            .spawn(move || worker::run(&of_thread, queue, opened))
            .map_err(|source| LedgerError::Unavailable { action: "start its thread", source: Box::new(source) })?;
        answer.await.map_err(|_| LedgerError::Closed)??;
        Ok(Self { path, orders })
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Does what is queued and closes the file. Clones are closed with it.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Closed`] when it was closed before; [`LedgerError::Unavailable`] when the file can't be closed.
    pub async fn close(self) -> Result<(), LedgerError> {
        let (answer, closed) = oneshot::channel();
        self.orders.send(worker::Order::Close(answer)).await.map_err(|_| LedgerError::Closed)?;
        closed.await.map_err(|_| LedgerError::Closed)?
    }

    async fn call<T: Send + 'static>(
        &self,
        access: Access,
        action: &'static str,
        work: impl FnOnce(&Db<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (answer, answered) = oneshot::channel();
        let job = worker::job(access, action, work, answer);
        self.orders.send(worker::Order::Do(job)).await.map_err(|_| LedgerError::Closed)?;
        answered.await.map_err(|_| LedgerError::Closed)?
    }

    async fn write<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Db<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.call(Access::Write, action, work).await
    }

    async fn read<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Db<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.call(Access::Read, action, work).await
    }
}

/// What a follower does.
impl Ledger {
    /// Writes a delegation down, claimed by who is about to send it. When this has answered, it is on the disk.
    ///
    /// A request whose message names a task goes on with that task.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Invalid`] for what is too long or missing; else what writing came to grief by.
    pub async fn prepare(&self, new: NewEntry, follower: &Follower, now: Timestamp) -> Result<Held, LedgerError> {
        check::route(&new.route)?;
        check::length("the purpose", &new.purpose, 0, NewEntry::PURPOSE_BYTES_MAX)?;
        let request = check::request(&new.request)?;
        let (follower, now) = (follower.clone(), whole_millis(now));
        self.write("write a delegation down", move |c| change::prepare(c, new, request, &follower, now)).await
    }

    /// Writes down what a follower has learned, and answers with the entry as it is then.
    ///
    /// # Errors
    ///
    /// [`LedgerError::ClaimLost`] when another may follow it: stop. [`LedgerError::NotAllowed`] when it can't follow on how the
    /// entry stands, most of all because it is settled; the same end told again is no error.
    pub async fn record(&self, claim: &Claim, news: News, now: Timestamp) -> Result<Entry, LedgerError> {
        let report = Report::of(news)?;
        let (claim, now) = (claim.clone(), whole_millis(now));
        self.write("write down what happened", move |c| change::record(c, &claim, report, now)).await
    }

    /// Goes on with the entry's task by another message, which is written down and then to be sent. What was sent before is
    /// kept.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Invalid`] when the message does not name the entry's task; [`LedgerError::ClaimLost`];
    /// [`LedgerError::NotAllowed`] when the entry has no task that could take it.
    pub async fn reply(
        &self,
        claim: &Claim,
        request: &wire::SendMessageRequest,
        now: Timestamp,
    ) -> Result<Entry, LedgerError> {
        let request = check::request(request)?;
        let (claim, now) = (claim.clone(), whole_millis(now));
        self.write("write a reply down", move |c| change::reply(c, &claim, request, now)).await
    }

    /// Claims one entry.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Claimed`] when another follows it and `mode` is [`ClaimMode::IfFree`]; [`LedgerError::NotAllowed`] when it
    /// is settled; [`LedgerError::NotFound`].
    pub async fn claim(
        &self,
        id: EntryId,
        follower: &Follower,
        mode: ClaimMode,
        now: Timestamp,
    ) -> Result<Held, LedgerError> {
        let (follower, now) = (follower.clone(), whole_millis(now));
        self.write("claim an entry", move |c| change::claim(c, id, &follower, mode, now)).await
    }

    /// Claims one entry that is free, or is held by a follower that is certainly dead.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim) by [`ClaimMode::IfFree`].
    pub async fn claim_from(
        &self,
        id: EntryId,
        follower: &Follower,
        dead: &Follower,
        now: Timestamp,
    ) -> Result<Held, LedgerError> {
        let (follower, dead, now) = (follower.clone(), dead.clone(), whole_millis(now));
        self.write("claim an entry", move |c| change::claim_from(c, id, &follower, &dead, now)).await
    }

    /// Claims open entries that nobody follows, in the order of their ids, at most `limit` (up to
    /// [`PAGE_MAX`](super::PAGE_MAX)) after `after`.
    ///
    /// # Errors
    ///
    /// What reading or writing came to grief by.
    pub async fn claim_open(
        &self,
        follower: &Follower,
        after: Option<EntryId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Page<Held>, LedgerError> {
        let (follower, now) = (follower.clone(), whole_millis(now));
        self.write("claim entries", move |c| query::claim_open(c, &follower, after, limit, now)).await
    }

    /// Carries claims on, to be called every [`CLAIM_RENEWAL`](super::CLAIM_RENEWAL). Returns which entries are no longer
    /// followed from here: they were taken, or are settled.
    ///
    /// # Errors
    ///
    /// What writing came to grief by: the claims then run out.
    pub async fn renew(&self, claims: Vec<Claim>, now: Timestamp) -> Result<Vec<EntryId>, LedgerError> {
        let now = whole_millis(now);
        self.write("renew claims", move |c| change::renew(c, &claims, now)).await
    }

    /// Gives claims back, so that others need not wait until they run out. Those that are no longer held are passed over.
    ///
    /// # Errors
    ///
    /// What writing came to grief by: the claims then run out.
    pub async fn release(&self, claims: Vec<Claim>) -> Result<(), LedgerError> {
        self.write("release claims", move |c| change::release(c, &claims)).await
    }

    /// Raises the alarms that are due, each once, and returns the entries. Until a person acknowledges it, an alarm shows in
    /// [`Filter::NeedsPerson`](super::Filter::NeedsPerson); so it is not lost with the process that raised it.
    ///
    /// # Errors
    ///
    /// What reading or writing came to grief by.
    pub async fn raise_alarms(&self, now: Timestamp, limit: u32) -> Result<Page<Entry>, LedgerError> {
        let now = whole_millis(now);
        self.write("raise alarms", move |c| query::raise_alarms(c, now, limit)).await
    }
}

/// What a person does.
impl Ledger {
    /// Does what a person decided about an entry of which it saw this version.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Conflict`] when the entry changed since; [`LedgerError::NotAllowed`] when the decision has no meaning as it
    /// stands; [`LedgerError::NotFound`].
    pub async fn decide(
        &self,
        id: EntryId,
        version: u64,
        decision: Decision,
        now: Timestamp,
    ) -> Result<Entry, LedgerError> {
        if let Decision::Adopt { task_id } = &decision {
            check::task_id(task_id)?;
        }
        let now = whole_millis(now);
        self.write("write a decision down", move |c| change::decide(c, id, version, decision, now)).await
    }

    /// Removes a settled entry with all that belongs to it.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotSettled`], [`LedgerError::NotFound`].
    pub async fn remove(&self, id: EntryId) -> Result<(), LedgerError> {
        self.write("remove an entry", move |c| change::remove(c, id)).await
    }

    /// Removes the entries that were settled before a moment. Returns how many.
    ///
    /// # Errors
    ///
    /// What writing came to grief by; some may have been removed.
    pub async fn prune(&self, settled_before: Timestamp) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            // In parts, so that others come in between.
            let part = self.write("remove entries", move |c| change::prune(c, settled_before, PRUNE_MAX)).await?;
            removed += u64::from(part);
            if part < PRUNE_MAX {
                return Ok(removed);
            }
        }
    }
}

/// What can be asked.
impl Ledger {
    /// One entry.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotFound`], [`LedgerError::Corrupt`].
    pub async fn get(&self, id: EntryId) -> Result<Entry, LedgerError> {
        self.read("read an entry", move |c| row::load(c, id).map(|stored| stored.entry)).await
    }

    /// The request of an entry, to be sent (again): its first, or the last reply.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotFound`], [`LedgerError::Corrupt`].
    pub async fn request(&self, id: EntryId) -> Result<wire::SendMessageRequest, LedgerError> {
        self.read("read a request", move |c| query::request(c, id)).await
    }

    /// What the agent told when the entry came to stand as it does: the result, the question. None for what runs, or was refused;
    /// of an entry that was given up, the last question.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotFound`], [`LedgerError::Corrupt`].
    pub async fn outcome(&self, id: EntryId) -> Result<Option<Outcome>, LedgerError> {
        self.read("read an outcome", move |c| query::outcome(c, id)).await
    }

    /// What happened to an entry after this sequence (0: from the start), at most `limit` lines (up to
    /// [`PAGE_MAX`](super::PAGE_MAX)). Claims and what was merely heard have no line.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotFound`], [`LedgerError::Corrupt`].
    pub async fn history(&self, id: EntryId, after: u64, limit: u32) -> Result<Vec<Happening>, LedgerError> {
        self.read("read the history of an entry", move |c| query::history(c, id, after, limit)).await
    }

    /// Entries by what they are.
    ///
    /// # Errors
    ///
    /// What reading came to grief by.
    pub async fn list(&self, query: ListQuery) -> Result<Page<Entry>, LedgerError> {
        self.read("list entries", move |c| query::list(c, query)).await
    }

    /// Open entries that nobody follows, without claiming them: see [`claim_open`](Self::claim_open).
    ///
    /// # Errors
    ///
    /// What reading came to grief by.
    pub async fn open_unclaimed(
        &self,
        after: Option<EntryId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Page<Entry>, LedgerError> {
        let now = whole_millis(now);
        self.read("list open entries", move |c| query::open_unclaimed(c, after, limit, now)).await
    }

    /// When the next claim of an open entry runs out, unless it is renewed; none when nobody follows one. A recovery looks again
    /// then.
    ///
    /// # Errors
    ///
    /// What reading came to grief by.
    pub async fn claims_run_out_at(&self, now: Timestamp) -> Result<Option<Timestamp>, LedgerError> {
        let now = whole_millis(now);
        self.read("read claims", move |c| query::claims_run_out_at(c, now)).await
    }

    /// The newest entries of a task, of whatever agent (two may give the same id), the newest first, at most
    /// [`PAGE_MAX`](super::PAGE_MAX) on one page.
    ///
    /// # Errors
    ///
    /// What reading came to grief by.
    pub async fn find_by_task(&self, task_id: &str) -> Result<Page<Entry>, LedgerError> {
        let task_id = task_id.to_owned();
        self.read("find a task", move |c| query::find_by_task(c, &task_id)).await
    }

    /// The entries whose alarm is due and was not raised, the longest due first.
    ///
    /// # Errors
    ///
    /// What reading came to grief by.
    pub async fn due_alarms(&self, now: Timestamp, limit: u32) -> Result<Page<Entry>, LedgerError> {
        let now = whole_millis(now);
        self.read("list alarms", move |c| query::due_alarms(c, now, limit)).await
    }

    /// How many entries stand in which state; a state in which there is none is left out.
    ///
    /// # Errors
    ///
    /// What reading came to grief by.
    pub async fn counts(&self) -> Result<Vec<Count>, LedgerError> {
        self.read("count entries", query::counts).await
    }
}
