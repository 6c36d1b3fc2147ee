use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_engine::{Content, Courier, Parcel, Secrets, SecretsError, Vault, Verdict};
use longhaul_protocol::{PushConfigId, TaskId, Timestamp};
use longhaul_store::HostState;
use tokio::sync::watch;

use crate::VERSION;

/// What a scripted courier does with one parcel.
pub type VerdictFuture = Pin<Box<dyn Future<Output = Verdict> + Send>>;
type Script = Box<dyn Fn(&Parcel, usize) -> VerdictFuture + Send + Sync>;

/// A courier whose receivers a test writes down, and that remembers what it was given.
///
/// It tries again after [`ScriptedCourier::RETRY`], twice that, and so on, [`ScriptedCourier::ATTEMPTS_MAX`] times in all; a host
/// is held back from its [`ScriptedCourier::FAILURES_MAX`]th failure in a row on, for [`ScriptedCourier::OPEN`].
pub struct ScriptedCourier {
    script: Script,
    seen: watch::Sender<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    parcels: Vec<Parcel>,
    in_flight: BTreeMap<String, usize>,
    most_of_one: BTreeMap<String, usize>,
    most_of_all: usize,
}

impl ScriptedCourier {
    /// How long an attempt may take.
    pub const ATTEMPT_MAX: Duration = Duration::from_secs(40);
    /// How long it waits before the second attempt.
    pub const RETRY: Duration = Duration::from_secs(10);
    /// How many attempts it makes.
    pub const ATTEMPTS_MAX: u32 = 4;
    /// From how many failures in a row on a host is held back.
    pub const FAILURES_MAX: u32 = 3;
    /// For how long, each time.
    pub const OPEN: Duration = Duration::from_secs(1000);

    /// A courier that does what the closure says, which is told how often the same parcel was tried before.
    #[must_use]
    pub fn new(script: impl Fn(&Parcel, usize) -> VerdictFuture + Send + Sync + 'static) -> Self {
        Self { script: Box::new(script), seen: watch::Sender::default() }
    }

    /// A courier whose receivers answer at once, as the closure says.
    #[must_use]
    pub fn answering(answer: impl Fn(&Parcel, usize) -> Verdict + Send + Sync + 'static) -> Self {
        Self::new(move |parcel, tried| {
            let verdict = answer(parcel, tried);
            Box::pin(async move { verdict })
        })
    }

    /// All that it was given so far, in order.
    #[must_use]
    pub fn parcels(&self) -> Vec<Parcel> {
        self.seen.borrow().parcels.clone()
    }

    /// Waits until it was given so many in all.
    pub async fn given(&self, times: usize) {
        self.seen
            .subscribe()
            .wait_for(|seen| seen.parcels.len() >= times)
            .await
            .expect("a courier holds its own sender");
    }

    /// Waits until so many are in flight.
    pub async fn in_flight(&self, count: usize) {
        let flies = |seen: &Seen| seen.in_flight.values().sum::<usize>() == count;
        self.seen.subscribe().wait_for(flies).await.expect("a courier holds its own sender");
    }

    /// How many were in flight to a host at once, at the most.
    #[must_use]
    pub fn most_of(&self, host: &str) -> usize {
        self.seen.borrow().most_of_one.get(host).copied().unwrap_or_default()
    }

    /// How many were in flight at once, at the most.
    #[must_use]
    pub fn most_of_all(&self) -> usize {
        self.seen.borrow().most_of_all
    }
}

impl fmt::Debug for ScriptedCourier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedCourier").field("parcels", &self.seen.borrow().parcels.len()).finish_non_exhaustive()
    }
}

/// The host of a URL.
fn host(url: &str) -> Option<&str> {
    url.strip_prefix("https://").and_then(|rest| rest.split('/').next())
}

/// One that is in flight, until it is answered or given up.
struct InFlight<'a>(&'a ScriptedCourier, String);

