use longhaul_lifecycle::{TaskHead, Writer, decide};

use super::TestStore;
use super::commits::everything;
use super::life::{Life, at, commit_of, context_id, creation, message_id, reply, scope, task_id, user_message};
use crate::{Commit, Dedup, Expect, Scope, StoreError};

fn key(scope: &Scope, message: &str, digest: u8, expires: i64) -> Dedup {
    Dedup { scope: scope.clone(), message_id: message_id(message), digest: [digest; 32], expires_at: at(expires) }
}

/// The commit of a new task at a time, made by a message that is to be remembered.
fn remembered(task: &str, millis: i64, dedup: Dedup) -> Commit {
    let head = TaskHead::submitted(task_id(task), context_id("context"), at(millis));
    let message = user_message(dedup.message_id.as_str(), "begin");
    let scope = dedup.scope.clone();
    Commit { dedup: Some(dedup), ..creation(&scope, &head, None, message) }
}

fn assert_duplicate(refused: &StoreError, first: &str, content: u8) {
    assert!(
        matches!(refused, StoreError::Duplicate { task, digest } if task.as_str() == first && *digest == [content; 32]),
        "{refused:?}"
    );
}

/// A message that was accepted is recognized, with the task and the content of the first time, and makes nothing.
pub async fn a_repeated_message_is_recognized(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let scope = Scope::default();
    test.store().commit(remembered("first", 0, key(&scope, "m", 1, 1000))).await.expect("a task");
    for (task, digest) in [("again", 1), ("other-content", 2)] {
        let refused =
            test.store().commit(remembered(task, 5, key(&scope, "m", digest, 2000))).await.expect_err("known");
        assert_duplicate(&refused, "first", 1);
        assert_eq!(test.store().load(&scope, &task_id(task)).await.expect("an answer"), None);
    }
    assert_eq!(test.store().list(everything(&scope)).await.expect("a page").total, 1);
    let accepted = test.store().accepted(&scope, &message_id("m"), at(5)).await.expect("an answer");
    assert_eq!(accepted, Some((task_id("first"), [1; 32])));
    assert_eq!(test.store().accepted(&scope, &message_id("other"), at(5)).await.expect("an answer"), None);
    let mut life = Life::begin(test.store(), &scope, "going-on", "context", 6).await;
    let queued = decide(&life.head, reply("m"), Writer::Caller, at(7)).expect("a message");
    let go_on =
        Commit { dedup: Some(key(&scope, "m", 1, 2000)), ..commit_of(Expect::Version(1), queued.clone(), at(7)) };
    assert_duplicate(&life.commit(go_on).await.expect_err("known"), "first", 1);
    assert_eq!(life.stored().await, life.head);
    assert_eq!(test.store().messages(&life.head.id, &[0, 1]).await.expect("messages").len(), 1);
    let go_on = Commit { dedup: Some(key(&scope, "n", 3, 2000)), ..commit_of(Expect::Version(1), queued, at(7)) };
    life.commit(go_on).await.expect("another message");
    let refused = test.store().commit(remembered("late", 8, key(&scope, "n", 3, 2000))).await.expect_err("known");
    assert_duplicate(&refused, "going-on", 3);
}

/// After its time a message is as new, and is remembered anew; the repetition did not prolong it.
pub async fn a_message_is_forgotten_after_its_time(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let scope = Scope::default();
    test.store().commit(remembered("first", 0, key(&scope, "m", 1, 100))).await.expect("a task");
    test.store().commit(remembered("other", 0, key(&scope, "longer", 9, 500))).await.expect("a task");
    let refused = test.store().commit(remembered("second", 99, key(&scope, "m", 1, 199))).await.expect_err("known");
    assert_duplicate(&refused, "first", 1);
    assert!(test.store().accepted(&scope, &message_id("m"), at(99)).await.expect("an answer").is_some());
    assert_eq!(test.store().accepted(&scope, &message_id("m"), at(101)).await.expect("an answer"), None);
    test.store().commit(remembered("second", 101, key(&scope, "m", 2, 201))).await.expect("forgotten");
    let refused =
        test.store().commit(remembered("third", 150, key(&scope, "m", 1, 250))).await.expect_err("known again");
    assert_duplicate(&refused, "second", 2);
    let refused =
        test.store().commit(remembered("third", 200, key(&scope, "longer", 9, 300))).await.expect_err("known");
    assert_duplicate(&refused, "other", 9);
    test.store().commit(remembered("third", 202, key(&scope, "m", 3, 300))).await.expect("forgotten again");
    assert_eq!(test.store().list(everything(&scope)).await.expect("a page").total, 4);
}

/// The same message id of another tenant or owner is another message; without a key nothing is remembered.
pub async fn messages_are_remembered_by_scope(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let scopes = [scope("", ""), scope("a", ""), scope("", "a"), scope("a", "b"), scope("b", "a")];
    for (n, scope) in scopes.iter().enumerate() {
        test.store()
            .commit(remembered(&format!("task-{n}"), 0, key(scope, "m", 1, 1000)))
            .await
            .expect("its own message");
    }
    for (n, scope) in scopes.iter().enumerate() {
        let refused = test.store().commit(remembered("again", 0, key(scope, "m", 1, 1000))).await.expect_err("known");
        assert_duplicate(&refused, &format!("task-{n}"), 1);
    }
    let without = Commit { dedup: None, ..remembered("without", 1, key(&scopes[0], "m", 1, 1000)) };
    test.store().commit(without).await.expect("nobody asked whether the message is known");
}

/// The message of a commit that was refused is not remembered.
pub async fn a_failed_commit_does_not_remember_its_message(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let scope = Scope::default();
    let life = Life::begin(test.store(), &scope, "task", "context", 0).await;
    let taken =
        test.store().commit(remembered("task", 1, key(&scope, "m", 1, 1000))).await.expect_err("the id is taken");
    assert!(matches!(taken, StoreError::Conflict { .. }), "{taken:?}");
    let queued = decide(&life.head, reply("m"), Writer::Caller, at(1)).expect("a message");
    let stale = Commit { dedup: Some(key(&scope, "m", 1, 1000)), ..commit_of(Expect::Version(7), queued, at(1)) };
    let lost = test.store().commit(stale).await.expect_err("another version");
    assert!(matches!(lost, StoreError::Conflict { .. }), "{lost:?}");
    assert_eq!(test.store().accepted(&scope, &message_id("m"), at(1)).await.expect("an answer"), None);
    test.store().commit(remembered("other", 2, key(&scope, "m", 1, 1000))).await.expect("not remembered");
}
