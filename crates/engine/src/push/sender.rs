//! The sender: claims what is due, and begins to deliver it.

use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::Timestamp;
use longhaul_store::{DueDelivery, HostState, Settlement, StoreError};
use tokio::sync::Notify;

use super::PushParts;
use super::delivery::{Begun, deliver_all};
use super::places::Places;
use crate::clock::{later, until};
use crate::engine::Inner;

/// How many deliveries are claimed at once.
const CLAIMS_MAX: usize = 64;
/// By how much a claim outlasts the attempt that is made under it.
const CLAIM_MARGIN: Duration = Duration::from_secs(15);
/// How long to wait before a store is asked again that can't answer.
pub(super) const STORE_RETRY: Duration = Duration::from_secs(1);
/// The shortest sleep until something is due.
const SLEEP_MIN: Duration = Duration::from_millis(5);

/// What sends.
#[derive(Debug)]
pub(crate) struct Push {
    pub parts: PushParts,
    /// Rung when a delivery may have become due, or a place free.
    bell: Arc<Notify>,
    places: Arc<Places>,
}

impl Push {
    pub fn new(parts: PushParts, in_flight_max: usize, host_max: usize) -> Self {
        let bell = Arc::new(Notify::new());
        let places = Arc::new(Places::new(Arc::clone(&bell), in_flight_max, host_max));
        Self { parts, bell, places }
    }

    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// Until when a delivery is claimed of which an attempt begins at `now`.
    pub(super) fn claim_until(&self, now: Timestamp) -> Timestamp {
        later(now, self.parts.courier.attempt_max() + CLAIM_MARGIN)
    }
}

/// Where the sender stands in its turns between hosts.
#[derive(Debug)]
struct Turns {
    last_host: Option<String>,
    /// How many are claimed at once: few while there are more of one host than it has places for, else each one that is
    /// delivered would have a whole batch claimed and given back.
    width: usize,
}

/// Sends until the engine goes down.
pub(crate) async fn send_pushes(inner: Arc<Inner>, push: Arc<Push>) {
    let mut turns = Turns { last_host: None, width: CLAIMS_MAX };
    loop {
        let wait = match send_due(&inner, &push, &mut turns).await {
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
async fn send_due(inner: &Arc<Inner>, push: &Arc<Push>, turns: &mut Turns) -> Result<Duration, StoreError> {
    let (patience, places) = (inner.config.push_poll, &push.places);
    loop {
        // Said first, so that a place that becomes free from here on rings.
        places.leaves_out(true);
        let (free, busy) = (places.free(), places.busy());
        if free == 0 || inner.closing.is_cancelled() {
            return Ok(patience);
        }
        let limit = free.min(turns.width);
        let now = inner.clock.now();
        let last_host = turns.last_host.as_deref();
        let due = inner.store.claim_deliveries(now, push.claim_until(now), limit, last_host, &busy).await?;
        if due.len() < limit && busy.is_empty() {
            places.leaves_out(false);
        }
        if due.is_empty() {
            let next = inner.store.next_delivery().await?;
            // What is due and was not given is for hosts that are busy or held back.
            let wait = next.filter(|next| *next > now).map_or(patience, |next| until(now, next));
            return Ok(wait.clamp(SLEEP_MIN, patience.max(SLEEP_MIN)));
        }
        let mut all_begun = true;
        for delivery in due {
            turns.last_host = Some(delivery.config.host.clone());
            all_begun &= begin(inner, push, delivery).await;
        }
        turns.width = if all_begun { turns.width.saturating_mul(2).min(CLAIMS_MAX) } else { places.sure() };
    }
}

/// Begins a delivery; gives it back if its host has no place for it. Answers whether it was begun.
async fn begin(inner: &Arc<Inner>, push: &Arc<Push>, delivery: DueDelivery) -> bool {
    let Some(place) = push.places.take(&delivery.config.host) else {
        give_back(inner, &delivery).await;
        return false;
    };
    let is_probe = match may_ask(inner, push, &delivery).await {
        Ok(Some(is_probe)) => is_probe,
        Ok(None) => {
            give_back(inner, &delivery).await;
            return false;
        }
        Err(error) => {
            super::delivery::unsettled(&delivery, &error);
            return false;
        }
    };
    let (inner, push) = (Arc::clone(inner), Arc::clone(push));
    inner.tracker.clone().spawn(async move {
        deliver_all(&inner, &push, Begun { delivery, place, is_probe }).await;
    });
    true
}

/// Whether a host that has failed may be sent to, and then whether this is a probe: when a host was held back for long enough,
/// one delivery asks how it is, and the others wait for what it finds.
async fn may_ask(inner: &Inner, push: &Push, delivery: &DueDelivery) -> Result<Option<bool>, StoreError> {
    if delivery.host_failures == 0 {
        return Ok(Some(false));
    }
    let host = &delivery.config.host;
    let (known, now) = (inner.store.push_host(host).await?, inner.clock.now());
    match known.open_until {
        None => Ok(Some(false)),
        Some(until) if until > now => Ok(None),
        Some(_) => {
            let probed = HostState { open_until: Some(push.claim_until(now)), ..known };
            inner.store.set_push_host(host, probed).await?;
            Ok(Some(true))
        }
    }
}

/// Has a delivery that was claimed be due again, without an attempt.
async fn give_back(inner: &Inner, delivery: &DueDelivery) {
    let now = inner.clock.now();
    let error = "its host has enough deliveries in flight".to_owned();
    let later = Settlement::Retry { at: now, error, counts: false };
    if let Err(error) = inner.store.settle_delivery(delivery, later, None, now).await {
        super::delivery::unsettled(delivery, &error);
    }
}
