use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::model::{Keeps, joined};
use super::*;

fn any_part() -> impl Strategy<Value = wire::Part> {
    let words = select(vec!["", "a", "b", "ab", "é", "日本"]);
    prop_oneof![
        6 => words.clone().prop_map(text),
        1 => words.prop_map(|word| wire::Part { media_type: "text/html".to_owned(), ..text(word) }),
        1 => select(vec![json!(1), json!(1.5), json!({"k": null}), Value::Null]).prop_map(data),
        1 => Just(wire::Part { content: Some(wire::PartContent::Raw("ab".into())), ..wire::Part::default() }),
        1 => Just(wire::Part::default()),
    ]
}

fn any_artifact() -> impl Strategy<Value = wire::Artifact> {
    let metadata = select(vec![Value::Null, json!({}), json!({"k": 1}), json!({"k": 2}), json!({"l": [1]})]);
    let extensions = select(vec![vec![], vec!["x"], vec!["y"], vec!["x", "y"]]);
    let names = select(vec!["", "", "n", "m"]);
    let id = select(vec!["p", "q", "r"]);
    (id, vec(any_part(), 0..4), names.clone(), names, metadata, extensions).prop_map(
        |(id, parts, name, description, metadata, extensions)| wire::Artifact {
            name: name.to_owned(),
            description: description.to_owned(),
            metadata: metadata.as_object().cloned(),
            extensions: extensions.into_iter().map(str::to_owned).collect(),
            ..artifact(id, parts)
        },
    )
}

/// An artifact's piece, or a state with or without a message.
#[derive(Clone, Debug)]
enum Event {
    Artifact(wire::Artifact, bool),
    Status(i32, bool),
}

impl Event {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            3 => (any_artifact(), prop::bool::weighted(0.75)).prop_map(|(piece, append)| Self::Artifact(piece, append)),
            1 => (0..10, any::<bool>()).prop_map(|(state, has_message)| Self::Status(state, has_message)),
        ]
    }

    /// Makes of events the items of a stream: times and ids count up.
    fn items(events: &[Self]) -> Vec<wire::StreamResponse> {
        let numbered = events.iter().zip(1..);
        let payloads = numbered.map(|(event, number)| match event {
            Self::Artifact(piece, append) => artifact_update(piece.clone(), *append),
            Self::Status(state, has_message) => {
                let message = has_message.then(|| agent_message(&format!("m{number}"), "text"));
                status_update(status(wire::TaskState(*state), message, number))
            }
        });
        payloads.map(item).collect()
    }
}

fn any_keeps() -> impl Strategy<Value = Keeps> {
    select(Keeps::ALL.to_vec())
}

/// What a follower saw of a server: its fold, the task as it pictures it, and the items that it was handed.
struct Follower {
    fold: Fold,
    view: wire::Task,
    told: Vec<wire::StreamResponse>,
}

impl Follower {
    fn hand(&mut self, item: &wire::StreamResponse) {
        self.fold.apply(item).unwrap();
        Keeps::Parts.apply(&mut self.view, item);
        self.told.push(item.clone());
    }

    /// Sees the task again after a cut.
    fn reconnect(&mut self, snapshot: &wire::Task) {
        let missed = self.fold.missed(snapshot.clone()).unwrap();
        assert_eq!(missed.is_empty(), self.fold.is_same(snapshot));
        missed.iter().for_each(|item| self.hand(item));
        assert_eq!(self.fold.missed(snapshot.clone()), Ok(Vec::new()), "it is told once");
        assert!(self.fold.is_same(snapshot));
        assert_eq!(comparable(&self.view), comparable(snapshot));
        assert_eq!(self.fold.state(), snapshot.status.as_ref().map(|status| status.state));
    }

    /// Follows a server through cuts: of each item it is said whether it arrived.
    fn follow(keeps: Keeps, items: &[wire::StreamResponse], arrived: &[bool]) -> (Self, wire::Task) {
        let mut server = wire::Task { history: vec![user_message()], ..task(Vec::new()) };
        let mut follower = Self { fold: Fold::new(), view: server.clone(), told: Vec::new() };
        follower.fold.apply(&item(Payload::Task(server.clone()))).unwrap();
        let mut is_connected = true;
        for (item, arrived) in items.iter().zip(arrived.iter().chain(std::iter::repeat(&true))) {
            if *arrived && !is_connected {
                follower.reconnect(&server);
            }
            is_connected = *arrived;
            keeps.apply(&mut server, item);
            if is_connected {
                follower.hand(item);
            }
        }
        follower.reconnect(&server);
        (follower, server)
    }
}

fn user_message() -> wire::Message {
    wire::Message { role: Role::User.into(), ..agent_message("u", "text") }
}

/// What a task says, however its texts are cut.
fn comparable(task: &wire::Task) -> (Option<wire::TaskStatus>, Vec<wire::Artifact>) {
    let artifacts = task.artifacts.iter().map(|artifact| wire::Artifact {
        parts: joined(&artifact.parts),
        metadata: Some(artifact.metadata.clone().unwrap_or_default()),
        ..artifact.clone()
    });
    (task.status.clone(), artifacts.collect())
}

