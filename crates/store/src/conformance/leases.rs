use longhaul_lifecycle::{Command, TaskHead, WorkerId, Writer, decide};

use super::TestStore;
use super::life::{
    Life, agent_message, at, commit_of, commit_of_pieces, complete, due, piece, progress, reply, scope, start, task_id,
};
use crate::{Commit, Committed, Expect, HeldLease, Scope, Store, StoreError};

/// Whatever an agent of another epoch writes is refused by the store itself.
pub async fn a_writer_of_another_epoch_is_refused(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start_until(2).await;
    let zombie = life.head.clone();
    life.at(2).start().await;
    assert_eq!((life.head.epoch, life.head.attempt), (2, 2));
    for epoch in [zombie.epoch, life.head.epoch + 1, 0] {
        for commit in writes(&life.head, epoch, 3) {
            assert_lost(&test.store().commit(commit).await.expect_err("another epoch"), epoch);
        }
    }
    assert_eq!(life.stored().await, life.head);
    life.add(piece("a", "x", false)).await;
    life.work(complete()).await;
}

/// When a lease has ended, its epoch opens nothing any more.
pub async fn a_writer_without_a_lease_is_refused(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let ends =
        [complete(), super::life::ask("question"), Command::Fail { message: Some(agent_message("why", "broken")) }];
    for (n, end) in ends.into_iter().enumerate() {
        let mut life = Life::begin(test.store(), &Scope::default(), &format!("task-{n}"), "context", 0).await;
        let submitted = life.head.clone();
        for commit in writes(&submitted, 0, 3) {
            assert_lost(&test.store().commit(commit).await.expect_err("no lease yet"), 0);
        }
        life.start().await;
        life.work(end).await;
        for commit in writes(&life.head, life.head.epoch, 3) {
            assert_lost(&test.store().commit(commit).await.expect_err("the lease is over"), life.head.epoch);
        }
        assert_eq!(life.stored().await, life.head);
    }
}

/// From the end of its lease on a worker writes nothing, even if nobody has taken the task, and others may write as ever.
pub async fn a_writer_whose_lease_ran_out_is_refused(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start_until(50).await;
    life.at(49).add(piece("a", "x", false)).await;
    for late in [50, 51, 1000] {
        for commit in writes(&life.head, life.head.epoch, late) {
            assert_lost(&test.store().commit(commit).await.expect_err("the lease ran out"), life.head.epoch);
        }
    }
    assert_eq!(life.stored().await, life.head);
    life.at(60).give(reply("second")).await;
    assert_eq!(life.stored().await, life.head);
    // Read back, not remembered.
    let Some(store) = test.reopened().await else { return };
    for commit in writes(&life.head, life.head.epoch, 50) {
        assert_lost(&store.commit(commit).await.expect_err("the lease ran out"), life.head.epoch);
    }
    for commit in writes(&life.head, life.head.epoch, 49) {
        store.commit(commit).await.expect("the lease is alive");
    }
}

/// A chunk and a progress report under `epoch`, right in all else.
fn writes(head: &TaskHead, epoch: u64, millis: i64) -> [Commit; 2] {
    let piece = piece("late", "x", false);
    let chunk = Commit {
        expect: Expect::Lease { epoch, last_sequence: head.last_sequence },
        ..commit_of_pieces(head, [piece], at(millis))
    };
    let version = head.version;
    let next = TaskHead { version: version + 1, ..head.clone() };
    let decision = Commit { expect: Expect::LeaseAndVersion { epoch, version }, head: Some(next), ..chunk.clone() };
    [chunk, decision]
}

fn assert_lost(refused: &StoreError, held: u64) {
    assert!(matches!(refused, StoreError::LeaseLost { epoch, .. } if *epoch == held), "{refused:?}");
}

/// Two workers who saw the same task due: the second is told that it was taken.
pub async fn of_two_claims_the_second_is_a_conflict(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    let first = due(&**test.store(), at(1), 10).await;
    let second = due(&**test.store(), at(1), 10).await;
    assert_eq!((first.len(), &first), (1, &second));
    let claim = |head: &TaskHead| {
        let start = decide(head, start(), Writer::Engine, at(1)).expect("a start");
        commit_of(Expect::Version(head.version), start, at(1))
    };
    let committed = test.store().commit(claim(&first[0].head)).await.expect("the first claim");
    assert_eq!(committed, Committed { version: 2, last_sequence: 2, has_pushes: false });
    let refused = test.store().commit(claim(&second[0].head)).await.expect_err("the second claim");
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused:?}");
    assert_eq!(due(&**test.store(), at(1_000_000), 10).await, []);
    assert!(life.stored().await.leased);
}

