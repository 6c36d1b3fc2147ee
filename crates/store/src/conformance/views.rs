use longhaul_lifecycle::{ArtifactUpdate, Command, TaskHead};
use longhaul_protocol::{Artifact, ArtifactId, wire};

use super::TestStore;
use super::commits::{NOW, everything};
use super::life::{
    Life, agent_message, artifact_event, ask, at, commit_of_pieces, complete, context_id, creation, object, piece,
    progress, reply, scope, task_id, text, user_message,
};
use crate::{ArtifactVersion, HistoryLimit, Scope, SnapshotQuery};

const LIMITS: [HistoryLimit; 5] = [
    HistoryLimit::All,
    HistoryLimit::Latest(0),
    HistoryLimit::Latest(1),
    HistoryLimit::Latest(2),
    HistoryLimit::Latest(100),
];

/// A life with every kind of change in it.
pub(super) async fn scripted_life(test: &TestStore) -> Life {
    let mut life = Life::begin(test.store(), &scope("tenant", "owner"), "task", "context", 0).await;
    life.at(1).give(reply("early")).await;
    life.at(2).start().await;
    life.at(3).work(progress("progress-1")).await;
    life.at(4).add(piece("report", "one", false)).await;
    life.at(5).add(with_details(piece("report", "two", true), "Report", &["urn:a", "urn:b"], Some(("pages", 2)))).await;
    life.at(6).add(piece("log", "line", false)).await;
    life.at(7).add(with_details(piece("report", "three", true), "", &["urn:b", "urn:c"], Some(("words", 9)))).await;
    life.at(8).work(ask("question-1")).await;
    life.at(9).start().await;
    life.at(10).add(piece("report", "anew", false)).await;
    let several = commit_of_pieces(&life.head, [piece("log", "line", true), piece("end", "end", false)], at(11));
    life.at(11).commit(several).await.expect("several pieces");
    life.at(12).work(Command::RequireAuth { message: agent_message("question-2", "who?"), resume_after: None }).await;
    life.at(13).give(reply("answer-2")).await;
    life.at(14).start().await;
    life.at(15).work(Command::Progress { message: None, metadata: Some(object("percent", 80)) }).await;
    life.at(16)
        .add(ArtifactUpdate {
            last_chunk: true,
            ..with_details(piece("report", "end", true), "", &[], Some(("pages", 3)))
        })
        .await;
    life.at(17).work(Command::Complete { message: Some(agent_message("closing", "done")) }).await;
    life
}

fn with_details(
    update: ArtifactUpdate,
    name: &str,
    extensions: &[&str],
    metadata: Option<(&str, i64)>,
) -> ArtifactUpdate {
    let artifact = wire::Artifact {
        name: name.to_owned(),
        description: name.to_lowercase(),
        extensions: extensions.iter().map(|&extension| extension.to_owned()).collect(),
        metadata: metadata.map(|(name, value)| object(name, value)),
        ..update.artifact.into_wire()
    };
    ArtifactUpdate { artifact: Artifact::new(artifact).expect("an artifact"), ..update }
}

/// The task as it stood at each sequence, and as it stands now, is what a simple model says it was.
pub async fn each_moment_of_a_life_shows_the_task_as_it_stood(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = scripted_life(&test).await;
    let last = life.model.last_sequence();
    assert_eq!(life.head.last_sequence, last);
    for sequence in 1..=last {
        let query = SnapshotQuery { at: Some(sequence), ..NOW };
        let snapshot =
            test.store().snapshot(&life.scope, &life.head.id, query).await.expect("a snapshot").expect("the task");
        assert_eq!(snapshot.task, life.model.task(sequence, HistoryLimit::All, true), "at {sequence}");
        assert_eq!((snapshot.sequence, snapshot.head), (sequence, life.head.clone()));
    }
    let snapshot = test.store().snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
    assert_eq!(snapshot.task, life.model.task(last, HistoryLimit::All, true));
    assert_eq!((snapshot.sequence, snapshot.head), (last, life.head));
}

/// History comes with the latest messages up to the limit; artifacts only when asked for.
pub async fn history_is_limited_to_the_latest(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = scripted_life(&test).await;
    let last = life.model.last_sequence();
    for at in [None, Some(1), Some(last / 2), Some(last)] {
        for history in LIMITS {
            for artifacts in [false, true] {
                let query = SnapshotQuery { at, history, artifacts };
                let snapshot = test
                    .store()
                    .snapshot(&life.scope, &life.head.id, query)
                    .await
                    .expect("a snapshot")
                    .expect("the task");
                assert_eq!(snapshot.task, life.model.task(at.unwrap_or(last), history, artifacts), "{query:?}");
            }
        }
    }
}

