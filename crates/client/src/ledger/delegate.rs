//! Delegating, and following one entry to its rest.

use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::wire;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::claimed::{ALARM_INTERVAL, Worked};
use super::driver::{Driver, FollowUp, Pass, Setup, Tell, Unsent, Update};
use super::{ClaimMode, Deadline, EntryId, Finding, Follower, Held, Ledger, LedgerError, NewEntry, Route, State};
use crate::card::Preference;
use crate::client::give_id;
use crate::clock::now;
use crate::{Client, ClientError};

/// How many updates wait for who reads them, before the following waits too.
const UPDATES_MAX: usize = 16;

/// What is to be delegated.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delegation {
    /// The reference or URL of the agent's card, by which a recovery finds the agent again.
    pub card: String,
    /// What is asked. A message without an id is given one.
    pub request: wire::SendMessageRequest,
    /// Why, for the person who finds it later. Default empty.
    pub purpose: String,
    /// When silence raises an alarm. Default never.
    pub deadline: Option<Deadline>,
    /// How it is followed up.
    pub follow_up: FollowUp,
    /// Under which name it is followed; see [`RecoverOptions::predecessor`](super::RecoverOptions::predecessor). Default a name
    /// that no other has.
    pub follower: Option<Follower>,
}

impl Delegation {
    /// A delegation of this request to the agent whose card this is, with the defaults.
    #[must_use]
    pub fn new(card: &str, request: wire::SendMessageRequest) -> Self {
        let (purpose, follow_up) = (String::new(), FollowUp::default());
        Self { card: card.to_owned(), request, purpose, deadline: None, follow_up, follower: None }
    }
}

impl Route {
    /// The way by which a client reaches its agent.
    #[must_use]
    pub fn of(client: &Client, card: &str) -> Self {
        let chosen = client.interface();
        Self {
            card: card.to_owned(),
            interface_url: chosen.url.clone(),
            binding: chosen.binding.to_string(),
            protocol_version: chosen.version.to_string(),
            tenant: chosen.tenant.clone(),
        }
    }

    /// What to prefer of the card, to come by the same binding again. The version is allowed that was spoken, besides the
    /// default; an older one is still spoken only to an agent that has nothing later.
    #[must_use]
    pub fn preference(&self) -> Preference {
        let mut preference =
            Preference { bindings: self.binding.parse().into_iter().collect(), ..Preference::default() };
        if let Ok(version) = self.protocol_version.parse()
            && !preference.versions.contains(&version)
        {
            preference.versions.push(version);
        }
        preference
    }
}

/// What goes over the network. Within a runtime of tokio.
impl Ledger {
    /// Writes a delegation down, then sends it, and follows it to its rest, in the background: whatever happens to this process
    /// after this has answered, [`recover`](Self::recover) finds it again.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Invalid`] for what can't be written down; else what writing came to grief by. Then nothing was sent.
    ///
    /// # Cancel safety
    ///
    /// A dropped future sends nothing, but the delegation may be written down, and then the next recovery sends it.
    pub async fn delegate(&self, client: &Client, delegation: Delegation) -> Result<Followed, LedgerError> {
        let Delegation { card, mut request, purpose, deadline, follow_up, follower } = delegation;
        with_id(&mut request)?;
        let follower = follower.unwrap_or_else(|| Follower::of_this_process(now()));
        let new = NewEntry { route: Route::of(client, &card), purpose, request, deadline };
        let held = self.prepare(new, &follower, now()).await?;
        Ok(Followed::begin(self.clone(), client.clone(), follow_up, held))
    }

    /// Answers a question, or goes on with the task otherwise: writes the message down, then sends it, and follows the task to
    /// its next rest. Task and context are those of the entry, whatever the message says.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Claimed`] when another follows it and `mode` is [`ClaimMode::IfFree`]; [`LedgerError::NotAllowed`] when
    /// the entry has no task that could take a message; [`LedgerError::Invalid`]; [`LedgerError::NotFound`].
    ///
    /// # Cancel safety
    ///
    /// As [`delegate`](Self::delegate).
    pub async fn answer(
        &self,
        id: EntryId,
        client: &Client,
        mut request: wire::SendMessageRequest,
        options: ResumeOptions,
    ) -> Result<Followed, LedgerError> {
        let ResumeOptions { mode, follow_up, follower } = options;
        let mut held = self.claim(id, &follower, mode, now()).await?;
        let message = request.message.get_or_insert_default();
        message.task_id = held.entry.state.task_id().unwrap_or_default().to_owned();
        message.context_id = held.entry.context_id.clone().unwrap_or_default();
        with_id(&mut request)?;
        match self.reply(&held.claim, &request, now()).await {
            Ok(entry) => held.entry = entry,
            Err(error) => {
                self.give_back(&held).await;
                return Err(error);
            }
        }
        Ok(Followed::begin(self.clone(), client.clone(), follow_up, held))
    }

