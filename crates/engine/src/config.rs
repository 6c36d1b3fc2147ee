use std::time::Duration;

/// When a repeated `messageId` is taken for a retry of the same send.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DedupMode {
    /// When the caller asks for it by the extension [`crate::IDEMPOTENT_SEND`] (the default).
    #[default]
    Requested,
    /// For every caller.
    Always,
}

/// How the engine works. Each value has a default that suits one machine.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many turns run at once. Default 1,024; at least 1.
    pub workers_max: usize,
    /// How often a turn is tried before its task has failed. Default 3; at least 1.
    pub attempts_max: u32,
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
    /// How often missed wake-ups are looked for. Default 1 s.
    pub sweep_interval: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers_max: 1024,
            attempts_max: 3,
            accept_timeout: Duration::from_secs(2),
            cancel_grace: Duration::from_secs(3),
            dedup: DedupMode::default(),
            dedup_window: Duration::from_secs(24 * 60 * 60),
            input_modes: Vec::new(),
            event_bytes_max: 16 * 1024 * 1024,
            waiting_max: 100,
            conflicts_max: 64,
            sweep_interval: Duration::from_secs(1),
        }
    }
}
