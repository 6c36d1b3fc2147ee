//! Deliveries: each event of a task with configs, to each, in order, at least once.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Config, EngineError, Scope, Verdict};
use longhaul_protocol::TaskState::{Completed, Submitted, Working};
use longhaul_protocol::{json, wire};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedCourier, VERSION, send};

use crate::pushes::*;
use crate::world::*;

const RETRY: Duration = ScriptedCourier::RETRY;
const SECOND: Duration = Duration::from_secs(1);
/// How long a claim lasts, a second more.
const CLAIM: Duration = Duration::from_secs(56);

on_each_store! {
    async fn a_config_of_a_send_is_given_all_events_as_streams_tell_them(place) {
        let courier = swift();
        let world = pushing(place, talkative(), &courier).await;
        let task = world.send(send("go").pushing(hook("a", "one"))).await;
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), (1..=10).collect::<Vec<_>>());
        let told: Vec<_> = world.log(&task.id).await.into_iter().map(|item| item.payload).collect();
        let given: Vec<_> = courier.parcels().into_iter().map(|parcel| parcel.body).collect();
        assert_eq!(given[1..], told[1..]);
        let first: wire::StreamResponse = json::from_json(&given[0]).expect("a stream response");
        assert!(matches!(first.payload, Some(wire::StreamResponsePayload::Task(first)) if first.id == task.id));
        assert!(courier.parcels().iter().all(|parcel| parcel.version == "1.0" && parcel.url == "https://a/one"));
    }

    async fn who_speaks_another_version_is_told_the_task_with_each_status_and_the_last_of_its_artifacts(place) {
        let (gate, courier) = (Gate::new(), Gate::new());
        let (held_at, courier) = (courier.clone(), held("a", &courier));
        let agent = talkative_after(&gate);
        let world = pushing(place, agent, &courier).await;
        let sent = send("go").immediately().pushing(hook("a", "one")).speaking("0.0");
        let task = world.send(sent).await;
        held_at.reached(1).await;
        gate.open();
        world.until(&task.id, Completed).await;
        held_at.open();
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 2, 10]);
        let told: Vec<_> = courier.parcels().iter().map(told_task).collect();
        let states: Vec<_> = told.iter().map(|task| task.status.clone().unwrap_or_default().state.known()).collect();
        assert_eq!(states, [Some(Submitted), Some(Working), Some(Completed)]);
        assert_eq!(told.iter().map(|task| task.artifacts.len()).collect::<Vec<_>>(), [0, 0, 1]);
        assert!(courier.parcels().iter().all(|parcel| parcel.version == "0.0"));
    }

    async fn a_config_that_is_made_later_is_given_what_comes_then(place) {
        let (gate, courier) = (Gate::new(), swift());
        let world = pushing(place, patient(&gate), &courier).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        let made = world.engine.create_push_config(&Scope::default(), hook_of(&task, "a", ""), VERSION).await.expect("it is made");
        assert_eq!(courier.parcels().len(), 0);
        gate.open();
        courier.given(1).await;
        all_delivered(&world.engine).await;
        assert_eq!(courier.parcels().iter().map(sequence).collect::<Vec<_>>(), [3]);
        assert!(courier.parcels()[0].id.ends_with(&made.id), "{made:?}");
    }

    async fn the_next_event_waits_until_the_one_before_is_answered(place) {
        let (gate, courier) = (Gate::new(), Gate::new());
        let (held_at, courier) = (courier.clone(), held("a", &courier));
        let world = pushing(place, patient(&gate), &courier).await;
        let task = world.send(send("go").immediately().pushing(hook("a", "one"))).await;
        gate.open();
        world.until(&task.id, Completed).await;
        held_at.reached(1).await;
        assert_eq!((order(&courier, "one"), courier.most_of("a")), (vec![1], 1));
        held_at.open();
        all_delivered(&world.engine).await;
        assert_eq!((order(&courier, "one"), courier.most_of("a")), (vec![1, 2, 3], 1));
    }

    async fn a_receiver_that_hangs_holds_up_no_other_config_of_its_task(place) {
        let gate = Gate::new();
        let courier = held("hangs", &gate);
        let world = pushing(place, patient(&gate), &courier).await;
        let task = world.send(send("go").immediately().pushing(hook("hangs", "one"))).await;
        for (host, id) in [("b", "two"), ("c", "three"), ("b", "four")] {
            world.engine.create_push_config(&Scope::default(), hook_of(&task, host, id), VERSION).await.expect("it is made");
        }
        let ended = world.cancel(&task.id);
        let canceled = world.ticking_by(GRACE, ended).await.expect("it is canceled");
        waits_for(&world.engine, 1).await;
        assert_eq!(order(&courier, "one"), [1]);
        for id in ["two", "three", "four"] {
            assert_eq!(order(&courier, id).last(), Some(&3), "{canceled:?}");
        }
        gate.open();
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 2, 3]);
    }

    async fn a_failed_delivery_is_tried_again_when_it_is_due(place) {
        let courier = Arc::new(ScriptedCourier::answering(|parcel, tried| match (sequence(parcel), tried) {
            (2, 0..=2) => failed("status 500"),
            _ => Verdict::Delivered,
        }));
        let world = pushing(place, quick(), &courier).await;
        world.send(send("go").pushing(hook("a", "one"))).await;
        for (attempts, wait) in [(2, RETRY), (3, 2 * RETRY), (4, 3 * RETRY)] {
            world.clock.slept_for(wait).await;
            assert_eq!(courier.parcels().len(), attempts);
            world.clock.advance(wait - Duration::from_millis(1));
            world.clock.slept_for(Duration::from_millis(1)).await;
            assert_eq!(courier.parcels().len(), attempts, "a millisecond is missing");
            world.clock.advance(Duration::from_millis(1));
            courier.given(attempts + 1).await;
        }
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 2, 2, 2, 2, 3]);
        let ids: Vec<_> = courier.parcels().into_iter().map(|parcel| parcel.id).collect();
        assert!(ids[1..=4].iter().all(|id| *id == ids[1]), "{ids:?}");
        assert_eq!(backlog(&world.engine).await.dead, 0);
    }

    async fn a_receiver_may_ask_for_a_longer_wait(place) {
        let after = Some(Duration::from_secs(777));
        let courier = Arc::new(ScriptedCourier::answering(move |_, tried| match tried {
            0 => Verdict::Failed { after, why: "status 429".to_owned(), host_is_down: false },
            _ => Verdict::Delivered,
        }));
        let world = pushing(place, quick(), &courier).await;
        world.send(send("go").pushing(hook("a", "one"))).await;
        for _ in 0..3 {
            world.clock.pass(Duration::from_secs(777)).await;
        }
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 1, 2, 2, 3, 3]);
    }

    async fn what_is_given_up_is_kept_and_the_next_follows(place) {
        let courier = Arc::new(ScriptedCourier::answering(|parcel, tried| match (sequence(parcel), tried) {
            (1, 0..=3) => failed("status 500"),
            (2, 0) => Verdict::Refused { why: "status 404".to_owned() },
            _ => Verdict::Delivered,
        }));
        let world = pushing(place, quick(), &courier).await;
        let task = world.send(send("go").pushing(hook("a", "one"))).await;
        for wait in [RETRY, 2 * RETRY, 3 * RETRY] {
            world.clock.pass(wait).await;
        }
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 1, 1, 1, 2, 3]);
        let dead = world.engine.dead_deliveries(None, 10).await.expect("they can be read");
        let told: Vec<_> = dead.iter().map(|dead| (dead.sequence, dead.attempts, dead.error.as_str())).collect();
        assert_eq!(told, [(1, 4, "status 500"), (2, 1, "status 404")]);
        assert_eq!(world.engine.retry_dead(Some(&task.id), Some("one")).await.expect("they are retried"), 2);
        courier.given(8).await;
        while backlog(&world.engine).await.dead > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut again = order(&courier, "one").split_off(6);
        again.sort_unstable();
        assert_eq!(again, [1, 2]);
        assert_eq!(world.engine.retry_dead(None, None).await.expect("there are none"), 0);
    }

    async fn a_receiver_that_is_gone_loses_its_config(place) {
        let courier = Arc::new(ScriptedCourier::answering(|parcel, _| match sequence(parcel) {
            2 if is_for(parcel, "gone") => Verdict::Gone,
            _ => Verdict::Delivered,
        }));
        let gate = Gate::new();
        let world = pushing(place, patient(&gate), &courier).await;
        let task = world.send(send("go").immediately().pushing(hook("gone", "one"))).await;
        let _ = world.engine.create_push_config(&Scope::default(), hook_of(&task, "b", "two"), VERSION).await.expect("it is made");
        while config_ids(&world.engine, &task.id).await != ["two"] {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        gate.open();
        world.until(&task.id, Completed).await;
        all_delivered(&world.engine).await;
        assert_eq!((order(&courier, "one"), order(&courier, "two").last()), (vec![1, 2], Some(&3)));
        assert_eq!(backlog(&world.engine).await.dead, 0);
    }

    async fn a_host_that_is_down_is_asked_by_one_and_the_others_wait(place) {
        let (up, gate) = (Gate::new(), Gate::new());
        let (is_up, held) = (up.clone(), gate.clone());
        let courier = Arc::new(ScriptedCourier::new(move |parcel, _| {
            let (is_down, up, held) = (is_for(parcel, "down"), is_up.clone(), held.clone());
            Box::pin(async move {
                if !is_down {
                    return Verdict::Delivered;
                }
                held.pass().await;
                tokio::select! {
                    biased;
                    () = up.pass() => Verdict::Delivered,
                    () = std::future::ready(()) => down(),
                }
            })
        }));
        let world = pushing(place, quick(), &courier).await;
        let mut configs = Vec::new();
        for number in 0..8 {
            let id = format!("down-{number}");
            world.send(send("go").pushing(hook("down", &id))).await;
            configs.push(id);
        }
        world.send(send("go").pushing(hook("up", "other"))).await;
        gate.open();
        waits_for(&world.engine, 8).await;
        // Three failures, and nothing more until the time is over.
        courier.given(3 + 3).await;
        world.clock.slept_for(PATIENCE).await;
        let claims = world.store.count(Operation::ClaimDeliveries);
        world.clock.advance(ScriptedCourier::OPEN - SECOND);
        assert_eq!(courier.parcels().len(), 6);
        // A bell or two that was rung before may have been on its way.
        let looked = world.store.count(Operation::ClaimDeliveries) - claims;
        assert!(looked <= 4, "nobody looks again and again: {looked}");
        // One that asks, and is told that it is down still.
        world.clock.advance(PATIENCE - ScriptedCourier::OPEN + SECOND);
        courier.given(7).await;
        world.clock.slept_for(PATIENCE).await;
        assert_eq!((courier.parcels().len(), courier.most_of("down")), (7, 1));
        up.open();
        world.clock.advance(PATIENCE);
        all_delivered(&world.engine).await;
        for id in &configs {
            let mut order = order(&courier, id);
            order.dedup();
            assert_eq!(order, [1, 2, 3], "{id}");
        }
    }

    async fn limits_hold_for_each_host_and_for_all(place) {
        let (first, later) = (Gate::new(), Gate::new());
        let gates = (first.clone(), later.clone());
        let courier = Arc::new(ScriptedCourier::new(move |parcel, _| {
            let gate = if sequence(parcel) == 1 { gates.0.clone() } else { gates.1.clone() };
            let gate = is_for(parcel, "slow").then_some(gate);
            Box::pin(async move {
                if let Some(gate) = gate {
                    gate.pass().await;
                }
                Verdict::Delivered
            })
        }));
        let limits = Config { push_in_flight_max: 5, push_host_max: 3, ..pushing_config() };
        let world = pushing_with(place, quick(), &courier, limits).await;
        for number in 0..12 {
            world.send(send("go").pushing(hook("slow", &format!("slow-{number}")))).await;
            world.send(send("go").pushing(hook(&format!("h{number}"), &format!("h-{number}")))).await;
        }
        waits_for(&world.engine, 12).await;
        assert_eq!(courier.most_of("slow"), 1, "nobody knows whether it answers");
        first.open();
        later.reached(3).await;
        courier.in_flight(3).await;
        world.clock.slept_for(PATIENCE).await;
        assert_eq!((courier.most_of("slow"), courier.most_of_all() <= 5), (3, true));
        later.open();
        all_delivered(&world.engine).await;
        assert_eq!((courier.most_of("slow"), courier.most_of_all() <= 5), (3, true));
        for number in 0..12 {
            assert_eq!(order(&courier, &format!("slow-{number}")), [1, 2, 3]);
            assert_eq!(order(&courier, &format!("h-{number}")), [1, 2, 3]);
        }
    }

    async fn hosts_that_hang_leave_places_for_the_others(place) {
        let gate = Gate::new();
        let courier = held("hangs", &gate);
        let limits = Config { push_in_flight_max: 2, push_host_max: 2, ..pushing_config() };
        let world = pushing_with(place, quick(), &courier, limits).await;
        for number in 0..10 {
            world.send(send("go").pushing(hook("hangs", &format!("hangs-{number}")))).await;
        }
        gate.reached(1).await;
        for number in 0..10 {
            world.send(send("go").pushing(hook("fine", &format!("fine-{number}")))).await;
        }
        waits_for(&world.engine, 10).await;
        for number in 0..10 {
            assert_eq!(order(&courier, &format!("fine-{number}")), [1, 2, 3]);
        }
        world.clock.slept_for(PATIENCE).await;
        let claims = world.store.count(Operation::ClaimDeliveries);
        for _ in 0..30 {
            world.clock.advance(SECOND);
            tokio::task::yield_now().await;
        }
        assert_eq!(world.store.count(Operation::ClaimDeliveries), claims, "who waits for a place waits for a ring");
        gate.open();
        all_delivered(&world.engine).await;
    }

    async fn a_long_line_at_one_host_costs_few_claims(place) {
        let gate = Gate::new();
        let courier = held("one", &gate);
        let world = pushing_with(place, quick(), &courier, Config { push_host_max: 2, ..pushing_config() }).await;
        for number in 0..60 {
            world.send(send("go").pushing(hook("one", &format!("c-{number}")))).await;
        }
        let before = world.store.count(Operation::SettleDelivery);
        gate.open();
        all_delivered(&world.engine).await;
        let settled = world.store.count(Operation::SettleDelivery) - before;
        assert!((180..=300).contains(&settled), "{settled} settlements for 180 deliveries");
    }

    async fn a_delivery_that_is_stuck_is_given_its_time_and_then_tried_again(place) {
        let courier = Arc::new(ScriptedCourier::new(|_, tried| {
            Box::pin(async move {
                if tried == 0 {
                    std::future::pending::<()>().await;
                }
                Verdict::Delivered
            })
        }));
        let world = pushing(place, quick(), &courier).await;
        world.send(send("go").pushing(hook("a", "one"))).await;
        for event in 1..=3 {
            courier.given(2 * event - 1).await;
            world.clock.pass(Duration::from_secs(45)).await;
            courier.in_flight(0).await;
            while world.store.count(Operation::SettleDelivery) < 2 * event as u64 - 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            world.clock.pass(RETRY).await;
            courier.given(2 * event).await;
        }
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 1, 2, 2, 3, 3]);
    }

    async fn a_courier_that_panics_gives_its_place_back(place) {
        let courier = Arc::new(ScriptedCourier::answering(|parcel, tried| match (sequence(parcel), tried) {
            (1, 0) => panic!("the test says so"),
            _ => Verdict::Delivered,
        }));
        let limits = Config { push_in_flight_max: 1, ..pushing_config() };
        let world = pushing_with(place, quick(), &courier, limits).await;
        world.send(send("go").pushing(hook("a", "one"))).await;
        courier.given(1).await;
        world.clock.slept_for(CLAIM - SECOND).await;
        world.clock.advance(CLAIM);
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 1, 2, 3]);
    }

    async fn an_engine_that_is_killed_leaves_its_deliveries_to_another(place) {
        let gate = Gate::new();
        let first = held("a", &gate);
        let mortal = mortal_pushing(place, talkative(), &first).await;
        let task = mortal.send(send("go").pushing(hook("a", "one"))).await;
        gate.reached(1).await;
        let second = swift();
        let world = pushing(place, talkative(), &second).await;
        mortal.kill();
        assert_eq!(second.parcels().len(), 0, "it is claimed");
        world.clock.advance(CLAIM);
        world.engine.create_push_config(&Scope::default(), hook_of(&task, "b", "bell"), VERSION).await.expect("it rings");
        all_delivered(&world.engine).await;
        assert_eq!((order(&first, "one"), order(&second, "one")), (vec![1], (1..=10).collect()));
        assert_eq!(first.parcels()[0].id, second.parcels()[0].id, "its receiver knows it again");
    }

    async fn who_comes_late_to_settle_skips_nothing(place) {
        let (held, first, second) = (Gate::new(), swift(), swift());
        let late = pushing(place, quick(), &first).await;
        place.store.next(Operation::SettleDelivery, Fault::Hold(held.clone()));
        let task = late.send(send("go").pushing(hook("a", "one"))).await;
        held.reached(1).await;
        let world = pushing(place, quick(), &second).await;
        world.clock.advance(CLAIM);
        world.engine.create_push_config(&Scope::default(), hook_of(&task, "b", "bell"), VERSION).await.expect("it rings");
        all_delivered(&world.engine).await;
        held.open();
        let both = || [order(&first, "one"), order(&second, "one")].concat();
        assert_eq!(both(), [1, 1, 2, 3], "nothing is skipped");
        late.engine.shutdown(Duration::ZERO).await.expect("it goes down");
        assert_eq!((both(), backlog(&world.engine).await.configs), (vec![1, 1, 2, 3], 0));
    }

    async fn a_store_that_fails_costs_no_delivery(place) {
        let courier = swift();
        let world = pushing(place, quick(), &courier).await;
        world.store.next(Operation::ClaimDeliveries, Fault::Before);
        world.store.next(Operation::SettleDelivery, Fault::Before);
        world.send(send("go").pushing(hook("a", "one"))).await;
        world.ticking(all_delivered(&world.engine)).await;
        assert_eq!(order(&courier, "one"), [1, 2, 3], "it is settled when the store can");
    }

    async fn a_settlement_whose_answer_is_lost_counts(place) {
        let courier = swift();
        let world = pushing(place, quick(), &courier).await;
        world.store.next(Operation::SettleDelivery, Fault::After);
        world.send(send("go").pushing(hook("a", "one"))).await;
        world.clock.pass(SECOND).await;
        // Nobody knows that the next one is held: it is due when that is over.
        world.clock.pass(CLAIM - 2 * SECOND).await;
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 2, 3]);
    }

    async fn what_a_host_did_matters_less_than_its_delivery(place) {
        let courier = Arc::new(ScriptedCourier::answering(|_, tried| if tried == 0 { down() } else { Verdict::Delivered }));
        let world = pushing(place, quick(), &courier).await;
        world.store.next(Operation::PushHost, Fault::Before);
        world.send(send("go").pushing(hook("a", "one"))).await;
        for _ in 0..3 {
            world.clock.pass(RETRY).await;
        }
        all_delivered(&world.engine).await;
        assert_eq!(order(&courier, "one"), [1, 1, 2, 2, 3, 3]);
    }

    async fn a_shutdown_waits_a_moment_and_hands_back_what_is_under_way(place) {
        let gate = Gate::new();
        let first = held("a", &gate);
        let world = pushing(place, quick(), &first).await;
        world.send(send("go").pushing(hook("a", "one"))).await;
        gate.reached(1).await;
        let engine = world.engine.clone();
        let down = beside(async move { engine.shutdown(Duration::from_secs(600)).await });
        world.clock.pass(Duration::from_secs(2)).await;
        down.await.expect("no panic").expect("it goes down");
        let second = swift();
        let next = pushing(place, quick(), &second).await;
        all_delivered(&next.engine).await;
        assert_eq!((order(&first, "one"), order(&second, "one")), (vec![1], vec![1, 2, 3]));
    }

    async fn what_was_under_way_when_a_shutdown_began_may_end(place) {
        let gate = Gate::new();
        let courier = held("a", &gate);
        let world = pushing(place, quick(), &courier).await;
        world.send(send("go").pushing(hook("a", "one"))).await;
        gate.reached(1).await;
        let engine = world.engine.clone();
        let down = beside(async move { engine.shutdown(Duration::from_secs(600)).await });
        world.clock.slept_for(Duration::from_secs(2)).await;
        gate.open();
        down.await.expect("no panic").expect("it goes down");
        let next = swift();
        let world = pushing(place, quick(), &next).await;
        all_delivered(&world.engine).await;
        assert_eq!((order(&courier, "one"), order(&next, "one")), (vec![1], vec![2, 3]));
    }

    async fn a_task_is_removed_when_its_end_was_delivered(place) {
        let gate = Gate::new();
        let courier = held("a", &gate);
        let world = pushing(place, quick(), &courier).await;
        let task = world.send(send("go").pushing(hook("a", "one"))).await;
        gate.reached(1).await;
        world.clock.advance(SECOND);
        assert_eq!(world.engine.purge(Completed, Duration::ZERO).await.expect("it works"), 0);
        gate.open();
        all_delivered(&world.engine).await;
        assert_eq!(world.engine.purge(Completed, Duration::ZERO).await.expect("it works"), 1);
        let gone = world.engine.push_configs(all_of(&task.id)).await;
        assert!(matches!(gone, Err(EngineError::TaskNotFound(_))), "{gone:?}");
        assert_eq!(order(&courier, "one"), [1, 2, 3]);
    }

    async fn what_is_dead_does_not_keep_its_task(place) {
        let courier = Arc::new(ScriptedCourier::answering(|_, _| Verdict::Refused { why: "status 404".to_owned() }));
        let world = pushing(place, quick(), &courier).await;
        world.send(send("go").pushing(hook("a", "one"))).await;
        all_delivered(&world.engine).await;
        assert_eq!(backlog(&world.engine).await.dead, 3);
        world.clock.advance(SECOND);
        assert_eq!(world.engine.purge(Completed, Duration::ZERO).await.expect("it works"), 1);
        assert_eq!(backlog(&world.engine).await, longhaul_store::PushBacklog::default());
    }

    async fn a_delivery_is_named_so_that_it_can_be_signed(place) {
        let courier = swift();
        let world = pushing(place, quick(), &courier).await;
        let odd = "a.b c\u{e9}/".repeat(3);
        let config = wire::TaskPushNotificationConfig { id: odd, ..hook("a", "one") };
        world.send(send("go").pushing(config)).await;
        all_delivered(&world.engine).await;
        let ids: Vec<_> = courier.parcels().into_iter().map(|parcel| parcel.id).collect();
        let can_be_signed = |id: &String| id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'.');
        assert!(ids.len() == 3 && ids.iter().all(can_be_signed), "{ids:?}");
    }
}
