use std::sync::Arc;

use longhaul_lifecycle::TaskHead;
use longhaul_protocol::{ArtifactId, TaskState, wire};

use super::TestStore;
use super::commits::{NOW, everything};
use super::life::{Life, artifact_event, at, commit_of_pieces, complete, far, piece, progress, reply, scope};
use super::sweeps::assert_gone;
use super::views::scripted_life;
use crate::{
    ArtifactVersion, Commit, HistoryLimit, ListPage, ListQuery, Scope, SnapshotQuery, Store, StoredEvent,
    StoredMessage, TaskMark,
};

/// Everything that a task shows without its log.
#[derive(Debug, PartialEq)]
struct Shown {
    tasks: Vec<wire::Task>,
    head: TaskHead,
    versions: Vec<Option<Vec<ArtifactVersion>>>,
    artifacts: Vec<Option<(u64, wire::Artifact)>>,
    messages: Vec<StoredMessage>,
    marks: Vec<TaskMark>,
    page: ListPage,
}

async fn shown(store: &dyn Store, life: &Life) -> Shown {
    let (scope, id) = (&life.scope, &life.head.id);
    let mut tasks = Vec::new();
    for at in [None, Some(life.head.last_sequence)] {
        for history in [HistoryLimit::All, HistoryLimit::Latest(2), HistoryLimit::Latest(0)] {
            for artifacts in [true, false] {
                let query = SnapshotQuery { at, history, artifacts };
                let snapshot = store.snapshot(scope, id, query).await.expect("a snapshot").expect("the task");
                assert_eq!((snapshot.sequence, &snapshot.head), (life.head.last_sequence, &life.head));
                tasks.push(snapshot.task);
            }
        }
    }
    let (mut versions, mut artifacts) = (Vec::new(), Vec::new());
    for artifact in ["report", "log", "end", "a", "nothing"].map(|id| ArtifactId::new(id).expect("an id")) {
        for (before, limit) in [(None, 9), (None, 1), (Some(2), 9)] {
            versions.push(store.artifact_versions(scope, id, &artifact, before, limit).await.expect("versions"));
        }
        for version in [None, Some(1), Some(2), Some(3)] {
            artifacts.push(store.artifact(scope, id, &artifact, version).await.expect("an artifact"));
        }
    }
    let ordinals: Vec<u64> = (0..20).collect();
    let query = ListQuery { history: HistoryLimit::All, artifacts: true, ..everything(scope) };
    Shown {
        tasks,
        head: life.stored().await,
        versions,
        artifacts,
        messages: store.messages(id, &ordinals).await.expect("messages"),
        marks: store.marks(std::slice::from_ref(id)).await.expect("marks"),
        page: store.list(query).await.expect("a page"),
    }
}

/// A task with so many events, from its creation to its end, of which all but three are chunks of one artifact.
async fn chunked_life(store: &Arc<dyn Store>, scope: &Scope, id: &str, events: u64, ended: i64) -> Life {
    let mut life = Life::begin(store, scope, id, "context", 0).await;
    life.start().await;
    for n in 3..events {
        life.at(1).add(piece("a", &n.to_string(), n > 3)).await;
    }
    life.at(ended).work(complete()).await;
    assert_eq!(life.head.last_sequence, events);
    life
}

async fn log(store: &dyn Store, life: &Life) -> Vec<StoredEvent> {
    store.events_after(&life.head.id, 0, 100_000).await.expect("events")
}

async fn compact(store: &dyn Store, before: i64, limit: usize) -> u64 {
    store.compact(at(before), limit).await.expect("a compaction")
}

/// Artifacts in their order, each version, the status, the history and the head are the same before and after.
pub async fn a_merged_task_shows_what_it_showed(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let lives = [
        scripted_life(&test).await,
        chunked_life(test.store(), &scope("tenant", "owner"), "chunked", 30, 5).await,
        interleaved_life(test.store()).await,
    ];
    let mut before = Vec::new();
    for life in &lives {
        assert_eq!(log(&**test.store(), life).await.len() as u64, life.head.last_sequence);
        before.push(shown(&**test.store(), life).await);
    }
    assert_eq!(compact(&**test.store(), 1000, 10).await, 3);
    let assert_same = async |store: &dyn Store| {
        for (life, before) in lives.iter().zip(&before) {
            assert_eq!(log(store, life).await, [], "it was merged");
            let whole = life.model.task(life.head.last_sequence, HistoryLimit::All, true);
            let snapshot = store.snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot");
            assert_eq!(snapshot.expect("the task").task, whole);
            assert_eq!(shown(store, life).await, *before, "{}", life.head.id);
        }
    };
    assert_same(&**test.store()).await;
    assert_eq!(compact(&**test.store(), 1000, 10).await, 0, "there are none left");
    assert_same(&**test.store()).await;
}

