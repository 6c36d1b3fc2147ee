//! `card get` (§10.1).

use longhaul_protocol::wire::AgentCard;
use longhaul_tests::hostile::{CARD_PATH, CardFault, Script, card, task};
use longhaul_tests::{Hostile, Server, Store};
use serde_json::{Value, json};

use crate::agents::{self, bearer, names, require_scheme, with_card, with_task};
use crate::cli::Cli;

/// The card as the server has it.
async fn served(server: &Server) -> Value {
    longhaul_tests::steps::get(server.addr(), CARD_PATH).await.json()
}

#[tokio::test]
async fn a2acli_card_get_001_resolves_a_host_an_origin_a_url_and_a_file() {
    let server = Server::start(Store::Memory).await;
    let (cli, addr, card) = (Cli::new(), server.addr(), served(&server).await);
    let file = cli.file("cards/a card.json", card.to_string());
    let references = [
        addr.to_string(),
        format!("http://{addr}"),
        format!("http://{addr}/"),
        format!("http://{addr}{CARD_PATH}"),
        file.display().to_string(),
        "cards/a card.json".to_owned(),
        "./cards/a card.json".to_owned(),
        format!("file://{}", file.display().to_string().replace(' ', "%20")),
    ];
    for reference in &references {
        let done = cli.run(&["card", "get", "-a", reference, "-o", "json"]).await;
        assert_eq!(done.exits(0).json(), card, "{reference}");
        // As it came, v0.3's members too, which are no members of v1.0.
        let _: AgentCard = longhaul_protocol::from_json(done.stdout.as_bytes()).unwrap();
        let done = cli.run(&["send", "--agent-card", reference, "echo by its card"]).await;
        assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_COMPLETED", "{reference}");
    }
}

#[tokio::test]
async fn a2acli_card_get_001_uses_a_full_url_as_it_is() {
    let elsewhere = "/cards/the-one.json?of=me";
    let agent = Hostile::start(move |asked| match asked.target.as_str() {
        target if target == elsewhere => Script::json(200, &card(&asked.base())),
        _ => Script::whole(404, &[], ""),
    })
    .await;
    let reference = format!("{}{elsewhere}", agent.url());
    Cli::new().run(&["card", "get", "-a", &reference]).await.exits(0);
    assert!(agent.asked().iter().all(|asked| asked.target == elsewhere));
}

#[tokio::test]
async fn a2acli_card_get_001_presents_all_that_a_caller_decides_by() {
    let agent = with_card(|card, _| {
        require_scheme(card, "the-scheme", bearer());
        card["capabilities"] = json!({"streaming": true, "pushNotifications": false, "extendedAgentCard": true});
        card["skills"][0]["name"] = "Of all trades".into();
    })
    .await;
    let done = Cli::of(&agent.url()).run(&["card", "get"]).await;
    let text = done.exits(0).text();
    assert!(text.all("Name").contains(&"Hostile"), "{}", done.told());
    let shown = |words: &[&str]| done.stdout.lines().any(|line| words.iter().all(|word| line.contains(word)));
    for words in [
        &["Streaming", "yes"][..],
        &["Push notifications", "no"],
        &["Extended", "yes"],
        &["JSONRPC", "1.0", &agent.url()],
        &["HTTP+JSON", "1.0", &agent.url()],
        &["the-scheme", "Bearer"],
        &["script", "Of all trades"],
    ] {
        assert!(shown(words), "{words:?}\n{}", done.told());
    }
}

