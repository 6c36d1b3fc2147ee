//! GetTask, ListTasks and the versions of artifacts.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_engine::{ArtifactPiece, EngineError, HistoryLimit, Outcome, Scope, TasksQuery, VersionsQuery};
use longhaul_protocol::{ContextId, TaskState};
use longhaul_testkit::{ScriptedAgent, end_of, piece, send};

use crate::world::*;

fn obedient() -> ScriptedAgent {
    ScriptedAgent::new(|turn| {
        let text = turn.message().text();
        Box::pin(async move {
            turn.artifact(piece("a", &text, false)).await?;
            Ok(end_of(&text))
        })
    })
}

fn all() -> TasksQuery {
    TasksQuery {
        scope: Scope::default(),
        context_id: None,
        state: None,
        status_timestamp_after: None,
        page_size: 10,
        page_token: String::new(),
        history: HistoryLimit::All,
        artifacts: false,
    }
}

on_each_store! {
    async fn a_walk_sees_each_task_that_does_not_change_once(place) {
        let world = place.world(obedient()).await;
        let mut tasks = Vec::new();
        for number in 0..95 {
            world.clock.advance(Duration::from_millis(number % 3));
            tasks.push(world.send(send("input")).await.id);
        }
        let (mut seen, mut token, mut dice) = (BTreeMap::new(), String::new(), Dice::new(1));
        let mut touched = Vec::new();
        loop {
            let page = world.engine.list_tasks(TasksQuery { page_token: token, ..all() }).await.expect("a list");
            assert!(page.tasks.len() <= 10);
            for task in page.tasks {
                *seen.entry(task.id).or_insert(0) += 1;
            }
            if page.next_page_token.is_empty() {
                break;
            }
            token = page.next_page_token;
            let at = usize::try_from(dice.below(95)).expect("a small number");
            world.clock.advance(Duration::from_millis(1));
            touched.push(tasks[at].clone());
            // What changes may move, and new tasks come; neither disturbs the walk.
            let _ = world.try_send(send("input").to(&tasks[at])).await;
            world.send(send("ok")).await;
        }
        for task in tasks.iter().filter(|task| !touched.contains(task)) {
            assert_eq!(seen.get(task), Some(&1));
        }
    }

    async fn a_cursor_belongs_to_its_filters(place) {
        let world = place.world(obedient()).await;
        for _ in 0..12 {
            world.send(send("ok").in_context("c")).await;
        }
        let page = world.engine.list_tasks(all()).await.expect("a list");
        assert_eq!((page.tasks.len(), page.total_size), (10, 12));
        let token = page.next_page_token;
        let others = [
            TasksQuery { state: Some(TaskState::Completed), ..all() },
            TasksQuery { context_id: Some(ContextId::new("c").expect("an id")), ..all() },
            TasksQuery { scope: owner("b"), ..all() },
            TasksQuery { status_timestamp_after: Some(longhaul_engine::Clock::now(&*world.clock)), ..all() },
        ];
        for query in others {
            let refused = world.engine.list_tasks(TasksQuery { page_token: token.clone(), ..query }).await;
            let Err(EngineError::Invalid(violations)) = refused else { panic!("{refused:?}") };
            assert_eq!(violations[0].field, "pageToken");
        }
        for nonsense in ["x", "====", "AAAA", "ü", &token[1..], &format!("{token}A")[..token.len() / 2]] {
            let refused = world.engine.list_tasks(TasksQuery { page_token: nonsense.to_owned(), ..all() }).await;
            assert!(matches!(refused, Err(EngineError::Invalid(_))), "{nonsense}: {refused:?}");
        }
        // The size of the page and what comes with the tasks may change on the way.
        let rest = TasksQuery { page_token: token, page_size: 5, artifacts: true, ..all() };
        assert_eq!(world.engine.list_tasks(rest).await.expect("a list").tasks.len(), 2);
    }

    async fn filters_and_contents_of_a_list(place) {
        let world = place.world(obedient()).await;
        let old = world.send(send("ok one").in_context("c")).await;
        world.clock.advance(Duration::from_secs(1));
        let new = world.send(send("input two").in_context("c")).await;
        let ids = |page: longhaul_engine::TaskPage| page.tasks.into_iter().map(|task| task.id).collect::<Vec<_>>();
        let since = new.status.clone().and_then(|status| status.timestamp);
        let list = |query| world.engine.list_tasks(query);
        assert_eq!(ids(list(all()).await.expect("a list")), [new.id.clone(), old.id.clone()]);
        assert_eq!(ids(list(TasksQuery { status_timestamp_after: since, ..all() }).await.expect("a list")), std::slice::from_ref(&new.id));
        assert_eq!(ids(list(TasksQuery { state: Some(TaskState::Completed), ..all() }).await.expect("a list")), std::slice::from_ref(&old.id));
        assert!(list(TasksQuery { scope: owner("b"), ..all() }).await.expect("a list").tasks.is_empty());
        world.send(send("ok three").to(&new.id)).await;
        let short = list(TasksQuery { history: HistoryLimit::Latest(1), artifacts: true, ..all() }).await.expect("a list");
        assert_eq!(history(&short.tasks[0]), ["ok three"]);
        assert_eq!(artifacts(&short.tasks[0]), [("a".to_owned(), "ok three".to_owned())]);
        let plain = list(all()).await.expect("a list");
        assert!(plain.tasks.iter().all(|task| task.artifacts.is_empty()));
    }

    async fn history_of_a_task_is_limited_to_the_latest(place) {
        let world = place.world(obedient()).await;
        let task = world.send(send("input 1")).await;
        world.send(send("input 2").to(&task.id)).await;
        for (limit, wanted) in [(0, &[][..]), (1, &["input 2"]), (2, &["input 1", "input 2"]), (9, &["input 1", "input 1", "input 2"])] {
            let read = world.engine.get_task(&Scope::default(), &task.id, HistoryLimit::Latest(limit)).await.expect("it is there");
            assert_eq!(history(&read), wanted);
        }
    }

    async fn ids_of_any_form_are_just_not_found(place) {
        let world = place.world(obedient()).await;
        world.send(send("ok")).await;
        for id in ["", "..", "a/b", "../tasks", "a?b", "a\0b", "%", &"x".repeat(1000)] {
            let read = world.engine.get_task(&Scope::default(), id, HistoryLimit::All).await;
            assert!(matches!(read, Err(EngineError::TaskNotFound(_))), "{read:?}");
        }
    }

    async fn each_version_of_an_artifact_is_kept(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            for version in 1..=5 {
                turn.artifact(piece("a", format!("{version}"), false)).await?;
                turn.artifact(ArtifactPiece { last_chunk: version == 3, ..piece("a", "+", true) }).await?;
            }
            Ok(Outcome::Complete(None))
        }));
        let world = place.world(agent).await;
        let task = world.send(send("go")).await;
        let scope = Scope::default();
        for version in 1..=5 {
            let (found, artifact) = world.engine.artifact(&scope, &task.id, "a", Some(version)).await.expect("it is kept");
            assert_eq!((found, text_of(&artifact.parts)), (version, format!("{version}+")));
        }
        assert_eq!(world.engine.artifact(&scope, &task.id, "a", None).await.expect("it is kept").0, 5);
        let query = |page_token: &str| VersionsQuery {
            scope: scope.clone(),
            task_id: task.id.clone(),
            artifact_id: "a".into(),
            page_size: 2,
            page_token: page_token.into(),
        };
        let (mut versions, mut token) = (Vec::new(), String::new());
        loop {
            let page = world.engine.list_artifact_versions(query(&token)).await.expect("they are kept");
            versions.extend(page.versions);
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
        assert_eq!(versions.iter().map(|version| version.sequence).collect::<Vec<_>>(), [12, 10, 8, 6, 4]);
        assert_eq!(versions.iter().filter(|version| version.last_chunk).count(), 1);
        let refused = world.engine.list_artifact_versions(query("nonsense")).await;
        assert!(matches!(refused, Err(EngineError::Invalid(_))), "{refused:?}");
        for (artifact, version) in [("b", None), ("a", Some(6)), ("a", Some(0)), ("", None)] {
            let missing = world.engine.artifact(&scope, &task.id, artifact, version).await;
            assert!(matches!(missing, Err(EngineError::PartNotFound { .. })), "{missing:?}");
        }
        let hidden = world.engine.artifact(&owner("b"), &task.id, "a", None).await;
        assert!(matches!(hidden, Err(EngineError::TaskNotFound(_))), "{hidden:?}");
    }
}
