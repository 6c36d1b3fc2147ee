//! Leases: kept alive by heartbeats, lost with them, and taken over by whoever is alive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_engine::{Config, Outcome, Turn, text_part};
use longhaul_protocol::TaskId;
use longhaul_protocol::TaskState::{Canceled, Completed, Submitted, Working};
use longhaul_testkit::{Fault, Gate, Operation, RunFuture, ScriptedAgent, Step, piece, send};

use crate::world::*;

/// An agent that opens a gate when its work is dropped.
fn told_when_dropped(dropped: &Gate) -> ScriptedAgent {
    let dropped = dropped.clone();
    ScriptedAgent::new(move |_| {
        let guard = OpensWhenDropped(dropped.clone());
        Box::pin(async move {
            let _guard = guard;
            std::future::pending().await
        })
    })
}

fn nothing() -> ScriptedAgent {
    ScriptedAgent::steps(vec![vec![]])
}

/// Says what was read from the inbox and the checkpoint.
fn reads_everything<'a>(turn: &'a mut Turn) -> RunFuture<'a> {
    Box::pin(async move {
        let checkpoint = turn.last_checkpoint().await?.unwrap_or_default();
        let inbox: Vec<_> = turn.inbox().await?.iter().map(longhaul_protocol::Message::text).collect();
        let said = format!("{} {} {}", turn.message().text(), inbox.join(","), String::from_utf8_lossy(&checkpoint));
        Ok(Outcome::Complete(Some(vec![text_part(said)])))
    })
}

