//! The binary as a caller has it: a home and a working folder of its own, and nothing else of this environment.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use longhaul_protocol::from_json;
use longhaul_protocol::json::{ProtoJson, to_json};
use longhaul_tests::server::{Folder, binary};
use longhaul_tests::{PATIENCE, Server, Store, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::text::Text;

/// The codes of appendix D, and how a process ends with each.
#[rustfmt::skip]
pub const LOCAL_CODES: [(&str, i32); 8] = [
    ("A2ACLI_ERR_USAGE", 2), ("A2ACLI_ERR_CARD_NOT_FOUND", 3), ("A2ACLI_ERR_CARD_INVALID", 1),
    ("A2ACLI_ERR_UNREACHABLE", 3), ("A2ACLI_ERR_CREDENTIALS_MISSING", 4), ("A2ACLI_ERR_AUTH_FAILED", 4),
    ("A2ACLI_ERR_TIMEOUT", 5), ("A2ACLI_ERR_INTERNAL", 1),
];

/// A caller.
#[derive(Debug)]
pub struct Cli {
    folder: Folder,
    variables: Vec<(String, String)>,
}

impl Cli {
    /// One whose home is empty.
    pub fn new() -> Self {
        let folder = Folder::new();
        for name in ["home", "work", "bin"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        symlink(binary(), folder.path().join("bin/longhaul")).unwrap();
        Self { folder, variables: Vec::new() }
    }

    /// One that has chosen this agent, by a variable.
    pub fn of(agent: &str) -> Self {
        Self::new().with("A2ACLI_AGENT_CARD", agent)
    }

    /// The same with one variable more.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The home.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The working folder.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Writes a file below the working folder, or below the home when its name begins so.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = match name.strip_prefix("~/") {
            Some(name) => self.home().join(name),
            None => self.work().join(name),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// All files in the home and the working folder.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.home(), self.work()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files
    }

    /// Runs a command to its end.
    pub async fn run(&self, args: &[&str]) -> Done {
        self.run_with(args, b"").await
    }

    /// The same with this on stdin.
    pub async fn run_with(&self, args: &[&str], stdin: &[u8]) -> Done {
        let mut command = self.command(&binary());
        command.args(args);
        finish(command, args.join(" "), stdin).await
    }

    /// Runs a line as a shell would, when it was copied.
    pub async fn shell(&self, line: &str) -> Done {
        let mut command = self.command(Path::new("/bin/sh"));
        command.arg("-c").arg(line);
        finish(command, line.to_owned(), b"").await
    }

    /// Starts a command, and looks at it while it runs.
    pub fn start(&self, args: &[&str]) -> Running {
        let mut child = self.command(&binary()).args(args).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running { line: args.join(" "), child, stdin, stdout, stderr, read: String::new(), errors: String::new() }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display()))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

async fn finish(mut command: Command, line: String, stdin: &[u8]) -> Done {
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // A command that reads no stdin may be gone already.
    let _ = pipe.write_all(stdin).await;
    drop(pipe);
    let output = within(PATIENCE, &format!("longhaul {line}"), child.wait_with_output()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("what is written is UTF-8");
    let done = Done {
        line,
        code: output.status.code().expect("no signal ended it"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    done.has_no_control_sequence();
    done
}

/// A server with the demo agent, and a caller that has chosen it.
pub async fn demo() -> (Server, Cli) {
    let server = Server::start(Store::Memory).await;
    let cli = Cli::of(&format!("http://{}", server.addr()));
    (server, cli)
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    line: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    read: String,
    errors: String,
}

impl Running {
    /// The next line of stdout; none at its end.
    pub async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let what = format!("a line of longhaul {}", self.line);
        within(PATIENCE, &what, self.stdout.read_line(&mut line)).await.unwrap();
        self.read.push_str(&line);
        (!line.is_empty()).then_some(line)
    }

    /// Reads stdout up to the first line that holds this.
    pub async fn until(&mut self, word: &str) -> String {
        loop {
            let line = self.line().await;
            let line = line.unwrap_or_else(|| panic!("longhaul {} ended before {word:?}: {}", self.line, self.read));
            if line.contains(word) {
                return line;
            }
        }
    }

    /// Reads stderr up to the first line that holds this.
    pub async fn until_told(&mut self, word: &str) {
        let what = format!("{word:?} on stderr of longhaul {}", self.line);
        loop {
            let before = self.errors.len();
            let read = within(PATIENCE, &what, self.stderr.read_line(&mut self.errors)).await.unwrap();
            assert!(read > 0, "{what}: {}", self.errors);
            if self.errors[before..].contains(word) {
                return;
            }
        }
    }

    /// Writes to its stdin.
    pub async fn say(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(text.as_bytes()).await.unwrap();
        stdin.flush().await.unwrap();
    }

    /// Interrupts it, as Ctrl-C does.
    pub fn interrupt(&self) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        kill_process(pid.expect("it runs"), Signal::INT).expect("it is our child");
    }

    /// Waits for its end, and closes its stdin first. The code is that of a shell when a signal ended it.
    pub async fn end(mut self) -> Done {
        drop(self.stdin.take());
        let what = format!("the end of longhaul {}", self.line);
        let rest = async {
            tokio::join!(self.stdout.read_to_string(&mut self.read), self.stderr.read_to_string(&mut self.errors))
        };
        let (stdout, errors) = within(PATIENCE, &what, rest).await;
        stdout.and(errors).unwrap();
        let status = within(PATIENCE, &what, self.child.wait()).await.unwrap();
        let done = Done { line: self.line, code: status.code().unwrap_or(128), stdout: self.read, stderr: self.errors };
        done.has_no_control_sequence();
        done
    }
}

/// What a command has done.
#[derive(Debug)]
pub struct Done {
    line: String,
    /// Its exit code.
    pub code: i32,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Done {
    /// It ended with this code.
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}", self.told());
        self
    }

    /// What a failed test shows of it.
    pub fn told(&self) -> String {
        format!("longhaul {}\nexit {}\nstdout: {}\nstderr: {}", self.line, self.code, self.stdout, self.stderr)
    }

    /// Everything that it wrote.
    pub fn all(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }

    /// Neither stream holds what moves a cursor or colours a word.
    fn has_no_control_sequence(&self) {
        let wrong = |it: char| it.is_control() && !matches!(it, '\n' | '\t');
        assert!(!self.stdout.contains(wrong) && !self.stderr.contains(wrong), "{:?}\n{}", self.stdout, self.told());
    }

    /// The one JSON document on stdout: no second one, and nothing around it.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not one document: {error}\n{}", self.told()))
    }

    /// The documents on stdout, one a line.
    pub fn json_lines(&self) -> Vec<Value> {
        assert!(self.stdout.ends_with('\n'), "the last line has no end\n{}", self.told());
        let document = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON line: {error}: {line}\n{}", self.told()))
        };
        self.stdout.lines().map(document).collect()
    }

    /// The document as a message of the protocol, which it is in each of its members.
    pub fn message<T: ProtoJson>(&self) -> T {
        message(&self.json())
    }

    /// The fields and blocks on stdout.
    pub fn text(&self) -> Text {
        Text::parse(&self.stdout).unwrap_or_else(|problem| panic!("{problem}\n{}", self.told()))
    }

    /// The error of a command with `-o json`. It agrees with the exit code, and says what can be done.
    pub fn error(&self) -> Value {
        let document = self.json();
        assert_eq!(document.as_object().map(serde_json::Map::len), Some(1), "{}", self.told());
        self.check_error(&document["error"]);
        document["error"].clone()
    }

    /// An error has the members of appendix B and no other.
    pub fn check_error(&self, error: &Value) {
        let told = || format!("{error}\n{}", self.told());
        let members = error.as_object().unwrap_or_else(|| panic!("no error: {}", told()));
        for name in members.keys() {
            assert!(["code", "message", "hint", "a2aCode"].contains(&name.as_str()), "{name}: {}", told());
        }
        let code = error["code"].as_str().unwrap_or_default();
        assert!(!code.is_empty() && !error["message"].as_str().unwrap_or_default().is_empty(), "{}", told());
        assert!(error["hint"].is_string() || error["hint"].is_null(), "{}", told());
        assert_ne!(error["hint"], "", "{}", told());
        assert!(!error["a2aCode"].is_object() && !error["a2aCode"].is_array(), "{}", told());
        if code.starts_with("A2ACLI_ERR_") {
            let known = LOCAL_CODES.iter().find(|(known, _)| *known == code);
            let (_, exit) = known.unwrap_or_else(|| panic!("a code that the contract does not have: {}", told()));
            assert_eq!(self.code, *exit, "{}", told());
        } else {
            assert!(![0, 2, 3, 4, 5].contains(&self.code), "{}", told());
        }
    }

    /// It failed with this error and exit code, in JSON.
    pub fn fails(&self, exit: i32, code: &str) -> Value {
        self.exits(exit);
        let error = self.error();
        assert_eq!(error["code"], code, "{}", self.told());
        error
    }

    /// The command to go on with that it printed.
    pub fn resume_command(&self) -> String {
        let lines = self.stdout.lines().chain(self.stderr.lines());
        let command =
            lines.filter_map(|line| line.find("longhaul send --task-id").map(|at| line[at..].to_owned())).next();
        command.unwrap_or_else(|| panic!("no command to resume with\n{}", self.told()))
    }
}

/// A value as a message of the protocol: read by the types of the wire, it is the same when it is written again.
pub fn message<T: ProtoJson>(value: &Value) -> T {
    let read: T = from_json(value.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}: {value}"));
    let again: Value = serde_json::from_slice(&to_json(&read)).unwrap();
    assert_eq!(&again, value, "what the protocol does not have was added");
    read
}
