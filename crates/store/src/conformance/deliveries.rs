use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use longhaul_protocol::TaskState;
use tokio::task::JoinSet;

use super::TestStore;
use super::life::{Life, at, commit_of_pieces, complete, far, piece, task_id};
use super::push::{Sender, config, config_id, configs, dead, pushed, retry};
use super::sweeps::assert_gone;
use crate::{DeadDelivery, DeadKey, DueDelivery, HostState, Next, PushBacklog, Scope, Settlement, Store};

fn hosts(due: &[DueDelivery]) -> Vec<&str> {
    due.iter().map(|due| due.config.host.as_str()).collect()
}

async fn dead_ones(store: &dyn Store) -> Vec<DeadDelivery> {
    store.dead_deliveries(None, 1000).await.expect("an answer")
}

async fn backlog(store: &dyn Store) -> (u64, u64) {
    let PushBacklog { configs, dead } = store.push_backlog().await.expect("an answer");
    (configs, dead)
}

/// Each event is due when it is committed and those before it are settled: one at a time, in order, none left out.
pub async fn events_are_due_in_order_one_by_one(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let sender = Sender(&**test.store());
    let mut life = pushed(test.store(), "task", vec![config("config", "host")]).await;
    life.at(1).start().await;
    life.at(2).add(piece("a", "x", false)).await;
    for sequence in 1..=3 {
        let due = sender.only(2).await;
        assert_eq!((due.sequence, due.last_sequence), (sequence, 3));
        sender.nothing(2).await;
        assert_eq!(sender.settle(&due, Settlement::Delivered, 2).await, Next::Released);
    }
    sender.nothing(1000).await;
    life.at(1001).add(piece("a", "y", true)).await;
    assert_eq!(sender.drain(1001).await, [4]);
}

/// One that is to be tried again waits for its time, and the ones behind it wait with it.
pub async fn a_retry_keeps_its_place(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let sender = Sender(&**test.store());
    let mut life = pushed(test.store(), "task", vec![config("config", "host"), config("other", "host")]).await;
    let mut claimed = sender.claim(5).await;
    claimed.sort_by(|one, other| one.config.id.cmp(&other.config.id));
    let [first, other] = &claimed[..] else { panic!("{claimed:?}") };
    assert_eq!(sender.settle(first, retry(at(100)), 5).await, Next::Released);
    assert_eq!(sender.settle(other, Settlement::Delivered, 5).await, Next::Released);
    life.at(6).start().await;
    assert_eq!(sender.drain(50).await, [2], "configs don't hold each other up");
    sender.nothing(99).await;
    let second = sender.only(100).await;
    assert_eq!((second.sequence, second.attempts, second.first_attempt_at), (1, 1, Some(at(5))));
    assert!(second.epoch > first.epoch);
    let not_begun = Settlement::Retry { at: at(200), error: String::new(), counts: false };
    assert_eq!(sender.settle_and_hold(&second, not_begun, 105).await, Next::Released);
    let third = sender.only(200).await;
    assert_eq!((third.attempts, third.first_attempt_at), (1, Some(at(5))), "it was not begun");
    sender.settle(&third, retry(at(300)), 205).await;
    let fourth = sender.only(300).await;
    assert_eq!((fourth.attempts, fourth.first_attempt_at), (2, Some(at(5))));
    sender.settle(&fourth, Settlement::Delivered, 305).await;
    let next = sender.only(305).await;
    assert_eq!((next.sequence, next.attempts, next.first_attempt_at), (2, 0, None));
}

/// Nobody gets what another has claimed, until the claim runs out: then the old one says nothing any more.
pub async fn a_claim_is_exclusive_until_it_runs_out(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let sender = Sender(&**test.store());
    pushed(test.store(), "task", vec![config("config", "host")]).await;
    let first = sender.only(0).await;
    sender.nothing(9).await;
    let second = sender.only(10).await;
    assert_eq!(second.sequence, 1);
    assert!(second.epoch > first.epoch);
    for settlement in [Settlement::Delivered, retry(at(11)), dead("no"), Settlement::Gone] {
        assert_eq!(sender.settle_and_hold(&first, settlement, 11).await, Next::Lost);
    }
    sender.nothing(19).await;
    assert_eq!(dead_ones(&**test.store()).await, []);
    assert_eq!(sender.settle(&second, Settlement::Delivered, 19).await, Next::Released);
    sender.nothing(1000).await;
}

