//! Agents that say what nobody knows, hide what they have, or forget what has ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_client::Client;
use longhaul_client::ledger::{Delegation, Finding, LedgerError, RecoverOptions, StateKind, Update};
use longhaul_tests::hostile::{self, Script, Step, reply, task};
use longhaul_tests::{Hostile, Server, Store, within};
use serde_json::{Value, json};

use crate::support::{ByCard, Kept, RECOVERY_MAX, say};

/// An agent that does not stream.
async fn polled(answer: impl Fn(&hostile::Asked) -> Script + Send + Sync + 'static) -> Hostile {
    Hostile::agent_with(|card, _| card["capabilities"]["streaming"] = json!(false), answer).await
}

#[tokio::test]
async fn a_state_that_nobody_knows_is_asked_again_and_then_told_to_a_person() {
    let asked_for = Arc::new(AtomicUsize::new(0));
    let counted = asked_for.clone();
    let agent = polled(move |asked| match asked.rpc_method().as_str() {
        "SendMessage" => reply(asked, &json!({"task": task("TASK_STATE_PONDERING")})),
        _ => match counted.fetch_add(1, Ordering::AcqRel) {
            0..12 => reply(asked, &task("TASK_STATE_PONDERING")),
            _ => reply(asked, &task("TASK_STATE_COMPLETED")),
        },
    })
    .await;
    let kept = Kept::new().await;
    let client = Client::connect(&agent.card_url()).await.unwrap();
    let mut delegation = Delegation::new(&agent.card_url(), say("think"));
    delegation.follow_up.unknown_max = Duration::from_millis(400);
    delegation.follow_up.follow.poll_interval = Duration::from_millis(100);
    delegation.follow_up.follow.poll_interval_max = Duration::from_millis(200);
    let mut followed = kept.ledger.delegate(&client, delegation).await.unwrap();
    let mut alarms = Vec::new();
    while let Some(update) = within(RECOVERY_MAX, "it goes on", followed.next()).await {
        if let Update::Alarm(entry) = update {
            alarms.push(entry);
        }
    }
    let finding = followed.rest().await.unwrap();
    assert!(matches!(&finding, Finding::Settled(entry) if entry.state.kind() == StateKind::Completed), "{finding:?}");
    assert_eq!(alarms.len(), 1, "once: {alarms:?}");
    assert!(alarms[0].needs_person() && alarms[0].state.kind() == StateKind::Unknown, "{alarms:?}");
}

#[tokio::test]
async fn an_agent_that_hides_its_history_leaves_a_lost_answer_uncertain() {
    let agent = polled(|asked| match asked.rpc_method().as_str() {
        "SendMessage" => Script::new().then(Step::Close),
        "ListTasks" => reply(
            asked,
            &json!({"tasks": [task("TASK_STATE_WORKING")], "nextPageToken": "", "pageSize": 50, "totalSize": 1}),
        ),
        other => panic!("{other} tells nothing here"),
    })
    .await;
    let kept = Kept::new().await;
    let finding = kept.rest(&agent.card_url(), "think").await;
    assert!(matches!(finding, Finding::Uncertain(_)), "{finding:?}");
    let sends = agent.asked().iter().filter(|asked| asked.rpc_method() == "SendMessage").count();
    let lists = agent.asked().iter().filter(|asked| asked.rpc_method() == "ListTasks").count();
    assert_eq!((sends, lists), (1, 3), "it is looked for several times, and sent once");
}

#[tokio::test]
async fn an_agent_that_lists_without_end_is_not_read_without_end() {
    let agent = polled(|asked| match asked.rpc_method().as_str() {
        "SendMessage" => Script::new().then(Step::Close),
        _ => {
            let token = format!("after {}", asked.nth);
            reply(asked, &json!({"tasks": [], "nextPageToken": token, "pageSize": 50, "totalSize": 9}))
        }
    })
    .await;
    let kept = Kept::new().await;
    let finding = kept.rest(&agent.card_url(), "think").await;
    assert!(matches!(finding, Finding::Uncertain(_)), "{finding:?}");
    let lists = agent.asked().iter().filter(|asked| asked.rpc_method() == "ListTasks").count();
    assert_eq!(lists, 3 * 20);
}

