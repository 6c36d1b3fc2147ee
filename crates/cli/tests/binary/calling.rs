//! `card get`, `send` and `task` against our own server.

use serde_json::{Value, json};

use crate::support::{Server, end_of, ended, folder, longhaul};

fn demo() -> Server {
    Server::start(&["demo-server", "--store", "memory"])
}

/// Runs a command of the client towards a server.
fn call(server: &Server, arguments: &[&str]) -> (i32, String, String) {
    let agent = format!("http://{}", server.address);
    ended(&[arguments, &["-a", &agent]].concat())
}

/// The one document on stdout of a command that ends well.
#[track_caller]
fn document(server: &Server, arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = call(server, &[arguments, &["-o", "json"]].concat());
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).expect("it is one document")
}

/// The failure that a command ends by.
#[track_caller]
fn failure(server: &Server, arguments: &[&str]) -> (i32, Value) {
    let (code, stdout, _) = call(server, &[arguments, &["-o", "json"]].concat());
    let envelope: Value = serde_json::from_str(&stdout).expect("it is one document");
    (code, envelope["error"].clone())
}

fn field<'a>(text: &'a str, label: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(label)?.strip_prefix(": ")).collect()
}

#[test]
fn a_send_waits_and_writes_the_artifacts() {
    let server = demo();
    let (code, stdout, stderr) = call(&server, &["send", "echo hello"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(field(&stdout, "State"), ["TASK_STATE_COMPLETED"]);
    assert!(stdout.ends_with("Artifact: echo\nText:\n  echo hello\n\n"), "{stdout}");
    let (id, context) = (field(&stdout, "Task")[0], field(&stdout, "Context")[0]);
    assert_eq!(stderr, format!("longhaul: task {id} of context {context}\n"));
    assert!(!stdout.contains('\u{1b}'));
}

#[test]
fn every_binding_gives_the_same() {
    let server = demo();
    for transport in ["jsonrpc", "http+json", "grpc"] {
        let answer = document(&server, &["send", "chunks 3", "--transport", transport]);
        let parts = &answer["task"]["artifacts"][0]["parts"];
        assert_eq!(parts.as_array().map(Vec::len), Some(3), "{transport}: {answer}");
        let (code, error) = failure(&server, &["task", "get", "nobody", "--transport", transport]);
        assert_eq!((code, &error["code"]), (1, &json!("TaskNotFoundError")), "{transport}");
    }
}

#[test]
fn how_the_agent_decides_is_no_failure() {
    let server = demo();
    for (words, state, said) in [
        ("reject", "TASK_STATE_REJECTED", "the agent rejected the task"),
        ("fail", "TASK_STATE_FAILED", "the task failed"),
        ("input", "TASK_STATE_INPUT_REQUIRED", "the task waits for your input"),
    ] {
        let (code, stdout, stderr) = call(&server, &["send", words]);
        assert_eq!((code, field(&stdout, "State")[0]), (0, state), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn a_question_is_answered_by_the_command_that_is_printed() {
    let server = demo();
    let (_, stdout, _) = call(&server, &["send", "input"]);
    let id = field(&stdout, "Task")[0];
    let resume = field(&stdout, "Resume")[0];
    assert_eq!(resume, format!("longhaul send --task-id {id} --agent-card http://{} \"<reply>\"", server.address));
    let words: Vec<&str> = resume.split(' ').skip(1).collect();
    let (code, stdout, stderr) = ended(&words);
    assert_eq!((code, field(&stdout, "State")[0]), (0, "TASK_STATE_COMPLETED"), "{stderr}");
    assert_eq!(field(&stdout, "Task")[0], id);
}

#[test]
fn a_task_that_has_ended_takes_no_message_and_no_new_one_is_made() {
    let server = demo();
    let task = document(&server, &["send", "echo"])["task"].clone();
    let id = task["id"].as_str().expect("it has one");
    let (code, error) = failure(&server, &["send", "again", "--task-id", id]);
    assert_eq!((code, &error["code"]), (1, &json!("UnsupportedOperationError")));
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--debug")), "{error}");
    assert_eq!(error["a2aCode"], -32004);
    let listed = document(&server, &["task", "list"]);
    assert_eq!(listed["totalSize"], 1);
}

#[test]
fn who_does_not_wait_has_the_ids_and_waits_later() {
    let server = demo();
    for flag in ["--async", "--return-immediately", "--no-wait"] {
        let task = document(&server, &["send", "slow 1", flag])["task"].clone();
        let id = task["id"].as_str().expect("it has one");
        assert!(task["contextId"].is_string() && task["status"]["state"] != "TASK_STATE_COMPLETED", "{task}");
        let task = document(&server, &["task", "get", id, "--wait", "--poll-interval", "100ms"]);
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_stream_is_one_document_a_line_and_the_last_one_says_how_it_ended() {
    let server = demo();
    let (code, stdout, stderr) = call(&server, &["send", "chunks 5", "--stream", "-o", "json"]);
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert!(lines[0]["task"].is_object());
    assert_eq!(lines.iter().filter(|line| line["artifactUpdate"].is_object()).count(), 5);
    let last = &lines[lines.len() - 1]["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(last["taskId"].is_string() && last["contextId"].is_string());
    let (_, stdout, _) = call(&server, &["send", "msg", "--stream", "-o", "json"]);
    assert!(stdout.starts_with("{\"message\":") && stdout.lines().count() == 1, "{stdout}");
    let (code, stdout, _) = call(&server, &["send", "x", "--task-id", "nobody", "--stream", "-o", "json"]);
    assert!(code == 1 && stdout.starts_with("{\"error\":{\"code\":\"TaskNotFoundError\""), "{stdout}");
}

#[test]
fn a_stream_for_people_ends_with_ids_and_state() {
    let server = demo();
    let (_, stdout, _) = call(&server, &["send", "chunks 2", "--stream"]);
    let tail: Vec<&str> = stdout.lines().rev().take(4).filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(tail, ["Updated", "State", "Context", "Task"], "{stdout}");
    assert!(stdout.contains("Artifact: chunks\nText:\n  chunk 1\n\n"), "{stdout}");
}

#[test]
fn the_time_can_be_over() {
    let server = demo();
    let (code, error) = failure(&server, &["send", "slow 60", "--timeout", "1s"]);
    assert_eq!((code, &error["code"]), (5, &json!("A2ACLI_ERR_TIMEOUT")));
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("longhaul task get ")), "{error}");
}

#[test]
fn a_task_is_canceled_once() {
    let server = demo();
    let task = document(&server, &["send", "slow 60", "--async"])["task"].clone();
    let id = task["id"].as_str().expect("it has one");
    assert_eq!(document(&server, &["task", "cancel", id])["status"]["state"], "TASK_STATE_CANCELED");
    let (code, error) = failure(&server, &["task", "cancel", id]);
    assert_eq!((code, &error["code"]), (1, &json!("TaskNotCancelableError")));
    let (code, stdout, _) = call(&server, &["task", "subscribe", id]);
    assert_eq!((code, field(&stdout, "State")[0]), (0, "TASK_STATE_CANCELED"));
}

#[test]
fn tasks_are_listed_by_page_state_and_context() {
    let server = demo();
    let context = document(&server, &["send", "echo"])["task"]["contextId"].as_str().expect("it has one").to_owned();
    for _ in 0..2 {
        document(&server, &["send", "echo", "--context-id", &context]);
    }
    document(&server, &["send", "input"]);
    let size = |arguments: &[&str]| {
        let listed = document(&server, &[&["task", "list"], arguments].concat());
        (listed["tasks"].as_array().map(Vec::len), listed["totalSize"].clone(), listed["nextPageToken"] == "")
    };
    assert_eq!(size(&["--context-id", &context]), (Some(3), json!(3), true));
    assert_eq!(size(&["--status", "input-required"]), (Some(1), json!(1), true));
    assert_eq!(size(&["--page-size", "3"]), (Some(3), json!(4), false));
    assert_eq!(size(&["--page-size", "1", "--all"]), (Some(4), json!(4), true));
    let (_, stdout, _) = call(&server, &["task", "list", "--all", "--page-size", "2", "-o", "json", "--stream"]);
    let tasks: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert!(tasks.len() == 4 && tasks.iter().all(|task| task["id"].is_string()), "{stdout}");
    let (_, stdout, _) = call(&server, &["task", "list"]);
    assert_eq!((field(&stdout, "Task").len(), field(&stdout, "Total")), (4, vec!["4"]));
}

#[test]
fn parts_arrive_in_their_order_with_their_types() {
    let server = demo();
    let folder = folder();
    let (pdf, data) = (folder.join("report.pdf"), folder.join("data.json"));
    std::fs::write(&pdf, "%PDF").expect("it can be written");
    std::fs::write(&data, "{\"n\": 1}").expect("it can be written");
    let (pdf, data) = (pdf.to_str().expect("it is text"), data.to_str().expect("it is text"));
    let line =
        ["send", "echo", "--file", pdf, "--data", data, "--file", pdf, "--media-type", "image/png", "--text", "-end"];
    let parts = document(&server, &line)["task"]["artifacts"][0]["parts"].clone();
    assert_eq!(parts[0]["text"], "echo");
    assert_eq!((&parts[1]["filename"], &parts[1]["mediaType"]), (&json!("report.pdf"), &json!("application/pdf")));
    assert_eq!(parts[2]["data"], json!({"n": 1}));
    assert_eq!(parts[3]["mediaType"], "image/png");
    assert_eq!(parts[4]["text"], "-end");
    let (_, stdout, _) = call(&server, &line);
    assert!(stdout.contains("File: report.pdf\nMedia type: application/pdf\nSize: 4 bytes\n"), "{stdout}");
    assert!(stdout.contains("Data:\n  {\n    \"n\": 1\n  }\n\n"), "{stdout}");
}

#[test]
fn artifacts_become_files_in_the_folder_that_was_named() {
    let server = demo();
    let folder = folder().join("made");
    let path = folder.to_str().expect("it is text");
    let (code, stdout, stderr) = call(&server, &["send", "chunks 2", "--save", path]);
    assert_eq!(code, 0, "{stderr}");
    let file = folder.join("chunks.txt");
    assert_eq!(field(&stdout, "Saved"), [file.to_str().expect("it is text")]);
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "chunk 1\nchunk 2\n");
    let id = field(&stdout, "Task")[0];
    let told = document(&server, &["task", "download", id, "--dir", path]);
    assert_eq!(told["files"][0]["bytes"], 16);
    assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 2);
    let (code, error) = failure(&server, &["task", "download", id, "--dir", path, "--artifact", "nothing"]);
    assert_eq!((code, &error["code"]), (2, &json!("A2ACLI_ERR_USAGE")));
}

#[test]
fn push_configs_are_made_shown_and_removed() {
    let server = demo();
    let id = document(&server, &["send", "slow 60", "--async"])["task"]["id"].as_str().expect("it has one").to_owned();
    let config = ["task", "push-config"];
    let with = |verb: &str, rest: &[&str]| {
        let line: Vec<&str> = config.iter().copied().chain([verb, id.as_str()]).chain(rest.iter().copied()).collect();
        document(&server, &line)
    };
    let made = with("create", &["https://hooks.example.com/x", "--id", "p1"]);
    assert_eq!((&made["id"], &made["url"]), (&json!("p1"), &json!("https://hooks.example.com/x")));
    assert_eq!(with("get", &["p1"])["taskId"], id.as_str());
    assert_eq!(with("list", &[])["configs"].as_array().map(Vec::len), Some(1));
    assert_eq!(with("delete", &["p1"]), json!({}));
    assert_eq!(with("list", &[])["configs"].as_array().map(Vec::len).unwrap_or_default(), 0);
}

#[test]
fn the_card_is_shown_checked_and_read_from_a_file() {
    let server = demo();
    let card = document(&server, &["card", "get", "--validate"]);
    assert_eq!(card["name"], "Longhaul demo");
    let path = folder().join("card.json");
    std::fs::write(&path, card.to_string()).expect("it can be written");
    let path = path.to_str().expect("it is text");
    for reference in [path.to_owned(), format!("file://{path}"), server.address.clone()] {
        let (code, stdout, stderr) = ended(&["card", "get", "-a", &reference]);
        assert_eq!((code, field(&stdout, "Name")), (0, vec!["Longhaul demo"]), "{reference}: {stderr}");
        assert_eq!(field(&stdout, "Signature"), ["absent"]);
    }
    let (code, stdout, _) = ended(&["send", "echo", "-a", path]);
    assert_eq!((code, field(&stdout, "State")[0]), (0, "TASK_STATE_COMPLETED"));
    let (code, error) = failure(&server, &["card", "get", "--extended"]);
    assert_eq!((code, &error["code"]), (1, &json!("UnsupportedOperationError")));
}

#[test]
fn what_is_exchanged_is_told_without_credentials() {
    let server = demo();
    let secrets = ["--bearer", "s3cret-one", "--svc-param", "x-key:s3cret-two", "--debug", "--verbose"];
    let (code, stdout, stderr) = call(&server, &[&["send", "echo s3cret-one"][..], &secrets].concat());
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("debug: > SendStreamingMessage POST") && stderr.contains("x-key: [redacted]"), "{stderr}");
    assert!(!stderr.contains("s3cret"), "{stderr}");
    assert!(stdout.starts_with("Sent: ") && stdout.contains("Kind: text"), "{stdout}");
}

#[test]
fn a_person_who_interrupts_is_told_how_to_go_on() {
    let server = demo();
    let agent = format!("http://{}", server.address);
    let mut command = longhaul(&["send", "slow 60", "-a", &agent]);
    let (code, _, stderr) = interrupted(&mut command, "longhaul: task ");
    assert_eq!(code, 130);
    assert!(
        stderr.contains("go on with: longhaul task get ") && stderr.contains("LONGHAUL_ERR_INTERRUPTED"),
        "{stderr}"
    );
}

/// Runs a command, and interrupts it as soon as its stderr begins so.
fn interrupted(command: &mut std::process::Command, begin: &str) -> (i32, String, String) {
    use std::io::{BufRead as _, BufReader, Read as _};
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut text = String::new();
    stderr.read_line(&mut text).expect("it says something");
    assert!(text.starts_with(begin), "{text}");
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw).expect("it has an id");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    stderr.read_to_string(&mut text).expect("it is text");
    let output = child.wait_with_output().expect("it ends");
    (output.status.code().expect("it exits"), String::from_utf8(output.stdout).expect("it is text"), text)
}

#[test]
fn a_reader_that_leaves_ends_a_stream() {
    let server = demo();
    let send = format!("\"$0\" send 'burst 500' --stream -o json -a http://{}", server.address);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("{{ {send}; echo $? >&2; }} | head -n 1"), env!("CARGO_BIN_EXE_longhaul")]);
    let (code, stdout, stderr) = end_of(&mut shell);
    assert_eq!((code, stdout.lines().count(), stderr.as_str()), (0, 1, "0\n"), "{stdout}");
}

