//! Streams: the snapshot and what follows, for those who come late, stay, leave, come back, or never read.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Clock, EngineError, EventStream, Outcome, Store, StreamItem, text_part};
use longhaul_protocol::TaskState::{Completed, InputRequired, Submitted, Working};
use longhaul_protocol::wire::{self, StreamResponsePayload};
use longhaul_testkit::{Gate, Operation, ScriptedAgent, Step, piece, send};
use tokio::sync::watch;

use crate::world::*;

const CHUNKS: usize = 500;

/// Writes 500 chunks, now and then letting others run, after the gate is open.
fn chunks(gate: &Gate, seed: u64) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(move |turn| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.pass().await;
            let mut dice = Dice::new(seed);
            for number in 0..CHUNKS {
                turn.artifact(piece("a", format!("{number} "), number > 0)).await?;
                if dice.below(3) == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Ok(Outcome::Complete(None))
        })
    })
}

fn whole() -> String {
    (0..CHUNKS).map(|number| format!("{number} ")).collect()
}

fn artifact_text(task: &wire::Task) -> String {
    task.artifacts.first().map(|artifact| text_of(&artifact.parts)).unwrap_or_default()
}

/// What a stream shows of the artifact: the snapshot's text and what the events add.
fn shown(items: &[StreamItem]) -> String {
    let mut text = artifact_text(&snapshot(&items[0]).expect("a task first"));
    for item in &items[1..] {
        if let StreamResponsePayload::ArtifactUpdate(update) = payload(item) {
            text.push_str(&text_of(&update.artifact.expect("an artifact").parts));
        }
    }
    text
}

fn assert_no_gap(items: &[StreamItem]) {
    let sequences = sequences(items);
    let expected: Vec<u64> = (sequences[0]..).take(sequences.len()).collect();
    assert_eq!(sequences, expected);
}

/// Merges the logs of all tasks that have ended.
async fn merge(world: &World) {
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.store.compact(world.clock.now(), 10).await.expect("it works"), 1);
}

/// Reads a stream to its end and tells how far it is.
async fn tell(mut stream: EventStream, at: watch::Sender<u64>) -> Vec<StreamItem> {
    let mut all = Vec::new();
    while let Some(items) = stream.next().await {
        all.extend(items.expect("the log can be read"));
        at.send_replace(all.last().and_then(|item| item.sequence).unwrap_or(0));
    }
    at.send_replace(u64::MAX);
    all
}

