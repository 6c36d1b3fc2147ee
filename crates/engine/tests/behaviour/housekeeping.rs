//! What nobody waits for: stale tasks fail, and tasks that were kept for long enough are removed.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Config, EngineError, HistoryLimit, Outcome, Reclaim, Reclaimed, Retention, Scope};
use longhaul_protocol::TaskState::{
    self, AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Working,
};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, end_of, piece, send};

use crate::world::*;

const HOUR: Duration = Duration::from_secs(60 * 60);
const MINUTE: Duration = Duration::from_secs(60);
/// How long writers have between two steps.
const BREATH: Duration = Duration::from_millis(5);

/// Ends as the text says; waits at the gate when it says so.
fn obedient(gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(move |turn| {
        let (gate, text) = (gate.clone(), turn.message().text());
        Box::pin(async move {
            if text == "wait" {
                gate.pass().await;
            }
            Ok(end_of(&text))
        })
    })
}

/// Says what it has to say in ten pieces.
fn talkative() -> ScriptedAgent {
    ScriptedAgent::new(|turn| {
        Box::pin(async move {
            for number in 0..10 {
                turn.artifact(piece("a", number.to_string(), number > 0)).await?;
            }
            Ok(Outcome::Complete(None))
        })
    })
}

fn older_than_an_hour() -> Reclaim {
    Reclaim { older_than: HOUR, states: Vec::new(), dry_run: false }
}

fn ids(reclaimed: &[Reclaimed]) -> Vec<String> {
    let mut ids: Vec<_> = reclaimed.iter().map(|reclaimed| reclaimed.task_id.as_str().to_owned()).collect();
    ids.sort_unstable();
    ids
}

fn sorted(ids: &[&String]) -> Vec<String> {
    let mut ids: Vec<_> = ids.iter().map(|id| (*id).clone()).collect();
    ids.sort_unstable();
    ids
}

async fn is_gone(world: &World, task_id: &str) -> bool {
    let read = world.engine.get_task(&Scope::default(), task_id, HistoryLimit::All).await;
    matches!(read, Err(EngineError::TaskNotFound(_)))
}

