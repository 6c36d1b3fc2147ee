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

/// A configuration file with that text in it.
pub fn toml(text: &str) -> String {
    let path = folder().join("settings.toml");
    std::fs::write(&path, text).expect("it can be written");
    path.to_str().expect("it is text").to_owned()
}

pub fn longhaul(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(arguments).current_dir(folder()).stdin(Stdio::null());
    let ours = ["LONGHAUL_", "A2ACLI_", "PG"];
    let heard = |name: &str| ours.iter().any(|prefix| name.starts_with(prefix)) || name == "RUST_LOG";
    for (name, _) in std::env::vars().filter(|(name, _)| heard(name)) {
        command.env_remove(name);
    }
    command
}

pub fn ended(arguments: &[&str]) -> (i32, String, String) {
    end_of(&mut longhaul(arguments))
}

/// Runs a command to its end: its exit code, stdout and stderr.
pub fn end_of(command: &mut Command) -> (i32, String, String) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let pid = pid_of(&child);
    let (done, ended) = channel::<()>();
    let watch = thread::spawn(move || {
        let late = ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
        late && kill_process(pid, Signal::KILL).is_ok()
    });
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    drop(done);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!watch.join().expect("it watches"), "{command:?} does not end by itself: {stderr}");
    (status.code().expect("it exits"), stdout, stderr)
}

fn pid_of(child: &Child) -> Pid {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it has an id")
}

/// Asks again and again until it is so; what it is instead is told when it takes too long.
#[expect(clippy::disallowed_methods, reason = "another process is waited for, and nothing here has a clock to hand in")]
pub fn poll<T>(ask: impl Fn() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match ask() {
            Ok(so) => return so,
            Err(instead) => assert!(begun.elapsed() < PATIENCE, "{instead}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
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
        Self::launch(&mut longhaul(arguments)).listening()
    }

    /// Starts one that may have to wait before it listens.
    pub fn launch(command: &mut Command) -> Self {
        let mut child = command.args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (lines, log) = channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        Self { child, log, address: String::new(), first_line: String::new() }
    }

    /// Waits until it listens.
    pub fn listening(mut self) -> Self {
        self.listens();
        self
    }

    /// Waits until it listens, and answers with its log until then.
    pub fn listens(&mut self) -> String {
        let log = self.log_with("http://127.0.0.1:");
        let line = log.lines().last().expect("it said something").to_owned();
        let rest = line.split("http://").nth(1).expect("it names its address");
        self.address = rest.split([' ', '/', '"']).next().expect("it names its address").to_owned();
        self.first_line = line;
        log
    }

    /// Reads the log up to a line that holds `text`.
    pub fn line_with(&mut self, text: &str) -> String {
        self.log_with(text).lines().last().expect("it said something").to_owned()
    }

    fn log_with(&self, text: &str) -> String {
        let mut all = String::new();
        loop {
            let line = self
                .log
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("it never said {text:?} ({error}):\n{all}"));
            all.push_str(&line);
            all.push('\n');
            if line.contains(text) {
                return all;
            }
        }
    }

    /// The rest of its log, once it has ended.
    pub fn rest_of_log(&self) -> String {
        self.log.iter().collect::<Vec<_>>().join("\n")
    }

    /// The status of what is answered to a GET.
    pub fn status(&self, path: &str) -> u16 {
        let answer = self.answer(&format!("GET {path}"), "");
        answer.split(' ').nth(1).expect("it has a status").parse().expect("it is a number")
    }

    pub fn ask(&self, head: &str, body: &str) -> Value {
        let answer = self.answer(head, body);
        let (_, body) = answer.split_once("\r\n\r\n").expect("it has a body");
        let start = body.find('{').expect("it is JSON");
        serde_json::Deserializer::from_str(&body[start..]).into_iter().next().expect("it is JSON").expect("it is JSON")
    }

    fn answer(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
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
    pub fn until_it(&self, id: &str, is: impl Fn(&Value) -> bool) -> Value {
        poll(|| {
            let task = self.task(id)["result"].clone();
            if is(&task) { Ok(task) } else { Err(format!("it does not come to that: {task}")) }
        })
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(pid_of(&self.child), signal).expect("it is there");
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
