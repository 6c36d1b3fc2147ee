//! Which version of the protocol is spoken, and what is asked of the card first (§13.2, §13.3).

use longhaul_tests::hostile::{Script, TASK_ID, rpc_error};
use longhaul_tests::{Hostile, Server, Store};
use serde_json::json;

use crate::agents::{bearer, interface, names, operations, require_scheme, with_card};
use crate::cli::Cli;

/// An agent that offers these versions over JSON-RPC.
async fn speaking(versions: &'static [&'static str]) -> Hostile {
    with_card(move |card, url| {
        let all = versions.iter().map(|version| interface(url, "JSONRPC", version));
        card["supportedInterfaces"] = all.collect();
    })
    .await
}

fn signaled(agent: &Hostile) -> Vec<String> {
    let version = |header: Option<&str>| header.unwrap_or("(none)").to_owned();
    operations(agent).iter().map(|asked| version(asked.header("a2a-version"))).collect()
}

#[tokio::test]
async fn a2acli_ver_001_every_request_says_its_version() {
    let agent = with_card(|card, _| require_scheme(card, "tokens", bearer())).await;
    let cli = Cli::of(&agent.url()).with("A2ACLI_BEARER", "t0ken");
    for binding in ["jsonrpc", "http+json"] {
        for args in [
            &["send", "hello"][..],
            &["send", "hello", "--stream"],
            &["task", "get", TASK_ID],
            &["task", "cancel", TASK_ID],
            &["task", "list"],
            &["task", "subscribe", TASK_ID],
            &["card", "get", "--extended"],
            &["task", "push-config", "list", TASK_ID],
        ] {
            let before = operations(&agent).len();
            cli.run(&[args, &["--transport", binding]].concat()).await;
            assert!(operations(&agent).len() > before, "{args:?}");
        }
    }
    assert!(signaled(&agent).iter().all(|version| version == "1.0"), "{:?}", signaled(&agent));
}

#[tokio::test]
async fn a2acli_ver_001_the_highest_version_of_both_is_spoken_and_never_one_below_1_0() {
    for versions in [&["0.3", "1.0"][..], &["1.0", "0.3"], &["9.0", "1.0"], &["1.0", "9.0"]] {
        let agent = speaking(versions).await;
        Cli::of(&agent.url()).run(&["send", "hello"]).await.exits(0);
        assert!(!signaled(&agent).is_empty() && signaled(&agent).iter().all(|said| said == "1.0"), "{versions:?}");
    }
    for versions in [&["0.3"][..], &["9.0"], &["0.2", "0.3"]] {
        let agent = speaking(versions).await;
        let done = Cli::of(&agent.url()).run(&["send", "hello", "-o", "json"]).await;
        let error = done.exits(1).error();
        assert!(error["message"].as_str().is_some_and(|message| message.contains(versions[0])), "{error}");
        assert_eq!(signaled(&agent), [""; 0], "nothing is spoken that is not asked for");
    }
}

#[tokio::test]
async fn a2acli_ver_001_the_caller_may_say_which() {
    let agent = with_card(|_, _| {}).await;
    Cli::of(&agent.url()).run(&["send", "hello", "--a2a-version", "1.0"]).await.exits(0);
    Cli::of(&agent.url()).with("A2ACLI_A2A_VERSION", "1.0").run(&["send", "hello"]).await.exits(0);
    let before = signaled(&agent);
    assert!(before.len() >= 2 && before.iter().all(|said| said == "1.0"), "{before:?}");
    for wrong in ["one", "1.0.0.0"] {
        let done = Cli::of(&agent.url()).run(&["send", "hello", "--a2a-version", wrong, "-o", "json"]).await;
        done.fails(2, "A2ACLI_ERR_USAGE");
    }
    // What the agent does not speak is not silently replaced.
    let done = Cli::of(&agent.url()).run(&["send", "hello", "--a2a-version", "1.7", "-o", "json"]).await;
    assert_ne!(done.code, 0, "{}", done.told());
    assert!(signaled(&agent)[before.len()..].iter().all(|version| version == "1.7"), "{:?}", signaled(&agent));
}

