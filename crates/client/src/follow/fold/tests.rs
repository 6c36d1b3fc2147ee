mod model;
mod properties;

use serde_json::{Value, json};

use super::*;
use model::{agent_message, artifact, artifact_update, data, item, status, status_update, task, text};

impl Fold {
    /// Whether the task is the one that is followed and shows nothing new: then [`missed`](Self::missed) gives nothing.
    fn is_same(&self, snapshot: &wire::Task) -> bool {
        let is_last = artifacts::last_of_each_id(&snapshot.artifacts);
        let mut artifacts = snapshot.artifacts.iter().zip(is_last).filter(|(_, is_last)| *is_last);
        self.check("task", &snapshot.id, &snapshot.context_id).is_ok()
            && snapshot.status.as_ref().is_some_and(|status| self.has_status(status))
            && artifacts.all(|(artifact, _)| matches!(self.artifacts.change(artifact), Change::None))
    }
}

/// A follower that saw the task with these artifacts.
fn fold_of(artifacts: Vec<wire::Artifact>) -> Fold {
    let mut fold = Fold::new();
    fold.apply(&item(Payload::Task(task(artifacts)))).unwrap();
    fold
}

/// What a follower of `known` missed of an artifact that became `now`: whether it appends, and the artifact.
#[track_caller]
fn missed_of(known: wire::Artifact, now: wire::Artifact) -> Option<(bool, wire::Artifact)> {
    let mut fold = fold_of(vec![known]);
    let snapshot = task(vec![now]);
    let missed = fold.missed(snapshot.clone()).unwrap();
    assert_eq!(missed.is_empty(), fold.is_same(&snapshot));
    missed.iter().for_each(|item| fold.apply(item).unwrap());
    assert_eq!(fold.missed(snapshot), Ok(Vec::new()), "told once");
    match missed.as_slice() {
        [] => None,
        [wire::StreamResponse { payload: Some(Payload::ArtifactUpdate(update)) }] => {
            assert_eq!((update.task_id.as_str(), update.context_id.as_str()), ("t", "c"));
            Some((update.append, update.artifact.clone().unwrap()))
        }
        other => panic!("one artifact update was expected: {other:?}"),
    }
}

#[track_caller]
fn check_parts(known: &[wire::Part], now: &[wire::Part], expected: Option<(bool, &[wire::Part])>) {
    let missed = missed_of(artifact("a", known.to_vec()), artifact("a", now.to_vec()));
    assert_eq!(missed, expected.map(|(append, parts)| (append, artifact("a", parts.to_vec()))));
}

#[test]
fn of_an_artifact_that_grew_the_rest_is_missed() {
    let (a, b, c) = (|| text("a"), || text("b"), || data(json!({"k": [1, null]})));
    check_parts(&[a()], &[a()], None);
    check_parts(&[a()], &[a(), b()], Some((true, &[b()])));
    check_parts(&[a(), c()], &[a(), c(), c(), b()], Some((true, &[c(), b()])));
    check_parts(&[], &[a()], Some((true, &[a()])));
}

#[test]
fn a_rewritten_artifact_is_missed_whole() {
    let (a, b, c) = (text("a"), text("b"), data(json!(1)));
    for (known, now) in [
        (vec![a.clone()], vec![b.clone()]),
        (vec![a.clone()], vec![b.clone(), a.clone()]),
        (vec![a.clone(), b.clone()], vec![a.clone()]),
        (vec![c.clone()], vec![data(json!(2))]),
        (vec![c.clone()], vec![text("1")]),
        (vec![a.clone()], vec![]),
        (vec![text("ab")], vec![a.clone(), b.clone()]),
        (vec![text("ab")], vec![a.clone(), text("bc")]),
        (vec![a.clone()], vec![text("é")]),
        (vec![text("aa")], vec![text("ébc")]),
        (vec![a.clone()], vec![wire::Part { media_type: "text/html".to_owned(), ..a.clone() }]),
        (vec![a.clone()], vec![wire::Part { media_type: "text/html".to_owned(), ..text("ab") }]),
        (vec![a.clone(), c.clone()], vec![c.clone(), a.clone()]),
        (
            vec![wire::Part { media_type: "text/html".to_owned(), ..a.clone() }, b.clone()],
            vec![wire::Part { media_type: "text/html".to_owned(), ..text("ab") }],
        ),
    ] {
        check_parts(&known, &now, Some((false, &now)));
    }
}

