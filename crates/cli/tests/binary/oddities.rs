//! The client's commands towards agents that are not like ours.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::scripted::Scripted;
use crate::support::{ended, folder};

fn task(state: &str) -> Value {
    json!({"id": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}})
}

fn sent(state: &str) -> Value {
    json!({"task": task(state)})
}

fn not_found() -> Value {
    json!({"code": -32001, "message": "no such task"})
}

fn call(agent: &Scripted, arguments: &[&str]) -> (i32, String, String) {
    ended(&[arguments, &["-a", &agent.url()]].concat())
}

#[test]
fn an_agent_without_streams_is_asked_until_the_task_rests() {
    let agent = Scripted::new(json!({}), |method, _, before| match (method, before) {
        ("SendMessage", _) => Ok(sent("SUBMITTED")),
        // What nobody knows is no end.
        ("GetTask", 0) => Ok(task("UNSPECIFIED")),
        ("GetTask", 1) => Ok(task("WORKING")),
        ("GetTask", _) => Ok(task("COMPLETED")),
        _ => Err(not_found()),
    });
    for line in [&["send", "hi"][..], &["task", "get", "t", "--wait"]] {
        let (code, stdout, stderr) = call(&agent, &[line, &["--poll-interval", "100ms"]].concat());
        assert!(code == 0 && stdout.contains("State: TASK_STATE_COMPLETED\n"), "{stdout}{stderr}");
    }
    let asked = &agent.asked("SendMessage")[0];
    assert!(asked.head.to_ascii_lowercase().contains("a2a-version: 1.0"), "{}", asked.head);
    assert!(agent.asked("SendStreamingMessage").is_empty());
}

#[test]
fn a_wait_for_what_nobody_knows_ends_with_its_time() {
    let agent = Scripted::new(json!({}), |_, _, _| Ok(task("UNSPECIFIED")));
    let (code, stdout, _) = call(&agent, &["task", "get", "t", "--wait", "--timeout", "1s", "-o", "json"]);
    assert!(code == 5 && stdout.contains("A2ACLI_ERR_TIMEOUT"), "{stdout}");
    assert!(agent.asked("GetTask").len() < 5, "it is asked without a pause");
}

#[test]
fn a_stream_that_the_agent_does_not_have_is_one_of_answers() {
    let agent = Scripted::new(json!({}), |_, _, _| Ok(sent("COMPLETED")));
    let (code, stdout, stderr) = call(&agent, &["send", "hi", "--stream", "-o", "json"]);
    assert_eq!(code, 0, "{stderr}");
    let last: Value = serde_json::from_str(stdout.lines().last().expect("there is one")).expect("it is JSON");
    assert_eq!(last["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn credentials_go_where_the_card_says_and_the_tenant_with_them() {
    let card = json!({
        "supportedInterfaces": [{"url": "http://127.0.0.1:PORT/rpc", "protocolBinding": "JSONRPC", "tenant": "acme", "protocolVersion": "1.0"}],
        "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
        "securityRequirements": [{"schemes": {"key": {}}}],
    });
    let agent = Scripted::new(card, |_, _, _| Ok(task("COMPLETED")));
    let line = ["task", "get", "t", "--api-key", "s3cret", "--svc-param", "x-trace: a:b"];
    let (code, _, stderr) = call(&agent, &line);
    assert_eq!(code, 0, "{stderr}");
    let asked = agent.asked("GetTask").remove(0);
    let head = asked.head.to_ascii_lowercase();
    assert!(head.contains("x-key: s3cret\r\n") && head.contains("x-trace: a:b\r\n"), "{head}");
    assert_eq!(asked.params["tenant"], "acme");
}

#[test]
fn metadata_the_message_id_and_modes_are_sent_as_they_were_given() {
    let agent = Scripted::new(json!({}), |_, _, _| {
        Ok(json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}))
    });
    let line = [
        "send",
        "hi",
        "--metadata",
        r#"{"k": [1]}"#,
        "--message-id",
        "mine",
        "--accept",
        "text/plain",
        "--accept",
        "a/b",
    ];
    let (code, stdout, stderr) = call(&agent, &line);
    assert_eq!((code, stdout.as_str()), (0, "Message ID: m\nRole: ROLE_AGENT\nText:\n  hi\n\n"), "{stderr}");
    let params = agent.asked("SendMessage").remove(0).params;
    assert_eq!(params["metadata"], json!({"k": [1]}));
    assert_eq!(params["message"]["messageId"], "mine");
    assert_eq!(params["configuration"]["acceptedOutputModes"], json!(["text/plain", "a/b"]));
    assert_eq!((&params["message"]["taskId"], &params["message"]["contextId"]), (&Value::Null, &Value::Null));
    let (code, _, stderr) = call(&agent, &["send", "hi", "--metadata", "[1]"]);
    assert!(code == 2 && stderr.contains("--metadata: must be a JSON object"), "{stderr}");
}

