//! A receiver of push notifications that does as little as one can: it answers at once with a status, or never.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use longhaul_protocol::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::stats::Latencies;

/// Answered never.
const HANGS: u16 = 0;

/// A receiver on every address of this machine, so that each of them is a host of its own.
#[derive(Debug)]
pub struct Hook {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    status: AtomicU16,
    taken: AtomicU64,
    last: Mutex<Option<Instant>>,
    /// Whether it is noted how old each event is that comes.
    times: AtomicBool,
    ages: Mutex<Latencies>,
}

impl Hook {
    /// One that answers with this status.
    pub async fn answering(status: u16) -> Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            status: status.into(),
            taken: AtomicU64::new(0),
            last: Mutex::new(None),
            times: AtomicBool::new(false),
            ages: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { port, shared, accepting })
    }

    /// One that never answers.
    pub async fn hanging() -> Result<Self> {
        Self::answering(HANGS).await
    }

    /// Answers with another status from now on.
    pub fn answer(&self, status: u16) {
        self.shared.status.store(status, Ordering::SeqCst);
    }

    /// The receiver by one of its addresses.
    pub fn url(&self, host: Ipv4Addr) -> String {
        format!("http://{host}:{}/", self.port)
    }

    /// How many requests were answered with a success.
    pub fn taken(&self) -> u64 {
        self.shared.taken.load(Ordering::SeqCst)
    }

    /// Waits until so many were, and answers when that was.
    pub async fn until_taken(&self, count: u64, limit: Duration) -> Result<Instant> {
        let begun = Instant::now();
        while self.taken() < count {
            if begun.elapsed() > limit {
                bail!("{} of {count} deliveries came within {} s", self.taken(), limit.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let last = self.shared.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.context("a delivery has a time")
    }

    /// Begins to note how old events are: from the time that they tell, in whole milliseconds.
    pub fn note_ages(&self) {
        self.shared.times.store(true, Ordering::SeqCst);
    }

    /// What was noted.
    pub fn ages(&self) -> Latencies {
        std::mem::take(&mut *self.shared.ages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A sender that goes away ends its connection, and nothing else.
            let _ = serve(stream, &shared).await;
        });
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        let length = loop {
            if let Some(length) = whole_request(&buffer) {
                break length;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let request = buffer.get(..length).unwrap_or_default();
        let status = shared.status.load(Ordering::SeqCst);
        if status == HANGS {
            std::future::pending::<()>().await;
        }
        if status < 300 {
            take(shared, request);
        }
        buffer.drain(..length);
        stream.write_all(format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").as_bytes()).await?;
    }
}

fn take(shared: &Shared, request: &[u8]) {
    let now = Instant::now();
    if shared.times.load(Ordering::SeqCst)
        && let Some(age) = age(request)
    {
        shared.ages.lock().unwrap_or_else(PoisonError::into_inner).push(age);
    }
    *shared.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    shared.taken.fetch_add(1, Ordering::SeqCst);
}

/// The length of the request at the beginning of the buffer, if all of it is there.
fn whole_request(buffer: &[u8]) -> Option<usize> {
    let head = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(buffer.get(..head)?).ok()?.to_ascii_lowercase();
    let length = text.split("content-length: ").nth(1)?.split("\r\n").next()?.parse::<usize>().ok()?;
    (buffer.len() >= head + length).then_some(head + length)
}

/// How long ago the time is that a status tells. `None`: it tells none.
fn age(request: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(request).ok()?;
    let time: Timestamp = text.split("\"timestamp\":\"").nth(1)?.split('"').next()?.parse().ok()?;
    let then = UNIX_EPOCH + Duration::from_millis(u64::try_from(time.unix_millis()).ok()?);
    Some(SystemTime::now().duration_since(then).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_when_its_body_is_there() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(whole_request(request), Some(request.len()));
        assert_eq!(whole_request(&request[..request.len() - 1]), None);
        assert_eq!(whole_request(b"POST / HTTP/1.1\r\n"), None);
        assert_eq!(whole_request(&[request.as_slice(), b"POST"].concat()), Some(request.len()));
    }

    #[test]
    fn the_age_of_an_event_is_read_from_its_status() {
        assert_eq!(age(b"\r\n\r\n{}"), None);
        let old = age(br#"{"status":{"state":"x","timestamp":"2026-01-01T00:00:00.000Z"}}"#).unwrap();
        assert!(old > Duration::ZERO);
    }
}