#[test]
fn texts_that_a_server_joins_are_the_same_texts() {
    let c = data(json!(1));
    let html = |text: wire::Part| wire::Part { media_type: "text/html".to_owned(), ..text };
    check_parts(&[text("a"), text("b")], &[text("ab")], None);
    check_parts(&[text("a"), text("b")], &[text("abc")], Some((true, &[text("c")])));
    check_parts(&[text("a"), text("b")], &[text("a"), text("bc")], Some((true, &[text("c")])));
    check_parts(&[text("日"), text("本")], &[text("日本語"), c.clone()], Some((true, &[text("語"), c.clone()])));
    check_parts(&[text("a")], &[text("abc")], Some((true, &[text("bc")])));
    check_parts(&[c.clone(), text("a")], &[c.clone(), text("ab"), c.clone()], Some((true, &[text("b"), c.clone()])));
    check_parts(&[text("a"), text("b"), c.clone()], &[text("ab"), c.clone(), text("d")], Some((true, &[text("d")])));
    check_parts(&[html(text("a")), html(text("b"))], &[html(text("abc"))], Some((true, &[html(text("c"))])));
    check_parts(&[text("a"), html(text("")), text("b")], &[text("abc")], Some((true, &[text("c")])));
    check_parts(&[text("")], &[text("a")], Some((true, &[text("a")])));
    check_parts(&[text("a"), text("b")], &[text("ab"), text("")], None);
    check_parts(&[text("a"), text("b")], &[text("ab"), text(""), text("c")], Some((true, &[text(""), text("c")])));
}

#[test]
fn data_is_the_same_in_any_order_and_form_of_its_numbers() {
    let known = [data(json!({"a": 1, "b": {"c": -0.0, "d": 2.5}}))];
    check_parts(&known, &[data(json!({"b": {"d": 2.5, "c": 0}, "a": 1.0}))], None);
    for other in [json!({"a": 1, "b": {"c": 0, "d": 2.25}}), json!({"a": "1", "b": {"c": 0, "d": 2.5}}), Value::Null] {
        check_parts(&known, &[data(other.clone())], Some((false, &[data(other)])));
    }
    let large = |number: u64| data(json!(number));
    check_parts(&[large((1 << 53) + 1)], &[large(1 << 53)], Some((false, &[large(1 << 53)])));
}

#[test]
fn details_that_appending_gives_are_appended_and_others_are_not() {
    let named = |name: &str, metadata: Value, extensions: &[&str], parts: &[wire::Part]| wire::Artifact {
        name: name.to_owned(),
        metadata: metadata.as_object().cloned(),
        extensions: extensions.iter().map(|extension| (*extension).to_owned()).collect(),
        ..artifact("a", parts.to_vec())
    };
    let (a, ab) = ([text("a")], [text("a"), data(json!("b"))]);
    let known = named("n", json!({"k": 1, "l": 2}), &["x"], &a);
    let same = named("n", json!({"l": 2, "k": 1}), &["x"], &ab);
    assert_eq!(missed_of(known.clone(), same), Some((true, artifact("a", ab[1..].to_vec()))), "without what is known");
    for (name, metadata, extensions) in [
        ("m", json!({"k": 1, "l": 2}), ["x"].as_slice()),
        ("n", json!({"k": 3, "l": 2, "m": null}), &["x"]),
        ("n", json!({"k": 1, "l": 2}), &["x", "y"]),
    ] {
        let now = named(name, metadata.clone(), extensions, &ab);
        let rest = wire::Artifact { parts: ab[1..].to_vec(), ..now.clone() };
        assert_eq!(missed_of(known.clone(), now), Some((true, rest)));
        let now = named(name, metadata, extensions, &a);
        assert_eq!(missed_of(known.clone(), now.clone()), Some((false, now)), "an update has parts");
    }
    for (name, metadata, extensions) in [
        ("", json!({"k": 1, "l": 2}), ["x"].as_slice()),
        ("n", json!({"k": 1}), &["x"]),
        ("n", Value::Null, &["x"]),
        ("n", json!({"k": 1, "l": 2}), &[]),
        ("n", json!({"k": 1, "l": 2}), &["y", "x"]),
        ("n", json!({"k": 1, "l": 2}), &["x", "y", "y"]),
    ] {
        let now = named(name, metadata, extensions, &ab);
        assert_eq!(missed_of(known.clone(), now.clone()), Some((false, now)));
    }
    let described = wire::Artifact { description: "d".to_owned(), ..known.clone() };
    assert_eq!(missed_of(known, described.clone()), Some((false, described)));
    assert_eq!(missed_of(named("", Value::Null, &[], &a), named("", json!({}), &[], &a)), None);
}

