//! `send --ledger`, `watch --ledger` and `ledger`: what was delegated is never lost.

use serde_json::{Value, json};

use crate::scripted::Scripted;
use crate::support::{Server, end_of, ended, folder, longhaul};

/// A ledger of the test's own.
struct Book {
    path: String,
}

impl Book {
    fn new() -> Self {
        Self { path: folder().join("ledger.db").to_str().expect("it is text").to_owned() }
    }

    fn send(&self, agent: &str, line: &[&str]) -> (i32, String, String) {
        let ledger = format!("--ledger={}", self.path);
        ended(&[&["send", "-a", agent, &ledger], line].concat())
    }

    fn run(&self, line: &[&str]) -> (i32, String, String) {
        ended(&[&["ledger"], line, &["--ledger", &self.path]].concat())
    }

    /// The documents that a command writes.
    #[track_caller]
    fn json(&self, line: &[&str]) -> (i32, Vec<Value>) {
        let (code, stdout, stderr) = self.run(&[line, &["-o", "json"]].concat());
        let read = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?} is no JSON: {stderr}"));
        (code, stdout.lines().map(read).collect())
    }

    /// The entries, the newest first.
    #[track_caller]
    fn entries(&self) -> Vec<Value> {
        let (code, listed) = self.json(&["list", "--which", "all"]);
        assert_eq!(code, 0);
        listed[0]["entries"].as_array().expect("it is a list").clone()
    }
}

fn demo() -> (Server, String) {
    let server = Server::start(&["demo-server", "--store", "memory"]);
    let url = format!("http://{}", server.address);
    (server, url)
}

fn id(entry: &Value) -> &str {
    entry["id"].as_str().expect("it has one")
}

