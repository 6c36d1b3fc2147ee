//! One store: a task that one version began is read, continued, streamed and canceled by the other.

use longhaul_tests::task::{id_of, say as say_v1, say_to as say_to_v1, state_of};
use longhaul_tests::{Binding, Call, Client, Operation, Server, Speech, Store};
use serde_json::{Value, json};

/// Each pair of a binding of one version and one of the other, the first of which begins.
fn pairs(server: &Server) -> Vec<(Client, Client)> {
    let client = |speech, binding| Client::speaking(speech, binding, server.addr());
    let mut pairs = Vec::new();
    for first in Binding::ALL {
        for second in Binding::ALL {
            for (one, other) in [(Speech::V0_3, Speech::V1_0), (Speech::V1_0, Speech::V0_3)] {
                pairs.push((client(one, first), client(other, second)));
            }
        }
    }
    pairs
}

fn says(client: &Client) -> String {
    format!("{:?} {:?}", client.speech(), client.binding())
}

#[tokio::test]
async fn what_one_has_begun_the_other_reads_continues_and_lists() {
    let server = Server::start(Store::Sqlite).await;
    for (mut one, mut other) in pairs(&server) {
        let pair = format!("{} then {}", says(&one), says(&other));
        let asked = one.ask(Operation::SendMessage, say_v1("input")).await["task"].clone();
        assert_eq!(state_of(&asked), "INPUT_REQUIRED", "{pair}");
        let get = json!({"id": asked["id"]});
        assert_eq!(other.ask(Operation::GetTask, get.clone()).await, asked, "{pair}");
        let done = other.ask(Operation::SendMessage, say_to_v1(&id_of(&asked), "echo")).await["task"].clone();
        assert_eq!(state_of(&done), "COMPLETED", "{pair}");
        assert_eq!(one.ask(Operation::GetTask, get).await, done, "{pair}");
        let page = other.ask(Operation::ListTasks, json!({"contextId": asked["contextId"]})).await;
        assert_eq!(page["tasks"][0]["id"], asked["id"], "{pair}");
    }
}

#[tokio::test]
async fn what_one_has_begun_the_other_follows_and_cancels() {
    let server = Server::start(Store::Sqlite).await;
    for (mut one, mut other) in pairs(&server) {
        let pair = format!("{} then {}", says(&one), says(&other));
        let begin = Call::new(Operation::SendStreamingMessage, say_v1("slow 60"));
        let mut own = one.follow(&begin).await;
        let first = own.event().await;
        let id = id_of(&first.data);
        let mut stream = other.follow(&Call::new(Operation::SubscribeToTask, json!({"id": id}))).await;
        assert_eq!(id_of(&stream.event().await.data), id, "{pair}");
        let canceled = other.ask(Operation::CancelTask, json!({"id": id})).await;
        assert_eq!(state_of(&canceled), "CANCELED", "{pair}");
        for events in [own.rest().await, stream.rest().await] {
            assert_eq!(state_of(&events.last().unwrap().data), "CANCELED", "{pair}");
        }
    }
}

#[tokio::test]
async fn what_v0_3_cannot_say_stays_in_the_store() {
    let server = Server::start(Store::Sqlite).await;
    let mut new = Client::new(Binding::JsonRpc, server.addr());
    let parts = json!([
        {"text": "echo", "mediaType": "text/markdown", "filename": "a.md"},
        {"data": [1, "2", null]},
        {"data": null},
    ]);
    let send = json!({"message": longhaul_tests::task::message(parts.clone())});
    let task = new.ask(Operation::SendMessage, send).await["task"].clone();
    for binding in Binding::ALL {
        let mut old = Client::speaking(Speech::V0_3, binding, server.addr());
        let told = old.ask(Operation::GetTask, json!({"id": task["id"]})).await;
        let kept = json!([{"text": "echo"}, parts[1], parts[2]]);
        assert_eq!(told["history"][0]["parts"], kept, "{binding:?}");
    }
    let read = new.ask(Operation::GetTask, json!({"id": task["id"]})).await;
    assert_eq!(read["history"][0]["parts"], parts);
    assert_eq!(read, Value::clone(&task));
}
