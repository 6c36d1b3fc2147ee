//! The answer to a send is lost on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_client::ledger::{Decision, Finding, RecoverOptions, State, StateKind};
use longhaul_tests::{FaultProxy, LinkFault, Peer, Sdk, Server, Store};

use crate::support::{Kept, Repetition, card_via, from_now, rests, tasks, with_message};

/// The server behind a proxy that fails the first send, and counts the sends.
struct Behind {
    server: Server,
    kept: Kept,
    card: String,
    sends: Arc<AtomicUsize>,
    _proxy: FaultProxy,
}

impl Behind {
    async fn start(fault: LinkFault, repetition: Repetition) -> Self {
        let (server, kept) = (Server::start(Store::Sqlite).await, Kept::new().await);
        let sends = Arc::new(AtomicUsize::new(0));
        let counted = sends.clone();
        let proxy = FaultProxy::before(server.addr(), move |asked| match asked.rpc_method().as_str() {
            "SendMessage" | "SendStreamingMessage" if counted.fetch_add(1, Ordering::AcqRel) == 0 => fault,
            _ => LinkFault::None,
        })
        .await;
        let card = card_via(kept.folder.path(), server.addr(), proxy.addr(), repetition).await;
        Self { server, kept, card, sends, _proxy: proxy }
    }

    fn sends(&self) -> usize {
        self.sends.load(Ordering::Acquire)
    }

    async fn made(&self, message_id: &str) -> usize {
        with_message(&tasks(&format!("http://{}", self.server.addr())).await, message_id)
    }
}

#[tokio::test]
async fn where_repetitions_are_told_the_same_message_is_sent_again() {
    for fault in [LinkFault::LostAnswer, LinkFault::LostRequest, LinkFault::Repeated] {
        let behind = Behind::start(fault, Repetition::Told).await;
        let finding = behind.kept.rest(&behind.card, "echo it").await;
        let Finding::Settled(entry) = finding else { panic!("{fault:?}: {finding:?}") };
        assert_eq!(entry.state.kind(), StateKind::Completed, "{fault:?}");
        assert_eq!(behind.made(&entry.message_id).await, 1, "{fault:?}");
        assert_eq!(tasks(&behind.card).await.len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn elsewhere_the_task_is_found_by_its_message() {
    let behind = Behind::start(LinkFault::LostAnswer, Repetition::NotTold).await;
    let finding = behind.kept.rest(&behind.card, "echo it").await;
    let Finding::Settled(entry) = finding else { panic!("{finding:?}") };
    assert_eq!((entry.state.kind(), behind.sends()), (StateKind::Completed, 1));
    assert_eq!(behind.made(&entry.message_id).await, 1);
}

#[tokio::test]
async fn a_message_that_no_task_has_waits_for_a_person_and_is_not_sent_twice() {
    // The request was lost, or it was answered without a task: both look the same from here.
    for (fault, text) in [(LinkFault::LostRequest, "echo it"), (LinkFault::LostAnswer, "msg")] {
        let behind = Behind::start(fault, Repetition::NotTold).await;
        let kept = &behind.kept;
        let finding = kept.rest(&behind.card, text).await;
        let Finding::Uncertain(entry) = finding else { panic!("{finding:?}") };
        assert_eq!(behind.sends(), 1);
        assert!(entry.needs_person() && entry.state.text().contains(&entry.message_id), "{entry:?}");
        // It is not open: a recovery has nothing to do with it.
        assert!(kept.recover(RecoverOptions::default()).await.is_empty());
        let entry = kept.ledger.decide(entry.id, entry.version, Decision::SendAgain, from_now(0)).await.unwrap();
        let found = kept.recover(RecoverOptions::default()).await;
        let wanted = if text == "msg" { StateKind::Answered } else { StateKind::Completed };
        assert_eq!((rests(&found), behind.sends()), (vec![wanted], 2));
        assert_eq!(kept.entry(entry.id).await.message_id, entry.message_id);
    }
}

#[tokio::test]
async fn a_message_that_was_not_sent_is_sent_later_without_a_question() {
    let mut behind = Behind::start(LinkFault::None, Repetition::NotTold).await;
    behind.kept.rest(&behind.card, "echo first").await.into_settled();
    // Connections to the real port are refused from here on, and the agent can't have had the message.
    let direct =
        card_via(behind.kept.folder.path(), behind.server.addr(), behind.server.addr(), Repetition::NotTold).await;
    let client = longhaul_client::Client::connect(&direct).await.unwrap();
    behind.server.kill().await;
    let delegation = longhaul_client::ledger::Delegation::new(&direct, crate::support::say("echo second"));
    let finding = behind.kept.ledger.delegate(&client, delegation).await.unwrap().rest().await.unwrap();
    let Finding::Unreachable { entry, .. } = finding else { panic!("{finding:?}") };
    assert_eq!((entry.attempts, &entry.state), (0, &State::Prepared { task_id: None }));
    behind.server.run().await;
    let found = behind.kept.recover(RecoverOptions::default()).await;
    assert_eq!(rests(&found), [StateKind::Completed]);
    assert_eq!(behind.made(&entry.message_id).await, 1);
}

#[tokio::test]
async fn what_the_window_of_the_agent_may_have_forgotten_is_looked_for() {
    let behind = Behind::start(LinkFault::LostAnswer, Repetition::Told).await;
    let client = longhaul_client::Client::builder()
        .retry(longhaul_client::RetryPolicy::never())
        .connect(&behind.card)
        .await
        .unwrap();
    let mut delegation = longhaul_client::ledger::Delegation::new(&behind.card, crate::support::say("echo it"));
    delegation.follow_up.resend_within = std::time::Duration::ZERO;
    let finding = behind.kept.ledger.delegate(&client, delegation).await.unwrap().rest().await.unwrap();
    assert_eq!((finding.into_settled().state.kind(), behind.sends()), (StateKind::Completed, 1));
}

#[tokio::test]
async fn other_peoples_agents_show_which_task_has_the_message() {
    for sdk in Sdk::ALL {
        let kept = Kept::new().await;
        let sends = Arc::new(AtomicUsize::new(0));
        let counted = sends.clone();
        let proxy = FaultProxy::start(move |asked| match asked.rpc_method().as_str() {
            "SendMessage" | "SendStreamingMessage" if counted.fetch_add(1, Ordering::AcqRel) == 0 => {
                LinkFault::LostAnswer
            }
            _ => LinkFault::None,
        })
        .await;
        let peer = Peer::named(sdk, longhaul_tests::peers::Named { http: Some(proxy.addr()), grpc: None }).await;
        proxy.aim(peer.http());
        let card = kept.folder.path().join("card.json");
        let mut document = peer.card().clone();
        let interfaces = document["supportedInterfaces"].as_array_mut().unwrap();
        interfaces.retain(|interface| interface["protocolBinding"] == "JSONRPC");
        std::fs::write(&card, document.to_string()).unwrap();
        let card = card.to_str().unwrap();
        let entry = kept.rest(card, "slow 1 echo it").await.into_settled();
        assert_eq!((entry.state.kind(), sends.load(Ordering::Acquire)), (StateKind::Completed, 1), "{sdk:?}");
        assert_eq!(with_message(&tasks(&peer.card_url()).await, &entry.message_id), 1, "{sdk:?}");
    }
}

trait Settled {
    fn into_settled(self) -> longhaul_client::ledger::Entry;
}

impl Settled for Finding {
    fn into_settled(self) -> longhaul_client::ledger::Entry {
        match self {
            Self::Settled(entry) => entry,
            other => panic!("{other:?}"),
        }
    }
}
