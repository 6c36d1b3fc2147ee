//! How long a recovery takes: `recovery CARD COUNT [LEDGER]`.
//!
//! Fills a ledger with `COUNT` delegations to the agent, as a caller leaves them that dies right after it was told their tasks'
//! ids. When all tasks have ended, it recovers, and says how long that took.

#![expect(clippy::disallowed_methods, reason = "the wall clock is what the ledger goes by")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use longhaul_client::ledger::{Connector, Finding, Follower, Ledger, NewEntry, News, RecoverOptions, Route};
use longhaul_client::{Client, ClientError, Outcome, new_id};
use longhaul_protocol::{Role, Timestamp, wire};
use tokio::task::JoinSet;
use tokio::time::Instant;

type Failed = Box<dyn Error + Send + Sync>;

/// How many are delegated at once.
const AT_ONCE: usize = 64;

#[derive(Debug)]
struct ByCard;

#[async_trait]
impl Connector for ByCard {
    async fn connect(&self, route: &Route) -> Result<Client, ClientError> {
        Client::builder().preference(route.preference()).connect(&route.card).await
    }
}

fn main() -> Result<(), Failed> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let card = arguments.next().ok_or("the card is missing")?;
    let count: usize = arguments.next().ok_or("the count is missing")?.parse()?;
    let folder = std::env::temp_dir().join(format!("longhaul-recovery-{}", std::process::id()));
    let path = arguments.next().map_or_else(|| folder.join("ledger.db"), Into::into);
    let ledger = Ledger::open(&path).await?;

    let begun = Instant::now();
    fill(&ledger, &card, count).await?;
    println!("{count} delegated in {:.2} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let mut recovery = ledger.recover(Arc::new(ByCard), RecoverOptions::default());
    let (mut settled, mut first) = (0, None);
    while let Some(finding) = recovery.next().await {
        if let Finding::Settled(_) = finding? {
            settled += 1;
            first.get_or_insert_with(|| begun.elapsed());
        }
    }
    let took = begun.elapsed();
    println!(
        "{settled} settled in {:.2} s, {:.0} a second, the first after {:.0} ms",
        took.as_secs_f64(),
        f64::from(settled) / took.as_secs_f64(),
        first.unwrap_or_default().as_secs_f64() * 1000.0
    );
    println!("peak of resident memory: {} MiB", peak_kib().unwrap_or_default() / 1024);
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

/// Delegates, and forgets right after the answer.
async fn fill(ledger: &Ledger, card: &str, count: usize) -> Result<(), Failed> {
    let client = Client::connect(card).await?;
    let mut jobs = JoinSet::new();
    let mut last = None;
    for number in 0..count {
        if jobs.len() >= AT_ONCE {
            last = jobs.join_next().await.transpose()?.transpose()?;
        }
        jobs.spawn(delegate(ledger.clone(), client.clone(), card.to_owned(), number));
    }
    while let Some(done) = jobs.join_next().await {
        last = Some(done??);
    }
    // The agent works in order: when the last has ended, so have the others, or nearly.
    if let Some(id) = last {
        client.wait(&id, longhaul_client::WaitOptions::default()).await.map(drop)?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

async fn delegate(ledger: Ledger, client: Client, card: String, number: usize) -> Result<String, Failed> {
    let message = wire::Message {
        message_id: new_id(),
        role: Role::User.into(),
        parts: vec![wire::Part::text(format!("echo {number}"))],
        ..wire::Message::default()
    };
    let configuration =
        wire::SendMessageConfiguration { return_immediately: true, ..wire::SendMessageConfiguration::default() };
    let request = wire::SendMessageRequest {
        message: Some(message),
        configuration: Some(configuration),
        ..wire::SendMessageRequest::default()
    };
    let route = Route::of(&client, &card);
    let new = NewEntry { route, purpose: format!("number {number}"), request: request.clone(), deadline: None };
    let held = ledger.prepare(new, &Follower::new("measured")?, now()).await?;
    ledger.record(&held.claim, News::Sending, now()).await?;
    let Some(wire::SendMessageResponsePayload::Task(task)) = client.send_message(request).await?.payload else {
        return Err("the agent made no task".into());
    };
    let id = task.id.clone();
    let outcome = Box::new(Outcome::Running(Box::new(task)));
    ledger.record(&held.claim, News::Told { outcome, last_event_id: None }, now()).await?;
    ledger.release(vec![held.claim]).await?;
    Ok(id)
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// As Linux says it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}
