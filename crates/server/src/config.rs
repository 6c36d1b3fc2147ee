use std::time::Duration;

use longhaul_protocol::wire;

use crate::version::Versions;

/// How the server speaks to the world.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The agent card, without its interfaces: those are made from `public_url`, `prefix` and `grpc_interface`.
    pub card: wire::AgentCard,
    /// The versions of the protocol that are served. Default: all.
    pub versions: Versions,
    /// The path below the prefix at which drafts before 0.3 are served: `/name`. Default: `None`, they are not.
    pub drafts_path: Option<String>,
    /// The URL under which callers reach the server, without a path; `None`: `http://` and the address bound.
    pub public_url: Option<String>,
    /// The path below which everything but the card and health is served: empty, or `/name` without a slash at its end.
    pub prefix: String,
    /// Whether the card lists the gRPC interface. Some clients refuse cards that do; gRPC is served either way.
    pub grpc_interface: bool,
    /// How large the body of a request may be, in bytes. Default 16 MiB.
    pub body_bytes_max: usize,
    /// How often an idle stream sends a comment. Default 10 s: proxies cut after 15 s and more.
    pub keep_alive: Duration,
    /// How many streams may be open at once. Default 10,000.
    pub streams_max: usize,
    /// How long a client may take to send the head of a request. Default 30 s.
    pub header_timeout: Duration,
    /// How long running turns may take to end when the server goes down. Default 10 s.
    pub drain_timeout: Duration,
    /// How long clients may keep the card. Default 5 minutes.
    pub card_max_age: Duration,
    /// Whether `GET /metrics` answers, to whoever can reach the port. Default: it does not.
    pub metrics: Metrics,
}

/// Whether the counters can be read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Metrics {
    /// At `/metrics`.
    Served,
    /// Nowhere.
    #[default]
    Off,
}

impl ServerConfig {
    /// The defaults, with this card.
    #[must_use]
    pub fn new(card: wire::AgentCard) -> Self {
        Self {
            card,
            versions: Versions::default(),
            drafts_path: None,
            public_url: None,
            prefix: String::new(),
            grpc_interface: true,
            body_bytes_max: 16 * 1024 * 1024,
            keep_alive: Duration::from_secs(10),
            streams_max: 10_000,
            header_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            card_max_age: Duration::from_secs(300),
            metrics: Metrics::default(),
        }
    }
}
