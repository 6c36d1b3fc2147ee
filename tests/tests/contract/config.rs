//! What is in effect when nothing is said, who says otherwise, and what is kept (§6.5, §8.3).

use std::os::unix::fs::PermissionsExt as _;

use longhaul_tests::hostile::{TASK_ID, is_rpc, task};
use longhaul_tests::{Hostile, Server, Store};

use crate::agents::{self, bearer, names, operations, require_scheme, with_card, with_task};
use crate::cli::{Cli, Done, demo};

/// The value of a setting and the source it came from, as `config show` has them for people.
fn shown(done: &Done, setting: &str) -> String {
    let start = format!("{setting}: ");
    let line = done.exits(0).stdout.lines().find(|line| line.starts_with(&start));
    line.unwrap_or_else(|| panic!("no {setting}\n{}", done.told())).to_owned()
}

#[tokio::test]
async fn a2acli_default_001_each_default_is_shipped_and_gives_way_to_its_flag() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_WORKING"))).await;
    let cli = Cli::of(&agent.url());
    // Transport: the card's order. Version: 1.0. Output: text. Detail: concise. Completion: it waits.
    let done = cli.run(&["task", "get", TASK_ID]).await;
    assert_eq!(done.exits(0).text().field("State"), "TASK_STATE_WORKING");
    let asked = operations(&agent).pop().unwrap();
    assert!(is_rpc(&asked) && asked.header("a2a-version") == Some("1.0"));
    cli.run(&["task", "get", TASK_ID, "--transport", "http+json"]).await.exits(0);
    assert!(!is_rpc(&operations(&agent).pop().unwrap()));
    assert!(cli.run(&["task", "get", TASK_ID, "-o", "json"]).await.exits(0).json()["id"].is_string());
    cli.run(&["task", "get", TASK_ID, "--output", "json"]).await.exits(0).json();
    cli.run(&["send", "hello", "--timeout", "1s"]).await.exits(5);
    cli.run(&["send", "hello", "--async"]).await.exits(0);
    assert_ne!(cli.run(&["task", "get", TASK_ID, "--a2a-version", "1.9"]).await.code, 0);
    // TLS verification: tls.rs.
}

#[tokio::test]
async fn a2acli_default_001_verbose_shows_more_of_what_was_exchanged() {
    let (_server, cli) = demo().await;
    let concise = cli.run(&["send", "--text", "echo one", "--text", "two"]).await;
    let verbose = cli.run(&["send", "--text", "echo one", "--text", "two", "--verbose"]).await;
    let (concise, verbose) = (concise.exits(0).text(), verbose.exits(0).text());
    assert!(verbose.0.len() > concise.0.len(), "{concise:#?}{verbose:#?}");
    assert!(verbose.blocks().concat().contains("one") && verbose.blocks().concat().contains("two"));
}

#[tokio::test]
async fn a2acli_default_001_help_says_what_is_in_effect() {
    let help = Cli::new().run(&["send", "--help"]).await.exits(0).stdout.clone();
    for (flag, words) in [
        ("--transport", &["card"][..]),
        ("--async", &["wait"]),
        ("--output", &["text"]),
        ("--verbose", &["concise"]),
        ("--a2a-version", &["highest", "1.0"]),
        ("--insecure", &["verified"]),
        ("--poll-interval", &["2s"]),
        ("--timeout", &["none"]),
    ] {
        let at = help.find(&format!("{flag} ")).or_else(|| help.find(flag)).unwrap_or_else(|| panic!("{flag}: {help}"));
        let entry = help[at..].split("\n      --").next().unwrap().split("\n  -").next().unwrap().to_lowercase();
        assert!(entry.contains("default"), "{flag} does not say its default: {entry}");
        for word in words {
            assert!(entry.contains(word), "{flag}: {word} is not in {entry}");
        }
    }
}

