//! One delivery: its event is read, brought to the receiver, and what became of it is written down.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use longhaul_protocol::Timestamp;
use longhaul_store::{DueDelivery, EventKind, HistoryLimit, HostState, Next, Settlement, SnapshotQuery, StoreError};
use sha2::{Digest as _, Sha256};

use super::places::{Place, Standing};
use super::sender::STORE_RETRY;
use super::{Content, Parcel, Push, Secrets, Verdict};
use crate::engine::Inner;
use crate::stream::task_payload;

/// How many events of one config are delivered under one claim, before others have their turn.
const CHAIN_MAX: u32 = 32;
/// How often it is tried to write down what became of a delivery, before its claim is left to run out.
const SETTLES_MAX: u32 = 3;
/// By how much an attempt may exceed the time that its courier knows, before it is taken to be stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);
/// How long a delivery under way has when the engine goes down.
const GOODBYE: Duration = Duration::from_secs(2);
/// The longest id of a config that stands in the id of a delivery as it is.
const PLAIN_ID_BYTES_MAX: usize = 64;

/// A delivery that was claimed and has its place.
#[derive(Debug)]
pub(super) struct Begun {
    pub delivery: DueDelivery,
    pub place: Place,
    /// Whether it asks how a host is that was held back.
    pub is_probe: bool,
}

/// Delivers the event that was claimed, and those that follow it, one after the other.
pub(super) async fn deliver_all(inner: &Inner, push: &Push, mut begun: Begun) {
    for delivered in 1..=CHAIN_MAX {
        let settlement = match attempt(inner, push, &mut begun).await {
            Ok(settlement) => settlement,
            Err(error) => return unsettled(&begun.delivery, &error),
        };
        let is_done = matches!(settlement, Settlement::Delivered | Settlement::Dead { .. });
        let goes_on = is_done && delivered < CHAIN_MAX && !inner.closing.is_cancelled();
        log(&begun.delivery, &settlement);
        match settle(inner, push, &begun.delivery, settlement, goes_on).await {
            Ok(Next::Held { sequence }) => {
                begun.delivery = DueDelivery { sequence, attempts: 0, first_attempt_at: None, ..begun.delivery };
            }
            Ok(Next::Released) if goes_on => return,
            // The sender learns when it is due again.
            Ok(Next::Released | Next::Lost) => return push.ring(),
            Err(error) => return unsettled(&begun.delivery, &error),
        }
    }
}

/// Writes down what became of a delivery. A store that can't is asked again while the claim lasts: what was delivered and not
/// written down comes twice.
async fn settle(
    inner: &Inner,
    push: &Push,
    delivery: &DueDelivery,
    settlement: Settlement,
    goes_on: bool,
) -> Result<Next, StoreError> {
    let mut tries = 1;
    loop {
        let now = inner.clock.now();
        let hold = goes_on.then(|| push.claim_until(now));
        match inner.store.settle_delivery(delivery, settlement.clone(), hold, now).await {
            Err(StoreError::Unavailable { .. }) if tries < SETTLES_MAX => {
                tries += 1;
                inner.clock.sleep(STORE_RETRY).await;
            }
            settled => return settled,
        }
    }
}

/// Whoever claims it when this claim has run out tries it again.
pub(super) fn unsettled(delivery: &DueDelivery, error: &StoreError) {
    tracing::warn!(
        task_id = delivery.task_id.as_str(),
        push_config_id = delivery.config.id.as_str(),
        sequence = delivery.sequence,
        error = error as &dyn std::error::Error,
        "cannot say what became of a push notification: it may come twice"
    );
}

fn log(delivery: &DueDelivery, settlement: &Settlement) {
    let (task_id, push_config_id) = (delivery.task_id.as_str(), delivery.config.id.as_str());
    let (host, sequence, attempt) = (delivery.config.host.as_str(), delivery.sequence, delivery.attempts + 1);
    match settlement {
        Settlement::Delivered => {
            tracing::debug!(task_id, push_config_id, host, sequence, attempt, "push notification delivered");
        }
        Settlement::Retry { error, .. } => {
            tracing::info!(task_id, push_config_id, host, sequence, attempt, error, "push notification failed");
        }
        Settlement::Dead { error } => {
            tracing::warn!(task_id, push_config_id, host, sequence, attempt, error, "push notification given up");
        }
        Settlement::Gone => {
            tracing::info!(task_id, push_config_id, host, "the receiver wants no more: its push config is removed");
        }
    }
}

/// Makes one attempt, and answers what follows from it.
async fn attempt(inner: &Inner, push: &Push, begun: &mut Begun) -> Result<Settlement, StoreError> {
    let delivery = &begun.delivery;
    let body = match body(inner, push, delivery).await? {
        Told::Body(body) => body,
        Told::Later => return Ok(Settlement::Delivered),
        Told::Lost => return Ok(Settlement::Dead { error: "its event is not in the log any more".to_owned() }),
    };
    let secrets = match &delivery.config.secrets {
        None => Secrets::default(),
        Some(sealed) => match push.parts.vault.open(&delivery.task_id, &delivery.config.id, sealed) {
            Ok(secrets) => secrets,
            Err(error) => return Ok(Settlement::Dead { error: format!("its secrets can't be read: {error}") }),
        },
    };
    let parcel = Parcel {
        url: delivery.config.url.clone(),
        scheme: delivery.config.scheme.clone(),
        secrets,
        version: delivery.config.version.clone(),
        id: delivery_id(delivery),
        body,
    };
    let Some(verdict) = bring(inner, push, parcel).await else {
        let error = "the server went down before it was answered".to_owned();
        return Ok(Settlement::Retry { at: inner.clock.now(), error, counts: false });
    };
    if let Err(error) = note_host(inner, push, begun, &verdict).await {
        // What became of the delivery matters more.
        let host = begun.delivery.config.host.as_str();
        tracing::warn!(host, error = &error as &dyn std::error::Error, "cannot take note of how a host answers");
    }
    Ok(follow(inner, push, &begun.delivery, verdict, inner.clock.now()))
}

