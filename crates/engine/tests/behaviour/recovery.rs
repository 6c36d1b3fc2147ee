//! Engines that die, stores that fail, workers that are few, and a scheduler that sleeps.

use std::time::Duration;

use longhaul_engine::{Config, Outcome, text_part};
use longhaul_protocol::TaskState::{Completed, Failed, InputRequired, Working};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, Step, send};

use crate::world::*;

on_each_store! {
    async fn a_turn_whose_engine_died_is_run_again(place) {
        let gate = Gate::new();
        let mortal = place.mortal(ScriptedAgent::steps(vec![vec![Step::Artifact("a", "half", false), Step::Wait(gate.clone())]])).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Artifact("a", "whole", false)]])).await;
        world.until(&task.id, Completed).await;
        let run = &world.agent.runs()[0];
        assert_eq!((run.attempt, run.text.as_str(), run.task_id.as_str()), (2, "go", task.id.as_str()));
        let after = world.task(&task.id).await;
        assert_eq!((artifacts(&after), history(&after)), (vec![("a".into(), "whole".into())], vec!["go".into()]));
    }

    async fn a_turn_that_never_comes_to_an_end_fails_in_the_end(place) {
        let mut task_id = String::new();
        for attempt in 1..=3 {
            let gate = Gate::new();
            let mortal = place.mortal(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])).await;
            if attempt == 1 {
                task_id = mortal.send(send("go").immediately()).await.id;
            }
            if attempt == 3 {
                // The second attempt comes at once, the third after a while.
                place.clock.pass(BACKOFF).await;
            }
            gate.reached(1).await;
            assert_eq!(mortal.agent.runs()[0].attempt, attempt);
            mortal.kill();
        }
        let world = place.world(ScriptedAgent::steps(vec![vec![]])).await;
        world.until(&task_id, Failed).await;
        let task = world.task(&task_id).await;
        assert!(said(&task).contains("3 attempts"), "{}", said(&task));
        assert!(world.agent.runs().is_empty());
    }

    async fn attempts_are_counted_for_each_turn(place) {
        let turns = || vec![vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))]];
        let gate = Gate::new();
        let mortal = place.mortal(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        let world = place.world(ScriptedAgent::steps(turns())).await;
        world.until(&task.id, InputRequired).await;
        world.send(send("on").to(&task.id)).await;
        let attempts: Vec<_> = world.agent.runs().iter().map(|run| run.attempt).collect();
        assert_eq!(attempts, [2, 1]);
    }

    async fn a_question_survives_its_engine(place) {
        let mortal = place.mortal(ScriptedAgent::steps(vec![vec![Step::End(Outcome::RequireInput(vec![text_part("which?")]))]])).await;
        let task = mortal.send(send("go")).await;
        mortal.kill();
        let world = place.world(ScriptedAgent::steps(vec![vec![]])).await;
        let mut stream = world.subscribe(&task.id, None).await;
        let read = snapshot(&first(&mut stream).await).expect("a task first");
        assert_eq!((state(&read), said(&read)), (InputRequired, "which?".into()));
        assert!(world.agent.runs().is_empty(), "nobody runs a task that waits");
        assert_eq!(state(&world.send(send("that").to(&task.id)).await), Completed);
        assert_eq!(states(&collect(stream).await), [Working, Completed]);
    }

    async fn messages_that_wait_survive_their_engine(place) {
        let gate = Gate::new();
        let mortal = place.mortal(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.send(send("more").to(&task.id).immediately()).await;
        mortal.kill();
        let agent = ScriptedAgent::steps(vec![vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))], vec![]]);
        let world = place.world(agent).await;
        world.until(&task.id, Completed).await;
        let runs: Vec<_> = world.agent.runs().into_iter().map(|run| (run.text, run.attempt)).collect();
        assert_eq!(runs, [("go".to_owned(), 2), ("more".to_owned(), 1)]);
    }

    async fn an_engine_that_lost_its_task_writes_nothing(place) {
        let gate = Gate::new();
        let zombie = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone()), Step::Artifact("z", "late", false)]])).await;
        let task = zombie.send(send("go").immediately()).await;
        gate.reached(1).await;
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Artifact("a", "x", false)]])).await;
        world.until(&task.id, Completed).await;
        let before = world.task(&task.id).await;
        gate.open();
        zombie.engine.shutdown(HANGS).await.expect("its turn ends");
        assert_eq!(world.task(&task.id).await, before);
        assert_eq!(artifacts(&before), [("a".to_owned(), "x".to_owned())]);
    }

    async fn one_worker_brings_fifty_tasks_to_their_end(place) {
        let world = place.world_with(ScriptedAgent::steps(vec![vec![Step::Yield, Step::Yield]]), Config { workers_max: 1, ..config() }).await;
        let sends: Vec<_> = (0..50).map(|number| world.sending(if number % 2 == 0 { send("go") } else { send("go").immediately() })).collect();
        for sending in sends {
            let task = answer(sending).await;
            world.until(&task.id, Completed).await;
        }
        assert_eq!(world.agent.runs().len(), 50);
    }

    async fn one_worker_serves_questions_and_answers_of_many_tasks(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            tokio::task::yield_now().await;
            match turn.is_first() {
                true => Ok(Outcome::RequireInput(vec![text_part("?")])),
                false => Ok(Outcome::Complete(None)),
            }
        }));
        let world = place.world_with(agent, Config { workers_max: 1, ..config() }).await;
        let talks: Vec<_> = (0..30)
            .map(|_| {
                let world = world.clone();
                beside(async move {
                    let task = world.send(send("go")).await;
                    state(&world.send(send("on").to(&task.id)).await)
                })
            })
            .collect();
        for talk in talks {
            assert_eq!(talk.await.expect("no panic"), Completed);
        }
    }

    async fn an_idle_scheduler_asks_the_store_nothing(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![]])).await;
        world.send(send("go")).await;
        // The sweep sleeps for a second and then sleeps again: by then, whoever had something to do has done it.
        world.clock.pass(Duration::from_secs(1)).await;
        world.clock.slept_for(Duration::from_secs(1)).await;
        let asked = || [Operation::Due, Operation::NextDue, Operation::Marks].map(|operation| world.store.count(operation));
        let before = asked();
        for _ in 0..10 {
            world.clock.pass(Duration::from_secs(1)).await;
        }
        world.clock.slept_for(Duration::from_secs(1)).await;
        assert_eq!(asked(), before);
    }

    async fn a_store_that_fails_while_a_turn_writes_loses_nothing(place) {
        let gate = Gate::new();
        let steps = vec![Step::Artifact("a", "1", false), Step::Wait(gate.clone()), Step::Artifact("a", "2", true)];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let mut stream = world.stream(send("go")).await;
        gate.reached(1).await;
        read_until(&mut stream, Working).await;
        while world.store.count(Operation::Commit) < 2 {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            world.store.next(Operation::Commit, Fault::Before);
        }
        gate.open();
        for delay in [10, 20, 40] {
            world.clock.pass(Duration::from_millis(delay)).await;
        }
        let items = collect(stream).await;
        assert_eq!(states(&items).last(), Some(&Completed));
        let task_id = world.agent.runs()[0].task_id.as_str().to_owned();
        assert_eq!(artifacts(&world.task(&task_id).await), [("a".to_owned(), "12".to_owned())]);
    }

    async fn an_answer_of_the_store_that_is_lost_at_the_end_ends_the_task_once(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone()), Step::Artifact("a", "x", false)]])).await;
        let sending = world.sending(send("go"));
        gate.reached(1).await;
        world.store.next(Operation::Commit, Fault::After);
        gate.open();
        world.clock.pass(Duration::from_millis(10)).await;
        let task = answer(sending).await;
        assert_eq!((state(&task), artifacts(&task)), (Completed, vec![("a".into(), "x".into())]));
        assert_eq!(world.log(&task.id).await.iter().filter(|item| state_of(item) == Some(Completed)).count(), 1);
    }

    async fn a_start_whose_message_cannot_be_read_is_tried_again(place) {
        let gate = Gate::new();
        let agent = ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())], vec![]]);
        let world = place.world_with(agent, Config { workers_max: 1, ..config() }).await;
        world.send(send("first").immediately()).await;
        gate.reached(1).await;
        let second = world.send(send("second").immediately()).await;
        let third = world.send(send("third").immediately()).await;
        world.store.next(Operation::Messages, Fault::Before);
        gate.open();
        world.ticking(world.until(&third.id, Completed)).await;
        world.ticking(world.until(&second.id, Completed)).await;
    }

    async fn a_start_that_is_stored_although_the_store_failed_runs_its_turn(place) {
        let gate = Gate::new();
        let ask = vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))];
        let agent = ScriptedAgent::steps(vec![ask.clone(), ask, vec![], vec![Step::Wait(gate.clone())], vec![]]);
        let world = place.world_with(agent, Config { workers_max: 1, ..config() }).await;
        // A task that a caller makes.
        world.store.next(Operation::Commit, Fault::After);
        world.try_send(send("go")).await.expect_err("the store failed");
        world.ticking(world.agent.ran(1)).await;
        let task_id = world.agent.runs()[0].task_id.as_str().to_owned();
        world.until(&task_id, InputRequired).await;
        // A message that goes on with it.
        world.store.next(Operation::Commit, Fault::After);
        world.try_send(send("on").to(&task_id)).await.expect_err("the store failed");
        world.ticking(world.agent.ran(2)).await;
        let ended = world.ticking(world.send(send("on").to(&task_id))).await;
        assert_eq!(state(&ended), Completed);
        // A task that a worker takes up.
        world.send(send("first").immediately()).await;
        gate.reached(1).await;
        let second = world.send(send("second").immediately()).await;
        let ends = world.store.count(Operation::Commit) + 1;
        let held = Gate::new();
        world.store.next(Operation::Commit, Fault::Hold(held.clone()));
        world.store.next(Operation::Commit, Fault::After);
        gate.open();
        held.open();
        world.ticking(world.until(&second.id, Completed)).await;
        assert!(world.store.count(Operation::Commit) > ends);
        assert_eq!(world.agent.runs().len(), 5);
        assert!(world.agent.runs().iter().all(|run| run.attempt == 1));
    }

    async fn a_turn_whose_log_cannot_be_read_begins_when_it_can(place) {
        let turns = vec![vec![Step::Artifact("a", "1", false), Step::End(Outcome::RequireInput(vec![text_part("?")]))], vec![Step::Artifact("a", "2", true)]];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        world.store.next(Operation::EventsAfter, Fault::Before);
        let sending = world.sending(send("on").to(&task.id));
        world.clock.pass(Duration::from_millis(10)).await;
        let task = answer(sending).await;
        assert_eq!((state(&task), artifacts(&task)), (Completed, vec![("a".into(), "12".into())]));
    }
}
