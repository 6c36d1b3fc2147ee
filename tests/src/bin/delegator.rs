//! A caller that delegates by a ledger until it is killed: `delegator LEDGER CARD COUNT AT_ONCE TEXT`.
//!
//! It sees to it that the ledger has `COUNT` delegations, whose purposes are their numbers. At most `AT_ONCE` of them are without
//! an answer at any time. Then it follows them until they rest, and says `done`. It follows under the name `delegator`.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use longhaul_client::Client;
use longhaul_client::ledger::{Delegation, Followed, Follower, Ledger, ListQuery, PAGE_MAX};
use longhaul_protocol::wire;
use tokio::task::JoinSet;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().with_context(|| format!("{what} is missing"));
    let (ledger, card) = (next("the ledger's path")?, next("the card")?);
    let (count, at_once): (u32, usize) = (next("the count")?.parse()?, next("how many at once")?.parse()?);
    let text = next("the text")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(delegate_all(&ledger, &card, count, at_once, &text))
}

async fn delegate_all(path: &str, card: &str, count: u32, at_once: usize, text: &str) -> Result<()> {
    let ledger = Ledger::open(path).await?;
    let client = Client::connect(card).await?;
    let known = known(&ledger).await?;
    let mut beginning = JoinSet::new();
    let mut following = Vec::new();
    for number in (0..count).filter(|number| !known.contains(number)) {
        while beginning.len() >= at_once.max(1) {
            following.extend(begun(&mut beginning).await?);
        }
        let mut delegation = Delegation::new(card, say(text));
        delegation.purpose = number.to_string();
        delegation.follower = Some(Follower::new("delegator")?);
        let (ledger, client) = (ledger.clone(), client.clone());
        beginning.spawn(async move {
            let mut followed = ledger.delegate(&client, delegation).await?;
            // The first that is told is the answer.
            followed.next().await;
            Ok(followed)
        });
    }
    while !beginning.is_empty() {
        following.extend(begun(&mut beginning).await?);
    }
    for followed in following {
        let _ = followed.rest().await?;
    }
    println!("done");
    Ok(())
}

async fn begun(
    beginning: &mut JoinSet<Result<Followed, longhaul_client::ledger::LedgerError>>,
) -> Result<Option<Followed>> {
    Ok(beginning.join_next().await.transpose()?.transpose()?)
}

/// The numbers of the delegations that the ledger has.
async fn known(ledger: &Ledger) -> Result<BTreeSet<u32>> {
    let mut known = BTreeSet::new();
    let mut after = None;
    loop {
        let page = ledger.list(ListQuery { after, limit: PAGE_MAX, ..ListQuery::default() }).await?;
        for entry in page.entries {
            known.insert(entry.purpose.parse()?);
        }
        after = page.next;
        if after.is_none() {
            return Ok(known);
        }
    }
}

fn say(text: &str) -> wire::SendMessageRequest {
    let message = wire::Message {
        role: longhaul_protocol::Role::User.into(),
        parts: vec![wire::Part::text(text)],
        ..wire::Message::default()
    };
    wire::SendMessageRequest { message: Some(message), ..wire::SendMessageRequest::default() }
}
