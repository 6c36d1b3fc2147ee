//! What a recovery does side by side.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Connector, RecoverOptions};
use crate::clock::now;
use crate::ledger::claimed::Worked;
use crate::ledger::driver::{Driver, Pass, Setup, Tell, Unsent};
use crate::ledger::{Claim, ClaimMode, EntryId, Finding, Follower, Held, Ledger, LedgerError, NotAllowed, Route};
use crate::{Client, ClientError};

/// What all jobs have.
pub(super) struct Common {
    pub(super) ledger: Ledger,
    pub(super) connector: Arc<dyn Connector>,
    pub(super) options: RecoverOptions,
    pub(super) follower: Follower,
    pub(super) findings: mpsc::Sender<Result<Finding, LedgerError>>,
    pub(super) stop: CancellationToken,
}

/// What a job came to.
pub(super) enum Done {
    Connected(Arc<Route>, Result<Client, ClientError>),
    Checked(Arc<Route>, EntryId, Result<Came, LedgerError>),
    Followed(Arc<Route>, EntryId, Result<Came, LedgerError>),
}

/// What an entry came to.
pub(super) enum Came {
    /// To where it is not followed any more.
    Rest(Box<Finding>),
    /// Its task runs.
    Running(Box<Driver>),
    /// The agent could not be asked.
    Later(ClientError),
    /// Another was quicker.
    Taken,
    /// The recovery ends.
    Stopped,
}

impl Common {
    pub(super) async fn connect(self: Arc<Self>, route: Arc<Route>) -> Done {
        let connected = tokio::select! {
            connected = self.connector.connect(&route) => connected,
            () = self.stop.cancelled() => Err(ClientError::Forbidden { what: "the recovery ends".to_owned() }),
        };
        Done::Connected(route, connected)
    }

    pub(super) async fn check(self: Arc<Self>, route: Arc<Route>, client: Client, id: EntryId) -> Done {
        let came = match self.claim(id).await {
            Ok(Some(held)) => {
                let mut driver = Driver::new(self.setup(client), held);
                let claim = driver.claim().clone();
                let worked = self.ledger.under_claim(&claim, &self.stop, driver.check()).await;
                self.came(worked, driver).await
            }
            Ok(None) => Ok(Came::Taken),
            Err(error) => Err(error),
        };
        Done::Checked(route, id, came)
    }

    pub(super) async fn follow(self: Arc<Self>, route: Arc<Route>, mut driver: Box<Driver>) -> Done {
        let claim = driver.claim().clone();
        let worked = self.ledger.under_claim(&claim, &self.stop, driver.follow()).await;
        let came = self.came(worked, *driver).await;
        Done::Followed(route, claim.entry_id(), came)
    }

    fn setup(&self, client: Client) -> Setup {
        Setup {
            ledger: self.ledger.clone(),
            client,
            follow_up: self.options.follow_up.clone(),
            unsent: Unsent::Waits,
            tell: Tell::Findings(self.findings.clone()),
        }
    }

    /// Claims the entry; none when another has it, or has settled it.
    async fn claim(&self, id: EntryId) -> Result<Option<Held>, LedgerError> {
        let claimed = match &self.options.predecessor {
            None => self.ledger.claim(id, &self.follower, ClaimMode::IfFree, now()).await,
            Some(dead) => self.ledger.claim_from(id, &self.follower, dead, now()).await,
        };
        match claimed {
            Ok(held) => Ok(Some(held)),
            Err(
                LedgerError::Claimed { .. }
                | LedgerError::NotFound { .. }
                | LedgerError::NotAllowed { source: NotAllowed::Settled(_), .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the entry came to. Unless its task is to be followed, its claim is given back.
    async fn came(&self, worked: Result<Worked<Pass>, LedgerError>, driver: Driver) -> Result<Came, LedgerError> {
        let claim: Claim = driver.claim().clone();
        let came = match worked {
            Ok(Worked::Done(Pass::Running)) => return Ok(Came::Running(Box::new(driver))),
            // The task that the message was for stands on its own: it is asked again.
            Ok(Worked::Done(Pass::Refused(entry, error))) if !entry.state.is_settled() => Ok(Came::Later(error)),
            Ok(Worked::Done(Pass::Refused(entry, error))) => {
                Ok(Came::Rest(Box::new(Finding::Refused { entry, error: Arc::new(error) })))
            }
            Ok(Worked::Done(Pass::Rest(entry))) => Ok(Came::Rest(Box::new(Finding::of(entry)))),
            Ok(Worked::Done(Pass::Later(error))) => Ok(Came::Later(error)),
            Ok(Worked::Gone(entry)) => return Ok(Came::Rest(Box::new(Finding::gone(*entry)))),
            Ok(Worked::Stopped) => Ok(Came::Stopped),
            Err(error) => Err(error),
        };
        // A settled entry has no claim, and passes this over.
        let _ = self.ledger.release(vec![claim]).await;
        came
    }
}
