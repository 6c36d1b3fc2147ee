use bytes::Bytes;
use longhaul_lifecycle::{AttemptEnd, AttemptOutcome, Command, TaskHead, Writer, decide};
use longhaul_protocol::{TaskId, TaskState};

use super::TestStore;
use super::life::{
    Life, artifact_event, ask, at, commit_of, commit_of_pieces, complete, context_id, creation, due, far, object,
    piece, progress, reply, scope, start, task_id, user_message,
};
use crate::{
    Commit, Committed, Dedup, EventKind, Expect, HistoryLimit, ListQuery, NewMessage, Rotation, Scope, SnapshotQuery,
    StoreError, TaskMark, TurnRequest, created_event,
};

pub(super) const NOW: SnapshotQuery = SnapshotQuery { at: None, history: HistoryLimit::All, artifacts: true };

/// All tasks of a scope.
pub(super) fn everything(scope: &Scope) -> ListQuery {
    ListQuery {
        scope: scope.clone(),
        context_id: None,
        state: None,
        status_timestamp_after: None,
        after: None,
        page_size: 100,
        history: HistoryLimit::Latest(0),
        artifacts: false,
    }
}

/// A new task has its head, its first message and event 1, which is the task as created.
pub async fn a_new_task_begins_its_log(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = Life::begin(test.store(), &Scope::default(), "task", "context", 5).await;
    assert_eq!(life.stored().await, life.head);
    let events = test.store().events_after(&life.head.id, 0, 10).await.expect("events");
    let created = created_event(&life.head, Some(&object("made", 5)));
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].sequence, events[0].kind, events[0].timestamp), (1, EventKind::Created, at(5)));
    assert_eq!(events[0].payload, created.payload, "the very bytes");
    let snapshot = test.store().snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
    assert_eq!(snapshot.task, life.model.task(1, HistoryLimit::All, true));
    assert_eq!((snapshot.sequence, snapshot.head), (1, life.head));
}

/// A task id that exists is refused, whoever asks, and the task stays as it was.
pub async fn a_task_that_exists_is_not_made_again(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = Life::begin(test.store(), &scope("a", ""), "task", "context", 0).await;
    for scope in [scope("a", ""), scope("b", "")] {
        let head = TaskHead::submitted(task_id("task"), context_id("other"), at(9));
        let again = creation(&scope, &head, None, user_message("other", "again"));
        let refused = test.store().commit(again).await.expect_err("the id is taken");
        assert!(matches!(&refused, StoreError::Conflict { task } if *task == head.id), "{refused:?}");
    }
    assert_eq!(life.stored().await, life.head);
    assert_eq!(test.store().load(&scope("b", ""), &life.head.id).await.expect("an answer"), None);
    assert_eq!(test.store().list(everything(&scope("b", ""))).await.expect("a page").total, 0);
}

/// A commit to a task that is not there is refused, whatever it expects.
pub async fn a_commit_to_an_unknown_task_is_refused(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let head = TaskHead::submitted(task_id("nobody"), context_id("context"), at(0));
    let appends = Expect::Lease { epoch: 1, last_sequence: 1 };
    for expect in [Expect::Version(1), Expect::LeaseAndVersion { epoch: 1, version: 1 }, appends] {
        let with_head = !matches!(expect, Expect::Lease { .. });
        let commit = Commit {
            expect,
            head: with_head.then(|| head.clone()),
            ..commit_of_pieces(&head, [piece("a", "x", false)], at(1))
        };
        let refused = test.store().commit(commit).await.expect_err("there is no such task");
        assert!(matches!(&refused, StoreError::NotFound { task } if *task == head.id), "{refused:?}");
    }
    assert_eq!(test.store().load(&Scope::default(), &head.id).await.expect("an answer"), None);
}

/// Who decided on an older version is told, and a newer one is no better.
pub async fn a_commit_on_an_older_version_is_a_conflict(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    let before = life.head.clone();
    life.give(reply("second")).await;
    for (head, version) in [(&before, before.version), (&life.head, life.head.version + 1)] {
        let transition = decide(head, start(), Writer::Engine, at(1)).expect("a start");
        let refused =
            test.store().commit(commit_of(Expect::Version(version), transition, at(1))).await.expect_err("a lost race");
        assert!(matches!(&refused, StoreError::Conflict { task } if *task == before.id), "{refused:?}");
    }
    life.start().await;
    let transition = decide(&life.head, progress("late"), Writer::Agent { epoch: 1 }, at(1)).expect("a progress");
    let expect = Expect::LeaseAndVersion { epoch: 1, version: life.head.version - 1 };
    let refused = test.store().commit(commit_of(expect, transition, at(1))).await.expect_err("a lost race");
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused:?}");
    assert_eq!(life.stored().await, life.head);
}

