//! Attempts that came to nothing: when a turn is tried again, and what a task says that is given up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_engine::{AgentError, Config, Outcome, TurnWriter, text_part};
use longhaul_protocol::TaskState::{Canceled, Completed, Failed, InputRequired, Submitted, Working};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, Step, send};

use crate::world::*;

const SECRET: &str = "secret-4711";

fn fails(reason: &'static str) -> Vec<Step> {
    vec![Step::FailForNow(reason)]
}

fn asks() -> Vec<Step> {
    vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))]
}

fn attempts(agent: &ScriptedAgent) -> Vec<(u32, u64)> {
    agent.runs().iter().map(|run| (run.attempt, run.epoch)).collect()
}

on_each_store! {
    async fn an_error_that_may_pass_is_tried_again_at_once(place) {
        let world = place.world(ScriptedAgent::steps(vec![fails("busy"), vec![]])).await;
        let task = world.send(send("go")).await;
        assert_eq!(state(&task), Completed);
        assert_eq!(attempts(&world.agent), [(1, 1), (2, 2)]);
        assert!(world.agent.runs().iter().all(|run| run.text == "go"));
        assert_eq!(states(&world.log(&task.id).await), [Submitted, Working, Completed], "an attempt is no event");
        assert_eq!(history(&world.task(&task.id).await), ["go"]);
    }

    async fn what_a_failed_attempt_wrote_is_kept(place) {
        let turns = vec![
            vec![Step::Artifact("a", "1", false), Step::Progress("on"), Step::FailForNow("busy")],
            vec![Step::Artifact("a", "2", true)],
        ];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        assert_eq!(artifacts(&task), [("a".to_owned(), "12".to_owned())]);
        assert_eq!(states(&world.log(&task.id).await), [Submitted, Working, Working, Completed]);
    }

    async fn the_third_attempt_waits_and_nothing_is_held_meanwhile(place) {
        let world = place.world_with(ScriptedAgent::steps(vec![fails("1"), fails("2"), vec![]]), Config { workers_max: 1, ..config() }).await;
        let task = world.send(send("go").immediately()).await;
        world.clock.slept_for(BACKOFF).await;
        let head = world.head(&task.id).await;
        assert_eq!((head.attempt, head.leased, head.state), (2, false, Working));
        assert_eq!((world.engine.stats().turns, world.agent.runs().len()), (0, 2));
        world.clock.advance(BACKOFF - Duration::from_millis(1));
        world.clock.slept_for(Duration::from_millis(1)).await;
        assert_eq!(world.agent.runs().len(), 2, "not before it is time");
        world.clock.advance(Duration::from_millis(1));
        world.until(&task.id, Completed).await;
        assert_eq!(attempts(&world.agent), [(1, 1), (2, 2), (3, 3)]);
    }

    async fn waits_grow_up_to_the_limit(place) {
        let backoff = |backoff_max| Config { attempts_max: 6, backoff_max: Duration::from_millis(backoff_max), ..config() };
        let world = place.world_with(ScriptedAgent::steps(vec![fails("busy")]), backoff(3_000)).await;
        let task = world.send(send("go").immediately()).await;
        for wait in [750, 1_500, 2_250, 2_250] {
            world.clock.pass(Duration::from_millis(wait)).await;
        }
        world.until(&task.id, Failed).await;
        assert_eq!(world.agent.runs().len(), 6);
        assert!(said(&world.task(&task.id).await).contains("6 attempts"));
    }

    async fn a_wait_survives_its_engine(place) {
        let mortal = place.mortal(ScriptedAgent::steps(vec![fails("1"), fails("2"), vec![]])).await;
        let task = mortal.send(send("go").immediately()).await;
        place.clock.slept_for(BACKOFF).await;
        mortal.kill();
        place.clock.advance(Duration::from_millis(500));
        let world = place.world(ScriptedAgent::steps(vec![vec![]])).await;
        world.clock.slept_for(BACKOFF - Duration::from_millis(500)).await;
        assert!(world.agent.runs().is_empty());
        world.clock.advance(BACKOFF - Duration::from_millis(500));
        world.until(&task.id, Completed).await;
        assert_eq!(attempts(&world.agent), [(3, 3)]);
    }

    async fn a_task_that_is_given_up_says_what_became_of_each_attempt(place) {
        let gate = Gate::new();
        let mortal = place.mortal(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            let error = AgentError::transient(SECRET);
            Err(if turn.attempt() == 2 { error.with_reason("the printer is busy") } else { error })
        }));
        let world = place.world(agent).await;
        world.clock.pass(BACKOFF).await;
        world.until(&task.id, Failed).await;
        let said = said(&world.task(&task.id).await);
        let parts = ["3 attempts", "attempt 1", "was not heard of", "attempt 2", "the printer is busy", "attempt 3"];
        let places: Vec<_> = parts.iter().map(|part| said.find(part).unwrap_or_else(|| panic!("{part} in {said}"))).collect();
        assert!(places.is_sorted() && said.ends_with("the agent failed") && !said.contains(SECRET), "{said}");
        assert_eq!(attempts(&world.agent), [(2, 2), (3, 3)]);
        world.clock.advance(Duration::from_secs(600));
        assert_eq!(world.agent.runs().len(), 2);
    }

    async fn a_final_error_is_not_tried_again(place) {
        for last in [Step::Fail(SECRET), Step::Panic(SECRET), Step::End(Outcome::Fail(None)), Step::Artifact("unknown", "x", true)] {
            let world = place.world(ScriptedAgent::steps(vec![vec![last]])).await;
            assert_eq!(state(&world.send(send("go")).await), Failed);
            assert_eq!(world.agent.runs().len(), 1);
            world.engine.shutdown(HANGS).await.expect("it goes down");
        }
    }

    async fn the_agent_says_how_often_it_may_be_begun(place) {
        let once = place.world(ScriptedAgent::steps(vec![fails("busy")]).with_attempts_max(1)).await;
        let task = once.send(send("go")).await;
        assert_eq!((state(&task), once.agent.runs().len()), (Failed, 1));
        assert!(said(&task).contains("1 attempt;") && said(&task).contains("busy"), "{}", said(&task));
        once.engine.shutdown(HANGS).await.expect("it goes down");
        let often = place.world(ScriptedAgent::steps(vec![fails("busy")]).with_attempts_max(4)).await;
        let task = often.send(send("go").immediately()).await;
        for wait in [750, 1_500] {
            often.clock.pass(Duration::from_millis(wait)).await;
        }
        often.until(&task.id, Failed).await;
        assert_eq!(often.agent.runs().len(), 4);
    }

    async fn an_agent_that_must_not_run_twice_fails_when_its_worker_dies(place) {
        let gate = Gate::new();
        let mortal = place.mortal(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]).with_attempts_max(1)).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        let world = place.world(ScriptedAgent::steps(vec![vec![]]).with_attempts_max(1)).await;
        world.until(&task.id, Failed).await;
        assert!(said(&world.task(&task.id).await).contains("was not heard of"));
        assert!(world.agent.runs().is_empty());
    }

    async fn attempts_are_counted_for_each_turn(place) {
        let turns = vec![fails("1"), asks(), fails("1"), asks(), vec![]];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        assert_eq!(state(&world.send(send("on").to(&task.id)).await), InputRequired);
        assert_eq!(state(&world.send(send("on").to(&task.id)).await), Completed);
        assert_eq!(attempts(&world.agent), [(1, 1), (2, 2), (1, 3), (2, 4), (1, 5)]);
    }

    async fn a_message_that_waits_stays_for_the_next_attempt(place) {
        let gate = Gate::new();
        let turns = vec![vec![Step::Wait(gate.clone()), Step::FailForNow("busy")], asks(), vec![]];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        world.send(send("more").to(&task.id).immediately()).await;
        gate.open();
        world.until(&task.id, Completed).await;
        let runs: Vec<_> = world.agent.runs().into_iter().map(|run| (run.text, run.attempt)).collect();
        assert_eq!(runs, [("go".to_owned(), 1), ("go".to_owned(), 2), ("more".to_owned(), 1)]);
    }

    async fn a_task_that_waits_for_its_next_attempt_is_canceled_at_once(place) {
        let world = place.world(ScriptedAgent::steps(vec![fails("busy")])).await;
        let task = world.send(send("go").immediately()).await;
        world.clock.slept_for(BACKOFF).await;
        let canceled = world.cancel(&task.id).await.expect("it waits");
        assert_eq!(state(&canceled), Canceled);
        world.clock.advance(BACKOFF);
        // The sweep comes after it.
        world.clock.pass(Duration::from_secs(1) - BACKOFF).await;
        world.clock.slept_for(Duration::from_secs(1)).await;
        assert_eq!((world.task(&task.id).await, world.agent.runs().len()), (canceled, 2));
        assert_eq!(states(&world.log(&task.id).await), [Submitted, Working, Canceled]);
    }

    async fn an_error_after_a_cancel_is_the_cancel(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Canceled, Step::FailForNow("interrupted")]])).await;
        let task = world.send(send("go").immediately()).await;
        world.agent.ran(1).await;
        assert_eq!(state(&world.cancel(&task.id).await.expect("it runs")), Canceled);
        assert_eq!(world.agent.runs().len(), 1);
    }

    async fn a_cancel_that_comes_first_wins_over_a_retry(place) {
        let (gate, held) = (Gate::new(), Gate::new());
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone()), Step::FailForNow("busy")]])).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        world.store.next(Operation::Commit, Fault::Hold(held.clone()));
        gate.open();
        held.reached(1).await;
        let canceling = world.canceling(&task.id);
        while !world.head(&task.id).await.cancel_requested {
            tokio::task::yield_now().await;
        }
        held.open();
        assert_eq!(state(&canceling.await.expect("no panic").expect("it works")), Canceled);
        assert_eq!((world.task(&task.id).await.history.len(), world.agent.runs().len()), (1, 1));
    }

    async fn a_retry_that_the_store_refuses_is_stored_later(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone()), Step::FailForNow("busy")], vec![]])).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        world.store.next(Operation::Commit, Fault::After);
        gate.open();
        world.clock.pass(Duration::from_millis(10)).await;
        world.until(&task.id, Completed).await;
        assert_eq!(attempts(&world.agent), [(1, 1), (2, 2)]);
    }

    async fn an_attempt_that_takes_too_long_ends_though_its_heartbeat_lives(place) {
        let limit = Duration::from_secs(44);
        let world = place.world_with(
            ScriptedAgent::steps(vec![vec![Step::Wait(Gate::new())]]),
            Config { turn_duration_max: limit, attempts_max: 2, ..leased() },
        ).await;
        let task = world.send(send("go").immediately()).await;
        world.agent.ran(1).await;
        for _ in 0..4 {
            world.clock.pass(BEAT).await;
        }
        world.clock.slept_for(BEAT).await;
        assert_eq!((world.agent.runs().len(), world.store.count(Operation::Renew)), (1, 4));
        world.clock.advance(BEAT);
        world.agent.ran(2).await;
        world.clock.slept_for(BEAT).await;
        for _ in 0..5 {
            world.clock.pass(BEAT).await;
        }
        world.until(&task.id, Failed).await;
        let said = said(&world.task(&task.id).await);
        assert_eq!(said.matches("it ran for longer than a turn may").count(), 2, "{said}");
        assert_eq!(attempts(&world.agent), [(1, 1), (2, 2)]);
    }

    async fn an_attempt_that_writes_nothing_for_too_long_ends(place) {
        let limit = Duration::from_secs(44);
        let writers = Arc::new(Mutex::new(Vec::<TurnWriter>::new()));
        let kept = Arc::clone(&writers);
        let agent = ScriptedAgent::new(move |turn| {
            kept.lock().expect("no panic").push(turn.writer());
            Box::pin(std::future::pending())
        });
        let world = place.world_with(agent, Config { inactivity_max: Some(limit), attempts_max: 1, ..leased() }).await;
        let task = world.send(send("go").immediately()).await;
        world.agent.ran(1).await;
        // It counts as begun a moment before it is.
        let writer = loop {
            let begun = writers.lock().expect("no panic").pop();
            match begun {
                Some(writer) => break writer,
                None => tokio::task::yield_now().await,
            }
        };
        for round in 0..6 {
            // Each write gives it the whole time again.
            world.beats(4).await;
            match round % 2 {
                0 => writer.progress(Some(vec![text_part("still here")]), None).await.expect("it runs"),
                _ => writer.checkpoint("x".into()).await.expect("it runs"),
            }
        }
        assert_eq!(world.head(&task.id).await.epoch, 1);
        world.beats(4).await;
        assert_eq!(world.engine.stats().turns, 1);
        world.clock.advance(BEAT);
        world.until(&task.id, Failed).await;
        assert!(said(&world.task(&task.id).await).contains("it wrote nothing for longer than it may"));
    }
}
