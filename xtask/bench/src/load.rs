//! The load generator: a closed loop on each connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::task::JoinSet;

use crate::http::{Connection, excerpt};
use crate::request::MessageRequest;
use crate::stats::{Latencies, Outcome};
use crate::{WARM_UP, sse};

/// The state that every answer to a blocking send must show.
const COMPLETED: &str = "TASK_STATE_COMPLETED";

/// Window in which finished operations count: after the warm-up, until the end.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    start: Instant,
    end: Instant,
}

impl Window {
    /// A window of `length` after the warm-up.
    pub fn after_warm_up(length: Duration) -> Self {
        let start = Instant::now() + WARM_UP;
        Self { start, end: start + length }
    }

    /// Whether the window is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Length of the window.
    pub fn length(&self) -> Duration {
        self.end - self.start
    }

    /// Records an operation that began at `begun` and is done now, if that lies in the window.
    pub fn record(&self, begun: Instant, latencies: &mut Latencies) {
        let now = Instant::now();
        if now >= self.start && now <= self.end {
            latencies.push(now - begun);
        }
    }
}

/// Blocking sends of `text` on `connections` connections, each one after the other.
pub async fn sends(addr: SocketAddr, connections: usize, length: Duration, text: &str) -> Result<Outcome> {
    sends_to(&[addr], connections, length, text).await
}

/// The same, with the connections dealt out to several instances.
pub async fn sends_to(addrs: &[SocketAddr], connections: usize, length: Duration, text: &str) -> Result<Outcome> {
    let request = MessageRequest::send(text)?;
    let mut sockets = Vec::with_capacity(connections);
    for addr in addrs.iter().cycle().take(connections) {
        sockets.push(Connection::connect(*addr).await?);
    }
    let window = Window::after_warm_up(length);
    let mut clients = JoinSet::new();
    for mut connection in sockets {
        let mut request = request.clone();
        clients.spawn(async move {
            let mut latencies = Latencies::default();
            while !window.is_over() {
                let begun = Instant::now();
                send_one(&mut connection, &mut request).await?;
                window.record(begun, &mut latencies);
            }
            anyhow::Ok(latencies)
        });
    }
    gather(clients, window.length()).await
}

/// Exactly `count` blocking sends on `connections` connections; gives the time that they took.
pub async fn sends_exactly(addr: SocketAddr, connections: usize, count: u64, text: &str) -> Result<Duration> {
    sends_until(addr, connections, count, text, COMPLETED).await
}

/// The same, where each answer must show the state `state`.
pub async fn sends_until(
    addr: SocketAddr,
    connections: usize,
    count: u64,
    text: &str,
    state: &'static str,
) -> Result<Duration> {
    let request = MessageRequest::send(text)?;
    let started = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for mut connection in connect(addr, connections).await? {
        let mut request = request.clone();
        let started = Arc::clone(&started);
        clients.spawn(async move {
            while started.fetch_add(1, Ordering::Relaxed) < count {
                send_in_state(&mut connection, &mut request, state).await?;
            }
            anyhow::Ok(Latencies::default())
        });
    }
    gather(clients, Duration::ZERO).await?;
    Ok(begun.elapsed())
}

/// One blocking send; gives the body of the answer.
pub async fn send_one<'a>(connection: &'a mut Connection, request: &mut MessageRequest) -> Result<&'a [u8]> {
    send_in_state(connection, request, COMPLETED).await
}

async fn send_in_state<'a>(
    connection: &'a mut Connection,
    request: &mut MessageRequest,
    state: &str,
) -> Result<&'a [u8]> {
    let body = connection.exchange(request.next()?).await?;
    let text = std::str::from_utf8(body).context("the answer is not text")?;
    if !text.contains(state) {
        bail!("the task is not {state}: {}", excerpt(body));
    }
    Ok(body)
}

/// What a client saw of one stream.
#[derive(Debug)]
pub struct StreamSeen {
    /// When the first event was there.
    pub first: Instant,
    /// When each artifact update was there.
    pub chunks: Vec<Instant>,
}

/// Opens one stream and reads it to its end, which must be a completed task.
pub async fn stream_one(connection: &mut Connection, request: &mut MessageRequest) -> Result<StreamSeen> {
    let (mut first, mut chunks, mut completed) = (None, Vec::new(), false);
    sse::run(connection, request.next()?, |data, now| {
        let text = std::str::from_utf8(data).unwrap_or_default();
        first.get_or_insert(now);
        if text.contains("\"artifactUpdate\"") {
            chunks.push(now);
        }
        completed = text.contains(COMPLETED);
    })
    .await?;
    if !completed {
        bail!("the stream ended without a completed task");
    }
    Ok(StreamSeen { first: first.context("a stream without an event")?, chunks })
}

/// Streams of `chunks N` on `connections` connections, each one after the other; the latencies are
/// those of whole streams.
pub async fn streams(addr: SocketAddr, connections: usize, length: Duration, chunks: usize) -> Result<Outcome> {
    let request = MessageRequest::stream(&format!("chunks {chunks}"))?;
    let sockets = connect(addr, connections).await?;
    let window = Window::after_warm_up(length);
    let mut clients = JoinSet::new();
    for mut connection in sockets {
        let mut request = request.clone();
        clients.spawn(async move {
            let mut latencies = Latencies::default();
            while !window.is_over() {
                let begun = Instant::now();
                let seen = stream_one(&mut connection, &mut request).await?;
                if seen.chunks.len() != chunks {
                    bail!("a stream of {chunks} chunks had {} artifact updates", seen.chunks.len());
                }
                window.record(begun, &mut latencies);
            }
            anyhow::Ok(latencies)
        });
    }
    gather(clients, window.length()).await
}

async fn connect(addr: SocketAddr, connections: usize) -> Result<Vec<Connection>> {
    let mut sockets = Vec::with_capacity(connections);
    for _ in 0..connections {
        sockets.push(Connection::connect(addr).await?);
    }
    Ok(sockets)
}

async fn gather(mut clients: JoinSet<Result<Latencies>>, elapsed: Duration) -> Result<Outcome> {
    let mut outcome = Outcome { elapsed, ..Outcome::default() };
    while let Some(client) = clients.join_next().await {
        outcome.latencies.extend(client.context("a client of the generator ended early")??);
    }
    Ok(outcome)
}
