use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use longhaul_store::{Heard, TaskMark};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio_postgres::error::SqlState;
use tokio_util::sync::CancellationToken;

use super::Trouble;
use super::payload::{self, Sender};
use super::slate::Slate;
use crate::fault::Fault;
use crate::session::{Database, Session, within};

/// How long nothing is sent after something was: what happens meanwhile is told together.
pub(super) const REST: Duration = Duration::from_millis(10);
/// How long [`Notifier::flush`] waits.
const FLUSH_DURATION_MAX: Duration = Duration::from_secs(1);

const NOTIFY: &str = "/* notify::notify */ SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload";

/// Tells other instances what this one has committed. Clones tell the same.
#[derive(Clone, Debug)]
pub(crate) struct Notifier {
    /// Nothing where the configuration wants no notifications.
    outbox: Option<Arc<Outbox>>,
}

/// What waits to be told.
#[derive(Debug)]
pub(super) struct Outbox {
    pub(super) sender: Sender,
    pub(super) channel: String,
    slate: Slate,
    /// The number of the newest probe that is wanted.
    probe_wanted: AtomicU64,
    /// How far things are told.
    told: watch::Sender<Told>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// Of what was noted on the slate.
    count: u64,
    /// The newest probe.
    probe: u64,
}

impl Notifier {
    /// Begins to tell, until `closing`; what is rung before there is a connection waits for it.
    pub(crate) fn start(database: Database, closing: CancellationToken) -> Self {
        if !database.config.notify {
            return Self { outbox: None };
        }
        let outbox = Arc::new(Outbox {
            sender: Sender::new(),
            channel: channel(&database.config.schema),
            slate: Slate::default(),
            probe_wanted: AtomicU64::new(0),
            told: watch::Sender::default(),
        });
        let tracker = database.tracker().clone();
        tracker.spawn(run(Arc::clone(&outbox), database, closing));
        Self { outbox: Some(outbox) }
    }

    /// Tells that tasks have come this far, and whether one of them, or another, waits for a worker. Never waits itself.
    pub(crate) fn ring(&self, marks: impl IntoIterator<Item = TaskMark>, due: bool) {
        if let Some(outbox) = &self.outbox {
            outbox.slate.note(marks, due);
        }
    }

    /// Waits until what was rung before is told, at the most for a second.
    pub(crate) async fn flush(&self) {
        let Some(outbox) = &self.outbox else { return };
        let count = outbox.slate.count();
        let mut told = outbox.told.subscribe();
        // Who looks once a second finds out as well.
        let _ = tokio::time::timeout(FLUSH_DURATION_MAX, told.wait_for(|told| told.count >= count)).await;
    }

    pub(super) fn outbox(&self) -> Option<&Arc<Outbox>> {
        self.outbox.as_ref()
    }
}

/// Stores in several schemas of one database must not hear each other. Any release must come to the same name.
fn channel(schema: &str) -> String {
    let digest = Sha256::digest(schema.as_bytes());
    digest.iter().take(8).fold("longhaul_".to_owned(), |name, byte| name + &format!("{byte:02x}"))
}

/// What is told at once.
struct Batch {
    news: Option<Heard>,
    /// The newest probe that is wanted and was not told.
    probe: Option<u64>,
    /// What is told with it.
    told: Told,
}

impl Outbox {
    /// Has a probe told and waits until it is. Its number is how [`Outbox::sender`]'s own listener knows it.
    pub(super) async fn probe(&self) -> u64 {
        let number = self.probe_wanted.fetch_add(1, Ordering::Relaxed) + 1;
        self.slate.wake();
        // The sender lives as long as `self`.
        let _ = self.told.subscribe().wait_for(|told| told.probe >= number).await;
        number
    }

    async fn next(&self) -> Batch {
        loop {
            let before = *self.told.borrow();
            let probe = self.probe_wanted.load(Ordering::Relaxed);
            let (news, count) = self.slate.take();
            let wanted = probe > before.probe;
            if news.is_some() || wanted {
                return Batch { news, probe: wanted.then_some(probe), told: Told { count, probe } };
            }
            self.slate.changed().await;
        }
    }

    fn payloads(&self, batch: &Batch) -> Vec<String> {
        let mut payloads = batch.news.as_ref().map_or_else(Vec::new, |news| payload::payloads(self.sender, news));
        payloads.extend(batch.probe.map(|number| payload::probe(self.sender, number)));
        payloads
    }
}

async fn run(outbox: Arc<Outbox>, database: Database, closing: CancellationToken) {
    let mut session = None;
    let mut trouble = Trouble::new();
    while let Some(batch) = closing.run_until_cancelled(outbox.next()).await {
        let wait = match tell(&database, &mut session, &outbox.channel, outbox.payloads(&batch)).await {
            Ok(()) => {
                outbox.told.send_replace(batch.told);
                trouble.over();
                REST
            }
            Err(fault) => {
                if batch.news.is_some() {
                    outbox.slate.note_anything();
                }
                trouble.meet(&fault, "telling other instances by NOTIFY")
            }
        };
        if closing.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
    }
}

async fn tell(
    database: &Database,
    session: &mut Option<Session>,
    channel: &str,
    payloads: Vec<String>,
) -> Result<(), Fault> {
    let used = match session.take().filter(|session| !session.is_closed()) {
        Some(session) => session,
        None => database.connect().await?,
    };
    let told = within(database.config.statement_timeout, used.query(NOTIFY, &[&channel, &payloads])).await;
    if told.as_ref().err().is_none_or(is_queue_full) {
        *session = Some(used);
    }
    told.map(drop)
}

/// Whether the database keeps too much that a listener has not read: nothing is wrong with the connection.
fn is_queue_full(fault: &Fault) -> bool {
    matches!(fault, Fault::Database(error) if error.code() == Some(&SqlState::PROGRAM_LIMIT_EXCEEDED))
}