/// A claim that ran out and was taken by nobody can still be settled.
pub async fn a_late_settlement_counts_if_nobody_was_first(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let sender = Sender(&**test.store());
    pushed(test.store(), "task", vec![config("config", "host")]).await;
    let first = sender.only(0).await;
    assert_eq!(sender.settle(&first, Settlement::Delivered, 500).await, Next::Released);
    sender.nothing(1000).await;
}

/// A settlement that is said twice, after an answer that got lost, changes nothing.
pub async fn a_claim_is_settled_once(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let sender = Sender(&**test.store());
    let mut life = pushed(test.store(), "task", vec![config("config", "host")]).await;
    life.start().await;
    let first = sender.only(0).await;
    assert_eq!(sender.settle(&first, retry(at(50)), 1).await, Next::Released);
    for settlement in [retry(at(2)), Settlement::Delivered, dead("no"), Settlement::Gone] {
        assert_eq!(sender.settle(&first, settlement, 1).await, Next::Lost);
    }
    let second = sender.only(50).await;
    assert_eq!((second.sequence, second.attempts), (1, 1));
    assert_eq!(sender.settle_and_hold(&second, Settlement::Delivered, 51).await, Next::Held { sequence: 2 });
    assert_eq!(sender.settle_and_hold(&second, Settlement::Delivered, 51).await, Next::Lost);
    let third = DueDelivery { sequence: 2, ..second };
    assert_eq!(sender.settle(&third, dead("no"), 52).await, Next::Released);
    assert_eq!(sender.settle(&third, dead("no"), 52).await, Next::Lost);
    assert_eq!(backlog(&**test.store()).await, (0, 1));
    // A claim that was handed back, of an event and of a dead one.
    life.at(60).add(piece("a", "x", false)).await;
    let not_begun = Settlement::Retry { at: at(70), error: String::new(), counts: false };
    test.store().retry_dead(None, None, at(60)).await.expect("an answer");
    let claimed = sender.claim(60).await;
    assert_eq!(claimed.len(), 2, "{claimed:?}");
    for due in &claimed {
        assert_eq!(sender.settle(due, not_begun.clone(), 61).await, Next::Released);
        for settlement in [not_begun.clone(), Settlement::Delivered, dead("no"), Settlement::Gone] {
            assert_eq!(sender.settle(due, settlement, 61).await, Next::Lost);
        }
    }
    assert_eq!(sender.claim(70).await.len(), 2);
}

/// Whoever holds on has the next event at once, for a time of its own, until the log ends.
pub async fn a_held_claim_goes_on_to_the_end(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let sender = Sender(&**test.store());
    let mut life = pushed(test.store(), "task", vec![config("config", "host")]).await;
    life.start().await;
    life.add(piece("a", "x", false)).await;
    let first = sender.only(0).await;
    assert_eq!(sender.settle_and_hold(&first, Settlement::Delivered, 5).await, Next::Held { sequence: 2 });
    sender.nothing(14).await;
    let second = DueDelivery { sequence: 2, ..first };
    assert_eq!(sender.settle_and_hold(&second, dead("no"), 14).await, Next::Held { sequence: 3 });
    let taken = sender.only(24).await;
    assert_eq!((taken.sequence, taken.attempts), (3, 0), "it ran out");
    let third = DueDelivery { sequence: 3, ..second };
    assert_eq!(sender.settle_and_hold(&third, Settlement::Delivered, 24).await, Next::Lost);
    assert_eq!(sender.settle_and_hold(&taken, Settlement::Delivered, 24).await, Next::Released, "there is no more");
    sender.nothing(1000).await;
}

/// What is committed while the last known event is on its way is due after it.
pub async fn a_commit_during_a_claim_is_not_forgotten(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let sender = Sender(&**test.store());
    let mut life = pushed(test.store(), "task", vec![config("config", "host")]).await;
    let first = sender.only(0).await;
    life.start().await;
    sender.nothing(1).await;
    assert_eq!(sender.settle(&first, Settlement::Delivered, 1).await, Next::Released);
    let second = sender.only(1).await;
    assert_eq!((second.sequence, second.last_sequence), (2, 2));
    life.add(piece("a", "x", false)).await;
    assert_eq!(sender.settle_and_hold(&second, Settlement::Delivered, 2).await, Next::Held { sequence: 3 });
    let third = DueDelivery { sequence: 3, ..second };
    life.add(piece("a", "y", true)).await;
    sender.settle(&third, retry(at(50)), 3).await;
    life.add(piece("a", "z", true)).await;
    sender.nothing(49).await;
    assert_eq!(sender.drain(50).await, [3, 4, 5]);
}

