//! Push notifications through the whole server: how soon they leave, how many leave a second, and what a backlog costs.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::task::JoinSet;

use crate::hook::Hook;
use crate::http::Connection;
use crate::load;
use crate::process::StoreKind;
use crate::report::{Bound, Figure};
use crate::request::MessageRequest;
use crate::run::Run;
use crate::stats::{as_f64, rate};

const CONNECTIONS: usize = 16;
/// Tasks of the backlog, chunks of each, and the events that they make.
const TASKS: u32 = 2000;
const CHUNKS: u64 = 47;
const EVENTS: u64 = CHUNKS + 3;
/// Hosts, and how many of them never answer.
const HOSTS: u32 = 1000;
const HANGING: u32 = 100;
/// Events of a task that echoes.
const ECHO_EVENTS: u64 = 4;
/// Time before a look at memory, in which the server comes to rest.
const REST: Duration = Duration::from_secs(2);
/// How long deliveries may take in all.
const DELIVERED_MAX: Duration = Duration::from_secs(300);
/// Most megabytes that a backlog may add: caches fill, and then it stays.
const GROWTH_MB_MAX: f64 = 64.0;

const CONFIG: &str = "[push]\nallow = [\"127.0.0.0/8\"]\nallow_http = true\ndelay_max = \"2s\"\n";

pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    for store in run.options.stores.clone() {
        latency(run, figures, store).await?;
        backlog(run, figures, store).await?;
        hosts(run, figures, store).await?;
    }
    Ok(())
}

/// One task at a time, of which each event is pushed.
async fn latency(run: &mut Run, figures: &mut Vec<Figure>, store: StoreKind) -> Result<()> {
    let data = run.data_dir()?;
    let server = run.server_with(&data, store, CONFIG).await?;
    let hook = Hook::answering(200).await?;
    let mut connection = Connection::connect(server.addr()).await?;
    let mut request = MessageRequest::pushing("echo hello", &hook.url(Ipv4Addr::LOCALHOST))?;
    // The first one makes the connection.
    for _ in 0..2 {
        let before = hook.taken();
        load::send_one(&mut connection, &mut request).await?;
        hook.until_taken(before + ECHO_EVENTS, DELIVERED_MAX).await?;
    }
    hook.note_ages();
    let begun = Instant::now();
    while begun.elapsed() < run.options.window {
        let before = hook.taken();
        load::send_one(&mut connection, &mut request).await?;
        hook.until_taken(before + ECHO_EVENTS, DELIVERED_MAX).await?;
    }
    server.stop().await?;
    let mut ages = hook.ages();
    let what = format!("{}, 1 task at a time: from an event's time, before its commit, to its POST", store.name());
    figures.push(Figure::new(format!("{what}, p50"), ages.p50_ms(), "ms"));
    figures.push(Figure::new(format!("{what}, p99"), ages.p99_ms(), "ms"));
    Ok(())
}

/// Many events are due to a receiver that can't take them; then it can.
async fn backlog(run: &mut Run, figures: &mut Vec<Figure>, store: StoreKind) -> Result<()> {
    let data = run.data_dir()?;
    let server = run.server_with(&data, store, CONFIG).await?;
    let hook = Hook::answering(503).await?;
    tokio::time::sleep(REST).await;
    let idle = server.resident_mb()?;
    let (url, text) = (hook.url(Ipv4Addr::LOCALHOST), format!("chunks {CHUNKS}"));
    let filled = Instant::now();
    send_all(server.addr(), TASKS, move |_| MessageRequest::pushing(&text, &url)).await?;
    let filled = filled.elapsed();
    tokio::time::sleep(REST).await;
    let due = u64::from(TASKS) * EVENTS;
    if hook.taken() != 0 {
        bail!("the receiver took what it was not to take");
    }
    let full = server.resident_mb()?;
    let name = store.name();
    figures.push(Figure::new(format!("{name}: idle"), idle, "MB"));
    figures.push(Figure::new(format!("{name}: with {due} due deliveries"), full, "MB"));
    let growth = Figure::new(format!("{name}: growth"), full - idle, "MB");
    figures.push(match store {
        // Tasks in memory take memory.
        StoreKind::Memory => growth,
        StoreKind::Sqlite => growth.limit("MB", Bound::AtMost, GROWTH_MB_MAX),
    });
    let events = rate(usize::try_from(due)?, filled);
    figures.push(Figure::new(format!("{name}, {CONNECTIONS}: events stored while they become due"), events, "/s"));
    let cpu = server.cpu_time()?;
    hook.answer(200);
    // The first probe of the host opens the way; what comes before it is the breaker's patience.
    let first = hook.until_taken(1, DELIVERED_MAX).await?;
    let last = hook.until_taken(due, DELIVERED_MAX).await?;
    let rate = rate(usize::try_from(due)?, last - first);
    figures.push(Figure::new(format!("{name}, 1 host that answers at once: deliveries"), rate, "/s"));
    let cpu = (server.cpu_time()? - cpu).as_secs_f64() * 1e6 / as_f64(usize::try_from(due)?);
    figures.push(Figure::new(format!("{name}: processor time of a delivery"), cpu, "µs"));
    figures.push(Figure::new(format!("{name}: when all are delivered"), server.resident_mb()?, "MB"));
    server.stop().await
}

/// One task for each of many hosts, of which some never answer.
async fn hosts(run: &mut Run, figures: &mut Vec<Figure>, store: StoreKind) -> Result<()> {
    for hanging in [0, HANGING] {
        let data = run.data_dir()?;
        let server = run.server_with(&data, store, CONFIG).await?;
        let (answers, hangs) = (Hook::answering(200).await?, Hook::hanging().await?);
        let urls: Vec<_> = (0..HOSTS)
            .map(|number| {
                let host = Ipv4Addr::from(Ipv4Addr::new(127, 1, 0, 0).to_bits() + number);
                // Each tenth, among the others.
                let hook = if hanging > 0 && number % (HOSTS / hanging) == 0 { &hangs } else { &answers };
                hook.url(host)
            })
            .collect();
        let due = u64::from(HOSTS - hanging) * EVENTS;
        let text = format!("chunks {CHUNKS}");
        let begun = Instant::now();
        let request = move |number: u32| {
            let url = urls.get(number as usize).context("a host for each task")?;
            MessageRequest::pushing(&text, url)
        };
        send_all(server.addr(), HOSTS, request).await?;
        let last = answers.until_taken(due, DELIVERED_MAX).await?;
        let rate = rate(usize::try_from(due)?, last - begun);
        let what = format!("{}, {HOSTS} hosts of which {hanging} hang: deliveries as tasks run", store.name());
        figures.push(Figure::new(what, rate, "/s"));
        server.kill().await?;
    }
    Ok(())
}

/// Sends so many messages, and waits until their tasks are completed.
async fn send_all(
    addr: SocketAddr,
    count: u32,
    request: impl Fn(u32) -> Result<MessageRequest> + Send + Sync + 'static,
) -> Result<()> {
    let (next, request) = (Arc::new(AtomicU32::new(0)), Arc::new(request));
    let mut clients = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::connect(addr).await?;
        let (next, request) = (Arc::clone(&next), Arc::clone(&request));
        clients.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                load::send_one(&mut connection, &mut request(number)?).await?;
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(())
}
