use std::sync::Arc;

use tokio::sync::watch;

/// A place where something waits until the test lets it go on. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    opened: Arc<watch::Sender<bool>>,
    arrived: Arc<watch::Sender<usize>>,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self { opened: Arc::new(watch::Sender::new(false)), arrived: Arc::new(watch::Sender::new(0)) }
    }

    /// Lets everyone through, now and later.
    pub fn open(&self) {
        self.opened.send_replace(true);
    }

    /// Waits until the gate is open.
    pub async fn pass(&self) {
        self.arrived.send_modify(|arrived| *arrived += 1);
        self.opened.subscribe().wait_for(|opened| *opened).await.expect("a gate holds its own sender");
    }

    /// Waits until the gate was reached this many times in all.
    pub async fn reached(&self, times: usize) {
        self.arrived.subscribe().wait_for(|arrived| *arrived >= times).await.expect("a gate holds its own sender");
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
