//! Runs the binary and speaks with it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

pub const PATIENCE: Duration = Duration::from_secs(30);

/// A folder of the test's own.
pub fn folder() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("binary-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

pub fn longhaul(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(arguments).current_dir(folder()).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LONGHAUL_") || name == "RUST_LOG") {
        command.env_remove(name);
    }
    command
}

pub fn ended(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = longhaul(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    (status.code().expect("it exits"), text(stdout), text(stderr))
}

/// A running server, killed when dropped.
pub struct Server {
    pub child: Child,
    /// Its log, line by line.
    log: Receiver<String>,
    pub address: String,
    pub first_line: String,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child =
            longhaul(arguments).args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (lines, log) = channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        let mut server = Self { child, log, address: String::new(), first_line: String::new() };
        let line = server.line_with("http://127.0.0.1:");
        let rest = line.split("http://").nth(1).expect("it names its address");
        server.address = rest.split([' ', '/', '"']).next().expect("it names its address").to_owned();
        server.first_line = line;
        server
    }

    /// Reads the log up to a line that holds `text`.
    pub fn line_with(&mut self, text: &str) -> String {
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

    pub fn ask(&self, head: &str, body: &str) -> Value {
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

    pub fn send(&self, text: &str, configuration: &Value) -> Value {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message, "configuration": configuration}});
        self.ask("POST /", &body.to_string())["result"]["task"].clone()
    }

    pub fn task(&self, id: &str) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": id}});
        self.ask("POST /", &body.to_string())
    }

    /// Reads a task until it is in this state.
    pub fn until(&self, id: &str, state: &str) -> Value {
        let state = format!("TASK_STATE_{state}");
        self.until_it(id, |task| task["status"]["state"] == state)
    }

    /// Reads a task until it is as wanted.
    #[expect(
        clippy::disallowed_methods,
        reason = "another process is waited for, and nothing here has a clock to hand in"
    )]
    pub fn until_it(&self, id: &str, is: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let answer = self.task(id);
            if is(&answer["result"]) {
                return answer["result"].clone();
            }
            assert!(begun.elapsed() < PATIENCE, "it does not come to that: {answer}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("it has an id");
        kill_process(pid, signal).expect("it is there");
    }

    pub fn end(mut self) -> i32 {
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