#[test]
fn a_delegation_is_written_down_with_its_purpose_and_its_end() {
    let ((_server, url), book) = (demo(), Book::new());
    let line = ["echo hello", "--purpose", "a report", "--deadline", "2h"];
    let (code, stdout, stderr) = book.send(&url, &line);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("State: TASK_STATE_COMPLETED") && stdout.contains("  echo hello\n"), "{stdout}");
    let entries = book.entries();
    let entry = &entries[0];
    assert!(stderr.starts_with(&format!("longhaul: delegation {} is written down in {}\n", id(entry), book.path)));
    assert_eq!((&entry["state"], &entry["purpose"]), (&json!("completed"), &json!("a report")));
    assert_eq!((&entry["deadline"], &entry["agent"]["card"]), (&json!({"quietMillis": 7_200_000}), &json!(url)));
    let (code, shown) = book.json(&["show", id(entry)]);
    assert_eq!(code, 0);
    let [request, outcome] = ["request", "outcome"].map(|name| shown[0][name].clone());
    assert_eq!(request["message"]["parts"], json!([{"text": "echo hello"}]));
    assert_eq!(outcome["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let happened: Vec<_> =
        shown[0]["history"].as_array().into_iter().flatten().map(|line| line["what"].clone()).collect();
    assert_eq!((&happened[0], happened.last()), (&json!("prepared"), Some(&json!("completed"))));
    // By the task's id too.
    let (code, stdout, _) = book.run(&["show", entry["taskId"].as_str().expect("it has one")]);
    assert!(code == 0 && stdout.contains("Happened: "), "{stdout}");
}

#[test]
fn json_on_stdout_is_still_the_protocols_own() {
    let ((_server, url), book) = (demo(), Book::new());
    let (code, stdout, _) = book.send(&url, &["echo hello", "-o", "json"]);
    let answer: Value = serde_json::from_str(&stdout).expect("it is one document");
    assert_eq!((code, &answer["task"]["status"]["state"]), (0, &json!("TASK_STATE_COMPLETED")));
    let (code, stdout, stderr) = book.send(&url, &["chunks 2", "-o", "json", "--stream"]);
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert!(lines[0]["task"].is_object() && lines.len() >= 3, "{stdout}");
    let (_, stdout, _) = book.send(&url, &["msg"]);
    assert!(stdout.contains("  a direct answer\n"), "{stdout}");
    assert_eq!(book.entries()[0]["state"], "answered");
}

#[test]
fn a_question_is_answered_by_the_command_that_is_printed() {
    let ((_server, url), book) = (demo(), Book::new());
    let (code, stdout, stderr) = book.send(&url, &["input"]);
    assert_eq!(code, 0, "{stderr}");
    let entry = book.entries().remove(0);
    assert!(stdout.contains(&format!("Resume: longhaul ledger answer {} --ledger ", id(&entry))), "{stdout}");
    let (code, findings) = book.json(&["recover"]);
    assert_eq!(
        (code, &findings[0]["finding"], &findings[0]["entry"]["text"]),
        (6, &json!("question"), &json!("what else?"))
    );
    let (code, _, stderr) = book.run(&["recover"]);
    assert!(code == 6 && stderr.contains("1 of them wait for a person (LONGHAUL_ERR_NEEDS_PERSON)"), "{stderr}");
    let (code, stdout, stderr) = book.run(&["answer", id(&entry), "echo fine"]);
    assert!(code == 0 && stdout.contains("  echo fine\n"), "{stdout}{stderr}");
    assert_eq!(book.json(&["recover"]), (0, Vec::new()));
}

#[test]
fn what_ran_when_its_caller_was_ended_is_found_again() {
    let ((_server, url), book) = (demo(), Book::new());
    let (code, stdout, stderr) = book.send(&url, &["slow 2", "--timeout", "1s"]);
    assert_eq!((code, stdout.as_str()), (5, ""), "{stderr}");
    assert!(stderr.contains("hint: go on with: longhaul ledger recover"), "{stderr}");
    assert_eq!(book.entries()[0]["followedBy"], Value::Null, "it was given back");
    let (code, findings) = book.json(&["recover"]);
    let words: Vec<_> = findings.iter().map(|finding| finding["finding"].as_str().expect("it is a word")).collect();
    assert_eq!((code, words), (0, vec!["running", "settled"]), "{findings:?}");
}

#[test]
fn one_look_leaves_what_runs() {
    let ((_server, url), book) = (demo(), Book::new());
    let (code, stdout, stderr) = book.send(&url, &["slow 20", "--async"]);
    assert!(code == 0 && stdout.contains("Resume: longhaul ledger recover --ledger "), "{stdout}{stderr}");
    let (code, findings) = book.json(&["recover", "--once"]);
    assert_eq!((code, findings.len(), &findings[0]["finding"]), (0, 1, &json!("running")));
    let entry = book.entries().remove(0);
    let (code, _, stderr) = book.run(&["remove", id(&entry)]);
    assert!(code == 1 && stderr.contains("is not settled") && stderr.contains("resolve abandon"), "{stderr}");
    let (code, given_up) = book.json(&["resolve", "abandon", id(&entry), "--why", "nobody wants it"]);
    assert_eq!(
        (code, &given_up[0]["state"], &given_up[0]["text"]),
        (0, &json!("abandoned"), &json!("nobody wants it"))
    );
    assert_eq!(book.json(&["remove", id(&entry)]), (0, vec![json!({"removed": 1})]));
    let (code, _, stderr) = book.run(&["show", id(&entry)]);
    assert!(code == 2 && stderr.contains("ledger list --which all"), "{stderr}");
}

#[test]
fn silence_raises_an_alarm_that_a_person_acknowledges() {
    let ((_server, url), book) = (demo(), Book::new());
    let (code, _, stderr) = book.send(&url, &["slow 4", "--async", "--deadline", "200ms"]);
    assert_eq!(code, 0, "{stderr}");
    let mut recovering = longhaul(&["ledger", "recover", "--ledger", &book.path, "-o", "json", "--timeout", "3s"]);
    let (code, stdout, _) = end_of(&mut recovering);
    assert!(code == 5 && stdout.contains("\"finding\":\"alarm\""), "{stdout}");
    let entry = book.entries().remove(0);
    assert_eq!((&entry["needsPerson"], &entry["state"]), (&json!(true), &json!("accepted")));
    let (code, seen) = book.json(&["resolve", "acknowledge", id(&entry)]);
    assert_eq!((code, &seen[0]["needsPerson"]), (0, &json!(false)));
}

#[test]
fn what_can_not_be_decided_so_is_refused_with_the_next_step() {
    let ((_server, url), book) = (demo(), Book::new());
    assert_eq!(book.send(&url, &["echo"]).0, 0);
    let entry = book.entries().remove(0);
    for line in [&["resolve", "send-again"][..], &["resolve", "adopt", "--task", "t"], &["resolve", "abandon"]] {
        let (code, _, stderr) = book.run(&[line, &[id(&entry)]].concat());
        assert!(code == 1 && stderr.contains("LONGHAUL_ERR_LEDGER") && stderr.contains("ledger show"), "{stderr}");
    }
    assert_eq!(book.json(&["prune", "--older-than", "1h"]), (0, vec![json!({"removed": 0})]));
    assert_eq!(book.json(&["prune", "--older-than", "0s"]), (0, vec![json!({"removed": 1})]));
}

#[test]
fn a_refused_message_is_settled_and_told_as_ever() {
    let book = Book::new();
    let agent = Scripted::new(json!({}), |_, _, _| Err(json!({"code": -32005, "message": "no such type"})));
    let (code, _, stderr) = book.send(&agent.url(), &["hi"]);
    assert!(code == 1 && stderr.contains("ContentTypeNotSupportedError"), "{stderr}");
    assert_eq!(book.entries()[0]["state"], "refused");
}

#[test]
fn a_credential_is_shown_to_the_agent_that_it_is_for_and_to_no_other() {
    let book = Book::new();
    let agent = || {
        Scripted::new(json!({}), |method, _, _| {
            let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}});
            Ok(if method == "SendMessage" { json!({ "task": task }) } else { task })
        })
    };
    let (ours, other) = (agent(), agent());
    for agent in [&ours, &other] {
        assert_eq!(book.send(&agent.url(), &["hi"]).0, 0);
    }
    let mut recovering = longhaul(&["ledger", "recover", "--ledger", &book.path, "-a", &ours.url()]);
    let (code, _, stderr) = end_of(recovering.env("A2ACLI_BEARER", "s3cret"));
    assert!(code == 6 && !stderr.contains("s3cret"), "{stderr}");
    let heads = |agent: &Scripted| {
        let asked = agent.asked("GetTask").into_iter().map(|asked| asked.head.to_ascii_lowercase());
        asked.collect::<Vec<_>>()
    };
    assert!(heads(&ours).iter().any(|head| head.contains("authorization: bearer s3cret")), "{:?}", heads(&ours));
    assert!(!heads(&other).is_empty() && !heads(&other).concat().contains("authorization"), "{:?}", heads(&other));
}

