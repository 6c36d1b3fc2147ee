//! The loop of a recovery: it looks for open entries, hands them to the lanes of their agents, and takes in what they come to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::jobs::{Came, Common, Done};
use super::lane::{Lane, Next, is_of_agent};
use super::{Connector, RecoverOptions, RunningTasks};
use crate::ClientError;
use crate::clock::now;
use crate::ledger::claimed::ALARM_INTERVAL;
use crate::ledger::driver::Driver;
use crate::ledger::{
    CLAIM_DURATION, Entry, EntryId, Filter, Finding, Follower, Ledger, LedgerError, ListQuery, Order, Page, Route,
};

/// How often it is looked for entries whose claim has run out.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// How many entries are read at once.
const SCAN_PAGE: u32 = 500;
/// How many entries wait to be asked about; the others are read later.
const WAITING_MAX: usize = 100_000;

pub(super) struct Run {
    common: Arc<Common>,
    lanes: BTreeMap<Arc<Route>, Lane>,
    /// Entries that are taken care of, or were, and are not to be taken from the ledger again.
    known: BTreeSet<EntryId>,
    /// Those of which it was said that they run.
    announced: BTreeSet<EntryId>,
    jobs: JoinSet<Done>,
    following: usize,
    begun: Instant,
    scan_at: Instant,
    alarms_at: Instant,
    /// Whether the last scan found entries that others have, or more than it took.
    left: Left,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Left {
    Nothing,
    Claimed,
    More,
}

impl Run {
    pub(super) fn new(
        ledger: Ledger,
        connector: Arc<dyn Connector>,
        options: RecoverOptions,
        findings: mpsc::Sender<Result<Finding, LedgerError>>,
        stop: CancellationToken,
    ) -> Self {
        let follower = Follower::of_this_process(now());
        let begun = Instant::now();
        Self {
            common: Arc::new(Common { ledger, connector, options, follower, findings, stop }),
            lanes: BTreeMap::new(),
            known: BTreeSet::new(),
            announced: BTreeSet::new(),
            jobs: JoinSet::new(),
            following: 0,
            begun,
            scan_at: begun,
            alarms_at: begun,
            left: Left::Nothing,
        }
    }

    pub(super) async fn run(mut self) {
        let stop = self.common.stop.clone();
        if let Err(error) = self.until_over(&stop).await {
            self.say(Err(error)).await;
        }
        stop.cancel();
        // Each gives its claim back.
        while self.jobs.join_next().await.is_some() {}
    }

    async fn until_over(&mut self, stop: &CancellationToken) -> Result<(), LedgerError> {
        loop {
            let moment = Instant::now();
            if self.scan_at <= moment {
                unless_busy(self.scan().await)?;
            }
            if self.alarms_at <= moment {
                unless_busy(self.raise_alarms().await)?;
            }
            self.give_up().await?;
            self.dispatch();
            if self.is_over() {
                // What was silent until the end is not left out.
                return unless_busy(self.raise_alarms().await);
            }
            let due = self.due();
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                Some(done) = self.jobs.join_next() => {
                    match done {
                        Ok(done) => self.take(done).await?,
                        Err(error) => {
                            return Err(LedgerError::Unavailable { action: "follow an entry", source: error.into() });
                        }
                    }
                }
                () = sleep_until(due) => {}
            }
        }
    }

    async fn say(&self, finding: Result<Finding, LedgerError>) {
        // Who reads may have gone.
        let _ = self.common.findings.send(finding).await;
    }

    async fn raise_alarms(&mut self) -> Result<(), LedgerError> {
        self.alarms_at = Instant::now() + ALARM_INTERVAL;
        for entry in self.common.ledger.alarms().await? {
            self.say(Ok(Finding::Alarm(entry))).await;
        }
        Ok(())
    }