#[tokio::test]
async fn a2acli_card_get_001_says_what_is_wrong_with_a_reference() {
    let cli = Cli::new();
    cli.file("broken.json", "{\"name\": ");
    let missing = Hostile::start(|_| Script::whole(404, &[], "")).await;
    let nobody = longhaul_tests::server::free_addr().to_string();
    for (reference, exit, code) in [
        (missing.url().as_str(), 3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        ("no/such/card.json", 3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        ("broken.json", 1, "A2ACLI_ERR_CARD_INVALID"),
        (nobody.as_str(), 3, "A2ACLI_ERR_UNREACHABLE"),
        ("http://no-such-name.invalid", 3, "A2ACLI_ERR_UNREACHABLE"),
    ] {
        for command in [&["card", "get"][..], &["send", "hello"]] {
            let done = cli.run(&[command, &["-a", reference, "-o", "json"]].concat()).await;
            done.fails(exit, code);
        }
    }
}

#[tokio::test]
async fn a2acli_card_get_002_validates_a_card_against_the_schema() {
    let server = Server::start(Store::Memory).await;
    let good = Cli::of(&format!("http://{}", server.addr()));
    good.run(&["card", "get", "--validate"]).await.exits(0);
    let done = good.run(&["card", "get", "--validate", "-o", "json"]).await;
    assert_eq!(done.exits(0).json(), served(&server).await);

    for (member, value) in [
        ("name", Value::Null),
        ("skills", json!([])),
        ("supportedInterfaces", json!([])),
        ("version", json!(1)),
        ("defaultInputModes", json!("text/plain")),
    ] {
        let cli = Cli::new();
        let mut wrong = card("http://127.0.0.1:1");
        wrong[member] = value;
        cli.file("wrong.json", wrong.to_string());
        let done = cli.run(&["card", "get", "--validate", "-a", "wrong.json", "-o", "json"]).await;
        done.fails(1, "A2ACLI_ERR_CARD_INVALID");
        assert!(done.all().contains(member), "{member}\n{}", done.told());
        cli.run(&["card", "get", "--validate", "-a", "wrong.json"]).await.exits(1);
    }
}

#[tokio::test]
async fn a2acli_card_get_002_no_faulty_card_is_valid() {
    for fault in CardFault::ALL.iter().copied() {
        // A card may offer what this client does not know.
        if matches!(fault, CardFault::UnknownBinding | CardFault::UnknownVersion) {
            continue;
        }
        let agent = Hostile::start(move |asked| fault.script(asked)).await;
        let done = Cli::of(&agent.url()).run(&["card", "get", "--validate", "-o", "json", "--timeout", "5s"]).await;
        assert_ne!(done.code, 0, "{fault:?}\n{}", done.told());
        done.error();
    }
}

#[tokio::test]
async fn a2acli_card_get_003_extended_card_is_fetched_by_an_advertised_scheme() {
    for binding in ["jsonrpc", "http+json"] {
        let tokens = |card: &mut Value, _: &str| require_scheme(card, "tokens", bearer());
        let agent = Hostile::agent_with(tokens, move |asked| {
            if asked.header("authorization") != Some("Bearer s3cret") {
                return Script::whole(401, &[("WWW-Authenticate", "Bearer")], "");
            }
            let mut card = card(&asked.base());
            tokens(&mut card, "");
            card["name"] = "Extended".into();
            longhaul_tests::hostile::reply(asked, &card)
        })
        .await;
        let cli = Cli::of(&agent.url()).with("A2ACLI_TRANSPORT", binding);
        let done = cli.run(&["card", "get", "--extended", "-o", "json", "--bearer", "s3cret"]).await;
        assert_eq!(done.exits(0).json()["name"], "Extended", "{binding}");
        assert_eq!(names(&agent), ["GetExtendedAgentCard"]);
        let done = cli.run(&["card", "get", "--extended", "-o", "json", "--bearer", "another"]).await;
        done.fails(4, "A2ACLI_ERR_AUTH_FAILED");
        cli.run(&["card", "get", "--extended", "-o", "json"]).await.fails(4, "A2ACLI_ERR_CREDENTIALS_MISSING");
    }
}

#[tokio::test]
async fn a2acli_card_get_003_without_the_capability_nothing_is_asked() {
    let agent = with_card(|card, _| card["capabilities"]["extendedAgentCard"] = json!(false)).await;
    let done = Cli::of(&agent.url()).run(&["card", "get", "--extended", "-o", "json"]).await;
    assert_eq!(done.code, 1, "{}", done.told());
    let code = done.error()["code"].as_str().unwrap().to_owned();
    assert!(["UnsupportedOperationError", "ExtendedAgentCardNotConfiguredError"].contains(&code.as_str()), "{code}");
    assert_eq!(names(&agent), [""; 0]);
}

#[tokio::test]
async fn a2acli_auth_008_no_card_endpoint_gets_a_credential_that_it_did_not_ask_for() {
    let key = agents::api_key("header", "X-Key");
    // What the card declares, and whether the bearer token may go to the extended card.
    for (scheme, allowed) in [(None, false), (Some(key), false), (Some(bearer()), true)] {
        let declared = scheme.clone();
        let agent = with_card(move |card, _| {
            if let Some(scheme) = &declared {
                require_scheme(card, "only", scheme.clone());
            }
        })
        .await;
        let cli = Cli::of(&agent.url()).with("A2ACLI_BEARER", "s3cret");
        cli.run(&["card", "get"]).await.exits(0);
        cli.run(&["card", "get", "--extended"]).await;
        let (mut cards, mut extended) = (0, 0);
        for asked in agent.asked() {
            let holds = String::from_utf8_lossy(&asked.bytes).contains("s3cret");
            if asked.path() == CARD_PATH {
                assert!(!holds, "{scheme:?}: the public card needs no credential");
                cards += 1;
            } else {
                assert!(allowed || !holds, "{scheme:?}: {asked:?}");
                extended += usize::from(holds);
            }
        }
        assert!(cards >= 2 && (extended > 0) == allowed, "{scheme:?}: {cards} {extended}");
    }
}

#[tokio::test]
async fn a2acli_card_get_001_the_card_is_the_way_to_the_agent() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await;
    Cli::of(&agent.url()).run(&["send", "hello"]).await.exits(0);
    assert_eq!(agent.asked()[0].path(), CARD_PATH);
    assert!(agent.asked().iter().skip(1).all(longhaul_tests::hostile::is_rpc));
}