on_each_store! {
    async fn whoever_subscribes_at_any_moment_sees_the_whole_artifact_once(place) {
        let mut dice = Dice::new(11);
        for round in 0..10 {
            let gate = Gate::new();
            let world = place.world(chunks(&gate, round)).await;
            let stream = world.stream(send("go")).await;
            let (at, watched) = watch::channel(0);
            let uncut = beside(tell(stream, at));
            gate.reached(1).await;
            let task_id = world.agent.runs()[0].task_id.as_str().to_owned();
            let readers: Vec<_> = (0..20)
                .map(|_| {
                    let (moment, world, task_id, mut watched) = (dice.below(500), world.clone(), task_id.clone(), watched.clone());
                    beside(async move {
                        watched.wait_for(|at| *at >= moment).await.expect("the reader lives");
                        match world.try_subscribe(&task_id, None).await {
                            Ok(stream) => Some(collect(stream).await),
                            // Too late: the task has ended.
                            Err(EngineError::UnsupportedOperation(_)) => None,
                            Err(error) => panic!("{error:?}"),
                        }
                    })
                })
                .collect();
            gate.open();
            let uncut = uncut.await.expect("no panic");
            assert_eq!(shown(&uncut), whole());
            for reader in readers {
                let Some(items) = reader.await.expect("no panic") else { continue };
                assert_no_gap(&items);
                assert_eq!(shown(&items), whole());
                let joined = usize::try_from(items[0].sequence.expect("a number")).expect("a small one");
                assert_eq!(items[1..], uncut[joined..], "the very same bytes");
            }
        }
    }

    async fn several_readers_see_the_same_order(place) {
        let gate = Gate::new();
        let world = place.world(chunks(&gate, 3)).await;
        let task = world.send(send("go").immediately()).await;
        let mut readers = Vec::new();
        for _ in 0..5 {
            readers.push(beside(collect(world.subscribe(&task.id, None).await)));
        }
        gate.open();
        let mut seen = Vec::new();
        for reader in readers {
            seen.push(reader.await.expect("no panic"));
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(shown(&seen[0]), whole());
    }

    async fn a_reader_that_never_reads_costs_the_others_nothing(place) {
        let gate = Gate::new();
        let world = place.world(chunks(&gate, 4)).await;
        let task = world.send(send("go").immediately()).await;
        let asleep = world.subscribe(&task.id, None).await;
        let left = world.subscribe(&task.id, None).await;
        let awake = world.subscribe(&task.id, None).await;
        drop(left);
        gate.open();
        let awake = collect(awake).await;
        assert_eq!(shown(&awake), whole());
        assert_eq!(collect(asleep).await, awake, "and it still gets all when it wakes");
    }

    async fn a_stream_of_a_send_begins_with_the_task_and_ends_with_its_end(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Progress("half"), Step::Artifact("a", "x", false)]])).await;
        let streams: Vec<_> = (0..100)
            .map(|_| { let world = world.clone(); beside(async move { collect(world.stream(send("go")).await).await }) })
            .collect();
        for stream in streams {
            let items = stream.await.expect("no panic");
            let task = snapshot(&items[0]).expect("a task first");
            assert_eq!((state(&task), history(&task)), (Submitted, vec!["go".to_owned()]));
            assert_eq!(states(&items), [Submitted, Working, Working, Completed]);
            assert_eq!(sequences(&items), [1, 2, 3, 4, 5]);
        }
    }

    async fn a_burst_of_status_updates_arrives_whole_and_in_order(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            for number in 0..300 {
                turn.progress(vec![text_part(number.to_string())]).await?;
            }
            Ok(Outcome::Complete(None))
        }));
        let world = place.world(agent).await;
        let items = collect(world.stream(send("go")).await).await;
        assert_no_gap(&items);
        let said: Vec<String> = items[2..items.len() - 1]
            .iter()
            .filter_map(|item| match payload(item) {
                StreamResponsePayload::StatusUpdate(update) => update.status.and_then(|status| status.message).map(|said| text_of(&said.parts)),
                _ => None,
            })
            .collect();
        assert_eq!(said, (0..300).map(|number| number.to_string()).collect::<Vec<_>>());
        let task = world.task(&snapshot(&items[0]).expect("a task first").id).await;
        assert_eq!(task.history.len(), 301, "each status message joined the history when the next one came");
    }

    async fn a_stream_resumes_behind_every_event(place) {
        let gate = Gate::new();
        let steps = vec![
            Step::Artifact("a", "1", false),
            Step::Progress("half"),
            Step::Artifact("a", "2", true),
            Step::Artifact("b", "3", false),
            Step::Progress("nearly"),
            Step::Artifact("a", "4", false),
        ];
        let turns = vec![vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))], [steps, vec![Step::Wait(gate.clone())]].concat()];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        let uncut = beside(collect(world.subscribe(&task.id, Some(1)).await));
        world.send(send("on").to(&task.id).immediately()).await;
        gate.reached(1).await;
        // While the turn runs: who comes back gets what was missed, and what comes.
        let mut back = Vec::new();
        for after in 1..=4 {
            back.push((after, beside(collect(world.subscribe(&task.id, Some(after)).await))));
        }
        gate.open();
        let uncut = uncut.await.expect("no panic");
        for (after, stream) in back {
            let items = stream.await.expect("no panic");
            let from = usize::try_from(after).expect("a small number");
            assert_eq!(items[1..], uncut[from..]);
        }
        // And on the task that has ended: the task as it stood at n, then the exact rest.
        for (at, item) in uncut.iter().enumerate() {
            let items = collect(world.subscribe(&task.id, item.sequence).await).await;
            let then = snapshot(&items[0]).expect("a task first");
            assert_eq!(items[0].sequence, item.sequence);
            assert_eq!(items[1..], uncut[at + 1..]);
            let told = uncut[..=at].iter().rev().find_map(state_of);
            assert_eq!(Some(state(&then)), told, "the state as it was at {at}");
        }
        let full = collect(world.subscribe(&task.id, Some(7)).await).await;
        assert_eq!(artifacts(&snapshot(&full[0]).expect("a task first")), [("a".to_owned(), "12".to_owned())]);
        assert_eq!(artifacts(&world.task(&task.id).await), [("a".to_owned(), "4".to_owned()), ("b".into(), "3".into())]);
    }

    async fn an_unknown_event_id_gives_the_snapshot_of_now(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))], vec![]])).await;
        let task = world.send(send("go")).await;
        for unknown in [0, 4, 1_000_000, u64::MAX] {
            let mut stream = world.subscribe(&task.id, Some(unknown)).await;
            let item = first(&mut stream).await;
            assert_eq!((item.sequence, state_of(&item)), (Some(3), Some(InputRequired)));
        }
        world.send(send("done").to(&task.id)).await;
        for unknown in [0, 1_000_000] {
            let items = collect(world.subscribe(&task.id, Some(unknown)).await).await;
            assert_eq!((items.len(), state_of(&items[0])), (1, Some(Completed)));
        }
    }

    async fn a_stream_of_a_merged_log_begins_with_the_task_of_now(place) {
        let steps = ["1", "2", "3", "4", "5"].map(|text| Step::Artifact("a", text, text != "1"));
        let world = place.world(ScriptedAgent::steps(vec![steps.to_vec()])).await;
        let task = world.send(send("go")).await;
        let whole = world.log(&task.id).await;
        assert_eq!(whole.len(), 8);
        merge(&world).await;
        for after in 0..=9 {
            let items = collect(world.subscribe(&task.id, Some(after)).await).await;
            assert_eq!((items.len(), items[0].sequence), (1, Some(8)), "after {after}");
            let now = snapshot(&items[0]).expect("a task");
            assert_eq!((state(&now), artifacts(&now)), (Completed, vec![("a".to_owned(), "12345".to_owned())]));
            assert_eq!(now, world.task(&task.id).await);
        }
    }

    async fn a_reader_that_is_behind_a_merged_log_is_sent_away(place) {
        let gate = Gate::new();
        let world = place.world(chunks(&gate, 7)).await;
        let task = world.send(send("go").immediately()).await;
        let mut asleep = world.subscribe(&task.id, None).await;
        let mut halfway = world.subscribe(&task.id, None).await;
        let awake = world.subscribe(&task.id, None).await;
        gate.open();
        let had = first(&mut halfway).await;
        let mut had = vec![had];
        had.extend(halfway.next().await.expect("the stream goes on").expect("the log can be read"));
        assert_eq!(shown(&collect(awake).await), whole());
        merge(&world).await;
        let begun = first(&mut asleep).await;
        assert!(state_of(&begun).is_some_and(|state| !state.is_terminal()));
        assert!(asleep.next().await.is_none(), "it can't be told what it missed");
        assert!(asleep.next().await.is_none());
        // What it comes back for is the whole.
        had.extend(collect(halfway).await);
        assert_no_gap(&had);
        for missed in [begun.sequence, had.last().and_then(|item| item.sequence)] {
            let items = collect(world.subscribe(&task.id, missed).await).await;
            let now = snapshot(items.last().expect("an item")).expect("a task");
            assert_eq!((items.len(), state(&now), artifact_text(&now)), (1, Completed, whole()));
        }
    }

    async fn a_task_that_ended_is_followed_only_from_a_known_event(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![]])).await;
        let task = world.send(send("go")).await;
        let refused = world.try_subscribe(&task.id, None).await;
        assert!(matches!(refused, Err(EngineError::UnsupportedOperation(_))));
        assert!(matches!(world.try_subscribe("nothing", None).await, Err(EngineError::TaskNotFound(_))));
        let last = collect(world.subscribe(&task.id, Some(3)).await).await;
        assert_eq!((last.len(), state_of(&last[0])), (1, Some(Completed)));
    }

    async fn a_subscription_that_races_with_the_end_never_hangs(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![Step::Yield, Step::Artifact("a", "x", false), Step::Yield]])).await;
        for _ in 0..100 {
            let task = world.send(send("go").immediately()).await;
            match world.try_subscribe(&task.id, None).await {
                Ok(stream) => assert_eq!(states(&collect(stream).await).last(), Some(&Completed)),
                Err(error) => assert!(matches!(error, EngineError::UnsupportedOperation(_)), "{error:?}"),
            }
        }
    }

    async fn a_stream_that_is_left_and_taken_up_again_loses_nothing(place) {
        let gate = Gate::new();
        let world = place.world(chunks(&gate, 9)).await;
        let mut stream = world.stream(send("go")).await;
        gate.open();
        let mut dice = Dice::new(5);
        let mut all = vec![first(&mut stream).await];
        let task_id = snapshot(&all[0]).expect("a task first").id;
        loop {
            let Some(items) = stream.next().await else { break };
            all.extend(items.expect("the log can be read"));
            if dice.below(2) == 0 {
                stream = world.subscribe(&task_id, all.last().and_then(|item| item.sequence)).await;
                first(&mut stream).await;
            }
        }
        assert_no_gap(&all);
        assert_eq!(shown(&all), whole());
    }

    async fn a_next_that_is_given_up_loses_nothing(place) {
        let gate = Gate::new();
        let world = place.world(chunks(&gate, 2)).await;
        let mut stream = world.stream(send("go")).await;
        gate.open();
        let mut all = Vec::new();
        loop {
            tokio::select! {
                biased;
                items = stream.next() => match items {
                    Some(items) => all.extend(items.expect("the log can be read")),
                    None => break,
                },
                () = tokio::task::yield_now() => {}
            }
        }
        assert_no_gap(&all);
        assert_eq!(shown(&all), whole());
    }

    async fn what_was_told_is_stored(place) {
        let gate = Gate::new();
        let world = place.world(chunks(&gate, 8)).await;
        let mut stream = world.stream(send("go")).await;
        gate.open();
        let task_id = snapshot(&first(&mut stream).await).expect("a task first").id;
        while let Some(items) = stream.next().await {
            let last = items.expect("the log can be read").last().and_then(|item| item.sequence).expect("a number");
            let stored = first(&mut world.subscribe(&task_id, Some(last)).await).await;
            assert_eq!(stored.sequence, Some(last));
        }
    }

    async fn a_missed_ring_costs_one_sweep(place) {
        let gate = Gate::new();
        let first_engine = place.world(ScriptedAgent::steps(vec![vec![Step::End(Outcome::RequireInput(vec![text_part("?")]))]])).await;
        let task = first_engine.send(send("go")).await;
        let mut stream = first_engine.subscribe(&task.id, None).await;
        first(&mut stream).await;
        // Another engine on the same store rings nobody here.
        let agent = Arc::new(ScriptedAgent::steps(vec![vec![Step::Wait(gate.clone())]]));
        let other = place.idle(&agent, config());
        other.send_message(send("on").to(&task.id).immediately().build()).await.expect("it is taken");
        gate.open();
        first_engine.clock.pass(Duration::from_secs(1)).await;
        read_until(&mut stream, Working).await;
        assert!(world_count(&first_engine) > 0);
    }

    async fn two_tasks_of_one_context_keep_their_chunks_apart(place) {
        let gate = Gate::new();
        let world = place.world(chunks(&gate, 6)).await;
        let one = world.stream(send("go").in_context("c")).await;
        let two = world.stream(send("go").in_context("c")).await;
        gate.open();
        let (one, two) = (beside(collect(one)), beside(collect(two)));
        for items in [one.await.expect("no panic"), two.await.expect("no panic")] {
            let id = snapshot(&items[0]).expect("a task first").id;
            assert_eq!(shown(&items), whole());
            for item in &items[1..] {
                if let StreamResponsePayload::ArtifactUpdate(update) = payload(item) {
                    assert_eq!((update.task_id.as_str(), update.context_id.as_str()), (id.as_str(), "c"));
                }
            }
        }
    }
}

fn world_count(world: &World) -> u64 {
    world.store.count(Operation::Marks)
}
