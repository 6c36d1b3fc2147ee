//! Which interface of a card is used, and what goes with each request (§13.1).

use longhaul_tests::hostile::{Asked, REST_PATH, TASK_ID, is_rpc};
use longhaul_tests::{Hostile, Sdk, Server, Store, peers};
use serde_json::{Value, json};

use crate::agents::{bearer, interface, operations, params, require_scheme, with_card};
use crate::cli::{Cli, demo};

/// An agent with these interfaces: binding and version.
async fn offering(interfaces: &'static [(&'static str, &'static str)]) -> Hostile {
    with_card(move |card, url| {
        let all = interfaces.iter().map(|(binding, version)| interface(url, binding, version));
        card["supportedInterfaces"] = all.collect();
    })
    .await
}

fn last(agent: &Hostile) -> Asked {
    operations(agent).pop().expect("something was asked")
}

#[tokio::test]
async fn a2acli_tx_001_the_cards_order_decides() {
    let rpc_first = offering(&[("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")]).await;
    let rest_first = offering(&[("HTTP+JSON", "1.0"), ("JSONRPC", "1.0")]).await;
    for args in [&["send", "hello"][..], &["task", "get", TASK_ID], &["task", "cancel", TASK_ID], &["task", "list"]] {
        Cli::of(&rpc_first.url()).run(args).await.exits(0);
        Cli::of(&rest_first.url()).run(args).await.exits(0);
        assert!(is_rpc(&last(&rpc_first)) && last(&rest_first).path().starts_with(REST_PATH), "{args:?}");
    }
}

#[tokio::test]
async fn a2acli_tx_002_the_first_interface_that_is_known_is_used() {
    let agent =
        offering(&[("CARRIER-PIGEON", "1.0"), ("HTTP+JSON", "9.9"), ("HTTP+JSON", "1.0"), ("JSONRPC", "1.0")]).await;
    Cli::of(&agent.url()).run(&["send", "hello"]).await.exits(0);
    assert!(last(&agent).path().starts_with(REST_PATH));
    let agent = offering(&[("CARRIER-PIGEON", "1.0")]).await;
    let done = Cli::of(&agent.url()).run(&["send", "hello", "-o", "json"]).await;
    assert_eq!((done.exits(1).error()["code"].as_str().is_some(), operations(&agent).len()), (true, 0));
}

#[tokio::test]
async fn a2acli_tx_002_transport_is_repeatable_ordered_and_skips_what_the_card_lacks() {
    let agent = offering(&[("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")]).await;
    let cli = Cli::of(&agent.url());
    for (flags, rpc) in [
        (&["--transport", "http+json"][..], false),
        (&["--transport", "HTTP+JSON"], false),
        (&["--transport", "JSONRPC"], true),
        (&["--transport", "grpc", "--transport", "http+json"], false),
        (&["--transport", "http+json", "--transport", "jsonrpc"], false),
        (&["--transport", "jsonrpc", "--transport", "http+json"], true),
        // None matches: the card's order holds.
        (&["--transport", "grpc"], true),
    ] {
        cli.run(&[&["send", "hello"], flags].concat()).await.exits(0);
        assert_eq!(is_rpc(&last(&agent)), rpc, "{flags:?}");
    }
}

