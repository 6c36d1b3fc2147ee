//! Every operation over every binding: what `Peer::offers` says.

use longhaul_tests::task::{id_of, say, say_and_leave, state_of};
use longhaul_tests::{Binding, Operation, Peer, Sdk};
use serde_json::{Value, json};

use crate::ask::{call, follow, where_is};

async fn each(test: impl AsyncFn(&Peer, Binding)) {
    let of = async |sdk| {
        let peer = Peer::start(sdk).await;
        for &binding in peer.bindings() {
            test(&peer, binding).await;
        }
    };
    let [python, js] = Sdk::ALL;
    tokio::join!(of(python), of(js));
}

async fn ask(peer: &Peer, binding: Binding, operation: Operation, params: Value) -> Value {
    assert!(peer.offers(operation));
    let answer = call(peer, binding, operation, params).await;
    answer.unwrap_or_else(|error| panic!("{:?} {binding:?} {operation:?}: {error}", peer.sdk()))
}

#[tokio::test]
async fn tasks_are_sent_got_listed_and_canceled() {
    each(async |peer, binding| {
        let sent = ask(peer, binding, Operation::SendMessage, say("echo hello")).await;
        assert_eq!(state_of(&sent), "COMPLETED");
        assert_eq!(sent["task"]["artifacts"][0]["parts"][0]["text"], "echo hello");
        let got = ask(peer, binding, Operation::GetTask, json!({"id": id_of(&sent)})).await;
        assert_eq!(got["status"]["state"], sent["task"]["status"]["state"]);
        let listed = ask(peer, binding, Operation::ListTasks, json!({})).await;
        let listed = listed["tasks"].as_array().unwrap();
        assert!(listed.iter().any(|task| task["id"] == got["id"]), "{listed:?}");
        let slow = ask(peer, binding, Operation::SendMessage, say_and_leave("slow 600")).await;
        let canceled = ask(peer, binding, Operation::CancelTask, json!({"id": id_of(&slow)})).await;
        assert_eq!(state_of(&canceled), "CANCELED");
    })
    .await;
}

#[tokio::test]
async fn streams_are_sent_and_subscribed_to() {
    each(async |peer, binding| {
        let at = where_is(peer, binding);
        let items = follow(peer, at, binding, Operation::SendStreamingMessage, say("chunks 3")).await.unwrap();
        assert_eq!(state_of(&items[0]), "SUBMITTED", "{items:?}");
        let chunks = items.iter().filter(|item| item.get("artifactUpdate").is_some()).count();
        assert_eq!((chunks, state_of(items.last().unwrap())), (3, "COMPLETED"));
        let slow = ask(peer, binding, Operation::SendMessage, say_and_leave("slow 1 chunks 2")).await;
        let params = json!({"id": id_of(&slow)});
        let items = follow(peer, at, binding, Operation::SubscribeToTask, params).await.unwrap();
        assert!(items[0].get("task").is_some(), "{items:?}");
        assert_eq!(state_of(items.last().unwrap()), "COMPLETED", "{items:?}");
    })
    .await;
}

#[tokio::test]
async fn push_configs_are_created_got_listed_and_deleted() {
    each(async |peer, binding| {
        let task = id_of(&ask(peer, binding, Operation::SendMessage, say("echo hello")).await);
        let config = json!({"taskId": task, "id": "mine", "url": "http://127.0.0.1:9/hook", "token": "t"});
        let made = ask(peer, binding, Operation::CreateTaskPushNotificationConfig, config).await;
        assert_eq!((&made["id"], &made["taskId"]), (&json!("mine"), &json!(task)));
        let named = json!({"taskId": task, "id": "mine"});
        let got = ask(peer, binding, Operation::GetTaskPushNotificationConfig, named.clone()).await;
        assert_eq!(got["url"], "http://127.0.0.1:9/hook");
        let all = json!({"taskId": task});
        let listed = ask(peer, binding, Operation::ListTaskPushNotificationConfigs, all.clone()).await;
        assert_eq!(listed["configs"].as_array().unwrap().len(), 1);
        // One says nothing, one says null, one says {}.
        ask(peer, binding, Operation::DeleteTaskPushNotificationConfig, named).await;
        let listed = ask(peer, binding, Operation::ListTaskPushNotificationConfigs, all).await;
        assert!(listed["configs"].as_array().is_none_or(Vec::is_empty), "{listed}");
    })
    .await;
}

#[tokio::test]
async fn extended_card_has_a_skill_more() {
    each(async |peer, binding| {
        let card = ask(peer, binding, Operation::GetExtendedAgentCard, json!({})).await;
        assert_eq!(card["skills"][1]["id"], "more");
        assert_eq!(peer.card()["skills"].as_array().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn unknown_task_is_refused() {
    each(async |peer, binding| {
        for operation in [Operation::GetTask, Operation::CancelTask] {
            let refused = call(peer, binding, operation, json!({"id": "nobody"})).await.unwrap_err();
            assert!(refused.contains("TASK_NOT_FOUND"), "{:?} {binding:?}: {refused}", peer.sdk());
        }
    })
    .await;
}