    /// Goes on with one entry: sends what was not sent, asks how a task stands, follows it. Entries that are uncertain or lost
    /// are looked for once more. A question that still stands comes back at once.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Claimed`] when another follows it and `mode` is [`ClaimMode::IfFree`]; [`LedgerError::NotAllowed`] when
    /// it is settled; [`LedgerError::NotFound`].
    pub async fn resume(&self, id: EntryId, client: &Client, options: ResumeOptions) -> Result<Followed, LedgerError> {
        let ResumeOptions { mode, follow_up, follower } = options;
        let held = self.claim(id, &follower, mode, now()).await?;
        Ok(Followed::begin(self.clone(), client.clone(), follow_up, held))
    }

    /// Gives the claim back; that it fails is no reason to fail: claims run out.
    pub(super) async fn give_back(&self, held: &Held) {
        let _ = self.release(vec![held.claim.clone()]).await;
    }
}

/// How an entry is gone on with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResumeOptions {
    /// What if another follows it. Default [`ClaimMode::IfFree`].
    pub mode: ClaimMode,
    /// How it is followed up.
    pub follow_up: FollowUp,
    /// Under which name. Default one that no other has.
    pub follower: Follower,
}

impl Default for ResumeOptions {
    fn default() -> Self {
        let follower = Follower::of_this_process(now());
        Self { mode: ClaimMode::IfFree, follow_up: FollowUp::default(), follower }
    }
}

fn with_id(request: &mut wire::SendMessageRequest) -> Result<(), LedgerError> {
    give_id(request)
        .map_err(|_| LedgerError::Invalid { field: "the request", problem: "must have a message".to_owned() })
}

/// A delegation that is followed in the background. Dropping it ends that at once: others may go on when its claim has run out,
/// after [`CLAIM_DURATION`](super::CLAIM_DURATION). [`stop`](Self::stop) lets them at once.
#[derive(Debug)]
pub struct Followed {
    entry_id: EntryId,
    updates: mpsc::Receiver<Update>,
    stop: CancellationToken,
    following: JoinSet<Result<Finding, LedgerError>>,
}

impl Followed {
    fn begin(ledger: Ledger, client: Client, follow_up: FollowUp, held: Held) -> Self {
        let entry_id = held.entry.id;
        let (updates, received) = mpsc::channel(UPDATES_MAX);
        let stop = CancellationToken::new();
        let tell = Tell::Updates(updates.clone());
        let driver =
            Driver::new(Setup { ledger: ledger.clone(), client, follow_up, unsent: Unsent::Settles, tell }, held);
        let mut following = JoinSet::new();
        following.spawn(follow(ledger, driver, updates, stop.clone()));
        Self { entry_id, updates: received, stop, following }
    }

    /// Which entry.
    #[must_use]
    pub fn entry_id(&self) -> EntryId {
        self.entry_id
    }

    /// What happens next; none when the entry has come to its rest. The following waits for who reads this: call
    /// [`rest`](Self::rest) when the updates are of no interest.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses nothing.
    pub async fn next(&mut self) -> Option<Update> {
        self.updates.recv().await
    }

    /// Waits for the rest: the entry is settled, waits for a person, or could not be asked about within the patience. Updates
    /// that were not read are dropped.
    ///
    /// # Errors
    ///
    /// What reading or writing the ledger came to grief by. The entry stays as it is, for a recovery.
    ///
    /// # Cancel safety
    ///
    /// A dropped future ends the following.
    pub async fn rest(mut self) -> Result<Finding, LedgerError> {
        self.updates.close();
        match self.following.join_next().await {
            Some(Ok(found)) => found,
            Some(Err(error)) => Err(LedgerError::Unavailable { action: "follow an entry", source: error.into() }),
            None => Err(LedgerError::Closed),
        }
    }

