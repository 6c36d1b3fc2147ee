use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_lifecycle::{AttemptOutcome, Command};

use super::TestStore;
use super::life::{Life, agent_message, at, complete, due, far, reply, scope};
use crate::{Claim, Rotation, Scope, Store};

/// Due tasks come with scope and head, only those that are due, and no more than asked for.
pub async fn only_what_is_due_comes(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut lives = Vec::new();
    for (id, millis) in [("c", 30), ("a", 10), ("d", 40), ("b", 20)] {
        lives.push(Life::begin(test.store(), &scope(id, "owner"), id, "context", millis).await);
    }
    for (now, limit, expected) in [(9, 10, ""), (10, 10, "a"), (35, 10, "abc"), (1000, 10, "abcd"), (35, 0, "")] {
        let due = due(&**test.store(), at(now), limit).await;
        let mut ids: Vec<&str> = due.iter().map(|claim| claim.head.id.as_str()).collect();
        ids.sort_unstable();
        assert_eq!(ids.concat(), expected, "at {now}, at most {limit}");
        for claim in due {
            let life = lives.iter().find(|life| life.head.id == claim.head.id).expect("one of ours");
            assert_eq!((claim.scope, claim.head), (life.scope.clone(), life.head.clone()));
        }
    }
    assert_eq!(due(&**test.store(), at(1000), 2).await.len(), 2);
}

/// Within a context the one that is in line for the longest comes first.
pub async fn of_a_context_the_longest_due_comes_first(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    for (id, millis) in [("c", 30), ("a", 10), ("d", 40), ("b", 20)] {
        Life::begin(test.store(), &Scope::default(), id, "context", millis).await;
    }
    for (now, limit, expected) in [(35, 10, "abc"), (1000, 10, "abcd"), (1000, 2, "ab"), (1000, 1, "a")] {
        let due = due(&**test.store(), at(now), limit).await;
        let ids: String = due.iter().map(|claim| claim.head.id.as_str()).collect();
        assert_eq!(ids, expected, "at {now}, at most {limit}");
    }
}

