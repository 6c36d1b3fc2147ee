//! Which connections streams share.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Https, Pools};

/// The most streams that share the connections of one lane. Servers allow an HTTP/2 connection a hundred or more.
const STREAMS_PER_LANE_MAX: usize = 50;

/// Pools of connections, as many as the streams need.
#[derive(Debug)]
pub(super) struct Lanes {
    http: Https,
    grpc: Https,
    lanes: Mutex<Vec<(Pools, Lane)>>,
}

/// A place in a lane, until the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    places: Arc<()>,
}

impl Lane {
    /// How many places are taken: each is a clone beside the one that the lane keeps.
    fn taken(&self) -> usize {
        Arc::strong_count(&self.places) - 1
    }
}

impl Lanes {
    pub fn new(http: Https, grpc: Https) -> Self {
        Self { http, grpc, lanes: Mutex::default() }
    }

    /// Pools for calls that end.
    pub fn pools(&self) -> Pools {
        Pools::new(self.http.clone(), self.grpc.clone())
    }

    /// The pools of a lane with room, and a place in it. Lanes at the end that nobody uses are closed.
    pub fn take(&self) -> (Pools, Lane) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((pools, lane)) = lanes.iter().find(|(_, lane)| lane.taken() < STREAMS_PER_LANE_MAX) {
            let place = (pools.clone(), lane.clone());
            // The first ones are filled first, so it is the last ones that empty.
            while lanes.last().is_some_and(|(_, lane)| lane.taken() == 0) {
                lanes.pop();
            }
            return place;
        }
        let (pools, lane) = (self.pools(), Lane { places: Arc::default() });
        lanes.push((pools.clone(), lane.clone()));
        (pools, lane)
    }
}