#[test]
fn a_hostile_agent_writes_nothing_to_the_terminal_and_nothing_outside_the_folder() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}31m\nState: TASK_STATE_COMPLETED";
    let agent = Scripted::new(json!({"name": evil, "description": evil}), move |_, _, _| {
        Ok(json!({
            "id": "t", "contextId": evil,
            "status": {"state": "TASK_STATE_FAILED", "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": evil}]}},
            "artifacts": [{"artifactId": evil, "name": "../../evil", "parts": [
                {"raw": "aGk=", "filename": "../../../escaped", "mediaType": evil}, {"text": evil}, {"data": evil}, {"url": evil}]}],
        }))
    });
    let inner = folder().join("inner");
    let path = inner.to_str().expect("it is text");
    for line in [
        &["task", "get", "t"][..],
        &["task", "get", "t", "--verbose", "--debug"],
        &["task", "get", "t", "-o", "json"],
        &["card", "get"],
        &["task", "download", "t", "--dir", path],
    ] {
        let (code, stdout, stderr) = call(&agent, line);
        assert_eq!(code, 0, "{stderr}");
        for text in [&stdout, &stderr] {
            assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{line:?} writes {text:?}");
        }
        assert!(!stdout.lines().any(|line| line == "State: TASK_STATE_COMPLETED"), "{stdout}");
    }
    let mut names: Vec<_> =
        std::fs::read_dir(&inner).expect("it is there").map(|entry| entry.expect("it is").file_name()).collect();
    names.sort();
    assert_eq!(names, ["escaped", "evil.json", "evil.txt"]);
    assert_eq!(std::fs::read_dir(inner.parent().expect("it has one")).expect("it is there").count(), 1);
}

