//! A send that is repeated under the same message id.

use longhaul_engine::{Config, DedupMode, EngineError, Outcome, text_part};
use longhaul_protocol::TaskState::{Completed, InputRequired};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, Step, end_of, send};

use crate::world::*;

fn obedient() -> ScriptedAgent {
    ScriptedAgent::new(|turn| {
        let text = turn.message().text();
        Box::pin(async move { Ok(end_of(&text)) })
    })
}

on_each_store! {
    async fn a_message_id_alone_makes_nothing_a_retry(place) {
        let world = place.world(obedient()).await;
        let one = world.send(send("ok").with_id("m")).await;
        let two = world.send(send("ok").with_id("m")).await;
        assert_ne!(one.id, two.id);
        assert_eq!(world.agent.runs().len(), 2);
    }

    async fn who_asks_for_it_gets_the_same_task_and_runs_nothing_twice(place) {
        let world = place.world(obedient()).await;
        let one = world.send(send("ok").with_id("m").idempotent()).await;
        let two = world.send(send("ok").with_id("m").idempotent()).await;
        assert_eq!(one, two);
        let stream = collect(world.stream(send("ok").with_id("m").idempotent()).await).await;
        assert_eq!(snapshot(&stream[0]).as_ref(), Some(&one));
        assert_eq!(stream.len(), 1);
        let soon = world.send(send("ok").with_id("m").idempotent().immediately()).await;
        assert_eq!(soon, one);
        assert_eq!((world.agent.runs().len(), world.agent.asked().len()), (1, 1));
    }

    async fn a_setting_asks_for_everyone(place) {
        let world = place.world_with(obedient(), Config { dedup: DedupMode::Always, ..config() }).await;
        let one = world.send(send("ok").with_id("m")).await;
        assert_eq!(world.send(send("ok").with_id("m")).await, one);
        assert_eq!(world.agent.runs().len(), 1);
    }

    async fn other_content_is_refused(place) {
        let world = place.world(obedient()).await;
        world.send(send("ok").with_id("m").idempotent()).await;
        for other in [send("ok!").with_id("m"), send("ok").with_id("m").in_context("c")] {
            let refused = world.try_send(other.idempotent()).await;
            let Err(EngineError::Invalid(violations)) = refused else { panic!("{refused:?}") };
            assert_eq!(violations[0].field, "message.messageId");
        }
    }

    async fn scopes_do_not_share_message_ids(place) {
        let world = place.world(obedient()).await;
        let one = world.send(send("ok").with_id("m").idempotent().in_scope(owner("a"))).await;
        let two = world.send(send("ok").with_id("m").idempotent().in_scope(owner("b"))).await;
        assert_ne!(one.id, two.id);
    }

    async fn a_message_is_forgotten_after_its_window(place) {
        let world = place.world(obedient()).await;
        let one = world.send(send("ok").with_id("m").idempotent()).await;
        world.clock.advance(config().dedup_window - std::time::Duration::from_millis(1));
        assert_eq!(world.send(send("ok").with_id("m").idempotent()).await.id, one.id);
        world.clock.advance(std::time::Duration::from_millis(1));
        assert_ne!(world.send(send("ok").with_id("m").idempotent()).await.id, one.id);
    }

    async fn a_message_that_continues_a_task_is_recognized(place) {
        let world = place.world(obedient()).await;
        let task = world.send(send("input")).await;
        let more = || send("input again").with_id("m").to(&task.id).idempotent();
        let one = world.send(more()).await;
        assert_eq!(state(&one), InputRequired);
        assert_eq!(world.send(more()).await, one);
        let ended = world.send(send("ok").to(&task.id)).await;
        assert_eq!(world.send(more()).await, ended, "the task, whatever became of it");
        assert_eq!(world.agent.runs().len(), 3);
    }

    async fn of_twenty_at_once_one_runs(place) {
        let world = place.world(obedient()).await;
        for text in ["ok", "input"] {
            let runs = world.agent.runs().len();
            let sends: Vec<_> = (0..20).map(|_| world.sending(send(text).with_id(format!("m {text}")).idempotent())).collect();
            let mut tasks = Vec::new();
            for sending in sends {
                tasks.push(answer(sending).await);
            }
            assert!(tasks.windows(2).all(|pair| pair[0] == pair[1]));
            assert_eq!(world.agent.runs().len(), runs + 1);
        }
    }

    async fn of_twenty_at_once_that_continue_a_task_one_runs(place) {
        let world = place.world(obedient()).await;
        for round in 0..20 {
            let task = world.send(send("input")).await;
            let runs = world.agent.runs().len();
            let sends: Vec<_> =
                (0..20).map(|_| world.sending(send("ok").with_id(format!("m{round}")).to(&task.id).idempotent())).collect();
            for sending in sends {
                assert_eq!(state(&answer(sending).await), Completed);
            }
            assert_eq!(world.agent.runs().len(), runs + 1);
            assert_eq!(history(&world.task(&task.id).await), ["input", "input", "ok"]);
        }
    }

    async fn a_retry_that_looked_before_the_first_had_ended_the_task_gets_that_task(place) {
        let world = place.world(obedient()).await;
        let task = world.send(send("input")).await;
        let held = Gate::new();
        world.store.next(Operation::Accepted, Fault::HoldAnswer(held.clone()));
        let retry = world.sending(send("ok").with_id("m").to(&task.id).idempotent());
        held.reached(1).await;
        let ended = world.send(send("ok").with_id("m").to(&task.id).idempotent()).await;
        assert_eq!(state(&ended), Completed);
        held.open();
        assert_eq!(answer(retry).await, ended);
    }

    async fn a_retry_while_the_turn_runs_waits_for_it(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone()), Step::End(Outcome::Complete(Some(vec![text_part("x")])))]])).await;
        let one = world.sending(send("go").with_id("m").idempotent());
        gate.reached(1).await;
        let two = world.sending(send("go").with_id("m").idempotent());
        let three = world.stream(send("go").with_id("m").idempotent()).await;
        gate.open();
        let task = answer(one).await;
        assert_eq!(answer(two).await, task);
        assert_eq!(states(&collect(three).await).last(), Some(&Completed));
        assert_eq!(world.agent.runs().len(), 1);
    }

    async fn a_retry_after_a_lost_answer_of_the_store_is_the_same_task(place) {
        let world = place.world(obedient()).await;
        world.store.next(Operation::Commit, Fault::After);
        let first = world.ticking(world.try_send(send("ok").with_id("m").idempotent())).await;
        let again = world.send(send("ok").with_id("m").idempotent()).await;
        assert_eq!(state(&again), Completed);
        if let Ok(reply) = first {
            assert_eq!(task_of(reply).id, again.id);
        }
        assert_eq!(world.agent.runs().len(), 1);
    }

    async fn a_retry_is_recognized_after_a_restart(place) {
        let mortal = place.mortal(obedient()).await;
        let one = mortal.send(send("ok").with_id("m").idempotent()).await;
        mortal.kill();
        let world = place.world(obedient()).await;
        assert_eq!(world.send(send("ok").with_id("m").idempotent()).await, one);
        assert!(world.agent.runs().is_empty());
    }
}
