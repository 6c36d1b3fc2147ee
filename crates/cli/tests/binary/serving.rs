//! Serving: from the first line to the last.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Server, ended, folder, longhaul};

#[test]
fn a_command_is_served_and_ends_in_order() {
    let server = Server::start(&["serve", "--exec", "tr a-z A-Z", "--log", "warn"]);
    let url = format!("http://{}", server.address);
    assert_eq!(server.first_line, format!("longhaul: listening on {url} (card: {url}/.well-known/agent-card.json)"));
    let card = server.ask("GET /.well-known/agent-card.json", "");
    assert_eq!(card["name"], "tr");
    let bindings: Vec<&Value> =
        card["supportedInterfaces"].as_array().expect("a list").iter().map(|one| &one["protocolBinding"]).collect();
    let three = ["JSONRPC", "HTTP+JSON", "GRPC"];
    assert_eq!(bindings, [three, three].concat(), "of v1.0, then of v0.3");
    let task = server.send("hello", &json!({}));
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "HELLO");
    server.signal(Signal::TERM);
    assert_eq!(server.end(), 0);
}

#[test]
fn the_example_is_served() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agent.py");
    let server = Server::start(&["serve", "--exec-jsonl", &format!("python3 {example}"), "--store", "memory"]);
    let task = server.send("hello", &json!({}));
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    server.signal(Signal::INT);
    assert_eq!(server.end(), 0);
}

/// Works until its server is gone, in the first lease of its task; in the second, it says which attempt it is.
const WORKS: &str = r#"read -r turn
if [ $LONGHAUL_LEASE_EPOCH = 2 ]; then printf '{"type":"complete","text":"attempt %s"}' $LONGHAUL_ATTEMPT
else echo '{"type":"progress","text":"ready"}'; read -r line; fi"#;

/// Tells a server to end while that agent works, starts it again, and answers with the task as it comes to a state.
fn ended_in_the_middle(attempts_max: u32, state: &str) -> Value {
    let (data, config) = (folder(), folder().join("longhaul.toml"));
    let toml = format!("server.drain_timeout = '0s'\nagent.attempts_max = {attempts_max}");
    std::fs::write(&config, toml).expect("it can be written");
    let (data, config) = (data.to_str().expect("it is text"), config.to_str().expect("it is text"));
    let arguments = ["serve", "--exec-jsonl", WORKS, "--data", data, "--config", config];
    let server = Server::start(&arguments);
    let task = server.send("x", &json!({"returnImmediately": true}));
    let id = task["id"].as_str().expect("it has an id");
    server.until_it(id, |task| task["status"]["message"]["parts"][0]["text"] == "ready");
    server.signal(Signal::TERM);
    assert_eq!(server.end(), 0);
    Server::start(&arguments).until(id, state)
}

#[test]
fn a_turn_that_is_handed_back_has_not_used_up_its_attempt() {
    let task = ended_in_the_middle(2, "COMPLETED");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "attempt 1");
}

#[test]
fn a_turn_that_must_not_run_twice_fails_when_the_server_ends() {
    let task = ended_in_the_middle(1, "FAILED");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "interrupted by shutdown");
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut server = Server::start(&["demo-server", "--store", "memory"]);
    server.send("stubborn slow 600", &json!({"returnImmediately": true}));
    server.signal(Signal::TERM);
    server.line_with("going down");
    server.signal(Signal::TERM);
    assert_eq!(server.end(), 1);
}

#[test]
fn the_log_can_be_json() {
    let server = Server::start(&["demo-server", "--store", "memory", "--log-format", "json"]);
    let entry: Value = serde_json::from_str(&server.first_line).expect("it is JSON");
    assert_eq!((&entry["level"], &entry["message"]), (&json!("INFO"), &json!("listening")));
}

#[test]
fn the_log_says_in_which_file_tasks_are_kept() {
    let data = folder();
    let mut command = longhaul(&["demo-server", "--data", data.to_str().expect("it is text")]);
    let mut server = Server::launch(&mut command);
    let line = server.line_with("tasks are kept in a SQLite file");
    assert!(line.contains(&format!("{}/longhaul.db", data.display())), "{line}");
}

#[test]
fn a_second_server_on_the_same_folder_is_refused_in_plain_words() {
    let data = folder();
    let data = data.to_str().expect("it is text");
    let server = Server::start(&["demo-server", "--data", data]);
    let (code, _, stderr) = ended(&["demo-server", "--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with(&format!("longhaul: cannot open the store in {data}: ")), "{stderr}");
    assert!(stderr.contains(&format!("is held by process {}", server.child.id())), "{stderr}");
    assert!(stderr.contains("hint: stop the other server"), "{stderr}");
}

#[test]
fn what_is_wrong_is_told_with_the_next_step() {
    #[rustfmt::skip]
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["serve"], 2, "there is no agent to serve", "hint: name one: longhaul serve --exec"),
        (&["serve", "--exec", "a", "--exec-jsonl", "b"], 2, "cannot be used with", ""),
        (&["serve", "--exce", "a"], 2, "unexpected argument", ""),
        (&["demo-server", "--store", "sqlit"], 2, "--store: is \"sqlit\", and must be one of sqlite, memory, postgres://", "hint: write sqlite, or"),
        (&["demo-server", "--listen", "nowhere"], 2, "--listen: is \"nowhere\"", "hint: "),
        (&["demo-server", "--config", "no-such-file"], 2, "no-such-file: cannot be read", "hint: check the path"),
        (&["demo-server", "--log", "loud"], 2, "--log: is \"loud\"", "hint: "),
    ];
    for (arguments, wanted, message, hint) in cases {
        let (code, stdout, stderr) = ended(arguments);
        assert_eq!((code, stdout.as_str()), (*wanted, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message) && stderr.contains(hint), "{arguments:?}: {stderr}");
    }
}

#[test]
fn the_configuration_is_printed_to_stdout() {
    let (code, stdout, stderr) = ended(&["config", "--exec", "tr a-z A-Z", "--data", "elsewhere"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    for line in ["exec = \"tr a-z A-Z\"", "data = \"elsewhere\"", "name = \"tr\"", "workers_max = 64"] {
        assert!(stdout.lines().any(|printed| printed == line), "{line} is not in:\n{stdout}");
    }
}