#[tokio::test]
async fn a2acli_tx_003_the_tenant_of_the_interface_is_in_every_request() {
    let with_tenant = |tenant: Option<&'static str>| {
        with_card(move |card, _| {
            require_scheme(card, "tokens", bearer());
            for interface in card["supportedInterfaces"].as_array_mut().unwrap() {
                if let Some(tenant) = tenant {
                    interface["tenant"] = tenant.into();
                }
            }
        })
    };
    let id = longhaul_tests::hostile::TASK_ID;
    for tenant in [Some("acme Ü/1"), None] {
        let agent = with_tenant(tenant).await;
        let cli = Cli::of(&agent.url()).with("A2ACLI_BEARER", "t0ken");
        for binding in ["jsonrpc", "http+json"] {
            for args in [
                &["send", "hello"][..],
                &["send", "hello", "--stream"],
                &["task", "get", id],
                &["task", "cancel", id],
                &["task", "list"],
                &["task", "subscribe", id],
                &["card", "get", "--extended"],
                &["task", "push-config", "list", id],
                &["task", "push-config", "get", id, "c"],
                &["task", "push-config", "delete", id, "c"],
                &["task", "push-config", "create", id, "https://hooks.example.com/"],
            ] {
                let before = operations(&agent).len();
                cli.run(&[args, &["--transport", binding]].concat()).await;
                let asked = operations(&agent);
                assert!(asked.len() > before, "{args:?} asked nothing");
                for one in &asked[before..] {
                    if binding == "jsonrpc" {
                        assert_eq!(params(one)["tenant"], tenant.map_or(Value::Null, Value::from), "{args:?}");
                        continue;
                    }
                    let prefix = if tenant.is_some() { "/rest/acme%20%C3%9C%2F1/" } else { "/rest/" };
                    assert!(one.target.starts_with(prefix), "{args:?} {}", one.target);
                    let body = params(one)["tenant"].clone();
                    assert!(body.is_null() || body == json!(tenant), "{args:?} {body}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a2acli_tx_004_each_binding_can_be_chosen_and_gives_the_same() {
    let (_server, cli) = demo().await;
    let mut shapes = Vec::new();
    for binding in ["jsonrpc", "http+json", "grpc"] {
        let done = cli.run(&["send", "echo the same", "--transport", binding, "-o", "json"]).await;
        let mut task = done.exits(0).json()["task"].clone();
        for member in ["id", "contextId", "history"] {
            task[member] = Value::Null;
        }
        task["status"]["timestamp"] = Value::Null;
        shapes.push(task);
    }
    assert!(shapes.iter().all(|shape| *shape == shapes[0]), "{shapes:#?}");
}

#[tokio::test]
async fn a2acli_tx_005_grpc_does_what_the_others_do() {
    let server = Server::start(Store::Memory).await;
    let cli = Cli::new();
    let mut card = longhaul_tests::steps::get(server.addr(), longhaul_tests::hostile::CARD_PATH).await.json();
    let interfaces = card["supportedInterfaces"].as_array_mut().unwrap();
    interfaces.retain(|interface| interface["protocolBinding"] == "GRPC" && interface["protocolVersion"] == "1.0");
    assert_eq!(interfaces.len(), 1);
    // There is no other way than gRPC.
    cli.file("grpc.json", card.to_string());
    let cli = cli.with("A2ACLI_AGENT_CARD", "./grpc.json");
    let text = cli.run(&["send", "chunks 3"]).await.exits(0).text();
    assert_eq!(text.field("State"), "TASK_STATE_COMPLETED");
    let id = text.field("Task").to_owned();
    cli.run(&["task", "get", &id, "--history", "1"]).await.exits(0);
    assert!(cli.run(&["send", "chunks 3", "--stream", "-o", "json"]).await.exits(0).json_lines().len() > 3);
    assert!(cli.run(&["task", "list"]).await.exits(0).stdout.contains(&id));
    let slow = cli.run(&["send", "slow 60", "--async"]).await.exits(0).text().field("Task").to_owned();
    assert_eq!(cli.run(&["task", "cancel", &slow]).await.exits(0).text().field("Task"), slow);
    let done = cli.run(&["task", "get", "no-such-task", "-o", "json"]).await;
    done.fails(1, "TaskNotFoundError");
    let nobody = longhaul_tests::server::free_addr();
    card["supportedInterfaces"][0]["url"] = nobody.to_string().into();
    cli.file("grpc.json", card.to_string());
    cli.run(&["send", "hello", "-o", "json"]).await.fails(3, "A2ACLI_ERR_UNREACHABLE");
}

#[tokio::test]
async fn a2acli_tx_004_and_tx_005_other_peoples_servers_answer_the_same_commands() {
    for sdk in Sdk::ALL {
        let peer = peers::Peer::start(sdk).await;
        let cli = Cli::of(&peer.card_url());
        for binding in ["jsonrpc", "http+json", "grpc"] {
            let run = async |args: &[&str]| cli.run(&[args, &["--transport", binding]].concat()).await;
            let (id, context, state) = run(&["send", "echo x"]).await.exits(0).text().standing();
            assert_eq!(state, "TASK_STATE_COMPLETED", "{sdk:?} {binding}");
            let standing = run(&["task", "get", &id]).await.exits(0).text().standing();
            assert_eq!(standing, (id, context, state));
            let done = run(&["send", "chunks 3", "--stream", "-o", "json"]).await;
            assert!(done.exits(0).json_lines().len() > 2, "{sdk:?} {binding} {}", done.told());
            let done = run(&["send", "input"]).await;
            let resumed = run(&["send", "--task-id", done.exits(0).text().field("Task"), "blue"]).await;
            assert_eq!(resumed.exits(0).text().field("State"), "TASK_STATE_COMPLETED");
            run(&["task", "get", "no-such-task", "-o", "json"]).await.fails(1, "TaskNotFoundError");
        }
    }
}