    /// Looks for open entries that nobody takes care of.
    async fn scan(&mut self) -> Result<(), LedgerError> {
        // A scan that begins after a claim has run out sees it.
        self.scan_at = Instant::now() + SCAN_INTERVAL;
        // Until it has seen the last page.
        self.left = Left::More;
        let mut left = Left::Nothing;
        let mut after = None;
        loop {
            let query = ListQuery { filter: Filter::Open, order: Order::OldestFirst, after, limit: SCAN_PAGE };
            let page = self.common.ledger.list(query).await?;
            after = page.next;
            if self.queue(page).await == Left::Claimed {
                left = Left::Claimed;
            }
            if after.is_none() {
                self.left = left;
                return Ok(());
            }
            if self.lanes.values().map(Lane::waiting).sum::<usize>() >= WAITING_MAX {
                return Ok(());
            }
        }
    }

    /// Takes those that nobody takes care of; says whether others have some.
    async fn queue(&mut self, page: Page<Entry>) -> Left {
        let mut left = Left::Nothing;
        let (moment, dead) = (Instant::now(), self.common.options.predecessor.clone());
        for error in page.unreadable {
            let is_new = match &error {
                LedgerError::Corrupt { entry, .. } => self.known.insert(*entry),
                _ => true,
            };
            if is_new {
                self.say(Err(error)).await;
            }
        }
        for entry in page.entries {
            if self.known.contains(&entry.id) {
                continue;
            }
            if entry.is_claimed(now()) && entry.claimed.as_ref().map(|claimed| &claimed.by) != dead.as_ref() {
                left = Left::Claimed;
                continue;
            }
            self.known.insert(entry.id);
            self.lanes.entry(Arc::new(entry.route)).or_default().wait(entry.id, moment);
        }
        left
    }

    /// Begins what is due.
    fn dispatch(&mut self) {
        let moment = Instant::now();
        let checks_max = self.common.options.checks_per_agent;
        for (route, lane) in &mut self.lanes {
            loop {
                let (common, route) = (self.common.clone(), route.clone());
                match lane.next(checks_max, moment) {
                    Next::Connect => self.jobs.spawn(common.connect(route)),
                    Next::Check(client, id) => self.jobs.spawn(common.check(route, client, id)),
                    Next::Nothing => break,
                };
            }
        }
    }

    /// When there is something to do, unless a job ends before.
    fn due(&self) -> Instant {
        let checks_max = self.common.options.checks_per_agent;
        let lanes = self.lanes.values().filter_map(|lane| lane.due(checks_max)).min();
        lanes.unwrap_or(self.scan_at).min(self.scan_at).min(self.alarms_at)
    }

    /// Whether nothing is left that could be done here. What was claimed when this began, and still is after that claim has run
    /// out, is followed by somebody who lives.
    fn is_over(&self) -> bool {
        let is_idle = self.jobs.is_empty() && self.lanes.values().all(Lane::is_idle);
        let last_scan_began = self.scan_at - SCAN_INTERVAL;
        is_idle
            && match self.left {
                Left::Nothing => true,
                Left::Claimed => last_scan_began > self.begun + CLAIM_DURATION,
                Left::More => false,
            }
    }

    async fn take(&mut self, done: Done) -> Result<(), LedgerError> {
        match done {
            Done::Connected(route, Ok(client)) => self.lane(&route).connected(client),
            Done::Connected(route, Err(error)) => {
                let error = Arc::new(error);
                if self.lane(&route).not_connected(error.clone(), Instant::now()) {
                    self.say(Ok(Finding::Trouble { route, error })).await;
                }
            }
            Done::Checked(route, id, came) => {
                self.lane(&route).checked();
                self.came(route, id, came).await?;
            }
            Done::Followed(route, id, came) => {
                self.following = self.following.saturating_sub(1);
                self.came(route, id, came).await?;
            }
        }
        Ok(())
    }

    fn lane(&mut self, route: &Arc<Route>) -> &mut Lane {
        self.lanes.entry(route.clone()).or_default()
    }

