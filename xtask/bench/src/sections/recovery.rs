//! How long a caller's recovery takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use longhaul_client::ledger::{Connector, Finding, Follower, Ledger, NewEntry, News, RecoverOptions, Route};
use longhaul_client::{Client, ClientError, Outcome, new_id};
use longhaul_protocol::{Role, wire};
use tokio::task::JoinSet;

use crate::emit::timestamp;
use crate::process::StoreKind;
use crate::report::{Bound, Figure};
use crate::run::Run;
use crate::stats::as_f64;

/// Entries of the ledger.
const ENTRIES: usize = 10_000;
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

/// Fills a ledger with delegations as a caller leaves them that dies right after it was told their tasks' ids. When all tasks
/// have ended, it recovers.
pub async fn measure(run: &mut Run, figures: &mut Vec<Figure>) -> Result<()> {
    let server = run.server(StoreKind::Sqlite, None).await?;
    let card = format!("http://{}", server.addr());
    let ledger = Ledger::open(run.data_dir()?.join("ledger.db")).await?;
    let begun = Instant::now();
    fill(&ledger, &card).await?;
    let rate = as_f64(ENTRIES) / begun.elapsed().as_secs_f64();
    figures.push(Figure::new(format!("ledger: delegated and told of, {AT_ONCE} at once"), rate, "/s"));
    let begun = Instant::now();
    let mut recovery = ledger.recover(Arc::new(ByCard), RecoverOptions::default());
    let (mut settled, mut first) = (0, None);
    while let Some(finding) = recovery.next().await {
        if let Finding::Settled(_) = finding? {
            settled += 1;
            first.get_or_insert_with(|| begun.elapsed());
        }
    }
    let took = begun.elapsed().as_secs_f64();
    let what = format!("ledger: settled of {ENTRIES} whose tasks ended meanwhile");
    let figure = Figure::new(what, as_f64(settled), "");
    figures.push(figure.limit("entries", Bound::AtLeast, as_f64(ENTRIES)));
    figures.push(Figure::new("ledger: recovery of all", took, "s"));
    let first = first.unwrap_or_default().as_secs_f64() * 1e3;
    figures.push(Figure::new("ledger: recovery, the first settled after", first, "ms"));
    server.stop().await
}

/// Delegates, and forgets right after the answer.
async fn fill(ledger: &Ledger, card: &str) -> Result<()> {
    let client = Client::connect(card).await?;
    let mut jobs = JoinSet::new();
    let mut last = None;
    for number in 0..ENTRIES {
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

async fn delegate(ledger: Ledger, client: Client, card: String, number: usize) -> Result<String> {
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
    let held = ledger.prepare(new, &Follower::new("measured")?, timestamp()?).await?;
    ledger.record(&held.claim, News::Sending, timestamp()?).await?;
    let Some(wire::SendMessageResponsePayload::Task(task)) = client.send_message(request).await?.payload else {
        anyhow::bail!("the agent made no task");
    };
    let id = task.id.clone();
    let outcome = Box::new(Outcome::Running(Box::new(task)));
    ledger.record(&held.claim, News::Told { outcome, last_event_id: None }, timestamp()?).await?;
    ledger.release(vec![held.claim]).await?;
    Ok(id)
}