on_each_store! {
    async fn a_turn_of_ten_leases_length_keeps_its_epoch(place) {
        let gate = Gate::new();
        let steps = vec![Step::Wait(gate.clone()), Step::Progress("on"), Step::Artifact("a", "x", false)];
        let world = place.world_with(ScriptedAgent::steps(vec![steps]), leased()).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        world.beats(30).await;
        assert!(world.store.count(Operation::Renew) >= 30);
        gate.open();
        world.until(&task.id, Completed).await;
        let head = world.head(&task.id).await;
        assert_eq!((head.epoch, head.attempt, world.agent.runs().len()), (1, 1, 1));
        assert_eq!(states(&world.log(&task.id).await), [Submitted, Working, Working, Completed]);
        assert_eq!(world.engine.stats().refused_writes, 0);
    }

    async fn an_engine_without_turns_renews_nothing(place) {
        let world = place.world_with(nothing(), leased()).await;
        world.send(send("go")).await;
        world.beats(3).await;
        assert_eq!(world.store.count(Operation::Renew), 0);
    }

    async fn a_renewal_that_failed_is_tried_again_before_the_lease_is_over(place) {
        let gate = Gate::new();
        let world = place.world_with(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]), leased()).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        for fault in [Fault::Before, Fault::After, Fault::Before] {
            world.store.next(Operation::Renew, fault);
        }
        world.clock.pass(BEAT).await;
        for _ in 0..3 {
            world.clock.pass(BEAT / 4).await;
        }
        world.beats(4).await;
        gate.open();
        world.until(&task.id, Completed).await;
        assert_eq!(world.agent.runs().len(), 1);
    }

    async fn a_turn_whose_renewals_fail_stops_in_time_and_is_run_again(place) {
        let dropped = Gate::new();
        let world = place.world_with(told_when_dropped(&dropped), leased()).await;
        let task = world.send(send("go").immediately()).await;
        world.agent.ran(1).await;
        for _ in 0..100 {
            world.store.next(Operation::Renew, Fault::Before);
        }
        world.clock.pass(BEAT).await;
        while world.passed() < LEASE - BEAT / 4 {
            world.clock.pass(BEAT / 4).await;
        }
        assert!(world.passed() < LEASE, "it stops before anybody else may begin");
        dropped.pass().await;
        spin(|| world.engine.stats().turns == 0).await;
        assert_eq!(world.agent.runs().len(), 1, "the lease itself is alive still");
        world.clock.pass(LEASE - world.passed()).await;
        world.agent.ran(2).await;
        let run = &world.agent.runs()[1];
        assert_eq!((run.attempt, run.epoch, run.task_id.as_str()), (2, 2, task.id.as_str()));
    }

    async fn a_turn_stops_although_the_store_does_not_answer(place) {
        let (dropped, never) = (Gate::new(), Gate::new());
        let world = place.world_with(told_when_dropped(&dropped), leased()).await;
        world.send(send("go").immediately()).await;
        world.agent.ran(1).await;
        for _ in 0..100 {
            world.store.next(Operation::Renew, Fault::Hold(never.clone()));
        }
        world.clock.pass(BEAT).await;
        never.reached(1).await;
        let time = async {
            loop {
                world.clock.advance(BEAT / 8);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
            }
        };
        tokio::select! {
            biased;
            () = dropped.pass() => {}
            () = time => {}
        }
    }

    async fn who_takes_over_gets_message_inbox_and_checkpoint(place) {
        let gate = Gate::new();
        let heir = place.world_with(ScriptedAgent::new(reads_everything), leased()).await;
        let steps = vec![Step::Artifact("a", "x", false), Step::Checkpoint("half"), Step::Wait(gate.clone())];
        let mortal = place.mortal_with(ScriptedAgent::steps(vec![steps]), leased()).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.send(send("more").to(&task.id).immediately()).await;
        while heir.checkpoint(&task.id).await.is_none() {
            tokio::task::yield_now().await;
        }
        mortal.kill();
        assert!(heir.agent.runs().is_empty());
        heir.clock.pass(LEASE).await;
        heir.until(&task.id, Completed).await;
        let run = &heir.agent.runs()[0];
        assert_eq!((run.attempt, run.epoch, run.text.as_str()), (2, 2, "go"));
        let after = heir.task(&task.id).await;
        assert_eq!((said(&after), artifacts(&after)), ("go more half".into(), vec![("a".into(), "x".into())]));
        assert_eq!(states(&heir.log(&task.id).await), [Submitted, Working, Completed], "a new attempt is no event");
    }

    async fn a_lease_that_runs_out_wakes_the_scheduler_and_nothing_else_does(place) {
        let gate = Gate::new();
        let heir = place.faulty(nothing(), leased()).await;
        let mortal = place.mortal_with(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]), leased()).await;
        mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        heir.clock.slept_for(LEASE).await;
        let asked = || heir.store.count(Operation::Due) + heir.store.count(Operation::NextDue);
        let before = asked();
        for _ in 0..30 {
            heir.clock.pass(Duration::from_secs(1)).await;
        }
        heir.clock.slept_for(Duration::from_secs(1)).await;
        assert_eq!(asked(), before, "nobody asks before it is time");
        heir.clock.advance(Duration::from_secs(1));
        heir.agent.ran(1).await;
    }

    async fn the_late_writes_of_a_zombie_are_refused_and_counted(place) {
        let late = [
            Step::Artifact("late", "x", false),
            Step::Progress("late"),
            Step::Checkpoint("late"),
            Step::FailForNow("late"),
            Step::End(Outcome::Complete(None)),
        ];
        for last in late {
            let (gate, held) = (Gate::new(), Gate::new());
            let zombie = place.paused(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone()), last, Step::Wait(Gate::new())]])).await;
            let heir = place.world_with(ScriptedAgent::steps(vec![vec![Step::Wait(held.clone())]]), leased()).await;
            let task = zombie.send(send("go").immediately()).await;
            gate.reached(1).await;
            heir.clock.slept_for(LEASE).await;
            heir.clock.advance(LEASE);
            held.reached(1).await;
            assert_eq!((heir.agent.runs()[0].attempt, heir.agent.runs()[0].epoch), (2, 2));
            let before = (heir.task(&task.id).await, heir.head(&task.id).await);
            gate.open();
            spin(|| zombie.engine.stats().refused_writes == 1).await;
            spin(|| zombie.engine.stats().turns == 0).await;
            assert_eq!((heir.task(&task.id).await, heir.head(&task.id).await), before);
            assert_eq!(heir.checkpoint(&task.id).await, None);
            held.open();
            heir.until(&task.id, Completed).await;
            assert_eq!(heir.agent.runs().len(), 1);
            heir.engine.shutdown(HANGS).await.expect("it goes down");
            zombie.engine.shutdown(HANGS).await.expect("it goes down");
        }
    }

    async fn a_heartbeat_of_a_zombie_stops_its_turn(place) {
        let (dropped, held) = (Gate::new(), Gate::new());
        let zombie = place.paused(told_when_dropped(&dropped)).await;
        let heir = place.world_with(ScriptedAgent::steps(vec![vec![Step::Wait(held.clone())]]), leased()).await;
        let task = zombie.send(send("go").immediately()).await;
        zombie.agent.ran(1).await;
        heir.clock.slept_for(LEASE).await;
        heir.clock.advance(LEASE);
        held.reached(1).await;
        let before = heir.head(&task.id).await;
        zombie.clock.pass(BEAT).await;
        dropped.pass().await;
        assert_eq!(heir.head(&task.id).await, before, "a lease that is somebody else's is not renewed");
        held.open();
        heir.until(&task.id, Completed).await;
    }

    async fn no_task_is_run_by_two_at_once(place) {
        let (busy, twice) = (Arc::new(Mutex::new(HashMap::<TaskId, usize>::new())), Gate::new());
        let agent = || {
            let (busy, twice) = (Arc::clone(&busy), twice.clone());
            ScriptedAgent::new(move |turn| {
                let (busy, twice) = (Arc::clone(&busy), twice.clone());
                Box::pin(async move {
                    let count = |by: usize| {
                        let mut busy = busy.lock().expect("no panic");
                        let runs = busy.entry(turn.task_id().clone()).or_default();
                        *runs = *runs + by - 1;
                        *runs
                    };
                    if count(2) > 1 {
                        twice.open();
                    }
                    for number in 0..3 {
                        turn.artifact(piece("a", "x", number > 0)).await?;
                        tokio::task::yield_now().await;
                    }
                    count(0);
                    Ok(if turn.is_first() { Outcome::RequireInput(vec![text_part("?")]) } else { Outcome::Complete(None) })
                })
            })
        };
        let few = || Config { workers_max: 2, ..config() };
        let (one, two) = (place.world_with(agent(), few()).await, place.world_with(agent(), few()).await);
        let talks: Vec<_> = (0..30)
            .map(|number| {
                let (one, two) = if number % 2 == 0 { (one.clone(), two.clone()) } else { (two.clone(), one.clone()) };
                beside(async move {
                    let task = one.send(send("go")).await;
                    state(&two.send(send("on").to(&task.id)).await)
                })
            })
            .collect();
        let ended = async {
            for talk in talks {
                assert_eq!(talk.await.expect("no panic"), Completed);
            }
        };
        one.ticking(ended).await;
        let stopped = twice.pass();
        tokio::select! {
            biased;
            () = stopped => panic!("a task was run by two at once"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(one.agent.runs().len() + two.agent.runs().len(), 60);
    }

    async fn a_task_whose_worker_died_is_canceled_after_the_grace(place) {
        let gate = Gate::new();
        let heir = place.world_with(nothing(), leased()).await;
        let mortal = place.mortal_with(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]), leased()).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        let canceling = heir.canceling(&task.id);
        heir.clock.pass(GRACE).await;
        let canceled = canceling.await.expect("no panic").expect("it works");
        assert_eq!(state(&canceled), Canceled);
        heir.clock.advance(LEASE);
        assert_eq!(heir.task(&task.id).await, canceled);
        assert_eq!(states(&heir.log(&task.id).await), [Submitted, Working, Canceled]);
        assert!(heir.agent.runs().is_empty());
    }

    async fn a_task_whose_lease_is_over_is_canceled_at_once(place) {
        let gate = Gate::new();
        let mortal = place.mortal_with(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]), leased()).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        place.clock.advance(LEASE);
        // Not started, so that nobody but the cancel has seen that the lease is over.
        let agent = Arc::new(nothing());
        let idle = place.idle(&agent, leased());
        let canceled = idle.cancel_task(&longhaul_engine::Scope::default(), &task.id).await.expect("it works");
        assert_eq!(state(&canceled), Canceled);
    }

    async fn a_lease_that_runs_out_within_the_grace_ends_the_cancel(place) {
        let gate = Gate::new();
        let heir = place.world_with(nothing(), leased()).await;
        let mortal = place.mortal_with(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]), leased()).await;
        let task = mortal.send(send("go").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        heir.clock.slept_for(LEASE).await;
        let left = Duration::from_secs(3);
        heir.clock.advance(LEASE - left);
        let canceling = heir.canceling(&task.id);
        heir.clock.slept_for(GRACE).await;
        heir.clock.advance(left);
        let canceled = canceling.await.expect("no panic").expect("it works");
        assert_eq!(state(&canceled), Canceled);
        assert_eq!(heir.task(&task.id).await, canceled);
        assert_eq!(states(&heir.log(&task.id).await), [Submitted, Working, Canceled]);
        assert!(heir.agent.runs().is_empty(), "nobody begins what is to be canceled");
    }

    async fn cancel_and_take_over_race_to_one_end(place) {
        for round in 0..20 {
            let gate = Gate::new();
            let mortal = place.mortal_with(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]), leased()).await;
            let task = mortal.send(send("go").immediately()).await;
            gate.reached(1).await;
            mortal.kill();
            let heir = place.world_with(ScriptedAgent::steps(vec![vec![Step::Canceled, Step::End(Outcome::Canceled(None))]]), leased()).await;
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            let canceled = heir.cancel(&task.id).await.expect("it works");
            assert_eq!(state(&canceled), Canceled);
            assert_eq!(heir.task(&task.id).await, canceled);
            assert_eq!(states(&heir.log(&task.id).await), [Submitted, Working, Canceled]);
            heir.engine.shutdown(HANGS).await.expect("it goes down");
        }
    }
}