/// Renewed in time a lease goes on, without a change of version or log; its task is due when the new time is over.
pub async fn renewed_leases_go_on(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let mut lives = Vec::new();
    for n in 0..3 {
        let mut life = Life::begin(store, &scope(&n.to_string(), ""), &format!("task-{n}"), "context", 0).await;
        life.start_until(50).await;
        lives.push(life);
    }
    let two: Vec<_> = lives.iter().take(2).map(Life::lease).collect();
    assert_eq!(store.renew(&two, at(40), at(100)).await.expect("renewals"), []);
    for life in &lives[..2] {
        assert_eq!(life.stored().await, TaskHead { due_at: Some(at(100)), ..life.head.clone() });
    }
    assert_eq!(store.next_due().await.expect("an answer"), Some(at(50)));
    let ids = async |now| due(&**store, at(now), 10).await.into_iter().map(|claim| claim.head.id).collect::<Vec<_>>();
    assert_eq!(ids(99).await, [task_id("task-2")]);
    assert_eq!(ids(100).await.len(), 3);
    // The worker decided on a head from before the renewal: that is no conflict, and the lease stays renewed.
    lives[0].at(45).work(progress("one")).await;
    lives[0].at(46).give(reply("second")).await;
    assert_eq!(lives[0].stored().await, TaskHead { due_at: Some(at(100)), ..lives[0].head.clone() });
    lives[0].at(99).add(piece("a", "x", false)).await;
    for late in writes(&lives[0].head, 1, 100) {
        assert_lost(&store.commit(late).await.expect_err("the lease ran out"), 1);
    }
    assert_eq!(store.renew(&two[1..], at(99), at(200)).await.expect("a renewal"), []);
    assert_eq!(store.renew(&[], at(99), at(200)).await.expect("an answer"), []);
    lives[1].head.due_at = Some(at(200));
    lives[1].at(150).work(complete()).await;
}

/// A lease that is over is not renewed: run out, taken over, ended, of a task that never was. The answer says which.
pub async fn leases_that_are_over_are_not_renewed(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let mut lives = Vec::new();
    for name in ["ran-out", "taken", "ended", "asked", "alive"] {
        let mut life = Life::begin(store, &Scope::default(), name, name, 0).await;
        life.start_until(if name == "ran-out" || name == "taken" { 50 } else { 100 }).await;
        lives.push(life);
    }
    let leases: Vec<_> = lives
        .iter()
        .map(Life::lease)
        .chain([HeldLease { task_id: task_id("nobody"), epoch: 1 }, HeldLease { epoch: 2, ..lives[4].lease() }])
        .collect();
    lives[1].at(50).start_until(100).await;
    lives[2].work(complete()).await;
    lives[3].work(super::life::ask("question")).await;
    let lost = store.renew(&leases, at(50), at(200)).await.expect("an answer");
    assert_eq!(lost, ["ran-out", "taken", "ended", "asked", "nobody", "alive"].map(task_id));
    for life in &lives[..4] {
        assert_eq!(life.stored().await, life.head, "{}", life.head.id);
    }
    assert_eq!(lives[4].stored().await.due_at, Some(at(200)), "only under the epoch that it has");
}

/// Who takes over a lease that it saw run out is told when the lease was renewed since: it is alive.
pub async fn a_renewed_lease_is_not_taken_over(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start_until(50).await;
    let seen = due(&**test.store(), at(50), 10).await;
    assert_eq!(test.store().renew(&[life.lease()], at(49), at(100)).await.expect("a renewal"), []);
    let takes = decide(&seen[0].head, start(), Writer::Engine, at(50)).expect("a start");
    let takes = commit_of(Expect::Version(seen[0].head.version), takes, at(50));
    let refused = test.store().commit(takes.clone()).await.expect_err("the lease is alive");
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused:?}");
    // Nor is it given up by whoever acts because nobody works on the task; a cancel may end it.
    let fail = |now| decide(&seen[0].head, Command::Fail { message: None }, Writer::Engine, now).expect("a failure");
    let gives_up = commit_of(Expect::Unheld(seen[0].head.version), fail(at(50)), at(50));
    let refused = test.store().commit(gives_up).await.expect_err("the lease is alive");
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused:?}");
    life.head.due_at = Some(at(100));
    life.at(60).work(progress("one")).await;
    assert_eq!(test.store().renew(&[life.lease()], at(99), at(150)).await.expect("a renewal"), []);
    life.head.due_at = Some(at(150));
    life.at(150).start().await;
    assert_eq!((life.head.epoch, life.head.attempt), (2, 2));
    assert_eq!(
        test.store().renew(&[HeldLease { epoch: 1, ..life.lease() }], at(150), at(200)).await.expect("it"),
        [task_id("task")]
    );
}

