use std::collections::BTreeSet;
use std::sync::Arc;

use longhaul_lifecycle::{TaskHead, Writer, decide};
use tokio::task::JoinSet;

use super::TestStore;
use super::commits::{NOW, everything};
use super::life::{
    Life, at, commit_of, commit_of_pieces, context_id, creation, due, piece, reply, start, task_id, user_message,
};
use crate::{Expect, HistoryLimit, Scope, Store, StoreError};

const WRITERS: usize = 32;
/// How often each of them appends.
const CHUNKS: usize = 4;

/// Of many writers who decided on the same version, one commits and all others are told.
pub async fn of_writers_on_one_version_one_wins(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, head) = (Arc::clone(test.store()), life.head.clone());
        writers.spawn(async move {
            let start = decide(&head, start(), Writer::Engine, at(1)).expect("a start");
            store.commit(commit_of(Expect::Version(head.version), start, at(1))).await
        });
    }
    let mut won = 0;
    for answer in writers.join_all().await {
        match answer {
            Ok(committed) => {
                won += 1;
                assert_eq!((committed.version, committed.last_sequence), (2, 2));
            }
            Err(refused) => assert!(matches!(refused, StoreError::Conflict { .. }), "{refused:?}"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(life.stored().await.epoch, 1);
    assert_eq!(test.store().events_after(&life.head.id, 0, 100).await.expect("events").len(), 2);
}

/// Writers who load and decide again after a lost race all get through, and nothing is lost or doubled.
pub async fn writers_that_decide_again_all_get_through(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let (store, id) = (Arc::clone(test.store()), life.head.id.clone());
        writers.spawn(async move { queue_until_done(&*store, &id, &format!("message-{n}")).await });
    }
    writers.join_all().await;
    let head = life.stored().await;
    let waiting: Vec<u64> = (1..=WRITERS as u64).collect();
    assert_eq!((head.version, head.messages, head.waiting), (1 + WRITERS as u64, 1 + WRITERS as u64, waiting));
    let snapshot = test.store().snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
    let ids: BTreeSet<_> = snapshot.task.history.iter().map(|message| message.message_id.clone()).collect();
    assert_eq!((snapshot.task.history.len(), ids.len()), (1 + WRITERS, 1 + WRITERS));
}

async fn queue_until_done(store: &dyn Store, id: &longhaul_protocol::TaskId, message: &str) {
    // Each round of lost races is one writer further, so there are at most as many rounds as writers.
    for _ in 0..=WRITERS {
        let head = store.load(&Scope::default(), id).await.expect("an answer").expect("the task");
        let queued = decide(&head, reply(message), Writer::Caller, at(1)).expect("a message");
        match store.commit(commit_of(Expect::Version(head.version), queued, at(1))).await {
            Ok(_) => return,
            Err(StoreError::Conflict { .. }) => {}
            Err(refused) => panic!("{refused:?}"),
        }
    }
    panic!("more lost races than writers");
}

/// Whoever appends behind what it last saw gets through: each sequence is given once, and none is left out.
pub async fn chunks_of_many_writers_have_no_gap(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let (store, head) = (Arc::clone(test.store()), life.head.clone());
        writers.spawn(async move {
            let mut sequences = Vec::new();
            for _ in 0..CHUNKS {
                sequences.push(append_until_done(&*store, &head.id, &format!("artifact-{n}")).await);
            }
            sequences
        });
    }
    let given: BTreeSet<u64> = writers.join_all().await.into_iter().flatten().collect();
    let last = 2 + 2 * (CHUNKS * WRITERS) as u64;
    assert_eq!(given, (4..=last).step_by(2).collect(), "each commit has two sequences of its own");
    let events = test.store().events_after(&life.head.id, 0, 1000).await.expect("events");
    assert_eq!(events.iter().map(|event| event.sequence).collect::<Vec<_>>(), (1..=last).collect::<Vec<_>>());
    let snapshot = test.store().snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
    assert_eq!(snapshot.task.artifacts.len(), WRITERS);
    assert!(snapshot.task.artifacts.iter().all(|artifact| artifact.parts.len() == 2));
}

/// Appends two pieces in one commit, behind the end of the log. Answers where it ends then.
async fn append_until_done(store: &dyn Store, id: &longhaul_protocol::TaskId, artifact: &str) -> u64 {
    // Each lost race is one commit of another writer.
    for _ in 0..=CHUNKS * WRITERS {
        let head = store.load(&Scope::default(), id).await.expect("an answer").expect("the task");
        let two = [piece(artifact, "x", false), piece(artifact, "y", true)];
        match store.commit(commit_of_pieces(&head, two, at(1))).await {
            Ok(committed) => return committed.last_sequence,
            Err(StoreError::Conflict { .. }) => {}
            Err(refused) => panic!("{refused:?}"),
        }
    }
    panic!("more lost races than commits");
}

/// Tasks that are made at the same time are all there, and are counted.
pub async fn tasks_made_at_once_are_all_there(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut writers = JoinSet::new();
    for n in 0..4 * WRITERS {
        let store = Arc::clone(test.store());
        writers.spawn(async move {
            let head =
                TaskHead::submitted(task_id(&format!("task-{n}")), context_id(&format!("context-{}", n % 3)), at(0));
            store.commit(creation(&Scope::default(), &head, None, user_message("m", "begin"))).await.expect("a task");
        });
    }
    writers.join_all().await;
    let page = test.store().list(everything(&Scope::default())).await.expect("a page");
    assert_eq!((page.total, page.tasks.len(), page.next.is_some()), (4 * WRITERS as u64, 100, true));
    let due = due(&**test.store(), at(0), 1000).await;
    assert_eq!(test.store().backlog().await.expect("an answer"), 4 * WRITERS as u64);
    assert_eq!(due.iter().map(|claim| claim.head.id.clone()).collect::<BTreeSet<_>>().len(), 4 * WRITERS);
    let query = crate::SnapshotQuery { history: HistoryLimit::Latest(1), ..NOW };
    for claim in due.iter().take(10) {
        let snapshot =
            test.store().snapshot(&claim.scope, &claim.head.id, query).await.expect("a snapshot").expect("the task");
        assert_eq!(snapshot.task.history.len(), 1);
    }
}