/// Hosts take turns, however much is due to one of them, and go on behind the one that was served last.
pub async fn hosts_are_served_in_turns(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let many = (0..20).map(|n| config(&format!("config-{n}"), "b")).collect();
    pushed(store, "many", many).await;
    pushed(store, "few", vec![config("a-0", "a"), config("a-1", "a"), config("c", "c")]).await;
    assert_eq!(hosts(&sender.claim_some(0, 6, None, &[]).await), ["a", "b", "c", "a", "b", "b"]);
    assert_eq!(hosts(&sender.claim_some(100, 2, Some("a"), &[]).await), ["b", "c"]);
    assert_eq!(hosts(&sender.claim_some(200, 2, Some("c"), &[]).await), ["a", "b"]);
    assert_eq!(hosts(&sender.claim_some(300, 3, Some("bb"), &[]).await), ["c", "a", "b"]);
    let busy = ["b".to_owned(), "x".to_owned()];
    assert_eq!(hosts(&sender.claim_some(400, 9, None, &busy).await), ["a", "c", "a"]);
    assert_eq!(hosts(&sender.claim_some(400, 9, Some("a"), &["a".to_owned()]).await), ["b"; 9]);
    assert_eq!(sender.claim_some(500, 0, None, &[]).await, []);
    let all = sender.claim(600).await;
    assert_eq!((all.len(), &hosts(&all)[..7]), (23, &["a", "b", "c", "a", "b", "b", "b"][..]));
}

/// Of a host's deliveries the one that is due longest comes first.
pub async fn of_a_host_the_longest_due_comes_first(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let configs = vec![config("a", "host"), config("b", "host"), config("c", "host")];
    pushed(store, "task", configs).await;
    for due in sender.claim(0).await {
        let wait = if due.config.id == config_id("b") { 50 } else { 60 + i64::from(due.config.id.as_str() == "a") };
        sender.settle(&due, retry(at(wait)), 0).await;
    }
    let order = async |millis| {
        let due = sender.claim_some(millis, 1, None, &[]).await;
        due.first().map(|due| due.config.id.as_str().to_owned())
    };
    assert_eq!(order(61).await.as_deref(), Some("b"));
    assert_eq!(order(61).await.as_deref(), Some("c"));
    assert_eq!(order(61).await.as_deref(), Some("a"));
    assert_eq!(order(61).await, None);
}

/// A dead delivery that is to be tried again stands in its host's line like any other.
pub async fn dead_deliveries_wait_in_line(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    pushed(store, "dead", vec![config("dead", "host")]).await;
    let due = sender.only(0).await;
    sender.settle(&due, dead("no"), 0).await;
    let mut life = pushed(store, "alive", vec![config("alive", "host")]).await;
    let order = async |millis| {
        let mut order = Vec::new();
        for _ in 0..2 {
            let due = sender.claim_some(millis, 1, None, &[]).await;
            order.extend(due.iter().map(|due| due.is_dead));
            sender.settle(&due[0], if due[0].is_dead { dead("no") } else { Settlement::Delivered }, millis).await;
        }
        order
    };
    store.retry_dead(None, None, at(10)).await.expect("an answer");
    assert_eq!(order(20).await, [false, true], "the config is due since the beginning");
    store.retry_dead(None, None, at(30)).await.expect("an answer");
    life.at(40).start().await;
    assert_eq!(order(50).await, [true, false]);
}

