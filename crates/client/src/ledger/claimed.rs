//! Work that is done under a claim, which is renewed meanwhile.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{CLAIM_RENEWAL, Claim, Entry, Ledger, LedgerError, NotAllowed, PAGE_MAX};
use crate::clock::now;

/// How often it is looked for alarms that are due.
pub(super) const ALARM_INTERVAL: Duration = Duration::from_secs(1);

/// How work under a claim ended.
pub(super) enum Worked<T> {
    /// It was done.
    Done(T),
    /// The claim is not ours any more: another has it, or the entry was settled by somebody else.
    Gone(Box<Entry>),
    /// It was told to stop.
    Stopped,
}

impl Ledger {
    /// Does the work until it is done, the claim is lost, or `stop` says so.
    pub(super) async fn under_claim<T>(
        &self,
        claim: &Claim,
        stop: &CancellationToken,
        work: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<Worked<T>, LedgerError> {
        let worked = tokio::select! {
            biased;
            worked = work => worked,
            () = self.renewing(claim) => Err(LedgerError::ClaimLost { entry: claim.entry_id() }),
            () = stop.cancelled() => return Ok(Worked::Stopped),
        };
        match worked {
            Ok(done) => Ok(Worked::Done(done)),
            Err(
                LedgerError::ClaimLost { entry } | LedgerError::NotAllowed { entry, source: NotAllowed::Settled(_) },
            ) => self.get(entry).await.map(|entry| Worked::Gone(Box::new(entry))),
            Err(error) => Err(error),
        }
    }

    /// Renews the claim, and returns when it is lost.
    async fn renewing(&self, claim: &Claim) {
        loop {
            sleep(CLAIM_RENEWAL).await;
            match self.renew(vec![claim.clone()], now()).await {
                Ok(lost) if lost.is_empty() => {}
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(entry = %claim.entry_id(), %error, "a claim was not renewed, and may run out");
                }
            }
        }
    }

    /// Raises every alarm that is due.
    pub(super) async fn alarms(&self) -> Result<Vec<Entry>, LedgerError> {
        let mut raised = Vec::new();
        loop {
            let page = self.raise_alarms(now(), PAGE_MAX).await?;
            if page.entries.is_empty() {
                return Ok(raised);
            }
            raised.extend(page.entries);
        }
    }
}