#[test]
fn a_follower_that_knows_nothing_missed_the_task() {
    let snapshot = task(vec![artifact("a", vec![text("a")])]);
    for fold in [Fold::new(), Fold::of_task("t")] {
        let missed = fold.missed(snapshot.clone()).unwrap();
        assert_eq!(missed, [item(Payload::Task(snapshot.clone()))]);
        assert!(!fold.is_same(&snapshot));
    }
}

#[test]
fn artifacts_come_before_statuses_and_new_ones_whole() {
    let mut fold = fold_of(vec![artifact("a", vec![text("a")])]);
    fold.apply(&item(status_update(status(wire::TaskState(2), None, 5)))).unwrap();
    assert_eq!(fold.state(), Some(TaskState::Working.into()));
    let done = status(TaskState::Completed.into(), Some(agent_message("m", "done")), 9);
    let snapshot = wire::Task {
        status: Some(done.clone()),
        context_id: String::new(),
        ..task(vec![artifact("b", vec![text("b")]), artifact("a", vec![text("a"), text("c")])])
    };
    let missed = fold.missed(snapshot.clone()).unwrap();
    let expected = [
        artifact_update(artifact("b", vec![text("b")]), false),
        artifact_update(artifact("a", vec![text("c")]), true),
        status_update(done),
    ];
    assert_eq!(missed, expected.map(item), "the context is given though the snapshot lacks it");
    missed.iter().for_each(|item| fold.apply(item).unwrap());
    assert!(fold.is_same(&snapshot));
    assert_eq!(fold.state(), Some(TaskState::Completed.into()));
}

#[test]
fn a_status_is_another_by_state_message_or_time() {
    let known = status(TaskState::Working.into(), Some(agent_message("m", "text")), 5);
    let mut fold = fold_of(Vec::new());
    fold.apply(&item(status_update(known.clone()))).unwrap();
    let mut filled_in = known.clone();
    filled_in.message.as_mut().unwrap().task_id = "t".to_owned();
    for same in [known.clone(), wire::TaskStatus { timestamp: None, ..known.clone() }, filled_in] {
        let snapshot = wire::Task { status: Some(same), ..task(Vec::new()) };
        assert!(fold.is_same(&snapshot), "{snapshot:?}");
        assert_eq!(fold.missed(snapshot), Ok(Vec::new()));
    }
    for other in [
        wire::TaskStatus { state: TaskState::InputRequired.into(), ..known.clone() },
        wire::TaskStatus { state: wire::TaskState(77), ..known.clone() },
        wire::TaskStatus { message: None, ..known.clone() },
        status(known.state, Some(agent_message("n", "text")), 5),
        status(known.state, Some(agent_message("m", "texts")), 5),
        status(known.state, known.message.clone(), 4),
    ] {
        let snapshot = wire::Task { status: Some(other.clone()), ..task(Vec::new()) };
        assert!(!fold.is_same(&snapshot), "{snapshot:?}");
        assert_eq!(fold.missed(snapshot), Ok(vec![item(status_update(other))]));
    }
}

#[test]
fn status_messages_that_passed_are_told_from_the_history() {
    let message = |id: &str| agent_message(id, "text");
    let of_caller = wire::Message { role: Role::User.into(), ..message("u2") };
    let history =
        ["u1", "m1", "m2"].map(message).into_iter().chain([of_caller, message("m3"), message("m3"), message("")]);
    let now = status(TaskState::Completed.into(), Some(message("m4")), 9);
    let snapshot = |history| wire::Task { status: Some(now.clone()), history, ..task(Vec::new()) };
    let history: Vec<_> = history.chain([message("m4")]).collect();
    let told = |fold: &Fold, history| -> Vec<String> {
        let missed = fold.missed(snapshot(history)).unwrap();
        let statuses = missed.into_iter().map(|item| match item.payload {
            Some(Payload::StatusUpdate(update)) => update.status.unwrap(),
            other => panic!("{other:?}"),
        });
        let mut statuses: Vec<_> = statuses.collect();
        assert_eq!(statuses.pop(), Some(now.clone()));
        let working =
            |status: &wire::TaskStatus| status.state == TaskState::Working.into() && status.timestamp.is_none();
        assert!(statuses.iter().all(working));
        statuses.into_iter().map(|status| status.message.unwrap().message_id).collect()
    };
    let mut fold = fold_of(Vec::new());
    assert_eq!(told(&fold, history.clone()), [""; 0], "which of them are older than the follower is not known");
    fold.saw_message("u1");
    assert_eq!(told(&fold, history.clone()), ["m1", "m2", "m3"]);
    fold.apply(&item(status_update(status(TaskState::Working.into(), Some(message("m1")), 3)))).unwrap();
    assert_eq!(told(&fold, history.clone()), ["m2", "m3"]);
    assert_eq!(told(&fold, Vec::new()), [""; 0]);
    let missed = fold.missed(snapshot(history.clone())).unwrap();
    missed.iter().for_each(|item| fold.apply(item).unwrap());
    assert_eq!(fold.missed(snapshot(history)), Ok(Vec::new()));
}

