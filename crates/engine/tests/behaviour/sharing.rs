//! Several engines on one store, and what they can know of each other.

use std::time::Duration;

use longhaul_engine::{Outcome, text_part};
use longhaul_protocol::TaskState::{Canceled, Completed, Submitted, Working};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, Step, send};

use crate::world::*;

const SWEEP: Duration = Duration::from_secs(1);

/// An agent that is never asked.
fn idle() -> ScriptedAgent {
    ScriptedAgent::steps(vec![vec![Step::Panic("nobody begins anything here")]])
}

on_each_store! {
    async fn a_task_that_is_made_while_the_store_is_asked_for_it_keeps_its_turn(place) {
        place.store.share();
        let (made, asked, works) = (Gate::new(), Gate::new(), Gate::new());
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Wait(works.clone())]])).await;
        world.store.next(Operation::Commit, Fault::Hold(made.clone()));
        let streaming = world.clone();
        let streaming = beside(async move { streaming.stream(send("go")).await });
        made.reached(1).await;
        // Somebody waits for the task already, and it is not there yet.
        world.store.next(Operation::Marks, Fault::HoldAnswer(asked.clone()));
        world.clock.advance(SWEEP);
        asked.reached(1).await;
        made.open();
        works.reached(1).await;
        asked.open();
        spin(|| {
            world.clock.advance(SWEEP);
            world.store.count(Operation::Marks) >= 2
        }).await;
        works.open();
        let items = collect(streaming.await.expect("no panic")).await;
        assert_eq!(states(&items), [Submitted, Working, Completed]);
        assert_eq!(world.agent.runs().len(), 1);
    }

    async fn a_turn_learns_of_a_cancel_elsewhere_from_its_own_commit(place) {
        place.store.share();
        let gate = Gate::new();
        let stopped = Outcome::Canceled(Some(vec![text_part("stopped")]));
        let steps = vec![Step::Wait(gate.clone()), Step::Progress("on"), Step::Canceled, Step::End(stopped)];
        let (works, other) = (place.world(ScriptedAgent::steps(vec![steps])).await, place.faulty(idle(), config()).await);
        let task = works.send(send("go").immediately()).await;
        gate.reached(1).await;
        let canceling = other.canceling(&task.id);
        while !works.head(&task.id).await.cancel_requested {
            tokio::task::yield_now().await;
        }
        gate.open();
        while works.head(&task.id).await.state != Canceled {
            tokio::task::yield_now().await;
        }
        assert_eq!(said(&works.task(&task.id).await), "stopped");
        let canceled = other.ticking_by(SWEEP, canceling).await.expect("no panic").expect("it ran");
        assert_eq!((state(&canceled), said(&canceled)), (Canceled, "stopped".into()));
    }

    async fn a_turn_learns_of_a_message_elsewhere_from_its_own_commit(place) {
        place.store.share();
        let gate = Gate::new();
        let waits = gate.clone();
        let agent = ScriptedAgent::new(move |turn| {
            let gate = waits.clone();
            Box::pin(async move {
                gate.pass().await;
                turn.progress(vec![text_part("on")]).await?;
                turn.mail().await;
                let texts: Vec<_> = turn.inbox().await?.iter().map(|message| message.text()).collect();
                Ok(Outcome::Complete(Some(vec![text_part(texts.join(" "))])))
            })
        });
        let (works, other) = (place.world(agent).await, place.faulty(idle(), config()).await);
        let task = works.send(send("go").immediately()).await;
        gate.reached(1).await;
        other.send(send("more").to(&task.id).immediately()).await;
        gate.open();
        while works.head(&task.id).await.state != Completed {
            tokio::task::yield_now().await;
        }
        assert_eq!(said(&works.task(&task.id).await), "more");
    }

    async fn a_commit_that_is_made_later_than_the_store_fails_is_made_once(place) {
        let (gate, end) = (Gate::new(), Gate::new());
        let steps = vec![
            Step::Wait(gate.clone()),
            Step::Artifact("a", "1", false),
            Step::Artifact("a", "2", true),
            Step::Progress("on"),
            Step::Wait(end.clone()),
        ];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        world.store.next(Operation::Commit, Fault::Late);
        gate.open();
        world.clock.pass(Duration::from_millis(10)).await;
        while world.head(&task.id).await.last_sequence < 5 {
            tokio::task::yield_now().await;
        }
        end.open();
        world.until(&task.id, Completed).await;
        let log = world.log(&task.id).await;
        assert_eq!(states(&log), [Submitted, Working, Working, Completed]);
        assert_eq!(world.head(&task.id).await.last_sequence, 6);
        assert_eq!(artifacts(&world.task(&task.id).await), [("a".to_owned(), "12".to_owned())]);
    }

    async fn a_start_that_came_to_nothing_does_not_run_the_turn_of_the_next_one(place) {
        let (asked, started, works) = (Gate::new(), Gate::new(), Gate::new());
        let busy = vec![Step::FailForNow("busy")];
        let world = place.world(ScriptedAgent::steps(vec![busy.clone(), busy, vec![Step::Wait(works.clone())]])).await;
        let task = world.send(send("go").immediately()).await;
        world.clock.slept_for(BACKOFF).await;
        let (commits, loads) = (world.store.count(Operation::Commit), world.store.count(Operation::Load));
        // One that is not made, of which the store does not say so; and one that is made and answered late.
        world.store.next(Operation::Commit, Fault::Before);
        world.store.next(Operation::Commit, Fault::HoldAnswer(started.clone()));
        world.store.next(Operation::Load, Fault::Hold(asked.clone()));
        world.clock.advance(BACKOFF);
        spin(|| world.store.count(Operation::Commit) > commits).await;
        spin(|| {
            world.clock.advance(SWEEP);
            world.store.count(Operation::Commit) > commits + 1 && world.store.count(Operation::Load) > loads
        }).await;
        started.reached(1).await;
        asked.reached(1).await;
        asked.open();
        // It is asked for again, or was taken for the one that was not made.
        spin(|| {
            world.clock.advance(SWEEP);
            world.store.count(Operation::Load) > loads + 1 || world.agent.runs().len() > 2
        }).await;
        started.open();
        works.reached(1).await;
        works.open();
        world.until(&task.id, Completed).await;
        assert_eq!(world.agent.runs().len(), 3);
    }
}