/// Hands a parcel to the courier. `None` when the engine went down meanwhile.
async fn bring(inner: &Inner, push: &Push, parcel: Parcel) -> Option<Verdict> {
    let courier = &push.parts.courier;
    let goodbye = async {
        inner.closing.cancelled().await;
        inner.clock.sleep(GOODBYE).await;
    };
    tokio::select! {
        biased;
        verdict = courier.deliver(parcel) => Some(verdict),
        () = goodbye => None,
        () = inner.clock.sleep(courier.attempt_max() + STUCK_AFTER) => {
            Some(Verdict::Failed { after: None, why: "it took too long".to_owned(), host_is_down: true })
        }
    }
}

/// What follows from a verdict.
fn follow(inner: &Inner, push: &Push, delivery: &DueDelivery, verdict: Verdict, now: Timestamp) -> Settlement {
    match verdict {
        Verdict::Delivered => Settlement::Delivered,
        Verdict::Gone => Settlement::Gone,
        Verdict::Refused { why } => Settlement::Dead { error: why },
        Verdict::Failed { after, why, .. } => {
            let first = delivery.first_attempt_at.unwrap_or(now);
            let courier = &push.parts.courier;
            match courier.next_attempt(delivery.attempts + 1, first, after, inner.ids.jitter(), now) {
                Some(at) => Settlement::Retry { at, error: why, counts: true },
                None => Settlement::Dead { error: why },
            }
        }
    }
}

/// How an event is told.
enum Told {
    /// As this, in the form in which streams send it.
    Body(Bytes),
    /// With an event that follows it.
    Later,
    /// Not at all: it is gone.
    Lost,
}

async fn body(inner: &Inner, push: &Push, delivery: &DueDelivery) -> Result<Told, StoreError> {
    let content = push.parts.courier.content(&delivery.config.version);
    let limit = match content {
        Content::Event => 1,
        // The one that follows tells whether there is one.
        Content::Task => 2,
    };
    let before = delivery.sequence.saturating_sub(1);
    let mut events = inner.store.events_after(&delivery.task_id, before, limit).await?.into_iter();
    let Some(event) = events.next().filter(|event| event.sequence == delivery.sequence) else {
        return Ok(Told::Lost);
    };
    match content {
        Content::Event => return Ok(Told::Body(event.payload)),
        // A task of many chunks would else be sent whole with each of them.
        Content::Task if event.kind == EventKind::Artifact && events.next().is_some() && !delivery.is_dead => {
            return Ok(Told::Later);
        }
        Content::Task => {}
    }
    let query = SnapshotQuery { at: Some(delivery.sequence), history: HistoryLimit::All, artifacts: true };
    let snapshot = inner.store.snapshot(&delivery.scope, &delivery.task_id, query).await?;
    Ok(snapshot.map_or(Told::Lost, |snapshot| Told::Body(task_payload(snapshot.task))))
}

/// Keeps what is known of the host: after some failures in a row nothing is sent to it for a while, of no config.
async fn note_host(inner: &Inner, push: &Push, begun: &mut Begun, verdict: &Verdict) -> Result<(), StoreError> {
    let host = &begun.delivery.config.host;
    if !matches!(verdict, Verdict::Failed { host_is_down: true, .. }) {
        let before = begun.place.note(Standing::Answers);
        if begun.delivery.host_failures > 0 || before == Standing::Down {
            inner.store.set_push_host(host, HostState::default()).await?;
            begun.delivery.host_failures = 0;
        }
        if before != Standing::Answers {
            // Others that were held back may go.
            push.ring();
        }
        return Ok(());
    }
    begun.place.note(Standing::Down);
    let (known, now) = (inner.store.push_host(host).await?, inner.clock.now());
    // One that left before the host was held back says nothing new.
    if !begun.is_probe && known.open_until.is_some_and(|until| until > now) {
        return Ok(());
    }
    let state = push.parts.courier.after_failure(known.failures, inner.ids.jitter(), now);
    if known.open_until.is_none() && state.open_until.is_some() {
        tracing::warn!(host, "push notifications to a host are held back: it does not answer");
    }
    inner.store.set_push_host(host, state).await
}

/// Names a delivery to its receiver: `<task>_<sequence>_<config>`, the same at each attempt. It is signed together with other
/// things, between full stops, so it holds none: an id of a config that holds more than letters, digits, `-` and `_` is known by
/// its digest.
fn delivery_id(delivery: &DueDelivery) -> String {
    let config = plain(delivery.config.id.as_str(), |byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let task = plain(delivery.task_id.as_str(), |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    format!("{task}_{}_{config}", delivery.sequence)
}

fn plain(id: &str, is_plain: impl Fn(u8) -> bool) -> String {
    match id.len() <= PLAIN_ID_BYTES_MAX && id.bytes().all(is_plain) {
        true => id.to_owned(),
        false => format!("~{}", URL_SAFE_NO_PAD.encode(Sha256::digest(id))),
    }
}