#[tokio::test]
async fn an_agent_that_lists_nothing_leaves_a_lost_answer_uncertain() {
    let agent = polled(|asked| match asked.rpc_method().as_str() {
        "SendMessage" => Script::new().then(Step::Close),
        _ => Script::json(200, &hostile::rpc_error(asked, -32601, "no such method")),
    })
    .await;
    let kept = Kept::new().await;
    let finding = kept.rest(&agent.card_url(), "think").await;
    let Finding::Uncertain(entry) = finding else { panic!("{finding:?}") };
    assert!(entry.state.text().contains("can't be listed"), "{entry:?}");
}

#[tokio::test]
async fn an_end_that_was_told_holds_where_the_agent_forgets_what_has_ended() {
    let agent = Hostile::agent(|asked| match asked.rpc_method().as_str() {
        "SendStreamingMessage" => Script::events()
            .event(&hostile::item(asked, &json!({"task": task("TASK_STATE_WORKING")})))
            .event(&hostile::item(asked, &hostile::status_update("TASK_STATE_COMPLETED")))
            .end(),
        _ => Script::json(200, &hostile::rpc_error(asked, -32001, "no such task")),
    })
    .await;
    let kept = Kept::new().await;
    let finding = kept.rest(&agent.card_url(), "think").await;
    assert!(matches!(&finding, Finding::Settled(entry) if entry.state.kind() == StateKind::Completed), "{finding:?}");
}

/// An agent that says that it tells repetitions, loses the first answer, and refuses the second attempt.
async fn refuses_the_repetition(listed: bool) -> Hostile {
    let message = Arc::new(Mutex::new(Value::Null));
    let change = |card: &mut Value, _: &str| {
        card["capabilities"]["streaming"] = json!(false);
        card["capabilities"]["extensions"] = json!([{"uri": longhaul_client::IDEMPOTENT_SEND}]);
    };
    Hostile::agent_with(change, move |asked| match asked.rpc_method().as_str() {
        "SendMessage" if message.lock().unwrap().is_null() => {
            *message.lock().unwrap() = asked.json()["params"]["message"].clone();
            Script::new().then(Step::Close)
        }
        "SendMessage" => Script::json(200, &hostile::rpc_error(asked, -32602, "other content under this id")),
        "ListTasks" => {
            let mut task = task("TASK_STATE_COMPLETED");
            task["history"] = json!([message.lock().unwrap().clone()]);
            let tasks = if listed { vec![task] } else { Vec::new() };
            reply(asked, &json!({"tasks": tasks, "nextPageToken": "", "pageSize": 50, "totalSize": tasks.len()}))
        }
        _ => reply(asked, &task("TASK_STATE_COMPLETED")),
    })
    .await
}

#[tokio::test]
async fn a_refused_repetition_does_not_undo_what_may_have_been_taken() {
    for (listed, wanted) in [(true, StateKind::Completed), (false, StateKind::Uncertain)] {
        let (agent, kept) = (refuses_the_repetition(listed).await, Kept::new().await);
        let finding = kept.rest(&agent.card_url(), "think").await;
        assert_eq!(finding.entry().unwrap().state.kind(), wanted, "{finding:?}");
    }
}

#[tokio::test]
async fn a_damaged_entry_is_named_once_and_holds_nothing_up() {
    let (server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let client = Client::connect(&card).await.unwrap();
    let (damaged, whole) = (kept.prepare(&client, &card).await, kept.prepare(&client, &card).await);
    let raw = rusqlite::Connection::open(kept.path()).unwrap();
    let sql = "UPDATE entry SET attempts = -1 WHERE message_id = ?1";
    assert_eq!(raw.execute(sql, [&damaged.entry.message_id]).unwrap(), 1);
    let mut recovery = kept.ledger.recover(Arc::new(ByCard), RecoverOptions::default());
    let (mut settled, mut corrupt) = (Vec::new(), Vec::new());
    while let Some(found) = within(RECOVERY_MAX, "it ends", recovery.next()).await {
        match found {
            Ok(Finding::Settled(entry)) => settled.push(entry.id),
            Ok(_) => {}
            Err(LedgerError::Corrupt { entry, .. }) => corrupt.push(entry),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((settled, corrupt), (vec![whole.entry.id], vec![damaged.entry.id]));
}