/// Events are numbered from 1 without gaps over commits of none, one and several events, failed ones between them.
pub async fn sequences_have_no_gaps_over_any_commits(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    assert_eq!(life.start().await.last_sequence, 2);
    let several = commit_of_pieces(&life.head, ["x", "y", "z"].map(|words| piece(words, words, false)), at(2));
    assert_eq!(life.commit(several).await.expect("several events").last_sequence, 5);
    assert_eq!(life.give(reply("second")).await.last_sequence, 5, "a queued message is no event");
    let stale = commit_of_pieces(&TaskHead { epoch: 7, ..life.head.clone() }, [piece("x", "lost", true)], at(3));
    test.store().commit(stale).await.expect_err("another epoch");
    assert_eq!(life.work(ask("question")).await.last_sequence, 7, "the question, and the answer that waited");
    assert_eq!(life.start().await.last_sequence, 7, "a start of a working task is no event");
    assert_eq!(life.add(piece("x", "more", true)).await.last_sequence, 8);
    assert_eq!(life.work(complete()).await.last_sequence, 9);
    let events = test.store().events_after(&life.head.id, 0, 100).await.expect("events");
    assert_eq!(events.iter().map(|event| event.sequence).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
    assert_eq!(life.stored().await.last_sequence, 9);
    let resting = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Status { rests: true, .. }))
        .map(|event| event.sequence);
    assert_eq!(resting.collect::<Vec<_>>(), [9], "a question that was answered before it was asked is no rest");
}

/// The store counts: what a head says of the last sequence is not taken over.
pub async fn the_sequence_in_a_head_is_not_taken_over(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut head = TaskHead::submitted(task_id("task"), context_id("context"), at(0));
    head.last_sequence = 77;
    let committed = test
        .store()
        .commit(creation(&Scope::default(), &head, None, user_message("m", "begin")))
        .await
        .expect("a task");
    assert_eq!(committed, Committed { version: 1, last_sequence: 1, has_pushes: false });
    let mut transition = decide(&head, start(), Writer::Engine, at(1)).expect("a start");
    transition.head.last_sequence = 99;
    let committed = test.store().commit(commit_of(Expect::Version(1), transition, at(1))).await.expect("a start");
    assert_eq!(committed, Committed { version: 2, last_sequence: 2, has_pushes: false });
    let stored = test.store().load(&Scope::default(), &head.id).await.expect("an answer").expect("the task");
    assert_eq!(stored.last_sequence, 2);
}