    async fn came(
        &mut self,
        route: Arc<Route>,
        id: EntryId,
        came: Result<Came, LedgerError>,
    ) -> Result<(), LedgerError> {
        match came {
            Ok(Came::Rest(finding)) => {
                self.lane(&route).answered(id);
                self.say(Ok(*finding)).await;
            }
            Ok(Came::Running(driver)) => {
                self.lane(&route).answered(id);
                self.runs(route, driver).await;
            }
            Ok(Came::Later(error)) => self.later(route, id, Arc::new(error)).await?,
            Ok(Came::Taken) => {
                // A later scan sees when its claim runs out.
                self.known.remove(&id);
                self.left = Left::Claimed;
            }
            Ok(Came::Stopped) => {}
            // It stays open, for the next recovery.
            Err(error) => self.say(Err(error)).await,
        }
        Ok(())
    }

    /// Goes on with a task that runs.
    async fn runs(&mut self, route: Arc<Route>, driver: Box<Driver>) {
        if self.announced.insert(driver.entry().id) {
            self.say(Ok(Finding::Running(driver.entry().clone()))).await;
        }
        let common = self.common.clone();
        let is_room = self.following < common.options.followed_max;
        match common.options.running {
            RunningTasks::Follow if is_room => {
                self.following += 1;
                self.jobs.spawn(common.follow(route, driver));
            }
            RunningTasks::Follow => {
                let _ = common.ledger.release(vec![driver.claim().clone()]).await;
                let interval = common.options.follow_up.follow.poll_interval_max;
                self.lane(&route).wait(driver.entry().id, Instant::now() + interval);
            }
            RunningTasks::Leave => {
                let _ = common.ledger.release(vec![driver.claim().clone()]).await;
            }
        }
    }

    /// An entry could not be asked about.
    async fn later(&mut self, route: Arc<Route>, id: EntryId, error: Arc<ClientError>) -> Result<(), LedgerError> {
        let patience = self.common.options.follow_up.follow.patience;
        let moment = Instant::now();
        let lane = self.lane(&route);
        let is_new = if is_of_agent(&error) {
            let is_new = lane.fails(error.clone(), moment);
            lane.wait(id, moment);
            is_new
        } else {
            let (since, until) = lane.entry_fails(id, error.clone(), moment);
            if moment.saturating_duration_since(since) >= patience {
                return self.unreachable(id, error).await;
            }
            lane.wait(id, until);
            // Of many that fail alike, the first is enough.
            since == moment && lane.failing() == 1
        };
        if is_new {
            self.say(Ok(Finding::Trouble { route, error })).await;
        }
        Ok(())
    }

    /// Leaves what could not be found out about for long to the next recovery.
    async fn give_up(&mut self) -> Result<(), LedgerError> {
        let patience = self.common.options.follow_up.follow.patience;
        let moment = Instant::now();
        let given: Vec<_> = self.lanes.values_mut().filter_map(|lane| lane.give_up(patience, moment)).collect();
        for (error, ids) in given {
            for id in ids {
                self.unreachable(id, error.clone()).await?;
            }
        }
        Ok(())
    }

    async fn unreachable(&mut self, id: EntryId, error: Arc<ClientError>) -> Result<(), LedgerError> {
        let read = self.common.ledger.get(id).await;
        self.given_up(id, error, read).await
    }

    async fn given_up(
        &mut self,
        id: EntryId,
        error: Arc<ClientError>,
        read: Result<Entry, LedgerError>,
    ) -> Result<(), LedgerError> {
        match read {
            Ok(entry) => self.say(Ok(Finding::Unreachable { entry, error })).await,
            Err(busy @ LedgerError::Busy { .. }) => {
                // The next scan finds it again, and then it is said.
                self.known.remove(&id);
                self.left = Left::More;
                return unless_busy(Err(busy));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Others may keep the file locked for a while: it is tried again.
fn unless_busy(result: Result<(), LedgerError>) -> Result<(), LedgerError> {
    match result {
        Err(LedgerError::Busy { .. }) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
#[path = "run/tests.rs"]
mod tests;
