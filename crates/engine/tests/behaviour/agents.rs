//! Agents: what they say about new messages, and what becomes of their errors.

use std::time::Duration;

use longhaul_engine::{Accept, AgentError, ArtifactPiece, EngineError, Outcome, SendReply, TurnError, text_part};
use longhaul_protocol::TaskState::{AuthRequired, Completed, Failed, Rejected, Submitted, Working};
use longhaul_protocol::{A2aError, json, wire};
use longhaul_testkit::{Gate, Operation, ScriptedAgent, Step, piece, send};

use crate::world::*;

const SECRET: &str = "secret-4711";

on_each_store! {
    async fn a_direct_answer_stores_nothing(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![]]).accepting(Accept::Message(vec![text_part("hello")]))).await;
        let commits = world.store.count(Operation::Commit);
        let SendReply::Message(message) = world.try_send(send("hi").in_context("c")).await.expect("it is taken") else { panic!("a task") };
        assert_eq!((text_of(&message.parts), message.context_id.as_str(), message.task_id.as_str()), ("hello".into(), "c", ""));
        let items = collect(world.stream(send("hi")).await).await;
        assert_eq!((items.len(), items[0].sequence), (1, None));
        assert!(matches!(payload(&items[0]), wire::StreamResponsePayload::Message(_)));
        assert_eq!(world.store.count(Operation::Commit), commits);
    }

    async fn a_refusal_makes_a_rejected_task(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![]]).accepting(Accept::Reject { parts: vec![text_part("no")] })).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), said(&task), history(&task)), (Rejected, "no".into(), vec!["go".into()]));
        let items = collect(world.stream(send("go")).await).await;
        assert_eq!(states(&items), [Submitted, Rejected]);
        assert!(world.agent.runs().is_empty());
    }

    async fn an_authorization_may_come_before_any_work(place) {
        let wait = Duration::from_secs(11);
        let accept = Accept::RequireAuth { parts: vec![text_part("log in")], resume_after: Some(wait) };
        let world = place.world(ScriptedAgent::steps(vec![vec![]]).accepting(accept)).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), said(&task)), (AuthRequired, "log in".into()));
        assert!(world.agent.runs().is_empty());
        world.clock.pass(wait).await;
        world.until(&task.id, Completed).await;
        assert_eq!(states(&world.log(&task.id).await), [Submitted, AuthRequired, Working, Completed]);
    }

    async fn messages_that_continue_a_task_are_not_asked_about(place) {
        let turns = vec![vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))], vec![]];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        world.send(send("on").to(&task.id)).await;
        assert_eq!(world.agent.asked(), ["go"]);
    }

    async fn an_agent_that_does_not_say_in_time_has_accepted(place) {
        let gate = Gate::new();
        let held = gate.clone();
        let agent = ScriptedAgent::steps(vec![vec![]]).accepting_with(move |_| {
            let gate = held.clone();
            Box::pin(async move { gate.pass().await; Ok(Accept::Reject { parts: vec![text_part("too late")] }) })
        });
        let world = place.world(agent).await;
        let sending = world.sending(send("go"));
        world.clock.pass(ACCEPT).await;
        assert_eq!(state(&answer(sending).await), Completed);
    }

    async fn an_error_or_a_panic_while_accepting_refuses_the_send_without_a_word_of_it(place) {
        for panics in [false, true] {
            let agent = ScriptedAgent::steps(vec![vec![]]).accepting_with(move |_| Box::pin(async move {
                assert!(!panics, "{SECRET}");
                Err(AgentError::new(SECRET))
            }));
            let world = place.world(agent).await;
            let error = world.try_send(send("go")).await.expect_err("it is refused");
            assert!(matches!(error, EngineError::Internal { .. }), "{error:?}");
            assert!(!format!("{:?}", A2aError::from(error)).contains(SECRET));
            assert!(world.agent.runs().is_empty());
        }
    }

    async fn an_answer_that_cannot_be_shown_is_the_agents_error(place) {
        for accept in [Accept::Message(Vec::new()), Accept::Message(vec![wire::Part::default()])] {
            let world = place.world(ScriptedAgent::steps(vec![vec![]]).accepting(accept)).await;
            let refused = world.try_send(send("go")).await;
            assert!(matches!(refused, Err(EngineError::InvalidAgentResponse(_))), "{refused:?}");
        }
    }

    async fn a_failing_agent_fails_its_task_without_a_word_of_its_cause(place) {
        for last in [Step::Fail(SECRET), Step::Panic(SECRET)] {
            for late in [false, true] {
                let mut steps = vec![last.clone()];
                if late {
                    steps.insert(0, Step::Artifact("a", "before", false));
                }
                let world = place.world(ScriptedAgent::steps(vec![steps])).await;
                let task = world.send(send("go")).await;
                assert_eq!((state(&task), task.artifacts.len()), (Failed, usize::from(late)));
                assert!(!said(&task).is_empty(), "a person can read why");
                assert_eq!(world.task(&task.id).await, task);
                let items = collect(world.stream(send("again")).await).await;
                assert_eq!(states(&items).last(), Some(&Failed));
                let told: String = items.iter().map(|item| String::from_utf8_lossy(&item.payload).into_owned()).collect();
                assert!(!told.contains(SECRET));
                assert!(!String::from_utf8_lossy(&json::to_json(&task)).contains(SECRET));
            }
        }
    }

    async fn what_an_agent_says_of_its_failure_is_shown(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::End(Outcome::Fail(Some(vec![text_part("no paper")])))]])).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), said(&task)), (Failed, "no paper".into()));
    }

    async fn appending_to_an_unknown_artifact_fails_the_task_and_leaves_nothing_of_it(place) {
        let steps = vec![Step::Artifact("a", "x", false), Step::Artifact("b", "half", true)];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), artifacts(&task)), (Failed, vec![("a".into(), "x".into())]));
    }

    async fn appending_after_the_last_chunk_is_refused_and_a_new_version_is_not(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            let last = ArtifactPiece { last_chunk: true, ..piece("a", "1", false) };
            turn.artifact(last).await?;
            let refused = turn.artifact(piece("a", "2", true)).await;
            assert!(matches!(refused, Err(TurnError::Artifact(_))), "{refused:?}");
            turn.artifact(piece("a", "3", false)).await?;
            turn.artifact(piece("a", "4", true)).await?;
            Ok(Outcome::Complete(None))
        }));
        let world = place.world(agent).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), artifacts(&task)), (Completed, vec![("a".into(), "34".into())]));
    }

    async fn what_is_known_of_artifacts_holds_over_turns(place) {
        let turns = vec![
            vec![Step::Artifact("a", "1", false), Step::End(Outcome::RequireInput(vec![text_part("?")]))],
            vec![Step::Artifact("a", "2", true), Step::End(Outcome::RequireInput(vec![text_part("?")]))],
            vec![Step::Artifact("b", "3", true)],
        ];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        let task = world.send(send("on").to(&task.id)).await;
        assert_eq!(artifacts(&task), [("a".to_owned(), "12".to_owned())]);
        assert_eq!(state(&world.send(send("on").to(&task.id)).await), Failed);
    }

    async fn invalid_parts_are_refused(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            let nothing = wire::Part::default();
            let invalid = |refused: Result<(), TurnError>| assert!(matches!(refused, Err(TurnError::Invalid { .. })), "{refused:?}");
            invalid(turn.progress(Vec::new()).await);
            invalid(turn.progress(vec![nothing.clone()]).await);
            invalid(turn.artifact(piece("", "no id", false)).await);
            let mut empty = piece("a", "", false);
            empty.artifact.parts = vec![nothing];
            invalid(turn.artifact(empty).await);
            Ok(Outcome::Complete(Some(Vec::new())))
        }));
        let world = place.world(agent).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), task.artifacts.len()), (Failed, 0), "a closing word without words is invalid too");
    }

    async fn events_that_are_too_large_are_refused(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            let large = "x".repeat(5_000);
            let refused = [
                turn.artifact(piece("a", &large, false)).await,
                turn.progress(vec![text_part(&large)]).await,
            ];
            assert!(refused.iter().all(|refused| matches!(refused, Err(TurnError::TooLarge { .. }))), "{refused:?}");
            Ok(Outcome::Complete(Some(vec![text_part(large)])))
        }));
        let world = place.world_with(agent, longhaul_engine::Config { event_bytes_max: 4_000, ..config() }).await;
        assert_eq!(state(&world.send(send("go")).await), Failed);
    }

    async fn metadata_of_chunks_is_merged(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            for (at, key) in ["a", "b"].into_iter().enumerate() {
                let mut chunk = piece("x", "t", at > 0);
                chunk.artifact.metadata = wire_object(&format!("{{\"{key}\":1}}"));
                turn.artifact(chunk).await?;
            }
            Ok(Outcome::Complete(None))
        }));
        let world = place.world(agent).await;
        let task = world.send(send("go")).await;
        let metadata = task.artifacts[0].metadata.clone().expect("it has some");
        assert!(metadata.contains_key("a") && metadata.contains_key("b"));
    }

    async fn an_agent_that_says_canceled_unasked_has_failed(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::End(Outcome::Canceled(None))]])).await;
        assert_eq!(state(&world.send(send("go")).await), Failed);
    }

    async fn a_task_keeps_what_its_agent_does_later_to_its_own_copy(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            let mut chunk = piece("a", "as it was", false);
            turn.artifact(chunk.clone()).await?;
            chunk.artifact.parts.clear();
            Ok(Outcome::Complete(None))
        }));
        let world = place.world(agent).await;
        let mut task = world.send(send("go")).await;
        let id = task.id.clone();
        task.artifacts.clear();
        assert_eq!(artifacts(&world.task(&id).await), [("a".to_owned(), "as it was".to_owned())]);
    }
}

fn wire_object(text: &str) -> Option<longhaul_protocol::JsonObject> {
    let part: wire::Part =
        json::from_json(format!("{{\"text\":\"\",\"metadata\":{text}}}").as_bytes()).expect("valid JSON");
    part.metadata
}