/// A commit that is refused leaves no event, message, state, place in a list, due time or remembered message.
pub async fn a_failed_commit_leaves_nothing(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    let before = test.store().snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot");
    let (epoch, version) = (life.head.epoch, life.head.version);
    let expectations = [
        Expect::Version(version + 1),
        Expect::LeaseAndVersion { epoch, version: version + 1 },
        Expect::LeaseAndVersion { epoch: epoch + 1, version },
        Expect::New(crate::NewTask::default()),
    ];
    for (n, expect) in expectations.into_iter().enumerate() {
        let mut transition = decide(&life.head, ask("question"), Writer::Engine, at(9)).expect("a question");
        transition.head.due_at = Some(at(9));
        let mut commit = commit_of(expect, transition, at(9));
        commit.events.push(artifact_event(&life.head, piece("a", "x", false)));
        commit.messages.push(NewMessage::new(user_message("lost", "lost"), 0));
        let key = Dedup {
            scope: life.scope.clone(),
            message_id: super::life::message_id(&format!("lost-{n}")),
            digest: [1; 32],
            expires_at: at(1_000_000),
        };
        commit.dedup = Some(key.clone());
        test.store().commit(commit).await.expect_err("the expectation does not hold");
        assert_eq!(test.store().snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot"), before);
        let again = test.store().commit(Commit { dedup: Some(key), ..commit_of_pieces(&life.head, [], at(10)) }).await;
        again.expect("the key was not taken by the commit that failed");
    }
    assert_eq!(test.store().events_after(&life.head.id, 0, 100).await.expect("events").len(), 2);
    assert_eq!(test.store().messages(&life.head.id, &[0, 1, 2]).await.expect("messages").len(), 1);
    assert_eq!(test.store().next_due().await.expect("an answer"), Some(far()));
    let asking = ListQuery { state: Some(TaskState::InputRequired), ..everything(&life.scope) };
    assert_eq!(test.store().list(asking).await.expect("a page").total, 0);
    assert_eq!(test.store().list(everything(&life.scope)).await.expect("a page").total, 1);
}

/// A chunk moves the last sequence and nothing else, so that it conflicts with nobody who decides.
pub async fn artifact_commits_move_only_the_sequence(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    let before = life.head.clone();
    let committed = life.at(500).add(piece("a", "x", false)).await;
    assert_eq!(committed, Committed { version: before.version, last_sequence: 3, has_pushes: false });
    assert_eq!(life.stored().await, TaskHead { last_sequence: 3, ..before.clone() });
    let queued = decide(&before, reply("second"), Writer::Caller, at(501)).expect("a message");
    let committed = life
        .commit(commit_of(Expect::Version(before.version), queued, at(501)))
        .await
        .expect("no conflict with a chunk");
    assert_eq!(committed, Committed { version: before.version + 1, last_sequence: 3, has_pushes: false });
    life.add(piece("a", "y", true)).await;
    assert_eq!(life.stored().await.last_sequence, 4, "no conflict with the message");
}

/// The same commit of chunks once more, as after an answer that was lost: it is made once, and the second time is a conflict.
pub async fn chunks_that_are_committed_twice_are_there_once(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    life.add(piece("a", "x", false)).await;
    let checkpoint = Some(Bytes::from_static(b"once"));
    let chunks = Commit { checkpoint, ..commit_of_pieces(&life.head, ["y", "z"].map(|x| piece("a", x, true)), at(1)) };
    assert_eq!(life.commit(chunks.clone()).await.expect("chunks").last_sequence, 5);
    let other = Commit { checkpoint: Some(Bytes::from_static(b"other")), ..chunks.clone() };
    for again in [chunks.clone(), other] {
        let refused = test.store().commit(again).await.expect_err("the log has grown");
        assert!(matches!(&refused, StoreError::Conflict { task } if *task == life.head.id), "{refused:?}");
    }
    let ahead = Expect::Lease { epoch: life.head.epoch, last_sequence: life.head.last_sequence + 1 };
    let refused = test.store().commit(Commit { expect: ahead, ..chunks }).await.expect_err("the log is shorter");
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused:?}");
    assert_eq!(life.stored().await, life.head);
    assert_eq!(test.store().events_after(&life.head.id, 0, 100).await.expect("events").len(), 5);
    assert_eq!(test.store().checkpoint(&life.head.id).await.expect("an answer"), Some(Bytes::from_static(b"once")));
    let snapshot = test.store().snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
    assert_eq!(snapshot.task, life.model.task(5, HistoryLimit::All, true));
    life.add(piece("a", "on", true)).await;
}

/// Events come after a sequence, in order, and no more than asked for.
pub async fn events_are_read_in_pages(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    let pieces = commit_of_pieces(&life.head, (0..8).map(|n| piece(&n.to_string(), "x", false)), at(77));
    life.commit(pieces).await.expect("chunks");
    let all = test.store().events_after(&life.head.id, 0, 100).await.expect("events");
    assert_eq!(all.len(), 10);
    assert!(all[2..].iter().all(|event| event.timestamp == at(77) && event.kind == EventKind::Artifact));
    for (after, limit) in [(0, 1), (0, 3), (3, 3), (8, 3), (9, 1), (10, 5), (11, 5), (u64::MAX >> 1, 5), (4, 0)] {
        let expected: Vec<_> = all.iter().filter(|event| event.sequence > after).take(limit).cloned().collect();
        assert_eq!(
            test.store().events_after(&life.head.id, after, limit).await.expect("events"),
            expected,
            "{limit} after {after}"
        );
    }
    assert_eq!(test.store().events_after(&task_id("nobody"), 0, 5).await.expect("an answer"), []);
}

