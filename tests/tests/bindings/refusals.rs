//! What is refused, and how: the reason, its numbers in each binding, and the members that are wrong.

use longhaul_tests::task::{message, say};
use longhaul_tests::{Call, Operation};
use serde_json::json;

crate::scenarios! {
    async fn unknown_task_is_not_found(s) {
        for id in ["unknown", "00000000-0000-7000-8000-000000000000", "a/b", "..", "a?b", "a:cancel", "ü 漢", "%41"] {
            let params = json!({"id": id});
            for operation in [Operation::GetTask, Operation::CancelTask, Operation::SubscribeToTask] {
                let refusal = s.refused(operation, params.clone(), "TASK_NOT_FOUND").await;
                assert_eq!(refusal.metadata("taskId"), Some(id), "{refusal:?}");
            }
        }
        let mut params = say("more");
        params["message"]["taskId"] = "unknown".into();
        s.refused(Operation::SendMessage, params.clone(), "TASK_NOT_FOUND").await;
        s.refused(Operation::SendStreamingMessage, params, "TASK_NOT_FOUND").await;
    }

    async fn message_must_keep_the_field_rules(s) {
        let good = message(json!([{"text": "x"}]));
        let with = |member: &str, value: serde_json::Value| {
            let mut bad = good.clone();
            bad[member] = value;
            json!({"message": bad})
        };
        for (params, field) in [
            (json!({}), "message"),
            (with("parts", json!([])), "message.parts"),
            (with("parts", json!([{"text": "x"}, {"filename": "no content"}])), "message.parts[1]"),
            (with("role", json!(null)), "message.role"),
            (with("role", json!("ROLE_AGENT")), "message.role"),
            (with("role", json!(99)), "message.role"),
            (with("messageId", json!("")), "message.messageId"),
            (with("messageId", json!("a\u{7}b")), "message.messageId"),
            (with("messageId", json!("x".repeat(257))), "message.messageId"),
            (with("taskId", json!("t".repeat(129))), "message.taskId"),
            (with("contextId", json!("a\nb")), "message.contextId"),
            (with("referenceTaskIds", json!([""])), "message.referenceTaskIds[0]"),
            (with("parts", json!([{"text": "x", "mediaType": "text/\u{0}"}])), "message.parts[0].mediaType"),
            (json!({"message": good, "configuration": {"historyLength": -1}}), "configuration.historyLength"),
        ] {
            let refusal = s.refused(Operation::SendMessage, params.clone(), "INVALID_PARAMS").await;
            assert_eq!(refusal.fields(), [field], "{params}");
            s.refused(Operation::SendStreamingMessage, params, "INVALID_PARAMS").await;
        }
        let all = json!({"message": {"role": "ROLE_AGENT"}, "configuration": {"historyLength": -2}});
        let refusal = s.refused(Operation::SendMessage, all, "INVALID_PARAMS").await;
        let fields = ["message.messageId", "message.parts", "message.role", "configuration.historyLength"];
        let mut told = refusal.fields();
        told.sort_by_key(|field| fields.iter().position(|known| known == field));
        assert_eq!(told, fields);
        let page = s.ask(Operation::ListTasks, json!({})).await;
        assert_eq!(page["totalSize"], 0, "nothing that was refused has left a task");
    }

    async fn history_length_must_not_be_negative(s) {
        let task = s.send(say("echo"), "COMPLETED").await;
        let params = json!({"id": task["id"], "historyLength": -1});
        let refusal = s.refused(Operation::GetTask, params, "INVALID_PARAMS").await;
        assert_eq!(refusal.fields(), ["historyLength"]);
    }

    async fn media_type_that_nobody_takes_is_refused(s) {
        for part in [
            json!({"raw": "AA==", "mediaType": "video/x-of-a-kind-nobody-takes"}),
            json!({"text": "x", "mediaType": "model/x-of-a-kind-nobody-takes"}),
        ] {
            let params = json!({"message": message(json!([{"text": "fine"}, part]))});
            s.refused(Operation::SendMessage, params.clone(), "CONTENT_TYPE_NOT_SUPPORTED").await;
            s.refused(Operation::SendStreamingMessage, params, "CONTENT_TYPE_NOT_SUPPORTED").await;
        }
        // A file that does not say what it is passes.
        s.send(json!({"message": message(json!([{"raw": "AA=="}]))}), "COMPLETED").await;
    }

    async fn extended_card_is_not_supported_yet(s) {
        s.refused(Operation::GetExtendedAgentCard, json!({}), "UNSUPPORTED_OPERATION").await;
    }

    async fn versions_are_held_to(s) {
        let task = s.send(say("echo"), "COMPLETED").await;
        let get = Call::new(Operation::GetTask, json!({"id": task["id"]}));
        for version in ["1.0", "1.0.0", "1.0.7"] {
            s.outcome(&get.clone().version(Some(version))).await.unwrap();
        }
        let others = [None, Some(""), Some("0.3"), Some("1"), Some("1.1"), Some("2.0"), Some("9.9"), Some("abc")];
        for version in others {
            for call in [
                get.clone(),
                Call::new(Operation::SendMessage, say("echo")),
                Call::new(Operation::SendStreamingMessage, say("echo")),
                Call::new(Operation::SubscribeToTask, json!({"id": task["id"]})),
                Call::new(Operation::ListTasks, json!({})),
                Call::new(Operation::CancelTask, json!({"id": task["id"]})),
                Call::new(Operation::GetExtendedAgentCard, json!({})),
                Call::new(Operation::ListTaskPushNotificationConfigs, json!({"taskId": task["id"]})),
            ] {
                let refusal = s.refused_call(&call.version(version), "VERSION_NOT_SUPPORTED").await;
                assert!(refusal.message.contains("1.0"), "{refusal:?}");
                assert!(refusal.details[0]["metadata"].to_string().contains("1.0"), "{refusal:?}");
            }
        }
        let page = s.ask(Operation::ListTasks, json!({})).await;
        assert_eq!(page["totalSize"], 1, "what was refused has run nothing");
    }
}
