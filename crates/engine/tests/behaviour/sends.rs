//! SendMessage: waiting, answering at once, refusals, and callers that leave.

use std::sync::Arc;

use longhaul_engine::{Config, EngineError, Outcome, Scope, SendReply, text_part};
use longhaul_protocol::{TaskState, wire};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, Step, end_of, send};

use crate::world::*;

/// An agent that ends as the message's first word says.
fn obedient() -> ScriptedAgent {
    ScriptedAgent::new(|turn| {
        let text = turn.message().text();
        Box::pin(async move { Ok(end_of(&text)) })
    })
}

on_each_store! {
    async fn a_blocking_send_waits_and_answers_with_all_artifacts(place) {
        let gate = Gate::new();
        let steps = vec![
            Step::Artifact("a", "one ", false),
            Step::Wait(gate.clone()),
            Step::Artifact("a", "two", true),
            Step::Artifact("b", "three", false),
            Step::End(Outcome::Complete(Some(vec![text_part("done")]))),
        ];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let sending = world.sending(send("go"));
        gate.reached(1).await;
        assert!(!sending.is_finished());
        gate.open();
        let task = answer(sending).await;
        assert_eq!(state(&task), TaskState::Completed);
        assert_eq!(artifacts(&task), [("a".into(), "one two".into()), ("b".into(), "three".into())]);
        assert_eq!((said(&task), history(&task)), ("done".into(), vec!["go".into()]));
        assert_eq!(task, world.task(&task.id).await);
    }

    async fn an_immediate_send_answers_before_the_turn_ends(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])).await;
        let task = world.send(send("go").immediately()).await;
        assert_eq!(state(&task), TaskState::Working);
        gate.open();
        world.until(&task.id, TaskState::Completed).await;
    }

    async fn contexts_are_made_or_kept(place) {
        let world = place.world(obedient()).await;
        let made = world.send(send("input")).await;
        assert!(!made.context_id.is_empty());
        assert_eq!(world.send(send("done").to(&made.id)).await.context_id, made.context_id);
        let given = world.send(send("input").in_context("my-ctx 1/ü")).await;
        assert_eq!(given.context_id, "my-ctx 1/ü");
        assert_eq!(given.history[0].context_id, "my-ctx 1/ü");
        assert_eq!(given.history[0].task_id, given.id);
    }

    async fn a_message_with_another_context_is_refused(place) {
        let world = place.world(obedient()).await;
        let task = world.send(send("input")).await;
        let refused = world.try_send(send("more").to(&task.id).in_context("other")).await;
        let Err(EngineError::Invalid(violations)) = refused else { panic!("{refused:?}") };
        assert_eq!(violations[0].field, "message.contextId");
        assert_eq!(world.task(&task.id).await, task);
        let again = world.send(send("more").to(&task.id).in_context(&task.context_id)).await;
        assert_eq!(state(&again), TaskState::Completed);
    }

    async fn a_task_that_ended_takes_no_message(place) {
        let world = place.world(obedient()).await;
        for (text, ends) in [("ok", TaskState::Completed), ("fail", TaskState::Failed), ("reject", TaskState::Rejected)] {
            let task = world.send(send(text)).await;
            assert_eq!(state(&task), ends);
            let refused = world.try_send(send("more").to(&task.id)).await;
            assert!(matches!(refused, Err(EngineError::UnsupportedOperation(_))), "{refused:?}");
            assert_eq!(world.task(&task.id).await, task);
        }
        let canceled = world.send(send("input")).await;
        world.cancel(&canceled.id).await.expect("it waits");
        let refused = world.try_send(send("more").to(&canceled.id)).await;
        assert!(matches!(refused, Err(EngineError::UnsupportedOperation(_))), "{refused:?}");
    }

    async fn a_task_of_another_owner_is_not_found(place) {
        let world = place.world(obedient()).await;
        let task = world.send(send("input").in_scope(owner("a"))).await;
        let refused = world.try_send(send("more").to(&task.id).in_scope(owner("b"))).await;
        let nobody = world.try_send(send("more").to("no-such-task").in_scope(owner("b"))).await;
        assert!(matches!(refused, Err(EngineError::TaskNotFound(_))), "{refused:?}");
        assert!(matches!(nobody, Err(EngineError::TaskNotFound(_))), "{nobody:?}");
        let canceled = world.engine.cancel_task(&owner("b"), &task.id).await;
        assert!(matches!(canceled, Err(EngineError::TaskNotFound(_))), "{canceled:?}");
        assert!(matches!(world.try_subscribe(&task.id, None).await, Err(EngineError::TaskNotFound(_))));
        assert!(matches!(world.try_subscribe(&task.id, Some(1)).await, Err(EngineError::TaskNotFound(_))));
    }

    async fn only_media_types_that_the_agent_takes_come_in(place) {
        let config = Config { input_modes: vec!["text/*".into(), "application/json".into()], ..config() };
        let world = place.world_with(obedient(), config).await;
        let raw = wire::Part { media_type: "image/png".into(), ..wire::Part::raw("x") };
        let refused = world.try_send(send("").with_parts(vec![text_part("see"), raw])).await;
        let Err(EngineError::ContentTypeNotSupported { field, media_type }) = refused else { panic!("{refused:?}") };
        assert_eq!((field.as_str(), media_type.as_str()), ("message.parts[1].mediaType", "image/png"));
        let html = wire::Part { media_type: "text/html".into(), ..text_part("<p>") };
        let parts = vec![text_part("a"), html, wire::Part::data(1), wire::Part::raw("no type")];
        assert_eq!(state(&world.send(send("").with_parts(parts)).await), TaskState::Completed);
    }

    async fn nothing_is_begun_in_a_shutdown(place) {
        let world = place.world(obedient()).await;
        world.engine.shutdown(HANGS).await.expect("it goes down");
        let refused = world.try_send(send("go")).await;
        assert!(matches!(refused, Err(EngineError::Unavailable { .. })), "{refused:?}");
        assert!(world.agent.runs().is_empty());
    }

    async fn a_shutdown_ends_who_waits_and_hands_the_turn_back(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        let mut stream = world.subscribe(&task.id, None).await;
        first(&mut stream).await;
        let waiting = world.sending(send("more").to(&task.id));
        world.agent.ran(1).await;
        world.engine.shutdown(std::time::Duration::ZERO).await.expect("it goes down");
        assert!(stream.next().await.is_none());
        let waited = waiting.await.expect("no panic");
        assert!(matches!(waited, Err(EngineError::Unavailable { .. })), "{waited:?}");
        let next = place.world(obedient()).await;
        next.until(&task.id, TaskState::Completed).await;
        assert_eq!(next.agent.runs()[0].attempt, 1, "handed back is not lost");
    }

    async fn a_caller_that_leaves_changes_nothing(place) {
        let gate = Gate::new();
        let steps = vec![Step::Artifact("a", "1", false), Step::Wait(gate.clone()), Step::Artifact("a", "2", true)];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let sending = world.sending(send("go"));
        gate.reached(1).await;
        let task_id = world.agent.runs()[0].task_id.as_str().to_owned();
        sending.abort();
        assert!(sending.await.expect_err("it was aborted").is_cancelled());
        gate.open();
        world.until(&task_id, TaskState::Completed).await;
        assert_eq!(artifacts(&world.task(&task_id).await), [("a".into(), "12".into())]);
        assert_eq!(world.agent.runs().len(), 1);
    }

    async fn a_caller_that_leaves_during_the_first_commit_leaves_no_task_behind_without_a_worker(place) {
        let world = place.world(obedient()).await;
        for immediate in [false, true] {
            let (committed, runs) = (Gate::new(), world.agent.runs().len());
            world.store.next(Operation::Commit, Fault::HoldAnswer(committed.clone()));
            let sending = world.sending(if immediate { send("go").immediately() } else { send("go") });
            committed.reached(1).await;
            sending.abort();
            assert!(sending.await.expect_err("it was aborted").is_cancelled());
            committed.open();
            world.agent.ran(runs + 1).await;
            let task_id = world.agent.runs()[runs].task_id.as_str().to_owned();
            world.until(&task_id, TaskState::Completed).await;
        }
    }

    async fn a_caller_that_leaves_while_a_task_goes_on_leaves_no_task_behind_without_a_worker(place) {
        let world = place.world(obedient()).await;
        for operation in [Operation::Commit, Operation::Snapshot] {
            let task = world.send(send("input")).await;
            let held = Gate::new();
            world.store.next(operation, Fault::HoldAnswer(held.clone()));
            let (streaming, task_id) = (world.clone(), task.id.clone());
            let stream = beside(async move { streaming.engine.send_streaming_message(send("done").to(task_id).build()).await.is_ok() });
            held.reached(1).await;
            stream.abort();
            assert!(stream.await.expect_err("it was aborted").is_cancelled());
            held.open();
            world.until(&task.id, TaskState::Completed).await;
        }
    }

    async fn a_blocking_send_answers_with_the_rest_that_it_saw(place) {
        let gate = Gate::new();
        let wait = std::time::Duration::from_secs(11);
        let ask = Outcome::RequireAuth { parts: vec![text_part("log in")], resume_after: Some(wait) };
        let turns = vec![vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))], vec![Step::End(ask)], vec![Step::Wait(gate.clone())]];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        let reading = Gate::new();
        world.store.next(Operation::Snapshot, Fault::Hold(reading.clone()));
        let sending = world.sending(send("more").to(&task.id));
        reading.reached(1).await;
        world.clock.pass(wait).await;
        gate.reached(1).await;
        reading.open();
        let answered = answer(sending).await;
        assert_eq!((state(&answered), said(&answered)), (TaskState::AuthRequired, "log in".into()));
        gate.open();
        world.until(&task.id, TaskState::Completed).await;
    }

    async fn history_in_the_answer_is_limited_to_the_latest(place) {
        let world = place.world(obedient()).await;
        let task = world.send(send("input 1")).await;
        let task = world.send(send("input 2").to(&task.id).with_history(1)).await;
        assert_eq!(history(&task), ["input 2"]);
        let task = world.send(send("input 3").to(&task.id).immediately().with_history(2)).await;
        assert_eq!(history(&task).len(), 2);
        assert_eq!(history(&task)[1], "input 3");
        world.until(&task.id, TaskState::InputRequired).await;
        let stream = collect(world.stream(send("done").to(&task.id).with_history(0)).await).await;
        assert!(snapshot(&stream[0]).expect("a task").history.is_empty());
        let fresh = collect(world.stream(send("done").with_history(0)).await).await;
        assert!(snapshot(&fresh[0]).expect("a task").history.is_empty());
        assert!(world.send(send("done").with_history(0)).await.history.is_empty());
    }

    async fn no_message_is_in_the_history_twice(place) {
        let world = place.world(obedient()).await;
        let task = world.send(send("input 1")).await;
        world.send(send("auth 2").to(&task.id)).await;
        let task = world.send(send("done").to(&task.id)).await;
        assert_eq!(history(&task), ["input 1", "input 1", "auth 2", "auth 2", "done"]);
        assert_eq!(said(&task), "done");
        let status = task.status.clone().and_then(|status| status.message).expect("it says so").message_id;
        let mut ids: Vec<_> = task.history.iter().map(|message| message.message_id.clone()).chain([status]).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 6);
    }

    async fn five_hundred_immediate_sends_all_complete(place) {
        let world = place.world(obedient()).await;
        let sends: Vec<_> = (0..500).map(|_| world.sending(send("ok").immediately())).collect();
        for sending in sends {
            let task = answer(sending).await;
            world.until(&task.id, TaskState::Completed).await;
        }
        assert_eq!(world.agent.runs().len(), 500);
    }

    async fn a_store_that_fails_before_the_commit_leaves_nothing(place) {
        let world = place.world(obedient()).await;
        world.store.next(Operation::Commit, Fault::Before);
        let refused = world.try_send(send("go")).await;
        assert!(matches!(refused, Err(EngineError::Unavailable { .. })), "{refused:?}");
        assert!(world.agent.runs().is_empty());
        let SendReply::Task(task) = world.try_send(send("go")).await.expect("it works again") else { panic!("no task") };
        assert_eq!(state(&task), TaskState::Completed);
        assert!(Arc::strong_count(&world.agent) > 0);
        let listed = world.engine.get_task(&Scope::default(), &task.id, longhaul_engine::HistoryLimit::All).await;
        assert_eq!(listed.expect("it is there"), task);
    }
}