    /// Ends the following, so that another may go on with the entry at once. Answers how it stands.
    ///
    /// # Errors
    ///
    /// As [`rest`](Self::rest).
    pub async fn stop(self) -> Result<Finding, LedgerError> {
        self.stop.cancel();
        self.rest().await
    }
}

async fn follow(
    ledger: Ledger,
    mut driver: Driver,
    updates: mpsc::Sender<Update>,
    stop: CancellationToken,
) -> Result<Finding, LedgerError> {
    let claim = driver.claim().clone();
    let alarms = Tell::Updates(updates.clone());
    let work = async {
        tokio::select! {
            biased;
            found = to_rest(&mut driver, &updates) => found,
            error = alarming(&ledger, &alarms) => Err(error),
        }
    };
    let worked = ledger.under_claim(&claim, &stop, work).await;
    let _ = ledger.release(vec![claim.clone()]).await;
    match worked? {
        Worked::Done(finding) => Ok(finding),
        Worked::Gone(entry) => Ok(Finding::gone(*entry)),
        Worked::Stopped => ledger.get(claim.entry_id()).await.map(Finding::of),
    }
}

/// Raises alarms, until that fails.
async fn alarming(ledger: &Ledger, tell: &Tell) -> LedgerError {
    loop {
        sleep(ALARM_INTERVAL).await;
        match ledger.alarms().await {
            Ok(raised) => {
                for entry in raised {
                    tell.alarm(entry).await;
                }
            }
            Err(LedgerError::Busy { .. }) => {}
            Err(error) => return error,
        }
    }
}

async fn to_rest(driver: &mut Driver, updates: &mpsc::Sender<Update>) -> Result<Finding, LedgerError> {
    let mut trouble: Option<Trouble> = None;
    loop {
        let pass = match driver.check().await? {
            Pass::Running => driver.follow().await?,
            pass => pass,
        };
        let error = match pass {
            Pass::Rest(entry) => return Ok(Finding::of(entry)),
            Pass::Refused(entry, error) if entry.state.is_settled() => {
                return Ok(Finding::Refused { entry, error: Arc::new(error) });
            }
            // The task that the message was for stands on its own.
            Pass::Refused(_, error) => {
                let _ = updates.send(Update::Trouble(Arc::new(error))).await;
                continue;
            }
            Pass::Running => continue,
            Pass::Later(error) => Arc::new(error),
        };
        let patience = driver.patience();
        let is_unsent = matches!(driver.entry().state, State::Prepared { .. }) && driver.entry().attempts == 0;
        let known = trouble.get_or_insert_with(Trouble::new);
        // Who is there to be asked decides about a message that was not sent.
        if is_unsent || known.since.elapsed() >= patience {
            return Ok(Finding::Unreachable { entry: driver.entry().clone(), error });
        }
        let wait = known.again(driver, &error);
        let _ = updates.send(Update::Trouble(error)).await;
        sleep(wait).await;
    }
}

/// Calls that fail.
struct Trouble {
    since: Instant,
    rounds: u32,
}

impl Trouble {
    fn new() -> Self {
        Self { since: Instant::now(), rounds: 0 }
    }

    /// How long to wait before the next attempt.
    fn again(&mut self, driver: &Driver, error: &ClientError) -> Duration {
        self.rounds = self.rounds.saturating_add(1);
        let asked = error.retry_after().unwrap_or_default().min(driver.patience());
        driver.backoff(self.rounds).max(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{Binding, ProtocolVersion};

    #[test]
    fn the_version_that_was_spoken_is_allowed_to_whoever_comes_again() {
        let preference = |version: &str| {
            let route = Route {
                card: "https://a.example".to_owned(),
                interface_url: "https://a.example/rpc".to_owned(),
                binding: Binding::JsonRpc.to_string(),
                protocol_version: version.to_owned(),
                tenant: String::new(),
            };
            route.preference()
        };
        assert_eq!(preference("1.0"), Preference { bindings: vec![Binding::JsonRpc], ..Preference::default() });
        assert_eq!(preference("0.3").versions, [ProtocolVersion::V1_0, ProtocolVersion::V0_3]);
    }
}