#[tokio::test]
async fn a2acli_config_001_configuration_has_a_conventional_place_and_can_be_removed() {
    let server = Server::start(Store::Memory).await;
    let cli = Cli::new();
    let path = cli.file("~/.config/a2a-cli/.env", format!("A2ACLI_AGENT_CARD=http://{}\n", server.addr()));
    let line = shown(&cli.run(&["config", "show"]).await, "agent-card");
    assert!(line.contains(&server.addr().to_string()) && line.contains(path.to_str().unwrap()), "{line}");
    cli.run(&["send", "hello"]).await.exits(0);
    std::fs::remove_file(&path).unwrap();
    cli.run(&["send", "hello"]).await.exits(2);
}

#[tokio::test]
async fn a2acli_config_001_show_changes_nothing_and_no_session_is_kept() {
    let (_server, cli) = demo().await;
    let before = cli.files();
    cli.run(&["config", "show", "--a2a-version", "1.0"]).await.exits(0);
    cli.run(&["config", "show", "-o", "json"]).await.exits(0).json();
    assert_eq!(cli.files(), before);
    let (id, context, _) = cli.run(&["send", "input"]).await.exits(0).text().standing();
    cli.run(&["send", "chunks 2", "--stream"]).await.exits(0);
    cli.run(&["task", "list"]).await.exits(0);
    for path in cli.files() {
        let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!content.contains(&id) && !content.contains(&context), "{}", path.display());
    }
}

