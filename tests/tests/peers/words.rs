//! What the words of a message do: the same in both SDKs.

use longhaul_protocol::json::from_json;
use longhaul_protocol::wire::{Part, PartContent};
use longhaul_tests::hostile::Script;
use longhaul_tests::peers::FILE;
use longhaul_tests::task::{id_of, say, say_to, state_of};
use longhaul_tests::{Binding, Hostile, Operation, PATIENCE, Peer, Sdk, until};
use serde_json::{Value, json};

use crate::ask::call;

async fn send(peer: &Peer, params: Value) -> Value {
    call(peer, Binding::JsonRpc, Operation::SendMessage, params).await.unwrap()
}

async fn get(peer: &Peer, id: &str) -> Value {
    call(peer, Binding::JsonRpc, Operation::GetTask, json!({"id": id})).await.unwrap()
}

#[tokio::test]
async fn each_word_ends_as_it_says() {
    #[rustfmt::skip]
    let cases = [
        ("hello", "COMPLETED"), ("echo fail", "COMPLETED"), ("slow 0.01", "COMPLETED"), ("slow food", "COMPLETED"),
        ("chunks 3", "COMPLETED"), ("burst 3", "COMPLETED"), ("input", "INPUT_REQUIRED"), ("auth", "AUTH_REQUIRED"),
        ("reject", "REJECTED"), ("fail", "FAILED"), ("fail late", "FAILED"), ("data file", "COMPLETED"),
    ];
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        for (text, wanted) in cases {
            assert_eq!(state_of(&send(&peer, say(text)).await), wanted, "{sdk:?} {text}");
        }
        let direct = send(&peer, say("msg")).await;
        assert_eq!(direct["message"]["parts"][0]["text"], "a direct answer");
    }
}

/// A message to this task, in its context: the Python SDK gives a message that names none a new one, and then refuses what
/// the agent says there.
fn answer(task: &Value, text: &str) -> Value {
    let mut params = say_to(&id_of(task), text);
    params["message"]["contextId"] = task["task"]["contextId"].clone();
    params
}

#[tokio::test]
async fn answer_to_a_question_is_done_as_its_words_say() {
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        let asked = send(&peer, say("input")).await;
        assert_eq!(state_of(&send(&peer, answer(&asked, "input")).await), "INPUT_REQUIRED", "{sdk:?}");
        let done = send(&peer, answer(&asked, "here it is")).await;
        assert_eq!((state_of(&done), id_of(&done)), ("COMPLETED", id_of(&asked)), "{sdk:?}");
        assert_eq!(done["task"]["artifacts"][0]["parts"][0]["text"], "here it is", "{sdk:?}");
    }
}

#[tokio::test]
async fn authorization_comes_by_itself() {
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        let id = id_of(&send(&peer, say("auth echo x")).await);
        until(PATIENCE, "the task goes on", async || (state_of(&get(&peer, &id).await) == "COMPLETED").then_some(()))
            .await;
    }
}

#[tokio::test]
async fn artifacts_hold_all_chunks_the_data_and_the_bytes() {
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        let task = send(&peer, say("chunks 100 data file")).await["task"].clone();
        let artifact = |id: &str| {
            let artifacts = task["artifacts"].as_array().unwrap();
            let found = artifacts.iter().find(|artifact| artifact["artifactId"] == id);
            found.unwrap()["parts"].clone()
        };
        let chunks: Vec<Value> = (1..=100).map(|number| json!({"text": format!("chunk {number}\n")})).collect();
        assert_eq!(artifact("chunks"), Value::Array(chunks), "{sdk:?}");
        let data = &artifact("data")[0]["data"];
        assert_eq!((&data["nothing"], &data["list"][2]), (&Value::Null, &json!("three")), "{sdk:?}");
        let file: Part = from_json(artifact("file")[0].to_string().as_bytes()).unwrap();
        assert_eq!((file.content, file.filename.as_str()), (Some(PartContent::Raw(FILE.to_vec().into())), "bytes.bin"));
    }
}

#[tokio::test]
async fn push_notifications_reach_a_hook_on_this_machine() {
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        let hook = Hostile::start(|_| Script::whole(200, &[], "")).await;
        let mut params = say("slow 0.1");
        let config = json!({"id": "mine", "url": format!("{}/hook", hook.url()), "token": "a-token"});
        params["configuration"] = json!({"taskPushNotificationConfig": config});
        send(&peer, params).await;
        let told = until(PATIENCE, "the end is told", async || {
            hook.asked().into_iter().find(|asked| state_of(&asked.json()) == "COMPLETED")
        })
        .await;
        assert_eq!(told.header("x-a2a-notification-token"), Some("a-token"), "{sdk:?}");
    }
}