/// What is known of a host is kept, and nothing is sent to one whose breaker is open.
pub async fn open_hosts_are_left_out(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    pushed(store, "task", vec![config("a", "a"), config("b", "b"), config("c", "c")]).await;
    let state = async |host: &str| store.push_host(host).await.expect("an answer");
    let set = async |host: &str, state: HostState| store.set_push_host(host, state).await.expect("an answer");
    assert_eq!(state("a").await, HostState::default());
    let open = HostState { failures: 5, open_until: Some(at(50)) };
    set("a", open.clone()).await;
    set("b", HostState { failures: 2, open_until: None }).await;
    assert_eq!((state("a").await, state("b").await.failures), (open, 2));
    let claimed = sender.claim(20).await;
    assert_eq!(hosts(&claimed), ["b", "c"]);
    assert_eq!(claimed.iter().map(|due| due.host_failures).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(hosts(&sender.claim(49).await), ["b", "c"], "their claims ran out");
    assert_eq!(hosts(&sender.claim(50).await), ["a"]);
    set("a", HostState { failures: 6, open_until: Some(at(500)) }).await;
    assert_eq!(hosts(&sender.claim(100).await), ["b", "c"]);
    set("a", HostState::default()).await;
    assert_eq!(state("a").await, HostState::default());
    assert_eq!(hosts(&sender.claim(105).await), ["a"]);
}

/// The time of the next delivery is known, be it one that waits, one whose claim may run out, or a dead one.
pub async fn the_next_delivery_is_the_earliest(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let next = async || store.next_delivery().await.expect("an answer");
    assert_eq!(next().await, None);
    Life::begin(store, &Scope::default(), "without", "context", 0).await;
    assert_eq!(next().await, None);
    pushed(store, "b", vec![config("config", "b")]).await;
    pushed(store, "a", vec![config("config", "a")]).await;
    assert_eq!(next().await, Some(at(0)));
    let claimed = sender.claim(5).await;
    assert_eq!(next().await, Some(at(15)), "its claim runs out");
    for (due, at) in claimed.iter().zip([at(300), at(200)]) {
        sender.settle(due, retry(at), 5).await;
    }
    assert_eq!(next().await, Some(at(200)));
    let due = sender.only(200).await;
    sender.settle(&due, dead("no"), 200).await;
    assert_eq!(next().await, Some(at(300)));
    assert_eq!(store.retry_dead(None, None, at(250)).await.expect("an answer"), 1);
    assert_eq!(next().await, Some(at(250)));
    for millis in [250, 300] {
        let due = sender.only(millis).await;
        sender.settle(&due, Settlement::Delivered, millis).await;
    }
    assert_eq!(next().await, None);
}

/// What was given up is kept with its reason, and the next event follows.
pub async fn a_dead_delivery_is_kept_and_the_next_follows(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut life = pushed(store, "task", vec![config("config", "host")]).await;
    life.start().await;
    let first = sender.only(1).await;
    sender.settle(&first, retry(at(10)), 1).await;
    let again = sender.only(10).await;
    assert_eq!(sender.settle(&again, dead("it answered 500"), 12).await, Next::Released);
    let wanted = DeadDelivery {
        scope: life.scope.clone(),
        task_id: task_id("task"),
        config_id: config_id("config"),
        url: config("config", "host").url,
        sequence: 1,
        attempts: 2,
        died_at: at(12),
        error: "it answered 500".to_owned(),
    };
    assert_eq!(dead_ones(&**store).await, [wanted]);
    assert_eq!(backlog(&**store).await, (1, 1));
    assert_eq!(sender.drain(12).await, [2]);
    assert_eq!(backlog(&**store).await, (0, 1));
    sender.nothing(100_000).await;
}

/// A dead delivery is tried again when an operator says so: it is gone when it is delivered, and stays when it is not.
pub async fn a_dead_delivery_is_tried_again(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut life = pushed(store, "task", vec![config("config", "host")]).await;
    life.start().await;
    let due = sender.only(1).await;
    assert_eq!(sender.settle_and_hold(&due, dead("first"), 1).await, Next::Held { sequence: 2 });
    sender.settle(&DueDelivery { sequence: 2, ..due }, Settlement::Delivered, 2).await;
    let retry_all = async |millis| store.retry_dead(None, None, at(millis)).await.expect("an answer");
    assert_eq!(retry_all(20).await, 1);
    assert_eq!(retry_all(30).await, 1, "it is due already");
    let again = sender.only(30).await;
    assert_eq!((again.sequence, again.last_sequence, again.attempts, again.is_dead), (1, 2, 1, true));
    assert_eq!(again.config, config("config", "host"));
    sender.nothing(39).await;
    let taken = sender.only(40).await;
    assert_eq!(sender.settle(&again, Settlement::Delivered, 40).await, Next::Lost, "its claim ran out");
    assert_eq!(sender.settle_and_hold(&taken, dead("second"), 41).await, Next::Released);
    assert_eq!(sender.settle(&taken, Settlement::Delivered, 41).await, Next::Lost);
    let known = dead_ones(&**store).await;
    assert_eq!((known.len(), known[0].attempts, known[0].error.as_str()), (1, 2, "second"));
    sender.nothing(100).await;
    retry_all(100).await;
    let third = sender.only(100).await;
    let not_begun = Settlement::Retry { at: at(150), error: String::new(), counts: false };
    assert_eq!(sender.settle(&third, not_begun, 100).await, Next::Released);
    sender.nothing(149).await;
    let fourth = sender.only(150).await;
    assert_eq!(fourth.attempts, 2);
    assert_eq!(sender.settle_and_hold(&fourth, Settlement::Delivered, 150).await, Next::Released);
    assert_eq!((dead_ones(&**store).await, backlog(&**store).await), (Vec::new(), (0, 0)));
    assert_eq!(retry_all(200).await, 0);
    sender.nothing(200).await;
}

/// A dead delivery that is tried again does not wait for the ones behind it, nor do they for it; it fails for good by a
/// retry that counts, for nobody waits for it.
pub async fn dead_deliveries_stand_apart(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut life = pushed(store, "task", vec![config("config", "host")]).await;
    life.start().await;
    let due = sender.only(0).await;
    sender.settle(&due, dead("first"), 1).await;
    store.retry_dead(Some(&life.head.id), None, at(1)).await.expect("an answer");
    let mut claimed = sender.claim(1).await;
    claimed.sort_by_key(|due| due.sequence);
    let [again, next] = &claimed[..] else { panic!("{claimed:?}") };
    assert_eq!((again.sequence, again.is_dead, next.sequence, next.is_dead), (1, true, 2, false));
    assert_eq!(sender.settle(next, Settlement::Delivered, 2).await, Next::Released);
    assert_eq!(sender.settle(again, retry(at(5)), 2).await, Next::Released);
    sender.nothing(1000).await;
    assert_eq!(dead_ones(&**store).await[0].error, "it answered 500");
}

/// A receiver that wants no more loses its config and what was given up for it, and no other does.
pub async fn gone_removes_the_config(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut life = pushed(store, "task", vec![config("gone", "host"), config("stays", "host")]).await;
    life.start().await;
    for due in sender.claim(0).await {
        sender.settle(&due, dead("no"), 0).await;
    }
    let claimed = sender.claim(0).await;
    let gone = claimed.iter().find(|due| due.config.id == config_id("gone")).expect("it is due");
    assert_eq!(sender.settle_and_hold(gone, Settlement::Gone, 1).await, Next::Released);
    assert_eq!(configs(&**store, &life).await, Some(vec![config("stays", "host")]));
    assert_eq!(dead_ones(&**store).await.len(), 1);
    assert_eq!(backlog(&**store).await, (1, 1));
    store.retry_dead(None, None, at(2)).await.expect("an answer");
    let again = sender.only(2).await;
    assert!(again.is_dead && again.config.id == config_id("stays"));
    assert_eq!(sender.settle(&again, Settlement::Gone, 3).await, Next::Released);
    assert_eq!(configs(&**store, &life).await, Some(vec![]));
    assert_eq!(backlog(&**store).await, (0, 0));
    sender.nothing(1000).await;
}

/// Dead deliveries are listed in the order of their keys, page by page, and tried again by task, by config or all.
pub async fn dead_deliveries_are_listed_in_pages(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    for task in ["b", "a", "c"] {
        let mut life = pushed(store, task, vec![config("y", "host"), config("x", "other")]).await;
        life.start().await;
    }
    for _ in 0..2 {
        for due in sender.claim(1).await {
            sender.settle(&due, dead("no"), 1).await;
        }
    }
    let key = |dead: &DeadDelivery| (dead.task_id.to_string(), dead.config_id.to_string(), dead.sequence);
    let mut keys = Vec::new();
    let mut after = None;
    loop {
        let page = store.dead_deliveries(after.as_ref(), 5).await.expect("an answer");
        assert!(page.len() <= 5);
        let Some(last) = page.last() else { break };
        let DeadDelivery { task_id, config_id, sequence, .. } = last.clone();
        after = Some(DeadKey { task_id, config_id, sequence });
        keys.extend(page.iter().map(key));
    }
    let names = ["a", "b", "c"].into_iter().flat_map(|task| ["x", "y"].map(|config| (task, config)));
    let wanted: Vec<_> = names.flat_map(|(task, config)| [1, 2].map(|n| (task.into(), config.into(), n))).collect();
    assert_eq!(keys, wanted);
    let retry = async |task: Option<&str>, config: Option<&str>, millis| {
        let (task, config) = (task.map(task_id), config.map(config_id));
        store.retry_dead(task.as_ref(), config.as_ref(), at(millis)).await.expect("an answer")
    };
    let due = async |millis| {
        let mut due = sender.claim(millis).await;
        due.sort_by_key(|due| (due.task_id.to_string(), due.config.id.to_string(), due.sequence));
        for due in &due {
            assert_eq!(sender.settle(due, dead("again"), millis).await, Next::Released);
        }
        due.iter().map(|due| format!("{} {} {}", due.task_id, due.config.id, due.sequence)).collect::<Vec<_>>()
    };
    assert_eq!(retry(Some("b"), Some("x"), 10).await, 2);
    assert_eq!(due(10).await, ["b x 1", "b x 2"]);
    assert_eq!(retry(Some("c"), None, 20).await, 4);
    assert_eq!(due(20).await, ["c x 1", "c x 2", "c y 1", "c y 2"]);
    assert_eq!(retry(Some("d"), None, 30).await, 0);
    assert_eq!(retry(Some("a"), Some("z"), 30).await, 0);
    assert_eq!(retry(None, None, 40).await, 12);
    assert_eq!(due(40).await.len(), 12);
}

/// What was given up goes to where the config sends now.
pub async fn dead_deliveries_follow_their_config(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let life = pushed(store, "task", vec![config("config", "before")]).await;
    let due = sender.only(0).await;
    sender.settle(&due, dead("no"), 0).await;
    store.retry_dead(None, None, at(1)).await.expect("an answer");
    let before = sender.only(1).await;
    let replaced = config("config", "after");
    let put = store.put_push_config(&life.scope, &life.head.id, replaced.clone(), 9, at(2)).await;
    assert_eq!(put.expect("an answer"), Some(true));
    assert_eq!(sender.settle(&before, Settlement::Gone, 2).await, Next::Lost, "it was for what was there before");
    assert_eq!(dead_ones(&**store).await[0].url, replaced.url);
    assert_eq!(sender.claim_some(2, 9, None, &["after".to_owned()]).await, []);
    let after = sender.only(2).await;
    assert_eq!((after.sequence, after.is_dead, after.config), (1, true, replaced));
}

/// A task that ended and has yet to be told about stays, and its log stays whole; then it goes, with all that is its own.
pub async fn a_task_stays_until_its_end_is_delivered(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    let mut waiting = pushed(store, "waiting", vec![config("a", "host"), config("b", "host")]).await;
    let mut dying = pushed(store, "dying", vec![config("a", "other")]).await;
    let mut plain = Life::begin(store, &Scope::default(), "plain", "context", 0).await;
    for life in [&mut waiting, &mut dying, &mut plain] {
        life.start().await;
        let pieces = (0..crate::COMPACT_EVENTS_MIN).map(|n| piece("a", "x", n > 0));
        let commit = commit_of_pieces(&life.head, pieces, at(1));
        life.commit(commit).await.expect("the lease is alive");
        life.at(1).work(complete()).await;
    }
    let purge = async || store.purge(TaskState::Completed, far(), 1).await.expect("a purge");
    let compact = async || store.compact(far(), 1).await.expect("merged");
    let last = waiting.head.last_sequence;
    assert_eq!((compact().await, compact().await), (1, 0), "the plain one alone");
    assert_eq!((purge().await, purge().await), (1, 0), "the plain one alone");
    assert_gone(&**store, &plain).await;
    let is_other = |due: &DueDelivery| due.config.host == "other";
    let drain = async |wanted: &dyn Fn(&DueDelivery) -> bool, settlement: Settlement| loop {
        let due: Vec<_> = sender.claim(2).await;
        let wanted: Vec<_> = due.iter().filter(|due| wanted(due)).collect();
        for due in &due {
            let not_begun = Settlement::Retry { at: at(2), error: String::new(), counts: false };
            let is_wanted = wanted.contains(&due);
            sender.settle(due, if is_wanted { settlement.clone() } else { not_begun }, 2).await;
        }
        if wanted.is_empty() {
            return;
        }
    };
    drain(&|due| is_other(due) && due.sequence < last, Settlement::Delivered).await;
    drain(&is_other, dead("no")).await;
    assert_eq!(backlog(&**store).await, (2, 1));
    assert_eq!(compact().await, 0, "a dead one may be tried again");
    assert_eq!(store.events_after(&dying.head.id, 0, 1000).await.expect("events").len() as u64, last);
    assert_eq!((purge().await, purge().await), (1, 0), "what was given up holds nothing up");
    assert_gone(&**store, &dying).await;
    assert_eq!(backlog(&**store).await, (2, 0));
    assert_eq!(configs(&**store, &dying).await, None);
    drain(&|due| due.config.id == config_id("a"), Settlement::Delivered).await;
    assert_eq!((compact().await, purge().await), (0, 0), "one of two is not enough");
    drain(&|_| true, Settlement::Delivered).await;
    assert_eq!((compact().await, compact().await, purge().await), (1, 0, 1));
    assert_gone(&**store, &waiting).await;
    let sealed = store.sealed_configs(None, 9).await.expect("an answer");
    assert_eq!((sealed, backlog(&**store).await), (Vec::new(), (0, 0)));
    assert_eq!(store.next_delivery().await.expect("an answer"), None);
}

/// What is waiting is counted by config, and what was given up one by one.
pub async fn the_push_backlog_is_counted(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, sender) = (test.store(), Sender(&**test.store()));
    assert_eq!(backlog(&**store).await, (0, 0));
    let mut life = pushed(store, "task", vec![config("a", "host"), config("b", "host")]).await;
    assert_eq!(backlog(&**store).await, (2, 0));
    life.start().await;
    assert_eq!(backlog(&**store).await, (2, 0));
    let claimed = sender.claim(1).await;
    assert_eq!(backlog(&**store).await, (2, 0), "it is not delivered yet");
    sender.settle(&claimed[0], retry(at(900)), 1).await;
    sender.settle_and_hold(&claimed[1], dead("no"), 1).await;
    assert_eq!(backlog(&**store).await, (2, 1));
    sender.settle(&DueDelivery { sequence: 2, ..claimed[1].clone() }, Settlement::Delivered, 1).await;
    assert_eq!(backlog(&**store).await, (1, 1));
    store.remove_push_config(&life.scope, &life.head.id, &claimed[0].config.id).await.expect("an answer");
    assert_eq!(backlog(&**store).await, (0, 1));
    store.remove_push_config(&life.scope, &life.head.id, &claimed[1].config.id).await.expect("an answer");
    assert_eq!(backlog(&**store).await, (0, 0));
}