/// Artifacts that grow in turns: each goes on when others have come.
async fn interleaved_life(store: &Arc<dyn Store>) -> Life {
    let mut life = Life::begin(store, &scope("tenant", "owner"), "interleaved", "context", 0).await;
    life.start().await;
    let mut known = Vec::new();
    for (n, name) in ["a", "log", "a", "report", "log", "end", "a", "report", "a"].into_iter().enumerate() {
        // The last one begins a version anew.
        let append = known.contains(&name) && n < 8;
        life.at(n as i64).add(piece(name, &n.to_string(), append)).await;
        known.push(name);
    }
    life.give(reply("waiting")).await;
    life.at(20).work(complete()).await;
    life
}

/// A reader that is behind is told nothing of a merged log, and a moment of the past is as if it never was; the end is.
pub async fn moments_of_a_merged_task_are_gone(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = scripted_life(&test).await;
    let last = life.head.last_sequence;
    assert_eq!(compact(&**test.store(), 1000, 1).await, 1);
    let assert_gone = async |store: &dyn Store| {
        for moment in 0..=last + 1 {
            let query = SnapshotQuery { at: Some(moment), ..NOW };
            let snapshot = store.snapshot(&life.scope, &life.head.id, query).await.expect("an answer");
            assert_eq!(snapshot.is_some(), moment == last, "at {moment}");
            let events = store.events_after(&life.head.id, moment, 100).await.expect("an answer");
            assert_eq!(events, [], "after {moment}");
        }
    };
    assert_gone(&**test.store()).await;
    if let Some(store) = test.reopened().await {
        assert_gone(&*store).await;
    }
}

/// Tasks with few events, tasks that go on or wait, and tasks that ended a short time ago keep their logs.
pub async fn only_long_logs_of_tasks_that_ended_long_ago_are_merged(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let few = chunked_life(store, &Scope::default(), "few", 7, 5).await;
    let young = chunked_life(store, &Scope::default(), "young", 20, 500).await;
    let mut working = Life::begin(store, &scope("a", ""), "working", "context", 0).await;
    working.start().await;
    let mut asking = Life::begin(store, &scope("b", ""), "asking", "context", 0).await;
    asking.start().await;
    for n in 0..20 {
        working.add(piece("a", "x", n > 0)).await;
        asking.add(piece("a", "x", n > 0)).await;
    }
    asking.work(super::life::ask("which")).await;
    let mut logs = Vec::new();
    for life in [&few, &young, &working, &asking] {
        logs.push(log(&**store, life).await);
    }
    assert_eq!(compact(&**store, 500, 10).await, 0, "older than");
    for (life, before) in [&few, &young, &working, &asking].into_iter().zip(&logs) {
        assert_eq!(log(&**store, life).await, *before, "{}", life.head.id);
    }
    assert_eq!(compact(&**store, 501, 10).await, 1);
    assert_eq!(log(&**store, &young).await, []);
    working.at(600).add(piece("a", "on", true)).await;
    working.work(complete()).await;
    assert_eq!(compact(&**store, 601, 10).await, 1, "it has ended now");
    assert_eq!(log(&**store, &working).await, []);
    for (life, before) in [(&few, &logs[0]), (&asking, &logs[3])] {
        assert_eq!(store.compact(far(), 10).await.expect("a compaction"), 0);
        assert_eq!(log(&**store, life).await, *before, "{}", life.head.id);
    }
}