/// At the start of the only instance every lease runs out; its task is due, and the former worker is refused.
pub async fn expired_leases_are_due_and_over(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut leased = Vec::new();
    for n in 0..3 {
        let mut life =
            Life::begin(test.store(), &scope(&n.to_string(), ""), &format!("leased-{n}"), "context", n).await;
        life.start().await;
        leased.push(life);
    }
    leased[1].give(reply("waiting")).await;
    let submitted = Life::begin(test.store(), &Scope::default(), "submitted", "context", 7).await;
    let mut asking = Life::begin(test.store(), &Scope::default(), "asking", "context", 7).await;
    let resume_after = Some(std::time::Duration::from_secs(1));
    asking.give(Command::RequireAuth { message: agent_message("who", "who?"), resume_after }).await;
    let mut over = Life::begin(test.store(), &Scope::default(), "over", "context", 7).await;
    over.start_until(90).await;
    let mut ended = Life::begin(test.store(), &Scope::default(), "ended", "context", 8).await;
    ended.start().await;
    ended.work(complete()).await;
    assert_eq!(test.store().expire_leases(at(100)).await.expect("leases"), 3);
    for life in &mut leased {
        let before = life.head.clone();
        let expected = TaskHead { version: before.version + 1, due_at: Some(at(100)), ..before.clone() };
        assert_eq!(life.stored().await, expected);
        let late = life.commit(commit_of_pieces(&before, [piece("late", "x", false)], at(101))).await;
        assert_lost(&late.expect_err("the lease is over"), before.epoch);
        life.head = expected;
    }
    for life in [&submitted, &asking, &over, &ended] {
        assert_eq!(life.stored().await, life.head, "no lease that is alive, no change");
    }
    let ids: Vec<_> = due(&**test.store(), at(100), 10).await.into_iter().map(|claim| claim.head.id).collect();
    assert_eq!((ids.len(), &ids[0], &ids[4]), (5, &over.head.id, &submitted.head.id));
    assert_eq!(test.store().expire_leases(at(101)).await.expect("leases"), 0, "there are none left");
    leased[0].at(101).start().await;
    assert_eq!((leased[0].head.epoch, leased[0].head.attempt, leased[0].head.failures.len()), (2, 2, 1));
    leased[0].work(progress("again")).await;
}

/// The worker of a lease is kept while the lease is, renewed or not, and is nobody once it has ended.
pub async fn the_worker_of_a_lease_is_kept(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let mut life = Life::begin(store, &Scope::default(), "task", "context", 0).await;
    let stored = async |store: &dyn Store| {
        let head = store.load(&Scope::default(), &task_id("task")).await.expect("an answer").expect("the task");
        head.worker
    };
    assert!(stored(&**store).await.is_nobody());
    let starts = |worker: &str, until| Command::Start { lease_until: at(until), worker: WorkerId::new(worker) };
    life.give(starts("żółć-1/abc", 50)).await;
    assert_eq!(stored(&**store).await, WorkerId::new("żółć-1/abc"));
    life.add(piece("a", "x", false)).await;
    assert_eq!(store.renew(&[life.lease()], at(1), at(100)).await.expect("a renewal"), []);
    life.head.due_at = Some(at(100));
    life.work(progress("one")).await;
    assert_eq!(life.stored().await, life.head);
    assert_eq!(life.head.worker, WorkerId::new("żółć-1/abc"));
    let over = due(&**store, at(100), 1).await;
    assert_eq!(over[0].head, life.head, "a lease that ran out says whose it was");
    life.at(100).give(starts("two", 1000)).await;
    assert_eq!(stored(&**store).await, WorkerId::new("two"));
    life.work(Command::HandBack).await;
    assert!(stored(&**store).await.is_nobody());
    life.give(starts("three", 1000)).await;
    life.work(complete()).await;
    assert!(stored(&**store).await.is_nobody());
    let Some(store) = test.reopened().await else { return };
    assert!(stored(&*store).await.is_nobody());
}

/// A turn that is handed back is due at once, and its attempt was not spent.
pub async fn a_turn_that_is_handed_back_is_due_at_once(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    assert_eq!(test.store().backlog().await.expect("an answer"), 0);
    life.at(5).work(Command::HandBack).await;
    let due = due(&**test.store(), at(5), 10).await;
    assert_eq!((due.len(), &due[0].head), (1, &life.head));
    assert_eq!((life.head.epoch, life.head.attempt), (1, 0));
    assert_eq!(test.store().backlog().await.expect("an answer"), 1);
}