#[tokio::test]
async fn a2acli_ver_001_a_refused_version_is_said_and_not_worked_around() {
    let agent = Hostile::agent(|asked| Script::json(200, &rpc_error(asked, -32009, "only 1.7 is spoken here"))).await;
    let done = Cli::of(&agent.url()).run(&["send", "hello", "-o", "json"]).await;
    let error = done.fails(1, "VersionNotSupportedError");
    assert_eq!((error["message"].as_str(), signaled(&agent).len()), (Some("only 1.7 is spoken here"), 1));
}

#[tokio::test]
async fn a2acli_ver_002_required_extensions_are_declared_when_they_are_supported() {
    let extension = |uri: &str, required: bool| json!({"uri": uri, "required": required});
    let ours = "urn:longhaul:ext:idempotent-send:v1";
    let agent = with_card(move |card, _| {
        card["capabilities"]["extensions"] = json!([extension(ours, true), extension("urn:example:optional", false)]);
    })
    .await;
    let cli = Cli::of(&agent.url());
    for binding in ["jsonrpc", "http+json"] {
        cli.run(&["send", "hello", "--transport", binding]).await.exits(0);
        let asked = operations(&agent).pop().unwrap();
        let declared = asked.header("a2a-extensions").unwrap_or_default();
        assert!(declared.split(',').any(|uri| uri.trim() == ours), "{binding}: {declared:?}");
        assert!(!declared.contains("urn:example:optional"), "{declared}");
    }
}

#[tokio::test]
async fn a2acli_ver_002_an_extension_that_is_not_supported_is_not_pretended() {
    let agent = with_card(|card, _| {
        card["capabilities"]["extensions"] = json!([{"uri": "urn:example:telepathy", "required": true}]);
    })
    .await;
    let done = Cli::of(&agent.url()).run(&["send", "hello", "-o", "json"]).await;
    for asked in operations(&agent) {
        assert!(!asked.header("a2a-extensions").unwrap_or_default().contains("telepathy"), "{}", done.told());
    }
    let refusing = Hostile::agent(|asked| Script::json(200, &rpc_error(asked, -32008, "telepathy is required"))).await;
    let done = Cli::of(&refusing.url()).run(&["send", "hello", "-o", "json"]).await;
    done.fails(1, "ExtensionSupportRequiredError");
}

#[tokio::test]
async fn a2acli_ver_003_what_the_card_does_not_offer_is_not_asked_for() {
    let agent = with_card(|card, _| {
        card["capabilities"] = json!({"streaming": false, "pushNotifications": false, "extendedAgentCard": false});
    })
    .await;
    let cli = Cli::of(&agent.url());
    let done = cli.run(&["task", "push-config", "list", TASK_ID, "-o", "json"]).await;
    done.fails(1, "PushNotificationNotSupportedError");
    let create = ["task", "push-config", "create", TASK_ID, "https://hooks.example.com/", "-o", "json"];
    cli.run(&create).await.fails(1, "PushNotificationNotSupportedError");
    let done = cli.run(&["card", "get", "--extended", "-o", "json"]).await;
    assert!(done.exits(1).error()["hint"].is_string());
    assert_eq!(names(&agent), [""; 0], "no request was made for it");
    cli.run(&["send", "hello", "--stream", "--timeout", "20s"]).await;
    cli.run(&["task", "subscribe", TASK_ID, "--timeout", "20s"]).await;
    for name in names(&agent) {
        assert!(!["SendStreamingMessage", "SubscribeToTask"].contains(&name.as_str()), "{:?}", names(&agent));
    }
}

#[tokio::test]
async fn a2acli_ver_001_grpc_says_its_version_too() {
    // A server that takes an absent version for 0.3 refuses it, so an answer shows that it was said.
    let server = Server::start(Store::Memory).await;
    let cli = Cli::of(&format!("http://{}", server.addr())).with("A2ACLI_TRANSPORT", "grpc");
    let done = cli.run(&["send", "hello", "--debug"]).await;
    assert!(done.exits(0).stderr.to_lowercase().contains("a2a-version"), "{}", done.told());
    let mut client = longhaul_tests::Client::new(longhaul_tests::Binding::Grpc, server.addr());
    let call = longhaul_tests::Call::new(longhaul_tests::Operation::GetTask, json!({"id": "x"})).version(None);
    client.refused(&call, "VERSION_NOT_SUPPORTED").await;
}
