//! What an agent stores for itself: for its next attempt and its next turn, and for nobody else.

use std::time::Duration;

use longhaul_engine::{AgentError, Config, EngineError, Outcome, Store as _, TurnError, text_part};
use longhaul_protocol::TaskState::{Completed, Failed, InputRequired};
use longhaul_protocol::{TaskId, json};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, Step, piece, send};

use crate::world::*;

/// Says what it finds, and stores the text of its message.
fn notebook() -> ScriptedAgent {
    ScriptedAgent::new(|turn| {
        Box::pin(async move {
            let found = turn.last_checkpoint().await?;
            let found = found.map_or("nothing".into(), |data| String::from_utf8_lossy(&data).into_owned());
            let text = turn.message().text();
            turn.checkpoint(text.clone()).await?;
            Ok(if text == "end" {
                Outcome::Complete(Some(vec![text_part(found)]))
            } else {
                Outcome::RequireInput(vec![text_part(found)])
            })
        })
    })
}

on_each_store! {
    async fn the_next_attempt_finds_it(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            let found = turn.last_checkpoint().await?;
            if turn.attempt() == 1 {
                assert_eq!(found, None);
                turn.checkpoint("first").await?;
                turn.checkpoint("half").await?;
                return Err(AgentError::transient("busy"));
            }
            Ok(Outcome::Complete(Some(vec![text_part(String::from_utf8_lossy(&found.unwrap_or_default()))])))
        }));
        let world = place.world(agent).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), said(&task)), (Completed, "half".into()));
    }

    async fn the_next_turn_finds_it(place) {
        let world = place.world(notebook()).await;
        let task = world.send(send("one")).await;
        assert_eq!((state(&task), said(&task)), (InputRequired, "nothing".into()));
        assert_eq!(said(&world.send(send("two").to(&task.id)).await), "one");
        assert_eq!(said(&world.send(send("end").to(&task.id)).await), "two");
    }

    async fn another_task_does_not(place) {
        let world = place.world(notebook()).await;
        let one = world.send(send("one").in_context("c")).await;
        let two = world.send(send("two").in_context("c")).await;
        assert_eq!((said(&one), said(&two)), ("nothing".into(), "nothing".into()));
    }

    async fn the_next_engine_finds_it(place) {
        let mortal = place.mortal(notebook()).await;
        let task = mortal.send(send("one")).await;
        mortal.kill();
        let world = place.world(notebook()).await;
        assert_eq!(said(&world.send(send("end").to(&task.id)).await), "one");
    }

    async fn a_caller_sees_nothing_of_it(place) {
        let steps = vec![Step::Checkpoint("secret-4711"), Step::Artifact("a", "x", false)];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let task = world.send(send("go")).await;
        assert_eq!(world.checkpoint(&task.id).await, Some("secret-4711".into()));
        let told: Vec<u8> = world.log(&task.id).await.iter().flat_map(|item| item.payload.to_vec()).collect();
        assert!(!String::from_utf8_lossy(&told).contains("secret-4711"));
        assert!(!String::from_utf8_lossy(&json::to_json(&world.task(&task.id).await)).contains("secret-4711"));
        assert_eq!(sequences(&world.log(&task.id).await), [1, 2, 3, 4], "it is no event");
    }

    async fn it_may_be_so_large_and_no_larger(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            turn.checkpoint(vec![0; 10]).await?;
            let refused = turn.checkpoint(vec![0; 11]).await;
            assert!(matches!(refused, Err(TurnError::TooLarge { bytes: 11, bytes_max: 10 })), "{refused:?}");
            Ok(Outcome::Complete(None))
        }));
        let world = place.world_with(agent, Config { checkpoint_bytes_max: 10, ..config() }).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), world.checkpoint(&task.id).await.map(|data| data.len())), (Completed, Some(10)));
    }

    async fn a_large_one_is_given_back_byte_for_byte(place) {
        let data: Vec<u8> = (0..1024 * 1024_u32).map(|number| (number % 251) as u8).collect();
        let agent = ScriptedAgent::new(move |turn| {
            let data = data.clone();
            Box::pin(async move {
                if turn.attempt() == 1 {
                    turn.checkpoint(data).await?;
                    return Err(AgentError::transient("busy"));
                }
                Ok(if turn.last_checkpoint().await?.is_some_and(|found| found == data) { Outcome::Complete(None) } else { Outcome::Fail(None) })
            })
        });
        let world = place.world(agent).await;
        assert_eq!(state(&world.send(send("go")).await), Completed);
    }

    async fn what_was_written_before_it_is_stored_with_it(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            for number in 0..100 {
                turn.artifact(piece("a", "x", number > 0)).await?;
                turn.checkpoint((number + 1).to_string()).await?;
                tokio::task::yield_now().await;
            }
            std::future::pending().await
        }));
        let mortal = place.mortal(agent).await;
        let task = mortal.send(send("go").immediately()).await;
        let task_id = TaskId::new(task.id.as_str()).expect("an id");
        while place.store.checkpoint(&task_id).await.expect("it can be read").is_none() {
            tokio::task::yield_now().await;
        }
        mortal.kill();
        let world = place.world(notebook()).await;
        world.until(&task.id, InputRequired).await;
        let known: usize = said(&world.task(&task.id).await).parse().expect("a number");
        let stored = artifacts(&world.task(&task.id).await)[0].1.len();
        assert!(known > 0 && known <= stored, "{known} <= {stored}");
    }

    async fn a_commit_that_fails_takes_both_or_neither(place) {
        for fault in [Fault::Before, Fault::After] {
            let (gate, on) = (Gate::new(), Gate::new());
            let steps = vec![Step::Wait(gate.clone()), Step::Artifact("a", "x", false), Step::Checkpoint("x"), Step::Wait(on.clone())];
            let world = place.world(ScriptedAgent::steps(vec![steps])).await;
            let task = world.send(send("go").immediately()).await;
            gate.reached(1).await;
            world.store.next(Operation::Commit, fault);
            gate.open();
            on.reached(1).await;
            world.clock.pass(Duration::from_millis(10)).await;
            while world.checkpoint(&task.id).await.is_none() {
                tokio::task::yield_now().await;
            }
            on.open();
            world.until(&task.id, Completed).await;
            world.engine.shutdown(HANGS).await.expect("it goes down");
        }
    }

    async fn it_is_stored_before_the_turn_ends_however_it_ends(place) {
        for (last, ends) in [(Step::End(Outcome::Complete(None)), Completed), (Step::Fail("broken"), Failed)] {
            let world = place.world(ScriptedAgent::steps(vec![vec![Step::Checkpoint("last"), last]])).await;
            let task = world.send(send("go")).await;
            assert_eq!((state(&task), world.checkpoint(&task.id).await), (ends, Some("last".into())));
            world.engine.shutdown(HANGS).await.expect("it goes down");
        }
    }

    async fn it_is_removed_with_its_task(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Checkpoint("x")]])).await;
        let task = world.send(send("go")).await;
        assert_eq!(world.checkpoint(&task.id).await, Some("x".into()));
        world.clock.advance(Duration::from_secs(2));
        let purging = world.engine.purge(Completed, Duration::from_secs(1));
        assert_eq!(world.ticking_by(Duration::from_millis(5), purging).await.expect("it works"), 1);
        assert_eq!(world.checkpoint(&task.id).await, None);
        let gone = world.try_subscribe(&task.id, None).await;
        assert!(matches!(gone, Err(EngineError::TaskNotFound(_))), "{gone:?}");
    }
}