/// Configs, places, claims, dead ones, hosts and the key check are there when the store is opened again.
pub async fn pushes_outlive_the_store(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = pushed(test.store(), "task", vec![config("config", "host"), config("other", "other")]).await;
    life.start().await;
    let sender = Sender(&**test.store());
    for due in sender.claim_some(0, 9, None, &["other".to_owned()]).await {
        sender.settle(&due, dead("no"), 0).await;
    }
    for due in sender.claim_some(0, 9, None, &["other".to_owned()]).await {
        sender.settle(&due, retry(at(100)), 0).await;
    }
    let under_way = sender.claim_some(5, 9, None, &[]).await;
    assert_eq!(hosts(&under_way), ["other"]);
    let state = HostState { failures: 3, open_until: Some(at(50)) };
    test.store().set_push_host("third", state.clone()).await.expect("an answer");
    test.store().push_key_check(b"check").await.expect("an answer");
    let known = dead_ones(&**test.store()).await;
    let Some(store) = test.reopened().await else { return };
    let sender = Sender(&*store);
    assert_eq!(dead_ones(&*store).await, known);
    assert_eq!(store.push_host("third").await.expect("an answer"), state);
    assert_eq!(store.push_key_check(b"another").await.expect("an answer"), &b"check"[..]);
    let both = store.push_configs(&life.scope, &life.head.id, None, 9).await.expect("an answer");
    assert_eq!(both, Some(vec![config("config", "host"), config("other", "other")]));
    assert_eq!(backlog(&*store).await, (2, 1));
    assert_eq!(store.next_delivery().await.expect("an answer"), Some(at(15)));
    sender.nothing(14).await;
    let again = sender.only(15).await;
    assert_eq!((again.config.host.as_str(), again.sequence), ("other", 1));
    assert!(again.epoch > under_way[0].epoch);
    assert_eq!(sender.settle(&under_way[0], Settlement::Delivered, 15).await, Next::Lost);
    sender.settle(&again, Settlement::Delivered, 15).await;
    assert_eq!(sender.drain(15).await, [2]);
    let retried = sender.only(100).await;
    assert_eq!((retried.sequence, retried.attempts, retried.first_attempt_at), (2, 1, Some(at(0))));
    sender.settle(&retried, Settlement::Delivered, 100).await;
    life.store = Arc::clone(&store);
    life.at(101).add(piece("a", "x", false)).await;
    assert_eq!(sender.drain(101).await, [3, 3], "a commit finds the configs again");
}

