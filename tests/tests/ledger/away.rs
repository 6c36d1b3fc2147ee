//! Agents that can't be reached, or have forgotten.

use std::sync::Arc;
use std::time::Duration;

use longhaul_client::card::Binding;
use longhaul_client::ledger::{
    CLAIM_DURATION, Deadline, Delegation, Finding, RecoverOptions, RunningTasks, State, StateKind,
};
use longhaul_client::{Client, RetryPolicy};
use longhaul_tests::hostile::{Script, Step};
use longhaul_tests::{Hostile, Server, Store, until, within};

use crate::support::{ByCard, Kept, RECOVERY_MAX, builder, rests, say};

/// Delegates a task that runs, and goes away from it.
async fn left_running(kept: &Kept, card: &str, text: &str) -> longhaul_client::ledger::Entry {
    let mut followed = kept.delegate(card, text).await;
    within(RECOVERY_MAX, "it begins", followed.next()).await.unwrap();
    let Finding::Running(entry) = followed.stop().await.unwrap() else { panic!("{text} runs") };
    assert!(
        matches!(entry.state, State::Accepted { .. }),
        "the task is written down before anything is told: {entry:?}"
    );
    entry
}

/// Options that give an agent up so soon.
fn patience(patience: Duration) -> RecoverOptions {
    let mut options = RecoverOptions::default();
    options.follow_up.follow.patience = patience;
    options
}

