//! SendStreamingMessage, SubscribeToTask and resuming.

use longhaul_tests::task::{assert_numbered, fold, id_of, say, say_to, state_of, text_of};
use longhaul_tests::{Call, Event, Operation, contents};
use serde_json::json;

fn send(text: &str) -> Call {
    Call::new(Operation::SendStreamingMessage, say(text))
}

fn subscribe(id: &str) -> Call {
    Call::new(Operation::SubscribeToTask, json!({"id": id}))
}

fn last(events: &[Event]) -> &str {
    state_of(&events.last().unwrap().data)
}

crate::scenarios_of_both! {
    async fn stream_begins_with_the_task_and_ends_with_its_end(s) {
        for (text, state) in [("echo", "COMPLETED"), ("fail", "FAILED"), ("fail late", "FAILED"), ("late", "COMPLETED")] {
            let events = s.collect(&send(text)).await;
            assert_numbered(&events, 1);
            assert_eq!(last(&events), state);
            let task = s.ask(Operation::GetTask, json!({"id": id_of(&events[0].data)})).await;
            let folded = fold(&events);
            assert_eq!((&folded["artifacts"], &folded["status"]), (&task["artifacts"], &task["status"]));
        }
    }

    async fn chunks_and_bursts_come_in_order(s) {
        let events = s.collect(&send("chunks 20")).await;
        assert_numbered(&events, 1);
        let chunks = events.iter().filter(|event| event.data.get("artifactUpdate").is_some());
        assert_eq!(chunks.count(), 20);
        let events = s.collect(&send("burst 20")).await;
        assert_numbered(&events, 1);
        let statuses = events.iter().filter(|event| event.data.get("statusUpdate").is_some());
        assert!(statuses.count() >= 20);
    }

    async fn rejected_task_is_the_whole_stream(s) {
        let events = s.collect(&send("reject")).await;
        assert_eq!(last(&events), "REJECTED");
    }

    async fn direct_message_is_the_whole_stream(s) {
        let events = s.collect(&send("msg")).await;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].sequence, None);
        assert!(events[0].data.get("message").is_some());
    }

    async fn own_stream_ends_at_a_question_and_the_next_goes_on(s) {
        let asked = s.collect(&send("input")).await;
        assert_eq!(last(&asked), "INPUT_REQUIRED");
        let id = id_of(&asked[0].data);
        let more = s.collect(&Call::new(Operation::SendStreamingMessage, say_to(&id, "more"))).await;
        assert!(more[0].data.get("task").is_some(), "the first item is the task");
        assert_eq!(last(&more), "COMPLETED");
    }

    async fn own_stream_stays_open_through_an_authorization(s) {
        let events = s.collect(&send("auth")).await;
        let states: Vec<&str> = events.iter().map(|event| state_of(&event.data)).collect();
        assert!(states.contains(&"AUTH_REQUIRED"), "{states:?}");
        assert_eq!(states.last(), Some(&"COMPLETED"));
        assert_numbered(&events, 1);
    }

    async fn subscriber_of_a_waiting_task_sees_the_next_turn(s) {
        let asked = s.send(say("input"), "INPUT_REQUIRED").await;
        let id = id_of(&asked);
        let mut stream = s.client.follow(&subscribe(&id)).await;
        let first = stream.event().await;
        assert_eq!(first.data, json!({"task": asked}));
        let done = s.other().ask(Operation::SendMessage, say_to(&id, "more")).await;
        let mut events = vec![first];
        events.extend(stream.rest().await);
        s.note_events(&events);
        let number = events[0].sequence.unwrap();
        assert_numbered(&events, number);
        let folded = fold(&events);
        assert_eq!(folded["status"], done["task"]["status"]);
        assert_eq!(text_of(&folded), text_of(&done["task"]));
    }

    async fn ended_task_has_no_stream_but_its_log_is_there(s) {
        for text in ["chunks 5", "burst 5", "fail late"] {
            let whole = s.collect(&send(text)).await;
            let id = id_of(&whole[0].data);
            s.refused_call(&subscribe(&id), "UNSUPPORTED_OPERATION").await;
            for (cut, event) in whole.iter().enumerate() {
                let number = event.sequence.unwrap();
                let resumed = s.collect(&subscribe(&id).after(number)).await;
                assert_numbered(&resumed, number);
                assert_eq!(contents(&resumed[1..]), contents(&whole[cut + 1..]));
                // The first item is the task as it stood there, with its history.
                assert_eq!(resumed[0].data["task"], fold(&whole[..=cut]), "{text} at {number}");
            }
        }
    }

    async fn first_item_of_a_stream_is_the_task_at_its_number(s) {
        let asked = s.send(say("input"), "INPUT_REQUIRED").await;
        let id = id_of(&asked);
        let more = s.collect(&Call::new(Operation::SendStreamingMessage, say_to(&id, "more"))).await;
        let number = more[0].sequence.unwrap();
        let resumed = s.collect(&subscribe(&id).after(number)).await;
        assert_eq!(contents(&resumed), contents(&more));
        let whole = s.collect(&subscribe(&id).after(1)).await;
        let question = whole.iter().find(|event| state_of(&event.data) == "INPUT_REQUIRED").unwrap();
        let before = s.collect(&subscribe(&id).after(question.sequence.unwrap())).await;
        assert_eq!(before[0].data["task"], asked, "what came after is not shown before");
    }

    async fn unknown_event_id_gives_the_task_as_it_is(s) {
        let asked = s.send(say("input"), "INPUT_REQUIRED").await;
        for id in ["10000", "0", "-1", "x", "18446744073709551616"] {
            let call = subscribe(&id_of(&asked)).header("last-event-id", id);
            let event = s.client.follow(&call).await.event().await;
            assert_eq!(event.data, json!({"task": asked}), "{id}");
            s.note_events(&[event]);
        }
    }

    async fn send_takes_no_notice_of_an_event_id(s) {
        let events = s.collect(&send("echo").after(3)).await;
        assert_numbered(&events, 1);
        assert_eq!(last(&events), "COMPLETED");
    }

    async fn history_length_holds_for_the_first_item(s) {
        let asked = s.send(say("input"), "INPUT_REQUIRED").await;
        let mut params = say_to(&id_of(&asked), "more");
        params["configuration"] = json!({"historyLength": 1});
        let events = s.collect(&Call::new(Operation::SendStreamingMessage, params.clone())).await;
        let history = events[0].data["task"]["history"].as_array().unwrap();
        assert_eq!(history.len(), 1);
        assert_eq!(history[0]["messageId"], params["message"]["messageId"]);
    }
}