#[test]
fn what_is_of_another_task_or_context_is_refused_and_changes_nothing() {
    let known = vec![artifact("a", vec![text("a")])];
    let mut fold = fold_of(known.clone());
    let long = "x".repeat(100_000);
    let task_of = |id: &str, context_id: &str| wire::Task {
        id: id.to_owned(),
        context_id: context_id.to_owned(),
        ..task(Vec::new())
    };
    let update_of = |id: &str, context_id: &str| {
        let Payload::StatusUpdate(update) = status_update(status(wire::TaskState(3), None, 7)) else { unreachable!() };
        wire::TaskStatusUpdateEvent { task_id: id.to_owned(), context_id: context_id.to_owned(), ..update }
    };
    let piece_of = |id: &str, context_id: &str| wire::TaskArtifactUpdateEvent {
        task_id: id.to_owned(),
        context_id: context_id.to_owned(),
        artifact: Some(artifact("b", vec![text("b")])),
        ..wire::TaskArtifactUpdateEvent::default()
    };
    let message = wire::Message { task_id: "u".to_owned(), ..agent_message("m", "text") };
    for (payload, expected) in [
        (Payload::Task(task_of("u", "c")), "the task is of task \"u\", not of task \"t\"".to_owned()),
        (Payload::Task(task_of("t", "d")), "the task is of context \"d\", not of context \"c\"".to_owned()),
        (Payload::Task(task_of("", "c")), "the task has no task id".to_owned()),
        (Payload::Task(wire::Task { status: None, ..task_of("t", "c") }), "the task has no status".to_owned()),
        (
            Payload::StatusUpdate(update_of("u", "c")),
            "the status update is of task \"u\", not of task \"t\"".to_owned(),
        ),
        (
            Payload::StatusUpdate(update_of("t", &long)),
            format!("the status update is of context \"{}\", not of context \"c\"", &long[..ID_CHARS_MAX]),
        ),
        (
            Payload::StatusUpdate(wire::TaskStatusUpdateEvent { status: None, ..update_of("t", "c") }),
            "the status update has no status".to_owned(),
        ),
        (
            Payload::ArtifactUpdate(piece_of("T", "c")),
            "the artifact update is of task \"T\", not of task \"t\"".to_owned(),
        ),
        (
            Payload::ArtifactUpdate(wire::TaskArtifactUpdateEvent { artifact: None, ..piece_of("t", "c") }),
            "the artifact update has no artifact".to_owned(),
        ),
        (Payload::Message(message), "the message is of task \"u\", not of task \"t\"".to_owned()),
    ] {
        assert_eq!(fold.apply(&item(payload)).unwrap_err().to_string(), expected);
        assert!(fold.is_same(&task(known.clone())));
    }
    let nothing = wire::StreamResponse { payload: None };
    assert_eq!(fold.apply(&nothing).unwrap_err().to_string(), "the item of the stream has no payload");
    for other in
        [task_of("u", "c"), task_of("t", "d"), task_of("", "c"), wire::Task { status: None, ..task_of("t", "c") }]
    {
        assert!(!fold.is_same(&other));
        assert!(fold.missed(other).is_err());
    }
    let mut fold = Fold::of_task("t");
    assert!(fold.apply(&item(Payload::Task(task_of("u", "c")))).is_err());
    fold.apply(&item(Payload::StatusUpdate(update_of("t", "")))).unwrap();
    assert_eq!((fold.task_id(), fold.context_id.as_deref()), (Some("t"), None));
    fold.apply(&item(Payload::StatusUpdate(update_of("t", "c")))).unwrap();
    assert_eq!(fold.context_id.as_deref(), Some("c"));
}

#[test]
fn a_direct_answer_says_nothing_of_a_task() {
    let mut fold = Fold::new();
    fold.apply(&item(Payload::Message(agent_message("m", "hello")))).unwrap();
    assert_eq!((fold.task_id(), fold.state().is_none()), (None, true));
}

