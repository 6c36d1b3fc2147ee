//! Credentials that need no prompt (§12.1).

use longhaul_tests::Hostile;
use longhaul_tests::hostile::{Script, TASK_ID, operation};
use serde_json::Value;

use crate::agents::{api_key, bearer, operations, require_scheme, with_card};
use crate::cli::Cli;

async fn with_scheme(scheme: Value) -> Hostile {
    with_card(move |card, _| require_scheme(card, "the-scheme", scheme.clone())).await
}

/// All that was sent to the operations of an agent.
fn wire(agent: &Hostile) -> Vec<String> {
    operations(agent).iter().map(|asked| String::from_utf8_lossy(&asked.bytes).into_owned()).collect()
}

#[tokio::test]
async fn a2acli_auth_001_credentials_go_where_the_declared_scheme_says() {
    for binding in ["jsonrpc", "http+json"] {
        for args in [
            &["send", "hello"][..],
            &["send", "hello", "--stream"],
            &["task", "get", TASK_ID],
            &["task", "cancel", TASK_ID],
            &["task", "list"],
        ] {
            let all = [args, &["--transport", binding]].concat();
            let agent = with_scheme(bearer()).await;
            Cli::of(&agent.url()).run(&[&all[..], &["--bearer", "t0ken"]].concat()).await;
            let asked = operations(&agent);
            assert!(!asked.is_empty() && asked.iter().all(|one| one.header("authorization") == Some("Bearer t0ken")));

            let agent = with_scheme(api_key("header", "X-Agent-Key")).await;
            Cli::of(&agent.url()).run(&[&all[..], &["--api-key", "k3y"]].concat()).await;
            let asked = operations(&agent);
            assert!(!asked.is_empty() && asked.iter().all(|one| one.header("x-agent-key") == Some("k3y")));

            let agent = with_scheme(api_key("query", "agentKey")).await;
            Cli::of(&agent.url()).run(&[&all[..], &["--api-key", "k3y"]].concat()).await;
            let asked = operations(&agent);
            assert!(!asked.is_empty() && asked.iter().all(|one| one.target.contains("agentKey=k3y")));

            let agent = with_scheme(api_key("cookie", "agentKey")).await;
            Cli::of(&agent.url()).run(&[&all[..], &["--api-key", "k3y"]].concat()).await;
            let asked = operations(&agent);
            assert!(!asked.is_empty() && asked.iter().all(|one| one.header("cookie") == Some("agentKey=k3y")));
        }
    }
}

#[tokio::test]
async fn a2acli_auth_001_a_credential_for_another_scheme_stays_here() {
    let agent = with_scheme(api_key("header", "X-Agent-Key")).await;
    Cli::of(&agent.url()).run(&["send", "hello", "--bearer", "t0ken", "--api-key", "k3y"]).await.exits(0);
    let agent_of_tokens = with_scheme(bearer()).await;
    Cli::of(&agent_of_tokens.url()).run(&["send", "hello", "--bearer", "t0ken", "--api-key", "k3y"]).await.exits(0);
    assert!(wire(&agent).iter().all(|bytes| bytes.contains("k3y") && !bytes.contains("t0ken")));
    assert!(wire(&agent_of_tokens).iter().all(|bytes| bytes.contains("t0ken") && !bytes.contains("k3y")));
}

#[tokio::test]
async fn a2acli_auth_001_service_parameters_are_something_of_their_own() {
    let agent = with_scheme(bearer()).await;
    let cli = Cli::of(&agent.url());
    let params = ["--svc-param", "x-trace-id:abc123", "--svc-param", "x-other: with spaces:and colons"];
    for args in [&["send", "hello"][..], &["task", "get", TASK_ID], &["send", "hello", "--transport", "http+json"]] {
        cli.run(&[args, &params].concat()).await.exits(0);
    }
    for asked in operations(&agent) {
        assert_eq!(asked.header("x-trace-id"), Some("abc123"));
        assert_eq!(asked.header("x-other"), Some("with spaces:and colons"));
        assert!(!asked.target.contains("abc123"), "never in the query");
    }
    for wrong in ["no-colon", ":no-name", "bad name:x"] {
        let done = cli.run(&["send", "hello", "--svc-param", wrong, "-o", "json"]).await;
        done.fails(2, "A2ACLI_ERR_USAGE");
    }
    // Nowhere is it called a way to authenticate.
    let help = cli.run(&["send", "--help"]).await.exits(0).stdout.clone();
    let at = help.find("--svc-param").unwrap();
    let entry = help[at..].split("\n      --").next().unwrap().to_lowercase();
    assert!(!entry.contains("auth") && !entry.contains("credential") && !entry.contains("token"), "{entry}");
}

#[tokio::test]
async fn a2acli_auth_001_what_is_missing_is_named_with_the_way_to_give_it() {
    let agent = Hostile::agent_with(
        |card, _| require_scheme(card, "tokens", bearer()),
        |_| Script::whole(401, &[("WWW-Authenticate", "Bearer")], ""),
    )
    .await;
    let cli = Cli::of(&agent.url());
    let error = cli.run(&["send", "hello", "-o", "json"]).await.fails(4, "A2ACLI_ERR_CREDENTIALS_MISSING");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("BEARER") || hint.contains("--bearer")), "{error}");
    let done = cli.run(&["send", "hello", "-o", "json", "--bearer", "wrong"]).await;
    done.fails(4, "A2ACLI_ERR_AUTH_FAILED");
    cli.run(&["task", "get", TASK_ID]).await.exits(4);
}

#[tokio::test]
async fn a2acli_auth_002_variables_stand_in_for_flags_and_flags_win() {
    for (scheme, flag, variable, header) in [
        (bearer(), "--bearer", "A2ACLI_BEARER", "authorization"),
        (api_key("header", "X-Agent-Key"), "--api-key", "A2ACLI_API_KEY", "x-agent-key"),
    ] {
        let agent = with_scheme(scheme).await;
        let cli = Cli::of(&agent.url()).with(variable, "from-variable");
        cli.run(&["send", "hello"]).await.exits(0);
        cli.run(&["send", "hello", flag, "from-flag"]).await.exits(0);
        let sends = operations(&agent).into_iter().filter(|asked| operation(asked).starts_with("Send"));
        let values: Vec<String> = sends.map(|asked| asked.header(header).unwrap_or_default().to_owned()).collect();
        let values: Vec<&str> = values.iter().map(|value| value.trim_start_matches("Bearer ")).collect();
        assert_eq!(values, ["from-variable", "from-flag"]);
    }
}

#[tokio::test]
async fn a2acli_auth_002_help_says_who_can_see_a_flag() {
    let help = Cli::new().run(&["send", "--help"]).await.exits(0).stdout.clone();
    for (flag, variable) in [("--bearer", "A2ACLI_BEARER"), ("--api-key", "A2ACLI_API_KEY")] {
        let at = help.find(flag).unwrap_or_else(|| panic!("{flag} is not in {help}"));
        let entry = help[at..].split("\n      --").next().unwrap().to_lowercase();
        for word in ["process", "shell", &variable.to_lowercase()] {
            assert!(entry.contains(word), "{flag} says nothing of {word}: {entry}");
        }
    }
}
