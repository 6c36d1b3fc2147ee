//! What goes over the wire by v0.3, to the letter, and what is made of answers that no SDK gives.

use longhaul_client::card::Binding;
use longhaul_client::{Client, ClientError, Outcome};
use longhaul_protocol::{ErrorCode, wire};
use longhaul_tests::Hostile;
use longhaul_tests::hostile::{Asked, REST_PATH, RPC_PATH, Script, TASK_ID, is_rpc, reply};
use serde_json::{Value, json};

use crate::client_support::{get, say};
use crate::old;

/// An agent behind a card of v0.3, and clients of it over both bindings of HTTP.
async fn agent(answer: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> (Hostile, [Client; 2]) {
    let hostile = Hostile::agent_with(|new, url| *new = card(url), answer).await;
    let connect = async |binding| old(binding).connect(&hostile.card_url()).await.unwrap();
    let clients = [connect(Binding::JsonRpc).await, connect(Binding::HttpJson).await];
    (hostile, clients)
}

fn card(base: &str) -> Value {
    json!({
        "protocolVersion": "0.3.0", "name": "Old", "description": "Answers by script", "version": "1.0.0",
        "url": format!("{base}{RPC_PATH}"), "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": format!("{base}{REST_PATH}"), "transport": "HTTP+JSON"}],
        "capabilities": {"streaming": true, "pushNotifications": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    })
}

/// A task in this state, by its name in each of the two dialects.
fn task(asked: &Asked, rpc: &str, rest: &str) -> Value {
    match is_rpc(asked) {
        true => json!({"kind": "task", "id": TASK_ID, "contextId": "c", "status": {"state": rpc}}),
        false => json!({"id": TASK_ID, "contextId": "c", "status": {"state": rest}}),
    }
}

#[tokio::test]
async fn send_says_how_to_answer_and_which_version_and_extensions_it_speaks() {
    let (hostile, clients) = agent(|asked| {
        let task = task(asked, "working", "TASK_STATE_WORKING");
        reply(asked, &if is_rpc(asked) { task } else { json!({"task": task}) })
    })
    .await;
    for client in clients {
        for waits in [true, false] {
            let mut request = say("hello");
            request.configuration.get_or_insert_default().return_immediately = !waits;
            let sent = client.send_message(request).await.unwrap();
            assert!(matches!(sent.payload, Some(wire::SendMessageResponsePayload::Task(_))), "{sent:?}");
            let asked = hostile.asked().pop().unwrap();
            assert_eq!(asked.header("a2a-version"), Some("0.3"));
            assert!(asked.header("x-a2a-extensions").is_some() && asked.header("a2a-extensions").is_none());
            assert_eq!(asked.header("content-type"), Some("application/json"));
            let body = asked.json();
            if is_rpc(&asked) {
                assert_eq!(
                    (asked.rpc_method().as_str(), &body["params"]["configuration"]["blocking"]),
                    ("message/send", &json!(waits))
                );
                let message = &body["params"]["message"];
                assert_eq!((&message["kind"], &message["role"]), (&json!("message"), &json!("user")));
                assert_eq!(message["parts"], json!([{"kind": "text", "text": "hello"}]));
            } else {
                assert_eq!(asked.path(), format!("{REST_PATH}/v1/message:send"));
                // `false` is left out in ProtoJSON.
                assert_eq!(body["configuration"]["blocking"].as_bool().unwrap_or(false), waits, "{body}");
                assert_eq!(
                    (&body["message"]["role"], &body["message"]["content"]),
                    (&json!("ROLE_USER"), &json!([{"text": "hello"}]))
                );
            }
        }
    }
}

#[tokio::test]
async fn state_that_the_agent_does_not_know_is_no_end() {
    let (_hostile, clients) = agent(|asked| reply(asked, &task(asked, "unknown", "TASK_STATE_UNSPECIFIED"))).await;
    for client in clients {
        let outcome = client.outcome(TASK_ID).await.unwrap();
        assert!(matches!(outcome, Outcome::Unknown(_)), "{}: {outcome:?}", client.binding());
    }
}

#[tokio::test]
async fn answer_about_another_task_is_none() {
    let (_hostile, clients) = agent(|asked| reply(asked, &task(asked, "working", "TASK_STATE_WORKING"))).await;
    for client in clients {
        let got = client.get_task(get("another")).await;
        assert!(matches!(got, Err(ClientError::InvalidAnswer { .. })), "{}: {got:?}", client.binding());
    }
}

#[tokio::test]
async fn body_with_a_message_alone_is_an_error_of_http_json_and_none_of_json_rpc() {
    let (_hostile, clients) = agent(|_| Script::json(404, &json!({"message": "Task not found"}))).await;
    let [rpc, rest] = clients;
    let got = rpc.get_task(get(TASK_ID)).await;
    assert!(matches!(got, Err(ClientError::Http { status: 404, .. })), "{got:?}");
    let got = rest.get_task(get(TASK_ID)).await.unwrap_err();
    assert_eq!(got.code(), Some(ErrorCode::TaskNotFound), "{got:?}");
}
