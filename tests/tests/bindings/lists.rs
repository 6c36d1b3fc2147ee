//! ListTasks (§3.1.4): filters, pages, and what is refused.

use std::collections::BTreeSet;

use longhaul_tests::Operation;
use longhaul_tests::task::{id_of, say, state_of};
use serde_json::{Value, json};

use crate::Session;

/// Sends `text` into a context.
async fn send_into(s: &mut Session, context: &str, text: &str) -> Value {
    let mut params = say(text);
    params["message"]["contextId"] = context.into();
    s.client.ask(Operation::SendMessage, params).await["task"].clone()
}

/// Lists, and notes the page with its tasks in the order of their first message: tasks of the same
/// millisecond are ordered by their ids, which differ from run to run.
async fn list(s: &mut Session, params: Value) -> Value {
    let page = s.client.ask(Operation::ListTasks, params).await;
    let mut noted = page.clone();
    let tasks = noted["tasks"].as_array_mut().unwrap();
    assert!(tasks.is_sorted_by(|one, other| time_of(one) >= time_of(other)), "newest first");
    tasks.sort_by_key(|task| {
        (task["contextId"].to_string(), state_of(task).to_owned(), task["history"].to_string().len())
    });
    s.note(&noted);
    page
}

fn time_of(task: &Value) -> &str {
    task["status"]["timestamp"].as_str().unwrap()
}

fn ids(page: &Value) -> BTreeSet<String> {
    page["tasks"].as_array().unwrap().iter().map(id_of).collect()
}

crate::scenarios! {
    async fn empty_list_has_all_members(s) {
        let page = s.ask(Operation::ListTasks, json!({})).await;
        assert_eq!(page, json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}));
    }

    async fn filters_are_exact(s) {
        let one = send_into(s, "one", "echo").await;
        let waiting = send_into(s, "one", "input").await;
        let other = send_into(s, "other", "echo").await;

        let page = list(s, json!({})).await;
        assert_eq!(page["totalSize"], 3);
        assert_eq!(ids(&page), [&one, &waiting, &other].map(id_of).into());
        let page = list(s, json!({"contextId": "one"})).await;
        assert_eq!(page["totalSize"], 2);
        assert_eq!(ids(&page), [&one, &waiting].map(id_of).into());
        let page = list(s, json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await;
        assert_eq!(page["totalSize"], 1);
        assert_eq!(ids(&page), [id_of(&waiting)].into());
        let page = list(s, json!({"contextId": "other", "status": "TASK_STATE_INPUT_REQUIRED"})).await;
        assert_eq!(page["totalSize"], 0);
        let page = list(s, json!({"contextId": "unknown"})).await;
        assert_eq!(page["totalSize"], 0);
    }

    async fn time_filter_includes_its_border(s) {
        let task = send_into(s, "one", "echo").await;
        let time = time_of(&task);
        let page = list(s, json!({"statusTimestampAfter": time})).await;
        assert_eq!((&page["totalSize"], ids(&page)), (&json!(1), [id_of(&task)].into()));
        let page = list(s, json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"})).await;
        assert_eq!(page["totalSize"], 0);
        let page = list(s, json!({"contextId": "one", "statusTimestampAfter": "1999-01-01T00:00:00+02:00"})).await;
        assert_eq!(page["totalSize"], 1);
    }

    async fn artifacts_and_history_come_as_asked(s) {
        let asked = send_into(s, "one", "input").await;
        let mut more = longhaul_tests::task::say_to(&id_of(&asked), "more");
        more["configuration"] = json!({"historyLength": 0});
        s.send(more, "COMPLETED").await;
        let page = list(s, json!({})).await;
        assert!(page["tasks"][0].get("artifacts").is_none(), "{page}");
        let page = list(s, json!({"includeArtifacts": true, "historyLength": 1})).await;
        assert_eq!(page["tasks"][0]["history"].as_array().map(Vec::len), Some(1));
        let whole = s.ask(Operation::GetTask, json!({"id": asked["id"]})).await;
        assert_eq!(page["tasks"][0].get("artifacts"), whole.get("artifacts"));
        let page = list(s, json!({"historyLength": 0})).await;
        assert!(page["tasks"][0].get("history").is_none(), "{page}");
    }

    async fn pages_hold_each_task_once(s) {
        let mut sent = BTreeSet::new();
        for _ in 0..7 {
            sent.insert(id_of(&send_into(s, "one", "echo").await));
        }
        send_into(s, "other", "echo").await;
        let mut seen = Vec::new();
        let mut params = json!({"contextId": "one", "pageSize": 3});
        loop {
            let page = list(s, params.clone()).await;
            assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(7), &json!(3)));
            seen.extend(ids(&page));
            if page["nextPageToken"] == "" {
                break;
            }
            params["pageToken"] = page["nextPageToken"].clone();
        }
        assert_eq!(seen.len(), 7);
        assert_eq!(BTreeSet::from_iter(seen), sent);
    }

    async fn cursor_of_other_filters_is_refused(s) {
        for _ in 0..2 {
            send_into(s, "one", "echo").await;
        }
        let page = list(s, json!({"contextId": "one", "pageSize": 1})).await;
        let token = &page["nextPageToken"];
        assert_ne!(token, "");
        for params in [
            json!({"pageSize": 1, "pageToken": token}),
            json!({"contextId": "other", "pageSize": 1, "pageToken": token}),
            json!({"contextId": "one", "status": "TASK_STATE_COMPLETED", "pageToken": token}),
            json!({"pageToken": "nonsense"}),
        ] {
            let refusal = s.refused(Operation::ListTasks, params, "INVALID_PARAMS").await;
            assert_eq!(refusal.fields(), ["pageToken"]);
        }
    }

    async fn numbers_out_of_range_are_refused(s) {
        for (member, value) in [
            ("pageSize", 0),
            ("pageSize", -1),
            ("pageSize", 101),
            ("pageSize", i32::MAX),
            ("historyLength", -1),
            ("historyLength", i32::MIN),
        ] {
            let refusal = s.refused(Operation::ListTasks, json!({member: value}), "INVALID_PARAMS").await;
            assert_eq!(refusal.fields(), [member]);
        }
        let refusal = s.refused(Operation::ListTasks, json!({"status": 99, "pageSize": 0}), "INVALID_PARAMS").await;
        assert_eq!(refusal.fields(), ["status", "pageSize"]);
    }
}
