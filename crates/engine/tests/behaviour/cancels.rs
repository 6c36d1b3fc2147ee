//! CancelTask in every state, again, at once, and in races.

use longhaul_engine::{Config, EngineError, Outcome, text_part};
use longhaul_protocol::TaskState::{AuthRequired, Canceled, Completed, Failed, InputRequired, Submitted, Working};
use longhaul_testkit::{Gate, ScriptedAgent, Step, end_of, piece, send};

use crate::world::*;

type Counts = std::sync::Arc<std::sync::Mutex<Vec<tokio::sync::oneshot::Receiver<u64>>>>;

fn waiting() -> ScriptedAgent {
    ScriptedAgent::steps(vec![vec![Step::Canceled, Step::End(Outcome::Canceled(Some(vec![text_part("stopped")])))]])
}

on_each_store! {
    async fn a_running_turn_is_told_and_its_last_word_counts(place) {
        let world = place.world(waiting()).await;
        let task = world.send(send("go").immediately()).await;
        let canceled = world.cancel(&task.id).await.expect("it runs");
        assert_eq!((state(&canceled), said(&canceled)), (Canceled, "stopped".into()));
        assert_eq!(world.task(&task.id).await, canceled);
        assert_eq!(states(&world.log(&task.id).await), [Submitted, Working, Canceled]);
    }

    async fn a_turn_that_ends_otherwise_in_time_is_what_the_cancel_answers(place) {
        let steps = vec![Step::Canceled, Step::Artifact("a", "all of it", false), Step::End(Outcome::Complete(None))];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let task = world.send(send("go").immediately()).await;
        let completed = world.cancel(&task.id).await.expect("it runs");
        assert_eq!((state(&completed), artifacts(&completed).len()), (Completed, 1));
    }

    async fn an_error_or_a_panic_after_a_cancel_is_the_cancel(place) {
        for last in [Step::Fail("interrupted"), Step::Panic("interrupted")] {
            let world = place.world(ScriptedAgent::steps(vec![vec![Step::Canceled, last]])).await;
            let task = world.send(send("go").immediately()).await;
            assert_eq!(state(&world.cancel(&task.id).await.expect("it runs")), Canceled);
        }
    }

    async fn a_question_after_a_cancel_is_the_cancel(place) {
        for queued in [false, true] {
            let steps = vec![Step::Canceled, Step::End(Outcome::RequireInput(vec![text_part("sure?")]))];
            let world = place.world(ScriptedAgent::steps(vec![steps])).await;
            let task = world.send(send("go").immediately()).await;
            if queued {
                world.send(send("more").to(&task.id).immediately()).await;
            }
            assert_eq!(state(&world.cancel(&task.id).await.expect("it runs")), Canceled);
            assert_eq!(world.log(&task.id).await.last().and_then(state_of), Some(Canceled));
            assert_eq!(world.agent.runs().len(), 1);
        }
    }

    async fn a_stubborn_agent_is_stopped_after_its_grace(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone()), Step::Artifact("a", "late", false)]])).await;
        let sending = world.sending(send("go"));
        gate.reached(1).await;
        let task_id = world.agent.runs()[0].task_id.as_str().to_owned();
        let canceling = world.canceling(&task_id);
        world.clock.pass(GRACE).await;
        let canceled = canceling.await.expect("no panic").expect("it runs");
        assert_eq!(state(&canceled), Canceled);
        gate.open();
        assert_eq!(answer(sending).await, canceled);
        assert_eq!(states(&world.log(&task_id).await), [Submitted, Working, Canceled]);
        assert_eq!(world.task(&task_id).await, canceled);
    }

    async fn waiting_tasks_are_canceled_at_once(place) {
        let agent = ScriptedAgent::new(|turn| {
            let text = turn.message().text();
            Box::pin(async move { Ok(end_of(&text)) })
        });
        let world = place.world(agent).await;
        for (text, waits) in [("input", InputRequired), ("auth", AuthRequired)] {
            let task = world.send(send(text)).await;
            assert_eq!(state(&task), waits);
            let mut stayed = world.subscribe(&task.id, None).await;
            first(&mut stayed).await;
            let canceled = world.cancel(&task.id).await.expect("it waits");
            assert_eq!((state(&canceled), history(&canceled)), (Canceled, vec![text.to_owned(), text.into()]));
            assert_eq!(states(&collect(stayed).await), [Canceled]);
            assert!(canceled.status.expect("a status").timestamp >= task.status.expect("a status").timestamp);
        }
    }

    async fn a_task_that_no_worker_has_begun_is_canceled_at_once(place) {
        let gate = Gate::new();
        let agent = ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]);
        let world = place.world_with(agent, Config { workers_max: 1, ..config() }).await;
        world.send(send("first").immediately()).await;
        let task = world.send(send("second").immediately()).await;
        assert_eq!(state(&task), Submitted);
        assert_eq!(state(&world.cancel(&task.id).await.expect("it waits")), Canceled);
        gate.open();
        let third = world.send(send("third")).await;
        assert_eq!(state(&third), Completed);
        assert_eq!(world.agent.runs().len(), 2, "the canceled one was never begun");
    }

    async fn a_task_that_ended_cannot_be_canceled(place) {
        let agent = ScriptedAgent::new(|turn| {
            let text = turn.message().text();
            Box::pin(async move { Ok(end_of(&text)) })
        });
        let world = place.world(agent).await;
        for text in ["ok", "fail", "reject", "input"] {
            let task = world.send(send(text)).await;
            if text == "input" {
                world.cancel(&task.id).await.expect("it waits");
            }
            let before = world.task(&task.id).await;
            let refused = world.cancel(&task.id).await;
            assert!(matches!(refused, Err(EngineError::TaskNotCancelable(_))), "{refused:?}");
            assert_eq!(world.task(&task.id).await, before);
        }
        assert!(matches!(world.cancel("nothing").await, Err(EngineError::TaskNotFound(_))));
    }

    async fn of_twenty_cancels_at_once_one_changes_the_task(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        let cancels: Vec<_> = (0..20).map(|_| world.canceling(&task.id)).collect();
        world.clock.pass(GRACE).await;
        // Cancels that asked only now wait for their own grace, or find the task canceled.
        for canceling in cancels {
            match canceling.await.expect("no panic") {
                Ok(task) => assert_eq!(state(&task), Canceled),
                Err(error) => assert!(matches!(error, EngineError::TaskNotCancelable(_)), "{error:?}"),
            }
        }
        assert_eq!(states(&world.log(&task.id).await), [Submitted, Working, Canceled]);
    }

    async fn a_cancel_goes_on_without_its_caller(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        let canceling = world.canceling(&task.id);
        world.clock.slept_for(GRACE).await;
        canceling.abort();
        assert!(canceling.await.expect_err("it was aborted").is_cancelled());
        world.clock.advance(GRACE);
        world.until(&task.id, Canceled).await;
    }

    async fn a_cancel_right_after_the_start_always_reaches_the_agent(place) {
        let world = place.world(waiting()).await;
        for _ in 0..100 {
            let task = world.send(send("go").immediately()).await;
            let canceled = world.cancel(&task.id).await.expect("it runs");
            assert_eq!(state(&canceled), Canceled, "without the clock's help: the agent was told");
        }
    }

    async fn a_cancel_reaches_a_turn_that_answers_a_question(place) {
        let turns = vec![
            vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))],
            vec![Step::Canceled, Step::End(Outcome::Canceled(None))],
        ];
        for _ in 0..20 {
            let world = place.world(ScriptedAgent::steps(turns.clone())).await;
            let task = world.send(send("go")).await;
            world.send(send("on").to(&task.id).immediately()).await;
            assert_eq!(state(&world.cancel(&task.id).await.expect("it runs")), Canceled);
        }
    }

    async fn cancel_and_completion_race_to_one_end(place) {
        let agent = ScriptedAgent::new(|turn| {
            let yields: u64 = turn.message().text().parse().unwrap_or(0);
            Box::pin(async move {
                for number in 0..yields {
                    turn.artifact(piece("a", number.to_string(), number > 0)).await?;
                    tokio::task::yield_now().await;
                }
                Ok(Outcome::Complete(Some(vec![text_part("done")])))
            })
        });
        let world = place.world(agent).await;
        let mut dice = Dice::new(7);
        for _ in 0..100 {
            let task = world.send(send(dice.below(8).to_string()).immediately()).await;
            for _ in 0..dice.below(12) {
                tokio::task::yield_now().await;
            }
            let ended = match world.cancel(&task.id).await {
                Ok(task) => task,
                Err(EngineError::TaskNotCancelable(_)) => world.task(&task.id).await,
                Err(error) => panic!("{error:?}"),
            };
            assert!(state(&ended).is_terminal());
            let log = world.log(&task.id).await;
            assert_eq!(states(&log).iter().filter(|state| state.is_terminal()).count(), 1);
            assert_eq!(log.last().and_then(state_of), Some(state(&ended)));
            assert_eq!(world.task(&task.id).await, ended);
        }
    }

    async fn a_write_after_the_end_is_refused(place) {
        let (done, writers) = (Gate::new(), std::sync::Arc::new(std::sync::Mutex::new(Vec::new())));
        let (held, kept) = (done.clone(), std::sync::Arc::clone(&writers));
        let agent = ScriptedAgent::new(move |turn| {
            let (done, writers) = (held.clone(), std::sync::Arc::clone(&kept));
            Box::pin(async move {
                writers.lock().expect("no panic").push(turn.writer());
                match turn.message().text().as_str() {
                    "wait" => { done.pass().await; Ok(Outcome::Complete(None)) }
                    text => Ok(end_of(text)),
                }
            })
        });
        let world = place.world(agent).await;
        for (text, ends) in [("ok", Completed), ("fail", Failed), ("input", InputRequired)] {
            let task = world.send(send(text)).await;
            assert_eq!(state(&task), ends);
            let writer = writers.lock().expect("no panic").pop().expect("the turn ran");
            assert!(writer.artifact(piece("late", "x", false)).await.is_err());
            assert!(writer.progress(Some(vec![text_part("late")]), None).await.is_err());
            assert_eq!(world.task(&task.id).await, task);
        }
        let task = world.send(send("wait").immediately()).await;
        done.reached(1).await;
        let canceling = world.canceling(&task.id);
        world.clock.pass(GRACE).await;
        let canceled = canceling.await.expect("no panic").expect("it runs");
        let writer = writers.lock().expect("no panic").pop().expect("the turn ran");
        // The turn is dropped right after; a write that comes before that is lost with its lease.
        let _ = writer.artifact(piece("late", "x", false)).await;
        done.open();
        assert_eq!(world.task(&task.id).await, canceled);
        assert_eq!(states(&world.log(&task.id).await), [Submitted, Working, Canceled]);
    }

    async fn what_was_accepted_before_the_end_is_stored_and_the_rest_refused(place) {
        let counts = Counts::default();
        let kept = Counts::clone(&counts);
        let agent = ScriptedAgent::new(move |turn| { let counts = Counts::clone(&kept); Box::pin(async move {
            let writer = turn.writer();
            let (counted, count) = tokio::sync::oneshot::channel();
            beside(async move {
                let mut accepted = 0_u64;
                while writer.artifact(piece("a", "x", accepted > 0)).await.is_ok() {
                    accepted += 1;
                    tokio::task::yield_now().await;
                }
                let _ = counted.send(accepted);
            });
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            counts.lock().expect("no panic").push(count);
            Ok(Outcome::Complete(None))
        }) });
        let world = place.world(agent).await;
        for _ in 0..20 {
            let task = world.send(send("go")).await;
            let count = counts.lock().expect("no panic").pop().expect("it ran");
            let accepted = count.await.expect("the writer ends");
            let stored = task.artifacts.first().map_or(0, |artifact| artifact.parts.len() as u64);
            assert_eq!(stored, accepted);
        }
    }
}
