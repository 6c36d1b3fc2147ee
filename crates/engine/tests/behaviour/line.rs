//! The line of tasks that wait for a worker: who is next, and when it is too long.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Config, EngineError, Outcome, Scope, text_part};
use longhaul_protocol::TaskState::{AuthRequired, Completed, InputRequired, Submitted, Working};
use longhaul_testkit::{Gate, Operation, ScriptedAgent, SendBuilder, end_of, send};
use tokio::sync::Semaphore;

use crate::world::*;

/// Waits at the gate if the text says so; else ends as the text says.
fn gated(gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(move |turn| {
        let (gate, text, resumed) = (gate.clone(), turn.message().text(), turn.is_resumed());
        Box::pin(async move {
            if text == "wait" {
                gate.pass().await;
            }
            tokio::task::yield_now().await;
            Ok(if resumed { Outcome::Complete(Some(vec![text_part("resumed")])) } else { end_of(&text) })
        })
    })
}

/// Ends each turn when it is given a step, the longest running first.
fn stepping(steps: &Arc<Semaphore>) -> ScriptedAgent {
    let steps = Arc::clone(steps);
    ScriptedAgent::new(move |_| {
        let steps = Arc::clone(&steps);
        Box::pin(async move {
            steps.acquire().await.expect("it stays open").forget();
            Ok(Outcome::Complete(None))
        })
    })
}

/// Lets so many turns begin, one when another has ended: so the order is the line's and not that of threads.
async fn step_by_step(world: &World, steps: &Semaphore, turns: usize) {
    let before = world.agent.runs().len();
    for turn in 1..=turns {
        steps.add_permits(1);
        world.agent.ran(before + turn).await;
    }
    steps.add_permits(turns);
}

fn workers(workers_max: usize) -> Config {
    Config { workers_max, ..config() }
}

/// Fills all workers with turns that wait.
async fn filled(world: &World, workers: usize) {
    let before = world.agent.runs().len();
    for _ in 0..workers {
        world.send(send("wait").in_context("first").immediately()).await;
    }
    world.agent.ran(before + workers).await;
}

async fn queued(world: &World, send: SendBuilder) -> String {
    let task = world.send(send.immediately()).await;
    assert_eq!(state(&task), Submitted, "it waits");
    task.id
}

/// The texts of the turns that were begun, in order, but for those that filled the workers.
fn order(world: &World) -> Vec<String> {
    let texts = world.agent.runs().into_iter().map(|run| run.text);
    texts.filter(|text| text != "wait").collect()
}

fn place_of(order: &[String], text: &str) -> usize {
    order.iter().position(|known| known == text).expect("it ran")
}

/// How far two owners were apart at any time.
fn apart(order: &[String], one: &str, two: &str) -> usize {
    let mut counts = (0_usize, 0_usize);
    let mut most = 0;
    for text in order {
        counts.0 += usize::from(text == one);
        counts.1 += usize::from(text == two);
        most = most.max(counts.0.abs_diff(counts.1));
    }
    most
}

