//! Turns: questions, answers, authorizations, and messages that arrive while a turn runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_engine::{Config, EngineError, Outcome, text_part};
use longhaul_protocol::TaskState::{AuthRequired, Completed, InputRequired, Submitted, Working};
use longhaul_testkit::{Fault, Gate, Operation, ScriptedAgent, Step, end_of, send};

use crate::world::*;

const RESUME: Duration = Duration::from_secs(11);

fn ask(question: &str) -> Step {
    Step::End(Outcome::RequireInput(vec![text_part(question)]))
}

fn ask_auth(resume_after: Option<Duration>) -> Step {
    Step::End(Outcome::RequireAuth { parts: vec![text_part("log in")], resume_after })
}

/// An agent whose turns wait at a gate, and then end as their text says.
fn gated(gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(move |turn| {
        let (gate, text) = (gate.clone(), turn.message().text());
        Box::pin(async move {
            gate.pass().await;
            Ok(end_of(&text))
        })
    })
}

on_each_store! {
    async fn an_authorization_is_waited_for_and_the_task_goes_on_by_itself(place) {
        let gate = Gate::new();
        let turns = vec![vec![ask_auth(Some(RESUME))], vec![Step::Wait(gate.clone())]];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        let task = world.send(send("go")).await;
        assert_eq!((state(&task), said(&task)), (AuthRequired, "log in".into()));
        let mut stayed = world.subscribe(&task.id, None).await;
        assert_eq!(state_of(&first(&mut stayed).await), Some(AuthRequired));
        world.clock.pass(RESUME).await;
        gate.reached(1).await;
        assert_eq!(state(&world.task(&task.id).await), Working);
        gate.open();
        assert_eq!(states(&collect(stayed).await), [Working, Completed]);
        let task = world.task(&task.id).await;
        assert_eq!((state(&task), history(&task)), (Completed, vec!["go".to_owned(), "log in".into()]));
        let runs = world.agent.runs();
        assert_eq!((runs.len(), runs[1].text.as_str(), runs[1].attempt), (2, "go", 1));
    }

    async fn a_stream_of_a_send_stays_open_while_an_authorization_is_waited_for(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![ask_auth(Some(RESUME))], vec![]])).await;
        let mut stream = world.stream(send("go")).await;
        read_until(&mut stream, AuthRequired).await;
        world.clock.pass(RESUME).await;
        assert_eq!(states(&collect(stream).await), [Working, Completed]);
    }

    async fn an_authorization_that_comes_another_way_lets_the_task_go_on(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            match turn.is_resumed() {
                true => Ok(Outcome::Complete(None)),
                false => Ok(Outcome::RequireAuth { parts: vec![text_part("log in")], resume_after: None }),
            }
        }));
        let world = place.world(agent).await;
        let task = world.send(send("go")).await;
        // An answer by message is a turn of its own, which has not asked yet.
        assert_eq!(state(&world.send(send("here").to(&task.id)).await), AuthRequired);
        let scope = longhaul_engine::Scope::default();
        world.engine.resume_task(&scope, &task.id).await.expect("it waits");
        world.until(&task.id, Completed).await;
        let runs: Vec<_> = world.agent.runs().into_iter().map(|run| run.text).collect();
        assert_eq!(runs, ["go", "here", "here"]);
        let ended = world.engine.resume_task(&scope, &task.id).await;
        assert!(matches!(ended, Err(EngineError::UnsupportedOperation(_))), "{ended:?}");
        let hidden = world.engine.resume_task(&owner("b"), &task.id).await;
        assert!(matches!(hidden, Err(EngineError::TaskNotFound(_))), "{hidden:?}");
    }

    async fn a_task_that_waits_for_input_is_not_resumed(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![ask("?")]])).await;
        let task = world.send(send("go")).await;
        let refused = world.engine.resume_task(&longhaul_engine::Scope::default(), &task.id).await;
        assert!(matches!(refused, Err(EngineError::UnsupportedOperation(_))), "{refused:?}");
        assert_eq!(world.task(&task.id).await, task);
    }

    async fn an_agent_that_was_authorized_before_its_start_knows_it(place) {
        let agent = ScriptedAgent::new(|turn| {
            let resumed = turn.is_resumed();
            Box::pin(async move { Ok(Outcome::Complete(Some(vec![text_part(resumed.to_string())]))) })
        });
        let accept = longhaul_engine::Accept::RequireAuth { parts: vec![text_part("log in")], resume_after: Some(RESUME) };
        let world = place.world(agent.accepting(accept)).await;
        let task = world.send(send("go")).await;
        world.clock.pass(RESUME).await;
        world.until(&task.id, Completed).await;
        assert_eq!(said(&world.task(&task.id).await), "true");
    }

    async fn a_message_goes_on_with_a_task_that_waits_for_an_authorization(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![ask_auth(Some(RESUME))], vec![]])).await;
        let task = world.send(send("go")).await;
        let task = world.send(send("here you are").to(&task.id)).await;
        assert_eq!(state(&task), Completed);
        assert_eq!(world.agent.runs()[1].text, "here you are");
        world.clock.advance(RESUME * 2);
        let after = world.send(send("another")).await;
        assert_eq!(state(&after), Completed);
        assert_eq!(world.agent.runs().len(), 3);
    }

    async fn a_stream_ends_at_a_question_and_who_subscribed_sees_the_next_turn(place) {
        let world = place.world(ScriptedAgent::steps(vec![vec![ask("which?")], vec![Step::Artifact("a", "x", false)]])).await;
        let stream = collect(world.stream(send("go")).await).await;
        assert_eq!(states(&stream), [Submitted, Working, InputRequired]);
        let task_id = snapshot(&stream[0]).expect("a task first").id;
        let mut stayed = world.subscribe(&task_id, None).await;
        let question = snapshot(&first(&mut stayed).await).expect("a task first");
        assert_eq!((state(&question), said(&question)), (InputRequired, "which?".into()));
        let second = collect(world.stream(send("that one").to(&task_id)).await).await;
        assert_eq!(states(&second), [Working, Completed]);
        let seen = collect(stayed).await;
        assert_eq!(states(&seen), [Working, Completed]);
        assert_eq!(sequences(&seen), [4, 5, 6]);
        assert_eq!(sequences(&second), [4, 5, 6]);
        assert_eq!(history(&world.task(&task_id).await), ["go", "which?", "that one"]);
    }

    async fn input_may_be_asked_for_any_number_of_times(place) {
        let world = place.world(gated(&{ let gate = Gate::new(); gate.open(); gate })).await;
        let mut task = world.send(send("input 0").immediately()).await;
        world.until(&task.id, InputRequired).await;
        for turn in 1..10 {
            task = world.send(send(format!("input {turn}")).to(&task.id)).await;
            assert_eq!((state(&task), said(&task)), (InputRequired, format!("input {turn}")));
        }
        assert_eq!(state(&world.send(send("done").to(&task.id)).await), Completed);
        assert!(world.agent.runs().iter().all(|run| run.attempt == 1));
    }

    async fn a_question_without_words_is_the_agents_error(place) {
        let empty = Outcome::RequireAuth { parts: Vec::new(), resume_after: None };
        let turns = vec![vec![Step::End(Outcome::RequireInput(Vec::new()))], vec![Step::End(empty)]];
        let world = place.world(ScriptedAgent::steps(turns)).await;
        for _ in 0..2 {
            assert_eq!(state(&world.send(send("go")).await), longhaul_protocol::TaskState::Failed);
        }
    }

    async fn a_queued_message_becomes_the_next_turn(place) {
        let gate = Gate::new();
        let world = place.world(gated(&gate)).await;
        let one = world.sending(send("input 1"));
        gate.reached(1).await;
        let task_id = world.agent.runs()[0].task_id.as_str().to_owned();
        let queued = world.stream(send("ok 2").to(&task_id)).await;
        let waits = world.send(send("ok 3").to(&task_id).immediately()).await;
        assert_eq!((state(&waits), history(&waits).len()), (Working, 3));
        gate.open();
        // Both senders wait past the question, which a message had answered before it was asked.
        let task = answer(one).await;
        assert_eq!((state(&task), history(&task)), (Completed, ["input 1", "ok 2", "ok 3", "input 1"].map(String::from).to_vec()));
        assert_eq!(states(&collect(queued).await), [Working, InputRequired, Working, Completed]);
        let texts: Vec<_> = world.agent.runs().into_iter().map(|run| run.text).collect();
        assert_eq!(texts, ["input 1", "ok 2"]);
    }

    async fn a_queued_message_stays_in_the_history_of_a_task_that_ends(place) {
        let gate = Gate::new();
        let world = place.world(gated(&gate)).await;
        let one = world.sending(send("ok 1"));
        gate.reached(1).await;
        let task_id = world.agent.runs()[0].task_id.as_str().to_owned();
        let mut queued = world.stream(send("ok 2").to(&task_id)).await;
        first(&mut queued).await;
        let three = world.sending(send("ok 3").to(&task_id));
        let mut waiting = 2;
        while waiting < 3 {
            waiting = world.task(&task_id).await.history.len();
            tokio::task::yield_now().await;
        }
        gate.open();
        for sender in [one, three] {
            let task = answer(sender).await;
            assert_eq!((state(&task), history(&task)), (Completed, ["ok 1", "ok 2", "ok 3"].map(String::from).to_vec()));
        }
        assert_eq!(states(&collect(queued).await), [Completed]);
        assert_eq!(world.agent.runs().len(), 1);
    }

    async fn an_agent_reads_its_inbox_in_order_and_each_message_once(place) {
        let (gate, letters) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
        let (passed, read) = (gate.clone(), Arc::clone(&letters));
        let agent = ScriptedAgent::new(move |turn| {
            let (gate, letters) = (passed.clone(), Arc::clone(&read));
            Box::pin(async move {
                gate.pass().await;
                for _ in 0..2 {
                    let inbox = turn.inbox().await?;
                    letters.lock().expect("no panic").extend(inbox.iter().map(longhaul_protocol::Message::text));
                }
                let last = letters.lock().expect("no panic").last().cloned();
                match last.as_deref() {
                    Some("end") => Ok(Outcome::Complete(None)),
                    _ => Ok(Outcome::RequireInput(vec![text_part("and?")])),
                }
            })
        });
        let world = place.world(agent).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        for text in ["a", "b", "c"] {
            world.send(send(text).to(&task.id).immediately()).await;
        }
        gate.open();
        world.until(&task.id, InputRequired).await;
        assert_eq!(*letters.lock().expect("no panic"), ["a", "b", "c"]);
        assert_eq!(world.agent.runs().len(), 1, "what was read becomes no turn");
    }

    async fn the_rest_of_what_waits_is_the_next_turns_inbox(place) {
        let (gate, letters) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
        let (passed, read) = (gate.clone(), Arc::clone(&letters));
        let agent = ScriptedAgent::new(move |turn| {
            let (gate, letters) = (passed.clone(), Arc::clone(&read));
            Box::pin(async move {
                if turn.is_first() {
                    gate.pass().await;
                    return Ok(Outcome::RequireInput(vec![text_part("?")]));
                }
                let inbox = turn.inbox().await?;
                letters.lock().expect("no panic").extend(inbox.iter().map(longhaul_protocol::Message::text));
                Ok(Outcome::Complete(None))
            })
        });
        let world = place.world(agent).await;
        let task = world.send(send("go").immediately()).await;
        gate.reached(1).await;
        for text in ["a", "b", "c"] {
            world.send(send(text).to(&task.id).immediately()).await;
        }
        gate.open();
        world.until(&task.id, Completed).await;
        assert_eq!(world.agent.runs()[1].text, "a");
        assert_eq!(*letters.lock().expect("no panic"), ["b", "c"]);
    }

    async fn a_message_that_became_a_turn_is_not_in_the_turns_inbox_too(place) {
        let (one, two, letters) = (Gate::new(), Gate::new(), Arc::new(Mutex::new(Vec::new())));
        let (first_gate, second_gate, read) = (one.clone(), two.clone(), Arc::clone(&letters));
        let agent = ScriptedAgent::new(move |turn| {
            let (one, two, letters) = (first_gate.clone(), second_gate.clone(), Arc::clone(&read));
            Box::pin(async move {
                if turn.is_first() {
                    one.pass().await;
                    return Ok(Outcome::RequireInput(vec![text_part("?")]));
                }
                two.pass().await;
                let inbox = turn.inbox().await?;
                letters.lock().expect("no panic").extend(inbox);
                Ok(Outcome::Complete(None))
            })
        });
        let world = place.world(agent).await;
        let task = world.send(send("go").immediately()).await;
        one.reached(1).await;
        // The answer of the message's commit is late: it is told when its own turn runs already.
        let late = Gate::new();
        world.store.next(Operation::Commit, Fault::HoldAnswer(late.clone()));
        let sending = world.sending(send("on").to(&task.id).immediately());
        late.reached(1).await;
        one.open();
        two.reached(1).await;
        late.open();
        answer(sending).await;
        two.open();
        world.until(&task.id, Completed).await;
        assert!(letters.lock().expect("no panic").is_empty());
        assert_eq!(world.agent.runs().len(), 2);
    }

    async fn a_message_before_the_turn_begins_is_in_its_inbox(place) {
        let gate = Gate::new();
        let passed = gate.clone();
        let agent = ScriptedAgent::new(move |turn| {
            let (gate, text) = (passed.clone(), turn.message().text());
            Box::pin(async move {
                gate.pass().await;
                let inbox = turn.inbox().await?.len();
                Ok(Outcome::Complete(Some(vec![text_part(format!("{text} {inbox}"))])))
            })
        });
        let world = place.world_with(agent, Config { workers_max: 1, ..config() }).await;
        world.send(send("first").immediately()).await;
        gate.reached(1).await;
        let task = world.send(send("second").immediately()).await;
        assert_eq!(state(&task), Submitted);
        let more = world.send(send("more").to(&task.id).immediately()).await;
        assert_eq!((state(&more), history(&more).len()), (Submitted, 2));
        gate.open();
        world.until(&task.id, Completed).await;
        assert_eq!(said(&world.task(&task.id).await), "second 1");
    }

    async fn mail_wakes_an_agent_that_waits_for_it(place) {
        let agent = ScriptedAgent::new(|turn| Box::pin(async move {
            turn.mail().await;
            let inbox = turn.inbox().await?;
            Ok(Outcome::Complete(Some(inbox.into_iter().flat_map(|message| message.parts().to_vec()).collect())))
        }));
        let world = place.world(agent).await;
        for round in 0..50 {
            let task = world.send(send("go").immediately()).await;
            let ended = world.send(send(format!("letter {round}")).to(&task.id)).await;
            assert_eq!(said(&ended), format!("letter {round}"));
        }
    }

    async fn only_so_many_messages_wait(place) {
        let gate = Gate::new();
        let world = place.world_with(gated(&gate), Config { waiting_max: 2, ..config() }).await;
        let task = world.send(send("ok").immediately()).await;
        for _ in 0..2 {
            world.send(send("more").to(&task.id).immediately()).await;
        }
        let refused = world.try_send(send("more").to(&task.id).immediately()).await;
        assert!(matches!(refused, Err(EngineError::Exhausted(_))), "{refused:?}");
        gate.open();
        world.until(&task.id, Completed).await;
    }

    async fn messages_at_once_to_a_task_that_waits_are_all_kept_and_one_turn_runs_at_a_time(place) {
        let world = place.world(gated(&{ let gate = Gate::new(); gate.open(); gate })).await;
        let task = world.send(send("input first")).await;
        let sends: Vec<_> = (0..20).map(|number| world.sending(send(format!("input {number}")).to(&task.id))).collect();
        for sending in sends {
            assert_eq!(state(&answer(sending).await), InputRequired);
        }
        let task = world.task(&task.id).await;
        let user = |message: &&longhaul_protocol::wire::Message| message.role.known() == Some(longhaul_protocol::Role::User);
        assert_eq!(task.history.iter().filter(user).count(), 21);
        assert_eq!(world.agent.runs().len(), 21, "each message had a turn of its own");
        assert_eq!(state(&world.send(send("ok").to(&task.id)).await), Completed);
    }
}
