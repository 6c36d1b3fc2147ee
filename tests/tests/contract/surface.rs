//! The tool's own surface: help, version, completion, and what an agent is checked with (§7).

use longhaul_tests::hostile::{CardFault, task};
use longhaul_tests::{Hostile, Server, Store};

use crate::agents::with_task;
use crate::cli::{Cli, demo};

/// Each command of the contract that is claimed.
const COMMANDS: [&[&str]; 15] = [
    &["auth", "login"],
    &["card", "get"],
    &["chat"],
    &["completion"],
    &["config", "show"],
    &["conformance"],
    &["demo-server"],
    &["send"],
    &["task", "cancel"],
    &["task", "download"],
    &["task", "get"],
    &["task", "list"],
    &["task", "push-config"],
    &["task", "subscribe"],
    &["task", "push-config", "create"],
];

#[tokio::test]
async fn a2acli_cli_001_help_is_there_for_each_command() {
    let cli = Cli::new();
    for args in [&["help"][..], &["--help"], &["-h"]] {
        let done = cli.run(args).await;
        for command in ["auth", "card", "chat", "completion", "config", "conformance", "demo-server", "send", "task"] {
            assert!(done.exits(0).stdout.contains(command), "{command}\n{}", done.told());
        }
        assert!(done.stderr.is_empty());
    }
    for command in COMMANDS {
        let done = cli.run(&[command, &["--help"]].concat()).await;
        let text = done.exits(0).stdout.to_lowercase();
        assert!(text.contains("usage") && done.stderr.is_empty(), "{}", done.told());
        let done = cli.run(&[&["help"], command].concat()).await;
        assert!(done.exits(0).stdout.to_lowercase().contains("usage"), "{}", done.told());
    }
    cli.run(&["help", "no-such-command"]).await.exits(2);
}

#[tokio::test]
async fn a2acli_cli_001_version_is_printed() {
    let cli = Cli::new();
    for flag in ["--version", "-v"] {
        let done = cli.run(&[flag]).await;
        let version = done.exits(0).stdout.split_whitespace().last().unwrap_or_default();
        assert!(
            version.split('.').count() >= 3 && version.starts_with(|it: char| it.is_ascii_digit()),
            "{}",
            done.told()
        );
    }
}

#[tokio::test]
async fn a2acli_cli_001_help_and_version_are_flags_only() {
    let cli = Cli::new().with("A2ACLI_HELP", "true").with("A2ACLI_VERSION", "true");
    cli.run(&["send", "hello"]).await.exits(2);
}

/// What each command has to take, as §7.2 spells it.
#[tokio::test]
async fn a2acli_cli_001_canonical_flags_are_all_there() {
    let cli = Cli::new();
    let global = [
        "--a2a-version",
        "--agent-card",
        "-a",
        "--bearer",
        "--api-key",
        "--config",
        "--debug",
        "--help",
        "--insecure",
        "--output",
        "-o",
        "--svc-param",
        "--transport",
        "--verbose",
        "--timeout",
        "--poll-interval",
    ];
    for (command, own) in [
        (
            &["send"][..],
            &[
                "--async",
                "--context-id",
                "--task-id",
                "--metadata",
                "--stream",
                "--wait",
                "--text",
                "--file",
                "--data",
                "--media-type",
            ][..],
        ),
        (&["task", "get"], &["--wait", "--history"]),
        (&["task", "subscribe"], &["--stream"]),
        (&["task", "cancel"], &[]),
        (&["task", "list"], &[]),
        (&["card", "get"], &["--validate", "--extended"]),
    ] {
        let help = cli.run(&[command, &["--help"]].concat()).await.exits(0).stdout.clone();
        for flag in global.iter().chain(own) {
            assert!(help.contains(flag), "{command:?} has no {flag}\n{help}");
        }
    }
}

#[tokio::test]
async fn a2acli_cli_002_completion_scripts_are_what_their_shell_reads() {
    let cli = Cli::new();
    for shell in ["bash", "zsh", "fish"] {
        let done = cli.run(&["completion", shell]).await;
        let script = &done.exits(0).stdout;
        assert!(script.contains("longhaul") && script.contains("push-config"), "{shell}");
        assert!(script.contains("agent-card"), "{shell}");
    }
    cli.run(&["completion", "no-such-shell"]).await.exits(2);
    cli.run(&["completion"]).await.exits(2);
}

#[tokio::test]
async fn a2acli_cli_002_bash_completes_commands_and_flags() {
    let cli = Cli::new();
    let script = cli.run(&["completion", "bash"]).await.exits(0).stdout.clone();
    cli.file("completion.bash", script);
    let complete = async |words: &str| {
        let count = words.split(' ').count();
        let quoted: Vec<String> = words.split(' ').map(|word| format!("'{word}'")).collect();
        let line = format!(
            "bash --norc -c 'source ./completion.bash; COMP_WORDS=({}); COMP_CWORD={}; _longhaul longhaul \"${{COMP_WORDS[COMP_CWORD]}}\" \"\"; printf \"%s\\n\" \"${{COMPREPLY[@]}}\"'",
            quoted.join(" ").replace('\'', "\""),
            count - 1
        );
        cli.shell(&line).await.exits(0).stdout.clone()
    };
    assert!(complete("longhaul ta").await.lines().any(|word| word == "task"));
    let commands = complete("longhaul task ").await;
    for command in ["get", "list", "cancel", "subscribe", "download", "push-config"] {
        assert!(commands.lines().any(|word| word == command), "{command}: {commands}");
    }
    assert!(complete("longhaul send --agent").await.lines().any(|word| word == "--agent-card"));
}

#[tokio::test]
async fn a2acli_demo_server_001_is_an_agent_to_practise_with() {
    // The harness starts `longhaul demo-server`, and waits until it says that it listens.
    let server = Server::start(Store::Memory).await;
    let caller = Cli::of(&format!("http://{}", server.addr()));
    caller.run(&["card", "get", "--validate"]).await.exits(0);
    for (words, state) in [
        ("hello", "TASK_STATE_COMPLETED"),
        ("input", "TASK_STATE_INPUT_REQUIRED"),
        ("auth", "TASK_STATE_AUTH_REQUIRED"),
        ("fail", "TASK_STATE_FAILED"),
        ("reject", "TASK_STATE_REJECTED"),
    ] {
        assert_eq!(caller.run(&["send", words]).await.exits(0).text().field("State"), state);
    }
}

#[tokio::test]
async fn a2acli_conform_001_a_sound_agent_passes() {
    let (_server, cli) = demo().await;
    let done = cli.run(&["conformance"]).await;
    assert!(!done.exits(0).text().0.is_empty(), "{}", done.told());
    cli.run(&["conformance", "-o", "json"]).await.exits(0).json();
}

#[tokio::test]
async fn a2acli_conform_001_an_agent_that_breaks_the_protocol_does_not() {
    // Each task is complete, whoever asks for whichever.
    let careless = Hostile::agent(|asked| with_task(asked, &task("TASK_STATE_COMPLETED"))).await;
    let done = Cli::of(&careless.url()).run(&["conformance"]).await;
    assert!(done.exits(1).all().to_lowercase().contains("fail"), "{}", done.told());
    let broken = Hostile::start(|asked| CardFault::NotJson.script(asked)).await;
    assert_ne!(Cli::of(&broken.url()).run(&["conformance"]).await.code, 0);
    let nobody = format!("http://{}", longhaul_tests::server::free_addr());
    Cli::of(&nobody).run(&["conformance"]).await.exits(3);
}
