//! Operators: through the server that holds the store, and without one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use longhaul_pgtest::Database;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Server, ended, folder, longhaul, toml};

/// Asks for input, waits for an authorization, works until its server is gone, or ends, as the message says.
const AGENT: &str = r#"read -r turn
say() { printf '{"type":"%s","text":"%s"}\n' "$1" "$2"; }
case $turn in
    *'"resumed":true'*) say complete authorized ;;
    *'"checkpoint":'*) say complete "went on" ;;
    *'"text":"ask"'*) say input_required "what?" ;;
    *'"text":"log in"'*) say auth_required "log in" ;;
    *'"text":"work"'*) echo '{"type":"checkpoint","data":[1]}'; say progress ready; read -r line ;;
    *) say complete done ;;
esac"#;

/// A server of that agent on a store of its own.
struct Scene {
    server: Server,
    /// `--data` or `--store`, and what it says.
    place: (&'static str, String),
    /// Dropped last, if the store is a database.
    _database: Option<Database>,
}

impl Scene {
    fn new() -> Self {
        Self::in_folder(&folder())
    }

    fn in_folder(data: &Path) -> Self {
        Self::on(("--data", data.to_str().expect("it is text").to_owned()), None)
    }

    fn on_database() -> Self {
        let database = Database::fresh().expect("there is PostgreSQL");
        Self::on(("--store", database.url().to_owned()), Some(database))
    }

