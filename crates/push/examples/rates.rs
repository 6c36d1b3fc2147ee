//! Deliveries a second: to one receiver that answers at once, and to 1,000 hosts of which 100 hang.
//!
//! `cargo run --release -p longhaul-push --example rates -- [SECONDS]`

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use longhaul_protocol::Timestamp;
use longhaul_push::breaker::{Breaker, BreakerPolicy, Permit};
use longhaul_push::sender::Health;
use longhaul_push::{Answer, Delivery, Guard, Policy, Resolver, Sender, SenderConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const HOSTS: usize = 1000;
/// Each tenth host takes connections and never answers, where hosts hang at all.
const HANGS_EVERY: usize = 10;
/// Until the first attempt at a host that hangs has ended.
const BEFORE_TIMEOUT: Duration = Duration::from_secs(14);
const ANSWERING: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const HANGING: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Knows `h17.test`, which may hang, and `up17.test`, which does not.
#[derive(Debug)]
struct Names;

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if host.starts_with("up") {
            return Ok(vec![ANSWERING.into()]);
        }
        let number = host.strip_prefix('h').and_then(|host| host.strip_suffix(".test"));
        let number: usize = number.and_then(|number| number.parse().ok()).ok_or(io::ErrorKind::NotFound)?;
        Ok(vec![if number.is_multiple_of(HANGS_EVERY) { HANGING.into() } else { ANSWERING.into() }])
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(5), |seconds| seconds.parse())?;
    let duration = Duration::from_secs(seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let answering = listen(ANSWERING, 0).await?;
        let port = answering.local_addr()?.port();
        let hanging = listen(HANGING, port).await?;
        let mut receivers = JoinSet::new();
        receivers.spawn(receive(answering));
        receivers.spawn(hang(hanging));
        for in_flight in [1, 16, 64] {
            one_receiver(port, in_flight, 4, duration).await?;
        }
        one_receiver(port, 64, 64, duration).await?;
        one_receiver(port, 64, 0, duration).await?;
        // On a machine with other work, what is to be compared has to be near in time.
        for names in ["up", "h", "up", "h"] {
            many_hosts(port, names, duration.max(BEFORE_TIMEOUT)).await?;
        }
        Ok(())
    })
}

async fn listen(address: Ipv4Addr, port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((address, port))).await
}

async fn receive(listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        connections.spawn(answer(stream));
        while connections.try_join_next().is_some() {}
    }
}

/// Every request ends with its body's last brace, and comes in one piece on loopback.
async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(16 * 1024);
    while stream.read_buf(&mut bytes).await? > 0 {
        if bytes.ends_with(b"}}") {
            bytes.clear();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
        }
    }
    Ok(())
}

async fn hang(listener: TcpListener) {
    let mut held = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        held.push(stream);
    }
}

fn sender(idle_per_origin_max: usize) -> Result<Arc<Sender>, Box<dyn std::error::Error>> {
    let policy = Policy { allow: vec!["127.0.0.0/8".parse()?], allow_http: true };
    let config = SenderConfig { idle_per_origin_max, idle_max: 2048, ..SenderConfig::default() };
    Ok(Arc::new(Sender::with_resolver(config, Guard::new(policy), Arc::new(Names))?))
}

fn delivery(host: &str, port: u16) -> Delivery {
    Delivery {
        url: format!("http://{host}.test:{port}/hook"),
        body: Bytes::from(format!("{{\"statusUpdate\":{{\"taskId\":\"{}\"}}}}", "x".repeat(400))),
        id: "019b-7".to_owned(),
        version: "1.0".to_owned(),
        media_type: "application/a2a+json",
        scheme: Some("Bearer".to_owned()),
        credentials: Some(longhaul_push::Secret::new("abc")),
        token: None,
        signing: std::iter::once("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse()).flatten().collect(),
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement looks at the real clock")]
fn start() -> Instant {
    Instant::now()
}

fn now() -> Timestamp {
    use std::time::SystemTime;
    #[expect(clippy::disallowed_methods, reason = "a measurement looks at the real clock")]
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or_default())
}

async fn one_receiver(
    port: u16,
    in_flight: usize,
    kept: usize,
    duration: Duration,
) -> Result<(), Box<dyn std::error::Error>> {
    let sender = sender(kept)?;
    let start = start();
    let mut workers = JoinSet::new();
    for _ in 0..in_flight {
        let (sender, delivery) = (Arc::clone(&sender), delivery("up", port));
        workers.spawn(async move {
            let mut took = Vec::new();
            while start.elapsed() < duration {
                let sent = start.elapsed();
                if sender.send(&delivery, now()).await == Answer::Delivered {
                    took.push(start.elapsed() - sent);
                }
            }
            took
        });
    }
    let mut took: Vec<Duration> = workers.join_all().await.into_iter().flatten().collect();
    let elapsed = start.elapsed();
    took.sort_unstable();
    let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default();
    let rate = took.len() as f64 / elapsed.as_secs_f64();
    println!("1 host, {in_flight} in flight, {kept} kept: {rate:.0}/s, p50 {:?}, p99 {:?}", at(50), at(99));
    Ok(())
}

/// What a host may have under way at once.
const PER_HOST: usize = 4;

/// Each host has deliveries without end, sent one after the other by [`PER_HOST`] workers that obey its breaker; so a host that
/// hangs holds its own workers and nobody else's.
async fn many_hosts(port: u16, names: &str, duration: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let sender = sender(PER_HOST)?;
    let delivered = Arc::new(AtomicU64::new(0));
    let tried = Arc::new(AtomicU64::new(0));
    let start = start();
    let mut workers = JoinSet::new();
    for host in 0..HOSTS {
        let breaker = Arc::new(std::sync::Mutex::new(Breaker::default()));
        for _ in 0..PER_HOST {
            let (sender, breaker) = (Arc::clone(&sender), Arc::clone(&breaker));
            let (delivered, tried) = (Arc::clone(&delivered), Arc::clone(&tried));
            let delivery = delivery(&format!("{names}{host}"), port);
            workers.spawn(async move {
                while start.elapsed() < duration {
                    if !is_let_through(&breaker) {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                    let answer = sender.send(&delivery, now()).await;
                    let is_up = answer.health() == Health::Up;
                    (if is_up { &delivered } else { &tried }).fetch_add(1, Ordering::Relaxed);
                    note(&breaker, is_up);
                }
            });
        }
    }
    let early = BEFORE_TIMEOUT.min(duration);
    tokio::time::sleep(early).await;
    let early_rate = delivered.load(Ordering::Relaxed) as f64 / early.as_secs_f64();
    workers.join_all().await;
    let rate = delivered.load(Ordering::Relaxed) as f64 / duration.as_secs_f64();
    let failed = tried.load(Ordering::Relaxed);
    println!(
        "{HOSTS} hosts {names}: {early_rate:.0}/s in the first {early:?}, {rate:.0}/s in {duration:?}, {failed} attempts failed"
    );
    Ok(())
}

type Shared = std::sync::Mutex<Breaker>;

fn is_let_through(breaker: &Shared) -> bool {
    let mut breaker = breaker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match breaker.may_send(now()) {
        Permit::Send => true,
        Permit::Wait(_) => false,
        Permit::Probe => {
            *breaker = breaker.on_probe(&BreakerPolicy::default(), now());
            true
        }
    }
}

fn note(breaker: &Shared, is_up: bool) {
    let mut breaker = breaker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *breaker = if is_up { breaker.on_success() } else { breaker.on_failure(&BreakerPolicy::default(), now()) };
}
