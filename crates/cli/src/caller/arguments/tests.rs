use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};

use super::*;

#[derive(Debug, Parser)]
#[command(name = "longhaul")]
struct Line {
    #[command(subcommand)]
    command: CallerCommand,
}

fn parsed(line: &str) -> Result<CallerCommand, clap::Error> {
    Line::try_parse_from(std::iter::once("longhaul").chain(line.split_whitespace())).map(|line| line.command)
}

fn given(line: &str) -> Vec<(&'static str, String)> {
    parsed(line).unwrap().given().values
}

#[track_caller]
fn refused(line: &str, kind: ErrorKind) {
    assert_eq!(parsed(line).unwrap_err().kind(), kind, "{line}");
}

#[test]
fn the_command_line_is_well_formed() {
    Line::command().debug_assert();
}

#[test]
fn each_option_of_the_contract_is_taken_by_each_command() {
    let options = "-a http://x --a2a-version 1.0 --bearer b --api-key k --config c.env --debug --insecure --ca f -o json \
                   --poll-interval 1s --timeout 5s --svc-param a:b --svc-param c:d --transport grpc --transport jsonrpc \
                   --verbose";
    for command in [
        "card get",
        "send hi",
        "task get t",
        "task cancel t",
        "task list",
        "task subscribe t",
        "task download t",
        "task push-config create t http://h",
        "task push-config get t p",
        "task push-config list t",
        "task push-config delete t p",
        "chat",
        "watch t",
        "conformance",
        "auth login",
        "auth logout",
        "auth status",
        "ledger list",
        "ledger show i",
        "ledger recover",
        "ledger answer i hi",
        "ledger resolve send-again i",
        "ledger resolve adopt i --task t",
        "ledger resolve abandon i",
        "ledger resolve acknowledge i",
        "ledger remove i",
        "ledger prune --older-than 1d",
    ] {
        let given = parsed(&format!("{command} {options}")).unwrap().given();
        assert_eq!(given.config, Some(PathBuf::from("c.env")), "{command}");
        assert_eq!(given.values.len(), 13, "{command}");
        assert!(given.values.contains(&("svc-param", "a:b\nc:d".to_owned())), "{command}");
        assert!(given.values.contains(&("transport", "grpc,jsonrpc".to_owned())), "{command}");
    }
}

#[test]
fn a_switch_can_be_taken_back() {
    assert_eq!(given("task list --insecure"), [("insecure", "true".to_owned())]);
    assert_eq!(given("task list --insecure=false"), [("insecure", "false".to_owned())]);
    // What follows a switch is no value of it.
    assert_eq!(given("task get --debug t"), [("debug", "true".to_owned())]);
}

#[test]
fn async_has_its_other_names_and_excludes_waiting() {
    for flag in ["--async", "--return-immediately", "--no-wait"] {
        assert_eq!(given(&format!("send hi {flag}")), [("async", "true".to_owned())]);
    }
    assert_eq!(given("send hi --wait"), [("wait", "true".to_owned())]);
    for line in ["send hi --async --wait", "send hi --async --stream", "send hi --async --interactive"] {
        refused(line, ErrorKind::ArgumentConflict);
    }
}

#[test]
fn waiting_for_a_task_is_asked_for_on_the_command_line_only() {
    for line in ["task get t --wait", "task get t --watch"] {
        let Ok(CallerCommand::Task(TaskCommand::Get(flags))) = parsed(line) else { panic!("{line}") };
        assert!(flags.wait && flags.stream.delivery() == Delivery::Whole);
        assert_eq!(given(line), []);
    }
}

#[test]
fn a_command_line_that_means_nothing_is_refused() {
    refused("send hi --history -1", ErrorKind::UnknownArgument);
    refused("task list --page-size 0", ErrorKind::ValueValidation);
    refused("task list --page-size 101", ErrorKind::ValueValidation);
    refused("task list --status done", ErrorKind::ValueValidation);
    refused("task list --since yesterday", ErrorKind::ValueValidation);
    refused("task list --all --page-token x", ErrorKind::ArgumentConflict);
    refused("task get", ErrorKind::MissingRequiredArgument);
    refused("send hi --nonsense", ErrorKind::UnknownArgument);
    refused("task frobnicate", ErrorKind::InvalidSubcommand);
}

#[test]
fn each_command_says_what_holds_when_nothing_is_said() {
    let mut line = Line::command();
    let send = line.find_subcommand_mut("send").unwrap().render_long_help().to_string();
    for default in
        ["the card's order", "never below 1.0", "[default: verified]", "[default: 2s]", "[default: text]", "wait until"]
    {
        assert!(send.contains(default), "{default} is not in\n{send}");
    }
    // A service parameter is not for credentials.
    let about = send.lines().skip_while(|line| !line.contains("--svc-param")).nth(1).unwrap();
    assert!(!about.contains("credential") && !about.contains("auth"), "{about}");
}

#[test]
fn a_ledger_is_used_where_that_is_said_whichever_it_is() {
    for (line, path) in [("send hi --ledger", ""), ("send hi --ledger=l.db", "l.db")] {
        let Ok(CallerCommand::Send(flags)) = parsed(line) else { panic!("{line}") };
        assert_eq!(flags.ledger.as_deref(), Some(path));
        assert_eq!(given(line), [("ledger", path.to_owned())]);
    }
    refused("send hi --purpose why", ErrorKind::MissingRequiredArgument);
    refused("send hi --deadline 1h", ErrorKind::MissingRequiredArgument);
    refused("watch t --ledger", ErrorKind::ArgumentConflict);
    refused("watch", ErrorKind::MissingRequiredArgument);
    refused("ledger resolve adopt i", ErrorKind::MissingRequiredArgument);
    refused("conformance --level must", ErrorKind::MissingRequiredArgument);
}

/// Each command, with the words that lead to it.
fn commands(command: &clap::Command, words: &str, all: &mut Vec<(String, clap::Command)>) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let words = format!("{words} {}", sub.get_name());
        all.push((words.trim().to_owned(), sub.clone()));
        commands(sub, &words, all);
    }
}

#[test]
fn every_option_and_command_is_on_the_page() {
    let page = include_str!("../../../../../docs/cli.md");
    let mut all = Vec::new();
    commands(&Line::command(), "", &mut all);
    for (words, command) in &all {
        let name = words.rsplit(' ').next().unwrap();
        assert!(page.contains(name), "longhaul {words} is not in docs/cli.md");
        for flag in command.get_arguments().filter_map(clap::Arg::get_long).filter(|flag| *flag != "help") {
            let is_there = page.match_indices(&format!("--{flag}")).any(|(at, found)| {
                page[at + found.len()..].starts_with(|next: char| !next.is_ascii_alphanumeric() && next != '-')
            });
            assert!(is_there, "--{flag} of longhaul {words} is not in docs/cli.md");
        }
    }
}
