//! Sends, turns, ends and cancels.

use longhaul_tests::task::{id_of, message, say, say_and_leave, say_to, state_of, text_of};
use longhaul_tests::{Call, Operation};
use serde_json::json;

crate::scenarios_of_both! {
    async fn echo_completes_with_one_artifact(s) {
        let task = s.send(say("echo"), "COMPLETED").await;
        assert_eq!(task["artifacts"].as_array().map(Vec::len), Some(1));
        assert_eq!(task["history"].as_array().map(Vec::len), Some(1));
        let read = s.ask(Operation::GetTask, json!({"id": task["id"]})).await;
        assert_eq!(read, task);
    }

    async fn all_kinds_of_parts_come_back(s) {
        let parts = json!([
            {"text": "plain <a&b>'\" \u{1F30D} 漢字 \u{2028}", "metadata": {"n": 1, "none": null}},
            {"raw": "AAEC/w==", "filename": "four.bin"},
            {"url": "https://example.com/x?y=1", "mediaType": "image/png"},
            {"data": {"n": 1, "f": 1.5, "s": "", "b": false, "deep": [null, {"a": []}]}},
            {"data": null},
            {"data": [1, "2", null]},
        ]);
        let task = s.send(json!({"message": message(parts.clone())}), "COMPLETED").await;
        assert_eq!(task["history"][0]["parts"], parts);
    }

    async fn members_that_were_absent_stay_absent(s) {
        let task = s.send(say("plain"), "COMPLETED").await;
        let sent = &task["history"][0];
        for member in ["metadata", "extensions", "referenceTaskIds"] {
            assert!(sent.get(member).is_none(), "{sent}");
        }
        let mut params = say("with everything");
        params["message"]["metadata"] = json!({"zero": 0, "no": false, "empty": "", "null": null});
        params["message"]["extensions"] = json!(["urn:x:y"]);
        let sent = s.send(params.clone(), "COMPLETED").await["history"][0].clone();
        assert_eq!(sent["metadata"], params["message"]["metadata"]);
        assert_eq!(sent["extensions"], params["message"]["extensions"]);
    }

    async fn chunks_become_one_artifact(s) {
        let task = s.send(say("chunks 5"), "COMPLETED").await;
        assert_eq!(task["artifacts"].as_array().map(Vec::len), Some(1));
    }

    async fn input_is_asked_for_and_completes_with_the_answer(s) {
        let asked = s.send(say("input"), "INPUT_REQUIRED").await;
        assert_eq!(asked["status"]["message"]["role"], "ROLE_AGENT");
        let read = s.ask(Operation::GetTask, json!({"id": asked["id"]})).await;
        assert_eq!(read, asked);
        let done = s.send(say_to(&id_of(&asked), "the answer"), "COMPLETED").await;
        assert_eq!((&done["id"], &done["contextId"]), (&asked["id"], &asked["contextId"]));
        // The question has moved from the status into the history, between the two messages.
        let roles: Vec<_> = done["history"].as_array().unwrap().iter().map(|it| it["role"].clone()).collect();
        assert_eq!(roles[..3], ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]);
        assert_eq!(done["history"][1], asked["status"]["message"]);
    }

    async fn task_that_was_left_can_be_continued(s) {
        let left = s.client.ask(Operation::SendMessage, say_and_leave("input")).await;
        assert!(matches!(state_of(&left), "SUBMITTED" | "WORKING"), "{left}");
        let asked = s.wait_for(&left, "INPUT_REQUIRED").await;
        s.note(&asked);
        s.send(say_to(&id_of(&asked), "more"), "COMPLETED").await;
    }

    async fn message_during_a_turn_is_kept_and_its_sender_gets_the_end(s) {
        let left = s.client.ask(Operation::SendMessage, say_and_leave("slow 1")).await;
        s.wait_for(&left, "WORKING").await;
        let more = say_to(&id_of(&left), "more");
        let done = s.send(more.clone(), "COMPLETED").await;
        let history = done["history"].as_array().unwrap();
        assert_eq!(history.len(), 2, "{done}");
        assert_eq!(history[1]["messageId"], more["message"]["messageId"]);
    }

    async fn message_during_a_turn_answers_its_question(s) {
        let left = s.client.ask(Operation::SendMessage, say_and_leave("slow 1 input")).await;
        s.wait_for(&left, "WORKING").await;
        s.send(say_to(&id_of(&left), "more"), "COMPLETED").await;
    }

    async fn authorization_goes_on_by_itself(s) {
        let asked = s.send(say("auth"), "AUTH_REQUIRED").await;
        assert_eq!(asked["status"]["message"]["role"], "ROLE_AGENT");
        let done = s.wait_for(&asked, "COMPLETED").await;
        s.note(&done);
    }

    async fn authorization_can_be_answered(s) {
        let asked = s.send(say("auth"), "AUTH_REQUIRED").await;
        s.send(say_to(&id_of(&asked), "here it is"), "COMPLETED").await;
    }

    async fn rejection_is_a_task(s) {
        let task = s.send(say("reject"), "REJECTED").await;
        assert!(!task["status"]["message"]["parts"].as_array().unwrap().is_empty());
    }

    async fn failure_is_a_task(s) {
        for text in ["fail", "fail late"] {
            let task = s.send(say(text), "FAILED").await;
            s.ask(Operation::GetTask, json!({"id": task["id"]})).await;
        }
    }

    async fn direct_answer_makes_no_task(s) {
        let answer = s.ask(Operation::SendMessage, say("msg")).await;
        assert_eq!(answer["message"]["role"], "ROLE_AGENT", "{answer}");
        let page = s.ask(Operation::ListTasks, json!({})).await;
        assert_eq!(page["totalSize"], 0);
    }

    async fn event_after_the_end_changes_nothing(s) {
        let task = s.send(say("late"), "COMPLETED").await;
        let read = s.ask(Operation::GetTask, json!({"id": task["id"]})).await;
        assert_eq!(read, task);
    }

    async fn waiting_task_is_canceled(s) {
        let asked = s.send(say("input"), "INPUT_REQUIRED").await;
        let canceled = s.ask(Operation::CancelTask, json!({"id": asked["id"]})).await;
        assert_eq!(state_of(&canceled), "CANCELED");
        let read = s.ask(Operation::GetTask, json!({"id": asked["id"]})).await;
        assert_eq!(read, canceled);
    }

    async fn working_task_is_canceled_once(s) {
        let left = s.client.ask(Operation::SendMessage, say_and_leave("slow 60")).await;
        s.wait_for(&left, "WORKING").await;
        let id = json!({"id": id_of(&left)});
        let canceled = s.ask(Operation::CancelTask, id.clone()).await;
        assert_eq!(state_of(&canceled), "CANCELED");
        s.refused(Operation::CancelTask, id, "TASK_NOT_CANCELABLE").await;
    }

    async fn ended_task_is_not_cancelable(s) {
        for (text, state) in [("echo", "COMPLETED"), ("fail", "FAILED"), ("reject", "REJECTED")] {
            let task = s.send(say(text), state).await;
            s.refused(Operation::CancelTask, json!({"id": task["id"]}), "TASK_NOT_CANCELABLE").await;
        }
    }

    async fn ended_task_takes_no_message(s) {
        for (text, state) in [("echo", "COMPLETED"), ("fail", "FAILED"), ("reject", "REJECTED")] {
            let task = s.send(say(text), state).await;
            let more = say_to(&id_of(&task), "more");
            s.refused(Operation::SendMessage, more.clone(), "UNSUPPORTED_OPERATION").await;
            s.refused(Operation::SendStreamingMessage, more, "UNSUPPORTED_OPERATION").await;
            s.ask(Operation::GetTask, json!({"id": task["id"]})).await;
        }
    }

    async fn history_length_cuts_to_the_newest(s) {
        let asked = s.send(say("input"), "INPUT_REQUIRED").await;
        let mut more = say_to(&id_of(&asked), "more");
        more["configuration"] = json!({"historyLength": 1});
        let done = s.send(more.clone(), "COMPLETED").await;
        let whole = s.ask(Operation::GetTask, json!({"id": asked["id"]})).await;
        let history = whole["history"].as_array().unwrap();
        assert!(history.len() >= 3, "{whole}");
        assert_eq!(done["history"], json!([history.last().unwrap()]));
        for length in [0, 1, 2, 100] {
            let params = json!({"id": asked["id"], "historyLength": length});
            let cut = s.ask(Operation::GetTask, params).await;
            let newest = &history[history.len().saturating_sub(length)..];
            let cut = cut["history"].as_array().cloned().unwrap_or_default();
            assert_eq!(cut, newest);
        }
    }

    async fn context_is_kept_and_inferred(s) {
        let mut params = say("echo");
        params["message"]["contextId"] = "my-ctx 1/ü".into();
        let task = s.send(params.clone(), "COMPLETED").await;
        assert_eq!(task["contextId"], "my-ctx 1/ü");
        let mut params = say("input");
        params["message"]["contextId"] = "my-ctx 1/ü".into();
        let asked = s.send(params, "INPUT_REQUIRED").await;
        assert_ne!(asked["id"], task["id"]);
        let mut more = say_to(&id_of(&asked), "more");
        more["message"]["contextId"] = "other".into();
        let refusal = s.refused(Operation::SendMessage, more, "INVALID_PARAMS").await;
        assert_eq!(refusal.fields(), ["message.contextId"]);
        let unchanged = s.ask(Operation::GetTask, json!({"id": asked["id"]})).await;
        assert_eq!(unchanged, asked);
        let done = s.send(say_to(&id_of(&asked), "more"), "COMPLETED").await;
        assert_eq!(done["contextId"], "my-ctx 1/ü");
    }

    async fn tenants_do_not_see_each_other(s) {
        let mut params = say("echo");
        params["tenant"] = "acme".into();
        let task = s.send(params, "COMPLETED").await;
        let id = id_of(&task);
        let read = s.ask(Operation::GetTask, json!({"tenant": "acme", "id": id})).await;
        assert_eq!(read, task);
        for params in [json!({"id": id}), json!({"tenant": "other", "id": id})] {
            s.refused(Operation::GetTask, params.clone(), "TASK_NOT_FOUND").await;
            s.refused(Operation::CancelTask, params.clone(), "TASK_NOT_FOUND").await;
            s.refused(Operation::SubscribeToTask, params, "TASK_NOT_FOUND").await;
        }
        let page = s.ask(Operation::ListTasks, json!({"tenant": "acme"})).await;
        assert_eq!(page["totalSize"], 1);
        let page = s.ask(Operation::ListTasks, json!({})).await;
        assert_eq!(page["totalSize"], 0);
    }

    async fn repeated_send_runs_once_when_asked_for(s) {
        let params = say("echo");
        let call = Call::new(Operation::SendMessage, params.clone());
        let asking = call.clone().header("a2a-extensions", "urn:longhaul:ext:idempotent-send:v1");
        let first = s.client.call(&asking).await.unwrap();
        let second = s.client.call(&asking).await.unwrap();
        assert_eq!(id_of(&first), id_of(&second));
        s.note(&first);
        s.note(&second);
        let mut changed = asking.clone();
        changed.params["message"]["parts"] = json!([{"text": "something else"}]);
        let refusal = s.refused_call(&changed, "INVALID_PARAMS").await;
        assert_eq!(refusal.fields().len(), 1, "{refusal:?}");
        // Who does not ask gets a task of its own each time.
        let third = s.client.call(&call).await.unwrap();
        assert_ne!(id_of(&first), id_of(&third));
        assert_eq!(text_of(&first["task"]), text_of(&third["task"]));
    }
}
