//! Finding every open delegation again, and following what runs to its rest.

mod jobs;
mod lane;
mod run;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::driver::FollowUp;
use super::{Finding, Follower, Ledger, LedgerError, Route};
use crate::{Client, ClientError};
use run::Run;

/// How many findings wait for who reads them, before the recovery waits too.
const FINDINGS_MAX: usize = 64;

/// Leads to the agents of a ledger's entries. Credentials come from here: the ledger has none.
#[async_trait]
pub trait Connector: fmt::Debug + Send + Sync {
    /// A client of the agent that an entry was delegated to. Asked once for each route, and again after that agent could not
    /// be reached.
    ///
    /// # Errors
    ///
    /// Why there is none now. It is asked again later.
    async fn connect(&self, route: &Route) -> Result<Client, ClientError>;
}

/// What becomes of tasks that run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RunningTasks {
    /// They are followed to their rest.
    #[default]
    Follow,
    /// How they stand is written down, and they are left to others.
    Leave,
}

/// How a recovery goes about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecoverOptions {
    /// How each entry is followed up. The patience of `follow` is also how long an agent that can't be reached is tried again,
    /// before its entries are left to the next recovery.
    pub follow_up: FollowUp,
    /// What becomes of tasks that run. Default [`RunningTasks::Follow`].
    pub running: RunningTasks,
    /// How many entries of one agent are asked about at once. Default 32.
    pub checks_per_agent: usize,
    /// How many tasks are followed at once; those beyond are asked about every `poll_interval_max` of `follow`. Default 500:
    /// each may have a connection of its own, and processes often may have 1,024 files open.
    pub followed_max: usize,
    /// Whose claims need not be waited for, because their holder is certainly dead: an earlier life of a service that names its
    /// [`Follower`] itself. Default none: the claims of the dead run out within
    /// [`CLAIM_DURATION`](super::CLAIM_DURATION).
    pub predecessor: Option<Follower>,
}

impl Default for RecoverOptions {
    fn default() -> Self {
        Self {
            follow_up: FollowUp::default(),
            running: RunningTasks::Follow,
            checks_per_agent: 32,
            followed_max: 500,
            predecessor: None,
        }
    }
}

impl Ledger {
    /// Finds each open entry again: sends what was not sent, finds out what became of what was, asks how tasks stand, and goes
    /// on following those that run. Meanwhile alarms are raised.
    ///
    /// Agents are asked side by side, so one that can't be reached holds up no other. What another process follows is left to
    /// it; when that is dead, its claims run out, and this waits for those that were there when it began. It ends when each entry is settled, waits for a
    /// person, is followed elsewhere, or could not be found out about within the patience. Memory grows by the ids of the open
    /// entries.
    ///
    /// # Panics
    ///
    /// Outside a runtime of tokio.
    #[must_use]
    pub fn recover(&self, connector: Arc<dyn Connector>, options: RecoverOptions) -> Recovery {
        let (findings, received) = mpsc::channel(FINDINGS_MAX);
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        running.spawn(Run::new(self.clone(), connector, options, findings, stop.clone()).run());
        Recovery { findings: received, stop, running }
    }
}

/// A recovery in the background. Dropping it ends it at once; then the claims that it has run out.
#[derive(Debug)]
pub struct Recovery {
    findings: mpsc::Receiver<Result<Finding, LedgerError>>,
    stop: CancellationToken,
    running: JoinSet<()>,
}

impl Recovery {
    /// What is found next; none at the end. Each entry that was found open comes to one of the findings after which it is not
    /// followed here any more; [`Running`](Finding::Running), [`Alarm`](Finding::Alarm) and [`Trouble`](Finding::Trouble) are
    /// said on the way.
    ///
    /// # Errors
    ///
    /// What reading or writing the ledger came to grief by, for one entry ([`LedgerError::Corrupt`] among others) or for all;
    /// the recovery goes on as far as it can.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Finding, LedgerError>> {
        self.findings.recv().await
    }

    /// Ends it, and gives back what it held, so that others may go on at once.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // Findings that nobody reads must not hold it up.
        self.findings.close();
        while self.running.join_next().await.is_some() {}
    }
}
