//! `kill -9` of a caller, wherever it is.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use longhaul_client::ledger::{CLAIM_DURATION, Finding, Follower, RecoverOptions, StateKind};
use longhaul_tests::{Peer, Server, Store, seed, until, within};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::support::{ByCard, Kept, RECOVERY_MAX, recover, tasks, with_message};

/// How many delegations are open when the caller dies last.
const COUNT: usize = 100;
/// What is left of the claims of the dead, where they have to run out.
const CLAIM_REST: Duration = Duration::from_secs(3);
/// After how many kills the caller may live long enough to begin all.
const KILLS: u32 = 12;

fn caller(ledger: &Path, card: &str, text: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_delegator"))
        .arg(ledger)
        .arg(card)
        .args([&COUNT.to_string(), "8", text])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Checks that callers died on both sides of the answer.
async fn assert_open(kept: &Kept) {
    let entries = kept.entries().await;
    let open = entries.iter().filter(|entry| entry.state.is_open()).count();
    let unanswered = entries.iter().filter(|entry| entry.state.kind() == StateKind::Prepared).count();
    let unsent = entries.iter().filter(|entry| entry.attempts == 0).count();
    println!("{open} open, {unanswered} of them without an answer, {unsent} of these not sent yet");
    assert_eq!((open, entries.len()), (COUNT, COUNT), "no caller lived long enough to see an end");
    assert!(unanswered > 0 && unanswered < COUNT, "{unanswered} without an answer");
}

fn after_the_caller() -> RecoverOptions {
    let mut options = RecoverOptions::default();
    options.predecessor = Some(Follower::new("delegator").unwrap());
    options
}

/// Kills callers at random moments until all is delegated and the last one has died too.
async fn delegate_among_kills(kept: &Kept, card: &str, text: &str) {
    let mut dice = StdRng::seed_from_u64(seed());
    for _ in 0..KILLS {
        let mut child = caller(&kept.path(), card, text);
        let before = kept.entries().await.len();
        // The first has nothing to do yet but to begin; how long that takes depends on the machine.
        until(RECOVERY_MAX, "the caller begins", async || {
            let begun = kept.entries().await.len();
            (begun > before || begun == COUNT).then_some(())
        })
        .await;
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..40))).await;
        child.kill().await.unwrap();
    }
    let mut child = caller(&kept.path(), card, text);
    until(RECOVERY_MAX, "all is delegated", async || (kept.entries().await.len() == COUNT).then_some(())).await;
    child.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_delegations_of_killed_callers_are_all_settled_once() {
    let (server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    delegate_among_kills(&kept, &card, "slow 10 echo it").await;
    assert_open(&kept).await;
    // A recovery may be killed as well as what it recovers.
    let mut cut = kept.ledger.recover(Arc::new(ByCard), after_the_caller());
    let first = within(RECOVERY_MAX, "something is found", cut.next()).await;
    drop((first, cut));
    kept.age_claims(CLAIM_DURATION - CLAIM_REST);
    let findings = kept.recover(after_the_caller()).await;
    assert!(!findings.iter().any(|finding| matches!(finding, Finding::Alarm(_) | Finding::Unreachable { .. })));
    assert_eq!(kept.count(StateKind::Completed).await, COUNT);
    let tasks = tasks(&card).await;
    assert_eq!(tasks.len(), COUNT, "each delegation is one task");
    for entry in kept.entries().await {
        assert_eq!(with_message(&tasks, &entry.message_id), 1, "{entry:?}");
        assert!(kept.ledger.outcome(entry.id).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_tells_no_repetition_is_never_sent_a_message_twice() {
    let (peer, kept) = (Peer::python().await, Kept::new().await);
    let card = peer.card_url();
    delegate_among_kills(&kept, &card, "slow 10 echo it").await;
    assert_open(&kept).await;
    kept.recover(after_the_caller()).await;
    let tasks = tasks(&card).await;
    let (mut settled, mut uncertain) = (0, 0);
    for entry in kept.entries().await {
        let made = with_message(&tasks, &entry.message_id);
        match entry.state.kind() {
            StateKind::Completed => {
                assert_eq!(made, 1, "{entry:?}");
                settled += 1;
            }
            // Killed after it was written down and before it was sent. That is for a person to see.
            StateKind::Uncertain => {
                assert_eq!(made, 0, "{entry:?}");
                uncertain += 1;
            }
            other => panic!("{other}: {entry:?}"),
        }
    }
    println!("{settled} settled, {uncertain} uncertain");
    assert_eq!((settled + uncertain, tasks.len()), (COUNT, settled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_claims_of_the_dead_run_out() {
    let (server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let mut child = caller(&kept.path(), &card, "slow 1");
    let all = until(RECOVERY_MAX, "all is delegated", async || (kept.entries().await.len() == COUNT).then_some(()));
    all.await;
    child.kill().await.unwrap();
    kept.age_claims(CLAIM_DURATION - CLAIM_REST);
    let begun = Instant::now();
    kept.recover(RecoverOptions::default()).await;
    assert_eq!(kept.count(StateKind::Completed).await, COUNT);
    assert!(begun.elapsed() < CLAIM_REST + Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_recoveries_at_once_follow_each_entry_once() {
    let (server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let mut child = caller(&kept.path(), &card, "slow 5");
    until(RECOVERY_MAX, "all is delegated", async || (kept.entries().await.len() == COUNT).then_some(())).await;
    child.kill().await.unwrap();
    let other = longhaul_client::ledger::Ledger::open(kept.path()).await.unwrap();
    let both = async { tokio::join!(kept.recover(after_the_caller()), recover(&other, after_the_caller())) };
    let (mine, theirs) = within(RECOVERY_MAX, "both end", both).await;
    let settled = |findings: &[Finding]| findings.iter().filter(|found| matches!(found, Finding::Settled(_))).count();
    assert_eq!(kept.count(StateKind::Completed).await, COUNT);
    assert_eq!(settled(&mine) + settled(&theirs), COUNT);
    assert_eq!(tasks(&card).await.len(), COUNT);
}
