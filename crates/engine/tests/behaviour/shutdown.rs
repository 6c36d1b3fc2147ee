//! Going down in order: turns may end, and those that do not are handed back.

use std::time::Duration;

use longhaul_engine::{Config, EngineError, Outcome, text_part};
use longhaul_protocol::TaskState::{Canceled, Completed, Failed, InputRequired, Submitted, Working};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, Step, send};

use crate::world::*;

const LONG: Duration = Duration::from_secs(100_000);

/// Waits at the gate, which nobody opens, in its first turn.
fn stuck(gate: &Gate) -> ScriptedAgent {
    ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]])
}

fn nothing() -> ScriptedAgent {
    ScriptedAgent::steps(vec![vec![]])
}

async fn goes_down(world: &World, drain: Duration) {
    world.engine.shutdown(drain).await.expect("it goes down");
}

on_each_store! {
    async fn turns_may_end_while_their_leases_are_renewed(place) {
        let gate = Gate::new();
        let steps = vec![Step::Wait(gate.clone()), Step::Artifact("a", "x", false), Step::Progress("nearly")];
        let world = place.world_with(ScriptedAgent::steps(vec![steps]), leased()).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        let leaving = world.clone();
        let shutdown = beside(async move { goes_down(&leaving, LONG).await });
        world.engine.closed().await;
        world.beats(9).await;
        assert!(world.store.count(Operation::Renew) >= 9);
        gate.open();
        shutdown.await.expect("no panic");
        let after = world.task(&task.id).await;
        assert_eq!((state(&after), artifacts(&after).len()), (Completed, 1));
        assert_eq!((world.head(&task.id).await.epoch, world.engine.stats()), (1, longhaul_engine::EngineStats::default()));
    }

    async fn a_turn_that_is_handed_back_starts_at_once_with_its_attempt_unspent(place) {
        let gate = Gate::new();
        let world = place.world_with(stuck(&gate), leased()).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        goes_down(&world, Duration::ZERO).await;
        let head = world.head(&task.id).await;
        assert_eq!((head.state, head.leased, head.attempt, head.epoch, head.failures.len()), (Working, false, 0, 1, 0));
        let heir = place.world_with(stuck(&Gate::new()), leased()).await;
        heir.agent.ran(1).await;
        let run = &heir.agent.runs()[0];
        assert_eq!((run.attempt, run.epoch, run.text.as_str()), (1, 2, "go"));
        goes_down(&heir, Duration::ZERO).await;
        let last = place.world(nothing()).await;
        last.until(&task.id, Completed).await;
        assert_eq!((last.agent.runs()[0].attempt, last.agent.runs()[0].epoch), (1, 3));
        assert_eq!(states(&last.log(&task.id).await), [Submitted, Working, Completed]);
    }

    async fn attempts_that_were_spent_before_stay_spent(place) {
        let gate = Gate::new();
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::FailForNow("busy")], vec![Step::Wait(gate.clone())]])).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        goes_down(&world, Duration::ZERO).await;
        let next = place.world(ScriptedAgent::steps(vec![vec![Step::FailForNow("still busy")]])).await;
        next.clock.pass(BACKOFF).await;
        next.until(&task.id, Failed).await;
        let attempts: Vec<_> = next.agent.runs().iter().map(|run| (run.attempt, run.epoch)).collect();
        assert_eq!(attempts, [(2, 3), (3, 4)]);
        assert!(said(&next.task(&task.id).await).contains("3 attempts"));
    }

    async fn a_turn_that_must_not_run_twice_has_failed(place) {
        let gate = Gate::new();
        let steps = vec![Step::Artifact("a", "x", false), Step::Wait(gate.clone())];
        let world = place.world(ScriptedAgent::steps(vec![steps]).with_attempts_max(1)).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        goes_down(&world, Duration::ZERO).await;
        let after = world.task(&task.id).await;
        assert_eq!((state(&after), said(&after), artifacts(&after).len()), (Failed, "interrupted by shutdown".into(), 1));
        let next = place.world(nothing().with_attempts_max(1)).await;
        assert_eq!(state(&next.send(send("other")).await), Completed);
        assert_eq!(next.agent.runs().len(), 1);
    }

    async fn what_was_written_before_it_is_handed_back_is_stored(place) {
        let gate = Gate::new();
        let steps = vec![Step::Artifact("a", "x", false), Step::Checkpoint("half"), Step::Progress("on"), Step::Wait(gate.clone())];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        goes_down(&world, Duration::ZERO).await;
        let after = world.task(&task.id).await;
        assert_eq!((artifacts(&after).len(), said(&after), world.checkpoint(&task.id).await), (1, "on".into(), Some("half".into())));
    }

    async fn a_turn_that_is_to_be_canceled_is_canceled_then(place) {
        let gate = Gate::new();
        let world = place.world(stuck(&gate)).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        let canceling = world.canceling(&task.id);
        world.clock.slept_for(GRACE).await;
        goes_down(&world, Duration::ZERO).await;
        let canceled = canceling.await.expect("no panic");
        assert_eq!(state(&world.task(&task.id).await), Canceled);
        assert!(canceled.is_ok_and(|task| state(&task) == Canceled));
    }

    async fn a_question_that_is_asked_during_the_drain_is_kept(place) {
        let gate = Gate::new();
        let steps = vec![Step::Wait(gate.clone()), Step::End(Outcome::RequireInput(vec![text_part("which?")]))];
        let world = place.world(ScriptedAgent::steps(vec![steps])).await;
        let sending = world.sending(send("go"));
        gate.reached(1).await;
        let leaving = world.clone();
        let shutdown = beside(async move { goes_down(&leaving, LONG).await });
        world.engine.closed().await;
        gate.open();
        let task = answer(sending).await;
        assert_eq!((state(&task), said(&task)), (InputRequired, "which?".into()), "who waits for the turn gets its answer");
        shutdown.await.expect("no panic");
    }

    async fn nothing_new_is_begun_during_the_drain(place) {
        let gate = Gate::new();
        let world = place.world_with(stuck(&gate), Config { workers_max: 1, ..config() }).await;
        let running = world.send(send("first").immediately()).await;
        let waiting = world.send(send("second").immediately()).await;
        gate.reached(1).await;
        let leaving = world.clone();
        let shutdown = beside(async move { goes_down(&leaving, LONG).await });
        world.engine.closed().await;
        let refused = world.try_send(send("third")).await;
        assert!(matches!(refused, Err(EngineError::Unavailable { .. })), "{refused:?}");
        gate.open();
        shutdown.await.expect("no panic");
        assert_eq!((state(&world.task(&running.id).await), state(&world.task(&waiting.id).await)), (Completed, Submitted));
        assert_eq!(world.agent.runs().len(), 1);
        let next = place.world(nothing()).await;
        next.until(&waiting.id, Completed).await;
    }

    async fn streams_end_and_who_waits_is_told(place) {
        let gate = Gate::new();
        let world = place.world_with(stuck(&gate), Config { workers_max: 1, ..config() }).await;
        let running = world.sending(send("first"));
        gate.reached(1).await;
        let task_id = world.agent.runs()[0].task_id.as_str().to_owned();
        let waiting = world.sending(send("second"));
        let more = world.sending(send("more").to(&task_id));
        let mut follows = world.subscribe(&task_id, None).await;
        first(&mut follows).await;
        let mut streams = world.stream(send("third")).await;
        first(&mut streams).await;
        // All are stored, so that none of them is refused for that.
        while world.total().await < 3 || world.head(&task_id).await.waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        goes_down(&world, Duration::ZERO).await;
        assert!(streams.next().await.is_none());
        while let Some(items) = follows.next().await {
            items.expect("no error");
        }
        for sending in [running, waiting, more] {
            let told = sending.await.expect("no panic");
            assert!(matches!(told, Err(EngineError::Unavailable { .. })), "{told:?}");
        }
        assert_eq!(world.engine.stats().turns, 0);
    }

    async fn a_turn_that_is_not_ready_to_run_yet_is_handed_back_as_well(place) {
        let held = Gate::new();
        let turns = vec![vec![Step::Artifact("a", "1", false), Step::End(Outcome::RequireInput(vec![text_part("?")]))], vec![Step::Wait(Gate::new())]];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        world.store.next(Operation::EventsAfter, Fault::Hold(held.clone()));
        world.send(send("on").to(&task.id).immediately()).await;
        held.reached(1).await;
        let leaving = world.clone();
        let shutdown = beside(async move { goes_down(&leaving, Duration::ZERO).await });
        // The time that turns have to let go.
        world.clock.slept_for(Duration::from_secs(5)).await;
        held.open();
        shutdown.await.expect("no panic");
        let head = world.head(&task.id).await;
        assert_eq!((head.leased, head.attempt, head.turn_message), (false, 0, 2));
        let next = place.world(nothing()).await;
        next.until(&task.id, Completed).await;
        assert_eq!((next.agent.runs()[0].text.as_str(), next.agent.runs()[0].attempt), ("on", 1));
    }

    async fn a_store_that_refuses_is_asked_again(place) {
        let gate = Gate::new();
        let world = place.world(stuck(&gate)).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        world.store.next(Operation::Commit, Fault::Before);
        let leaving = world.clone();
        let shutdown = beside(async move { goes_down(&leaving, Duration::ZERO).await });
        world.clock.pass(Duration::from_millis(10)).await;
        shutdown.await.expect("no panic");
        assert!(!world.head(&task.id).await.leased);
    }

    async fn a_turn_that_does_not_let_go_is_left_to_its_lease(place) {
        let (gate, held) = (Gate::new(), Gate::new());
        let world = place.faulty(stuck(&gate), leased()).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        world.store.next(Operation::Commit, Fault::Hold(held.clone()));
        let leaving = world.clone();
        let shutdown = beside(async move { goes_down(&leaving, Duration::ZERO).await });
        held.reached(1).await;
        world.clock.pass(Duration::from_secs(5)).await;
        shutdown.await.expect("no panic");
        assert!(world.head(&task.id).await.leased);
        let next = place.world(nothing()).await;
        next.until(&task.id, Completed).await;
        assert_eq!(next.agent.runs()[0].attempt, 2, "nobody can say what became of it");
        held.open();
        spin(|| world.engine.stats().refused_writes == 1).await;
        assert_eq!(state(&next.task(&task.id).await), Completed);
    }
}