on_each_store! {
    async fn a_caller_with_one_task_does_not_wait_for_one_with_many(place) {
        for count in [1, 2] {
            let steps = Arc::new(Semaphore::new(0));
            let world = place.world_with(stepping(&steps), workers(count)).await;
            filled(&world, count).await;
            for _ in 0..100 {
                queued(&world, send("many").in_scope(owner("many"))).await;
            }
            queued(&world, send("few").in_scope(owner("few"))).await;
            step_by_step(&world, &steps, 101).await;
            let order = order(&world);
            assert!(place_of(&order, "few") <= 1, "{order:?}");
            world.engine.shutdown(HANGS).await.expect("it goes down");
        }
    }

    async fn owners_are_served_in_turn(place) {
        for count in [1, 2] {
            let steps = Arc::new(Semaphore::new(0));
            let world = place.world_with(stepping(&steps), workers(count)).await;
            filled(&world, count).await;
            for name in ["one", "two", "three"] {
                for _ in 0..20 {
                    queued(&world, send(name).in_scope(owner(name))).await;
                }
            }
            step_by_step(&world, &steps, 60).await;
            let order = order(&world);
            for (one, two) in [("one", "two"), ("two", "three"), ("one", "three")] {
                assert!(apart(&order, one, two) <= 1, "{order:?}");
            }
            world.engine.shutdown(HANGS).await.expect("it goes down");
        }
    }

    async fn contexts_of_an_owner_are_served_in_turn(place) {
        for count in [1, 2] {
            let steps = Arc::new(Semaphore::new(0));
            let world = place.world_with(stepping(&steps), workers(count)).await;
            filled(&world, count).await;
            for _ in 0..50 {
                queued(&world, send("long").in_context("long")).await;
            }
            for _ in 0..10 {
                queued(&world, send("short").in_context("short")).await;
            }
            step_by_step(&world, &steps, 60).await;
            let order = order(&world);
            assert!(apart(&order[..20], "long", "short") <= 1, "{order:?}");
            world.engine.shutdown(HANGS).await.expect("it goes down");
        }
    }

    async fn one_who_keeps_sending_starves_nobody(place) {
        let gate = Gate::new();
        let world = place.world_with(gated(&gate), workers(1)).await;
        filled(&world, 1).await;
        for number in 0..5 {
            queued(&world, send(format!("few {number}")).in_scope(owner("few"))).await;
        }
        let greedy = world.clone();
        let sending = beside(async move {
            for _ in 0..100 {
                greedy.send(send("many").in_scope(owner("many")).immediately()).await;
            }
        });
        gate.open();
        sending.await.expect("no panic");
        world.agent.ran(106).await;
        let order = order(&world);
        let few: Vec<_> = order.iter().filter(|text| text.starts_with("few")).collect();
        assert!(few.is_sorted() && few.len() == 5, "{few:?}");
        assert!(place_of(&order, "few 4") <= 11, "{order:?}");
    }

    async fn the_tasks_of_a_context_are_begun_in_the_order_in_which_they_came(place) {
        let gate = Gate::new();
        let world = place.world_with(gated(&gate), workers(1)).await;
        filled(&world, 1).await;
        gate.open();
        for number in 0..200 {
            if number % 3 == 0 {
                world.clock.advance(Duration::from_millis(1));
            }
            world.send(send(format!("{number:03}")).in_context("first").immediately()).await;
        }
        world.agent.ran(201).await;
        assert!(order(&world).is_sorted(), "nobody jumps the line: {:?}", order(&world));
    }

    async fn an_answer_joins_the_line_at_its_end(place) {
        let gate = Gate::new();
        let world = place.world_with(gated(&gate), workers(1)).await;
        let asked = world.send(send("input").in_context("first")).await;
        filled(&world, 1).await;
        let tick = || world.clock.advance(Duration::from_millis(1));
        tick();
        queued(&world, send("before").in_context("first")).await;
        tick();
        let answered = world.send(send("answer").to(&asked.id).immediately()).await;
        assert_eq!(state(&answered), Working);
        tick();
        queued(&world, send("after").in_context("first")).await;
        gate.open();
        world.agent.ran(5).await;
        assert_eq!(order(&world), ["input", "before", "answer", "after"]);
    }

    async fn a_line_that_is_too_long_takes_nobody_in(place) {
        let gate = Gate::new();
        let world = place.world_with(gated(&gate), Config { backlog_max: 2, ..workers(1) }).await;
        let asked = world.send(send("input")).await;
        filled(&world, 1).await;
        for _ in 0..2 {
            queued(&world, send("ok")).await;
        }
        let (commits, total) = (world.store.count(Operation::Commit), world.total().await);
        for refused in [send("no"), send("no").immediately(), send("no").idempotent(), send("no").in_scope(owner("other"))] {
            let refused = world.try_send(refused).await;
            assert!(matches!(refused, Err(EngineError::Exhausted(_))), "{refused:?}");
        }
        let refused = world.engine.send_streaming_message(send("no").build()).await;
        assert!(matches!(refused, Err(EngineError::Exhausted(_))), "{refused:?}");
        assert_eq!((world.store.count(Operation::Commit), world.total().await), (commits, total), "nothing is stored");
        // What was accepted before may go on.
        world.send(send("ok").to(&asked.id).immediately()).await;
        gate.open();
        world.agent.ran(5).await;
        world.until(&asked.id, Completed).await;
        assert_eq!(state(&world.send(send("ok")).await), Completed);
        assert!(!order(&world).contains(&"no".to_owned()));
    }

    async fn a_message_that_was_refused_for_the_length_of_the_line_may_come_again(place) {
        let gate = Gate::new();
        let world = place.world_with(gated(&gate), Config { backlog_max: 1, ..workers(1) }).await;
        filled(&world, 1).await;
        let waiting = queued(&world, send("ok")).await;
        let refused = world.try_send(send("again").with_id("m").idempotent()).await;
        assert!(matches!(refused, Err(EngineError::Exhausted(_))), "{refused:?}");
        gate.open();
        world.until(&waiting, Completed).await;
        assert_eq!(state(&world.send(send("again").with_id("m").idempotent()).await), Completed);
    }

    async fn a_task_that_waits_for_its_caller_holds_nothing(place) {
        let world = place.world_with(gated(&Gate::new()), Config { workers_max: 1, ..leased() }).await;
        for (text, waits) in [("input", InputRequired), ("auth", AuthRequired)] {
            let task = world.send(send(text)).await;
            let head = world.head(&task.id).await;
            assert_eq!((state(&task), head.leased, head.due_at), (waits, false, None));
        }
        // The answer may be there before the turn that gave it has gone.
        spin(|| world.engine.stats().turns == 0).await;
        assert_eq!(state(&world.send(send("ok")).await), Completed, "the worker is free");
        world.beats(6).await;
        assert_eq!(world.store.count(Operation::Renew), 0);
        assert_eq!(world.agent.runs().len(), 3);
    }

    async fn a_task_is_resumed_without_a_message(place) {
        let world = place.world_with(gated(&Gate::new()), workers(1)).await;
        let task = world.send(send("auth")).await;
        let mut stream = world.subscribe(&task.id, None).await;
        first(&mut stream).await;
        let elsewhere = world.engine.resume_task(&owner("other"), &task.id).await;
        assert!(matches!(elsewhere, Err(EngineError::TaskNotFound(_))), "{elsewhere:?}");
        world.engine.resume_task(&Scope::default(), &task.id).await.expect("it waits for that");
        assert_eq!(states(&collect(stream).await), [Working, Completed]);
        assert_eq!(said(&world.task(&task.id).await), "resumed");
        assert_eq!(order(&world), ["auth", "auth"]);
    }

    async fn a_task_that_waits_for_no_authorization_is_not_resumed(place) {
        let gate = Gate::new();
        let world = place.world_with(gated(&gate), workers(1)).await;
        let asked = world.send(send("input")).await;
        let ended = world.send(send("ok")).await;
        filled(&world, 1).await;
        let waiting = queued(&world, send("ok")).await;
        let running = world.agent.runs()[2].task_id.as_str().to_owned();
        for task_id in [&asked.id, &ended.id, &waiting, &running] {
            let before = world.task(task_id).await;
            let refused = world.engine.resume_task(&Scope::default(), task_id).await;
            assert!(matches!(refused, Err(EngineError::UnsupportedOperation(_))), "{refused:?}");
            assert_eq!(world.task(task_id).await, before);
        }
        gate.open();
        world.until(&waiting, Completed).await;
    }
}