/// Messages are numbered in the order of the history; each holds the sequence of the event that it joined with and what it came with.
pub async fn messages_keep_order_sequence_and_request(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    let request = TurnRequest {
        accepted_output_modes: vec!["text/plain".to_owned(), "image/png".to_owned()],
        metadata: Some(object("asked", 3)),
        extensions: vec!["urn:test:one".to_owned()],
    };
    let transition = decide(&life.head, reply("second"), Writer::Caller, at(1)).expect("a message");
    let mut commit = commit_of(Expect::Version(1), transition, at(1));
    commit.messages = commit.messages.into_iter().map(|new| NewMessage { request: request.clone(), ..new }).collect();
    life.commit(commit).await.expect("a message");
    life.start().await;
    life.work(progress("one")).await;
    life.work(ask("two")).await;
    let messages = test.store().messages(&life.head.id, &[0, 1, 2, 3, 4]).await.expect("messages");
    let got: Vec<_> = messages
        .iter()
        .map(|message| (message.ordinal, message.message.id().as_str().to_owned(), message.sequence))
        .collect();
    // The answer waited when the question was asked, so the question joined the history in the same commit, with the
    // update that answers it.
    let expected = [(0, "first", 1), (1, "second", 1), (2, "one", 4), (3, "two", 5)];
    assert_eq!(got, expected.map(|(ordinal, id, sequence)| (ordinal, id.to_owned(), sequence)));
    assert_eq!(messages[1].request, request);
    assert!(messages[0].request.is_empty());
    assert_eq!(life.stored().await.turn_message, 1);
    let mut some = test.store().messages(&life.head.id, &[3, 1]).await.expect("messages");
    some.sort_by_key(|message| message.ordinal);
    assert_eq!(some, [messages[1].clone(), messages[3].clone()]);
    assert_eq!(test.store().messages(&life.head.id, &[]).await.expect("an answer"), []);
    assert_eq!(test.store().messages(&task_id("nobody"), &[0]).await.expect("an answer"), []);
}

/// How far the tasks have come that exist, in whatever order.
pub async fn marks_leave_out_unknown_tasks(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut one = Life::begin(test.store(), &scope("a", ""), "one", "context", 0).await;
    let two = Life::begin(test.store(), &scope("b", ""), "two", "context", 0).await;
    one.start().await;
    one.add(piece("a", "x", false)).await;
    let asked = [two.head.id.clone(), task_id("nobody"), one.head.id.clone()];
    let mut got = test.store().marks(&asked).await.expect("marks");
    got.sort_by(|one, other| one.task_id.cmp(&other.task_id));
    let mark = |task_id: &TaskId, version, last_sequence| TaskMark { task_id: task_id.clone(), version, last_sequence };
    assert_eq!(got, [mark(&one.head.id, 2, 3), mark(&two.head.id, 1, 1)]);
    assert_eq!(test.store().marks(&[]).await.expect("an answer"), []);
}

/// After `close` every call is refused as unavailable.
pub async fn a_closed_store_refuses(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    test.store().check().await.expect("an open store");
    test.store().close().await.expect("closing");
    let store = test.store();
    let start = decide(&life.head, start(), Writer::Engine, at(1)).expect("a start");
    let refusals = [
        store.commit(commit_of(Expect::Version(1), start, at(1))).await.err(),
        store.load(&life.scope, &life.head.id).await.err(),
        store.scope_of(&life.head.id).await.err(),
        store.snapshot(&life.scope, &life.head.id, NOW).await.err(),
        store.accepted(&life.scope, &super::life::message_id("first"), at(1)).await.err(),
        store.events_after(&life.head.id, 0, 1).await.err(),
        store.messages(&life.head.id, &[0]).await.err(),
        store.list(everything(&life.scope)).await.err(),
        store.due(at(9), 1, Rotation::default()).await.err(),
        store.next_due().await.err(),
        store.backlog().await.err(),
        store.renew(&[life.lease()], at(9), at(10)).await.err(),
        store.expire_leases(at(9)).await.err(),
        store.checkpoint(&life.head.id).await.err(),
        store.stale(&[TaskState::Working], at(9), at(9), 1).await.err(),
        store.purge(TaskState::Completed, at(9), 1).await.err(),
        store.give_back(1 << 20).await.err(),
        store.marks(std::slice::from_ref(&life.head.id)).await.err(),
        store.compact(at(9), 1).await.err(),
        store.check().await.err(),
    ];
    for (n, refused) in refusals.into_iter().enumerate() {
        assert!(matches!(refused, Some(StoreError::Unavailable { .. })), "call {n}: {refused:?}");
    }
}

