//! `chat`, where nobody is at a terminal (§8.1, §11.2).

use longhaul_tests::hostile::{CONTEXT_ID, TASK_ID, task};
use longhaul_tests::{Hostile, Server, Store};
use serde_json::Value;

use crate::agents::{params, sent, with_task};
use crate::cli::{Cli, demo};

#[tokio::test]
async fn a2acli_chat_001_context_is_carried_and_the_task_only_while_it_waits() {
    let agent = Hostile::agent(|asked| {
        let text = params(asked)["message"]["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
        let state = if text == "ask me" { "TASK_STATE_INPUT_REQUIRED" } else { "TASK_STATE_COMPLETED" };
        with_task(asked, &task(state))
    })
    .await;
    let done = Cli::of(&agent.url()).run_with(&["chat"], b"hello\nask me\nthe answer\nbye\n").await;
    done.exits(0);
    let turns = sent(&agent);
    let texts: Vec<&Value> = turns.iter().map(|turn| &turn["parts"][0]["text"]).collect();
    assert_eq!(texts, ["hello", "ask me", "the answer", "bye"], "{}", done.told());
    let contexts: Vec<&Value> = turns.iter().map(|turn| &turn["contextId"]).collect();
    assert_eq!(contexts, [&Value::Null, &CONTEXT_ID.into(), &CONTEXT_ID.into(), &CONTEXT_ID.into()]);
    let tasks: Vec<&Value> = turns.iter().map(|turn| &turn["taskId"]).collect();
    assert_eq!(tasks, [&Value::Null, &Value::Null, &TASK_ID.into(), &Value::Null]);
}

#[tokio::test]
async fn a2acli_chat_001_degrades_to_text_and_ends_with_its_input() {
    let (_server, cli) = demo().await;
    let done = cli.run_with(&["chat"], b"echo one\ninput\nblue\n").await;
    let text = done.exits(0).text();
    let contexts = text.all("Context");
    assert!(contexts.len() >= 3 && contexts.iter().all(|context| *context == contexts[0]), "{}", done.told());
    assert!(text.all("State").contains(&"TASK_STATE_INPUT_REQUIRED"), "{}", done.told());
    assert_eq!(text.field("State"), "TASK_STATE_COMPLETED");
    assert!(text.blocks().iter().any(|block| block == "blue"), "{}", done.told());
    // With nothing to say it ends at once.
    cli.run(&["chat"]).await.exits(0);
    assert!(cli.files().is_empty(), "nothing is kept");
}

#[tokio::test]
async fn a2acli_chat_001_each_line_is_a_turn_of_its_own_as_it_comes() {
    let server = Server::start(Store::Memory).await;
    let mut chat = Cli::of(&format!("http://{}", server.addr())).start(&["chat"]);
    for word in ["first", "second"] {
        chat.say(&format!("echo {word}\n")).await;
        chat.until(word).await;
    }
    chat.end().await.exits(0);
}