    fn on(place: (&'static str, String), database: Option<Database>) -> Self {
        Self { server: Self::serve(&place), place, _database: database }
    }

    /// On a database, the leases of a server that was killed run out by themselves.
    fn serve((flag, value): &(&'static str, String)) -> Server {
        let config = toml("agent.lease_duration = '10s'");
        Server::start(&["serve", "--exec-jsonl", AGENT, "--config", &config, flag, value])
    }

    /// Sends a message and waits until its task is in a state.
    fn task(&self, text: &str, state: &str) -> String {
        let task = self.server.send(text, &json!({"returnImmediately": true}));
        let id = task["id"].as_str().expect("it has an id").to_owned();
        self.server.until(&id, state);
        id
    }

    fn command(&self, arguments: &[&str]) -> (i32, String, String) {
        ended(&[arguments, &[self.place.0, &self.place.1]].concat())
    }

    fn socket(&self) -> PathBuf {
        Path::new(&self.place.1).join("admin.sock")
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn a_task_that_waits_for_an_authorization_is_resumed() {
    resumes(&Scene::new(), "the task goes on");
}

#[test]
fn a_task_in_a_database_is_resumed_beside_its_server() {
    resumes(&Scene::on_database(), "the task goes on with the next server that has a free worker");
}

fn resumes(scene: &Scene, note: &str) {
    let (waits, asks) = (scene.task("log in", "AUTH_REQUIRED"), scene.task("ask", "INPUT_REQUIRED"));
    let resumed = scene.command(&["resume", &waits]);
    assert_eq!(resumed, (0, format!("{waits}\n"), format!("longhaul: {note}\n")));
    let done = scene.server.until(&waits, "COMPLETED");
    assert_eq!(done["status"]["message"]["parts"][0]["text"], "authorized");

    let (code, stdout, stderr) = scene.command(&["resume", &waits]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("has ended"), "{stderr}");
    let (code, _, stderr) = scene.command(&["resume", &asks]);
    assert!(code == 1 && stderr.contains("hint: only a task in AUTH_REQUIRED can be resumed"), "{stderr}");
    let (code, _, stderr) = scene.command(&["resume", "nobody"]);
    assert!(code == 1 && stderr.starts_with("longhaul: there is no task \"nobody\"\nhint: "), "{stderr}");
}

#[test]
fn stale_tasks_are_shown_and_given_up() {
    reclaims(&Scene::new());
}

#[test]
fn stale_tasks_in_a_database_are_shown_and_given_up_beside_its_server() {
    reclaims(&Scene::on_database());
}

fn reclaims(scene: &Scene) {
    let (asks, waits) = (scene.task("ask", "INPUT_REQUIRED"), scene.task("log in", "AUTH_REQUIRED"));
    let (works, done) = (scene.task("work", "WORKING"), scene.task("x", "COMPLETED"));
    let young = scene.command(&["reclaim", "--older-than", "1h"]);
    assert_eq!(young, (0, String::new(), "longhaul: 0 tasks given up\n".to_owned()));

    let (code, stdout, stderr) = scene.command(&["reclaim", "--older-than", "0s", "--dry-run", "--output", "json"]);
    assert_eq!((code, stderr.as_str()), (0, "longhaul: 2 tasks would be given up; this was a dry run\n"));
    let rows = json(&stdout);
    let before = scene.server.task(&asks)["result"].clone();
    let wanted = json!({
        "taskId": asks, "contextId": before["contextId"], "state": "TASK_STATE_INPUT_REQUIRED", "since": before["status"]["timestamp"],
        "why": "given up as stale: no input came for more than 0 s",
    });
    assert_eq!((&rows[0], &rows[1]["taskId"], rows.as_array().map(Vec::len)), (&wanted, &json!(waits), Some(2)));
    assert_eq!(before["status"]["state"], "TASK_STATE_INPUT_REQUIRED");

    let (code, stdout, stderr) = scene.command(&["reclaim", "--older-than", "0s", "--state", "input_required,working"]);
    assert_eq!((code, stderr.as_str()), (0, "longhaul: 1 task given up\n"));
    let lines: Vec<Vec<&str>> = stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["TASK", "CONTEXT", "STATE", "SINCE", "WHY"]);
    assert_eq!((lines.len(), &lines[1][..1], lines[1][2]), (2, &[asks.as_str()][..], "INPUT_REQUIRED"));
    let failed = scene.server.until(&asks, "FAILED");
    assert_eq!(failed["status"]["message"]["parts"][0]["text"], wanted["why"]);
    // Nobody's lease and nobody's end was touched.
    for (id, state) in [(&waits, "AUTH_REQUIRED"), (&works, "WORKING"), (&done, "COMPLETED")] {
        scene.server.until(id, state);
    }
}

#[test]
fn ended_tasks_are_purged_by_state() {
    purges(&Scene::new());
}

#[test]
fn ended_tasks_in_a_database_are_purged_beside_its_server() {
    purges(&Scene::on_database());
}

fn purges(scene: &Scene) {
    let (done, asks) = (scene.task("x", "COMPLETED"), scene.task("ask", "INPUT_REQUIRED"));
    assert_eq!(scene.command(&["purge", "--older-than", "1h"]).2, "longhaul: 0 tasks removed\n");
    let failed = scene.command(&["purge", "--older-than", "0s", "--state", "failed", "--output", "json"]);
    assert_eq!(json(&failed.1), json!([{"state": "TASK_STATE_FAILED", "removed": 0}]));
    let (code, stdout, stderr) = scene.command(&["purge", "--older-than", "0s"]);
    assert_eq!((code, stderr.as_str()), (0, "longhaul: 1 task removed\n"));
    let rows = ["STATE      REMOVED", "COMPLETED  1", "FAILED     0", "CANCELED   0", "REJECTED   0"];
    assert_eq!(stdout.lines().collect::<Vec<_>>(), rows);
    let gone = scene.server.task(&done);
    assert_eq!(gone["error"]["code"], -32001, "{gone}");
    scene.server.until(&asks, "INPUT_REQUIRED");
}

#[test]
fn without_a_server_the_store_itself_is_worked_on() {
    let scene = works_without_a_server(Scene::new(), "the task goes on when a server is started");
    assert!(scene.socket().exists());
}

#[test]
fn without_a_server_its_database_is_worked_on() {
    works_without_a_server(Scene::on_database(), "the task goes on with the next server that has a free worker");
}

fn works_without_a_server(mut scene: Scene, note: &str) -> Scene {
    let (asks, waits) = (scene.task("ask", "INPUT_REQUIRED"), scene.task("log in", "AUTH_REQUIRED"));
    let works = scene.task("work", "WORKING");
    scene.server.until_it(&works, |task| task["status"]["message"]["parts"][0]["text"] == "ready");
    scene.server.child.kill().expect("it is there");
    scene.server.child.wait().expect("it ends");
    assert_eq!(scene.socket().exists(), scene.place.0 == "--data", "nobody could remove it");

    // The lease of the turn that was cut off is still alive.
    let (code, stdout, stderr) = scene.command(&["reclaim", "--older-than", "0s", "--state", "input_required,working"]);
    assert_eq!((code, stderr.as_str()), (0, "longhaul: 1 task given up\n"));
    assert!(stdout.contains(&asks) && !stdout.contains(&works), "{stdout}");
    let (code, stdout, stderr) = scene.command(&["resume", &waits, "--output", "json"]);
    assert_eq!((code, stderr), (0, format!("longhaul: {note}\n")));
    assert_eq!(json(&stdout), json!({"taskId": waits}));

    scene.server = Scene::serve(&scene.place);
    assert_eq!(scene.command(&["purge", "--older-than", "1h"]).0, 0);
    scene.server.until(&asks, "FAILED");
    scene.server.until(&waits, "COMPLETED");
    // The second attempt was given the first one's checkpoint.
    let went_on = scene.server.until(&works, "COMPLETED");
    assert_eq!(went_on["status"]["message"]["parts"][0]["text"], "went on");
    scene
}

#[test]
fn a_holder_that_does_not_answer_is_named_with_the_next_step() {
    let scene = Scene::new();
    scene.server.signal(Signal::STOP);
    let (code, stdout, stderr) = scene.command(&["reclaim", "--older-than", "1h"]);
    scene.server.signal(Signal::CONT);
    let (pid, data) = (scene.server.child.id(), &scene.place.1);
    assert_eq!((code, stdout.as_str()), (1, ""));
    let wanted = format!(
        "longhaul: process {pid} holds the store in {data}, and does not answer at {data}/admin.sock: no answer came within 5 s\n\
         hint: wait until it answers, or end it (kill {pid}); then run the command again\n"
    );
    assert_eq!(stderr, wanted);
    assert_eq!(scene.command(&["reclaim", "--older-than", "1h"]).0, 0);
}

#[test]
fn the_socket_is_for_the_servers_user_alone_and_goes_with_the_server() {
    let scene = Scene::new();
    let mode = std::fs::metadata(scene.socket()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ask = |line: &[u8]| {
        let mut stream = UnixStream::connect(scene.socket()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        // The server may have closed already.
        let _ = stream.write_all(line).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = String::new();
        let _ = BufReader::new(stream).read_line(&mut answer);
        answer
    };
    let refused = |line: &[u8]| json(&ask(line))["answer"]["message"].as_str().expect("it is refused").to_owned();
    assert_eq!(refused(b"{\"version\":9,\"x\":1}\n"), "the server speaks version 1 to operators, not 9");
    assert_eq!(refused(b"hello\n"), "the request has no version");
    assert!(refused(b"{\"version\":1,\"operation\":{\"type\":\"drop\"}}\n").starts_with("the request is not valid: "));
    let states =
        b"{\"version\":1,\"operation\":{\"type\":\"purge\",\"olderThanMs\":0,\"states\":[\"TASK_STATE_WORKING\"]}}\n";
    assert!(refused(states).starts_with("WORKING is not terminal"));
    assert_eq!(ask(b"{\"version\":1,\"oper"), "");
    assert_eq!(ask(&vec![b' '; 1024 * 1024]), "");
    assert_eq!(
        json(&ask(b"{\"version\":1,\"operation\":{\"type\":\"hello\"}}\n"))["answer"]["pid"],
        scene.server.child.id()
    );

    scene.server.signal(Signal::TERM);
    let socket = scene.socket();
    assert_eq!(scene.server.end(), 0);
    assert!(!socket.exists());
}

#[test]
fn a_long_folder_name_is_no_hindrance() {
    let data = folder().join("x".repeat(200));
    let scene = Scene::in_folder(&data);
    assert_eq!(scene.command(&["purge", "--older-than", "1h"]).2, "longhaul: 0 tasks removed\n");
    assert!(scene.socket().exists());
}

#[test]
fn wrong_commands_are_told_so_and_make_nothing() {
    let nowhere = folder().join("nowhere");
    let data = nowhere.to_str().expect("it is text");
    let (code, _, stderr) = ended(&["reclaim", "--older-than", "1h", "--data", data]);
    assert_eq!(code, 1);
    assert!(stderr.contains("longhaul.db") && stderr.contains("--data"), "{stderr}");
    assert!(!nowhere.exists());
    #[rustfmt::skip]
    let cases: &[(&[&str], &str)] = &[
        (&["reclaim"], "--older-than <TIME>"),
        (&["reclaim", "--older-than", "1"], "write a whole number and its unit"),
        (&["reclaim", "--older-than", "1h", "--state", "waiting"], "it is one of submitted, working"),
        (&["reclaim", "--older-than", "1h", "--state", "working,completed"], "longhaul purge removes them"),
        (&["purge", "--older-than", "1h", "--state", "working"], "longhaul reclaim gives them up"),
        (&["purge", "--older-than", "1h", "--output", "xml"], "text, json"),
        (&["resume"], "<TASK>"),
    ];
    for (arguments, wanted) in cases {
        let (code, stdout, stderr) = ended(arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
    let memory = longhaul(&["purge", "--older-than", "1h"]).env("LONGHAUL_STORE", "memory").output().expect("it runs");
    assert_eq!(memory.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&memory.stderr).contains("only its own server can reach"));
}
