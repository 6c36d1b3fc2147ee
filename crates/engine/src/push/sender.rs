//! The sender: claims what is due, has it delivered, and says what became of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use longhaul_protocol::Timestamp;
use longhaul_store::{DueDelivery, HostState, Next, Settlement, StoreError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::{Parcel, PushParts, Secrets, Verdict};
use crate::clock::{later, until};
use crate::engine::Inner;

/// How many deliveries are claimed at once.
const CLAIMS_MAX: usize = 64;
/// How many events of one config are delivered under one claim, before others have their turn.
const CHAIN_MAX: u32 = 32;
/// By how much a claim outlasts the attempt that is made under it.
const CLAIM_MARGIN: Duration = Duration::from_secs(15);
/// How long to wait before a store is asked again that can't answer.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// What sends.
#[derive(Debug)]
pub(crate) struct Push {
    pub parts: PushParts,
    /// Rung when a delivery may have become due, or a place free.
    bell: Notify,
    places: Arc<Semaphore>,
    hosts: Mutex<HashMap<String, usize>>,
    host_max: usize,
}

impl Push {
    pub fn new(parts: PushParts, in_flight_max: usize, host_max: usize) -> Self {
        let places = Arc::new(Semaphore::new(in_flight_max.clamp(1, Semaphore::MAX_PERMITS)));
        Self { parts, bell: Notify::new(), places, hosts: Mutex::default(), host_max: host_max.max(1) }
    }

    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// The hosts that have as many deliveries in flight as they may.
    fn busy(&self) -> Vec<String> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.iter().filter(|(_, count)| **count >= self.host_max).map(|(host, _)| host.clone()).collect()
    }

    /// A place among the deliveries in flight to a host; `None` when it has as many as it may.
    fn place(self: &Arc<Self>, host: &str, permit: OwnedSemaphorePermit) -> Option<Place> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = hosts.entry(host.to_owned()).or_default();
        if *count >= self.host_max {
            return None;
        }
        *count += 1;
        Some(Place { push: Arc::clone(self), host: host.to_owned(), _permit: permit })
    }
}

/// A delivery in flight.
struct Place {
    push: Arc<Push>,
    host: String,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hosts = self.push.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = hosts.get_mut(&self.host) {
            *count -= 1;
            if *count == 0 {
                hosts.remove(&self.host);
            }
        }
        drop(hosts);
        // What was left out for want of a place may go now.
        self.push.ring();
    }
}

/// Sends until the engine goes down.
pub(crate) async fn send_pushes(inner: Arc<Inner>, push: Arc<Push>) {
    let mut last_host = None;
    loop {
        let wait = match send_due(&inner, &push, &mut last_host).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot read which push notifications are due"
                );
                STORE_RETRY
            }
        };
        tokio::select! {
            biased;
            () = inner.closing.cancelled() => return,
            () = push.bell.notified() => {}
            () = inner.clock.sleep(wait) => {}
        }
    }
}

/// Begins what is due, and answers how long it is until something else will be.
async fn send_due(
    inner: &Arc<Inner>,
    push: &Arc<Push>,
    last_host: &mut Option<String>,
) -> Result<Duration, StoreError> {
    let patience = inner.config.push_poll;
    loop {
        let free = push.places.available_permits().min(CLAIMS_MAX);
        if free == 0 || inner.closing.is_cancelled() {
            return Ok(patience);
        }
        let now = inner.clock.now();
        let claim_until = claim_until(push, now);
        let due = inner.store.claim_deliveries(now, claim_until, free, last_host.as_deref(), &push.busy()).await?;
        if due.is_empty() {
            let next = inner.store.next_delivery().await?.map_or(patience, |next| until(now, next));
            return Ok(next.clamp(Duration::from_millis(50), patience));
        }
        for delivery in due {
            *last_host = Some(delivery.config.host.clone());
            let permit = Arc::clone(&push.places).try_acquire_owned().ok();
            match permit.and_then(|permit| push.place(&delivery.config.host, permit)) {
                Some(place) => {
                    let (inner, push) = (Arc::clone(inner), Arc::clone(push));
                    inner.tracker.clone().spawn(async move {
                        deliver_all(&inner, &push, delivery).await;
                        drop(place);
                    });
                }
                None => {
                    let error = "its host has enough deliveries in flight".to_owned();
                    let later = Settlement::Retry { at: now, error, counts: false };
                    inner.store.settle_delivery(&delivery, later, None, now).await?;
                }
            }
        }
    }
}

fn claim_until(push: &Push, now: Timestamp) -> Timestamp {
    later(now, push.parts.courier.attempt_max() + CLAIM_MARGIN)
}

/// Delivers the event that was claimed, and those that follow it, one after the other.
async fn deliver_all(inner: &Inner, push: &Push, mut delivery: DueDelivery) {
    for delivered in 1..=CHAIN_MAX {
        let settlement = match attempt(inner, push, &delivery).await {
            Ok(settlement) => settlement,
            Err(error) => return unsettled(&delivery, &error),
        };
        let goes_on = delivered < CHAIN_MAX
            && !inner.closing.is_cancelled()
            && matches!(settlement, Settlement::Delivered | Settlement::Dead { .. });
        let now = inner.clock.now();
        let hold = goes_on.then(|| claim_until(push, now));
        log(&delivery, &settlement);
        match inner.store.settle_delivery(&delivery, settlement, hold, now).await {
            Ok(Next::Held { sequence }) => {
                delivery = DueDelivery { sequence, attempts: 0, first_attempt_at: None, ..delivery };
            }
            Ok(Next::Released | Next::Lost) => return,
            Err(error) => return unsettled(&delivery, &error),
        }
    }
}

/// Whoever claims it when this claim has run out tries it again.
fn unsettled(delivery: &DueDelivery, error: &StoreError) {
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
async fn attempt(inner: &Inner, push: &Push, delivery: &DueDelivery) -> Result<Settlement, StoreError> {
    let Some(body) = event(inner, delivery).await? else {
        return Ok(Settlement::Dead { error: "its event is not in the log any more".to_owned() });
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
        id: format!("{}.{}.{}", delivery.task_id, delivery.config.id, delivery.sequence),
        body,
    };
    let verdict = push.parts.courier.deliver(parcel).await;
    note_host(inner, push, delivery, &verdict).await?;
    let now = inner.clock.now();
    Ok(match verdict {
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
    })
}

/// The event's payload, as streams send it.
async fn event(inner: &Inner, delivery: &DueDelivery) -> Result<Option<Bytes>, StoreError> {
    let before = delivery.sequence.saturating_sub(1);
    let events = inner.store.events_after(&delivery.task_id, before, 1).await?;
    let event = events.into_iter().next().filter(|event| event.sequence == delivery.sequence);
    Ok(event.map(|event| event.payload))
}

/// Keeps what is known of the host: after some failures in a row nothing is sent to it for a while, of no config.
async fn note_host(inner: &Inner, push: &Push, delivery: &DueDelivery, verdict: &Verdict) -> Result<(), StoreError> {
    let host = &delivery.config.host;
    match verdict {
        Verdict::Failed { host_is_down: true, .. } => {
            let known = inner.store.push_host(host).await?;
            let state = push.parts.courier.after_failure(known.failures, inner.ids.jitter(), inner.clock.now());
            if known.open_until.is_none() && state.open_until.is_some() {
                tracing::warn!(host, "push notifications to a host are held back: it does not answer");
            }
            inner.store.set_push_host(host, state).await
        }
        _ if delivery.host_failures > 0 => inner.store.set_push_host(host, HostState::default()).await,
        _ => Ok(()),
    }
}