#[test]
fn of_two_artifacts_with_one_id_the_last_counts() {
    let snapshot = task(vec![artifact("a", vec![text("1")]), artifact("a", vec![text("2")])]);
    let fold = fold_of(snapshot.artifacts.clone());
    assert!(fold.is_same(&snapshot));
    assert_eq!(fold.missed(snapshot.clone()), Ok(Vec::new()));
    let missed = fold_of(Vec::new()).missed(snapshot).unwrap();
    assert_eq!(missed, [item(artifact_update(artifact("a", vec![text("2")]), false))]);
}

#[test]
fn an_artifact_that_is_gone_is_no_event_and_a_task_forgets_it() {
    let mut fold = fold_of(vec![artifact("a", vec![text("a")])]);
    assert_eq!(fold.missed(task(Vec::new())), Ok(Vec::new()));
    fold.apply(&item(Payload::Task(task(Vec::new())))).unwrap();
    let snapshot = task(vec![artifact("a", vec![text("a")])]);
    assert_eq!(fold.missed(snapshot).unwrap(), [item(artifact_update(artifact("a", vec![text("a")]), false))]);
}

#[test]
fn artifacts_beyond_the_limit_are_told_whole_each_time() {
    let mut fold = fold_of(Vec::new());
    let all: Vec<_> = (0..=ARTIFACTS_MAX).map(|number| artifact(&number.to_string(), vec![text("a")])).collect();
    for artifact in &all {
        fold.apply(&item(artifact_update(artifact.clone(), false))).unwrap();
    }
    for _ in 0..2 {
        let missed = fold.missed(task(all.clone())).unwrap();
        assert_eq!(missed, [item(artifact_update(all[ARTIFACTS_MAX].clone(), false))]);
        missed.iter().for_each(|item| fold.apply(item).unwrap());
    }
    fold.apply(&item(artifact_update(artifact("5", vec![text("b")]), true))).unwrap();
    let mut now = all[..ARTIFACTS_MAX].to_vec();
    now[5].parts.push(text("b"));
    assert!(fold.is_same(&task(now)), "those within it are followed on");
}

#[test]
fn an_artifact_with_too_many_details_is_told_whole_until_it_has_fewer() {
    let with = |id: &str, count: usize| wire::Artifact {
        metadata: Some((0..count).map(|key| (key.to_string(), Value::Null)).collect()),
        ..artifact(id, vec![text("a")])
    };
    let (small, large) = (with("s", 1), with("l", ARTIFACT_DETAILS_MAX));
    let mut fold = fold_of(vec![small.clone(), large.clone()]);
    let snapshot = task(vec![small.clone(), large.clone()]);
    for _ in 0..2 {
        let missed = fold.missed(snapshot.clone()).unwrap();
        assert_eq!(missed, [item(artifact_update(large.clone(), false))]);
        missed.iter().for_each(|item| fold.apply(item).unwrap());
    }
    // What is appended to what was forgotten does not make it known.
    fold.apply(&item(artifact_update(artifact("l", vec![text("b")]), true))).unwrap();
    assert!(!fold.is_same(&task(vec![artifact("l", vec![text("b")])])));
    let fits = with("l", ARTIFACT_DETAILS_MAX - 1);
    fold.apply(&item(artifact_update(fits.clone(), false))).unwrap();
    assert!(fold.is_same(&task(vec![small, fits])));
}

#[test]
fn details_that_were_replaced_do_not_count() {
    let mut fold = fold_of(Vec::new());
    for version in 0_usize..6 {
        let metadata = (0..ARTIFACT_DETAILS_MAX / 2).map(|key| (key.to_string(), json!(version))).collect();
        let artifact = wire::Artifact { metadata: Some(metadata), ..artifact("a", vec![text("a")]) };
        fold.apply(&item(artifact_update(artifact.clone(), version > 2))).unwrap();
        let mut now = task(vec![artifact]);
        now.artifacts[0].parts.resize(if version > 2 { version - 1 } else { 1 }, text("a"));
        assert!(fold.is_same(&now), "version {version}");
    }
}

#[test]
fn the_newest_message_ids_are_remembered() {
    let mut messages = SeenMessages::default();
    let history = |last: usize| (0..=last).map(|number| agent_message(&number.to_string(), "text")).collect();
    (0..=MESSAGES_MAX).for_each(|number| messages.insert(&number.to_string()));
    let behind = messages.behind(history(MESSAGES_MAX + 2), None);
    let ids: Vec<_> = behind.into_iter().map(|message| message.message_id).collect();
    assert_eq!(ids, [(MESSAGES_MAX + 1).to_string(), (MESSAGES_MAX + 2).to_string()]);
    let forgotten = vec![agent_message("0", "text"), agent_message("new", "text")];
    assert_eq!(messages.behind(forgotten, None), [], "the oldest is forgotten, and so nothing is told");
}