#[test]
fn an_agent_that_can_not_be_reached_keeps_its_entries_and_is_told_of() {
    let book = Book::new();
    let (mut server, url) = demo();
    assert_eq!(book.send(&url, &["input"]).0, 0);
    server.child.kill().expect("it runs");
    let mut command = longhaul(&["ledger", "recover", "--ledger", &book.path, "--timeout", "2s"]);
    let (code, stdout, stderr) = end_of(&mut command);
    assert!(code == 5 && stdout.contains("Finding: trouble") && stderr.contains("ledger recover"), "{stdout}{stderr}");
    assert_eq!(book.entries()[0]["state"], "question");
}

#[test]
fn the_usual_place_is_below_the_folder_for_state() {
    let home = folder();
    let place = |variable: &str, folder: &str| {
        let mut command = longhaul(&["ledger", "list"]);
        end_of(command.env_remove("XDG_STATE_HOME").env("HOME", &home).env(variable, folder))
    };
    let state = folder();
    assert_eq!(place("XDG_STATE_HOME", state.to_str().expect("it is text")).0, 0);
    assert!(state.join("longhaul/ledger.db").is_file());
    assert_eq!(place("XDG_STATE_HOME", "not/absolute").0, 0);
    assert!(home.join(".local/state/longhaul/ledger.db").is_file());
    let other = state.join("other.db");
    assert_eq!(place("A2ACLI_LEDGER", other.to_str().expect("it is text")).0, 0);
    assert!(other.is_file());
}

#[test]
fn what_is_watched_is_written_whenever_it_changes_and_ends_with_the_last() {
    let ((_server, url), book) = (demo(), Book::new());
    for words in ["slow 2", "input"] {
        assert_eq!(book.send(&url, &[words, "--async"]).0, 0);
    }
    let ledger = format!("--ledger={}", book.path);
    let (code, stdout, stderr) = ended(&["watch", &ledger, "-o", "json"]);
    let states: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON")["state"].clone()).collect();
    assert!(
        code == 6 && states.contains(&json!("completed")) && states.contains(&json!("question")),
        "{states:?}{stderr}"
    );
}