/// A task never stood at sequence 0, nor past its last.
pub async fn a_moment_that_never_was_shows_nothing(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    for never in [0, 2, 1 << 40] {
        let query = SnapshotQuery { at: Some(never), ..NOW };
        assert_eq!(
            test.store().snapshot(&life.scope, &life.head.id, query).await.expect("an answer"),
            None,
            "at {never}"
        );
    }
    assert_eq!(test.store().snapshot(&life.scope, &task_id("nobody"), NOW).await.expect("an answer"), None);
}

/// Each version of an artifact is kept, with its last sequence and whether it is complete.
pub async fn artifact_versions_are_kept(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    life.at(3).add(piece("a", "1a", false)).await;
    life.at(4).add(piece("b", "other", false)).await;
    life.at(5).add(ArtifactUpdate { last_chunk: true, ..piece("a", "1b", true) }).await;
    life.at(6).add(piece("a", "2a", false)).await;
    life.at(7).add(piece("a", "3a", false)).await;
    life.at(8).add(piece("a", "3b", true)).await;
    let version = |version, sequence, last_chunk| ArtifactVersion {
        version,
        sequence,
        timestamp: at(sequence.cast_signed()),
        last_chunk,
    };
    let all = [version(3, 8, false), version(2, 6, false), version(1, 5, true)];
    let id = ArtifactId::new("a").expect("an id");
    let store = test.store();
    for (before, limit, expected) in [
        (None, 9, &all[..]),
        (None, 2, &all[..2]),
        (Some(3), 9, &all[1..]),
        (Some(3), 1, &all[1..2]),
        (Some(1), 9, &[]),
        (Some(9), 1, &all[..1]),
    ] {
        let got = store.artifact_versions(&life.scope, &life.head.id, &id, before, limit).await.expect("versions");
        assert_eq!(got.as_deref(), Some(expected), "{limit} before {before:?}");
    }
    for (wanted, expected) in [
        (None, Some((3, vec!["3a", "3b"]))),
        (Some(3), Some((3, vec!["3a", "3b"]))),
        (Some(2), Some((2, vec!["2a"]))),
        (Some(1), Some((1, vec!["1a", "1b"]))),
        (Some(4), None),
        (Some(0), None),
    ] {
        let got = store.artifact(&life.scope, &life.head.id, &id, wanted).await.expect("an artifact");
        let expected = expected.map(|(version, words)| (version, words.into_iter().map(text).collect::<Vec<_>>()));
        assert_eq!(got.map(|(version, artifact)| (version, artifact.parts)), expected, "version {wanted:?}");
    }
    let unknown = ArtifactId::new("nothing").expect("an id");
    assert_eq!(store.artifact_versions(&life.scope, &life.head.id, &unknown, None, 9).await.expect("an answer"), None);
    assert_eq!(store.artifact(&life.scope, &life.head.id, &unknown, None).await.expect("an answer"), None);
    assert_eq!(store.artifact_versions(&life.scope, &task_id("nobody"), &id, None, 9).await.expect("an answer"), None);
    assert_eq!(store.artifact(&life.scope, &task_id("nobody"), &id, None).await.expect("an answer"), None);
}

/// A task of another tenant or owner can't be seen, in any way.
pub async fn scopes_see_only_their_own(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let scopes = [scope("", ""), scope("a", ""), scope("", "a"), scope("a", "a"), scope("a", "b"), scope("b", "a")];
    let artifact = ArtifactId::new("x").expect("an id");
    let mut lives = Vec::new();
    for (n, scope) in scopes.iter().enumerate() {
        let mut life = Life::begin(test.store(), scope, &format!("task-{n}"), "shared", n as i64).await;
        life.start().await;
        life.add(piece("x", "x", false)).await;
        lives.push(life);
    }
    // An operator alone is told whose a task is.
    for life in &lives {
        let whose = test.store().scope_of(&life.head.id).await.expect("an answer");
        assert_eq!(whose.as_ref(), Some(&life.scope), "{}", life.head.id);
    }
    assert_eq!(test.store().scope_of(&task_id("nobody")).await.expect("an answer"), None);
    for scope in &scopes {
        for life in &lives {
            let (own, id) = (life.scope == *scope, &life.head.id);
            assert_eq!(test.store().load(scope, id).await.expect("an answer").is_some(), own, "{scope:?} {id}");
            assert_eq!(
                test.store().snapshot(scope, id, NOW).await.expect("an answer").is_some(),
                own,
                "{scope:?} {id}"
            );
            let versions = test.store().artifact_versions(scope, id, &artifact, None, 9).await.expect("an answer");
            assert_eq!(versions.is_some(), own, "{scope:?} {id}");
            assert_eq!(
                test.store().artifact(scope, id, &artifact, None).await.expect("an answer").is_some(),
                own,
                "{scope:?} {id}"
            );
        }
        let page = test.store().list(everything(scope)).await.expect("a page");
        let expected: Vec<_> =
            lives.iter().filter(|life| life.scope == *scope).map(|life| life.head.id.as_str()).collect();
        assert_eq!((page.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), page.total), (expected, 1));
    }
}