const TASKS: usize = 6;
const COMMITS: usize = 20;
const SENDERS: usize = 4;

/// While tasks are committed to, several senders claim, fail, hold on and lose claims: each config is given each event,
/// and each is settled once.
pub async fn many_senders_deliver_each_event_in_order(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let mut committers = JoinSet::new();
    for task in 0..TASKS {
        let store = Arc::clone(store);
        committers.spawn(async move {
            let configs = vec![config("a", &format!("host-{}", task % 3)), config("b", "host")];
            let mut life = pushed(&store, &format!("task-{task}"), configs).await;
            life.start().await;
            for n in 0..COMMITS {
                life.add(piece("a", "x", n > 0)).await;
            }
        });
    }
    let mut senders = JoinSet::new();
    let clock = Arc::new(AtomicI64::new(0));
    for sender in 0..SENDERS {
        let (store, clock) = (Arc::clone(store), Arc::clone(&clock));
        senders.spawn(async move { send_all(&*store, &clock, sender).await });
    }
    committers.join_all().await;
    let mut settled: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for (task, config, sequence) in senders.join_all().await.into_iter().flatten() {
        settled.entry((task, config)).or_default().push(sequence);
    }
    assert_eq!(settled.len(), 2 * TASKS);
    for (config, mut sequences) in settled {
        sequences.sort_unstable();
        assert_eq!(sequences, (1..=2 + COMMITS as u64).collect::<Vec<_>>(), "{config:?}");
    }
    assert_eq!(backlog(&**store).await, (0, 0));
}

