use bytes::Bytes;
use longhaul_lifecycle::{Command, TaskHead};
use longhaul_protocol::{ArtifactId, TaskState};

use super::TestStore;
use super::commits::{NOW, everything};
use super::life::{
    Life, agent_message, artifact_event, at, commit_of_pieces, complete, context_id, creation, due, message_id, piece,
    progress, reply, scope, task_id, user_message,
};
use crate::{Claim, Commit, Dedup, Expect, HeldLease, HistoryLimit, ListQuery, Scope, Store, StoreError};

const WAITING: [TaskState; 4] =
    [TaskState::Submitted, TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired];

fn ids(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.head.id.as_str()).collect()
}

/// Tasks that nothing was heard of come by the age of their status, without those that have ended or are worked on.
pub async fn stale_tasks_are_found_by_age(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    Life::begin(store, &scope("a", ""), "submitted", "context", 30).await;
    let mut leased = Life::begin(store, &scope("b", ""), "leased", "context", 0).await;
    leased.at(10).start_until(1000).await;
    let mut asking = Life::begin(store, &scope("b", ""), "asking", "other", 0).await;
    asking.at(15).start().await;
    asking.at(20).work(super::life::ask("question")).await;
    let mut ended = Life::begin(store, &scope("a", ""), "ended", "context", 0).await;
    ended.start().await;
    ended.work(complete()).await;
    let stale = async |states: &[TaskState], before, now, limit| {
        store.stale(states, at(before), at(now), limit).await.expect("stale tasks")
    };
    let found = stale(&WAITING, 2000, 999, 10).await;
    assert_eq!(ids(&found), ["asking", "submitted"], "the oldest first, none that is worked on");
    assert_eq!((&found[0].scope, &found[0].head), (&asking.scope, &asking.head));
    assert_eq!(ids(&stale(&WAITING, 2000, 1000, 10).await), ["leased", "asking", "submitted"], "the lease ran out");
    assert_eq!(ids(&stale(&WAITING, 2000, 1000, 2).await), ["leased", "asking"]);
    assert_eq!(ids(&stale(&WAITING, 30, 1000, 10).await), ["leased", "asking"], "older than");
    assert_eq!(ids(&stale(&WAITING, 10, 1000, 10).await), [""; 0]);
    assert_eq!(ids(&stale(&[TaskState::InputRequired], 2000, 1000, 10).await), ["asking"]);
    assert_eq!(ids(&stale(&[TaskState::Completed, TaskState::Submitted], 2000, 1000, 10).await), ["submitted"]);
    assert_eq!(ids(&stale(&[], 2000, 1000, 10).await), [""; 0]);
}

/// A life that has left something of every kind.
async fn full_life(store: &std::sync::Arc<dyn Store>, scope: &Scope, id: &str, context: &str, ended: i64) -> Life {
    let mut life = Life::begin(store, scope, id, context, 0).await;
    life.start().await;
    life.work(progress("one")).await;
    life.add(piece("a", "x", false)).await;
    let checkpoint = Some(Bytes::from_static(b"so far"));
    let checkpoint = Commit { checkpoint, ..commit_of_pieces(&life.head, [piece("a", "y", true)], at(1)) };
    life.commit(checkpoint).await.expect("a checkpoint");
    life.at(ended).work(Command::Complete { message: Some(agent_message("closing", "done")) }).await;
    life
}

/// Nothing of the task is found any more, in any way, and nobody can write to it.
pub(super) async fn assert_gone(store: &dyn Store, life: &Life) {
    let (scope, id) = (&life.scope, &life.head.id);
    assert_eq!(store.load(scope, id).await.expect("an answer"), None);
    assert_eq!(store.snapshot(scope, id, NOW).await.expect("an answer"), None);
    assert_eq!(store.events_after(id, 0, 10).await.expect("an answer"), []);
    assert_eq!(store.messages(id, &[0, 1, 2]).await.expect("an answer"), []);
    assert_eq!(store.checkpoint(id).await.expect("an answer"), None);
    assert_eq!(store.marks(std::slice::from_ref(id)).await.expect("an answer"), []);
    let artifact = ArtifactId::new("a").expect("an id");
    assert_eq!(store.artifact(scope, id, &artifact, None).await.expect("an answer"), None);
    assert_eq!(store.artifact_versions(scope, id, &artifact, None, 9).await.expect("an answer"), None);
    let page = store.list(everything(scope)).await.expect("a page");
    assert!(page.tasks.iter().all(|task| task.id != id.as_str()));
    let TaskHead { epoch, version, last_sequence, .. } = life.head;
    let appends = Expect::Lease { epoch, last_sequence };
    for expect in [Expect::Version(version), Expect::LeaseAndVersion { epoch, version }, appends] {
        let head = (!matches!(expect, Expect::Lease { .. })).then(|| life.head.clone());
        let late = Commit { expect, head, ..commit_of_pieces(&life.head, [piece("a", "late", true)], at(9000)) };
        let refused = store.commit(late).await.expect_err("the task is gone");
        assert!(matches!(&refused, StoreError::NotFound { task } if task == id), "{refused:?}");
    }
    let lost = store.renew(&[HeldLease { task_id: id.clone(), epoch }], at(1), at(2)).await.expect("an answer");
    assert_eq!(lost, std::slice::from_ref(id));
}