/// Text of any script and U+0000 come back as they were, and no sign in an id means anything to a store.
pub async fn texts_and_ids_of_any_kind_are_kept(open: &impl AsyncFn() -> TestStore) {
    let test = open().await;
    let texts = [
        "\u{0} a\u{0}b \u{0}",
        "żółć 日本語 \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} e\u{301}",
        "\"'`\\;--%_\r\n\t\u{7f}\u{feff}\u{ffff}\u{10ffff}",
        "",
    ];
    let ids = [
        "it's; DROP TABLE task; --",
        "100%_\"quoted\"",
        "a/b\\c?d#e",
        "żółć 日本語 \u{1f468}",
        " spaces ",
        "A",
        "a",
        "é",
        "e\u{301}",
    ];
    for (n, id) in ids.into_iter().enumerate() {
        let scope = scope(&id.replace('/', "|"), id);
        let words = texts[n % texts.len()];
        let head = TaskHead::submitted(task_id(id), context_id(id), at(0));
        let wire = wire::Message { parts: vec![text(words)], ..user_message(id, "x").into_wire() };
        let message = longhaul_protocol::Message::new(wire).expect("a message");
        let mut metadata = object(id, 1);
        metadata.insert(words.to_owned(), serde_json::Value::from(words));
        test.store().commit(creation(&scope, &head, Some(metadata.clone()), message.clone())).await.expect("a task");
        let mut life = Life::adopt(test.store(), &scope, head, Some(metadata), &message);
        life.start().await;
        life.add(piece(id, words, false)).await;
        life.work(Command::Progress { message: Some(agent_message(id, words)), metadata: None }).await;
        let snapshot = test.store().snapshot(&scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
        assert_eq!(snapshot.task, life.model.task(4, HistoryLimit::All, true));
        assert_eq!(snapshot.head, life.head);
        let artifact = ArtifactId::new(id).expect("an id");
        let artifact = test
            .store()
            .artifact(&scope, &life.head.id, &artifact, None)
            .await
            .expect("an artifact")
            .expect("the artifact");
        assert_eq!(artifact.1.parts, [text(words)]);
        let query = crate::ListQuery { context_id: Some(context_id(id)), ..everything(&scope) };
        let page = test.store().list(query).await.expect("a page");
        assert_eq!((page.tasks.len(), page.total), (1, 1), "{id}");
    }
}

/// A log of 10,000 events is read whole, in pages and as a fold.
pub async fn a_long_log_is_kept_whole(open: &impl AsyncFn() -> TestStore) {
    const EVENTS: usize = 10_000;
    let test = open().await;
    let mut life = Life::begin(test.store(), &Scope::default(), "task", "context", 0).await;
    life.start().await;
    let payloads: Vec<_> =
        (2..EVENTS - 1).map(|n| artifact_event(&life.head, piece("a", &n.to_string(), n > 2))).collect();
    for events in payloads.chunks(500) {
        let commit = crate::Commit { events: events.to_vec(), ..commit_of_pieces(&life.head, [], at(1)) };
        life.head.last_sequence = test.store().commit(commit).await.expect("chunks").last_sequence;
    }
    assert_eq!(life.head.last_sequence, EVENTS as u64 - 1);
    life.work(complete()).await;
    assert_eq!(life.stored().await.last_sequence, EVENTS as u64);
    let mut seen = 0_usize;
    loop {
        let page = test.store().events_after(&life.head.id, seen as u64, 256).await.expect("events");
        for event in &page {
            seen += 1;
            assert_eq!(event.sequence, seen as u64);
            if let Some(payload) = seen.checked_sub(3).and_then(|n| payloads.get(n)) {
                assert_eq!((event.kind, &event.payload), (payload.kind, &payload.payload), "event {seen}");
            }
        }
        assert!(seen <= EVENTS, "more events than were committed");
        if page.len() < 256 {
            break;
        }
    }
    assert_eq!(seen, EVENTS);
    let parts = (2..EVENTS - 1).map(|n| text(&n.to_string())).collect::<Vec<_>>();
    let snapshot = test.store().snapshot(&life.scope, &life.head.id, NOW).await.expect("a snapshot").expect("the task");
    assert_eq!(snapshot.task.artifacts[0].parts, parts);
    let past = SnapshotQuery { at: Some(5000), ..NOW };
    let snapshot =
        test.store().snapshot(&life.scope, &life.head.id, past).await.expect("a snapshot").expect("the task");
    assert_eq!(snapshot.task.artifacts[0].parts, parts[..4998]);
}