/// No more than asked for, the oldest first over all scopes, and each once.
pub async fn logs_are_merged_once_the_oldest_first(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut lives = Vec::new();
    for (n, ended) in [40, 10, 30, 50, 20].into_iter().enumerate() {
        lives.push(chunked_life(test.store(), &scope(&n.to_string(), ""), &format!("task-{ended}"), 8, ended).await);
    }
    lives.sort_by_key(|life| life.head.status_timestamp);
    let merged = async |store: &dyn Store| {
        let mut merged = Vec::new();
        for life in &lives {
            merged.push(log(store, life).await.is_empty());
        }
        merged
    };
    assert_eq!(compact(&**test.store(), 1000, 0).await, 0);
    assert_eq!(compact(&**test.store(), 1000, 2).await, 2);
    assert_eq!(merged(&**test.store()).await, [true, true, false, false, false]);
    assert_eq!(compact(&**test.store(), 40, 2).await, 1);
    assert_eq!(merged(&**test.store()).await, [true, true, true, false, false]);
    let reopened = test.reopened().await;
    let store = reopened.as_ref().unwrap_or_else(|| test.store());
    assert_eq!(merged(&**store).await, [true, true, true, false, false]);
    assert_eq!(compact(&**store, 1000, 10).await, 2);
    assert_eq!(compact(&**store, 1000, 10).await, 0);
    assert_eq!(merged(&**store).await, [true; 5]);
}

/// A log in which nothing can be merged is looked at once, and stays readable from its beginning.
pub async fn a_log_without_anything_to_merge_stays_whole(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    for n in 0..5 {
        life.work(progress(&format!("progress-{n}"))).await;
        life.add(piece("a", &n.to_string(), false)).await;
    }
    life.at(5).work(complete()).await;
    let before = log(&**test.store(), &life).await;
    assert_eq!(before.len(), 13);
    assert_eq!(compact(&**test.store(), 1000, 10).await, 1);
    assert_eq!(compact(&**test.store(), 1000, 10).await, 0, "not again");
    assert_eq!(log(&**test.store(), &life).await, before);
    for moment in 1..=13 {
        let query = SnapshotQuery { at: Some(moment), ..NOW };
        let snapshot = test.store().snapshot(&life.scope, &life.head.id, query).await.expect("a snapshot");
        assert_eq!(snapshot.expect("the task").task, life.model.task(moment, HistoryLimit::All, true), "at {moment}");
    }
}

/// A log of 10,000 chunks, with a report now and then, is merged whole.
pub async fn a_long_log_is_merged(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    for page in 0..20 {
        let chunk = |n: usize| {
            let place = page * 500 + n;
            artifact_event(&life.head, piece(["a", "log", "report"][place % 3], &place.to_string(), place > 2))
        };
        let commit = Commit { events: (0..500).map(chunk).collect(), ..commit_of_pieces(&life.head, [], at(1)) };
        life.commit(commit).await.expect("chunks");
        life.work(progress(&format!("page-{page}"))).await;
    }
    life.at(5).work(complete()).await;
    let before = shown(&**test.store(), &life).await;
    assert_eq!(before.tasks[0].artifacts.iter().map(|artifact| artifact.parts.len()).sum::<usize>(), 10_000);
    assert_eq!(compact(&**test.store(), 1000, 10).await, 1);
    assert_eq!(log(&**test.store(), &life).await, []);
    assert_eq!(shown(&**test.store(), &life).await, before);
    assert_eq!(test.store().purge(TaskState::Completed, at(1000), 10).await.expect("a purge"), 1);
    assert_gone(&**test.store(), &life).await;
}

/// Tasks are removed whether they were merged, are to be, or neither.
pub async fn merged_tasks_are_purged(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let store = test.store();
    let merged = chunked_life(store, &Scope::default(), "merged", 20, 10).await;
    assert_eq!(compact(&**store, 1000, 10).await, 1);
    let due = chunked_life(store, &Scope::default(), "due", 20, 20).await;
    let short = chunked_life(store, &Scope::default(), "short", 4, 30).await;
    let kept = chunked_life(store, &Scope::default(), "kept", 20, 40).await;
    assert_eq!(store.purge(TaskState::Completed, at(40), 10).await.expect("a purge"), 3);
    for life in [&merged, &due, &short] {
        assert_gone(&**store, life).await;
    }
    // An id may come again: nothing of the former task's log counts for it.
    let again = chunked_life(store, &Scope::default(), "merged", 20, 50).await;
    assert_eq!(log(&**store, &again).await.len(), 20);
    assert_eq!(compact(&**store, 1000, 10).await, 2);
    for life in [&again, &kept] {
        let snapshot = store.snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
        assert_eq!(snapshot.task, life.model.task(20, HistoryLimit::All, true));
    }
}