#[test]
fn a_conversation_by_pipe_takes_its_turns_from_stdin_and_asks_nobody() {
    let server = demo();
    let line = format!("printf 'echo one\\n\\necho two\\n' | \"$0\" chat -a http://{} -o json", server.address);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_longhaul")]);
    let (code, stdout, stderr) = end_of(&mut shell);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let contexts: Vec<&Value> =
        events.iter().filter_map(|event| event.get("task")).map(|task| &task["contextId"]).collect();
    assert!(contexts.len() == 2 && contexts[0] == contexts[1], "{stdout}");
    // Nothing to read is nothing to wait for.
    let (code, stdout, _) = call(&server, &["chat"]);
    assert_eq!((code, stdout.as_str()), (0, ""));
}

#[test]
fn many_tasks_are_watched_until_all_have_ended() {
    let server = demo();
    let begin = |words: &str| {
        document(&server, &["send", words, "--async"])["task"]["id"].as_str().expect("it has one").to_owned()
    };
    let (slow, quick) = (begin("slow 1"), begin("echo"));
    let (code, stdout, stderr) = call(&server, &["watch", &slow, &quick]);
    assert_eq!(code, 0, "{stderr}");
    for id in [&slow, &quick] {
        assert!(stdout.contains(&format!("Task: {id}\n")), "{stdout}");
    }
    assert_eq!(field(&stdout, "State").iter().filter(|state| **state == "TASK_STATE_COMPLETED").count(), 2);
    begin("slow 1");
    let (code, stdout, stderr) = call(&server, &["watch", "--all", "-o", "json"]);
    let last: Value = serde_json::from_str(stdout.lines().last().expect("there is one")).expect("it is JSON");
    assert_eq!((code, &last["statusUpdate"]["status"]["state"]), (0, &json!("TASK_STATE_COMPLETED")), "{stderr}");
    let (code, stdout, stderr) = call(&server, &["watch", &quick, "nobody"]);
    assert!(code == 1 && stdout.contains(&quick) && stderr.contains("TaskNotFoundError"), "{stdout}{stderr}");
}

#[test]
fn an_agent_that_keeps_to_the_protocol_passes_by_each_binding() {
    let server = demo();
    let report = document(&server, &["conformance", "--text", "echo"]);
    assert_eq!((&report["failed"], &report["skipped"]), (&json!(0), &json!(0)), "{report}");
    assert_eq!(report["passed"], 1 + 3 * 8);
    let (code, stdout, _) = call(&server, &["conformance"]);
    assert!(code == 0 && field(&stdout, "Pass").len() == 25, "{stdout}");
}
