use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_protocol::Timestamp;

use super::SenderConfig;
use super::link::Link;
use crate::guard::Target;
use crate::time::between;

/// How often all idle connections are looked through.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Connections that wait for the next delivery to the same place.
pub(super) struct Pool {
    per_origin_max: usize,
    idle_max: usize,
    idle_timeout: Duration,
    age_max: Duration,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    links: HashMap<Origin, Vec<Waiting>>,
    count: usize,
    swept_at: Option<Timestamp>,
}

/// What must be the same for a connection to be used again. TLS was checked for the host's name.
#[derive(Eq, Hash, PartialEq)]
struct Origin {
    is_tls: bool,
    host: String,
    port: u16,
}

impl Origin {
    fn of(target: &Target) -> Self {
        Self { is_tls: target.is_tls(), host: target.host_name().to_owned(), port: target.port() }
    }
}

struct Waiting {
    link: Link,
    since: Timestamp,
}

impl Pool {
    pub(super) fn new(config: &SenderConfig) -> Self {
        Self {
            per_origin_max: config.idle_per_origin_max,
            idle_max: config.idle_max,
            idle_timeout: config.idle_timeout,
            age_max: config.connection_age_max,
            idle: Mutex::default(),
        }
    }

    /// A connection to this place that is still open.
    pub(super) async fn take(&self, target: &Target, now: Timestamp) -> Option<Link> {
        loop {
            let mut waiting = self.pop(target, now)?;
            if self.is_fresh(&waiting, now) && waiting.link.is_open().await {
                return Some(waiting.link);
            }
        }
    }

    pub(super) fn put(&self, target: &Target, link: Link, now: Timestamp) {
        let waiting = Waiting { link, since: now };
        let mut idle = self.lock();
        if idle.count >= self.idle_max || !self.is_fresh(&waiting, now) {
            return;
        }
        let links = idle.links.entry(Origin::of(target)).or_default();
        if links.len() < self.per_origin_max {
            links.push(waiting);
            idle.count += 1;
        }
    }

    pub(super) fn close_idle(&self, now: Timestamp) {
        self.sweep(&mut self.lock(), now);
    }

    /// The one that was used last: it is the least likely to have been closed.
    fn pop(&self, target: &Target, now: Timestamp) -> Option<Waiting> {
        let mut idle = self.lock();
        if idle.swept_at.is_none_or(|swept_at| between(swept_at, now) >= SWEEP_INTERVAL) {
            self.sweep(&mut idle, now);
        }
        let origin = Origin::of(target);
        let links = idle.links.get_mut(&origin)?;
        let waiting = links.pop();
        if links.is_empty() {
            idle.links.remove(&origin);
        }
        if waiting.is_some() {
            idle.count -= 1;
        }
        waiting
    }

    fn sweep(&self, idle: &mut Idle, now: Timestamp) {
        idle.swept_at = Some(now);
        idle.links.retain(|_, links| {
            links.retain(|waiting| self.is_fresh(waiting, now));
            !links.is_empty()
        });
        idle.count = idle.links.values().map(Vec::len).sum();
    }

    fn is_fresh(&self, waiting: &Waiting, now: Timestamp) -> bool {
        between(waiting.since, now) < self.idle_timeout && between(waiting.link.made_at, now) < self.age_max
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
