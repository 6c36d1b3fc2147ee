use std::sync::Arc;
use std::time::Duration;

use longhaul_store::Heard;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_postgres::Notification;
use tokio_util::sync::CancellationToken;

use super::notifier::{Notifier, Outbox};
use super::payload::{self, Said};
use super::slate::Slate;
use super::{COMPLAINT_INTERVAL, Trouble};
use crate::backoff::jittered;
use crate::fault::Fault;
use crate::session::{Database, Session, quoted, within};

/// How it is found out that nothing is heard any more although nothing says so.
#[derive(Clone, Copy, Debug)]
struct Rhythm {
    /// How often the notifier is asked for a probe, which must be heard here.
    probe_interval: Duration,
    /// How soon it must be heard.
    probe_limit: Duration,
    /// How often it may fail to.
    misses_max: u32,
    /// How soon another connection is tried when on one nothing was ever heard: it is likely to be the same there.
    deaf_interval: Duration,
}

const RHYTHM: Rhythm = Rhythm {
    probe_interval: Duration::from_secs(10),
    probe_limit: Duration::from_secs(5),
    misses_max: 2,
    deaf_interval: COMPLAINT_INTERVAL,
};

/// Hears what other instances tell.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Nothing where the configuration wants no notifications.
    ears: Option<Arc<Ears>>,
}

/// What was heard and nobody took yet.
#[derive(Debug)]
struct Ears {
    outbox: Arc<Outbox>,
    slate: Slate,
    /// The newest probe of our own that was heard.
    probe: watch::Sender<u64>,
}

impl Listener {
    /// Begins to listen, until `closing`. The instance's own notifier is not heard, except for its probes.
    pub(crate) fn start(database: Database, notifier: &Notifier, closing: CancellationToken) -> Self {
        Self::start_with(database, notifier, closing, RHYTHM)
    }

    fn start_with(database: Database, notifier: &Notifier, closing: CancellationToken, rhythm: Rhythm) -> Self {
        let Some(outbox) = notifier.outbox() else { return Self { ears: None } };
        let ears =
            Arc::new(Ears { outbox: Arc::clone(outbox), slate: Slate::default(), probe: watch::Sender::default() });
        let listening = listen(Arc::clone(&ears), database.clone(), rhythm);
        let tracker = database.tracker();
        tracker.spawn(async move { closing.run_until_cancelled_owned(listening).await });
        Self { ears: Some(ears) }
    }

    /// Waits until something is heard. Each new connection is heard as [`Heard::Anything`]: what was said before it is lost.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing. One waits.
    pub(crate) async fn heard(&self) -> Heard {
        let Some(ears) = &self.ears else { return std::future::pending().await };
        loop {
            if let (Some(heard), _) = ears.slate.take() {
                return heard;
            }
            ears.slate.changed().await;
        }
    }
}

impl Ears {
    fn hear(&self, notification: &Notification) {
        let (sender, said) = payload::read(notification.payload());
        let is_own = sender == Some(self.outbox.sender);
        match said {
            Said::Probe(number) if is_own => _ = self.probe.send_replace(number),
            Said::Probe(_) => {}
            Said::News(_) if is_own => {}
            Said::News(heard) => self.slate.note_heard(heard),
        }
    }

    /// Has a probe sent and waits until it is heard, which must be soon.
    async fn hears(&self, limit: Duration) -> bool {
        let number = self.outbox.probe().await;
        timeout(limit, self.probe.subscribe().wait_for(|heard| *heard >= number)).await.is_ok()
    }
}

/// Why a connection is given up.
enum Ending {
    Closed,
    /// Nothing is heard on it any more.
    Silent,
    /// Nothing ever was.
    Deaf,
}

async fn listen(ears: Arc<Ears>, database: Database, rhythm: Rhythm) {
    let mut trouble = Trouble::new();
    let mut has_warned = false;
    loop {
        let ended = CancellationToken::new();
        let wait = match connect(&ears, &database, &ended).await {
            Ok(_session) => {
                ears.slate.note_anything();
                match watch_over(&ears, &ended, rhythm, &mut trouble).await {
                    Ending::Closed => trouble.backoff.next(),
                    Ending::Silent => {
                        tracing::warn!("the connection that hears other instances fell silent and is replaced");
                        trouble.backoff.next()
                    }
                    Ending::Deaf => {
                        if !has_warned {
                            warn_of_deafness();
                        }
                        has_warned = true;
                        jittered(rhythm.deaf_interval)
                    }
                }
            }
            Err(fault) => trouble.meet(&fault, "listening to other instances by LISTEN"),
        };
        sleep(wait).await;
    }
}

/// Opens the connection that hears. `ended` is cancelled when it has ended.
async fn connect(ears: &Arc<Ears>, database: &Database, ended: &CancellationToken) -> Result<Session, Fault> {
    let (ears, guard) = (Arc::clone(ears), ended.clone().drop_guard());
    let listen = format!("LISTEN {}", quoted(&ears.outbox.channel));
    let session = database
        .connect_hearing(move |notification| {
            let _ends_with_the_connection = &guard;
            ears.hear(&notification);
        })
        .await?;
    within(database.config.statement_timeout, async { Ok(session.client().batch_execute(&listen).await?) }).await?;
    Ok(session)
}

/// Sees to it that something is heard: a pooler swallows notifications, and a network that is gone says nothing.
///
/// The probe is sent on the notifier's connection, as others would: a pooler lets through what comes in the same breath as the
/// statement that caused it.
async fn watch_over(ears: &Ears, ended: &CancellationToken, rhythm: Rhythm, trouble: &mut Trouble) -> Ending {
    let (mut misses, mut has_heard) = (0, false);
    loop {
        let Some(hears) = ended.run_until_cancelled(ears.hears(rhythm.probe_limit)).await else {
            return Ending::Closed;
        };
        if hears {
            (misses, has_heard) = (0, true);
            trouble.over();
            if ended.run_until_cancelled(sleep(rhythm.probe_interval)).await.is_none() {
                return Ending::Closed;
            }
            continue;
        }
        misses += 1;
        if misses == rhythm.misses_max {
            return if has_heard { Ending::Silent } else { Ending::Deaf };
        }
    }
}

fn warn_of_deafness() {
    tracing::warn!(
        "what instances tell each other by NOTIFY does not arrive, so they look once a second: a pooler that shares connections \
         between transactions swallows it, or the address leads to several servers; connect to the database directly, or set \
         notify = false"
    );
}

#[cfg(test)]
mod tests;
