use std::time::Duration;

use longhaul_protocol::TaskState;

/// When a repeated `messageId` is taken for a retry of the same send.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DedupMode {
    /// When the caller asks for it by the extension [`crate::IDEMPOTENT_SEND`] (the default).
    #[default]
    Requested,
    /// For every caller.
    Always,
}

/// How long tasks are kept that have ended, by the state that they ended in; `None`: for ever.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// COMPLETED.
    pub completed: Option<Duration>,
    /// FAILED.
    pub failed: Option<Duration>,
    /// CANCELED.
    pub canceled: Option<Duration>,
    /// REJECTED.
    pub rejected: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        let week = Some(Duration::from_secs(7 * 24 * 60 * 60));
        Self { completed: week, failed: week, canceled: week, rejected: week }
    }
}

impl Retention {
    /// Each terminal state with how long it is kept.
    #[must_use]
    pub fn by_state(&self) -> [(TaskState, Option<Duration>); 4] {
        [
            (TaskState::Completed, self.completed),
            (TaskState::Failed, self.failed),
            (TaskState::Canceled, self.canceled),
            (TaskState::Rejected, self.rejected),
        ]
    }
}

/// How the engine works. Each value has a default that suits one machine.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the leases of this instance's turns say who holds them, for people; a part that no other instance has is added.
    /// Default empty.
    pub worker_name: String,
    /// How many turns run at once. Default 1,024; at least 1.
    pub workers_max: usize,
    /// How often a turn is tried before its task has failed. Default 3; at least 1.
    pub attempts_max: u32,
    /// How long to wait before a turn's third attempt; the second comes at once. Default 1 s.
    pub backoff_min: Duration,
    /// How long to wait before an attempt at the most. Default 1 min.
    pub backoff_max: Duration,
    /// How long a lease lasts unless it is renewed, which happens at a third of it. Default 30 s; at least 300 ms.
    pub lease_duration: Duration,
    /// How long an attempt may take, however alive its worker is. Default 24 h.
    pub turn_duration_max: Duration,
    /// How long an attempt may write nothing; `None`: as long as it likes. Default `None`.
    pub inactivity_max: Option<Duration>,
    /// How many tasks may wait for a worker before new ones are refused. Default 100,000.
    pub backlog_max: u64,
    /// How large a checkpoint may be, in bytes. Default 1 MiB.
    pub checkpoint_bytes_max: usize,
    /// How long a task may go without an update that nobody works on before it has failed; `None`: for ever. Default `None`.
    pub stale_after: Option<Duration>,
    /// How long tasks are kept that have ended, by the state that they ended in. Default 7 days each.
    pub retention: Retention,
    /// How long after a task's end the artifact updates in its log are merged into one for each version of an artifact; a
    /// stream of it can then be resumed no more, and begins with the task as it is. `None`: never. Default 1 h.
    pub compact_after: Option<Duration>,
    /// How often it is looked for tasks that are stale, whose logs are to be merged, or that have been kept for long enough.
    /// Default 1 min.
    pub housekeeping_interval: Duration,
    /// How long the agent's `accept` may take. Default 2 s.
    pub accept_timeout: Duration,
    /// How long a canceled turn may take to end by itself. Default 3 s.
    pub cancel_grace: Duration,
    /// When a repeated `messageId` is taken for a retry. Default: when the caller asks for it.
    pub dedup: DedupMode,
    /// How long a message id is remembered for that. Default 24 h.
    pub dedup_window: Duration,
    /// The media types that message parts may have; empty: any. Default empty.
    pub input_modes: Vec<String>,
    /// How large one event may be as JSON, in bytes. Default 16 MiB.
    pub event_bytes_max: usize,
    /// How many messages may wait for a task's turn to end. Default 100.
    pub waiting_max: usize,
    /// How often it is tried again when another writer was first. Default 64.
    pub conflicts_max: usize,
    /// How many push configs a task may have. Default 16.
    pub push_configs_max: usize,
    /// How many push notifications are in flight at once. Default 256.
    pub push_in_flight_max: usize,
    /// How many of them go to one host. Default 8.
    pub push_host_max: usize,
    /// How often it is looked for push notifications that are due, when nothing else tells. Default 1 s.
    pub push_poll: Duration,
    /// How often missed wake-ups are looked for. Default 1 s.
    pub sweep_interval: Duration,
}

impl Config {
    /// How often leases are renewed and time limits are looked at: at a third of a lease, or sooner where a limit is
    /// shorter.
    #[must_use]
    pub fn heartbeat_interval(&self) -> Duration {
        let limits = [Some(self.turn_duration_max), self.inactivity_max];
        let shortest = limits.into_iter().flatten().map(|limit| limit / 4).min().unwrap_or(Duration::MAX);
        (self.lease_duration / 3).min(shortest).max(HEARTBEAT_MIN)
    }
}

const HEARTBEAT_MIN: Duration = Duration::from_millis(50);

impl Default for Config {
    fn default() -> Self {
        Self {
            worker_name: String::new(),
            workers_max: 1024,
            attempts_max: 3,
            backoff_min: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            lease_duration: Duration::from_secs(30),
            turn_duration_max: Duration::from_secs(24 * 60 * 60),
            inactivity_max: None,
            backlog_max: 100_000,
            checkpoint_bytes_max: 1024 * 1024,
            stale_after: None,
            retention: Retention::default(),
            compact_after: Some(Duration::from_secs(60 * 60)),
            housekeeping_interval: Duration::from_secs(60),
            accept_timeout: Duration::from_secs(2),
            cancel_grace: Duration::from_secs(3),
            dedup: DedupMode::default(),
            dedup_window: Duration::from_secs(24 * 60 * 60),
            input_modes: Vec::new(),
            event_bytes_max: 16 * 1024 * 1024,
            waiting_max: 100,
            conflicts_max: 64,
            push_configs_max: 16,
            push_in_flight_max: 256,
            push_host_max: 8,
            push_poll: Duration::from_secs(1),
            sweep_interval: Duration::from_secs(1),
        }
    }
}