impl<'a> InFlight<'a> {
    fn new(courier: &'a ScriptedCourier, parcel: &Parcel) -> (Self, usize) {
        let host = host(&parcel.url).expect("it was checked").to_owned();
        let mut tried = 0;
        courier.seen.send_modify(|seen| {
            tried = seen.parcels.iter().filter(|known| known.id == parcel.id).count();
            seen.parcels.push(parcel.clone());
            let flies = seen.in_flight.entry(host.clone()).or_default();
            *flies += 1;
            let most = seen.most_of_one.entry(host.clone()).or_default();
            *most = (*most).max(*flies);
            seen.most_of_all = seen.most_of_all.max(seen.in_flight.values().sum());
        });
        (Self(courier, host), tried)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.seen.send_modify(|seen| *seen.in_flight.entry(self.1.clone()).or_insert(1) -= 1);
    }
}

#[async_trait]
impl Courier for ScriptedCourier {
    fn check_url(&self, url: &str) -> Result<String, String> {
        host(url).map(str::to_owned).ok_or_else(|| "must begin with https://".to_owned())
    }

    fn check_secrets(&self, _scheme: Option<&str>, secrets: &Secrets) -> Result<(), (&'static str, String)> {
        match secrets.token.contains('\n') {
            true => Err(("token", "must be one line".to_owned())),
            false => Ok(()),
        }
    }

    fn content(&self, version: &str) -> Content {
        if version == VERSION { Content::Event } else { Content::Task }
    }

    async fn deliver(&self, parcel: Parcel) -> Verdict {
        let (_in_flight, tried) = InFlight::new(self, &parcel);
        (self.script)(&parcel, tried).await
    }

    fn attempt_max(&self) -> Duration {
        Self::ATTEMPT_MAX
    }

    fn next_attempt(
        &self,
        attempts: u32,
        _first_attempt_at: Timestamp,
        after: Option<Duration>,
        _jitter: f64,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let wait = (Self::RETRY * attempts).max(after.unwrap_or_default());
        (attempts < Self::ATTEMPTS_MAX).then(|| later(now, wait))
    }

    fn after_failure(&self, failures: u32, _jitter: f64, now: Timestamp) -> HostState {
        let failures = failures + 1;
        HostState { failures, open_until: (failures >= Self::FAILURES_MAX).then(|| later(now, Self::OPEN)) }
    }
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    Timestamp::from_unix_millis(now.unix_millis() + i64::try_from(wait.as_millis()).expect("a short time"))
}

/// A vault that hides nothing: what it seals can be read, if it is for the same config and by a key that it knows.
#[derive(Clone, Debug)]
pub struct PlainVault {
    /// The key that seals.
    pub key: &'static str,
    /// Another that it can read.
    pub former: Option<&'static str>,
}

impl PlainVault {
    /// A vault with this key alone.
    #[must_use]
    pub fn new(key: &'static str) -> Self {
        Self { key, former: None }
    }
}

impl Vault for PlainVault {
    fn seal(&self, task_id: &TaskId, id: &PushConfigId, secrets: &Secrets) -> Result<Bytes, SecretsError> {
        let Secrets { credentials, token } = secrets;
        Ok(Bytes::from([self.key, task_id.as_str(), id.as_str(), credentials, token].join("\n")))
    }

    fn open(&self, task_id: &TaskId, id: &PushConfigId, sealed: &[u8]) -> Result<Secrets, SecretsError> {
        let text = String::from_utf8_lossy(sealed);
        let parts: Vec<_> = text.split('\n').collect();
        match parts.as_slice() {
            [key, task, config, credentials, token]
                if self.knows(key.as_bytes()) && *task == task_id.as_str() && *config == id.as_str() =>
            {
                Ok(Secrets { credentials: (*credentials).to_owned(), token: (*token).to_owned() })
            }
            _ => Err(SecretsError("sealed for another, or with another key".to_owned())),
        }
    }

    fn is_current(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(format!("{}\n", self.key).as_bytes())
    }

    fn fingerprint(&self) -> Bytes {
        Bytes::from_static(self.key.as_bytes())
    }

    fn knows(&self, fingerprint: &[u8]) -> bool {
        fingerprint == self.key.as_bytes() || self.former.is_some_and(|former| fingerprint == former.as_bytes())
    }
}
