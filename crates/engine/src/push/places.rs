//! Places for deliveries in flight: how many there are in all, and to each host.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Of how many hosts it is remembered that they answer; of more than these it is learnt again.
const HOSTS_REMEMBERED_MAX: usize = 4096;

/// The places, and who holds them.
#[derive(Debug)]
pub(super) struct Places {
    /// Rung when a place has become free that somebody may want.
    bell: Arc<Notify>,
    state: Mutex<State>,
    in_flight_max: usize,
    host_max: usize,
    /// Whether a delivery may have been left out for want of a place.
    left_out: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    hosts: HashMap<String, Host>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    in_flight: usize,
    standing: Standing,
}

/// What this process has seen of a host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Standing {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It has answered the last time.
    Answers,
    /// It has not answered the last time.
    Down,
}

impl Host {
    /// A host that is not known to answer gets one place: else a few that hang would hold all there are.
    fn places(self, host_max: usize) -> usize {
        match self.standing {
            Standing::Answers => host_max,
            Standing::Unknown | Standing::Down => 1,
        }
    }
}

impl Places {
    pub fn new(bell: Arc<Notify>, in_flight_max: usize, host_max: usize) -> Self {
        let (in_flight_max, host_max) = (in_flight_max.max(1), host_max.max(1));
        Self { bell, state: Mutex::default(), in_flight_max, host_max, left_out: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are free, whatever the host.
    pub fn free(&self) -> usize {
        self.in_flight_max.saturating_sub(self.state().in_flight)
    }

    /// The hosts that have as many deliveries in flight as they may.
    pub fn busy(&self) -> Vec<String> {
        let state = self.state();
        let full = state.hosts.iter().filter(|(_, host)| host.in_flight >= host.places(self.host_max));
        full.map(|(name, _)| name.clone()).collect()
    }

    /// How many deliveries there is surely a place for, of whatever host that is not busy and is known to answer.
    pub fn sure(&self) -> usize {
        let state = self.state();
        let left = state.hosts.values().map(|host| host.places(self.host_max).saturating_sub(host.in_flight));
        left.filter(|left| *left > 0).min().unwrap_or(self.host_max)
    }

    /// Whether deliveries are left out from now on for want of a place.
    pub fn leaves_out(&self, left_out: bool) {
        self.left_out.store(left_out, Ordering::SeqCst);
    }

    /// A place for a delivery to a host; `None` when there is none.
    pub fn take(self: &Arc<Self>, name: &str) -> Option<Place> {
        let mut state = self.state();
        let host = state.hosts.get(name).copied().unwrap_or_default();
        if state.in_flight >= self.in_flight_max || host.in_flight >= host.places(self.host_max) {
            return None;
        }
        state.in_flight += 1;
        state.hosts.insert(name.to_owned(), Host { in_flight: host.in_flight + 1, ..host });
        Some(Place { places: Arc::clone(self), host: name.to_owned() })
    }
}

/// The place of one delivery in flight.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    host: String,
}

impl Place {
    /// Takes note of what is seen of the host, and answers what was seen before.
    pub fn note(&self, standing: Standing) -> Standing {
        let mut state = self.places.state();
        let before = state.hosts.get_mut(&self.host).map(|host| std::mem::replace(&mut host.standing, standing));
        before.unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.state();
        state.in_flight -= 1;
        let is_full = state.hosts.len() > HOSTS_REMEMBERED_MAX;
        if let Some(host) = state.hosts.get_mut(&self.host) {
            host.in_flight -= 1;
            if host.in_flight == 0 && (is_full || host.standing != Standing::Answers) {
                state.hosts.remove(&self.host);
            }
        }
        drop(state);
        if self.places.left_out.load(Ordering::SeqCst) {
            self.places.bell.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(in_flight_max: usize, host_max: usize) -> Arc<Places> {
        Arc::new(Places::new(Arc::default(), in_flight_max, host_max))
    }

    fn answering(places: &Arc<Places>, host: &str) -> Place {
        let place = places.take(host).expect("there is one");
        place.note(Standing::Answers);
        place
    }

    #[test]
    fn a_host_has_one_place_until_it_answers() {
        let places = places(10, 3);
        let first = places.take("a").expect("there is one");
        assert!(places.take("a").is_none());
        assert_eq!((places.busy(), places.free(), places.sure()), (vec!["a".to_owned()], 9, 3));
        first.note(Standing::Answers);
        let second = places.take("a").expect("it answers");
        assert_eq!((places.busy(), places.sure()), (Vec::<String>::new(), 1));
        let third = places.take("a").expect("it answers");
        assert!(places.take("a").is_none());
        first.note(Standing::Down);
        drop((second, third));
        assert_eq!(places.busy(), ["a"]);
    }

    #[test]
    fn places_are_given_back() {
        let places = places(2, 2);
        let held = [answering(&places, "a"), answering(&places, "b")];
        assert!(places.take("c").is_none());
        drop(held);
        assert_eq!((places.free(), places.sure()), (2, 2));
        let again = [places.take("a"), places.take("a")];
        assert!(again.iter().all(Option::is_some), "it is remembered that it answers");
    }

    #[test]
    fn what_is_known_of_hosts_is_bounded() {
        let places = places(10, 2);
        for number in 0..2 * HOSTS_REMEMBERED_MAX {
            drop(answering(&places, &number.to_string()));
            drop(places.take(&format!("down {number}")));
        }
        assert!(places.state().hosts.len() <= HOSTS_REMEMBERED_MAX + 1);
    }
}