#[tokio::test]
async fn a2acli_config_001_a_file_with_a_secret_that_others_can_read_is_warned_of() {
    let agent = with_card(|card, _| require_scheme(card, "tokens", bearer())).await;
    let cli = Cli::of(&agent.url());
    let path = cli.file("~/.config/a2a-cli/.env", "A2ACLI_BEARER=s3cret\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let done = cli.run(&["send", "hello"]).await;
    assert!(done.stderr.contains(path.to_str().unwrap()), "{}", done.told());
    assert!(!done.all().contains("s3cret"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let done = cli.run(&["send", "hello"]).await;
    assert!(!done.exits(0).stderr.contains(path.to_str().unwrap()), "{}", done.told());
    assert_eq!(operations(&agent).pop().unwrap().header("authorization"), Some("Bearer s3cret"));
}

#[tokio::test]
async fn a2acli_config_002_flag_then_variable_then_local_then_global_then_default() {
    let mut cli = Cli::new();
    let steps: [(&str, &str); 5] = [("default", ""), ("global", "A"), ("local", "B"), ("variable", "C"), ("flag", "D")];
    let mut last = String::new();
    for (source, value) in steps {
        let mut args = vec!["config", "show"];
        match source {
            "global" => {
                let path = cli.file("~/.config/a2a-cli/.env", format!("A2ACLI_CONTEXT_ID={value}\n"));
                last = path.display().to_string();
            }
            "local" => {
                let path = cli.file(".env", format!("# mine\n\nexport A2ACLI_CONTEXT_ID=\"{value}\"\nOTHER=x\n"));
                last = path.display().to_string();
            }
            "variable" => {
                cli = cli.with("A2ACLI_CONTEXT_ID", value);
                last = "A2ACLI_CONTEXT_ID".to_owned();
            }
            "flag" => {
                cli = cli.with("A2ACLI_A2A_VERSION", "1.0");
                args.extend(["--a2a-version", "1.2"]);
            }
            _ => {}
        }
        let done = cli.run(&args).await;
        match source {
            "default" => assert!(!shown(&done, "context-id").contains("A2ACLI"), "{}", done.told()),
            "flag" => {
                let line = shown(&done, "a2a-version");
                assert!(line.contains("1.2") && line.contains("--a2a-version"), "{line}");
            }
            _ => {
                let line = shown(&done, "context-id");
                assert!(line.starts_with(&format!("context-id: {value}")) && line.contains(&last), "{source}: {line}");
            }
        }
    }
}

#[tokio::test]
async fn a2acli_config_002_the_order_holds_for_what_is_done_too() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await;
    let sent = |agent: &Hostile| agents::sent(agent).pop().unwrap()["contextId"].clone();
    let cli = Cli::of(&agent.url());
    cli.file("~/.config/a2a-cli/.env", "A2ACLI_CONTEXT_ID=global\nA2ACLI_TRANSPORT=http+json\n");
    cli.run(&["send", "hello"]).await.exits(0);
    assert!(sent(&agent) == "global" && !is_rpc(&operations(&agent)[0]));
    cli.file(".env", "A2ACLI_CONTEXT_ID=local\nA2ACLI_TRANSPORT=jsonrpc\n");
    cli.run(&["send", "hello"]).await.exits(0);
    assert_eq!(sent(&agent), "local");
    let cli = cli.with("A2ACLI_CONTEXT_ID", "variable");
    cli.run(&["send", "hello"]).await.exits(0);
    assert_eq!(sent(&agent), "variable");
    cli.run(&["send", "hello", "--context-id", "flag"]).await.exits(0);
    assert_eq!(sent(&agent), "flag");
}

#[tokio::test]
async fn a2acli_config_002_a_local_file_is_found_upwards_and_config_stands_in_for_it() {
    let cli = Cli::new();
    cli.file("../.env", "A2ACLI_CONTEXT_ID=above\nA2ACLI_TASK_ID=above\n");
    let line = shown(&cli.run(&["config", "show"]).await, "context-id");
    assert!(line.starts_with("context-id: above"), "{line}");
    // The nearest one is the local one.
    cli.file(".env", "A2ACLI_CONTEXT_ID=near\n");
    assert!(shown(&cli.run(&["config", "show"]).await, "context-id").starts_with("context-id: near"));

    let named = cli.file("agents/other.env", "A2ACLI_AGENT_CARD=http://other.example.com\n");
    let done = cli.run(&["config", "show", "--config", "agents/other.env"]).await;
    let line = shown(&done, "agent-card");
    assert!(line.contains("http://other.example.com") && line.contains("agents/other.env"), "{line}");
    assert!(!shown(&done, "context-id").contains("near"), "it stands in for the local one\n{}", done.told());
    cli.file("~/.config/a2a-cli/.env", "A2ACLI_CONTEXT_ID=global\n");
    let done = cli.run(&["config", "show", "--config", named.to_str().unwrap()]).await;
    assert!(shown(&done, "context-id").contains("global"), "{}", done.told());
    cli.run(&["config", "show", "--config", "no/such.env", "-o", "json"]).await.fails(2, "A2ACLI_ERR_USAGE");
}

#[tokio::test]
async fn a2acli_config_002_each_agent_has_its_own_settings_by_its_file() {
    let one = with_card(|card, _| require_scheme(card, "tokens", bearer())).await;
    let two = with_card(|card, _| require_scheme(card, "tokens", bearer())).await;
    let cli = Cli::new();
    for (name, agent, token) in [("one.env", &one, "of-one"), ("two.env", &two, "of-two")] {
        cli.file(name, format!("A2ACLI_AGENT_CARD={}\nA2ACLI_BEARER={token}\n", agent.url()));
    }
    cli.run(&["send", "hello", "--config", "one.env"]).await.exits(0);
    cli.run(&["send", "hello", "--config", "two.env"]).await.exits(0);
    let token = |agent: &Hostile| operations(agent)[0].header("authorization").unwrap_or_default().to_owned();
    assert_eq!((token(&one).as_str(), token(&two).as_str()), ("Bearer of-one", "Bearer of-two"));
}

#[tokio::test]
async fn a2acli_config_002_a_wrong_value_is_named_with_its_source() {
    let agent = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await;
    let cli = Cli::of(&agent.url());
    cli.file(".env", "A2ACLI_TIMEOUT=soon\n");
    let error = cli.run(&["send", "hello", "-o", "json"]).await.fails(2, "A2ACLI_ERR_USAGE");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("A2ACLI_TIMEOUT") && message.contains(".env"), "{message}");
    assert_eq!(names(&agent), [""; 0]);
    cli.run(&["send", "hello", "--timeout", "30s"]).await.exits(0);
}
