//! What waits for a person, and goes on by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_client::Client;
use longhaul_client::ledger::{Finding, LedgerError, RecoverOptions, ResumeOptions, StateKind};
use longhaul_tests::{FaultProxy, LinkFault, Server, Store, within};

use crate::support::{Kept, RECOVERY_MAX, Repetition, card_via, rests, say, tasks, with_message};

#[tokio::test]
async fn a_question_outlives_its_caller_and_its_agent_and_is_answered() {
    let (mut server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let finding = kept.rest(&card, "input").await;
    let Finding::Question(asked) = finding else { panic!("{finding:?}") };
    server.kill().await;
    server.run().await;
    for _ in 0..2 {
        let found = kept.recover(RecoverOptions::default()).await;
        let [Finding::Question(entry)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((entry.id, entry.state.text()), (asked.id, "what else?"));
        assert!(entry.claimed.is_none() || kept.entry(entry.id).await.claimed.is_none());
    }
    let client = Client::connect(&card).await.unwrap();
    let followed = kept.ledger.answer(asked.id, &client, say("echo the rest"), ResumeOptions::default()).await.unwrap();
    let finding = within(RECOVERY_MAX, "it goes on", followed.rest()).await.unwrap();
    let Finding::Settled(entry) = finding else { panic!("{finding:?}") };
    assert_eq!((entry.id, entry.state.kind()), (asked.id, StateKind::Completed));
    assert_eq!(tasks(&card).await.len(), 1);
    let again = kept.ledger.answer(asked.id, &client, say("more"), ResumeOptions::default()).await;
    assert!(matches!(again, Err(LedgerError::NotAllowed { .. })), "{again:?}");
}

#[tokio::test]
async fn a_lost_answer_to_a_reply_is_found_in_the_task() {
    for repetition in [Repetition::Told, Repetition::NotTold] {
        let (server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
        let replies = Arc::new(AtomicUsize::new(0));
        let counted = replies.clone();
        let proxy = FaultProxy::before(server.addr(), move |asked| {
            let is_reply = asked.json()["params"]["message"]["taskId"].is_string();
            if is_reply && counted.fetch_add(1, Ordering::AcqRel) == 0 {
                LinkFault::LostAnswer
            } else {
                LinkFault::None
            }
        })
        .await;
        let card = card_via(kept.folder.path(), server.addr(), proxy.addr(), repetition).await;
        let Finding::Question(asked) = kept.rest(&card, "input").await else { panic!("a question") };
        let client = Client::connect(&card).await.unwrap();
        let answering = kept.ledger.answer(asked.id, &client, say("echo the rest"), ResumeOptions::default()).await;
        let finding = within(RECOVERY_MAX, "it goes on", answering.unwrap().rest()).await.unwrap();
        let Finding::Settled(entry) = finding else { panic!("{repetition:?}: {finding:?}") };
        assert_eq!(entry.state.kind(), StateKind::Completed, "{repetition:?}");
        let wanted = if repetition == Repetition::Told { 2 } else { 1 };
        assert_eq!((proxy.faults(), replies.load(Ordering::Acquire)), (1, wanted), "{repetition:?}");
        let tasks = tasks(&card).await;
        assert_eq!((tasks.len(), with_message(&tasks, &entry.message_id)), (1, 1), "{repetition:?}");
    }
}

#[tokio::test]
async fn each_way_to_stand_is_found_as_itself() {
    let (server, kept) = (Server::start(Store::Memory).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    for (text, wanted) in [
        ("echo it", StateKind::Completed),
        ("fail", StateKind::Failed),
        ("reject", StateKind::Rejected),
        ("msg", StateKind::Answered),
        ("auth", StateKind::Authorization),
        ("input", StateKind::Question),
    ] {
        let finding = kept.rest(&card, text).await;
        let entry = finding.entry().unwrap();
        assert_eq!(entry.state.kind(), wanted, "{text}");
        assert!(kept.ledger.outcome(entry.id).await.unwrap().is_some(), "{text}");
        let entry = kept.entry(entry.id).await;
        assert!(entry.claimed.is_none(), "{text}: {entry:?}");
    }
    let mut refused = say("");
    refused.message.as_mut().unwrap().parts.clear();
    let client = Client::connect(&card).await.unwrap();
    let delegation = longhaul_client::ledger::Delegation::new(&card, refused);
    let finding = kept.ledger.delegate(&client, delegation).await.unwrap().rest().await.unwrap();
    assert!(matches!(&finding, Finding::Refused { entry, .. } if entry.state.is_settled()), "{finding:?}");
}

#[tokio::test]
async fn a_lost_task_is_looked_for_once_more_when_a_person_asks() {
    let (mut server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
    let card = format!("http://{}", server.addr());
    let Finding::Question(asked) = kept.rest(&card, "input").await else { panic!("a question") };
    server.launch_mut().store = Store::Memory;
    server.kill().await;
    server.run().await;
    assert_eq!(rests(&kept.recover(RecoverOptions::default()).await), [StateKind::Lost]);
    server.launch_mut().store = Store::Sqlite;
    server.kill().await;
    server.run().await;
    let client = Client::connect(&card).await.unwrap();
    let followed = kept.ledger.resume(asked.id, &client, ResumeOptions::default()).await.unwrap();
    let finding = within(RECOVERY_MAX, "it is looked for", followed.rest()).await.unwrap();
    assert!(matches!(&finding, Finding::Question(entry) if entry.id == asked.id), "{finding:?}");
}