#[test]
fn what_is_wrong_with_a_card_is_told() {
    let agent = Scripted::new(json!({"name": "", "skills": [{"id": "s"}]}), |_, _, _| Err(not_found()));
    let (code, stdout, _) = call(&agent, &["card", "get", "--validate", "-o", "json"]);
    assert!(code == 1 && stdout.contains("A2ACLI_ERR_CARD_INVALID") && stdout.contains("skills[0]"), "{stdout}");
    let later = json!({"supportedInterfaces": [{"url": "http://127.0.0.1:PORT/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "2.0"}]});
    let agent = Scripted::new(later, |_, _, _| Err(not_found()));
    let (code, stdout, _) = call(&agent, &["send", "hi", "-o", "json"]);
    assert!(code == 1 && stdout.contains("LONGHAUL_ERR_NO_INTERFACE") && stdout.contains("2.0"), "{stdout}");
}

#[test]
fn an_extended_card_is_only_asked_for_with_a_scheme_of_the_public_one() {
    let offered = json!({"capabilities": {"extendedAgentCard": true}});
    let agent = Scripted::new(offered.clone(), |_, _, _| Err(not_found()));
    let (code, stdout, _) = call(&agent, &["card", "get", "--extended", "--bearer", "s3cret", "-o", "json"]);
    assert!(code == 1 && stdout.contains("LONGHAUL_ERR_FORBIDDEN"), "{stdout}");
    assert!(agent.asked("GetExtendedAgentCard").is_empty());
    let mut card = offered;
    card["securitySchemes"] = json!({"login": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
    let agent = Scripted::new(card, |_, _, _| Ok(json!({"name": "More", "supportedInterfaces": []})));
    let (code, stdout, stderr) = call(&agent, &["card", "get", "--extended", "--bearer", "s3cret"]);
    assert!(code == 0 && stdout.starts_with("Name: More\n"), "{stdout}{stderr}");
    assert!(agent.asked("GetExtendedAgentCard")[0].head.contains("Bearer s3cret"));
}

#[test]
fn an_agent_that_can_not_be_reached_is_no_fault_of_the_command_line() {
    for (line, code, name) in [
        (&["send", "hi", "-a", "http://127.0.0.1:1"][..], 3, "A2ACLI_ERR_UNREACHABLE"),
        (&["card", "get", "-a", "http://nowhere.invalid"], 3, "A2ACLI_ERR_UNREACHABLE"),
        (&["card", "get", "-a", "/no/such/card.json"], 3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        (&["card", "get", "-a", "http://["], 3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        (&["card", "get"], 2, "A2ACLI_ERR_USAGE"),
        (&["send", "--media-type", "a/b", "-a", "x"], 2, "A2ACLI_ERR_USAGE"),
        (&["send", "--file", "/no/such/file", "-a", "x"], 2, "A2ACLI_ERR_USAGE"),
        (&["send", "hi", "--timeout", "soon", "-a", "x"], 2, "A2ACLI_ERR_USAGE"),
        (&["send", "hi", "--nonsense"], 2, "A2ACLI_ERR_USAGE"),
        (&["send", "hi", "--ca", "/no/such/file", "-a", "x"], 2, "A2ACLI_ERR_USAGE"),
        (&["task", "frobnicate"], 2, "A2ACLI_ERR_USAGE"),
    ] {
        let (ended_with, stdout, stderr) = ended(&[line, &["-o", "json"]].concat());
        let envelope: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{line:?}: {error}: {stdout}{stderr}"));
        assert_eq!((ended_with, envelope["error"]["code"].as_str()), (code, Some(name)), "{line:?}: {stdout}");
        let (ended_with, stdout, stderr) = ended(line);
        assert!(ended_with == code && stdout.is_empty() && !stderr.is_empty(), "{line:?}: {stdout}");
    }
}

#[test]
fn a_task_that_is_polled_and_gone_is_told() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let agent = Scripted::new(json!({}), |_, _, _| match ASKED.fetch_add(1, Ordering::Relaxed) {
        0 => Ok(task("WORKING")),
        _ => Err(not_found()),
    });
    let (code, stdout, _) = call(&agent, &["task", "get", "t", "--wait", "--poll-interval", "100ms", "-o", "json"]);
    assert!(code == 1 && stdout.contains("TaskNotFoundError"), "{stdout}");
}

#[test]
fn an_agent_that_does_not_keep_to_the_protocol_is_told_so() {
    let agent = Scripted::new(json!({"name": ""}), |method, _, _| match method {
        "SendMessage" => Ok(sent("COMPLETED")),
        "ListTasks" => Ok(json!({"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0})),
        "CancelTask" => Err(json!({"code": -32603, "message": "oh"})),
        _ => Ok(task("COMPLETED")),
    });
    let (code, stdout, stderr) = call(&agent, &["conformance", "-o", "json"]);
    let report: Value = serde_json::from_str(&stdout).expect("it is one document");
    assert!(code == 1 && stderr.contains("LONGHAUL_ERR_NOT_CONFORMANT"), "{stderr}");
    let failed: Vec<&str> = report["checks"]
        .as_array()
        .expect("it is a list")
        .iter()
        .filter(|check| check["result"] == "fail")
        .map(|check| check["check"].as_str().expect("it has a name"))
        .collect();
    assert!(failed.contains(&"agent card is valid") && failed.contains(&"task is listed"), "{failed:?}");
    assert!(failed.contains(&"unknown task is not canceled"), "{failed:?}");
    assert!(!failed.contains(&"message is answered"), "{report}");
}

#[test]
fn a_card_leads_inside_only_when_it_is_trusted() {
    let leading_to = |url: &str| {
        let interface = json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
        Scripted::new(json!({ "supportedInterfaces": interface }), |_, _, _| Err(not_found()))
    };
    let line = ["task", "get", "t", "-o", "json", "--bearer", "s3cret", "--timeout", "1s"];
    let inside = leading_to("http://10.1.2.3:9/rpc");
    let (code, stdout, _) = call(&inside, &line);
    assert!(
        code == 1 && stdout.contains("LONGHAUL_ERR_NO_INTERFACE") && stdout.contains("--any-interface"),
        "{stdout}"
    );
    let trusting = [&line[..], &["--any-interface"]].concat();
    let (_, stdout, _) = call(&inside, &trusting);
    assert!(!stdout.contains("LONGHAUL_ERR_NO_INTERFACE"), "{stdout}");
    // Where clouds tell machines their secrets nothing leads, trusted or not.
    let (code, stdout, _) = call(&leading_to("http://169.254.169.254/rpc"), &trusting);
    assert!(code == 1 && stdout.contains("LONGHAUL_ERR_NO_INTERFACE"), "{stdout}");
}

#[test]
fn a_credential_that_an_agent_repeats_is_not_shown() {
    let agent =
        Scripted::new(json!({}), |_, _, _| Err(json!({"code": -32001, "message": "no task for Bearer s3cret"})));
    for line in [&["task", "get", "t"][..], &["task", "get", "t", "--debug"], &["task", "get", "t", "-o", "json"]] {
        let (code, stdout, stderr) = call(&agent, &[line, &["--bearer", "s3cret"]].concat());
        assert!(code == 1 && !stdout.contains("s3cret") && !stderr.contains("s3cret"), "{stdout}{stderr}");
        assert!(format!("{stdout}{stderr}").contains("no task for Bearer [redacted]"), "{stdout}{stderr}");
    }
}