/// Sends until all is delivered. Answers what was delivered by the store's word.
async fn send_all(store: &dyn Store, clock: &AtomicI64, sender: usize) -> Vec<(String, String, u64)> {
    const ROUNDS_MAX: usize = 100_000;
    let mut done = Vec::new();
    for round in 0..ROUNDS_MAX {
        // A claim lasts for ten rounds of whichever sender.
        let now = clock.fetch_add(1, Ordering::Relaxed);
        let due = store.claim_deliveries(at(now), at(now + 10), 3, None, &[]).await.expect("claims");
        for (place, due) in due.into_iter().enumerate() {
            deliver(store, due, now, (sender + round + place) % 5, &mut done).await;
        }
        let marks = store.marks(&task_ids()).await.expect("marks");
        let all = marks.len() == TASKS && marks.iter().all(|mark| mark.last_sequence == 2 + COMMITS as u64);
        if all && backlog(store).await.0 == 0 {
            return done;
        }
        tokio::task::yield_now().await;
    }
    panic!("not all is delivered after {ROUNDS_MAX} rounds");
}

fn task_ids() -> Vec<longhaul_protocol::TaskId> {
    (0..TASKS).map(|task| task_id(&format!("task-{task}"))).collect()
}

async fn deliver(
    store: &dyn Store,
    mut due: DueDelivery,
    now: i64,
    fate: usize,
    done: &mut Vec<(String, String, u64)>,
) {
    match fate {
        // It gets lost.
        0 => return,
        1 => {
            let settled = store.settle_delivery(&due, retry(at(now)), None, at(now)).await.expect("settled");
            assert!(matches!(settled, Next::Released | Next::Lost), "{settled:?}");
            return;
        }
        _ => {}
    }
    loop {
        let hold = (fate > 2).then(|| at(now + 10));
        let settled = store.settle_delivery(&due, Settlement::Delivered, hold, at(now)).await.expect("settled");
        if settled != Next::Lost {
            done.push((due.task_id.to_string(), due.config.id.to_string(), due.sequence));
        }
        match settled {
            Next::Held { sequence } => {
                assert_eq!(sequence, due.sequence + 1);
                due.sequence = sequence;
            }
            Next::Released | Next::Lost => return,
        }
    }
}
