//! The binary as its users see it: what it prints, what it answers, how it ends.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which fail by panicking"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// A folder of the test's own.
fn folder() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("binary-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

fn longhaul(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(arguments).current_dir(folder()).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LONGHAUL_") || name == "RUST_LOG") {
        command.env_remove(name);
    }
    command
}

fn ended(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = longhaul(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    (status.code().expect("it exits"), text(stdout), text(stderr))
}

/// A running server, killed when dropped.
struct Server {
    child: Child,
    /// Its log, line by line.
    log: Receiver<String>,
    address: String,
    first_line: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut child =
            longhaul(arguments).args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (lines, log) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        let mut server = Self { child, log, address: String::new(), first_line: String::new() };
        let line = server.line_with("http://127.0.0.1:");
        let rest = line.split("http://").nth(1).expect("it names its address");
        server.address = rest.split([' ', '/', '"']).next().expect("it names its address").to_owned();
        server.first_line = line;
        server
    }

    /// Reads the log up to a line that holds `text`.
    fn line_with(&mut self, text: &str) -> String {
        let mut all = String::new();
        loop {
            let line = self
                .log
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("it never said {text:?} ({error}):\n{all}"));
            if line.contains(text) {
                return line;
            }
            all.push_str(&line);
            all.push('\n');
        }
    }

    fn ask(&self, head: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("it has a body");
        let start = body.find('{').expect("it is JSON");
        serde_json::Deserializer::from_str(&body[start..]).into_iter().next().expect("it is JSON").expect("it is JSON")
    }

    fn send(&self, text: &str, configuration: &Value) -> Value {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message, "configuration": configuration}});
        self.ask("POST /", &body.to_string())["result"]["task"].clone()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("it has an id");
        kill_process(pid, signal).expect("it is there");
    }

    fn end(mut self) -> i32 {
        // Its log ends with the process.
        let end = loop {
            if let Err(end) = self.log.recv_timeout(PATIENCE) {
                break end;
            }
        };
        assert_eq!(end, RecvTimeoutError::Disconnected, "it does not end");
        self.child.wait().expect("it ends").code().expect("it exits by itself")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_command_is_served_and_ends_in_order() {
    let server = Server::start(&["serve", "--exec", "tr a-z A-Z", "--log", "warn"]);
    let url = format!("http://{}", server.address);
    assert_eq!(server.first_line, format!("longhaul: listening on {url} (card: {url}/.well-known/agent-card.json)"));
    let card = server.ask("GET /.well-known/agent-card.json", "");
    assert_eq!(card["name"], "tr");
    let bindings: Vec<&Value> =
        card["supportedInterfaces"].as_array().expect("a list").iter().map(|one| &one["protocolBinding"]).collect();
    assert_eq!(bindings, ["JSONRPC", "HTTP+JSON", "GRPC"]);
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
fn a_second_server_on_the_same_folder_is_refused_in_plain_words() {
    let data = folder();
    let data = data.to_str().expect("it is text");
    let _server = Server::start(&["demo-server", "--data", data]);
    let (code, _, stderr) = ended(&["demo-server", "--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with(&format!("longhaul: cannot open the store in {data}: ")), "{stderr}");
    assert!(stderr.contains("hint: stop the other server"), "{stderr}");
}

#[test]
fn what_is_wrong_is_told_with_the_next_step() {
    #[rustfmt::skip]
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["serve"], 2, "there is no agent to serve", "hint: name one: longhaul serve --exec"),
        (&["serve", "--exec", "a", "--exec-jsonl", "b"], 2, "cannot be used with", ""),
        (&["serve", "--exce", "a"], 2, "unexpected argument", ""),
        (&["demo-server", "--store", "postgres://db"], 2, "PostgreSQL is not supported in this version", "hint: change --store"),
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
