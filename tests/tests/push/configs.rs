//! The four operations on configs, through each binding.

use longhaul_tests::receiver::{HookReceiver, Reply, TOKEN};
use longhaul_tests::task::{id_of, say, say_to};
use longhaul_tests::{Binding, Call, Client, Launch, Operation, Server, Store, until};
use serde_json::{Value, json};

use crate::support::{IMPATIENT, PATIENCE, on_postgres, on_sqlite, send, start};

const CREATE: Operation = Operation::CreateTaskPushNotificationConfig;
const GET: Operation = Operation::GetTaskPushNotificationConfig;
const LIST: Operation = Operation::ListTaskPushNotificationConfigs;
const DELETE: Operation = Operation::DeleteTaskPushNotificationConfig;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configs_live_the_same_life_through_each_binding_on_sqlite() {
    let (server, _database) = start(on_sqlite(IMPATIENT)).await;
    for binding in Binding::ALL {
        life(&server, binding).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configs_live_the_same_life_through_each_binding_on_postgres() {
    let (server, _database) = start(on_postgres(IMPATIENT)).await;
    for binding in Binding::ALL {
        life(&server, binding).await;
    }
}

fn ids(page: &Value) -> Vec<&str> {
    page["configs"].as_array().into_iter().flatten().map(|config| config["id"].as_str().unwrap()).collect()
}

async fn life(server: &Server, binding: Binding) {
    let receiver = HookReceiver::start(|_, _, _| Reply::Take).await;
    let mut client = Client::new(binding, server.addr());
    let task = id_of(&client.ask(Operation::SendMessage, say("input")).await);
    let hook = |id: &str| {
        let authentication = json!({"scheme": "Bearer", "credentials": "hunter2"});
        let mut config = receiver.config(id);
        config["taskId"] = task.as_str().into();
        config["authentication"] = authentication;
        config
    };
    // Made, with an id and without; read back, without its secrets.
    let made = client.ask(CREATE, hook("one")).await;
    let mut nameless = hook("two");
    nameless["id"] = "".into();
    let second = client.ask(CREATE, nameless).await;
    let second_id = second["id"].as_str().unwrap().to_owned();
    assert_eq!(second_id.len(), 36, "{binding:?} {second}");
    let read = client.ask(GET, json!({"taskId": task, "id": "one"})).await;
    let page = client.ask(LIST, json!({"taskId": task})).await;
    assert_eq!(read, made);
    for shown in [&made, &second, &read, &page["configs"][0], &page["configs"][1]] {
        let text = shown.to_string();
        assert!(!text.contains("hunter2") && !text.contains(TOKEN), "{binding:?} {text}");
        assert_eq!((&shown["authentication"]["scheme"], &shown["taskId"]), (&json!("Bearer"), &json!(task)));
    }
    // In pages, by id.
    let mut wanted = ["one", second_id.as_str()];
    wanted.sort_unstable();
    assert_eq!(ids(&page), wanted);
    let first = client.ask(LIST, json!({"taskId": task, "pageSize": 1})).await;
    let token = first["nextPageToken"].as_str().unwrap().to_owned();
    let rest = client.ask(LIST, json!({"taskId": task, "pageSize": 1, "pageToken": token})).await;
    assert_eq!((ids(&first), ids(&rest)), (vec![wanted[0]], vec![wanted[1]]), "{binding:?}");
    // Removed, and removed again.
    for _ in 0..2 {
        client.ask(DELETE, json!({"taskId": task, "id": second_id})).await;
    }
    assert_eq!(ids(&client.ask(LIST, json!({"taskId": task})).await), ["one"]);
    client.refused(&Call::new(GET, json!({"taskId": task, "id": second_id})), "TASK_NOT_FOUND").await;
    // What can't be is refused, and nobody learns what is not theirs.
    let nobody = json!({"taskId": "00000000-0000-7000-8000-000000000000", "id": "one"});
    for operation in [GET, LIST, DELETE] {
        client.refused(&Call::new(operation, nobody.clone()), "TASK_NOT_FOUND").await;
    }
    for url in ["ftp://127.0.0.1/", "http://10.0.0.1/", "http://user@127.0.0.1/", "nowhere"] {
        let mut config = hook("bad");
        config["url"] = url.into();
        client.refused(&Call::new(CREATE, config), "INVALID_PARAMS").await;
    }
    // Events arrive from now on.
    client.ask(Operation::SendMessage, say_to(&task, "echo")).await;
    until(PATIENCE, "the end is pushed", async || {
        let came = receiver.came("one");
        let ended = |came: &Value| came["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED";
        came.iter().any(|came| ended(&came.body)).then_some(())
    })
    .await;
    let came = receiver.came("one");
    assert_eq!(came[0].headers.get("authorization").unwrap(), "Bearer hunter2");
    assert_eq!((receiver.came("two").len(), receiver.refused()), (0, Vec::new()));
    // A config that comes with a send is given all events.
    let sent = send(&mut client, "echo", receiver.config("sent")).await;
    until(PATIENCE, "all events", async || (receiver.sequences("sent").len() >= 4).then_some(())).await;
    assert_eq!(
        (receiver.sequences("sent"), &receiver.came("sent")[0].body["task"]["id"]),
        (vec![1, 2, 3, 4], &json!(sent))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_setting_nothing_inside_is_reached() {
    let server = Server::start(Store::Sqlite).await;
    for binding in Binding::ALL {
        let mut client = Client::new(binding, server.addr());
        let task = id_of(&client.ask(Operation::SendMessage, say("echo")).await);
        for url in ["http://hooks.example/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/"] {
            let config = json!({"taskId": task, "id": "one", "url": url});
            client.refused(&Call::new(CREATE, config), "INVALID_PARAMS").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_push_each_binding_says_that_it_is_not_supported() {
    let server = Server::launch(Launch::sqlite("[push]\nenabled = false\n")).await;
    for binding in Binding::ALL {
        let mut client = Client::new(binding, server.addr());
        let task = id_of(&client.ask(Operation::SendMessage, say("echo")).await);
        let params = json!({"taskId": task, "id": "one", "url": "https://hooks.example/"});
        for operation in [CREATE, GET, LIST, DELETE] {
            let params = match operation {
                CREATE => params.clone(),
                LIST => json!({"taskId": task}),
                _ => json!({"taskId": task, "id": "one"}),
            };
            client.refused(&Call::new(operation, params), "PUSH_NOTIFICATION_NOT_SUPPORTED").await;
        }
        let mut with_send = say("echo");
        with_send["configuration"] = json!({"taskPushNotificationConfig": {"url": "https://hooks.example/"}});
        client.refused(&Call::new(Operation::SendMessage, with_send), "PUSH_NOTIFICATION_NOT_SUPPORTED").await;
    }
}
