//! Push configs of v0.3, and deliveries in the version in which their config was made.

use longhaul_tests::http::Request;
use longhaul_tests::receiver::{Came, HookReceiver, Reply, SIGNING};
use longhaul_tests::task::id_of;
use longhaul_tests::{Binding, Client, Launch, Operation, PATIENCE, Server, Speech, Store, until};
use serde_json::{Value, json};

use crate::{error, exchange, result, say};

async fn server(store: Store) -> Server {
    let env = [
        ("LONGHAUL_PUSH_ALLOW", "127.0.0.0/8"),
        ("LONGHAUL_PUSH_ALLOW_HTTP", "true"),
        ("LONGHAUL_PUSH_SIGNING_SECRET", SIGNING),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    Server::launch(Launch { env, ..Launch::new(store) }).await
}

/// What takes all that comes, whatever it is.
async fn receiver() -> HookReceiver {
    HookReceiver::start(|_, _, _| Reply::Status(200, "")).await
}

async fn came(receiver: &HookReceiver, name: &str, is_last: fn(&Came) -> bool) -> Vec<Came> {
    let what = format!("{name} is told the end");
    until(PATIENCE, &what, async || {
        let came = receiver.came(name);
        came.last().is_some_and(is_last).then_some(came)
    })
    .await
}

fn is_completed(came: &Came) -> bool {
    came.body["status"]["state"] == "completed"
}

fn is_completed_v1(came: &Came) -> bool {
    came.body["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
}

#[tokio::test]
async fn each_config_is_delivered_in_the_version_that_it_was_made_in() {
    let (server, receiver) = (server(Store::Sqlite).await, receiver().await);
    for binding in Binding::ALL {
        let mut old = Client::speaking(Speech::V0_3, binding, server.addr());
        let mut new = Client::new(binding, server.addr());
        let name = |kind: &str| format!("{kind}-{binding:?}");
        let asked = {
            let mut params = longhaul_tests::task::say("input");
            params["configuration"] = json!({"taskPushNotificationConfig": receiver.config(&name("sent"))});
            old.ask(Operation::SendMessage, params).await["task"].clone()
        };
        let config = |name: String| {
            let mut config = receiver.config(&name);
            config["taskId"] = asked["id"].clone();
            config
        };
        old.ask(Operation::CreateTaskPushNotificationConfig, config(name("set"))).await;
        new.ask(Operation::CreateTaskPushNotificationConfig, config(name("new"))).await;
        new.ask(Operation::SendMessage, longhaul_tests::task::say_to(&id_of(&asked), "chunks 3")).await;
        for kind in ["sent", "set"] {
            let came = came(&receiver, &name(kind), is_completed).await;
            for delivery in &came {
                assert_eq!((&delivery.body["kind"], &delivery.body["id"]), (&json!("task"), &asked["id"]));
                assert_eq!(delivery.headers.get("a2a-version").unwrap(), "0.3");
                assert_eq!(delivery.headers.get("content-type").unwrap(), "application/json");
                assert!(delivery.headers.contains_key("x-a2a-notification-token"));
            }
            let states: Vec<&str> =
                came.iter().map(|delivery| delivery.body["status"]["state"].as_str().unwrap()).collect();
            let first = if kind == "sent" { "submitted" } else { "working" };
            assert_eq!(states.first(), Some(&first), "{states:?}");
            let last: Value = came.last().unwrap().body.clone();
            assert_eq!(last["artifacts"][0]["parts"].as_array().map(Vec::len), Some(3), "{last}");
        }
        for delivery in came(&receiver, &name("new"), is_completed_v1).await {
            assert_eq!(delivery.headers.get("a2a-version").unwrap(), "1.0");
        }
    }
}

#[tokio::test]
async fn configs_are_set_read_listed_and_deleted_over_json_rpc() {
    let (server, receiver) = (server(Store::Memory).await, receiver().await);
    let mut connection = longhaul_tests::http::Connection::open(server.addr()).await.unwrap();
    let connection = &mut connection;
    let task = result(connection, "message/send", say("input")).await;
    let id = &task["id"];
    let url = |name: &str| format!("http://{}/{name}", receiver.addr());
    let none = error(connection, "tasks/pushNotificationConfig/get", json!({"id": id})).await;
    assert_eq!(none["code"], -32001, "{none}");
    for name in ["a", "b"] {
        let inner = json!({
            "id": name, "url": url(name), "token": "t",
            "authentication": {"schemes": ["Bearer", "Basic"], "credentials": "hush"},
        });
        let set = json!({"taskId": id, "pushNotificationConfig": inner});
        let made = result(connection, "tasks/pushNotificationConfig/set", set).await;
        let shown = json!({"id": name, "url": url(name), "authentication": {"schemes": ["Bearer"]}});
        assert_eq!(made, json!({"taskId": id, "pushNotificationConfig": shown}));
    }
    let ids = |list: &Value| -> Vec<String> {
        let ids = list.as_array().unwrap().iter();
        ids.map(|config| config["pushNotificationConfig"]["id"].as_str().unwrap().to_owned()).collect()
    };
    let list = result(connection, "tasks/pushNotificationConfig/list", json!({"id": id})).await;
    assert_eq!(ids(&list), ["a", "b"]);
    let any = result(connection, "tasks/pushNotificationConfig/get", json!({"id": id})).await;
    assert_eq!(any, list[0], "a get without an id is of any of them");
    let none = format!("/v1/tasks/{}/pushNotificationConfigs/None", id.as_str().unwrap());
    let any = exchange(connection, &Request::get(&none)).await.json();
    let name = format!("tasks/{}/pushNotificationConfigs/a", id.as_str().unwrap());
    assert_eq!(any["name"], name, "so an SDK writes that it has no id");
    let one = json!({"id": id, "pushNotificationConfigId": "b"});
    assert_eq!(result(connection, "tasks/pushNotificationConfig/get", one.clone()).await, list[1]);
    assert_eq!(result(connection, "tasks/pushNotificationConfig/delete", one).await, Value::Null);
    let list = result(connection, "tasks/pushNotificationConfig/list", json!({"id": id})).await;
    assert_eq!(ids(&list), ["a"]);
    let bad = json!({"taskId": id, "pushNotificationConfig": {"url": "ftp://x/"}});
    let refused = error(connection, "tasks/pushNotificationConfig/set", bad).await;
    assert_eq!(refused["data"][1]["fieldViolations"][0]["field"], "pushNotificationConfig.url", "{refused}");
}

#[tokio::test]
async fn all_configs_are_in_one_answer_of_json_rpc() {
    let env = [("LONGHAUL_PUSH_ALLOW", "127.0.0.0/8"), ("LONGHAUL_PUSH_ALLOW_HTTP", "true")];
    let launch = Launch {
        config: "push.configs_max = 300".to_owned(),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..Launch::new(Store::Memory)
    };
    let server = Server::launch(launch).await;
    let mut connection = longhaul_tests::http::Connection::open(server.addr()).await.unwrap();
    let task = result(&mut connection, "message/send", say("input")).await;
    for number in 0..210 {
        let inner = json!({"id": format!("{number:03}"), "url": "http://127.0.0.1:9/"});
        let set = json!({"taskId": task["id"], "pushNotificationConfig": inner});
        result(&mut connection, "tasks/pushNotificationConfig/set", set).await;
    }
    let list = result(&mut connection, "tasks/pushNotificationConfig/list", json!({"id": task["id"]})).await;
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|it| it["pushNotificationConfig"]["id"].clone()).collect();
    assert_eq!(ids, (0..210).map(|number| json!(format!("{number:03}"))).collect::<Vec<_>>());
}