/// What was committed is there when the store is opened again, for stores that outlive their process.
pub async fn a_store_opened_again_holds_what_was_committed(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &scope("a", "b"), "task", "context", 0).await;
    life.start().await;
    life.add(piece("a", "x", false)).await;
    life.give(reply("second")).await;
    life.at(5)
        .work(Command::RequireAuth { message: super::life::agent_message("who", "who are you?"), resume_after: None })
        .await;
    life.give(reply("third")).await;
    life.start().await;
    let expected = life.model.task(life.head.last_sequence, HistoryLimit::All, true);
    let events = test.store().events_after(&life.head.id, 0, 100).await.expect("events");
    let Some(store) = test.reopened().await else { return };
    let snapshot = store.snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
    assert_eq!((snapshot.head, snapshot.task), (life.head.clone(), expected));
    assert_eq!(store.events_after(&life.head.id, 0, 100).await.expect("events"), events);
    assert_eq!(store.list(everything(&life.scope)).await.expect("a page").total, 1);
    assert_eq!(store.expire_leases(at(20)).await.expect("leases"), 1);
    assert_eq!(due(&*store, at(20), 5).await.len(), 1);
}

/// What the agent stored for its task stays until it stores something else, in whatever commit, or until the task is gone.
pub async fn a_checkpoint_is_kept_until_the_next(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    let stored = async |store: &dyn crate::Store| store.checkpoint(&task_id("task")).await.expect("an answer");
    assert_eq!(stored(&**test.store()).await, None);
    assert_eq!(test.store().checkpoint(&task_id("nobody")).await.expect("an answer"), None);
    life.start().await;
    let first = Bytes::from_static(b"\0\xff first");
    let alone = Commit { checkpoint: Some(first.clone()), ..commit_of_pieces(&life.head, [], at(1)) };
    life.commit(alone).await.expect("a checkpoint");
    assert_eq!(stored(&**test.store()).await, Some(first.clone()));
    let refused = Commit {
        checkpoint: Some(Bytes::from_static(b"late")),
        expect: Expect::Lease { epoch: life.head.epoch + 1, last_sequence: life.head.last_sequence },
        ..commit_of_pieces(&life.head, [], at(1))
    };
    test.store().commit(refused).await.expect_err("another epoch");
    life.add(piece("a", "x", false)).await;
    life.work(progress("one")).await;
    assert_eq!(stored(&**test.store()).await, Some(first), "others leave it as it is");
    let (epoch, version) = (life.head.epoch, life.head.version);
    let question = decide(&life.head, ask("question"), Writer::Agent { epoch }, at(2)).expect("a question");
    let question = commit_of(Expect::LeaseAndVersion { epoch, version }, question, at(2));
    let empty = Commit { checkpoint: Some(Bytes::new()), ..question };
    life.commit(empty).await.expect("a question");
    assert_eq!(stored(&**test.store()).await, Some(Bytes::new()));
    if let Some(store) = test.reopened().await {
        assert_eq!(stored(&*store).await, Some(Bytes::new()));
    }
}

/// The attempts that came to nothing come back as they were, and are forgotten with their turn.
pub async fn attempts_that_came_to_nothing_are_kept(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    let reason = "\"it\" broke\u{0} żółć".to_owned();
    let hows = [
        AttemptOutcome::Failed { reason },
        AttemptOutcome::Failed { reason: String::new() },
        AttemptOutcome::TurnTooLong,
        AttemptOutcome::Inactive,
    ];
    for (n, how) in (1..).zip(hows.clone()) {
        life.at(n * 10).start().await;
        life.at(n * 10 + 1).work(Command::Retry { how, at: at(n * 10 + 5) }).await;
        assert_eq!(life.stored().await, life.head);
    }
    life.at(100).start_until(110).await;
    life.at(110).start_until(120).await;
    let ends: Vec<_> = hows.into_iter().chain([AttemptOutcome::LeaseExpired]).collect();
    let expected: Vec<_> = (1_u32..)
        .zip(ends)
        .map(|(attempt, how)| {
            let ended_at = if attempt == 5 { at(110) } else { at(i64::from(attempt) * 10 + 1) };
            AttemptEnd { attempt, epoch: u64::from(attempt), ended_at, how }
        })
        .collect();
    assert_eq!(life.stored().await.failures, expected);
    let claims = test.store().stale(&[TaskState::Working], at(1000), at(1000), 9).await.expect("stale tasks");
    assert_eq!(claims[0].head.failures, expected);
    life.at(115).work(ask("question")).await;
    assert_eq!(life.stored().await.failures, []);
}
