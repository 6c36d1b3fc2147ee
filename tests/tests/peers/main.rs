//! Other people's servers: each does what [`longhaul_tests::peers`] says of it, asked with raw tools and by our client (`client_*`).

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod ask;
mod client_cards;
mod client_configs;
mod client_contradictions;
mod client_delegate;
mod client_healing;
mod client_links;
mod client_refusals;
mod client_streams;
mod client_support;
mod client_tasks;
mod operations;
mod words;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use ask::{call, follow};
use client_links::behind;
use longhaul_tests::http::{Connection, Request};
use longhaul_tests::{Binding, FaultProxy, LinkFault, Operation, PATIENCE, Peer, Sdk, within};
use serde_json::json;

#[tokio::test]
async fn card_names_where_each_binding_is() {
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        assert_eq!(peer.url(Binding::JsonRpc), format!("http://{}/a2a/rpc", peer.http()));
        assert_eq!(peer.url(Binding::HttpJson), format!("http://{}/a2a/rest", peer.http()));
        assert_eq!(peer.url(Binding::Grpc), peer.grpc().to_string());
        let capabilities = &peer.card()["capabilities"];
        for capability in ["streaming", "pushNotifications", "extendedAgentCard"] {
            assert_eq!(capabilities[capability], true, "{sdk:?} {capability}");
        }
    }
}

#[tokio::test]
async fn card_can_be_kept_and_asked_about() {
    for sdk in Sdk::ALL {
        let peer = Peer::start(sdk).await;
        let path = peer.card_url().split_off(peer.card_url().find("/.well").unwrap());
        let mut connection = Connection::open(peer.http()).await.unwrap();
        let first = within(PATIENCE, "a card", connection.exchange(&Request::get(&path))).await.unwrap();
        assert!(first.header("cache-control").unwrap().contains("max-age"), "{sdk:?}");
        let again = Request::get(&path).with("If-None-Match", first.header("etag").unwrap());
        let again = within(PATIENCE, "a card", connection.exchange(&again)).await.unwrap();
        assert_eq!((again.status, again.body.len()), (304, 0), "{sdk:?}");
    }
}

#[tokio::test]
async fn killed_peer_is_gone() {
    for sdk in Sdk::ALL {
        let mut peer = Peer::start(sdk).await;
        peer.kill().await;
        assert!(Connection::open(peer.http()).await.is_err(), "{sdk:?}");
        assert!(Connection::open(peer.grpc()).await.is_err(), "{sdk:?}");
    }
}

#[tokio::test]
async fn proxy_that_the_card_names_passes_all_bindings_on_or_loses_their_answers() {
    for sdk in Sdk::ALL {
        let now = Arc::new(Mutex::new(LinkFault::None));
        let (of_http, of_grpc) = (now.clone(), now.clone());
        let http = FaultProxy::start(move |_| *of_http.lock().unwrap()).await;
        let grpc = FaultProxy::start(move |_| *of_grpc.lock().unwrap()).await;
        let peer = behind(sdk, &http, &grpc).await;
        for fault in [LinkFault::None, LinkFault::SingleBytes, LinkFault::LostAnswer, LinkFault::CutAfter(60)] {
            *now.lock().unwrap() = fault;
            let before = (http.asked(), grpc.asked());
            assert!(peer.url(Binding::JsonRpc).contains(&http.addr().to_string()));
            assert_eq!(peer.url(Binding::Grpc), grpc.addr().to_string());
            for &binding in peer.bindings() {
                let answer = ask::through(&peer, addr(binding, &http, &grpc), binding, Operation::ListTasks, json!({}));
                let passes = matches!(fault, LinkFault::None | LinkFault::SingleBytes);
                let answer = answer.await;
                assert_eq!(answer.is_ok(), passes, "{sdk:?} {binding:?} {fault:?}: {answer:?}");
            }
            assert_eq!((http.asked() - before.0, grpc.asked() - before.1), (2, 1), "{sdk:?} {fault:?}");
        }
    }
}

fn addr(binding: Binding, http: &FaultProxy, grpc: &FaultProxy) -> SocketAddr {
    match binding {
        Binding::JsonRpc | Binding::HttpJson => http.addr(),
        Binding::Grpc => grpc.addr(),
    }
}

#[tokio::test]
async fn repeated_send_makes_two_tasks_at_servers_that_do_not_know_message_ids() {
    for sdk in Sdk::ALL {
        let proxy = FaultProxy::start(|asked| match asked.path().ends_with("message:send") {
            true => LinkFault::Repeated,
            false => LinkFault::None,
        })
        .await;
        let peer = behind(sdk, &proxy, &FaultProxy::start(|_| LinkFault::None).await).await;
        let sent = ask::through(
            &peer,
            proxy.addr(),
            Binding::HttpJson,
            Operation::SendMessage,
            longhaul_tests::task::say("echo twice"),
        );
        assert!(sent.await.is_ok());
        longhaul_tests::until(PATIENCE, "the repeated send", async || (proxy.repeats() == 1).then_some(())).await;
        let tasks = call(&peer, Binding::JsonRpc, Operation::ListTasks, json!({})).await.unwrap();
        assert_eq!(tasks["totalSize"], 2, "{sdk:?}");
    }
}

#[tokio::test]
async fn stream_that_is_cut_within_does_not_end_the_task() {
    for sdk in Sdk::ALL {
        let proxy = FaultProxy::start(|_| LinkFault::CutAfter(3000)).await;
        let peer = behind(sdk, &proxy, &FaultProxy::start(|_| LinkFault::None).await).await;
        let say = longhaul_tests::task::say("chunks 50");
        let items = follow(&peer, proxy.addr(), Binding::JsonRpc, Operation::SendStreamingMessage, say).await;
        let seen = items.unwrap_err();
        assert!((1..52).contains(&seen.len()), "{sdk:?}: {}", seen.len());
        let id = longhaul_tests::task::id_of(&seen[0]);
        longhaul_tests::until(PATIENCE, "the task ends", async || {
            let task = call(&peer, Binding::JsonRpc, Operation::GetTask, json!({"id": id})).await.unwrap();
            (longhaul_tests::task::state_of(&task) == "COMPLETED").then_some(())
        })
        .await;
    }
}