#[tokio::test]
async fn an_agent_that_comes_back_is_found_again() {
    let (mut server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    for number in 0..5 {
        left_running(&kept, &card, &format!("slow 1 echo {number}")).await;
    }
    server.kill().await;
    let mut recovery = kept.ledger.recover(Arc::new(ByCard), RecoverOptions::default());
    let first = within(RECOVERY_MAX, "the trouble is told", recovery.next()).await.unwrap().unwrap();
    assert!(matches!(first, Finding::Trouble { .. }), "{first:?}");
    server.run().await;
    let mut found = Vec::new();
    while let Some(finding) = within(RECOVERY_MAX, "it goes on", recovery.next()).await {
        found.push(finding.unwrap());
    }
    assert_eq!(rests(&found), [StateKind::Completed; 5]);
}

#[tokio::test]
async fn an_agent_that_stays_away_is_left_to_the_next_recovery_and_holds_up_no_other() {
    let (mut gone, server) = (Server::start(Store::Sqlite).await, Server::start(Store::Memory).await);
    let kept = Kept::new().await;
    let (gone_card, card) = (format!("http://{}", gone.addr()), format!("http://{}", server.addr()));
    for number in 0..40 {
        left_running(&kept, &gone_card, &format!("slow 60 echo {number}")).await;
    }
    left_running(&kept, &card, "slow 0.1 echo it").await;
    gone.kill().await;
    let found = kept.recover(patience(Duration::from_secs(3))).await;
    let settled = found.iter().position(|finding| matches!(finding, Finding::Settled(_))).unwrap();
    let given_up = found.iter().position(|finding| matches!(finding, Finding::Unreachable { .. })).unwrap();
    assert!(settled < given_up, "the other agent was not waited for");
    let unreachable = found.iter().filter(|finding| matches!(finding, Finding::Unreachable { .. })).count();
    let troubles = found.iter().filter(|finding| matches!(finding, Finding::Trouble { .. })).count();
    assert_eq!((unreachable, troubles), (40, 1));
    assert_eq!((kept.count(StateKind::Accepted).await, kept.count(StateKind::Completed).await), (40, 1));
}

#[tokio::test]
async fn a_task_that_the_agent_lost_is_for_a_person() {
    let (mut server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let left = left_running(&kept, &card, "slow 60").await;
    server.kill().await;
    server.run().await;
    let found = kept.recover(RecoverOptions::default()).await;
    let [Finding::Lost(entry)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((entry.id, entry.needs_person()), (left.id, true));
    assert!(entry.state.text().contains("TaskNotFound"), "{entry:?}");
}

#[tokio::test]
async fn silence_beyond_the_deadline_is_an_alarm_whether_the_agent_is_there_or_not() {
    let (mut server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let client = Client::connect(&card).await.unwrap();
    let mut delegation = Delegation::new(&card, say("slow 60"));
    delegation.deadline = Some(Deadline::Quiet(Duration::from_secs(2)));
    let mut followed = kept.ledger.delegate(&client, delegation).await.unwrap();
    let alarmed = loop {
        let update = within(RECOVERY_MAX, "the alarm", followed.next()).await.unwrap();
        if let longhaul_client::ledger::Update::Alarm(entry) = update {
            break entry;
        }
    };
    assert!(alarmed.id == followed.entry_id() && alarmed.needs_person(), "{alarmed:?}");
    let _ = followed.stop().await.unwrap();
    let mut second = Delegation::new(&card, say("slow 60"));
    second.deadline = Some(Deadline::At(crate::support::from_now(2000)));
    let second = kept.ledger.delegate(&client, second).await.unwrap();
    let id = second.entry_id();
    let _ = second.stop().await.unwrap();
    server.kill().await;
    let found = kept.recover(patience(Duration::from_secs(5))).await;
    let alarms = found.iter().filter(|finding| matches!(finding, Finding::Alarm(entry) if entry.id == id)).count();
    assert_eq!(alarms, 1, "{found:?}");
    assert!(kept.entry(id).await.needs_person());
}

#[tokio::test]
async fn credentials_that_are_refused_settle_nothing_in_a_recovery_and_a_delegation_at_once() {
    let kept = Kept::new().await;
    let refusing = Hostile::agent(|_| Script::whole(401, &[("WWW-Authenticate", "Bearer")], "sign in")).await;
    let card = refusing.card_url();
    let client = Client::builder().retry(RetryPolicy::never()).connect(&card).await.unwrap();
    let delegation = Delegation::new(&card, say("echo it"));
    let finding = kept.ledger.delegate(&client, delegation.clone()).await.unwrap().rest().await.unwrap();
    let Finding::Refused { entry, .. } = finding else { panic!("{finding:?}") };
    assert_eq!(entry.state.kind(), StateKind::Refused);
    // One that was written down and never sent.
    let held = kept.prepare(&client, &card).await;
    let found = kept.recover(patience(Duration::from_secs(2))).await;
    let unreachable =
        found.iter().any(|finding| matches!(finding, Finding::Unreachable { entry, .. } if entry.id == held.entry.id));
    assert!(unreachable, "{found:?}");
    let entry = kept.entry(held.entry.id).await;
    assert_eq!((entry.state.kind(), entry.attempts), (StateKind::Prepared, 0));
}

#[tokio::test]
async fn tasks_beyond_the_limit_are_asked_about_and_all_come_to_their_rest() {
    let (server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    for number in 0..8 {
        left_running(&kept, &card, &format!("slow 1 echo {number}")).await;
    }
    let mut options = RecoverOptions::default();
    (options.followed_max, options.checks_per_agent) = (2, 3);
    options.follow_up.follow.poll_interval_max = Duration::from_millis(200);
    let found = kept.recover(options).await;
    assert_eq!(rests(&found), [StateKind::Completed; 8]);
}

#[tokio::test]
async fn a_look_at_how_things_stand_leaves_what_runs_to_others() {
    let (server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let left = left_running(&kept, &card, "slow 60").await;
    let mut options = RecoverOptions::default();
    options.running = RunningTasks::Leave;
    let found = kept.recover(options).await;
    assert!(matches!(&found[..], [Finding::Running(entry)] if entry.id == left.id), "{found:?}");
    assert!(kept.entry(left.id).await.claimed.is_none());
}

#[tokio::test]
async fn a_recovery_that_is_stopped_leaves_nothing_claimed() {
    let (server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    for number in 0..3 {
        left_running(&kept, &card, &format!("slow 60 echo {number}")).await;
    }
    let mut recovery = kept.ledger.recover(Arc::new(ByCard), RecoverOptions::default());
    for _ in 0..3 {
        let finding = within(RECOVERY_MAX, "a task that runs", recovery.next()).await.unwrap().unwrap();
        assert!(matches!(finding, Finding::Running(_)), "{finding:?}");
    }
    within(RECOVERY_MAX, "it stops", recovery.stop()).await;
    assert!(kept.entries().await.iter().all(|entry| entry.claimed.is_none()));
}

#[tokio::test]
async fn tasks_are_found_again_over_each_binding() {
    let (mut server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    for binding in Binding::ALL {
        let client = builder(binding).connect(&card).await.unwrap();
        let delegation = Delegation::new(&card, say("slow 2 echo it"));
        let mut followed = kept.ledger.delegate(&client, delegation).await.unwrap();
        within(RECOVERY_MAX, "it begins", followed.next()).await.unwrap();
        let finding = followed.stop().await.unwrap();
        assert_eq!(finding.entry().unwrap().route.binding, binding.to_string());
    }
    server.kill().await;
    server.run().await;
    let found = kept.recover(RecoverOptions::default()).await;
    assert_eq!(rests(&found), [StateKind::Completed; 3]);
    assert_eq!(crate::support::tasks(&card).await.len(), 3);
}

#[tokio::test]
async fn an_agent_that_says_nothing_holds_up_no_other_and_no_end() {
    let (server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let silent = Hostile::agent(|_| Script::new().then(Step::Stall)).await;
    let client = Client::connect(&silent.card_url()).await.unwrap();
    for _ in 0..50 {
        let _ = kept.prepare(&client, &silent.card_url()).await;
    }
    left_running(&kept, &format!("http://{}", server.addr()), "slow 0.1 echo it").await;
    let mut recovery = kept.ledger.recover(Arc::new(ByCard), RecoverOptions::default());
    // Shorter than the time that a client gives an agent.
    let settled = within(Duration::from_secs(20), "the other is settled", async {
        loop {
            if let Finding::Settled(entry) = recovery.next().await.unwrap().unwrap() {
                break entry;
            }
        }
    });
    assert_eq!(settled.await.state.kind(), StateKind::Completed);
    within(Duration::from_secs(10), "it stops", recovery.stop()).await;
    assert_eq!(kept.count(StateKind::Prepared).await, 50);
}

#[tokio::test]
async fn claims_are_renewed_while_their_tasks_are_followed() {
    let (server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let left = left_running(&kept, &card, "slow 60").await;
    let followed = kept.delegate(&card, "slow 60").await;
    let mut recovery = kept.ledger.recover(Arc::new(ByCard), RecoverOptions::default());
    let finding = within(RECOVERY_MAX, "a task that runs", recovery.next()).await.unwrap().unwrap();
    assert!(matches!(&finding, Finding::Running(entry) if entry.id == left.id), "the other is followed: {finding:?}");
    let ends = async |id| kept.entry(id).await.claimed.unwrap().until;
    let before = [ends(left.id).await, ends(followed.entry_id()).await];
    until(CLAIM_DURATION, "both are renewed", async || {
        let after = [ends(left.id).await, ends(followed.entry_id()).await];
        (after[0] > before[0] && after[1] > before[1]).then_some(())
    })
    .await;
    recovery.stop().await;
    let _ = followed.stop().await.unwrap();
}