/// Leases that ran out and waits that are over come before the line, the longest first.
pub async fn leases_and_waits_that_are_over_come_first(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    Life::begin(store, &scope("a", ""), "in-line", "context", 0).await;
    for (id, until) in [("lease-70", 70), ("lease-50", 50), ("lease-90", 90)] {
        Life::begin(store, &scope(id, ""), id, "context", 0).await.start_until(until).await;
    }
    let mut asking = Life::begin(store, &scope("b", ""), "wait-60", "context", 0).await;
    let resume_after = Some(Duration::from_millis(60));
    asking.give(Command::RequireAuth { message: agent_message("who", "who?"), resume_after }).await;
    let ids = async |now, limit| {
        due(&**store, at(now), limit)
            .await
            .into_iter()
            .map(|claim| claim.head.id.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(49, 10).await, ["in-line"]);
    assert_eq!(ids(70, 10).await, ["lease-50", "wait-60", "lease-70", "in-line"]);
    assert_eq!(ids(100, 4).await, ["lease-50", "wait-60", "lease-70", "lease-90"]);
    assert_eq!(ids(100, 2).await, ["lease-50", "wait-60"]);
    asking.at(100).give(Command::Resume).await;
    assert_eq!(ids(69, 2).await, ["lease-50", "in-line"]);
}

/// Asks for due tasks again and again, as workers that become free do, and starts each.
async fn work_off(store: &dyn Store, lives: &mut [Life], slots: usize, now: i64) -> Vec<Claim> {
    let (mut served, mut rotation) = (Vec::new(), Rotation::default());
    loop {
        let due = store.due(at(now), slots, rotation).await.expect("due tasks");
        rotation = due.rotation;
        if due.claims.is_empty() {
            return served;
        }
        assert!(due.claims.len() <= slots);
        for claim in due.claims {
            let life = lives.iter_mut().find(|life| life.head.id == claim.head.id).expect("one of ours");
            life.at(now).start().await;
            served.push(claim);
        }
    }
}

/// How many others are served before the last one for which `is_it` holds.
fn place(served: &[Claim], is_it: impl Fn(&Claim) -> bool) -> usize {
    served.iter().rposition(is_it).expect("it is served")
}

/// A caller with 200 tasks does not keep one with a single task waiting, however many are served at a time.
pub async fn scopes_are_served_in_turns(open: &impl AsyncFn() -> TestStore) {
    for slots in [1, 3, 64] {
        let test = open().await;
        let mut lives = Vec::new();
        for n in 0..200 {
            lives.push(Life::begin(test.store(), &scope("many", ""), &format!("many-{n}"), "context", n).await);
        }
        for (n, one) in ["a-one", "z-one"].into_iter().enumerate() {
            lives.push(Life::begin(test.store(), &scope(one, ""), one, "context", 1000 + n as i64).await);
        }
        let served = work_off(&**test.store(), &mut lives, slots, 2000).await;
        assert_eq!(served.len(), 202);
        for one in ["a-one", "z-one"] {
            assert!(place(&served, |claim| claim.head.id.as_str() == one) < 3, "{one}, {slots} at a time");
        }
        let many: Vec<_> = served.iter().filter(|claim| claim.scope == scope("many", "")).collect();
        assert!(many.is_sorted_by_key(|claim| claim.head.due_at), "the oldest first");
    }
}

/// The same between the contexts of one caller, and each gets its share to the end.
pub async fn contexts_of_a_scope_are_served_in_turns(open: &impl AsyncFn() -> TestStore) {
    for slots in [1, 4, 7] {
        let test = open().await;
        let mut lives = Vec::new();
        let sizes = [("many", 60), ("few", 5), ("some", 20), ("one", 1)];
        let mut millis = 0;
        for (context, size) in sizes {
            for n in 0..size {
                millis += 1;
                let id = format!("{context}-{n}");
                lives.push(Life::begin(test.store(), &scope("", ""), &id, context, millis).await);
            }
        }
        for n in 0..30 {
            lives.push(Life::begin(test.store(), &scope("other", ""), &format!("other-{n}"), "context", n).await);
        }
        let served = work_off(&**test.store(), &mut lives, slots, 1000).await;
        assert_eq!(served.len(), 116);
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        for claim in &served {
            let key = format!("{}/{}", claim.scope.tenant.as_str(), claim.head.context_id.as_str());
            *others.entry(key).or_default() += 1;
        }
        assert_eq!(others.values().copied().collect::<Vec<_>>(), [5, 60, 1, 20, 30]);
        // Of two scopes each has every second place, of four contexts each has every fourth of those.
        assert!(place(&served, |claim| claim.head.context_id.as_str() == "one") < 9, "{slots} at a time");
        assert!(place(&served, |claim| claim.head.context_id.as_str() == "few") < 41, "{slots} at a time");
        assert!(place(&served, |claim| claim.scope == scope("other", "")) < 61, "{slots} at a time");
    }
}

/// Who comes anew is served within one turn of all others, wherever the circle stands, and may be gone when it comes round.
pub async fn a_rotation_goes_on_where_it_ended(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut lives = Vec::new();
    for n in 0..40 {
        for tenant in ["a", "b", "c"] {
            lives.push(Life::begin(test.store(), &scope(tenant, ""), &format!("{tenant}-{n}"), "context", n).await);
        }
    }
    let mut rotation = Rotation::default();
    let mut turns = Vec::new();
    for turn in 0..30 {
        let due = test.store().due(at(1000), 1, rotation).await.expect("due tasks");
        rotation = due.rotation;
        let claim = due.claims.into_iter().next().expect("a task");
        let life = lives.iter_mut().find(|life| life.head.id == claim.head.id).expect("one of ours");
        life.at(1000).start().await;
        turns.push(claim.scope.tenant.as_str().to_owned());
        if turn == 20 {
            let late = Life::begin(test.store(), &scope("bb", ""), "late", "context", 1000).await;
            lives.push(late);
        }
    }
    for three in turns[..21].chunks(3) {
        let mut three = three.to_vec();
        three.sort_unstable();
        assert_eq!(three, ["a", "b", "c"]);
    }
    assert!(turns[21..25].contains(&"bb".to_owned()), "{turns:?}");
}

/// A task that waits for its next attempt is not due before, is in the line and counted, and holds up nobody behind it.
pub async fn a_retry_waits_for_its_time(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let mut failed = Life::begin(store, &Scope::default(), "failed", "context", 0).await;
    failed.start().await;
    let how = AttemptOutcome::Failed { reason: "busy".to_owned() };
    failed.at(10).work(Command::Retry { how, at: at(500) }).await;
    assert_eq!(failed.stored().await, failed.head);
    assert_eq!(store.next_due().await.expect("an answer"), Some(at(500)));
    assert_eq!(due(&**store, at(499), 10).await, []);
    Life::begin(store, &Scope::default(), "behind", "context", 20).await;
    Life::begin(store, &Scope::default(), "beside", "other", 30).await;
    assert_eq!(store.next_due().await.expect("an answer"), Some(at(20)));
    let ids = async |now| {
        let mut ids: Vec<_> = due(&**store, at(now), 10).await.into_iter().map(|claim| claim.head.id).collect();
        ids.sort_unstable();
        ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(499).await, ["behind", "beside"]);
    assert_eq!(ids(500).await, ["behind", "beside", "failed"]);
    assert_eq!(store.backlog().await.expect("an answer"), 3);
}

/// The next due time follows every change: a claim, a renewal, an answer, a delay that was asked for, an end.
pub async fn next_due_is_the_earliest(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let next = async || store.next_due().await.expect("an answer");
    assert_eq!(next().await, None);
    let mut late = Life::begin(store, &Scope::default(), "late", "context", 50).await;
    assert_eq!(next().await, Some(at(50)));
    let mut early = Life::begin(store, &Scope::default(), "early", "context", 20).await;
    assert_eq!(next().await, Some(at(20)));
    early.start_until(40).await;
    assert_eq!(next().await, Some(at(40)));
    store.renew(&[early.lease()], at(30), at(60)).await.expect("a renewal");
    assert_eq!(next().await, Some(at(50)));
    let resume_after = Some(Duration::from_millis(7));
    early.at(30).work(Command::RequireAuth { message: agent_message("who", "who?"), resume_after }).await;
    assert_eq!(next().await, Some(at(37)), "the delay that the agent asked for");
    early.at(41).give(Command::Resume).await;
    assert_eq!(next().await, Some(at(41)));
    early.give(Command::Cancel).await;
    assert_eq!(next().await, Some(at(50)));
    late.start().await;
    assert_eq!(next().await, Some(far()));
    late.work(complete()).await;
    assert_eq!(next().await, None);
}

/// Whoever waits for a worker is counted, at every step of a life, and after the store was opened again.
pub async fn the_backlog_is_counted(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let mut life = Life::begin(store, &Scope::default(), "task", "context", 0).await;
    let mut other = Life::begin(store, &scope("a", "b"), "other", "context", 0).await;
    let count = async || store.backlog().await.expect("an answer");
    assert_eq!(count().await, 2);
    life.start_until(10).await;
    assert_eq!(count().await, 1);
    life.at(10).start().await;
    assert_eq!(count().await, 1, "a lease that ran out is no place in line");
    life.work(Command::RequireInput { message: agent_message("which", "which?") }).await;
    assert_eq!(count().await, 1);
    life.give(reply("second")).await;
    assert_eq!(count().await, 2);
    life.give(Command::Cancel).await;
    assert_eq!(count().await, 1);
    other.start().await;
    assert_eq!(count().await, 0);
    other.work(Command::HandBack).await;
    assert_eq!(count().await, 1);
    if let Some(store) = test.reopened().await {
        assert_eq!(store.backlog().await.expect("an answer"), 1);
    }
}
