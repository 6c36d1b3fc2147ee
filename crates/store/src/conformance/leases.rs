use longhaul_lifecycle::{Command, TaskHead, Writer, decide};

use super::TestStore;
use super::life::{Life, agent_message, at, commit_of, commit_of_pieces, complete, piece, progress, reply, scope};
use crate::{Commit, Committed, Expect, Release, Scope, StoreError};

/// Whatever an agent of another epoch writes is refused by the store itself.
pub async fn a_writer_of_another_epoch_is_refused(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    let zombie = life.head.clone();
    life.start().await;
    assert_eq!((life.head.epoch, life.head.attempt), (2, 2));
    for epoch in [zombie.epoch, life.head.epoch + 1, 0] {
        for commit in writes(&life.head, epoch) {
            let refused = test.store().commit(commit).await.expect_err("another epoch");
            assert!(matches!(refused, StoreError::LeaseLost { epoch: told, .. } if told == epoch), "{refused:?}");
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
        for commit in writes(&submitted, 0) {
            let refused = test.store().commit(commit).await.expect_err("no lease yet");
            assert!(matches!(refused, StoreError::LeaseLost { .. }), "{refused:?}");
        }
        life.start().await;
        life.work(end).await;
        for commit in writes(&life.head, life.head.epoch) {
            let refused = test.store().commit(commit).await.expect_err("the lease is over");
            assert!(matches!(refused, StoreError::LeaseLost { .. }), "{refused:?}");
        }
        assert_eq!(life.stored().await, life.head);
    }
}

/// A chunk and a progress report under `epoch`, right in all else.
fn writes(head: &TaskHead, epoch: u64) -> [Commit; 2] {
    let chunk =
        Commit { expect: Expect::Lease { epoch }, ..commit_of_pieces(head, [piece("late", "x", false)], at(3)) };
    let version = head.version;
    let next = TaskHead { version: version + 1, ..head.clone() };
    let decision = Commit { expect: Expect::LeaseAndVersion { epoch, version }, head: Some(next), ..chunk.clone() };
    [chunk, decision]
}

/// Two workers who saw the same task due: the second is told that it was taken.
pub async fn of_two_claims_the_second_is_a_conflict(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    let first = test.store().due(at(1), 10).await.expect("due tasks");
    let second = test.store().due(at(1), 10).await.expect("due tasks");
    assert_eq!((first.len(), &first), (1, &second));
    let claim = |head: &TaskHead| {
        let start = decide(head, Command::Start, Writer::Engine, at(1)).expect("a start");
        commit_of(Expect::Version(head.version), start, at(1))
    };
    let committed = test.store().commit(claim(&first[0].head)).await.expect("the first claim");
    assert_eq!(committed, Committed { version: 2, last_sequence: 2 });
    let refused = test.store().commit(claim(&second[0].head)).await.expect_err("the second claim");
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused:?}");
    assert_eq!(test.store().due(at(1_000_000), 10).await.expect("due tasks"), []);
    assert!(life.stored().await.leased);
}

/// Due tasks come by due time, only those that are due, no more than asked for, with scope and head.
pub async fn the_longest_due_comes_first(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut lives = Vec::new();
    for (id, millis) in [("c", 30), ("a", 10), ("d", 40), ("b", 20)] {
        lives.push(Life::begin(test.store(), &scope(id, "owner"), id, "context", millis).await);
    }
    for (now, limit, expected) in
        [(9, 10, ""), (10, 10, "a"), (35, 10, "abc"), (1000, 10, "abcd"), (1000, 2, "ab"), (35, 0, "")]
    {
        let due = test.store().due(at(now), limit).await.expect("due tasks");
        let ids: String = due.iter().map(|claim| claim.head.id.as_str()).collect();
        assert_eq!(ids, expected, "at {now}, at most {limit}");
        for claim in due {
            let life = lives.iter().find(|life| life.head.id == claim.head.id).expect("one of ours");
            assert_eq!((claim.scope, claim.head), (life.scope.clone(), life.head.clone()));
        }
    }
}

/// The next due time follows every change: a claim, an answer, a delay that was asked for, an end.
pub async fn next_due_is_the_earliest(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let next = async || store.next_due().await.expect("an answer");
    assert_eq!(next().await, None);
    let mut late = Life::begin(store, &Scope::default(), "late", "context", 50).await;
    assert_eq!(next().await, Some(at(50)));
    let mut early = Life::begin(store, &Scope::default(), "early", "context", 20).await;
    assert_eq!(next().await, Some(at(20)));
    early.start().await;
    assert_eq!(next().await, Some(at(50)));
    let resume_after = Some(std::time::Duration::from_millis(7));
    early.at(30).work(Command::RequireAuth { message: agent_message("who", "who?"), resume_after }).await;
    assert_eq!(next().await, Some(at(37)), "the delay that the agent asked for");
    early.at(41).give(Command::Resume).await;
    assert_eq!(next().await, Some(at(41)));
    early.give(Command::Cancel).await;
    assert_eq!(next().await, Some(at(50)));
    late.start().await;
    assert_eq!(next().await, None);
}

/// At the start of the only instance every lease ends; its task is due, and the former worker is refused.
pub async fn released_leases_are_due_and_over(open: &impl AsyncFn() -> TestStore) {
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
    let mut ended = Life::begin(test.store(), &Scope::default(), "ended", "context", 8).await;
    ended.start().await;
    ended.work(complete()).await;
    assert_eq!(test.store().release_leases(Release::Lost, at(100)).await.expect("leases"), 3);
    for life in &mut leased {
        let before = life.head.clone();
        let expected = TaskHead { version: before.version + 1, leased: false, due_at: Some(at(100)), ..before.clone() };
        assert_eq!(life.stored().await, expected);
        let late = life
            .commit(commit_of_pieces(&before, [piece("late", "x", false)], at(101)))
            .await
            .expect_err("the lease is over");
        assert!(matches!(late, StoreError::LeaseLost { .. }), "{late:?}");
        life.head = expected;
    }
    for life in [&submitted, &ended] {
        assert_eq!(life.stored().await, life.head, "no lease, no change");
    }
    let due: Vec<_> =
        test.store().due(at(100), 10).await.expect("due tasks").into_iter().map(|claim| claim.head.id).collect();
    assert_eq!(due[0], submitted.head.id);
    assert_eq!(due.len(), 4);
    assert_eq!(test.store().release_leases(Release::Lost, at(101)).await.expect("leases"), 0, "there are none left");
    leased[0].start().await;
    assert_eq!((leased[0].head.epoch, leased[0].head.attempt), (2, 2));
    leased[0].work(progress("again")).await;
    assert_eq!(test.store().release_leases(Release::HandedBack, at(102)).await.expect("leases"), 1);
    let handed_back = leased[0].stored().await;
    assert_eq!(
        (handed_back.epoch, handed_back.attempt, handed_back.due_at),
        (2, 1, Some(at(102))),
        "the attempt was not spent"
    );
}