proptest! {
    #[test]
    fn through_any_cuts_a_follower_sees_what_the_server_has(
        keeps in any_keeps(),
        events in vec(Event::any(), 0..20),
        arrived in vec(any::<bool>(), 0..20),
    ) {
        Follower::follow(keeps, &Event::items(&events), &arrived);
    }

    #[test]
    fn status_messages_come_once_and_in_order(
        keeps in any_keeps(),
        events in vec(Event::any(), 0..20),
        arrived in vec(any::<bool>(), 0..20),
    ) {
        let items = Event::items(&events);
        let (follower, _server) = Follower::follow(keeps, &items, &arrived);
        let messages = |items: &[wire::StreamResponse]| -> Vec<_> {
            let statuses = items.iter().filter_map(|item| match &item.payload {
                Some(Payload::StatusUpdate(update)) => update.status.clone(),
                _ => None,
            });
            statuses.filter_map(|status| status.message).collect()
        };
        prop_assert_eq!(messages(&follower.told), messages(&items));
    }

    #[test]
    fn what_only_grows_is_told_once_and_part_by_part(
        events in vec(Event::any(), 0..20),
        arrived in vec(any::<bool>(), 0..20),
    ) {
        let growing = events.into_iter().map(|event| match event {
            Event::Artifact(piece, _) => Event::Artifact(artifact(&piece.artifact_id, piece.parts), true),
            Event::Status(..) => event,
        });
        let items = Event::items(&growing.collect::<Vec<_>>());
        let (follower, server) = Follower::follow(Keeps::Parts, &items, &arrived);
        prop_assert_eq!(&follower.view.artifacts, &server.artifacts);
        prop_assert_eq!(parts_of(&follower.told), parts_of(&items));
    }

    #[test]
    fn no_text_is_told_twice_though_the_server_joins_it(
        keeps in any_keeps(),
        words in vec(vec(select(vec!["", "a", "b", "ab", "é"]), 1..3), 1..20),
        arrived in vec(any::<bool>(), 0..20),
    ) {
        let pieces = words.iter().map(|words| artifact("p", words.iter().copied().map(text).collect()));
        let items: Vec<_> = pieces.map(|piece| item(artifact_update(piece, true))).collect();
        let (follower, _server) = Follower::follow(keeps, &items, &arrived);
        prop_assert_eq!(joined(&parts_of(&follower.told)), joined(&parts_of(&items)));
    }

    #[test]
    fn nothing_that_is_said_breaks_it(
        items in vec(any_item(), 0..20),
        artifacts in vec(any_artifact(), 0..4),
        id in any_id(),
    ) {
        let mut fold = Fold::new();
        let snapshot = wire::Task { id: id.to_owned(), ..task(artifacts) };
        for item in &items {
            let _refused = fold.apply(item);
            match fold.missed(snapshot.clone()) {
                Ok(missed) => {
                    prop_assert_eq!(missed.is_empty(), fold.is_same(&snapshot));
                    let mut fold = fold.clone();
                    missed.iter().for_each(|item| fold.apply(item).unwrap());
                    prop_assert_eq!(fold.missed(snapshot.clone()), Ok(Vec::new()));
                }
                Err(_) => prop_assert!(!fold.is_same(&snapshot)),
            }
        }
    }
}

fn parts_of(items: &[wire::StreamResponse]) -> Vec<wire::Part> {
    let mut pieces: Vec<_> = items
        .iter()
        .filter_map(|item| match &item.payload {
            Some(Payload::ArtifactUpdate(update)) => update.artifact.clone(),
            _ => None,
        })
        .collect();
    pieces.sort_by(|one, other| one.artifact_id.cmp(&other.artifact_id));
    pieces.into_iter().flat_map(|piece| piece.parts).collect()
}

fn any_id() -> impl Strategy<Value = &'static str> {
    select(vec!["t", "t", "t", "", "u", "c"])
}

/// Items as a broken or hostile server may send them.
fn any_item() -> impl Strategy<Value = wire::StreamResponse> {
    let status_of = |state| prop::option::weighted(0.9, Just(status(wire::TaskState(state), Some(user_message()), 1)));
    let ids = || (any_id(), any_id()).prop_map(|(id, context_id)| (id.to_owned(), context_id.to_owned()));
    let tasks = (ids(), (0..10).prop_flat_map(status_of), vec(any_artifact(), 0..4));
    let statuses = (ids(), (-1..10).prop_flat_map(status_of));
    let pieces = (ids(), prop::option::weighted(0.9, any_artifact()), any::<bool>());
    prop_oneof![
        1 => Just(wire::StreamResponse { payload: None }),
        2 => tasks.prop_map(|((id, context_id), status, artifacts)| {
            item(Payload::Task(wire::Task { id, context_id, status, ..task(artifacts) }))
        }),
        2 => statuses.prop_map(|((task_id, context_id), status)| {
            item(Payload::StatusUpdate(wire::TaskStatusUpdateEvent { task_id, context_id, status, metadata: None }))
        }),
        4 => pieces.prop_map(|((task_id, context_id), artifact, append)| {
            let update = wire::TaskArtifactUpdateEvent::default();
            item(Payload::ArtifactUpdate(wire::TaskArtifactUpdateEvent { task_id, context_id, artifact, append, ..update }))
        }),
        1 => ids().prop_map(|(task_id, context_id)| {
            item(Payload::Message(wire::Message { task_id, context_id, ..user_message() }))
        }),
    ]
}