/// Tasks that ended long enough ago are gone, the oldest first and no more than asked for; all others are as they were.
pub async fn purged_tasks_are_gone(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let mut ended = Vec::new();
    for n in 0..6 {
        let context = if n < 3 { "gone".to_owned() } else { format!("context-{}", n % 2) };
        let scope = scope(if n % 2 == 0 { "even" } else { "odd" }, "");
        ended.push(full_life(store, &scope, &format!("ended-{n}"), &context, 100 + n).await);
    }
    let mut failed = Life::begin(store, &scope("even", ""), "failed", "context-0", 0).await;
    failed.give(Command::Fail { message: None }).await;
    let open_task = Life::begin(store, &scope("even", ""), "open", "context-0", 0).await;
    let purge = async |state, before, limit| store.purge(state, at(before), limit).await.expect("a purge");
    assert_eq!(purge(TaskState::Completed, 100, 10).await, 0, "older than");
    for state in WAITING {
        assert_eq!(purge(state, 9000, 10).await, 0, "{state:?} is never removed");
    }
    assert_eq!(purge(TaskState::Completed, 9000, 0).await, 0);
    assert_eq!(purge(TaskState::Completed, 104, 3).await, 3, "no more than asked for");
    for life in &ended[..3] {
        assert_gone(&**store, life).await;
    }
    for life in ended[3..].iter().chain([&failed, &open_task]) {
        assert_eq!(life.stored().await, life.head, "{}", life.head.id);
        let last = life.model.last_sequence();
        let snapshot = store.snapshot(&life.scope, &life.head.id, NOW).await.expect("an answer").expect("the task");
        assert_eq!(snapshot.task, life.model.task(last, HistoryLimit::All, true));
    }
    assert_eq!(purge(TaskState::Completed, 104, 3).await, 1, "ended-3 was left");
    assert_totals(
        &**store,
        &[("even", None, 3), ("odd", None, 1), ("even", Some("gone"), 0), ("odd", Some("gone"), 0)],
    )
    .await;
    assert_totals(&**store, &[("even", Some("context-0"), 3), ("odd", Some("context-1"), 1)]).await;
    assert_eq!(due(&**store, at(9000), 10).await.len(), 1);
    // A context that is gone can come again.
    let again = Life::begin(store, &scope("even", ""), "again", "gone", 200).await;
    assert_totals(&**store, &[("even", Some("gone"), 1), ("even", None, 4)]).await;
    assert_eq!(purge(TaskState::Completed, 9000, 10).await, 2);
    let Some(store) = test.reopened().await else { return };
    assert_totals(&*store, &[("even", Some("gone"), 1), ("even", None, 3), ("odd", None, 0)]).await;
    assert_eq!(store.load(&again.scope, &again.head.id).await.expect("an answer"), Some(again.head));
    assert_gone(&*store, &ended[5]).await;
}

async fn assert_totals(store: &dyn Store, totals: &[(&str, Option<&str>, u64)]) {
    for (tenant, context, total) in totals {
        let query = ListQuery { context_id: context.map(context_id), ..everything(&scope(tenant, "")) };
        let page = store.list(query).await.expect("a page");
        assert_eq!((page.total, page.tasks.len() as u64), (*total, *total), "{tenant:?} {context:?}");
    }
}

/// A long log goes with its task, however many steps it takes, and an id that was used may be used again.
pub async fn a_long_log_is_removed(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    for _ in 0..8 {
        let events = (0..500).map(|_| artifact_event(&life.head, piece("a", "more and more", false))).collect();
        let commit = Commit { events, ..commit_of_pieces(&life.head, [], at(1)) };
        life.head.last_sequence = test.store().commit(commit).await.expect("chunks").last_sequence;
    }
    for n in 0..20 {
        life.give(reply(&format!("message-{n}"))).await;
    }
    life.work(complete()).await;
    let other = full_life(test.store(), &Scope::default(), "other", "context", 500).await;
    assert_eq!(test.store().purge(TaskState::Completed, at(100), 10).await.expect("a purge"), 1);
    assert_gone(&**test.store(), &life).await;
    let mut again = Life::begin(test.store(), &Scope::default(), "task", "context", 200).await;
    assert_eq!(test.store().events_after(&again.head.id, 0, 10).await.expect("events").len(), 1);
    again.start().await;
    again.work(complete()).await;
    assert_eq!(other.stored().await, other.head);
    while test.store().give_back(1 << 20).await.expect("space") > 0 {}
    assert_eq!(test.store().give_back(1 << 20).await.expect("space"), 0, "there is nothing left to give");
    assert_eq!(test.store().list(everything(&Scope::default())).await.expect("a page").total, 2);
    assert_eq!(other.stored().await, other.head);
}

/// A message whose task is gone is as new: its repetition makes a task, and nobody is told of one that is not there.
pub async fn messages_of_purged_tasks_are_forgotten(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let (store, scope) = (test.store(), Scope::default());
    let remembered = |task: &str, millis| {
        let head = TaskHead::submitted(task_id(task), context_id("context"), at(millis));
        let dedup = Dedup { scope: scope.clone(), message_id: message_id("m"), digest: [1; 32], expires_at: at(1000) };
        Commit { dedup: Some(dedup), ..creation(&scope, &head, None, user_message("m", "begin")) }
    };
    store.commit(remembered("first", 0)).await.expect("a task");
    let head = store.load(&scope, &task_id("first")).await.expect("an answer").expect("the task");
    let mut life = Life::adopt(store, &scope, head, None, &user_message("m", "begin"));
    life.give(Command::Cancel).await;
    assert_eq!(store.purge(TaskState::Canceled, at(10), 10).await.expect("a purge"), 1);
    assert_eq!(store.accepted(&scope, &message_id("m"), at(20)).await.expect("an answer"), None);
    store.commit(remembered("second", 20)).await.expect("the message is as new");
    let accepted = store.accepted(&scope, &message_id("m"), at(20)).await.expect("an answer");
    assert_eq!(accepted, Some((task_id("second"), [1; 32])));
    let refused = store.commit(remembered("third", 30)).await.expect_err("known again");
    assert!(matches!(&refused, StoreError::Duplicate { task, .. } if *task == task_id("second")), "{refused:?}");
}