on_each_store! {
    async fn a_dry_run_says_what_is_stale_and_changes_nothing(place) {
        let gate = Gate::new();
        let world = place.world_with(obedient(&gate), Config { workers_max: 1, ..config() }).await;
        let asked = world.send(send("input which?")).await;
        let auth = world.send(send("auth who?")).await;
        let done = world.send(send("ok")).await;
        let running = world.send(send("wait").immediately()).await;
        gate.reached(1).await;
        let waiting = world.send(send("ok").immediately()).await;
        world.clock.advance(HOUR + MINUTE);
        let young = world.send(send("ok").immediately()).await;
        let before = [world.task(&asked.id).await, world.task(&waiting.id).await, world.task(&running.id).await];
        let told = world.engine.reclaim(Reclaim { dry_run: true, ..older_than_an_hour() }).await.expect("it works");
        assert_eq!(ids(&told), sorted(&[&asked.id, &auth.id, &waiting.id]), "neither {} nor {} nor {}", done.id, running.id, young.id);
        for (task, was, why) in [(&asked, InputRequired, "no input"), (&auth, AuthRequired, "no authorization"), (&waiting, Submitted, "no worker")] {
            let told = told.iter().find(|told| told.task_id.as_str() == task.id).expect("it is told");
            assert_eq!((told.state, told.context_id.as_str()), (was, task.context_id.as_str()));
            assert_eq!(Some(told.since), task.status.as_ref().and_then(|status| status.timestamp));
            assert!(told.why.contains(why) && told.why.contains("3600 s"), "{}", told.why);
        }
        assert_eq!([world.task(&asked.id).await, world.task(&waiting.id).await, world.task(&running.id).await], before);
        gate.open();
    }

    async fn stale_tasks_fail_and_say_why(place) {
        let gate = Gate::new();
        let world = place.world_with(obedient(&gate), Config { workers_max: 1, ..config() }).await;
        let asked = world.send(send("input which?")).await;
        let auth = world.send(send("auth who?")).await;
        let done = world.send(send("ok")).await;
        let running = world.send(send("wait").immediately()).await;
        gate.reached(1).await;
        let waiting = world.send(send("ok").immediately()).await;
        let mut stream = world.subscribe(&asked.id, None).await;
        first(&mut stream).await;
        world.clock.advance(HOUR + MINUTE);
        let done = world.task(&done.id).await;
        let reclaimed = world.engine.reclaim(older_than_an_hour()).await.expect("it works");
        assert_eq!(ids(&reclaimed), sorted(&[&asked.id, &auth.id, &waiting.id]));
        for task in &reclaimed {
            let after = world.task(task.task_id.as_str()).await;
            assert_eq!((state(&after), said(&after)), (Failed, task.why.clone()));
        }
        assert_eq!(states(&collect(stream).await), [Failed], "who follows it is told");
        assert_eq!(history(&world.task(&asked.id).await), ["input which?", "input which?"], "the question stays");
        assert_eq!((world.task(&done.id).await, state(&world.task(&running.id).await)), (done, Working));
        assert!(world.engine.reclaim(older_than_an_hour()).await.expect("it works").is_empty());
        gate.open();
        world.until(&running.id, Completed).await;
        assert!(!world.agent.runs().iter().any(|run| run.task_id.as_str() == waiting.id), "it never runs");
    }

    async fn only_the_states_that_are_named_are_looked_at(place) {
        let world = place.world(obedient(&Gate::new())).await;
        let asked = world.send(send("input")).await;
        let auth = world.send(send("auth")).await;
        let done = world.send(send("ok")).await;
        world.clock.advance(HOUR + MINUTE);
        let ended = Reclaim { states: vec![Completed, Failed], ..older_than_an_hour() };
        assert!(world.engine.reclaim(ended).await.expect("it works").is_empty());
        let only = Reclaim { states: vec![AuthRequired, Completed], ..older_than_an_hour() };
        assert_eq!(ids(&world.engine.reclaim(only).await.expect("it works")), [auth.id]);
        assert_eq!((state(&world.task(&asked.id).await), state(&world.task(&done.id).await)), (InputRequired, Completed));
    }

    async fn a_task_that_nobody_runs_any_more_is_stale(place) {
        let gate = Gate::new();
        let mortal = place.mortal_with(obedient(&gate), leased()).await;
        let task = mortal.send(send("wait").immediately()).await;
        gate.reached(1).await;
        mortal.kill();
        place.clock.advance(HOUR + MINUTE);
        let agent = Arc::new(obedient(&gate));
        let idle = place.idle(&agent, leased());
        let reclaimed = idle.reclaim(older_than_an_hour()).await.expect("it works");
        assert_eq!((reclaimed.len(), reclaimed[0].state), (1, Working));
        assert!(reclaimed[0].why.contains("no worker was heard of"), "{}", reclaimed[0].why);
        let after = idle.get_task(&Scope::default(), &task.id, HistoryLimit::All).await.expect("it is there");
        assert_eq!(state(&after), Failed);
    }

    async fn an_answer_that_comes_in_between_is_first(place) {
        let world = place.world(obedient(&Gate::new())).await;
        let (one, two) = (world.send(send("input")).await, world.send(send("input")).await);
        world.clock.advance(HOUR + MINUTE);
        let held = Gate::new();
        world.store.next(Operation::Stale, Fault::HoldAnswer(held.clone()));
        let engine = world.engine.clone();
        let reclaiming = beside(async move { engine.reclaim(older_than_an_hour()).await });
        held.reached(1).await;
        assert_eq!(state(&world.send(send("ok").to(&one.id)).await), Completed);
        held.open();
        let reclaimed = reclaiming.await.expect("no panic").expect("it works");
        assert_eq!(ids(&reclaimed), [two.id]);
        assert_eq!(state(&world.task(&one.id).await), Completed);
    }

    async fn more_than_a_page_of_stale_tasks_fail(place) {
        let world = place.world(obedient(&Gate::new())).await;
        for _ in 0..250 {
            world.send(send("input")).await;
        }
        world.clock.advance(HOUR + MINUTE);
        let dry = Reclaim { dry_run: true, ..older_than_an_hour() };
        assert_eq!(world.engine.reclaim(dry).await.expect("it works").len(), 250);
        assert_eq!(world.engine.reclaim(older_than_an_hour()).await.expect("it works").len(), 250);
        assert!(world.engine.reclaim(older_than_an_hour()).await.expect("it works").is_empty());
    }

    async fn a_store_that_fails_says_so(place) {
        let world = place.world(obedient(&Gate::new())).await;
        world.store.next(Operation::Stale, Fault::Before);
        let failed = world.engine.reclaim(older_than_an_hour()).await;
        assert!(matches!(failed, Err(EngineError::Unavailable { .. })), "{failed:?}");
        world.store.next(Operation::Purge, Fault::Before);
        let failed = world.engine.purge(Completed, HOUR).await;
        assert!(matches!(failed, Err(EngineError::Unavailable { .. })), "{failed:?}");
    }

    async fn a_setting_gives_stale_tasks_up(place) {
        let world = place.world_with(obedient(&Gate::new()), Config { stale_after: Some(HOUR), ..config() }).await;
        let task = world.send(send("input")).await;
        world.clock.pass(MINUTE).await;
        world.clock.slept_for(MINUTE).await;
        assert_eq!(state(&world.task(&task.id).await), InputRequired);
        world.clock.advance(HOUR);
        world.until(&task.id, Failed).await;
        assert!(said(&world.task(&task.id).await).contains("stale"));
    }

    async fn without_the_setting_a_question_stays_for_ever(place) {
        let world = place.world(obedient(&Gate::new())).await;
        let task = world.send(send("input")).await;
        for _ in 0..3 {
            world.clock.pass(MINUTE).await;
            world.clock.slept_for(MINUTE).await;
            world.clock.advance(Duration::from_secs(30 * 24 * 60 * 60));
        }
        world.clock.slept_for(MINUTE).await;
        assert_eq!(state(&world.task(&task.id).await), InputRequired);
    }

    async fn tasks_that_ended_are_kept_as_long_as_their_state_says(place) {
        let retention = Retention { completed: Some(HOUR), failed: Some(2 * HOUR), canceled: None, rejected: Some(HOUR) };
        let world = place.world_with(obedient(&Gate::new()), Config { retention, ..config() }).await;
        let tasks = [world.send(send("ok")).await, world.send(send("reject")).await, world.send(send("fail")).await, world.send(send("input")).await];
        let canceled = world.send(send("input")).await;
        world.cancel(&canceled.id).await.expect("it waits");
        let [completed, rejected, failed, asked] = tasks.map(|task| task.id);
        world.clock.pass(MINUTE).await;
        world.clock.slept_for(MINUTE).await;
        assert_eq!(world.total().await, 5);
        world.clock.advance(HOUR);
        world.ticking_by(BREATH, world.clock.slept_for(MINUTE)).await;
        assert!(is_gone(&world, &completed).await && is_gone(&world, &rejected).await);
        assert_eq!((world.total().await, state(&world.task(&failed).await)), (3, Failed));
        world.clock.advance(HOUR);
        world.ticking_by(BREATH, world.clock.slept_for(MINUTE)).await;
        assert!(is_gone(&world, &failed).await);
        assert_eq!((state(&world.task(&asked).await), state(&world.task(&canceled.id).await)), (InputRequired, Canceled));
        assert_eq!(world.total().await, 2);
        assert!(world.store.count(Operation::GiveBack) >= 2, "the space is given back");
    }

    async fn a_task_that_was_removed_is_not_found_by_anybody(place) {
        let world = place.world(obedient(&Gate::new())).await;
        let task = world.send(send("ok").with_id("m").idempotent()).await;
        world.clock.advance(HOUR + MINUTE);
        let purging = world.engine.purge(Completed, HOUR);
        assert_eq!(world.ticking_by(BREATH, purging).await.expect("it works"), 1);
        assert!(is_gone(&world, &task.id).await);
        assert!(matches!(world.cancel(&task.id).await, Err(EngineError::TaskNotFound(_))));
        assert!(matches!(world.try_send(send("ok").to(&task.id)).await, Err(EngineError::TaskNotFound(_))));
        assert!(matches!(world.try_subscribe(&task.id, Some(1)).await, Err(EngineError::TaskNotFound(_))));
        let again = world.send(send("ok").with_id("m").idempotent()).await;
        assert_ne!(again.id, task.id, "its message begins a new task");
        assert_eq!(world.total().await, 1);
    }

    async fn tasks_are_removed_in_small_steps(place) {
        let world = place.world(obedient(&Gate::new())).await;
        for _ in 0..120 {
            world.send(send("ok")).await;
        }
        world.clock.advance(HOUR + MINUTE);
        let engine = world.engine.clone();
        let purging = beside(async move { engine.purge(Completed, HOUR).await });
        for left in [70, 21] {
            world.clock.slept_for(BREATH).await;
            assert_eq!(world.total().await, left);
            assert_eq!(state(&world.send(send("input")).await), InputRequired, "others write meanwhile");
            world.clock.advance(BREATH);
        }
        assert_eq!(world.ticking_by(BREATH, purging).await.expect("no panic").expect("it works"), 120);
        assert_eq!(world.total().await, 2);
    }

    async fn logs_are_merged_when_their_tasks_ended_long_enough_ago(place) {
        let world = place.world_with(talkative(), Config { compact_after: Some(HOUR), ..config() }).await;
        let task = world.send(send("ok")).await;
        let (whole, before) = (world.log(&task.id).await, world.task(&task.id).await);
        assert_eq!(whole.len(), 13);
        world.clock.pass(MINUTE).await;
        world.clock.slept_for(MINUTE).await;
        assert!(world.store.count(Operation::Compact) > 0);
        assert_eq!(world.log(&task.id).await, whole, "it is too young");
        world.clock.advance(HOUR);
        world.ticking_by(BREATH, world.clock.slept_for(MINUTE)).await;
        let merged = world.log(&task.id).await;
        assert_eq!((merged.len(), snapshot(&merged[0])), (1, Some(before.clone())));
        assert_eq!(world.task(&task.id).await, before);
    }

    async fn logs_of_many_tasks_are_merged_in_steps(place) {
        let world = place.world_with(talkative(), Config { compact_after: Some(HOUR), ..config() }).await;
        let mut tasks = Vec::new();
        for _ in 0..120 {
            tasks.push(world.send(send("ok")).await);
        }
        world.clock.pass(MINUTE).await;
        world.clock.slept_for(MINUTE).await;
        let before = world.store.count(Operation::Compact);
        world.clock.advance(HOUR);
        for steps in [1, 2] {
            world.clock.slept_for(BREATH).await;
            assert_eq!(world.store.count(Operation::Compact), before + steps);
            world.clock.advance(BREATH);
        }
        world.clock.slept_for(MINUTE).await;
        assert_eq!(world.store.count(Operation::Compact), before + 3);
        for task in &tasks {
            assert_eq!(world.log(&task.id).await.len(), 1);
        }
    }

    async fn without_the_setting_logs_stay_whole(place) {
        let world = place.world_with(talkative(), Config { compact_after: None, ..config() }).await;
        let task = world.send(send("ok")).await;
        let whole = world.log(&task.id).await;
        for _ in 0..2 {
            world.clock.pass(MINUTE).await;
            world.clock.slept_for(MINUTE).await;
            world.clock.advance(24 * HOUR);
        }
        world.clock.slept_for(MINUTE).await;
        assert_eq!((world.store.count(Operation::Compact), world.log(&task.id).await), (0, whole));
    }

    async fn nothing_is_removed_that_has_not_ended(place) {
        let gate = Gate::new();
        let world = place.world(obedient(&gate)).await;
        let asked = world.send(send("input")).await;
        let running = world.send(send("wait").immediately()).await;
        gate.reached(1).await;
        world.clock.advance(HOUR);
        for state in TaskState::ALL {
            assert_eq!(world.engine.purge(state, Duration::ZERO).await.expect("it works"), 0, "{state:?}");
        }
        assert_eq!((state(&world.task(&asked.id).await), state(&world.task(&running.id).await)), (InputRequired, Working));
        gate.open();
        world.until(&running.id, Completed).await;
        assert_eq!(world.engine.purge(Rejected, Duration::ZERO).await.expect("it works"), 0);
        assert!(!is_gone(&world, &running.id).await);
    }
}
